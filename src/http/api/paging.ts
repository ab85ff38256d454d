import { z } from 'zod';
import type { Page } from '../../store/page.ts';
import { pageKey } from '../page-key.ts';

/** The query of a list that is read page by page, and how a page's answer ends (contract §3). */
export const paging = {
  limit: z.coerce.number().int().min(1).max(200).default(50).describe('Rows in this page.'),
  lastKey: z.string().max(200).optional().describe('`nextKey` of the page before.'),
};

export const pageEndForm = {
  count: z.int().describe('Rows in this page.'),
  nextKey: z.string().optional().describe('While more follow.'),
};

/** `list` names the list to its page keys. */
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
