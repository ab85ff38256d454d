import { describe, expect, it } from 'vitest';
import { parseIncoming } from '../../../src/mail/incoming/parse.ts';
import { readReceipt } from '../../smtp/mx/mails.ts';

const parse = (header: string, body = 'I am away until Monday.') =>
  parseIncoming(Buffer.from(`${header}\n\n${body}`));

describe('an automatic reply', () => {
  it.each([
    [
      'by Auto-Submitted (RFC 3834)',
      'From: a@x.example\nAuto-Submitted: auto-replied (vacation)\nSubject: Re: Hello',
    ],
    ['by an older field', 'From: a@x.example\nX-Autoreply: yes\nSubject: Re: Hello'],
    ['by its precedence', 'From: a@x.example\nPrecedence: auto_reply\nSubject: Hello'],
    ['by its subject', 'From: a@x.example\nSubject: Automatic reply: Hello'],
    ['by its German subject', 'From: a@x.example\nSubject: Automatische Antwort: Hallo'],
    ['by its encoded subject', 'From: a@x.example\nSubject: =?utf-8?q?R=C3=A9ponse_automatique?='],
  ])('is recognized %s', (_, header) => {
    expect(parse(header)).toMatchObject({
      kind: 'auto-reply',
      reports: [{ recipient: 'a@x.example', action: 'replied', bounceType: null, suppress: 'never' }],
    });
  });

  it('is recognized from a postmaster, whatever its words', () => {
    expect(
      parse(
        'From: Postmaster <postmaster@x.example>\nReturn-Path: <>\nAuto-Submitted: auto-replied\nSubject: Out of office: Delivery notification',
        'Our office is closed. mail could not be delivered to staff before Monday',
      ),
    ).toMatchObject({
      kind: 'auto-reply',
      reports: [{ recipient: 'postmaster@x.example', action: 'replied', bounceType: null }],
    });
  });

  it.each(['displayed', 'deleted'])(
    'is recognized in a read receipt for a message that was %s',
    (disposition) => {
      expect(parseIncoming(Buffer.from(readReceipt(disposition)))).toMatchObject({
        kind: 'auto-reply',
        reports: [{ recipient: 'ada@example.net', action: 'replied', bounceType: null, suppress: 'never' }],
      });
    },
  );

  it('has the id of the message that it answers', () => {
    expect(
      parse('From: a@x.example\nAuto-Submitted: auto-replied\nIn-Reply-To: <m.1@example.com>')
        .originalMessageId,
    ).toBe('m.1@example.com');
  });

  it.each([
    ['a person', 'From: a@x.example\nSubject: Re: Hello'],
    ['a mail system', 'From: MAILER-DAEMON@x.example\nAuto-Submitted: auto-replied\nSubject: Hello'],
    ['a generated notice', 'From: a@x.example\nAuto-Submitted: auto-generated\nSubject: Hello'],
    [
      'a server that names failed recipients',
      'From: helpdesk@x.example\nAuto-Submitted: auto-replied\nX-Failed-Recipients: b@y.example\nSubject: Hello',
    ],
    [
      'a server that sends a standard report',
      'From: helpdesk@x.example\nAuto-Submitted: auto-replied\nContent-Type: multipart/report; report-type=delivery-status; boundary=b',
    ],
    [
      'a postmaster who returns a standard report',
      'From: postmaster@x.example\nAuto-Submitted: auto-replied\nContent-Type: multipart/report; report-type=delivery-status; boundary=b',
    ],
    ['a sender with X-Autoreply: no', 'From: a@x.example\nX-Autoreply: no\nSubject: Hello'],
  ])('is not from %s', (_, header) => {
    expect(parse(header, 'Thanks!').kind).not.toBe('auto-reply');
  });

  it('is not a delay warning of Exim, which names no recipients in the header', () => {
    expect(
      parse(
        'From: Mail Delivery System <Mailer-Daemon@mx.example>\nAuto-Submitted: auto-replied\nSubject: Warning: message 1abcde-000001-2f delayed 24 hours',
        'A message that you sent has not yet been delivered to one or more of its\nrecipients after more than 24 hours on the queue on mx.example.\n\n  a@dest.example\n    Delay reason: Connection timed out',
      ),
    ).toMatchObject({ kind: 'dsn', reports: [{ recipient: 'a@dest.example', action: 'delayed' }] });
  });
});
