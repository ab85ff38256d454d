import { identifierDigits, MIN_IDENTIFIER, MIN_INDEXED } from '../store/contacts/contact-search.ts';
import {
  type Candidate,
  type GlobalStatus,
  type IndexCandidate,
  type KnownContact,
  SEARCH_KEYS,
  type SearchKey,
} from '../store/contacts/contacts.ts';
import type { SubscriptionRow } from '../store/contacts/subscriptions.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';
import { fold, fullName, searchKey } from './search-key.ts';

/**
 * Contacts with a text in their address, name, number or identifiers. Every word of the text must be found, each
 * anywhere. The index gives the candidates, newest first. Where it cannot (all words are shorter than MIN_INDEXED, or
 * the account's contacts are still being added to it), contacts are found whose address, full name or last name begins
 * with the text: three indexes are walked one after the other, and whoever was met in an earlier one is passed over.
 * Either way a page costs the same however deep it is, and looks at a bounded number of contacts: where few of them
 * fit, it is short, and the next one goes on.
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

/** The last contact that was looked at: by its seq in the index, or as a place in a walk. */
export type SearchPlace = { before: number } | WalkPlace;

export interface WalkPlace {
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

/** The search as reader threads run it. */
export const contactSearch = readQuery('contactSearch', searchContacts);

function searchContacts(tables: Tables, filter: SearchFilter): SearchPage {
  const { after, accountId } = filter;
  if (after !== null && 'walk' in after) return searchBeginnings(tables, filter, after);
  const terms = termsOf(filter.text);
  if (terms !== null && (after !== null || !tables.contacts.isIndexing(accountId)))
    return searchInside(tables, filter, terms, after?.before ?? Number.MAX_SAFE_INTEGER);
  return searchBeginnings(tables, filter, null);
}

/** What a text asks for. */
interface Terms {
  words: string[];
  /** The digits of a phone number that the whole text may be part of; null: of none. */
  phone: string | null;
}

const PHONE_PART = /^[+(\d][\d ()./-]*$/;
const IDENTIFIER_PART = /^(?:email_|phone_)?([\da-f-]+)$/;

/** Null when no word is long enough for the index. */
function termsOf(text: string): Terms | null {
  const folded = fold(text);
  const words = folded.split(' ');
  // National forms begin with a zero that the international number does not have.
  const digits = PHONE_PART.test(folded) ? folded.replaceAll(/\D/g, '').replace(/^0+/, '') : '';
  const phone = digits.length >= MIN_INDEXED ? digits : null;
  return phone !== null || words.some(isIndexable) ? { words, phone } : null;
}

function isIndexable(word: string): boolean {
  return Array.from(word).length >= MIN_INDEXED;
}

/** The hexadecimal digits of an identifier that the word may be part of. */
function identifierPart(word: string): string | null {
  const digits = IDENTIFIER_PART.exec(word)?.[1]?.replaceAll('-', '') ?? '';
  return digits.length >= MIN_IDENTIFIER ? digits : null;
}

function searchInside(tables: Tables, filter: SearchFilter, terms: Terms, before: number): SearchPage {
  const words = terms.words.filter(isIndexable).map((text) => ({ text, identifier: identifierPart(text) }));
  const anyOf = words.length === 0 ? [] : [words];
  if (terms.phone !== null) anyOf.push([{ text: terms.phone, identifier: null }]);
  const { seqs, next } = tables.contacts.find({
    accountId: filter.accountId,
    anyOf,
    before,
    limit: LOOKS,
  });
  const rows: Found[] = [];
  for (const [at, seq] of seqs.entries()) {
    const found = fitsInside(tables, filter, terms, seq);
    if (found !== null) rows.push(found);
    const isLast = at === seqs.length - 1 && next === null;
    if (rows.length === filter.limit && !isLast) return { rows, next: { before: seq } };
  }
  return { rows, next: next === null ? null : { before: next } };
}

function fitsInside(tables: Tables, filter: SearchFilter, terms: Terms, seq: number): Found | null {
  const candidate = tables.contacts.candidate(seq);
  if (candidate === null || candidate.account_id !== filter.accountId) return null;
  if (filter.status !== undefined && candidate.global_status !== filter.status) return null;
  return hasTerms(candidate, terms) ? found(tables, filter, seq) : null;
}

function hasTerms(candidate: IndexCandidate, { words, phone }: Terms): boolean {
  if (phone !== null && candidate.phone?.includes(phone) === true) return true;
  const text = candidate.search_text ?? '';
  const identifiers = identifierDigits(candidate);
  return words.every((word) => {
    if (text.includes(word)) return true;
    const part = identifierPart(word);
    return part !== null && identifiers.some((identifier) => identifier.includes(part));
  });
}

/** Null when the contact is not in the group that was asked for. */
function found(tables: Tables, filter: SearchFilter, seq: number): Found | null {
  const subscription = filter.groupSeq === undefined ? null : tables.subscriptions.get(filter.groupSeq, seq);
  if (filter.groupSeq !== undefined && subscription === null) return null;
  if (filter.isActive !== undefined && (subscription?.is_active === 1) !== filter.isActive) return null;
  const contact = tables.contacts.bySeq(seq);
  return contact === null ? null : { contact, subscription };
}

function searchBeginnings(tables: Tables, filter: SearchFilter, from: WalkPlace | null): SearchPage {
  const text = fold(filter.text);
  const prefix = searchKey(text);
  const rows: Found[] = [];
  if (prefix === null) return { rows, next: null };
  let looks = 0;
  let last: SearchPlace | null = null;
  for (const [walk, key] of SEARCH_KEYS.entries()) {
    if (from !== null && walk < from.walk) continue;
    const after = from?.walk === walk ? from : null;
    for (const candidate of tables.contacts.walk(key, filter.accountId, prefix, after)) {
      if (looks++ === LOOKS) return { rows, next: last };
      const fitting = fits(tables, filter, candidate, walk, text);
      if (fitting !== null && rows.length === filter.limit) return { rows, next: last };
      if (fitting !== null) rows.push(fitting);
      if (fitting !== null || rows.length < filter.limit)
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
  return found(tables, filter, candidate.seq);
}

function textOf(candidate: Candidate, key: SearchKey): string {
  if (key === 'email_key') return candidate.email ?? '';
  return key === 'name_key'
    ? fullName(candidate.first_name, candidate.last_name)
    : (candidate.last_name ?? '');
}
