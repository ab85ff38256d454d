/**
 * The candidate that a mistyped word most likely stands for: the one with the fewest inserted, deleted, replaced or
 * transposed characters, ignoring case; null when none is similar. For words of at most MAX_LENGTH characters.
 */
export function closestWord(word: string, candidates: readonly string[]): string | null {
  const limit = Math.max(1, Math.floor(word.length / 3));
  let best: { candidate: string; edits: number } | null = null;
  for (const candidate of candidates) {
    if (Math.max(word.length, candidate.length) > MAX_LENGTH) continue;
    const edits = editDistance(word.toLowerCase(), candidate.toLowerCase(), { transpositions: true });
    if (edits <= limit && (best === null || edits < best.edits)) best = { candidate, edits };
  }
  return best?.candidate ?? null;
}

const MAX_LENGTH = 64;

/**
 * The number of characters to insert, delete or replace in `a` for `b`. `transpositions`: two exchanged neighbors count once
 * (optimal string alignment).
 */
export function editDistance(a: string, b: string, { transpositions }: { transpositions: boolean }): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1];
      const replaced = (last[column - 1] ?? 0) + (isSame ? 0 : 1);
      const edited = Math.min((last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, replaced);
      const isTransposed =
        transpositions &&
        row > 1 &&
        column > 1 &&
        a[row - 1] === b[column - 2] &&
        a[row - 2] === b[column - 1];
      current.push(isTransposed ? Math.min(edited, (beforeLast[column - 2] ?? 0) + 1) : edited);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? 0;
}
