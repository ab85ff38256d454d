import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/*
 * The full-text index that finds contacts by any part of their text and identifiers (FTS5, contentless). Its terms are
 * trigrams with the account and a range of contacts as prefix: a search reads the entries of one account only, and each
 * statement those of one range at most, whatever the size of the account. A hit is a candidate: it has all trigrams, not
 * necessarily next to each other. Only `contactTable` writes to it, together with the contact.
 */

/** The columns of a contact that its index entry derives from. */
export interface IndexedContact {
  seq: number;
  account_id: string;
  user_id: string;
  email_hash: string | null;
  phone_hash: string | null;
  search_text: string;
}

/** The shortest word that the index can find, in characters. */
export const MIN_INDEXED = 3;
/** The shortest part of an identifier that the index can find. */
export const MIN_IDENTIFIER = 5;

const TRIGRAM = 3;
/** Contacts in one range, by their seq. */
const RANGE = 2 ** 17;
/** Ranges that one call reads. */
const MAX_RANGES = 16;
/**
 * FTS5's automatic merge of segments runs inside a COMMIT and grows with the index: 30 to 70 ms with a million contacts.
 * It is turned off, and so is the merge of a whole level (`crisismerge`), as far as FTS5 permits. Each commit that wrote
 * to the index runs a bounded part of the merge instead: 7 ms at most, in total as much work as before.
 */
const CONFIGURATION = { automerge: 0, crisismerge: 1999 };
/** Pages that the merge of one commit writes. A new row is a few dozen bytes, rewritten about once per level. */
const MIN_MERGE_PAGES = 8;
const MAX_MERGE_PAGES = 64;
const ROWS_PER_MERGE_PAGE = 8;
/** Terms of one word in a query; candidates are compared with the whole word anyway. */
const MAX_TERMS = 12;

/** One word of a search. */
export interface IndexWord {
  /** Folded, at least MIN_INDEXED characters. */
  text: string;
  /** The hexadecimal digits of an identifier that it may be part of, at least MIN_IDENTIFIER; null: of none. */
  identifier: string | null;
}

export interface IndexQuery {
  accountId: string;
  /** Sets of words: a contact is a candidate when it has all words of one set. */
  anyOf: IndexWord[][];
  /** Only contacts before this seq. */
  before: number;
  limit: number;
}

export interface IndexHits {
  /** Newest first. */
  seqs: number[];
  /** Contacts from this seq on were searched; null: all were. */
  next: number | null;
}

/**
 * `contact_search`. Changes and `merge` run in the transaction of the writer; the number of rows that are not merged
 * yet is in memory.
 */
export function contactSearchIndex(db: Database) {
  const sql = statements(db);
  const add = sql.run<[number, string]>('INSERT INTO contact_search (rowid, trigrams) VALUES (?, ?)');
  const remove = sql.run<[number, string]>(
    "INSERT INTO contact_search (contact_search, rowid, trigrams) VALUES ('delete', ?, ?)",
  );
  const configured = db.prepare<[string], number>('SELECT v FROM contact_search_config WHERE k = ?').pluck();
  const merge = sql.run<[number]>("INSERT INTO contact_search (contact_search, rank) VALUES ('merge', ?)");
  /** Rows written since the last merge. */
  let unmerged = 0;
  const find = sql.values<[string, number, number], number>(
    'SELECT rowid FROM contact_search WHERE contact_search MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT +?',
  );
  const newestBefore = sql.value<[string, number], number>(
    'SELECT max(seq) FROM contacts WHERE account_id = ? AND seq < ?',
  );
  return {
    add: (contact: IndexedContact): void => {
      add(contact.seq, termsOf(contact));
      unmerged++;
    },
    /** Requires the values that were added: a contentless index does not store them. */
    remove: (contact: IndexedContact): void => {
      remove(contact.seq, termsOf(contact));
      unmerged++;
    },
    /** Disables the automatic merge. The index stores its configuration, so that this writes once per database. */
    configure: (): void => {
      for (const [option, value] of Object.entries(CONFIGURATION))
        if (configured.get(option) !== value)
          db.exec(`INSERT INTO contact_search (contact_search, rank) VALUES ('${option}', ${value})`);
    },
    /** Merges a bounded part of the segments if rows were written since the last call. Called once per commit. */
    merge: (): void => {
      if (unmerged === 0) return;
      const pages = MIN_MERGE_PAGES + Math.ceil(unmerged / ROWS_PER_MERGE_PAGE);
      unmerged = 0;
      merge(Math.min(pages, MAX_MERGE_PAGES));
    },
    /** Searches at most MAX_RANGES ranges of the account, from the newest on. */
    find: ({ accountId, anyOf, before, limit }: IndexQuery): IndexHits => {
      const seqs: number[] = [];
      let from = before;
      for (let ranges = 0; ranges < MAX_RANGES; ranges++) {
        const newest = newestBefore(accountId, from);
        if (newest === null) return { seqs, next: null };
        const range = Math.floor(newest / RANGE);
        const hits = find(matchOf(scopeOf(accountId, range), anyOf), from, limit - seqs.length);
        seqs.push(...hits);
        if (seqs.length === limit) return { seqs, next: seqs.at(-1) ?? from };
        from = range * RANGE;
      }
      return { seqs, next: from };
    },
  };
}

