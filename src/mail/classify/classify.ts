import type { SmtpPhase, SmtpReply } from '../reply.ts';
import { FILTER_RULES } from './filter.ts';
import { MAILBOX_RULES } from './mailbox.ts';
import { MESSAGE_RULES } from './message.ts';
import { indexPhrases } from './phrases.ts';
import { PROVIDER_RULES } from './provider.ts';
import { RECIPIENT_RULES } from './recipient.ts';
import {
  applies,
  type BounceType,
  type Classification,
  type Evidence,
  normalise,
  OUTCOMES,
  type Outcome,
  type Rule,
  type Scope,
  type Suppress,
} from './rules.ts';
import { SENDER_RULES } from './sender.ts';
import { SITE_RULES } from './site.ts';
import { STATUS_RULES } from './status.ts';

/**
 * Judges SMTP replies, live or quoted in a report: deliver, defer or bounce, what to call it, whom it is
 * about, and whether it may suppress the address. It decides nothing else: what follows from a verdict is
 * the caller's. A blocklisted sender must never erase its own list, so every doubt falls on the side of
 * keeping the address.
 */

export type { BounceType, Classification, Scope, Suppress };

export interface Verdict {
  /** 2xx delivers, 4xx defers, 5xx bounces; but a 5xx about the connection alone defers too. */
  action: 'deliver' | 'defer' | 'bounce';
  /** What it counts as if this is the end of the message; null only for `deliver`. */
  bounceType: BounceType | null;
  classification: Classification;
  scope: Scope;
  suppress: Suppress;
  /** The wait that the reply itself asks for ("try again in 300 seconds"), in ms. */
  retryAfterMs: number | null;
  greylisted: boolean;
}

export interface Judged {
  stage: SmtpPhase | 'dsn';
  reply: SmtpReply;
  /** The host that gave the reply, when known: some wording means something only from its provider. */
  mxHost?: string | null;
}

/** Most specific first; the first that applies decides. */
export const RULES: readonly Rule[] = [
  ...PROVIDER_RULES,
  ...FILTER_RULES,
  ...SENDER_RULES,
  ...MAILBOX_RULES,
  ...RECIPIENT_RULES,
  ...MESSAGE_RULES,
  ...SITE_RULES,
  ...STATUS_RULES,
];

const PHRASES = indexPhrases(RULES.flatMap(({ says }) => says ?? []));

/** Judges one reply. Pure; takes time linear in the text. */
export function classify(judged: Judged): Verdict {
  return explain(judged).verdict;
}

/** The verdict with the rule that gave it; undefined when none applies. */
export function explain({ stage, reply, mxHost }: Judged): { verdict: Verdict; rule: Rule | undefined } {
  if (reply.code >= 200 && reply.code < 300) return { verdict: DELIVERED, rule: undefined };
  const rule = ruleFor({
    stage,
    code: reply.code,
    enhanced: reply.enhanced,
    said: PHRASES.find(normalise(reply.text)),
    mxHost: mxHost?.toLowerCase().replace(/\.$/, '') ?? null,
  });
  return { verdict: verdict(rule ? OUTCOMES[rule.means] : unmatched(stage), reply, stage), rule };
}

function ruleFor(evidence: Evidence): Rule | undefined {
  return RULES.find((rule) => applies(rule, evidence));
}

/** Before MAIL nothing has been said about this message: only these refusals are meant for it all the same. */
const FINAL_BEFORE_MAIL: ReadonlySet<Classification> = new Set([
  'reputation-block',
  'policy-block',
  'invalid-domain',
]);
const BEFORE_MAIL: ReadonlySet<SmtpPhase | 'dsn'> = new Set([
  'dns',
  'connect',
  'greeting',
  'ehlo',
  'starttls',
  'auth',
]);

function verdict(found: Outcome, reply: SmtpReply, stage: SmtpPhase | 'dsn'): Verdict {
  const { classification, scope } = found;
  // A refused login is a fault of the operator's settings, whatever the words: no message may bounce for it.
  const early = BEFORE_MAIL.has(stage) && (stage === 'auth' || !FINAL_BEFORE_MAIL.has(classification));
  const permanent = reply.code >= 500 && !early && !found.defers;
  return {
    action: permanent ? 'bounce' : 'defer',
    bounceType: permanent || found.bounceType === 'block' ? found.bounceType : 'soft',
    classification,
    scope,
    suppress: permanent ? found.suppress : 'never',
    retryAfterMs: permanent ? null : retryAfter(reply.text),
    greylisted: !permanent && classification === 'greylisted',
  };
}

/**
 * A 5xx without known words is hard, but may have been a filter: it suppresses only when seen again. In a
 * report the words are second-hand and often lost, so there it is soft.
 */
function unmatched(stage: SmtpPhase | 'dsn'): Outcome {
  const scope = SCOPE_AT[stage];
  return {
    classification: 'unclassified',
    bounceType: stage === 'dsn' ? 'soft' : scope === 'sender' ? 'block' : 'hard',
    scope,
    suppress: scope === 'recipient' && stage !== 'dsn' ? 'second-time' : 'never',
  };
}

const SCOPE_AT: Record<SmtpPhase | 'dsn', Scope> = {
  dns: 'site',
  connect: 'site',
  greeting: 'site',
  ehlo: 'site',
  starttls: 'site',
  auth: 'site',
  mail: 'sender',
  rcpt: 'recipient',
  data: 'message',
  dot: 'message',
  dsn: 'recipient',
};

