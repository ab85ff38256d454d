import * as z from 'zod';
import { invalid, type Refusal } from '../../core/refusal.ts';
import type { Page } from '../../store/rows/page.ts';
import type { PageKind } from '../route.ts';

/** The most rows of a page; a larger `limit` is reduced to it, with a warning. */
export const MAX_ROWS = 200;

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
      .describe(
        `Maximum number of rows in this page. A larger number than ${MAX_ROWS} is treated as ${MAX_ROWS}, with a warning.`,
      ),
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

/** The success of a list: a page of `rows`, which are in the field `name`. `id`: of the schema. */
export function pageOf<Name extends string, Row extends z.ZodType>(
  name: Name,
  row: Row,
  example: object,
  { description = `A page of ${name}.`, id }: { description?: string; id?: string } = {},
) {
  // Sound: the type of an object with a computed key is that of any key.
  const shape = { [name]: z.array(row), ...pageEndFields } as Record<Name, z.ZodArray<Row>> &
    typeof pageEndFields;
  const data = z.object(shape);
  return {
    description,
    data: id === undefined ? data : data.meta({ id }),
    example: { [name]: [example], count: 1 },
  };
}

/** A list whose page keys have the number of the last row. */
export function pagesBySeq(list: string): PageKind<number> {
  return { list, parse: (text) => (/^\d{1,15}$/.test(text) ? Number(text) : null) };
}

/** A list whose page keys have the id of the last row, such as those that are ordered by time and id. */
export function pagesById(list: string): PageKind<string> {
  return { list, parse: (text) => text };
}

/** The refusal (`VALIDATION_ERROR` of `lastKey`) of a page key that is malformed or that another list issued. */
export function unknownKey(): Refusal {
  return invalid('lastKey', 'is not a nextKey of this list');
}

interface PageEnd {
  count: number;
  /** The position of the next page; the guard turns it into a key (`PageKeys`). */
  nextKey?: string | undefined;
}

/** The end of a page. `next`: where the next page continues; null: this is the last one. */
export function endOf(rows: readonly unknown[], next: number | string | null | undefined): PageEnd {
  return { count: rows.length, nextKey: next === null || next === undefined ? undefined : String(next) };
}

/** The end of a page of `pagesBySeq`. */
export function seqEnd({ rows, more }: Page<{ seq: number }>): PageEnd {
  return endOf(rows, more ? rows.at(-1)?.seq : null);
}

/** A page of a list that is short enough to be read as a whole. `idOf` returns a unique id of a row. */
export function pageOfAll<Row>(
  all: readonly Row[],
  limit: number,
  after: string | null,
  idOf: (row: Row) => string,
): { rows: Row[]; end: PageEnd } | Refusal {
  const before = after === null ? -1 : all.findIndex((row) => idOf(row) === after);
  if (after !== null && before === -1) return unknownKey();
  const rows = all.slice(before + 1, before + 1 + limit);
  const last = rows.at(-1);
  const hasMore = last !== undefined && before + 1 + rows.length < all.length;
  return { rows, end: endOf(rows, hasMore ? idOf(last) : null) };
}
