import { describe, expect, it } from 'vitest';
import {
  classify,
  classifyLocal,
  enhancedCode,
  explain,
  RULES,
} from '../../../src/mail/classify/classify.ts';
import { SHORTEST_PHRASE } from '../../../src/mail/classify/phrases.ts';
import { OUTCOMES, type Rule } from '../../../src/mail/classify/rules.ts';
import type { SmtpPhase, SmtpReply } from '../../../src/mail/reply.ts';

function reply(line: string): SmtpReply {
  const [, code = '0', text = ''] = /^(\d{3}) (.*)$/s.exec(line) ?? [];
  const enhanced = enhancedCode(text);
  return { code: Number(code), enhanced, text: enhanced ? text.replace(enhanced, '').trim() : text };
}

const at = (stage: SmtpPhase | 'dsn', line: string, mxHost?: string) =>
  classify({ stage, reply: reply(line), ...(mxHost && { mxHost }) });
const atRcpt = (line: string, mxHost?: string) => at('rcpt', line, mxHost);

function judgedExample({ example }: Rule) {
  const { code, enhanced = null, text, at: stage = 'rcpt', mx = null } = example;
  return { stage, reply: { code, enhanced, text }, mxHost: mx };
}

/** Lower case, single blanks, ` * ` between words, long enough to be looked up. */
function isNormal(phrase: string): boolean {
  const stars = phrase.split('*').length - 1;
  return (
    phrase === phrase.toLowerCase().trim() &&
    !phrase.includes('  ') &&
    stars === phrase.split(' * ').length - 1 &&
    (phrase.split(' * ')[0] ?? '').length >= SHORTEST_PHRASE
  );
}

describe('every rule', () => {
  it.each(
    RULES.map((rule) => [`${rule.example.code} ${rule.example.enhanced ?? ''} ${rule.example.text}`, rule]),
  )('judges its own example: %s', (_, rule) => {
    expect(explain(judgedExample(rule)).rule).toBe(rule);
  });

  it('has its phrases in the form that texts are normalised to', () => {
    const phrases = RULES.flatMap((rule) => rule.says ?? []);
    expect(phrases.filter((phrase) => !isNormal(phrase))).toEqual([]);
  });

  it('says each phrase once', () => {
    const phrases = RULES.filter((rule) => !rule.mx && !rule.at && !rule.code && !rule.enhanced).flatMap(
      (rule) => rule.says ?? [],
    );
    expect(phrases.filter((phrase, i) => phrases.indexOf(phrase) !== i)).toEqual([]);
  });
});

describe('a refused login at a relay', () => {
  it.each([
    '535 5.7.8 Authentication credentials invalid',
    '535 5.7.1 Authentication failed',
    '535 5.7.139 Authentication unsuccessful, basic authentication is disabled by policy',
    '554 5.7.1 Client host blocked using zen.spamhaus.org',
  ])('defers and never suppresses: %s', (line) => {
    expect(at('auth', line)).toMatchObject({ action: 'defer', suppress: 'never' });
  });
});

describe('only what is about the recipient, and for good, suppresses', () => {
  it('holds for every outcome', () => {
    const suppressing = Object.values(OUTCOMES).filter(({ suppress }) => suppress !== 'never');
    expect(suppressing.length).toBeGreaterThan(0);
    expect(
      suppressing.filter(({ scope, bounceType }) => scope !== 'recipient' || bounceType !== 'hard'),
    ).toEqual([]);
  });

  it.each([
    '550 5.7.1 Client host [192.0.2.1] blocked using zen.spamhaus.org',
    '550 5.1.1 <a@example.com> - 192.0.2.1 has sent to too many recipients this hour. IB607',
    '550 5.7.1 IP address blacklisted by recipient',
    '554 5.7.1 Rejected: unknown user sending from a dynamic IP',
    '550 5.7.26 This mail is unauthenticated, which poses a security risk',
    '450 4.1.1 <a@example.com>: Recipient address rejected: User unknown in local recipient table',
    '452 4.2.2 mailbox full',
    '552 5.2.2 mailbox full',
  ])('%s suppresses nobody', (line) => {
    expect(atRcpt(line).suppress).toBe('never');
  });

  it.each([
    ['550 5.1.1 <a@example.com>: Recipient address rejected: User unknown', 'now'],
    ['550 5.2.1 The email account that you tried to reach is disabled', 'now'],
    ['550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup', 'now'],
    ['550 5.4.1 Recipient address rejected: Access denied', 'second-time'],
    ['550 nothing in this line is known to anyone', 'second-time'],
  ] as const)('%s suppresses: %s', (line, suppress) => {
    expect(atRcpt(line)).toMatchObject({
      action: 'bounce',
      bounceType: 'hard',
      scope: 'recipient',
      suppress,
    });
  });
});

