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
