import { ApiError, operate } from '../../api.ts';
import type { ParametersOf } from '../../operations.ts';
import { limitPause } from '../../parts/long-task.tsx';
import { nameOf } from './contact-list.tsx';

/** The rows of a page that a task reads: the maximum of the API. */
const PAGE_SIZE = 200;

/** A page of a search. */
export type ContactSearch = ParametersOf<'/web-setup/contacts'>;

/** A contact that is changed. */
export interface BulkContact {
  identifier: string;
  /** For the person. */
  name: string;
}

/** All contacts of a search, on every page. */
export interface WholeSearch {
  total: number;
  /** Those of the first page when they were counted: newer contacts are on no page after it. */
  first: BulkContact[];
  /** The second page; null: there is none. */
  nextPage: ContactSearch | null;
}

/** The part of a search that is read with one request. */
export interface SearchPart {
  contacts: BulkContact[];
  nextPage: ContactSearch | null;
}

/** Reads a page of a search. */
export async function readPart(
  search: ContactSearch,
  accountId: string,
  signal?: AbortSignal,
): Promise<SearchPart> {
  const page = await operate('get', '/web-setup/contacts', {
    account: accountId,
    parameters: search,
    ...(signal === undefined ? {} : { signal }),
  });
  return {
    contacts: page.contacts.map((each) => ({ identifier: each.contactIdentifier, name: nameOf(each) })),
    nextPage: page.nextKey === undefined ? null : { ...search, lastKey: page.nextKey },
  };
}

interface Counting {
  accountId: string;
  filters: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  /** Called with the number of contacts so far. */
  onCount: (count: number) => void;
}

/** Counts the contacts of a search by reading its pages; null: `signal` was aborted. */
export async function countSearch(counting: Counting): Promise<WholeSearch | null> {
  const { accountId, filters, signal, onCount } = counting;
  let found: WholeSearch | null = null;
  let page: ContactSearch | null = { ...filters, limit: PAGE_SIZE };
  while (page !== null) {
    try {
      const { contacts, nextPage }: SearchPart = await readPart(page, accountId, signal);
      found ??= { total: 0, first: contacts, nextPage };
      found.total += contacts.length;
      page = nextPage;
      onCount(found.total);
    } catch (error) {
      if (signal.aborted) return null;
      if (!(error instanceof ApiError) || error.status !== 429) throw error;
      await limitPause();
    }
    if (signal.aborted) return null;
  }
  return found;
}
