import type { SmtpPhase } from '../reply.ts';

/**
 * The language that the classifier's rules are written in: what a rule may ask of a reply, and what it may
 * conclude. Rules are data: literal phrases instead of expressions, so that an operator can read them and a
 * hostile reply can cost no more than its length. The rules themselves stand in the files beside this one.
 */

/** What a bounce is called in events, webhooks and `bounce parse`; one list for SMTP replies and reports. */
export type Classification =
  | 'invalid-recipient'
  | 'invalid-domain'
  | 'inactive-mailbox'
  | 'mailbox-full'
  | 'message-too-large'
  | 'content-rejected'
  | 'spam-block'
  | 'policy-block'
  | 'authentication-failed'
  | 'reputation-block'
  | 'rate-limited'
  | 'greylisted'
  | 'network-error'
  | 'tls-failed'
  | 'relay-denied'
  | 'protocol-error'
  | 'server-error'
  | 'expired'
  | 'routing-loop'
  | 'unclassified';

/** hard: the address itself is bad for good. block: we or the message were refused. soft: all else. */
export type BounceType = 'hard' | 'soft' | 'block';

/** Whom a reply is about. `sender` is our address, domain or reputation; `site` the destination's servers. */
export type Scope = 'recipient' | 'message' | 'sender' | 'site';

/** Whether a bounce may suppress the address: at once, when it is seen again on another day, or never. */
export type Suppress = 'now' | 'second-time' | 'never';

export interface Outcome {
  classification: Classification;
  /** When the failure is for good; a temporary failure is never harder than soft. */
  bounceType: BounceType;
  scope: Scope;
  suppress: Suppress;
  /** Tried again even when the code is 5xx: it is about the connection, and the next one may do better. */
  defers?: true;
}

/** Everything a rule may conclude. Only the recipient's own, permanent faults suppress anyone. */
export const OUTCOMES = {
  'no such recipient': outcome('invalid-recipient', 'hard', 'recipient', 'now'),
  /** Said also of good addresses now and then, by filters and half-synchronised directories. */
  'perhaps no such recipient': outcome('invalid-recipient', 'hard', 'recipient', 'second-time'),
  /** Said so late, or so indirectly, that it may be a filter's word; counts as a soft bounce. */
  'unknown to a filter': outcome('invalid-recipient', 'soft', 'recipient', 'never'),
  'recipient moved': outcome('invalid-recipient', 'hard', 'recipient', 'now'),
  'no such domain': outcome('invalid-domain', 'hard', 'recipient', 'second-time'),
  'domain takes no mail': outcome('invalid-domain', 'hard', 'recipient', 'now'),
  /** 5.2.1 (RFC 3463 §3.3), from the server that knows. */
  'mailbox shut': outcome('inactive-mailbox', 'hard', 'recipient', 'now'),
  'mailbox inactive': outcome('inactive-mailbox', 'soft', 'recipient', 'never'),
  'recipient refuses': outcome('inactive-mailbox', 'soft', 'recipient', 'never'),
  'mailbox full': outcome('mailbox-full', 'soft', 'recipient', 'never'),
  'recipient takes mail from members only': outcome('policy-block', 'block', 'recipient', 'never'),
  'recipient gets too much': outcome('rate-limited', 'soft', 'recipient', 'never'),
  'message too large': outcome('message-too-large', 'soft', 'message', 'never'),
  'looks like spam': outcome('spam-block', 'block', 'message', 'never'),
  'content refused': outcome('content-rejected', 'block', 'message', 'never'),
  'policy refuses message': outcome('policy-block', 'block', 'message', 'never'),
  'sender refused': outcome('policy-block', 'block', 'sender', 'never'),
  'sender not authenticated': outcome('authentication-failed', 'block', 'sender', 'never'),
  'address listed': outcome('reputation-block', 'block', 'sender', 'never'),
  'too fast': outcome('rate-limited', 'soft', 'site', 'never'),
  /** The volume or the complaints of one sender, not the number of our connections. */
  'sender too fast': outcome('rate-limited', 'soft', 'sender', 'never'),
  greylisted: outcome('greylisted', 'soft', 'recipient', 'never'),
  'network trouble': outcome('network-error', 'soft', 'site', 'never'),
  'no encryption': outcome('tls-failed', 'soft', 'site', 'never', true),
  'no relaying': outcome('relay-denied', 'soft', 'recipient', 'never'),
  'not understood': outcome('protocol-error', 'soft', 'message', 'never'),
  'server trouble': outcome('server-error', 'soft', 'site', 'never'),
  'given up': outcome('expired', 'soft', 'site', 'never'),
  loop: outcome('routing-loop', 'soft', 'recipient', 'never'),
} as const satisfies Record<string, Outcome>;

