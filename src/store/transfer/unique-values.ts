import { openConnection } from '../database/connection.ts';
import type { Database } from '../database/database.ts';

/** Additions in one transaction: each writes to random pages. */
const TRANSACTION_ADDITIONS = 100_000;
/** Memory for pages of the set, KiB. */
const CACHE_KIB = 65_536;

/**
 * A set of values that can exceed the memory, in a temporary file that the system removes however the process ends.
 *
 * Creates the file in SQLite's directory for temporary files, with up to 64 MiB of it in memory. `add` throws when the
 * disk is full; `close` deletes the file.
 */
export function createUniqueValues() {
  // An empty name: SQLite creates a temporary file, which is deleted when it is closed.
  const db: Database = openConnection('', {});
  db.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
  db.exec('CREATE TABLE known (value TEXT PRIMARY KEY) WITHOUT ROWID');
  db.exec('BEGIN');
  const add = db.prepare<[string]>('INSERT INTO known (value) VALUES (?) ON CONFLICT DO NOTHING');
  let additions = 0;
  return {
    /** Returns false when the set has the value already. */
    add: (value: string): boolean => {
      if (++additions % TRANSACTION_ADDITIONS === 0) db.exec('COMMIT; BEGIN');
      return add.run(value).changes === 1;
    },
    close: (): void => {
      db.close();
    },
  };
}

export type UniqueValues = ReturnType<typeof createUniqueValues>;
