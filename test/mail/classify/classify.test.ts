import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { expressionOf, REPLY_PHASES } from '../../../src/config/reply-rules.ts';
import { compilePattern } from '../../../src/core/linear-pattern.ts';
import {
  classify,
  classifyLocal,
  classifyWithRule,
  enhancedCode,
  RULES,
} from '../../../src/mail/classify/classify.ts';
import {
  indexPhrases,
  MEANINGS,
  MIN_PHRASE_LENGTH,
  type ReplyPhase,
  type Rule,
} from '../../../src/mail/classify/rules.ts';
import type { SmtpReply } from '../../../src/mail/reply.ts';

function reply(line: string): SmtpReply {
  const [, code = '0', text = ''] = /^(\d{3}) (.*)$/s.exec(line) ?? [];
  const enhanced = enhancedCode(text);
  return { code: Number(code), enhanced, text: enhanced ? text.replace(enhanced, '').trim() : text };
}

const classifyAt = (phase: ReplyPhase, line: string, mxHost?: string) =>
  classify({ phase, reply: reply(line), ...(mxHost && { mxHost }) });
const classifyAtRcpt = (line: string, mxHost?: string) => classifyAt('rcpt', line, mxHost);

/** The meaning that the classifier finds for the rule's example, and whether that rule decided it. */
function classifyExample(rule: Rule): { meaning: string; isDecisive: boolean } {
  const { reply: line, phase = 'rcpt', mx = null } = rule.example;
  const decisive = classifyWithRule({ phase, reply: reply(line), mxHost: mx }).rule;
  return { meaning: decisive?.meaning ?? 'none', isDecisive: decisive === rule };
}

/** Lower case, single spaces, ` * ` between words, long enough to be indexed. */
function isNormalized(phrase: string): boolean {
  const stars = phrase.split('*').length - 1;
  return (
    phrase === phrase.toLowerCase().trim() &&
    !phrase.includes('  ') &&
    stars === phrase.split(' * ').length - 1 &&
    (phrase.split(' * ')[0] ?? '').length >= MIN_PHRASE_LENGTH
  );
}

/** A value or a list of values, with at least one. */
const oneOrMore = <Type extends z.ZodType>(type: Type) => z.union([type, z.array(type).min(1)]);

/** The form of a rule in replies.toml. */
const ruleForm = z
  .strictObject({
    match: oneOrMore(z.string().min(MIN_PHRASE_LENGTH)).optional(),
    wording: z.string().optional(),
    code: oneOrMore(z.int().min(400).max(599)).optional(),
    enhanced: oneOrMore(z.string().regex(/^[45x]\.(\d{1,3}|x)\.(\d{1,3}|x)$/)).optional(),
    mx: oneOrMore(z.string().regex(/^\*\.[a-z0-9-]+(\.[a-z0-9-]+)+$/)).optional(),
    phase: oneOrMore(z.enum(REPLY_PHASES)).optional(),
    meaning: z.enum(Object.keys(MEANINGS)),
    example: z.strictObject({
      reply: z.string().regex(/^[45]\d\d /),
      phase: z.enum(REPLY_PHASES).optional(),
      mx: z.string().optional(),
    }),
  })
  .refine(({ match, code, enhanced }) => match !== undefined || code !== undefined || enhanced !== undefined);

