import { z } from 'zod';
import { invalid, type Refusal } from '../../core/refusal.ts';
import type { Page } from '../../store/rows/page.ts';
import { pageKey } from '../page-key.ts';

const MAX_ROWS = 200;

/** Query parameters of paginated lists. */
export const paging = pagingBy(50);

/** The same for lists that clients usually read in one request. */
export const pagingWide = pagingBy(MAX_ROWS);

function pagingBy(rows: number) {
  return {
    limit: z.coerce.number().int().min(1).max(MAX_ROWS).default(rows).describe('Rows in this page.'),
    lastKey: z.string().max(200).optional().describe('`nextKey` of the previous page.'),
  };
}

export const pageEndForm = {
  count: z.int().describe('Rows in this page.'),
  nextKey: z.string().optional().describe('Present while more rows follow.'),
};

/** For lists whose pages read a limited number of rows. */
export const SHORT_PAGES =
  'A page reads a limited number of rows: with filters it may be short, even empty, and still have a `nextKey`. The list ends at a page without one.';

/** The end of a page's response. `list`: prefix of its page keys. */
export function pageEnd(
  list: string,
  { rows, more }: Page<{ seq: number }>,
): { count: number; nextKey?: string } {
  const last = rows.at(-1);
  return {
    count: rows.length,
    ...(more && last !== undefined ? { nextKey: pageKey(list, last.seq) } : {}),
  };
}

/** A page of a list that is short enough to be read as a whole. `idOf`: a unique id of a row. */
export function pageOfAll<Row>(
  list: string,
  all: readonly Row[],
  { limit, lastKey }: { limit: number; lastKey?: string | undefined },
  idOf: (row: Row) => string,
): { rows: Row[]; end: { count: number; nextKey?: string } } | Refusal {
  const keyOf = (row: Row) => Buffer.from(`${list}:${idOf(row)}`).toString('base64url');
  const isFirst = lastKey === undefined || lastKey === '';
  const before = isFirst ? -1 : all.findIndex((row) => keyOf(row) === lastKey);
  if (!isFirst && before === -1) return invalid('lastKey', 'is not a nextKey of this list');
  const rows = all.slice(before + 1, before + 1 + limit);
  const last = rows.at(-1);
  const hasMore = last !== undefined && before + 1 + rows.length < all.length;
  return { rows, end: { count: rows.length, ...(hasMore ? { nextKey: keyOf(last) } : {}) } };
}
