import {
  type Candidate,
  type GlobalStatus,
  type KnownContact,
  SEARCH_KEYS,
  type SearchKey,
} from '../store/contacts.ts';
import type { SubscriptionRow } from '../store/subscriptions.ts';
import type { Tables } from '../store/tables.ts';
import { fold, fullName, searchKey } from './search-key.ts';

/**
 * Contacts whose address, full name or last name begins with a text. The three indexes are walked one after
 * the other; whoever was met in an earlier one is passed over. A page costs the same however deep it is, and
 * looks at a bounded number of contacts: where few of them fit, it is short, and the next one goes on.
 */
export interface SearchFilter {
  accountId: string;
  text: string;
  status?: GlobalStatus;
  /** Only members of this group, and of those only the active or the inactive. */
  groupSeq?: number;
  isActive?: boolean;
  /** Where the page before ended. */
  after: SearchPlace | null;
  limit: number;
}

/** A place in the walk: the last contact that was looked at. */
export interface SearchPlace {
  /** Index into SEARCH_KEYS. */
  walk: number;
  key: string;
  seq: number;
}

export interface Found {
  contact: KnownContact;
  /** When a group was asked for. */
  subscription: SubscriptionRow | null;
}

export interface SearchPage {
  rows: Found[];
  /** Null: that was all. */
  next: SearchPlace | null;
}

/** Contacts that one page looks at, at most. */
const LOOKS = 500;

export function searchContacts(tables: Tables, filter: SearchFilter): SearchPage {
  const text = fold(filter.text);
  const prefix = searchKey(text);
  const rows: Found[] = [];
  if (prefix === null) return { rows, next: null };
  let looks = 0;
  let last: SearchPlace | null = null;
  for (const [walk, key] of SEARCH_KEYS.entries()) {
    if (filter.after !== null && walk < filter.after.walk) continue;
    const after = filter.after?.walk === walk ? filter.after : null;
    for (const candidate of tables.contacts.walk(key, filter.accountId, prefix, after)) {
      if (looks++ === LOOKS) return { rows, next: last };
      const found = fits(tables, filter, candidate, walk, text);
      if (found !== null && rows.length === filter.limit) return { rows, next: last };
      if (found !== null) rows.push(found);
      if (found !== null || rows.length < filter.limit)
        last = { walk, key: candidate[key] ?? '', seq: candidate.seq };
    }
  }
  return { rows, next: null };
}

/** Null when it does not, or was met in an earlier walk. The dearest questions come last. */
function fits(
  tables: Tables,
  filter: SearchFilter,
  candidate: Candidate,
  walk: number,
  text: string,
): Found | null {
  if (filter.status !== undefined && candidate.global_status !== filter.status) return null;
  const begins = (key: SearchKey) => fold(textOf(candidate, key)).startsWith(text);
  const [own, ...earlier] = SEARCH_KEYS.slice(0, walk + 1).toReversed();
  if (own === undefined || !begins(own) || earlier.some(begins)) return null;
  const subscription =
    filter.groupSeq === undefined ? null : tables.subscriptions.get(filter.groupSeq, candidate.seq);
  if (filter.groupSeq !== undefined && subscription === null) return null;
  if (filter.isActive !== undefined && (subscription?.is_active === 1) !== filter.isActive) return null;
  const contact = tables.contacts.bySeq(candidate.seq);
  return contact === null ? null : { contact, subscription };
}

function textOf(candidate: Candidate, key: SearchKey): string {
  if (key === 'email_key') return candidate.email ?? '';
  return key === 'name_key'
    ? fullName(candidate.first_name, candidate.last_name)
    : (candidate.last_name ?? '');
}
