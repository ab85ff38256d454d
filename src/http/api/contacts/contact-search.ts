import * as z from 'zod';
import type { SearchPosition } from '../../../audience/search.ts';
import type { Refusal } from '../../../core/refusal.ts';
import { parseUntrustedJson } from '../../../core/untrusted-json.ts';
import { SEARCH_KEYS } from '../../../store/contacts/contacts.ts';
import { unknownKey } from '../paging.ts';

/** Page keys of contact searches: a position in the search index or in a scan. */
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
    'Any part of the email address, the name, the phone number or an identifier (`email_…`, `phone_…`, `userId`; at least 5 characters of these). Every word must match. Case and accents are ignored. Words of one or two characters match only the start of the address, the full name and the last name; so do all words for some time after an upgrade from a version without the search index. A page may be short or even empty and still have a `nextKey`.',
  );

/**
 * Encodes a position as a `nextKey`, which `readSearchPageKey` decodes. It names only where to continue in the caller's
 * account; the guard encrypts it like all page keys.
 */
export function searchPageKey(position: SearchPosition): string {
  const parts = 'before' in position ? [position.before] : [position.walk, position.key, position.seq];
  return Buffer.from(PREFIX + JSON.stringify(parts)).toString('base64url');
}

/** Null when there is no key or an empty one; a refusal when no search issued it. */
export function readSearchPageKey(key: string | undefined): SearchPosition | null | Refusal {
  if (key === undefined || key === '') return null;
  const text = Buffer.from(key, 'base64url').toString('utf8');
  const parts = text.startsWith(PREFIX) ? parseUntrustedJson(text.slice(PREFIX.length)) : null;
  const inIndex = indexPosition.safeParse(parts);
  if (inIndex.success) return { before: inIndex.data[0] };
  const inWalk = walkPosition.safeParse(parts);
  if (!inWalk.success) return unknownKey();
  const [walk, prefix, seq] = inWalk.data;
  return { walk, key: prefix, seq };
}
