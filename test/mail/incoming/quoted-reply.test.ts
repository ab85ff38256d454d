import { describe, expect, it } from 'vitest';
import { innermostCode, phaseIn, quotedReply, replyText } from '../../../src/mail/incoming/quoted-reply.ts';

describe('the reply quoted in a report', () => {
  it.each([
    [
      'host mx.example.com[192.0.2.1] said: 550 5.1.1 User unknown (in reply to RCPT TO command)',
      550,
      '5.1.1',
      'rcpt',
    ],
    ['SMTP error from remote mail server after end of data: 554 5.7.0 Header error', 554, '5.7.0', 'dot'],
    [
      '192.0.2.1 does not like recipient. Remote host said: 552 Error: disk quota exceeded',
      552,
      null,
      'rcpt',
    ],
    ['192.0.2.1 failed after I sent the message. Remote host said: 550-5.7.26 no', 550, '5.7.26', 'dot'],
    [
      'Connected to 192.0.2.1 but my name was rejected. Remote host said: 501 5.0.0 Invalid domain',
      501,
      '5.0.0',
      'ehlo',
    ],
    ['>>> MAIL From:<s@example.com> <<< 501 no access', 501, null, 'mail'],
    ['>>> RCPT To:<a@example.com> <<< 550 User unknown', 550, null, 'rcpt'],
    ['mx.example.com [192.0.2.1] did not like our final DATA: 550-5.7.26 no', 550, '5.7.26', 'dot'],
    ['sorry, no mailbox here by that name (#5.1.1 - chkusr)', 0, '5.1.1', 'dsn'],
    [
      'Invalid Address, ERROR_CODE :550, ERROR_CODE :5.1.1 <a@example.com>... User Unknown',
      550,
      '5.1.1',
      'dsn',
    ],
    ['Could not deliver for the last 432000 seconds. Giving up.', 0, null, 'dsn'],
    ['connect to mx.example.com[192.0.2.1]:587: Connection refused', 0, null, 'dsn'],
    ['sent 550 bytes to 5.6.7.8', 550, null, 'dsn'],
    ['', 0, null, 'dsn'],
  ] as const)('%s', (text, code, enhanced, phase) => {
    expect(quotedReply(text)).toEqual({ code, enhanced, phase });
  });

  it('has the innermost code of nested replies', () => {
    expect(innermostCode("5.1.0 - Unknown address error 550-'5.2.2 Mailbox Full'")).toBe('5.2.2');
    expect(innermostCode('554 4.4.7 Message expired.<421 4.4.2 Connection timed out>')).toBe('4.4.2');
    expect(innermostCode('550 5.7.1 refused (5.0.0)')).toBe('5.7.1');
  });

  it.each(['192.0.2.5.1.1', '5.1.1.4', '4.16.55.1', 'exim-4.94.2', 'v5.1.1', '5.1.1-rc', '2.1.5'])(
    'has no enhanced code in %s',
    (text) => {
      expect(innermostCode(text)).toBeNull();
    },
  );

  it('ends with its paragraph', () => {
    expect(replyText('host said: 550 no such user\nPlease see the help')).toBe('550 no such user');
    expect(replyText('no reply at all')).toBe('');
  });

  it('answers the most reliably named command', () => {
    expect(phaseIn('after RCPT TO:<a@example.com>')).toBe('rcpt');
    expect(phaseIn('in reply to end\n of DATA command')).toBe('dot');
  });
});

describe('the command that a reply answers', () => {
  it.each([
    ['User unknown in our database', 'dsn'],
    ['all email commands are logged', 'dsn'],
    ['remote server answered, in reply to our DATA: no', 'data'],
    ['refused after DATA', 'data'],
    ['error after database update', 'dsn'],
  ] as const)('"%s": %s', (text, phase) => {
    expect(phaseIn(text)).toBe(phase);
  });
});