describe('action', () => {
  it.each([
    ['250 2.0.0 Ok: queued as 1A2B', 'deliver', null],
    ['451 4.3.0 something unknown', 'defer', 'soft'],
    ['450 User unknown', 'defer', 'soft'],
    ['550 User unknown', 'bounce', 'hard'],
    ['530 5.7.0 Must issue a STARTTLS command first', 'defer', 'soft'],
    ['451 4.7.1 Client host [192.0.2.1] blocked using bl.spamcop.net', 'defer', 'block'],
    [
      '550 5.2.1 The user you are trying to contact is receiving mail at a rate that prevents delivery',
      'bounce',
      'soft',
    ],
  ] as const)('%s: %s', (line, action, bounceType) => {
    expect(atRcpt(line)).toMatchObject({ action, bounceType });
  });

  it('keeps trying when a server is out of sorts before MAIL, but believes a listing', () => {
    expect(at('greeting', '554 No SMTP service here')).toMatchObject({ action: 'defer', scope: 'site' });
    expect(at('greeting', '554 5.7.1 192.0.2.1 blocked using zen.spamhaus.org')).toMatchObject({
      action: 'bounce',
      bounceType: 'block',
      classification: 'reputation-block',
    });
  });

  it('blames the sender for an unknown refusal of MAIL, the message for one of DATA', () => {
    expect(at('mail', '550 no').scope).toBe('sender');
    expect(at('dot', '550 no')).toMatchObject({ scope: 'message', suppress: 'never' });
  });

  it('does not call hard what a report leaves unexplained', () => {
    expect(at('dsn', '550 5.0.0 mumble')).toMatchObject({
      action: 'bounce',
      bounceType: 'soft',
      suppress: 'never',
    });
  });
});

describe('evidence', () => {
  it('does not read words inside mail addresses', () => {
    expect(atRcpt('550 <spam@spamhaus.org>... User unknown').classification).toBe('invalid-recipient');
  });

  it('reads a phrase only at the beginning of a word', () => {
    expect(atRcpt('550 5.1.1 recip blocked').classification).not.toBe('reputation-block');
  });

  it('reads through repeated enhanced codes of a multi-line reply', () => {
    expect(
      atRcpt('550 5.1.1 The email account that you tried to 5.1.1 reach does not exist').classification,
    ).toBe('invalid-recipient');
  });

  it('knows the provider by its host', () => {
    const line = '550 5.5.0 Requested action not taken: mailbox unavailable';
    expect(atRcpt(line, 'hotmail-com.olc.protection.outlook.com.')).toMatchObject({ suppress: 'now' });
    expect(atRcpt(line, 'mx.notoutlook.com').suppress).not.toBe('now');
  });

  it.each(['a', '1.', '@', 'ip ', 'ip*', '5.1.1 ', '<', 'again in ', '\u0000'])(
    'is linear in 2,000 times %j',
    (piece) => {
      const line = `550 ${piece.repeat(2000)}`;
      for (let i = 0; i < 20; i++) expect(atRcpt(line).action).toBe('bounce');
    },
  );
});

describe('what the reply asks to wait', () => {
  it.each([
    ['450 4.2.0 Greylisted, try again in 300 seconds', 300_000],
    ['451 4.7.1 Greylisting in action, please come back in 00:04:59', 299_000],
    ['421 4.7.0 too many connections, retry after 10s', 10_000],
    ['450 please wait 2 hours', 7_200_000],
    ['450 try again in 15 minutes', 900_000],
    ['450 retry in 999999 hours', 86_400_000],
    ['450 try again later', null],
    ['450 try again, 4 messages wait', null],
    ['550 try again in 300 seconds', null],
  ])('%s: %j ms', (line, ms) => {
    expect(atRcpt(line).retryAfterMs).toBe(ms);
  });

  it('tells greylisting', () => {
    expect(atRcpt('450 4.2.0 Recipient address rejected: Greylisted').greylisted).toBe(true);
    expect(atRcpt('450 4.2.0 Mailbox busy').greylisted).toBe(false);
  });
});

