import { z } from 'zod';
import type { SearchPlace } from '../../audience/search.ts';
import { invalid, type Refusal } from '../../core/refusal.ts';
import { SEARCH_KEYS } from '../../store/contacts.ts';

/** Page keys of searches among people: like those of `page-key.ts`, of a place in three indexes. */
const PREFIX = 'search:';

const place = z.tuple([
  z
    .int()
    .min(0)
    .max(SEARCH_KEYS.length - 1),
  z.string().max(20),
  z.int().min(0),
]);

export const search = z
  .string()
  .max(320)
  .optional()
  .describe(
    'Beginning of the address, the full name or the last name; case and accents do not matter. A page may be short, even empty, and still have a `nextKey`.',
  );

export function searchKey({ walk, key, seq }: SearchPlace): string {
  return Buffer.from(PREFIX + JSON.stringify([walk, key, seq])).toString('base64url');
}

/** Null when there is no key (or an empty one), a refusal when it is none that a search gave. */
export function readSearchKey(key: string | undefined): SearchPlace | null | Refusal {
  if (key === undefined || key === '') return null;
  const text = Buffer.from(key, 'base64url').toString('utf8');
  const read = text.startsWith(PREFIX) ? place.safeParse(parseJson(text.slice(PREFIX.length))) : null;
  if (read?.success !== true) return invalid('lastKey', 'is not a nextKey that this list gave');
  const [walk, prefix, seq] = read.data;
  return { walk, key: prefix, seq };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not one of ours: said by the caller.
    return null;
  }
}
