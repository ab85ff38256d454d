import { readProgramFile } from '../../config/program-file.ts';
import { expressionOf, type ReplyMeaning } from '../../config/reply-rules.ts';
import { compilePattern } from '../../core/linear-pattern.ts';
import type { SmtpPhase, SmtpReply } from '../reply.ts';

/**
 * The rules for replies: the conditions that a rule may test, the meanings that it may assign, and which rule applies to a
 * reply. Rules are data, of the program (`config/replies.toml`) and of the operator (`delivery.replies`): phrases, so that
 * an operator can read them, and expressions that are matched in linear time, so that a hostile reply costs no more than its
 * length.
 */

/** The `classification` of a bounce in events, webhooks and `bounce parse`, for SMTP replies and reports alike. */
export const BOUNCE_CLASSES = [
  'invalid-recipient',
  'invalid-domain',
  'inactive-mailbox',
  'mailbox-full',
  'message-too-large',
  'content-rejected',
  'spam-block',
  'policy-block',
  'authentication-failed',
  'reputation-block',
  'rate-limited',
  'greylisted',
  'network-error',
  'tls-failed',
  'relay-denied',
  'protocol-error',
  'server-error',
  'expired',
  'routing-loop',
  'unclassified',
] as const;
export type BounceClass = (typeof BOUNCE_CLASSES)[number];

/** hard: the address is permanently invalid. block: the sender or the message was rejected. soft: all else. */
export type BounceType = 'hard' | 'soft' | 'block';

/** What a reply is about. `sender`: our address, domain or reputation. `site`: the destination's servers. */
export type BounceScope = 'recipient' | 'message' | 'sender' | 'site';

/** When a bounce suppresses the address: immediately, when it repeats on another day, or never. */
export type SuppressWhen = 'now' | 'second-time' | 'never';

export interface Meaning {
  bounceClass: BounceClass;
  /** Type of a permanent failure; a temporary failure is at most soft. */
  bounceType: BounceType;
  scope: BounceScope;
  suppress: SuppressWhen;
  /** Retried even after a 5xx: the failure concerns the connection or the rate, and the next attempt may succeed. */
  isRetried?: true;
  /** It concerns our address, which all accounts share, not one sender. */
  isAboutAddress?: true;
}

/** All meanings that a rule may assign. Only permanent failures of the recipient suppress an address. */
export const MEANINGS = {
  'no such recipient': meaning('invalid-recipient', 'hard', 'recipient', 'now'),
  /** Filters and partly synchronized directories sometimes send this reply for valid addresses. */
  'possibly no such recipient': meaning('invalid-recipient', 'hard', 'recipient', 'second-time'),
  /** After DATA, or by a server whose filters say so of existing mailboxes: nobody knows. */
  'unconfirmed no such recipient': meaning('inactive-mailbox', 'soft', 'recipient', 'never'),
  'recipient moved': meaning('invalid-recipient', 'hard', 'recipient', 'now'),
  'no such domain': meaning('invalid-domain', 'hard', 'recipient', 'second-time'),
  'domain accepts no mail': meaning('invalid-domain', 'hard', 'recipient', 'now'),
  /** 5.2.1 (RFC 3463 §3.3), from the server that hosts the mailbox. */
  'mailbox disabled': meaning('inactive-mailbox', 'hard', 'recipient', 'now'),
  'mailbox inactive': meaning('inactive-mailbox', 'soft', 'recipient', 'never'),
  'blocked by recipient': meaning('inactive-mailbox', 'soft', 'recipient', 'never'),
  'mailbox full': meaning('mailbox-full', 'soft', 'recipient', 'never'),
  'recipient accepts known senders only': meaning('policy-block', 'block', 'recipient', 'never'),
  'recipient rate limit': meaning('rate-limited', 'soft', 'recipient', 'never'),
  'message too large': meaning('message-too-large', 'soft', 'message', 'never'),
  spam: meaning('spam-block', 'block', 'message', 'never'),
  'content rejected': meaning('content-rejected', 'block', 'message', 'never'),
  'message rejected by policy': meaning('policy-block', 'block', 'message', 'never'),
  'sender rejected': meaning('policy-block', 'block', 'sender', 'never'),
  'sender not authenticated': meaning('authentication-failed', 'block', 'sender', 'never'),
  'IP address blocklisted': {
    ...meaning('reputation-block', 'block', 'sender', 'never'),
    isAboutAddress: true,
  },
  /** Retried even after a 5xx: the same message is accepted at a lower rate. */
  'rate limit': { ...meaning('rate-limited', 'soft', 'site', 'never'), isRetried: true },
  /** A limit on one sender's volume or complaints, not on the number of our connections. */
  'sender rate limit': meaning('rate-limited', 'soft', 'sender', 'never'),
  /** The same for our address, whoever the sender is. */
  'IP address rate limit': { ...meaning('rate-limited', 'soft', 'sender', 'never'), isAboutAddress: true },
  greylisted: meaning('greylisted', 'soft', 'recipient', 'never'),
  'network error': meaning('network-error', 'soft', 'site', 'never'),
  'TLS failed': { ...meaning('tls-failed', 'soft', 'site', 'never'), isRetried: true },
  'relaying denied': meaning('relay-denied', 'soft', 'recipient', 'never'),
  'protocol error': meaning('protocol-error', 'soft', 'message', 'never'),
  'server error': meaning('server-error', 'soft', 'site', 'never'),
  expired: meaning('expired', 'soft', 'site', 'never'),
  'routing loop': meaning('routing-loop', 'soft', 'recipient', 'never'),
} as const satisfies Record<string, Meaning> & Record<ReplyMeaning, Meaning>;

