/**
 * The rows that were read, without the new ones in front of those that were shown. Rows at the end of those remain as they
 * were if new ones pushed them out of the part that was read.
 */
export function mergedRows<Row>(
  shown: readonly Row[],
  read: readonly Row[],
  keyOf: (row: Row) => string | number,
): readonly Row[] {
  const present = new Set(read.map(keyOf));
  const known = new Set(shown.map(keyOf));
  const firstKnown = read.findIndex((row) => known.has(keyOf(row)));
  const added = firstKnown === -1 ? read.length : firstKnown;
  const lastPresent = shown.findLastIndex((row) => present.has(keyOf(row)));
  return [...read.slice(added), ...shown.slice(lastPresent + 1).slice(0, added)];
}
