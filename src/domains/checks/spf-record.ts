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
  const modifiers = [...new Set(kept.filter(isModifier))];
  const all = terms.filter((term) => ALL.test(term)).map((term) => term.toLowerCase());
  // A redirect counts only where there is no `all` (RFC 7208 §6.1), and only once.
  const redirect = all.length === 0 ? modifiers.filter((term) => REDIRECT.test(term)).slice(0, 1) : [];
  const rest = modifiers.filter((term) => !REDIRECT.test(term));
  const end = all.length > 0 ? [mildest(all)] : redirect;
  return [VERSION, ...mechanisms, `include:${include}`, ...end, ...rest].join(' ');
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

function mildest(all: string[]): string {
  return ['?all', '~all', '-all'].find((term) => all.includes(term)) ?? '~all';
}
