import { expect, it } from 'vitest';
import { mergedRows } from '../../../src/console/parts/merged-rows.ts';

/** The rows that are shown, by their first letter; the second one is their state. */
const merged = (shown: string, read: string) =>
  mergedRows(words(shown), words(read), (row) => row.charAt(0)).join(' ');

function words(text: string): string[] {
  return text.split(' ').filter(Boolean);
}

it.each([
  ['remain while there are no others', 'c b a', 'c b a', 'c b a'],
  ['have their newest state', 'c1 b1 a1', 'c2 b1 a2', 'c2 b1 a2'],
  ['do not move when new ones arrive', 'c b a', 'e d c b a', 'c b a'],
  ['remain when new ones push them out of what was read', 'c b a', 'e d c', 'c b a'],
  ['remain when all that was read is new', 'c b a', 'f e d', 'c b a'],
  ['are removed when they are no longer in the list', 'c b a', 'c a', 'c a'],
  ['are removed at the end, too', 'c b a', 'c b', 'c b'],
  ['are removed when the list is empty', 'c b a', '', ''],
  ['are continued by older ones', 'c b', 'd c b a', 'c b a'],
])('the rows of a live list %s', (_, shown, read, expected) => {
  expect(merged(shown, read)).toBe(expected);
});
