import Sqlite from 'better-sqlite3';

/** A connection to an SQLite file. No other layer knows that it is SQLite. */
export type Database = Sqlite.Database;

/** The name of the database in `data.dir`. */
export const DATABASE_FILE = 'postrider.db';

/**
 * From Node 24.19 on the process ends when an object of better-sqlite3 12 is collected, and 13 needs Node 22. All
 * objects are therefore referenced until the process ends: each statement is prepared once, `exec` creates none, and
 * `pragma` and `iterate`, which create one at each call, are not used.
 */
const KEPT: object[] = [];

/** Opens `file`, and creates it if it does not exist. */
export function openConnection(file: string, options: Sqlite.Options): Database {
  const db = new Sqlite(file, options);
  const prepare = db.prepare.bind(db);
  const keepStatement = (sql: string) => {
    const statement = prepare(sql);
    KEPT.push(statement);
    return statement;
  };
  // The types of parameters and rows are declared by the caller; at run time there is one `prepare`.
  db.prepare = keepStatement as Database['prepare'];
  KEPT.push(db);
  return db;
}
