import * as z from 'zod';
import type { SearchPosition } from '../../../audience/search.ts';
import { parseUntrustedJson } from '../../../core/untrusted-json.ts';
import { SEARCH_KEYS } from '../../../store/contacts/contacts.ts';
import type { PageKind } from '../../route.ts';
import { pagesBySeq } from '../paging.ts';

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

/** A list of contacts: its page keys have the number of the last row, or a position in the search index or in a scan. */
export function searchablePages(list: string): PageKind<number | SearchPosition> {
  const { parse } = pagesBySeq(list);
  return { list, parse: (text) => parse(text) ?? parsePosition(text) };
}

/** The text of a position, which names only where to continue in the caller's account. */
export function positionText(position: SearchPosition | null): string | null {
  if (position === null) return null;
  return JSON.stringify(
    'before' in position ? [position.before] : [position.walk, position.key, position.seq],
  );
}

function parsePosition(text: string): SearchPosition | null {
  const parts = parseUntrustedJson(text);
  const inIndex = indexPosition.safeParse(parts);
  if (inIndex.success) return { before: inIndex.data[0] };
  const inWalk = walkPosition.safeParse(parts);
  if (!inWalk.success) return null;
  const [walk, key, seq] = inWalk.data;
  return { walk, key, seq };
}