describe('the rules', () => {
  it('have the form of rules', () => {
    expect(RULES.length).toBeGreaterThan(150);
    for (const rule of RULES)
      expect(ruleForm.safeParse(rule), JSON.stringify(rule)).toMatchObject({ success: true });
    const expressions = RULES.flatMap(({ match }) => match ?? []).map(expressionOf);
    for (const expression of expressions)
      if (expression !== null) expect(compilePattern(expression), expression).toBeTypeOf('object');
  });

  it('match their own examples before any other rule', () => {
    const title = ({ example }: Rule) => example.reply;
    expect(Object.fromEntries(RULES.map((rule) => [title(rule), classifyExample(rule)]))).toEqual(
      Object.fromEntries(RULES.map((rule) => [title(rule), { meaning: rule.meaning, isDecisive: true }])),
    );
  });

  it('have phrases in normalized form', () => {
    const phrases = RULES.flatMap((rule) => rule.match ?? []);
    expect(phrases.filter((phrase) => !isNormalized(phrase))).toEqual([]);
  });

  it('have each unconditional phrase once', () => {
    const phrases = RULES.filter((rule) => !rule.mx && !rule.phase && !rule.code && !rule.enhanced).flatMap(
      (rule) => rule.match ?? [],
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
    expect(classifyAt('auth', line)).toMatchObject({ action: 'defer', suppress: 'never' });
  });
});

describe('suppression', () => {
  it('follows only from hard bounces about the recipient', () => {
    const suppressing = Object.values(MEANINGS).filter(({ suppress }) => suppress !== 'never');
    expect(suppressing.length).toBeGreaterThan(0);
    expect(
      suppressing.filter(({ scope, bounceType }) => scope !== 'recipient' || bounceType !== 'hard'),
    ).toEqual([]);
  });

  it.each([
    '550 5.7.1 Client host [192.0.2.1] blocked using zen.spamhaus.org',
    '550 5.1.1 <a@example.com> - 192.0.2.1 has sent to too many recipients this hour. IB607',
    '550 5.7.1 IP address blacklisted by recipient',
    '550 The sender mailbox does not exist',
    '550 sender user unknown',
    '550 5.1.1 Sender address does not exist',
    '550 5.1.1 sender does not exist',
    '550 bounce address does not exist',
    '554 5.7.1 Rejected: unknown user sending from a dynamic IP',
    '550 5.7.26 This mail is unauthenticated, which poses a security risk',
    '450 4.1.1 <a@example.com>: Recipient address rejected: User unknown in local recipient table',
    '452 4.2.2 mailbox full',
    '552 5.2.2 mailbox full',
  ])('does not follow from %s', (line) => {
    expect(classifyAtRcpt(line).suppress).toBe('never');
  });

  it.each([
    ['550 5.1.1 <a@example.com>: Recipient address rejected: User unknown', 'now'],
    ['550 5.2.1 The email account that you tried to reach is disabled', 'now'],
    ['550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup', 'now'],
    ['550 5.4.1 Recipient address rejected: Access denied', 'second-time'],
    ['550 nothing in this line is known to anyone', 'second-time'],
  ] as const)('follows from %s: %s', (line, suppress) => {
    expect(classifyAtRcpt(line)).toMatchObject({
      action: 'bounce',
      bounceType: 'hard',
      scope: 'recipient',
      suppress,
    });
  });
});

describe('the action', () => {
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
    expect(classifyAtRcpt(line)).toMatchObject({ action, bounceType });
  });

  it('is to defer an error before MAIL', () => {
    expect(classifyAt('greeting', '554 No SMTP service here')).toMatchObject({
      action: 'defer',
      scope: 'site',
    });
  });

  it.each([
    ['greeting', 'defer'],
    ['ehlo', 'defer'],
    ['starttls', 'defer'],
    ['auth', 'defer'],
    ['mail', 'defer'],
    ['rcpt', 'bounce'],
    ['dot', 'bounce'],
    ['dsn', 'bounce'],
  ] as const)('of a block of our address at %s is to %s', (phase, action) => {
    expect(classifyAt(phase, '554 5.7.1 192.0.2.1 blocked using zen.spamhaus.org')).toMatchObject({
      action,
      bounceType: 'block',
      bounceClass: 'reputation-block',
      isAboutAddress: true,
    });
  });

  it('attributes an unknown rejection to the sender at MAIL and to the message after DATA', () => {
    expect(classifyAt('mail', '550 no').scope).toBe('sender');
    expect(classifyAt('dot', '550 no')).toMatchObject({ scope: 'message', suppress: 'never' });
  });

  it('is a soft bounce when a report gives no reason', () => {
    expect(classifyAt('dsn', '550 5.0.0 mumble')).toMatchObject({
      action: 'bounce',
      bounceType: 'soft',
      suppress: 'never',
    });
  });
});

describe('the text of a reply', () => {
  it('is searched without its mail addresses', () => {
    expect(classifyAtRcpt('550 <spam@spamhaus.org>... User unknown').bounceClass).toBe('invalid-recipient');
  });

  it('matches a phrase only at the start of a word', () => {
    expect(classifyAtRcpt('550 5.1.1 recip blocked').bounceClass).not.toBe('reputation-block');
  });

  it('is searched without the repeated enhanced codes of a multi-line reply', () => {
    expect(
      classifyAtRcpt('550 5.1.1 The email account that you tried to 5.1.1 reach does not exist').bounceClass,
    ).toBe('invalid-recipient');
  });

  it('has the meaning of the provider when the host is one of its hosts', () => {
    const line = '550 5.5.0 Requested action not taken: mailbox unavailable';
    expect(classifyAtRcpt(line, 'hotmail-com.olc.protection.outlook.com.')).toMatchObject({
      suppress: 'now',
    });
    expect(classifyAtRcpt(line, 'mx.notoutlook.com').suppress).not.toBe('now');
  });

  it.each(['a', '1.', '@', 'ip ', 'ip*', '5.1.1 ', '<', 'again in ', '\u0000'])(
    'is linear in 2,000 times %j',
    (piece) => {
      const line = `550 ${piece.repeat(2000)}`;
      for (let i = 0; i < 20; i++) expect(classifyAtRcpt(line).action).toBe('bounce');
    },
  );
});