/** The prefix of a term. */
function scopeOf(accountId: string, range: number): string {
  return `${accountId.replaceAll(/[^A-Za-z0-9]/g, '')}_${range.toString(36)}_`;
}

function termsOf(contact: IndexedContact): string {
  const scope = scopeOf(contact.account_id, Math.floor(contact.seq / RANGE));
  const terms = new Set<string>();
  for (const line of contact.search_text.split('\n')) for (const term of textTerms(line)) terms.add(term);
  for (const digits of identifierDigits(contact)) for (const term of identifierTerms(digits)) terms.add(term);
  return Array.from(terms, (term) => scope + term).join(' ');
}

/** All trigrams of a text, in hexadecimal: the tokenizer must treat each as one token. */
function textTerms(text: string): string[] {
  const characters = Array.from(text);
  const count = Math.max(characters.length - TRIGRAM + 1, 0);
  return Array.from({ length: count }, (_, at) =>
    Buffer.from(characters.slice(at, at + TRIGRAM).join('')).toString('hex'),
  );
}

/** The hexadecimal digits of each identifier of a contact. */
export function identifierDigits({
  email_hash,
  phone_hash,
  user_id,
}: Pick<IndexedContact, 'email_hash' | 'phone_hash' | 'user_id'>): string[] {
  return [email_hash, phone_hash, user_id]
    .filter((identifier) => identifier !== null)
    .map((identifier) => identifier.replace(/^(?:email|phone)_/, '').replaceAll('-', ''));
}

/** Only every third trigram: digits are random, so that a third of the terms is as selective (`identifierMatch`). */
function identifierTerms(digits: string): string[] {
  const count = Math.floor(digits.length / TRIGRAM);
  return Array.from({ length: count }, (_, at) => `i${digits.slice(at * TRIGRAM, (at + 1) * TRIGRAM)}`);
}

function matchOf(scope: string, anyOf: IndexWord[][]): string {
  return anyOf.map((words) => all(words.map((word) => wordMatch(scope, word)))).join(' OR ');
}

/** Returns only the part of an address before its domain: the domain occurs in too many contacts to be selective. */
function selectivePart(word: string): string {
  const part = word.slice(0, word.indexOf('@') + 2);
  return Array.from(part).length < MIN_INDEXED ? word : part;
}

function wordMatch(scope: string, { text, identifier }: IndexWord): string {
  const inText = all(
    textTerms(selectivePart(text))
      .slice(0, MAX_TERMS)
      .map((term) => quoted(scope + term)),
  );
  return identifier === null ? inText : `(${inText} OR ${identifierMatch(scope, identifier)})`;
}

/** The part may begin at any of three places within the trigrams that are indexed. */
function identifierMatch(scope: string, digits: string): string {
  const alternatives = [0, 1, 2].map((skipped) =>
    all(identifierTerms(digits.slice(skipped)).map((term) => quoted(scope + term))),
  );
  return alternatives.join(' OR ');
}

function all(parts: string[]): string {
  return `(${parts.join(' AND ')})`;
}

function quoted(term: string): string {
  return `"${term}"`;
}
