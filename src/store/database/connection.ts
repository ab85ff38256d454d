import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import Sqlite from 'better-sqlite3';
import { observeWrites } from '../cached-rows.ts';

/** A connection to an SQLite file. Modules outside the store only pass it on. */
export type Database = Sqlite.Database;

/** The name of the database in `data.dir`. */
export const DATABASE_FILE = 'postrider.db';

/**
 * The path of the database in `dir`, whether it exists or not. A symbolic link is resolved: a migration replaces the file
 * that the link names.
 */
export function databaseFileIn(dir: string): string {
  const file = join(dir, DATABASE_FILE);
  const isLink = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  if (!isLink) return file;
  return existsSync(file) ? realpathSync(file) : resolve(dir, readlinkSync(file));
}

/**
 * From Node 24.19 on the process ends when an object of better-sqlite3 12 is collected, and 13 needs Node 22. All
 * objects are therefore created here and referenced until the process ends: each statement is prepared once, `exec`
 * creates none, and `pragma`, which creates one at each call, is not used.
 */
const REFERENCED: object[] = [];

/** Opens `file`, and creates it if it does not exist. */
export function openConnection(file: string, options: Sqlite.Options): Database {
  const db = new Sqlite(file, options);
  const prepare = db.prepare.bind(db);
  const prepareAndReference = (sql: string) => {
    const statement = prepare(sql);
    REFERENCED.push(statement);
    return statement;
  };
  // The types of parameters and rows are declared by the caller; at run time there is one `prepare`.
  db.prepare = prepareAndReference as Database['prepare'];
  observeWrites(db);
  REFERENCED.push(db);
  return db;
}

/** Reads rows one by one, where all of them could exceed the memory. */
export function iterateRows<Parameters extends unknown[], Row>(
  statement: Sqlite.Statement<Parameters, Row>,
  ...parameters: Parameters
): IterableIterator<Row> {
  const rows = statement.iterate(...parameters);
  REFERENCED.push(rows);
  return rows;
}

/** The number that a statement returns in its first column; 0 when it returns NULL or no row. */
export function readNumber(db: Database, sql: string): number {
  return db.prepare<[], number | null>(sql).pluck().get() ?? 0;
}