describe('the retry time in a reply', () => {
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
    expect(classifyAtRcpt(line).retryAfterMs).toBe(ms);
  });

  it('is separate from greylisting', () => {
    expect(classifyAtRcpt('450 4.2.0 Recipient address rejected: Greylisted').greylisted).toBe(true);
    expect(classifyAtRcpt('450 4.2.0 Mailbox busy').greylisted).toBe(false);
  });
});

describe('failures without a reply', () => {
  it('have a classification and a reply', () => {
    const expected = [
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
    ] as const;
    const actual = expected.map(([failure]) => {
      const { classification, reply } = classifyLocal(failure);
      const { action, bounceType, bounceClass, suppress } = classification;
      return [failure, action, bounceType, bounceClass, suppress, reply.enhanced];
    });
    expect(actual).toEqual(expected);
  });
});

describe('the text after an address', () => {
  it.each(['...', '/', '|', '... ', ': '])('is searched when %j separates them', (separator) => {
    expect(classifyAtRcpt(`550 joe@example.net${separator}User unknown`)).toMatchObject({
      bounceClass: 'invalid-recipient',
      suppress: 'now',
    });
  });

  it('is searched without the words of the address', () => {
    expect(classifyAtRcpt('550 spam/blocked@user-unknown.example.net: no').bounceClass).toBe('unclassified');
  });
});

describe('the wording of single servers', () => {
  it.each([
    ['554 5.7.1 <a@example.com>: Recipient address rejected: Nonexistent user', 'invalid-recipient', 'now'],
    ['554 Rcpt <a@example.com> does not exist', 'invalid-recipient', 'now'],
    ['550 BAD_RECIPIENT', 'invalid-recipient', 'now'],
    ['550 5.4.3 Malformed name server reply', 'network-error', 'never'],
    ['450 Malformed name server reply', 'network-error', 'never'],
    ['550 5.7.1 We are not accepting mail with attachments', 'content-rejected', 'never'],
    ['550 unrouteable mail domain "example.com"', 'invalid-domain', 'second-time'],
    ['550 unrouteable sender address: no such user', 'policy-block', 'never'],
    ['550 mail from user unknown', 'policy-block', 'never'],
    ['550 Message rejected: may be blacklisted domain in body', 'spam-block', 'never'],
  ] as const)('%s means %s, suppresses: %s', (line, bounceClass, suppress) => {
    expect(classifyAtRcpt(line)).toMatchObject({ bounceClass, suppress });
  });
});

describe('enhancedCode', () => {
  it.each([
    ['5.1.1 User unknown', '5.1.1'],
    ['said: 550-5.7.26 no', '5.7.26'],
    ['host 192.0.2.5.1.1 replied', null],
    ['[4.4.4.4] refused', null],
    ['see 5.1.1.', '5.1.1'],
    ['3.1.1 5.1', null],
  ])('%s: %j', (text, code) => {
    expect(enhancedCode(text)).toBe(code);
  });
});

const index = indexPhrases(['user unknown', 'greylist', 'ip * blocked', 'mailbox * is full', '[tss0', 'no']);

describe('phrases', () => {
  it.each([
    ['user unknown', ['user unknown']],
    ['550 user unknown, greylisted', ['user unknown', 'greylist']],
    ['a superuser unknown', []],
    ['recip blocked', []],
    ['ip blocked', ['ip * blocked']],
    ['ip 192.0.2.1 blocked', ['ip * blocked']],
    ['ip 192.0.2.1 is unblocked', []],
    [`ip ${'x'.repeat(200)} blocked`, []],
    ['mailbox a is fullest', ['mailbox * is full']],
    ['(x)[tss04] no', ['[tss0', 'no']],
    ['', []],
  ])('%s contains %j', (text, phrases) => {
    expect([...index.find(text)]).toEqual(phrases);
  });
});
