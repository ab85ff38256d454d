import { ApiError, callApi, withQuery } from '../../api.ts';
import { limitPause } from '../../parts/long-task.tsx';
import { type ListedContact, nameOf } from './contact-list.tsx';

/** The rows of a page that a task reads: the maximum of the API. */
const PAGE_SIZE = '200';

interface ContactPage {
  contacts: ListedContact[];
  nextKey?: string;
}

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
  /** The path of the second page; null: there is none. */
  next: string | null;
}

/** The part of a search that is read with one request. */
export interface SearchPart {
  contacts: BulkContact[];
  next: string | null;
}

/** Reads the page of a search at `path`. */
export async function readPart(path: string, accountId: string, signal?: AbortSignal): Promise<SearchPart> {
  const page = await callApi<ContactPage>(path, {
    account: accountId,
    ...(signal === undefined ? {} : { signal }),
  });
  const [address = '', query = ''] = path.split('?');
  const parameters = Object.fromEntries(new URLSearchParams(query));
  return {
    contacts: page.contacts.map((each) => ({ identifier: each.contactIdentifier, name: nameOf(each) })),
    next: page.nextKey === undefined ? null : withQuery(address, { ...parameters, lastKey: page.nextKey }),
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
  const found: WholeSearch = { total: 0, first: [], next: null };
  let path: string | null = withQuery('/web-setup/contacts', { ...filters, limit: PAGE_SIZE });
  for (let isFirst = true; path !== null; ) {
    const part: SearchPart | ApiError = await readPart(path, accountId, signal).catch((error: unknown) => {
      if (error instanceof ApiError) return error;
      if (signal.aborted) return new ApiError(0, {});
      throw error;
    });
    if (signal.aborted) return null;
    if (part instanceof ApiError) {
      if (part.status !== 429) throw part;
      await limitPause();
    } else {
      found.total += part.contacts.length;
      if (isFirst) Object.assign(found, { first: part.contacts, next: part.next });
      isFirst = false;
      onCount(found.total);
      path = part.next;
    }
  }
  return found;
}
