import { describe, expect, it } from 'vitest';
import { parseIncoming } from '../../../src/mail/incoming/parse.ts';

const parse = (header: string, body = 'I am away until Monday.') =>
  parseIncoming(Buffer.from(`${header}\n\n${body}`));

describe('an automatic answer', () => {
  it.each([
    ['says so (RFC 3834)', 'From: a@x.example\nAuto-Submitted: auto-replied (vacation)\nSubject: Re: Hello'],
    ['says so in an older way', 'From: a@x.example\nX-Autoreply: yes\nSubject: Re: Hello'],
    ['has its precedence', 'From: a@x.example\nPrecedence: auto_reply\nSubject: Hello'],
    ['has its subject', 'From: a@x.example\nSubject: Automatic reply: Hello'],
    ['has its subject in German', 'From: a@x.example\nSubject: Automatische Antwort: Hallo'],
    ['has its subject encoded', 'From: a@x.example\nSubject: =?utf-8?q?R=C3=A9ponse_automatique?='],
  ])('%s', (_, header) => {
    expect(parse(header)).toMatchObject({
      kind: 'auto-reply',
      reports: [{ recipient: 'a@x.example', action: 'replied', bounceType: null, suppress: 'never' }],
    });
  });

  it('tells what it answers', () => {
    expect(
      parse('From: a@x.example\nAuto-Submitted: auto-replied\nIn-Reply-To: <m.1@example.com>')
        .originalMessageId,
    ).toBe('m.1@example.com');
  });

  it.each([
    ['a person', 'From: a@x.example\nSubject: Re: Hello'],
    ['a mail system', 'From: MAILER-DAEMON@x.example\nAuto-Submitted: auto-replied\nSubject: Hello'],
    ['a notice that nobody need answer', 'From: a@x.example\nAuto-Submitted: auto-generated\nSubject: Hello'],
    [
      'a server that names who failed',
      'From: helpdesk@x.example\nAuto-Submitted: auto-replied\nX-Failed-Recipients: b@y.example\nSubject: Hello',
    ],
    [
      'a server that reports by the standard',
      'From: helpdesk@x.example\nAuto-Submitted: auto-replied\nContent-Type: multipart/report; report-type=delivery-status; boundary=b',
    ],
    ['one that denies it', 'From: a@x.example\nX-Autoreply: no\nSubject: Hello'],
  ])('is not from %s', (_, header) => {
    expect(parse(header, 'Thanks!').kind).not.toBe('auto-reply');
  });
});