describe('failures without a reply', () => {
  it.each([
    ['no-such-domain', 'bounce', 'hard', 'invalid-domain', 'second-time', '5.1.2'],
    ['no-mail-service', 'defer', 'soft', 'invalid-domain', 'never', '4.1.2'],
    ['no-mail-service-again', 'bounce', 'hard', 'invalid-domain', 'second-time', '5.1.2'],
    ['null-mx', 'bounce', 'hard', 'invalid-domain', 'now', '5.1.10'],
    ['dns-trouble', 'defer', 'soft', 'network-error', 'never', '4.4.3'],
    ['ipv6-only', 'defer', 'soft', 'network-error', 'never', '4.4.4'],
    ['unreachable', 'defer', 'soft', 'network-error', 'never', '4.4.1'],
    ['connection-lost', 'defer', 'soft', 'network-error', 'never', '4.4.2'],
    ['tls-failed', 'defer', 'soft', 'tls-failed', 'never', '4.7.5'],
    ['expired', 'bounce', 'soft', 'expired', 'never', '5.4.7'],
    ['routing-loop', 'bounce', 'soft', 'routing-loop', 'never', '5.4.6'],
    ['own-address', 'bounce', 'soft', 'routing-loop', 'never', '5.4.6'],
    ['private-network', 'bounce', 'soft', 'invalid-domain', 'never', '5.4.4'],
    ['needs-smtputf8', 'bounce', 'soft', 'protocol-error', 'never', '5.6.7'],
    ['too-large', 'bounce', 'soft', 'message-too-large', 'never', '5.3.4'],
  ] as const)('%s: %s, %s, %s', (failure, action, bounceType, classification, suppress, enhanced) => {
    const { verdict, reply } = classifyLocal(failure);
    expect(verdict).toMatchObject({ action, bounceType, classification, suppress });
    expect(reply.enhanced).toBe(enhanced);
  });
});

describe('the text after an address', () => {
  it.each(['...', '/', '|', '... ', ': '])('is read as text when %j separates them', (separator) => {
    expect(atRcpt(`550 joe@example.net${separator}User unknown`)).toMatchObject({
      classification: 'invalid-recipient',
      suppress: 'now',
    });
  });

  it('keeps words of the address itself out of the judgement', () => {
    expect(atRcpt('550 spam/blocked@user-unknown.example.net: no').classification).toBe('unclassified');
  });
});

describe('wording of single servers', () => {
  it.each([
    ['554 5.7.1 <a@example.com>: Recipient address rejected: Nonexistent user', 'invalid-recipient', 'now'],
    ['554 Rcpt <a@example.com> does not exist', 'invalid-recipient', 'now'],
    ['550 BAD_RECIPIENT', 'invalid-recipient', 'now'],
    ['550 5.4.3 Malformed name server reply', 'network-error', 'never'],
    ['450 Malformed name server reply', 'network-error', 'never'],
    ['550 5.7.1 We are not accepting mail with attachments', 'content-rejected', 'never'],
    ['550 unrouteable mail domain "example.com"', 'invalid-domain', 'second-time'],
  ] as const)('%s is %s, suppresses: %s', (line, classification, suppress) => {
    expect(atRcpt(line)).toMatchObject({ classification, suppress });
  });
});

describe('enhancedCode', () => {
  it.each([
    ['5.1.1 User unknown', '5.1.1'],
    ['said: 550-5.7.26 no', '5.7.26'],
    ['host 192.0.2.5.1.1 said', null],
    ['[4.4.4.4] refused', null],
    ['see 5.1.1.', '5.1.1'],
    ['3.1.1 5.1', null],
  ])('%s: %j', (text, code) => {
    expect(enhancedCode(text)).toBe(code);
  });
});
