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
  let found: WholeSearch | null = null;
  let path: string | null = withQuery('/web-setup/contacts', { ...filters, limit: PAGE_SIZE });
  while (path !== null) {
    try {
      const { contacts, next }: SearchPart = await readPart(path, accountId, signal);
      found ??= { total: 0, first: contacts, next };
      found.total += contacts.length;
      path = next;
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