export type MeaningName = keyof typeof MEANINGS;

/** The phase of a session, or `dsn` for a reply quoted in a delivery report. */
export type ReplyPhase = SmtpPhase | 'dsn';

type OneOrMore<Value> = Value | readonly Value[];

/** What a rule tests. It applies when each condition that it has is met by one of its values. */
export interface Conditions {
  /** A phrase; ` * ` in it matches up to 80 characters (`indexPhrases`). Or an expression between slashes. */
  match?: OneOrMore<string> | undefined;
  /** A reply code. */
  code?: OneOrMore<number> | undefined;
  /** An enhanced code; `x` matches any number: `5.7.x`, `x.2.2`. */
  enhanced?: OneOrMore<string> | undefined;
  /** An MX host, or a domain above it, with or without `*.` before it. */
  mx?: OneOrMore<string> | undefined;
  phase?: OneOrMore<ReplyPhase> | undefined;
}

/** A rule of the program. */
export interface Rule extends Conditions {
  /** The phrases of all languages about this subject. */
  wording?: string;
  meaning: MeaningName;
  /** A reply to which this rule applies and none above it: the test of the rule. Default phase: rcpt. */
  example: { reply: string; mx?: string; phase?: ReplyPhase };
}

/** Phrases by language (ISO 639-1) and subject. */
type Wordings = Record<string, Record<string, readonly string[]>>;

// Sound: the file is a part of the program, and a test checks its form.
export const WORDINGS = readProgramFile('reply-languages.toml') as Wordings;

/** Reads the rules of the program, with the phrases of their wording. */
export function readRules(): Rule[] {
  const wordings = Object.values(WORDINGS);
  // Sound: the file is a part of the program, and a test checks its form.
  const { rule: rules } = readProgramFile('replies.toml') as { rule: Rule[] };
  return rules.map((rule) => {
    const { wording } = rule;
    if (wording === undefined) return rule;
    return { ...rule, match: [...new Set(wordings.flatMap((each) => each[wording] ?? []))] };
  });
}

/** A reply, and where it occurred. */
export interface ClassifierInput {
  phase: ReplyPhase;
  reply: SmtpReply;
  /** The host that sent the reply, if known: some wording has a meaning only for one provider. */
  mxHost?: string | null;
}

/** Replies are truncated to this length; reports may quote more. */
const MAX_EXPRESSION_TEXT = 2000;