export type OutcomeName = keyof typeof OUTCOMES;

export interface Rule {
  /** Any of these phrases, in the form `normalise` gives a text; ` * ` stands for anything between. */
  says?: readonly string[];
  /** Any of these reply codes. */
  code?: readonly number[];
  /** Any of these enhanced codes; `x` stands for any number: `5.7.x`, `x.2.2`. */
  enhanced?: readonly string[];
  /** Only from hosts that are, or are below, one of these names. */
  mx?: readonly string[];
  /** Only at one of these stages. */
  at?: readonly (SmtpPhase | 'dsn')[];
  means: OutcomeName;
  /** A reply that this rule, and none above it, judges. The row's test. */
  example: { text: string; code: number; enhanced?: string; mx?: string; at?: SmtpPhase | 'dsn' };
}

/** A reply as rules see it. */
export interface Evidence {
  stage: SmtpPhase | 'dsn';
  code: number;
  enhanced: string | null;
  /** The phrases of all rules that the text holds. */
  said: ReadonlySet<string>;
  /** Lower case. */
  mxHost: string | null;
}

/** Whether every condition of the rule holds. */
export function applies(rule: Rule, reply: Evidence): boolean {
  return (
    (!rule.code || rule.code.includes(reply.code)) &&
    (!rule.at || rule.at.includes(reply.stage)) &&
    (!rule.mx || rule.mx.some((name) => isWithin(reply.mxHost, name))) &&
    (!rule.enhanced || rule.enhanced.some((pattern) => hasStatus(reply.enhanced, pattern))) &&
    (!rule.says || rule.says.some((phrase) => reply.said.has(phrase)))
  );
}

/**
 * A text as phrases are written: lower case, single blanks, plain apostrophes, without enhanced codes, and
 * each mail address as a bare `@` (a local part named "spam" says nothing about spam). Linear in the length.
 */
export function normalise(text: string): string {
  const bare = text
    .slice(0, LONGEST_TEXT)
    .toLowerCase()
    .replace(/[\u2018\u2019`\u00b4]/g, "'")
    .replace(/(?<![\d.])[245]\d\d[- ](?=[245]\.)|(?<![\d.])[245]\.\d{1,3}\.\d{1,3}(?![\d.]*\d)/g, ' ')
    .replace(/[\s\p{Cc}]+/gu, ' ');
  return withoutAddresses(bare);
}

/** Replies are kept to 2,000 characters; reports may quote more, but never more that matters. */
const LONGEST_TEXT = 4000;

const ADDRESS_ENDS = new Set([' ', '<', '>', '(', ')', '[', ']', ',', ';', ':', '"', "'", '=']);

function withoutAddresses(text: string): string {
  let out = '';
  let word = '';
  for (const char of text) {
    if (!ADDRESS_ENDS.has(char)) {
      word += char;
      continue;
    }
    out += withoutAddress(word) + char;
    word = '';
  }
  return out + withoutAddress(word);
}

/**
 * A word with its address as a bare `@`. The address ends with its domain: in `joe@example.net...user`,
 * `joe@example.net/user` and `joe@example.net|user` the rest is the server's own text.
 */
function withoutAddress(word: string): string {
  const at = word.lastIndexOf('@');
  if (at < 0) return word;
  const domain = /^(?:[\p{L}\p{M}\p{N}_-]+\.?)*/u.exec(word.slice(at + 1))?.[0] ?? '';
  return `@${word.slice(at + 1 + domain.length)}`;
}

function hasStatus(enhanced: string | null, pattern: string): boolean {
  if (!enhanced) return false;
  const digits = enhanced.split('.');
  return pattern.split('.').every((wanted, i) => wanted === 'x' || wanted === digits[i]);
}

function isWithin(host: string | null, name: string): boolean {
  return host === name || (host?.endsWith(`.${name}`) ?? false);
}

function outcome(
  classification: Classification,
  bounceType: BounceType,
  scope: Scope,
  suppress: Suppress,
  defers?: true,
): Outcome {
  return { classification, bounceType, scope, suppress, ...(defers && { defers }) };
}
