import { isIP } from 'node:net';

/* SPF records as text (RFC 7208 §4.5, §4.6, §12): recognizes them and adds our include, without evaluation. */

const VERSION = 'v=spf1';
const ALL = /^[-~?+]?all$/i;
const REDIRECT = /^redirect=/i;

/** RFC 7208 §4.5: the version, then a space or the end. */
export function isSpf(text: string): boolean {
  return /^v=spf1(?: |$)/i.test(text);
}

/** A record intended as SPF: with spaces or quotes before the version, or another separator after it. */
export function looksLikeSpf(text: string): boolean {
  return /^[\s"']*v\s*=\s*spf1\b/i.test(text);
}

/** The record for a name without one. */
export function newSpf(include: string): string {
  return `${VERSION} include:${include} ~all`;
}

/**
 * One record with the terms of `records` and our include. The include is before the final `all`, because terms after
 * it are never evaluated (RFC 7208 §5.1), and before a `redirect`. The mechanisms of several records are combined; of
 * their `all` terms the least strict one is used, except `+all`, which allows everyone.
 */
export function mergedSpf(records: readonly string[], include: string): string {
  const terms = records.flatMap((record) => termsOf(record));
  if (terms.length === 0) return newSpf(include);
  const ours = `include:${include}`.toLowerCase();
  const kept = terms.filter((term) => !ALL.test(term) && term.toLowerCase().replace(/^\+/, '') !== ours);
  const mechanisms = [...new Set(kept.filter((term) => !isModifier(term)))];
  // Each modifier once (RFC 7208 §6).
  const modifiers = kept.filter(isModifier).filter(isFirstOfItsName);
  const all = terms.filter((term) => ALL.test(term)).map((term) => term.toLowerCase());
  // A redirect applies only without an `all` (RFC 7208 §6.1), and only once.
  const redirect = all.length === 0 ? modifiers.filter((term) => REDIRECT.test(term)).slice(0, 1) : [];
  const rest = modifiers.filter((term) => !REDIRECT.test(term));
  const end = all.length > 0 ? [leastStrict(all)] : redirect;
  return [VERSION, ...mechanisms, `include:${include}`, ...end, ...rest].join(' ');
}

/**
 * A term with common typing errors corrected (RFC 7208 §4.6.1, §5), null when it cannot be corrected. The result is
 * not validated.
 */
export function correctedTerm(term: string): string | null {
  const plain = term.replace(/^[\u2010-\u2015\u2212]/, '-').replace(/(?<!,),+$/, '');
  const [, sign = '', name = '', value = ''] = /^([-~?+]?)([a-z0-9_-]+)?[:=]?(.*)$/is.exec(plain) ?? [];
  const kind = name.toLowerCase();
  if (ipKind(plain) !== null) return `${ipKind(plain)}:${plain}`;
  if (/^(?:ip|ipv4|ipv6|ip4|ip6)$/.test(kind)) {
    const version = ipKind(value);
    return version === null ? null : `${sign}${version}:${value}`;
  }
  if (kind === 'all') return `${sign}all`;
  if (/^(?:include|exists)$/.test(kind)) return value === '' ? null : `${sign}${kind}:${value}`;
  return plain;
}

/** `include=name`: valid as an unknown modifier, which receivers ignore (RFC 7208 §6), but meant as a mechanism. */
export function isMistypedMechanism(term: string): boolean {
  return /^[-~?+]?(?:include|exists|a|mx|ptr|ip4|ip6)=/i.test(term);
}

function ipKind(text: string): 'ip4' | 'ip6' | null {
  const [address = ''] = text.split('/', 1);
  const version = isIP(address);
  return version === 0 ? null : version === 4 ? 'ip4' : 'ip6';
}

/** The record with our include first, so that no term matches before it (RFC 7208 §4.6.2). */
export function withIncludeFirst(record: string, include: string): string {
  const terms = termsOf(record).filter((term) => term !== `include:${include}`);
  return [VERSION, `include:${include}`, ...terms].join(' ');
}

/** The terms of several records, without duplicates; "include: name" counts as one term. */
export function termsOfAll(records: readonly string[]): string[] {
  const joined = records.map((record) =>
    record.replace(/(include|ip[46]|a|mx|redirect)([:=])\s+(?=\S)/gi, '$1$2'),
  );
  return [...new Set(joined.flatMap(termsOf))];
}

/** The names that a record includes or redirects to. */
export function includedNames(record: string): string[] {
  return termsOf(record).flatMap((term) => {
    const match = /^(?:[-~?+]?include:|redirect=)(.+)$/i.exec(term);
    return match?.[1] === undefined ? [] : [match[1].toLowerCase().replace(/\.$/, '')];
  });
}

/** Whether the record has `+all`. */
export function passesEveryone(record: string): boolean {
  return termsOf(record).some((term) => /^\+?all$/i.test(term));
}

function termsOf(record: string): string[] {
  return record
    .replace(/["']/g, '')
    .trim()
    .replace(/^v\s*=\s*spf1/i, '')
    .split(/[\s;]+/)
    .filter((term) => term !== '');
}

function isModifier(term: string): boolean {
  return /^[a-z][\w.-]*=/i.test(term);
}

function isFirstOfItsName(modifier: string, at: number, all: readonly string[]): boolean {
  const nameOf = (term: string) => term.slice(0, term.indexOf('=')).toLowerCase();
  return all.findIndex((other) => nameOf(other) === nameOf(modifier)) === at;
}

function leastStrict(all: string[]): string {
  return ['?all', '~all', '-all'].find((term) => all.includes(term)) ?? '~all';
}