/** Prepares rules. Returns a function that finds the first one that applies to a reply; undefined: none does. */
export function createRuleFinder<Each extends Conditions>(
  rules: readonly Each[],
): (input: ClassifierInput) => Each | undefined {
  const prepared = rules.map((rule) => {
    const texts = listOf(rule.match);
    return {
      rule,
      codes: listOf(rule.code),
      enhanced: listOf(rule.enhanced),
      hosts: listOf(rule.mx).map((host) => host.replace(/^\*\./, '')),
      phases: listOf(rule.phase),
      hasText: texts.length > 0,
      phrases: texts.filter((text) => expressionOf(text) === null).map(toPhrase),
      patterns: texts.flatMap((text) => {
        const expression = expressionOf(text);
        const compiled = expression === null ? '' : compilePattern(expression);
        return typeof compiled === 'string' ? [] : [compiled];
      }),
    };
  });
  const index = indexPhrases(prepared.flatMap(({ phrases }) => phrases));
  return ({ phase, reply: { code, enhanced, text }, mxHost }) => {
    const found = index.find(normalizeText(text));
    const spaced = text.slice(0, MAX_EXPRESSION_TEXT).replace(/\s+/g, ' ');
    const host = mxHost?.toLowerCase().replace(/\.$/, '') ?? null;
    return prepared.find(
      (rule) =>
        includesOrEmpty(rule.codes, code) &&
        includesOrEmpty(rule.phases, phase) &&
        (rule.hosts.length === 0 || rule.hosts.some((domain) => isWithinDomain(host, domain))) &&
        (rule.enhanced.length === 0 ||
          rule.enhanced.some((pattern) => matchesEnhancedCode(enhanced, pattern))) &&
        (!rule.hasText ||
          rule.phrases.some((phrase) => found.has(phrase)) ||
          rule.patterns.some((pattern) => pattern.matches(spaced))),
    )?.rule;
  };
}

function listOf<Value>(given: OneOrMore<Value> | undefined): readonly Value[] {
  if (given === undefined) return [];
  return Array.isArray(given) ? given : [given as Value];
}

function includesOrEmpty<Value>(values: readonly Value[], value: Value): boolean {
  return values.length === 0 || values.includes(value);
}

/** The text as replies are compared: an operator copies it from a reply, with its codes and addresses. */
function toPhrase(text: string): string {
  return text
    .split(' * ')
    .map((part) => normalizeText(part).trim())
    .join(' * ');
}

/**
 * Returns a text in the form in which phrases are written: lower case, single spaces, ASCII apostrophes, Latin letters
 * without accents (servers write "bloquee" for "bloquée"), without enhanced codes, and each mail address reduced to `@`
 * (the local part "spam" is not evidence of spam). Linear in the length.
 */
