import { isIP } from 'node:net';

/**
 * SPF records as text (RFC 7208 §4.5, §4.6, §12): recognising them, and writing our include into one that is
 * there already. Evaluates nothing.
 */
const VERSION = 'v=spf1';
const ALL = /^[-~?+]?all$/i;
const REDIRECT = /^redirect=/i;

/** RFC 7208 §4.5: the version, then a blank or the end. */
export function isSpf(text: string): boolean {
  return /^v=spf1(?: |$)/i.test(text);
}

/** What someone meant to be one: blanks or quotes before the version, another separator after it. */
export function looksLikeSpf(text: string): boolean {
  return /^[\s"']*v\s*=\s*spf1\b/i.test(text);
}

/** The record for a name without one. */
export function ownSpf(include: string): string {
  return `${VERSION} include:${include} ~all`;
}

/**
 * One record that says what `records` say and includes us: the include stands before the final `all`, because
 * whatever follows that is never looked at (RFC 7208 §5.1), and before a `redirect`. Of several records the
 * mechanisms are put together; of their `all`s the mildest stays, `+all` excepted, which lets anybody pass.
 */
export function mergedSpf(records: readonly string[], include: string): string {
  const terms = records.flatMap((record) => termsOf(record));
  if (terms.length === 0) return ownSpf(include);
  const ours = `include:${include}`.toLowerCase();
  const kept = terms.filter((term) => !ALL.test(term) && term.toLowerCase().replace(/^\+/, '') !== ours);
  const mechanisms = [...new Set(kept.filter((term) => !isModifier(term)))];
  // Each modifier once (RFC 7208 §6).
  const modifiers = kept.filter(isModifier).filter(isFirstOfItsName);
  const all = terms.filter((term) => ALL.test(term)).map((term) => term.toLowerCase());
  // A redirect counts only where there is no `all` (RFC 7208 §6.1), and only once.
  const redirect = all.length === 0 ? modifiers.filter((term) => REDIRECT.test(term)).slice(0, 1) : [];
  const rest = modifiers.filter((term) => !REDIRECT.test(term));
  const end = all.length > 0 ? [mildest(all)] : redirect;
  return [VERSION, ...mechanisms, `include:${include}`, ...end, ...rest].join(' ');
}

/**
 * A term with its usual typing errors corrected (RFC 7208 §4.6.1, §5), null when nothing sensible is left of it.
 * Whether the result is valid is not checked.
 */
export function correctedTerm(term: string): string | null {
  const plain = term.replace(/^[\u2010-\u2015\u2212]/, '-').replace(/,+$/, '');
  const [, sign = '', name = '', value = ''] = /^([-~?+]?)([a-z0-9_-]+)?[:=]?(.*)$/i.exec(plain) ?? [];
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

/** `include=name`: valid as an unknown modifier, so receivers ignore it (RFC 7208 §6), but meant as a mechanism. */
export function isMistypedMechanism(term: string): boolean {
  return /^[-~?+]?(?:include|exists|a|mx|ptr|ip4|ip6)=/i.test(term);
}

function ipKind(text: string): 'ip4' | 'ip6' | null {
  const [address = ''] = text.split('/', 1);
  const version = isIP(address);
  return version === 0 ? null : version === 4 ? 'ip4' : 'ip6';
}

/** The record with our include first: no term can decide before it (RFC 7208 §4.6.2). */
export function withIncludeFirst(record: string, include: string): string {
  const terms = termsOf(record).filter((term) => term !== `include:${include}`);
  return [VERSION, `include:${include}`, ...terms].join(' ');
}

/** The terms of several records, without duplicates; "include: name" was meant to be one term. */
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

/** Whether the record lets everybody pass. */
export function passesEverybody(record: string): boolean {
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

function mildest(all: string[]): string {
  return ['?all', '~all', '-all'].find((term) => all.includes(term)) ?? '~all';
}
