import * as z from 'zod';
import { invalid, type Refusal } from '../../core/refusal.ts';
import type { Page } from '../../store/rows/page.ts';

const MAX_ROWS = 200;

/** The query parameters of a list that is read page by page. */
export const paging = pagingBy(50);

/** A filter of lists of resources with names. */
export const nameSearch = z.string().max(200).default('').describe('Part of the name, in any ASCII case.');

/** Paging of lists that clients usually read in one request. */
export const pagingWide = pagingBy(MAX_ROWS);

function pagingBy(rows: number) {
  return {
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .max(MAX_ROWS)
      .default(rows)
      .describe('Maximum number of rows in this page.'),
    lastKey: z.string().max(200).optional().describe('`nextKey` of the previous page.'),
  };
}

/** The end of a page in the response. */
export const pageEndFields = {
  count: z.int().meta({ id: 'PageCount', description: 'Number of rows in this page.' }),
  nextKey: z
    .string()
    .meta({ id: 'NextKey', description: 'Key of the next page; absent on the last one.' })
    .optional(),
};

/** For lists whose pages scan a limited number of rows. */
export const SHORT_PAGES =
  'A page scans a limited number of rows: with filters it may be short or even empty and still have a `nextKey`. The list ends with the page that has none.';

/** A page key: a row number, bound to the list that issued it. The guard encrypts it for the caller (page-keys.ts). */
export function pageKey(list: string, seq: number): string {
  return Buffer.from(`${list}:${seq}`).toString('base64url');
}

/** The row number; null when there is no key or an empty one; a refusal when another list issued it. */
export function readPageKey(list: string, key: string | undefined): number | null | Refusal {
  if (key === undefined || key === '') return null;
  const match = /^([a-z-]+):(\d{1,15})$/.exec(Buffer.from(key, 'base64url').toString('latin1'));
  return match?.[1] === list ? Number(match[2]) : unknownKey();
}

/** The refusal (`VALIDATION_ERROR` of `lastKey`) of a page key that is malformed or that another list issued. */
export function unknownKey(): Refusal {
  return invalid('lastKey', 'is not a nextKey of this list');
}

/** `list` names the list in its page keys. */
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

/** A page key that names the last row by its id, for lists that are ordered by time and id. */
export function idPageKey(list: string, id: string): string {
  return Buffer.from(`${list}:${id}`).toString('base64url');
}

/** The end of a page with such keys. `idOf` returns the id of a row. */
export function idPageEnd<Row>(
  list: string,
  { rows, more }: Page<Row>,
  idOf: (row: Row) => string,
): { count: number; nextKey?: string } {
  const last = rows.at(-1);
  return {
    count: rows.length,
    ...(more && last !== undefined ? { nextKey: idPageKey(list, idOf(last)) } : {}),
  };
}

/** The id; null when there is no key or an empty one; a refusal when another list issued it. */
export function readIdPageKey(list: string, key: string | undefined): string | null | Refusal {
  if (key === undefined || key === '') return null;
  const text = Buffer.from(key, 'base64url').toString();
  return text.startsWith(`${list}:`) ? text.slice(list.length + 1) : unknownKey();
}

/** A page of a list that is short enough to be read as a whole. `idOf` returns a unique id of a row. */
export function pageOfAll<Row>(
  list: string,
  all: readonly Row[],
  { limit, lastKey }: { limit: number; lastKey?: string | undefined },
  idOf: (row: Row) => string,
): { rows: Row[]; end: { count: number; nextKey?: string } } | Refusal {
  const keyOf = (row: Row) => Buffer.from(`${list}:${idOf(row)}`).toString('base64url');
  const isFirst = lastKey === undefined || lastKey === '';
  const before = isFirst ? -1 : all.findIndex((row) => keyOf(row) === lastKey);
  if (!isFirst && before === -1) return unknownKey();
  const rows = all.slice(before + 1, before + 1 + limit);
  const last = rows.at(-1);
  const hasMore = last !== undefined && before + 1 + rows.length < all.length;
  return { rows, end: { count: rows.length, ...(hasMore ? { nextKey: keyOf(last) } : {}) } };
}