const DELIVERED: Verdict = {
  action: 'deliver',
  bounceType: null,
  classification: 'unclassified',
  scope: 'recipient',
  suppress: 'never',
  retryAfterMs: null,
  greylisted: false,
};

/** What ended or delayed a message without any server's reply. */
export type LocalFailure =
  | 'no-such-domain'
  | 'no-mail-service'
  | 'no-mail-service-again'
  | 'no-mail-host'
  | 'null-mx'
  | 'dns-trouble'
  | 'ipv6-only'
  | 'unreachable'
  | 'connection-lost'
  | 'tls-failed'
  | 'expired'
  | 'routing-loop'
  | 'own-address'
  | 'private-network'
  | 'needs-smtputf8'
  | 'too-large'
  | 'not-composed';

const NO_MAIL_SERVICE = 'The domain does not accept mail: it has neither an MX record nor an address';

/** Each with the reply that we write in its place (RFC 3463 codes) and its outcome. */
const LOCAL: Record<LocalFailure, { reply: SmtpReply; outcome: Outcome }> = {
  'no-such-domain': local(550, '5.1.2', 'The domain does not exist', OUTCOMES['no such domain']),
  'no-mail-service': local(450, '4.1.2', NO_MAIL_SERVICE, OUTCOMES['no such domain']),
  /** Found again on another day. */
  'no-mail-service-again': local(550, '5.1.2', NO_MAIL_SERVICE, OUTCOMES['no such domain']),
  'no-mail-host': local(
    550,
    '5.4.4',
    'None of the mail hosts of the domain has an address',
    OUTCOMES['no such domain'],
  ),
  'null-mx': local(556, '5.1.10', 'The domain accepts no mail (null MX)', OUTCOMES['domain takes no mail']),
  'dns-trouble': local(451, '4.4.3', 'The domain could not be looked up', OUTCOMES['network trouble']),
  'ipv6-only': local(
    451,
    '4.4.4',
    'The mail hosts of the domain have IPv6 addresses only, and this server sends from IPv4 alone',
    OUTCOMES['network trouble'],
  ),
  unreachable: local(
    451,
    '4.4.1',
    'No mail host of the domain could be reached',
    OUTCOMES['network trouble'],
  ),
  'connection-lost': local(451, '4.4.2', 'The connection was lost', OUTCOMES['network trouble']),
  'tls-failed': local(
    451,
    '4.7.5',
    'No encrypted connection as required could be made',
    OUTCOMES['no encryption'],
  ),
  expired: local(554, '5.4.7', 'Not delivered in time', OUTCOMES['given up']),
  'routing-loop': local(554, '5.4.6', 'The best mail host of the domain is this server', OUTCOMES.loop),
  'own-address': local(554, '5.4.6', "The domain's mail host has an address of this server", OUTCOMES.loop),
  /** Soft: it may be the operator's own resolver that answers so. */
  'private-network': local(554, '5.4.4', "The domain's mail host has a private address", {
    ...OUTCOMES['no such domain'],
    bounceType: 'soft',
    suppress: 'never',
  }),
  'needs-smtputf8': local(553, '5.6.7', 'The mail host does not take internationalized addresses', {
    ...OUTCOMES['not understood'],
    scope: 'recipient',
  }),
  'too-large': local(
    552,
    '5.3.4',
    'The message is larger than the mail host takes',
    OUTCOMES['message too large'],
  ),
  'not-composed': local(554, '5.6.0', 'The message cannot be composed', OUTCOMES['not understood']),
};

/** Judges a failure that no server replied to; `reply` is ours, to be recorded in place of one. */
export function classifyLocal(failure: LocalFailure): { verdict: Verdict; reply: SmtpReply } {
  const { reply, outcome } = LOCAL[failure];
  return { verdict: verdict(outcome, reply, 'rcpt'), reply };
}

function local(
  code: number,
  enhanced: string,
  text: string,
  outcome: Outcome,
): { reply: SmtpReply; outcome: Outcome } {
  return { reply: { code, enhanced, text }, outcome };
}

/** The first enhanced status code (RFC 3463 §2) in a reply's text, or null; never a part of an IP address. */
export function enhancedCode(text: string): string | null {
  return /(?<![\d.])[245]\.\d{1,3}\.\d{1,3}(?![\d]|\.\d)/.exec(text)?.[0] ?? null;
}

const UNIT_MS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000 };
const LONGEST_WAIT_MS = 24 * 3_600_000;

/** "try again in 5 minutes", "retry after 300s", "come back in 00:04:59", in ms; null when nothing is named. */
function retryAfter(text: string): number | null {
  const clock = /\b(?:in|after|for) (\d\d):(\d\d):(\d\d)\b/.exec(text);
  if (clock) return bounded(((Number(clock[1]) * 60 + Number(clock[2])) * 60 + Number(clock[3])) * 1000);
  const named =
    /\b(?:again|retry|wait|back|later|greylist\w{0,3}|deferred)\b[^.;\d]{0,40}(\d{1,6}) ?(s|m|h|secs?|mins?|hrs?|seconds?|minutes?|hours?)\b/i.exec(
      text,
    );
  const unit = UNIT_MS[named?.[2]?.charAt(0).toLowerCase() ?? ''];
  return named && unit ? bounded(Number(named[1]) * unit) : null;
}

function bounded(ms: number): number {
  return Math.min(ms, LONGEST_WAIT_MS);
}
