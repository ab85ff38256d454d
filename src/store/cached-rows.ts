import type Sqlite from 'better-sqlite3';

/*
 * Caches rows that rarely change and that every message needs: accounts, API keys, domains and their keys, texts of the footer, and
 * what triggers sequences. A value is never older than the turn of the event loop in which it is requested:
 *
 * - A statement of this connection that may write to one of these tables empties the caches, and until its transaction has
 *   ended every lookup reads the database: a rollback leaves nothing behind.
 * - `PRAGMA data_version` changes when another connection commits, such as a command in another process. It is read once in
 *   each synchronous run of code, and again when a transaction began or ended.
 *
 * Suppressions and consent are not cached.
 */

const CACHED_TABLES =
  /\b(?:account_limits|accounts|api_keys|compliance_templates|dkim_keys|domains|public_pages|sending_limits|sequences|settings|token_keys|webhooks)\b/i;

/** Values of one lookup; when it is full, the oldest one is removed. */
const MAX_VALUES = 2000;

interface Caches {
  db: Sqlite.Database;
  /** One map for each lookup. */
  values: Map<string, unknown>[];
  /** `PRAGMA data_version`; null: not prepared yet. */
  version: Sqlite.Statement<[], number> | null;
  /** The version for which the values are valid. */
  knownVersion: number;
  /** Whether the version was read in this run of code, and if so, whether in a transaction. */
  checked: 'no' | 'outside' | 'inside';
  /** Whether a cached table may have been written since the values were last valid. */
  isWritten: boolean;
}

/** The caches of each connection. */
const CACHES = new WeakMap<Sqlite.Database, Caches>();

/** Prepares a connection for `cachedLookup`: its `prepare` and `exec` observe writes from then on. */
export function observeWrites(db: Sqlite.Database): void {
  const caches: Caches = {
    db,
    values: [],
    version: null,
    knownVersion: 0,
    checked: 'no',
    isWritten: false,
  };
  CACHES.set(db, caches);
  const prepare = db.prepare.bind(db);
  const observed = (sql: string) => {
    const statement = prepare(sql);
    if (statement.readonly || !CACHED_TABLES.test(sql)) return statement;
    const run = statement.run.bind(statement);
    const get = statement.get.bind(statement);
    const all = statement.all.bind(statement);
    statement.run = (...values) => {
      empty(caches);
      return run(...values);
    };
    // A statement with RETURNING runs through `get` or `all`.
    statement.get = (...values) => {
      empty(caches);
      return get(...values);
    };
    statement.all = (...values) => {
      empty(caches);
      return all(...values);
    };
    return statement;
  };
  // The types of parameters and rows are declared by the caller; at run time there is one `prepare`.
  db.prepare = observed as Sqlite.Database['prepare'];
  const exec = db.exec.bind(db);
  db.exec = (sql) => {
    if (CACHED_TABLES.test(sql)) empty(caches);
    return exec(sql);
  };
}

function empty(caches: Caches): void {
  caches.isWritten = true;
  for (const values of caches.values) values.clear();
}

/** Whether cached values are current; empties the caches when another connection has committed. */
function isValid(caches: Caches): boolean {
  const { inTransaction } = caches.db;
  if (caches.isWritten) {
    if (inTransaction) return false;
    caches.isWritten = false;
  }
  const now = inTransaction ? 'inside' : 'outside';
  if (caches.checked === now) return true;
  if (caches.checked === 'no') {
    queueMicrotask(() => {
      caches.checked = 'no';
    });
  }
  caches.checked = now;
  caches.version ??= caches.db.prepare<[], number>('PRAGMA data_version').pluck();
  const version = caches.version.get() ?? 0;
  if (version !== caches.knownVersion) {
    for (const values of caches.values) values.clear();
    caches.knownVersion = version;
  }
  return true;
}

/**
 * Returns `read` with a cache. `read` must read only the tables above, and its result must depend on nothing else. Results
 * are shared and frozen; `undefined` is not cached.
 */
export function cachedLookup<Key extends readonly string[], Value>(
  db: Sqlite.Database,
  read: (...key: Key) => Value,
): (...key: Key) => Value {
  const caches = CACHES.get(db);
  // Reads on a read-only connection have a snapshot and a budget, which a cache would bypass.
  if (caches === undefined || db.readonly) return read;
  const values = new Map<string, Value>();
  caches.values.push(values);
  return (...key) => {
    if (!isValid(caches)) return read(...key);
    const name = key.length === 1 ? (key[0] ?? '') : nameOf(key);
    const known = values.get(name);
    if (known !== undefined) return known;
    const value = freeze(read(...key));
    if (value === undefined) return value;
    if (values.size >= MAX_VALUES) {
      const [oldest] = values.keys();
      if (oldest !== undefined) values.delete(oldest);
    }
    values.set(name, value);
    return value;
  };
}

/** Different keys have different names: the length of each part precedes it. */
function nameOf(key: readonly string[]): string {
  let name = '';
  for (const part of key) name += `${part.length}:${part}`;
  return name;
}

/** Freezes a row, or the rows of a list. The only nested objects of rows are Buffers, which no caller changes. */
function freeze<Value>(value: Value): Value {
  if (Array.isArray(value)) for (const row of value) Object.freeze(row);
  return Object.freeze(value);
}
