import type { Database } from '../database/database.ts';

/**
 * Numbers that stand for public ids in tables with millions of rows. A number is assigned when its id is first
 * stored and stays assigned when the resource is deleted, because messages and events outlive their domain. An id that is
 * stored nowhere has none: its text, which no row contains, stands for it in a search.
 */
export const NUMBERED = ['account', 'domain', 'campaign', 'subscription_group'] as const;
export type Numbered = (typeof NUMBERED)[number];

/** A column value that stands for an id, as it is read. */
export type StoredId = number | string;

/** A column value that stands for an id, as it is bound: better-sqlite3 binds a `number` as REAL, of eight bytes. */
export type BoundId = bigint | string;

/** Maximum number of ids in the cache of each kind; a full cache is emptied. */
const MAX_CACHED = 10_000;

/** The numbers of each connection: their statements are prepared once. */
const KNOWN = new WeakMap<Database, Record<Numbered, IdNumbers>>();

/** Returns the same object for a connection each time. The statements read and write the tables `…_numbers`. */
export function idNumbers(db: Database): Record<Numbered, IdNumbers> {
  const known = KNOWN.get(db);
  if (known !== undefined) return known;
  const created = {
    account: numbersOf(db, 'account'),
    domain: numbersOf(db, 'domain'),
    campaign: numbersOf(db, 'campaign'),
    subscription_group: numbersOf(db, 'subscription_group'),
  };
  KNOWN.set(db, created);
  return created;
}

function numbersOf(db: Database, kind: Numbered) {
  const numberOf = db.prepare<[string], number>(`SELECT number FROM ${kind}_numbers WHERE id = ?`).pluck();
  const idOf = db.prepare<[number], string>(`SELECT id FROM ${kind}_numbers WHERE number = ?`).pluck();
  const insert = db.prepare<[string]>(`INSERT INTO ${kind}_numbers (id) VALUES (?)`);
  const numbers = new Map<string, bigint>();
  const ids = new Map<number, string>();

  /** Ids to which the open transaction has assigned a number: it may be rolled back, and another id get the number. */
  const unconfirmed = new Set<string>();

  /** Adds a number to the cache, unless the open transaction has assigned it: all others are committed. */
  function remember(id: string, number: number): void {
    transactionEnded();
    if (unconfirmed.has(id)) return;
    if (ids.size >= MAX_CACHED) {
      ids.clear();
      numbers.clear();
    }
    numbers.set(id, BigInt(number));
    ids.set(number, id);
  }

  function lookUp(id: string): bigint | undefined {
    const cached = numbers.get(id);
    if (cached !== undefined) return cached;
    const number = numberOf.get(id);
    if (number === undefined) return undefined;
    remember(id, number);
    return BigInt(number);
  }

  function transactionEnded(): void {
    if (unconfirmed.size > 0 && !db.inTransaction) unconfirmed.clear();
  }

  function assignNew(id: string): bigint {
    // Units of work are synchronous, so that their transaction has ended then.
    queueMicrotask(transactionEnded);
    unconfirmed.add(id);
    return BigInt(insert.run(id).lastInsertRowid);
  }

  return {
    /** Returns the column value for an id, and assigns a number if the id has none. Only in a unit of work. */
    assign: (id: string): BoundId => lookUp(id) ?? assignNew(id),
    /** Returns the column value for an id. For an id without a number it is the id, which matches only rows with its text. */
    find: (id: string): BoundId => lookUp(id) ?? id,
    /** Returns the id for which a column value stands. */
    id: (stored: StoredId): string => {
      if (typeof stored === 'string') return stored;
      const cached = ids.get(stored);
      if (cached !== undefined) return cached;
      const id = idOf.get(stored);
      if (id === undefined) throw new Error(`${kind} number ${stored} is not assigned`);
      remember(id, stored);
      return id;
    },
  };
}

export type IdNumbers = ReturnType<typeof numbersOf>;
