import type { ReplyAutomation } from '../../config/reply-rules.ts';
import type { SmtpReply } from '../reply.ts';
import { retryAfter } from './retry-after.ts';
import {
  type BounceClass,
  type BounceScope,
  type BounceType,
  type ClassifierInput,
  createRuleFinder,
  MEANINGS,
  type Meaning,
  type MeaningName,
  type ReplyPhase,
  type Rule,
  readRules,
  type SuppressWhen,
} from './rules.ts';

/**
 * Classifies SMTP replies, received in a session or quoted in a report: whether to deliver, retry or bounce, the bounce
 * class, what the reply is about, and whether it may suppress the address. The caller acts on the classification. A
 * blocklisted sender must not lose its own list, so every doubt is decided in favor of the address.
 */

export type { BounceClass, BounceScope, BounceType, SuppressWhen };

export interface Classification {
  /** 2xx: deliver, 4xx: defer, 5xx: bounce, or defer when it concerns the connection alone. */
  action: 'deliver' | 'defer' | 'bounce';
  /** The type if the message ends here; null only for `deliver`. */
  bounceType: BounceType | null;
  bounceClass: BounceClass;
  scope: BounceScope;
  suppress: SuppressWhen;
  /** Milliseconds to wait that the reply itself names ("try again in 300 seconds"). */
  retryAfterMs: number | null;
  greylisted: boolean;
  /** It concerns our address, which all accounts share; absent: something else. */
  isAboutAddress?: true;
  /** What the rule of the operator does when such replies repeat. */
  automation?: ReplyAutomation;
}

/** Classifies one reply. */
export type Classify = (input: ClassifierInput) => Classification;

/** The rules of the program. The first one that applies decides. */
export const RULES: readonly Rule[] = readRules();

const findRule = createRuleFinder(RULES);

/** Classifies one reply. Pure; linear in the length of the text. */
export function classify(input: ClassifierInput): Classification {
  return classifyWithRule(input).classification;
}

/** The classification with the rule that decided it, undefined when none matches. */
export function classifyWithRule(input: ClassifierInput): {
  classification: Classification;
  rule: Rule | undefined;
} {
  const { phase, reply } = input;
  if (reply.code >= 200 && reply.code < 300) return { classification: DELIVERED, rule: undefined };
  const rule = findRule(input);
  return {
    classification: toClassification(rule ? MEANINGS[rule.meaning] : unmatched(phase), reply, phase),
    rule,
  };
}

/** The classification of a reply with a known meaning. */
export function meaningOf(name: MeaningName, reply: SmtpReply, phase: ReplyPhase): Classification {
  return toClassification(MEANINGS[name], reply, phase);
}

/** Before MAIL a reply cannot be about the message; only these rejections are final nevertheless. */
const FINAL_BEFORE_MAIL: ReadonlySet<BounceClass> = new Set(['policy-block', 'invalid-domain']);
/** Before MAIL a server knows our address only, which all accounts share. */
export const PHASES_BEFORE_MAIL: ReadonlySet<ReplyPhase> = new Set([
  'dns',
  'connect',
  'greeting',
  'ehlo',
  'starttls',
  'auth',
]);
/** A block in these phases concerns our address alone: mail can wait until it is lifted, so no message bounces for it. */
export const PHASES_ABOUT_ADDRESS: ReadonlySet<ReplyPhase> = new Set([...PHASES_BEFORE_MAIL, 'mail']);

function toClassification(meaning: Meaning, reply: SmtpReply, phase: ReplyPhase): Classification {
  const { bounceClass, scope } = meaning;
  // A rejected login is an error in the operator's configuration, whatever the text: no message bounces for it.
  const isEarly = PHASES_BEFORE_MAIL.has(phase) && (phase === 'auth' || !FINAL_BEFORE_MAIL.has(bounceClass));
  const isAddressBlock = bounceClass === 'reputation-block' && PHASES_ABOUT_ADDRESS.has(phase);
  const isPermanent = reply.code >= 500 && !isEarly && !isAddressBlock && !meaning.isRetried;
  return {
    action: isPermanent ? 'bounce' : 'defer',
    bounceType: isPermanent || meaning.bounceType === 'block' ? meaning.bounceType : 'soft',
    bounceClass,
    scope,
    suppress: isPermanent ? meaning.suppress : 'never',
    retryAfterMs: isPermanent ? null : retryAfter(reply.text),
    greylisted: !isPermanent && bounceClass === 'greylisted',
    ...(meaning.isAboutAddress === true ? { isAboutAddress: true } : {}),
  };
}