export function normalizeText(text: string): string {
  const normalized = withoutAccents(text.slice(0, MAX_TEXT_LENGTH).toLowerCase())
    .replace(/[\u2018\u2019`\u00b4]/g, "'")
    .replace(/(?<![\d.])[245]\d\d[- ](?=[245]\.)|(?<![\d.])[245]\.\d{1,3}\.\d{1,3}(?![\d.]*\d)/g, ' ')
    .replace(/[\s\p{Cc}]+/gu, ' ');
  return removeAddresses(normalized);
}

/** Only Latin letters: in other scripts a mark distinguishes letters. */
function withoutAccents(text: string): string {
  if (/^[\0-\x7f]*$/.test(text)) return text;
  return text
    .normalize('NFD')
    .replace(/(?<=[a-z])\p{M}+/gu, '')
    .normalize('NFC')
    .replace(/[ßæœøłđðıё]/g, (letter) => PLAIN_LETTERS[letter] ?? letter);
}

/** Letters that have no decomposition, and `ё`, for which Russian text often has `е`. */
const PLAIN_LETTERS: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  ı: 'i',
  ё: 'е',
};

/** Replies are truncated to 2,000 characters; reports may quote more, but nothing relevant beyond this length. */
const MAX_TEXT_LENGTH = 4000;

const ADDRESS_ENDS = new Set([' ', '<', '>', '(', ')', '[', ']', ',', ';', ':', '"', "'", '=']);

function removeAddresses(text: string): string {
  let out = '';
  let word = '';
  for (const char of text) {
    if (!ADDRESS_ENDS.has(char)) {
      word += char;
      continue;
    }
    out += removeAddress(word) + char;
    word = '';
  }
  return out + removeAddress(word);
}

/**
 * Reduces the address in a word to `@`. The address ends with its domain: in `joe@example.net...user`,
 * `joe@example.net/user` and `joe@example.net|user` the rest is text of the server.
 */
function removeAddress(word: string): string {
  const at = word.lastIndexOf('@');
  if (at < 0) return word;
  const domain = /^(?:[\p{L}\p{M}\p{N}_-]+\.?)*/u.exec(word.slice(at + 1))?.[0] ?? '';
  return `@${word.slice(at + 1 + domain.length)}`;
}

function matchesEnhancedCode(enhanced: string | null, pattern: string): boolean {
  if (!enhanced) return false;
  const numbers = enhanced.split('.');
  return pattern.split('.').every((number, i) => number === 'x' || number === numbers[i]);
}

function isWithinDomain(host: string | null, domain: string): boolean {
  return host === domain || (host?.endsWith(`.${domain}`) ?? false);
}

function meaning(
  bounceClass: BounceClass,
  bounceType: BounceType,
  scope: BounceScope,
  suppress: SuppressWhen,
): Meaning {
  return { bounceClass, bounceType, scope, suppress };
}

/**
 * Finds the phrases that occur in a text, in one pass over the text. A phrase starts at the start of a word ("ip
 * blocked" does not occur in "recip blocked") and may end inside one; ` * ` in it matches up to `MAX_GAP` characters.
 * Time is linear in the length of the text, whatever its content.
 */
export interface PhraseIndex {
  /** The phrases that occur in `text`, which is in lower case with single spaces. */
  find(text: string): ReadonlySet<string>;
}

const MAX_GAP = 80;

/** Phrases are indexed by their first characters; a shorter phrase cannot be found. */
export const MIN_PHRASE_LENGTH = 2;

interface Phrase {
  whole: string;
  first: string;
  rest: readonly string[];
}

/** Indexes phrases in lower case with single spaces. Each begins with at least MIN_PHRASE_LENGTH characters. */
export function indexPhrases(phrases: Iterable<string>): PhraseIndex {
  const byPrefix = new Map<string, Phrase[]>();
  for (const whole of new Set(phrases)) {
    const [first = '', ...rest] = whole.split(' * ');
    const prefix = first.slice(0, MIN_PHRASE_LENGTH);
    const others = byPrefix.get(prefix);
    if (others) others.push({ whole, first, rest });
    else byPrefix.set(prefix, [{ whole, first, rest }]);
  }
  return { find: (text) => findIn(text, byPrefix) };
}

function findIn(text: string, byPrefix: ReadonlyMap<string, readonly Phrase[]>): ReadonlySet<string> {
  const found = new Set<string>();
  for (let at = 0; at < text.length; at++) {
    if (!isWordStart(text, at)) continue;
    for (const { whole, first, rest } of byPrefix.get(text.slice(at, at + MIN_PHRASE_LENGTH)) ?? []) {
      if (!found.has(whole) && text.startsWith(first, at) && matchesParts(text, at + first.length, rest))
        found.add(whole);
    }
  }
  return found;
}

/** Whether the parts follow one another, each at the start of a word and within the gap. */
function matchesParts(text: string, from: number, parts: readonly string[]): boolean {
  let end = from;
  for (const part of parts) {
    const window = text.slice(0, end + MAX_GAP + part.length);
    let at = window.indexOf(part, end);
    while (at >= 0 && !isWordStart(window, at)) at = window.indexOf(part, at + 1);
    if (at < 0) return false;
    end = at + part.length;
  }
  return true;
}

/** Whether the position is not between two letters or digits. */
function isWordStart(text: string, at: number): boolean {
  return !(isLetterOrDigit(text.charCodeAt(at)) && isLetterOrDigit(text.charCodeAt(at - 1)));
}

function isLetterOrDigit(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || (code >= 0x61 && code <= 0x7a);
}
