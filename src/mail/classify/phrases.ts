/**
 * Finds which of many phrases a text holds, in one pass over the text. A phrase begins at the beginning of a
 * word ("ip blocked" is not in "recip blocked") and may end within one; ` * ` in it stands for up to
 * `WIDEST_GAP` characters. Work is linear in the text, whatever it holds.
 */
export interface PhraseIndex {
  /** Of the phrases, those that occur. `text` is lower case with single blanks. */
  find(text: string): ReadonlySet<string>;
}

const WIDEST_GAP = 80;

/** Phrases are looked up by their first characters; a shorter one cannot be found. */
export const SHORTEST_PHRASE = 2;

interface Phrase {
  whole: string;
  first: string;
  rest: readonly string[];
}

export function indexPhrases(phrases: Iterable<string>): PhraseIndex {
  const byStart = new Map<string, Phrase[]>();
  for (const whole of new Set(phrases)) {
    const [first = '', ...rest] = whole.split(' * ');
    const start = first.slice(0, SHORTEST_PHRASE);
    const others = byStart.get(start);
    if (others) others.push({ whole, first, rest });
    else byStart.set(start, [{ whole, first, rest }]);
  }
  return { find: (text) => findIn(text, byStart) };
}

function findIn(text: string, byStart: ReadonlyMap<string, readonly Phrase[]>): ReadonlySet<string> {
  const found = new Set<string>();
  for (let at = 0; at < text.length; at++) {
    if (!isWordStart(text, at)) continue;
    for (const { whole, first, rest } of byStart.get(text.slice(at, at + SHORTEST_PHRASE)) ?? []) {
      if (!found.has(whole) && text.startsWith(first, at) && follow(text, at + first.length, rest))
        found.add(whole);
    }
  }
  return found;
}

/** Whether the parts come one after the other, each at a word's beginning and within the gap. */
function follow(text: string, from: number, parts: readonly string[]): boolean {
  let end = from;
  for (const part of parts) {
    const window = text.slice(0, end + WIDEST_GAP + part.length);
    let at = window.indexOf(part, end);
    while (at >= 0 && !isWordStart(window, at)) at = window.indexOf(part, at + 1);
    if (at < 0) return false;
    end = at + part.length;
  }
  return true;
}

/** Not between two letters or digits. */
function isWordStart(text: string, at: number): boolean {
  return !(isLetterOrDigit(text.charCodeAt(at)) && isLetterOrDigit(text.charCodeAt(at - 1)));
}

function isLetterOrDigit(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || (code >= 0x61 && code <= 0x7a);
}
