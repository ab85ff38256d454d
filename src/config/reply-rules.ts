import * as z from 'zod';
import { DAY, HOUR } from '../core/clock.ts';
import { compilePattern } from '../core/linear-pattern.ts';
import { duration, HOST_PATTERN } from './setting-types.ts';

/*
 * Rules for the replies of receivers: those of the operator (`delivery.replies`), and in the same form those of the program
 * (`config/replies.toml`). A text is words with `*` for any words between them, or a regular expression
 * that is matched in linear time, so that no reply makes it expensive to match.
 */

/** The meanings that a rule can assign to a reply; mail/classify/rules.ts has the consequences of each. */
export const REPLY_MEANINGS = [
  'no such recipient',
  'possibly no such recipient',
  'mailbox inactive',
  'mailbox full',
  'blocked by recipient',
  'recipient accepts known senders only',
  'recipient rate limit',
  'no such domain',
  'domain accepts no mail',
  'message too large',
  'spam',
  'content rejected',
  'message rejected by policy',
  'sender rejected',
  'sender not authenticated',
  'IP address blocklisted',
  'rate limit',
  'sender rate limit',
  'IP address rate limit',
  'greylisted',
  'network error',
  'TLS failed',
  'relaying denied',
  'protocol error',
  'server error',
] as const;
export type ReplyMeaning = (typeof REPLY_MEANINGS)[number];

const MAX_RULES = 500;
const MAX_TEXT_LENGTH = 200;
const MAX_ALTERNATIVES = 50;
const MAX_GAPS = 5;
/** A shorter text would match unrelated replies. */
const MIN_PART_LENGTH = 3;

/** The phases of a session in which a server replies; `dsn`: the reply is quoted in a report. */
export const REPLY_PHASES = [
  'greeting',
  'ehlo',
  'starttls',
  'auth',
  'mail',
  'rcpt',
  'data',
  'dot',
  'dsn',
] as const;

/** The regular expression in `/…/`; null: the text is words. */
export function expressionOf(match: string): string | null {
  return match.length > 2 && match.startsWith('/') && match.endsWith('/') ? match.slice(1, -1) : null;
}

const matchText = z
  .string()
  .max(MAX_TEXT_LENGTH)
  .transform((given) =>
    expressionOf(given) === null ? given.toLowerCase().replace(/\s+/g, ' ').trim() : given,
  )
  .superRefine((given, context) => {
    const fault = (message: string) => context.addIssue({ code: 'custom', message });
    const expression = expressionOf(given);
    if (expression !== null) {
      const compiled = compilePattern(expression);
      if (typeof compiled === 'string') fault(`the regular expression ${compiled}`);
      return;
    }
    const parts = given.split(' * ');
    if (parts.some((part) => part.includes('*')))
      fault('must have "*" only between words, with a space on both sides, as in "too many * connections"');
    else if (parts.some((part) => part.length < MIN_PART_LENGTH))
      fault(`must have at least ${MIN_PART_LENGTH} characters, also between two "*"`);
    else if (parts.length > MAX_GAPS + 1) fault(`must have at most ${MAX_GAPS} "*"`);
  });

const mxHost = z
  .string()
  .max(255)
  .regex(HOST_PATTERN, 'must be an MX host or a domain above it, such as "mx.example.com"')
  .transform((host) => host.toLowerCase().replace(/^\*\./, ''));

const oneOrMore = <Type extends z.ZodType>(type: Type) =>
  z.union([type, z.array(type).min(1).max(MAX_ALTERNATIVES)]);

/** What happens at the site when replies repeat. */
export type ReplyEffect =
  | { kind: 'suspend'; ms: number }
  | { kind: 'connections'; connections: number }
  | { kind: 'perMinute'; messages: number };

const EFFECT_FORM = 'must be "suspend 2h" (at most 4h), "connections 1" or "perMinute 10" (at least 6)';
const MAX_SUSPEND_MS = 4 * HOUR;
const MIN_PER_MINUTE = 6;

