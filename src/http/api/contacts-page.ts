import { z } from 'zod';
import type { SearchPosition } from '../../audience/search.ts';
import { invalid, type Refusal } from '../../core/refusal.ts';
import { SEARCH_KEYS } from '../../store/contacts/contacts.ts';

/** Page keys of contact searches: like those of `page-key.ts`, for a position in the trigram or the prefix indexes. */
const PREFIX = 'search:';

const indexPosition = z.tuple([z.int().min(0)]);
const walkPosition = z.tuple([
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
    'Any part of the address, the name, the phone number or an identifier (`email_…`, `phone_…`, `userId`; at least 5 characters of these). All words must match. Case and accents are ignored. A text with only words of one or two characters matches the beginning of the address, the full name and the last name; so do all searches for a while after an upgrade from a version without this index. A page may be short, even empty, and still have a `nextKey`.',
  );

export function searchKey(position: SearchPosition): string {
  const parts = 'before' in position ? [position.before] : [position.walk, position.key, position.seq];
  return Buffer.from(PREFIX + JSON.stringify(parts)).toString('base64url');
}

/** Null without a key (or with an empty one), a refusal when it is not a key of a search. */
export function readSearchKey(key: string | undefined): SearchPosition | null | Refusal {
  if (key === undefined || key === '') return null;
  const text = Buffer.from(key, 'base64url').toString('utf8');
  const parts = text.startsWith(PREFIX) ? parseJson(text.slice(PREFIX.length)) : null;
  const inIndex = indexPosition.safeParse(parts);
  if (inIndex.success) return { before: inIndex.data[0] };
  const inWalk = walkPosition.safeParse(parts);
  if (!inWalk.success) return invalid('lastKey', 'is not a nextKey of this list');
  const [walk, prefix, seq] = inWalk.data;
  return { walk, key: prefix, seq };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not a key of a search; the caller refuses it.
    return null;
  }
}
