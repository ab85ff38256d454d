import { z } from 'zod';
import type { SearchPlace } from '../../audience/search.ts';
import { invalid, type Refusal } from '../../core/refusal.ts';
import { SEARCH_KEYS } from '../../store/contacts/contacts.ts';

/** Page keys of searches among people: like those of `page-key.ts`, of a place in the index or in a walk. */
const PREFIX = 'search:';

const indexPlace = z.tuple([z.int().min(0)]);
const walkPlace = z.tuple([
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
    'Any part of the address, the name, the phone number or an identifier (`email_…`, `phone_…`, `userId`; of these at least 5 characters). Of several words each must be found. Case and accents do not matter. Words of one or two characters alone find beginnings of the address, the full name and the last name; so do all searches for a while after an upgrade from a version without this index. A page may be short, even empty, and still have a `nextKey`.',
  );

export function searchKey(place: SearchPlace): string {
  const parts = 'before' in place ? [place.before] : [place.walk, place.key, place.seq];
  return Buffer.from(PREFIX + JSON.stringify(parts)).toString('base64url');
}

/** Null when there is no key (or an empty one), a refusal when it is none that a search gave. */
export function readSearchKey(key: string | undefined): SearchPlace | null | Refusal {
  if (key === undefined || key === '') return null;
  const text = Buffer.from(key, 'base64url').toString('utf8');
  const parts = text.startsWith(PREFIX) ? parseJson(text.slice(PREFIX.length)) : null;
  const inIndex = indexPlace.safeParse(parts);
  if (inIndex.success) return { before: inIndex.data[0] };
  const inWalk = walkPlace.safeParse(parts);
  if (!inWalk.success) return invalid('lastKey', 'is not a nextKey that this list gave');
  const [walk, prefix, seq] = inWalk.data;
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
