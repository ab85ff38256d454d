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

/*
 * Searches contacts by address, name, number or identifiers. Every word of the text must occur, in any of them. The
 * trigram index returns the candidates, newest first. When all words are shorter than MIN_INDEXED, the text must be a prefix of the address, the full name or the last
 * name: three indexes are read one after the other, and contacts of an earlier one are skipped. The cost of a page does
 * not depend on its depth, and it reads a bounded number of contacts: with few matches a page is short, and the next one
 * continues.
 */

export interface SearchFilter {
  accountId: string;
  text: string;
  status?: GlobalStatus;
  /** Only members of this group; with `isActive` only the active or the inactive ones. */
  groupSeq?: number;
  isActive?: boolean;
  /** Position at which the previous page ended. */
  after: SearchPosition | null;
  limit: number;
}

/** The last contact that was read: by its seq in the trigram index, or as a position in the prefix indexes. */
export type SearchPosition = { before: number } | WalkPosition;

export interface WalkPosition {
  /** Index into SEARCH_KEYS. */
  walk: number;
  key: string;
  seq: number;
}

export interface FoundContact {
  contact: KnownContact;
  /** Membership in the group of the filter; null without such a filter. */
  subscription: SubscriptionRow | null;
}

export interface SearchPage {
  rows: FoundContact[];
  /** Null: there are no more. */
  next: SearchPosition | null;
}

/** Maximum number of contacts that one page reads. */
const MAX_EXAMINED = 500;

/** The search as reader threads run it. */
export const contactSearch = readQuery('contactSearch', searchContacts);

function searchContacts(tables: Tables, filter: SearchFilter): SearchPage {
  const { after } = filter;
  if (after !== null && 'walk' in after) return searchPrefixes(tables, filter, after);
  const terms = termsOf(filter.text);
  if (terms === null) return searchPrefixes(tables, filter, null);
  return searchIndex(tables, filter, terms, after?.before ?? Number.MAX_SAFE_INTEGER);
}

/** A parsed search text. */
interface Terms {
  words: string[];
  /** Digits, when the whole text may be part of a phone number; else null. */
  phone: string | null;
}

const PHONE_PART = /^[+(\d][\d ()./-]*$/;
const IDENTIFIER_PART = /^(?:email_|phone_)?([\da-f-]+)$/;

/** Returns null if no word is long enough for the index. */
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

function searchIndex(tables: Tables, filter: SearchFilter, terms: Terms, before: number): SearchPage {
  const words = terms.words.filter(isIndexable).map((text) => ({ text, identifier: identifierPart(text) }));
  const anyOf = words.length === 0 ? [] : [words];
  if (terms.phone !== null) anyOf.push([{ text: terms.phone, identifier: null }]);
  const { seqs, next } = tables.contacts.find({
    accountId: filter.accountId,
    anyOf,
    before,
    limit: MAX_EXAMINED,
  });
  const rows: FoundContact[] = [];
  for (const [at, seq] of seqs.entries()) {
    const found = matchIndexed(tables, filter, terms, seq);
    if (found !== null) rows.push(found);
    const isLast = at === seqs.length - 1 && next === null;
    if (rows.length === filter.limit && !isLast) return { rows, next: { before: seq } };
  }
  return { rows, next: next === null ? null : { before: next } };
}

function matchIndexed(tables: Tables, filter: SearchFilter, terms: Terms, seq: number): FoundContact | null {
  const candidate = tables.contacts.candidate(seq);
  if (candidate === null || candidate.account_id !== filter.accountId) return null;
  if (filter.status !== undefined && candidate.global_status !== filter.status) return null;
  return hasTerms(candidate, terms) ? withSubscription(tables, filter, seq) : null;
}

function hasTerms(candidate: IndexCandidate, { words, phone }: Terms): boolean {
  if (phone !== null && candidate.phone?.includes(phone) === true) return true;
  const text = candidate.search_text;
  const identifiers = identifierDigits(candidate);
  return words.every((word) => {
    if (text.includes(word)) return true;
    const part = identifierPart(word);
    return part !== null && identifiers.some((identifier) => identifier.includes(part));
  });
}

/** Returns null if the contact does not match the group filter. */
function withSubscription(tables: Tables, filter: SearchFilter, seq: number): FoundContact | null {
  const subscription = filter.groupSeq === undefined ? null : tables.subscriptions.get(filter.groupSeq, seq);
  if (filter.groupSeq !== undefined && subscription === null) return null;
  if (filter.isActive !== undefined && (subscription?.is_active === 1) !== filter.isActive) return null;
  const contact = tables.contacts.bySeq(seq);
  return contact === null ? null : { contact, subscription };
}

function searchPrefixes(tables: Tables, filter: SearchFilter, from: WalkPosition | null): SearchPage {
  const text = fold(filter.text);
  const prefix = searchKey(text);
  const rows: FoundContact[] = [];
  if (prefix === null) return { rows, next: null };
  let examined = 0;
  let last: SearchPosition | null = null;
  for (const [walk, key] of SEARCH_KEYS.entries()) {
    if (from !== null && walk < from.walk) continue;
    const after = from?.walk === walk ? from : null;
    for (const candidate of tables.contacts.walk(key, filter.accountId, prefix, after)) {
      if (examined++ === MAX_EXAMINED) return { rows, next: last };
      const match = matchPrefix(tables, filter, candidate, walk, text);
      if (match !== null && rows.length === filter.limit) return { rows, next: last };
      if (match !== null) rows.push(match);
      if (match !== null || rows.length < filter.limit)
        last = { walk, key: candidate[key] ?? '', seq: candidate.seq };
    }
  }
  return { rows, next: null };
}

/**
 * Returns null if the contact does not match or was found by an earlier index. The most expensive checks come last.
 */
function matchPrefix(
  tables: Tables,
  filter: SearchFilter,
  candidate: Candidate,
  walk: number,
  text: string,
): FoundContact | null {
  if (filter.status !== undefined && candidate.global_status !== filter.status) return null;
  const begins = (key: SearchKey) => fold(textOf(candidate, key)).startsWith(text);
  const [own, ...earlier] = SEARCH_KEYS.slice(0, walk + 1).toReversed();
  if (own === undefined || !begins(own) || earlier.some(begins)) return null;
  return withSubscription(tables, filter, candidate.seq);
}

function textOf(candidate: Candidate, key: SearchKey): string {
  if (key === 'email_key') return candidate.email ?? '';
  return key === 'name_key'
    ? fullName(candidate.first_name, candidate.last_name)
    : (candidate.last_name ?? '');
}