const effect = z.string().transform((text, context): ReplyEffect => {
  const [, kind, value = ''] = /^(suspend|connections|perMinute) (\d+(?:ms|s|m|h|d)?)$/.exec(text) ?? [];
  const number = /^\d+$/.test(value) ? Number(value) : 0;
  const ms = duration.safeParse(value).data ?? 0;
  if (kind === 'suspend' && number === 0 && ms > 0 && ms <= MAX_SUSPEND_MS) return { kind, ms };
  if (kind === 'connections' && number > 0) return { kind, connections: number };
  if (kind === 'perMinute' && number >= MIN_PER_MINUTE) return { kind, messages: number };
  context.addIssue({ code: 'custom', message: EFFECT_FORM });
  return z.NEVER;
});

const automation = z.strictObject({
  after: z.int().min(1).max(1000),
  within: duration.refine((ms) => ms > 0 && ms <= DAY, 'must be at most "1d"'),
  // biome-ignore lint/suspicious/noThenProperty: the name of the setting; the object is never awaited.
  then: effect,
});

export const replyRule = z
  .strictObject({
    /** Any of these texts. */
    match: oneOrMore(matchText).optional(),
    /** The earlier name of `match`. */
    text: matchText.optional(),
    code: oneOrMore(z.int().min(400).max(599)).optional(),
    enhanced: oneOrMore(
      z
        .string()
        .regex(/^[45x]\.(\d{1,3}|x)\.(\d{1,3}|x)$/, 'must be an enhanced code such as "4.7.28" or "5.7.x"'),
    ).optional(),
    /** The MX hosts of a shaping profile. */
    provider: z.string().max(63).optional(),
    mx: oneOrMore(mxHost).optional(),
    /** The earlier name of `mx`. */
    host: mxHost.optional(),
    phase: oneOrMore(z.enum(REPLY_PHASES)).optional(),
    meaning: z.enum(REPLY_MEANINGS),
    action: z.enum(['defer', 'bounce']).optional(),
    retryAfter: duration.optional(),
    automation: automation.optional(),
    /** A reply to which the rule applies. */
    example: z
      .strictObject({ reply: z.string(), phase: z.enum(REPLY_PHASES).optional(), mx: z.string().optional() })
      .optional(),
  })
  .refine(
    ({ match, text, code, enhanced }) =>
      match !== undefined || text !== undefined || code !== undefined || enhanced !== undefined,
    'needs match, code or enhanced',
  )
  .refine(
    ({ match, text }) => match === undefined || text === undefined,
    'has both match and text: they are the same',
  )
  .refine(
    ({ provider, mx, host }) => [provider, mx, host].filter((each) => each !== undefined).length <= 1,
    'must have only one of provider, mx and host',
  )
  .refine(
    ({ action, retryAfter }) => action !== 'bounce' || retryAfter === undefined,
    'must not have retryAfter with action = "bounce"',
  );
export const replyRules = z.array(replyRule).max(MAX_RULES);

export type ReplyRule = z.output<typeof replyRule>;
export type ReplyAutomation = NonNullable<ReplyRule['automation']>;

/** The rules with the MX hosts of the providers that they name. Returns the index of the first rule with an unknown one. */
export function withProviderHosts(
  rules: readonly ReplyRule[],
  profiles: readonly { name: string; match: readonly string[] }[],
): ReplyRule[] | number {
  const resolved: ReplyRule[] = [];
  for (const [index, rule] of rules.entries()) {
    const profile = profiles.find(({ name, match }) => name === rule.provider && match.length > 0);
    if (rule.provider !== undefined && profile === undefined) return index;
    resolved.push(
      profile === undefined ? rule : { ...rule, mx: profile.match.map((name) => name.replace(/^\*\./, '')) },
    );
  }
  return resolved;
}