/**
 * A 5xx without known wording is hard, but may come from a filter: it suppresses only when it repeats. In a report the
 * text is quoted and often incomplete, so there it is soft.
 */
function unmatched(phase: ReplyPhase): Meaning {
  const scope = SCOPE_OF_PHASE[phase];
  return {
    bounceClass: 'unclassified',
    bounceType: phase === 'dsn' ? 'soft' : scope === 'sender' ? 'block' : 'hard',
    scope,
    suppress: scope === 'recipient' && phase !== 'dsn' ? 'second-time' : 'never',
  };
}

const SCOPE_OF_PHASE: Record<ReplyPhase, BounceScope> = {
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

const DELIVERED: Classification = {
  action: 'deliver',
  bounceType: null,
  bounceClass: 'unclassified',
  scope: 'recipient',
  suppress: 'never',
  retryAfterMs: null,
  greylisted: false,
};

/** Why an attempt ended without a reply from a server. */
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
  | 'not-composed'
  | 'egress-failed';

interface LocalReply {
  reply: SmtpReply;
  meaning: Meaning;
}

const NO_MAIL_SERVICE = 'The domain does not accept mail: it has neither an MX record nor an address';

/** For each failure the reply that is recorded in place of a server's (RFC 3463 codes), and its meaning. */
const LOCAL_FAILURES: Record<LocalFailure, LocalReply> = {
  'no-such-domain': local(550, '5.1.2', 'The domain does not exist', MEANINGS['no such domain']),
  'no-mail-service': local(450, '4.1.2', NO_MAIL_SERVICE, MEANINGS['no such domain']),
  /** The second time, on another day. */
  'no-mail-service-again': local(550, '5.1.2', NO_MAIL_SERVICE, MEANINGS['no such domain']),
  'no-mail-host': local(
    550,
    '5.4.4',
    'None of the mail hosts of the domain has an address',
    MEANINGS['no such domain'],
  ),
  'null-mx': local(556, '5.1.10', 'The domain accepts no mail (null MX)', MEANINGS['domain accepts no mail']),
  'dns-trouble': local(451, '4.4.3', 'The domain could not be looked up', MEANINGS['network error']),
  'ipv6-only': local(
    451,
    '4.4.4',
    'The mail hosts of the domain have IPv6 addresses only, and this server sends from IPv4 alone',
    MEANINGS['network error'],
  ),
  unreachable: local(451, '4.4.1', 'No mail host of the domain could be reached', MEANINGS['network error']),
  'connection-lost': local(451, '4.4.2', 'The connection was lost', MEANINGS['network error']),
  'tls-failed': local(
    451,
    '4.7.5',
    'The required encrypted connection could not be established',
    MEANINGS['TLS failed'],
  ),
  expired: local(554, '5.4.7', 'Not delivered in time', MEANINGS.expired),
  'routing-loop': local(
    554,
    '5.4.6',
    'The best mail host of the domain is this server',
    MEANINGS['routing loop'],
  ),
  'own-address': local(
    554,
    '5.4.6',
    "The domain's mail host has an address of this server",
    MEANINGS['routing loop'],
  ),
  /** Soft: the address may come from the operator's own resolver. */
  'private-network': local(554, '5.4.4', "The domain's mail host has a private address", {
    ...MEANINGS['no such domain'],
    bounceType: 'soft',
    suppress: 'never',
  }),
  // RFC 3463 §3.5: 4.4.4, unable to route.
  'egress-failed': local(451, '4.4.4', 'The source address cannot be used', MEANINGS['network error']),
  'not-composed': local(554, '5.6.0', 'The message cannot be composed', MEANINGS['protocol error']),
};

/** Classifies a failure without a reply; `reply` is the one to record in place of a server's. */
export function classifyLocal(failure: LocalFailure): { classification: Classification; reply: SmtpReply } {
  const { reply, meaning } = LOCAL_FAILURES[failure];
  return { classification: toClassification(meaning, reply, 'rcpt'), reply };
}

function local(code: number, enhanced: string, text: string, meaning: Meaning): LocalReply {
  return { reply: { code, enhanced, text }, meaning };
}

/** The first enhanced status code (RFC 3463 §2) in the text of a reply, or null; never a part of an IP address. */
export function enhancedCode(text: string): string | null {
  return /(?<![\d.])[245]\.\d{1,3}\.\d{1,3}(?![\d]|\.\d)/.exec(text)?.[0] ?? null;
}
