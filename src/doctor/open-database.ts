import { statSync } from 'node:fs';
import { OperatorFault } from '../core/operator-fault.ts';
import { databaseFileIn } from '../store/database/connection.ts';
import { openForReading } from '../store/database/database.ts';
import { openingFault } from '../store/database/failure.ts';
import { knownMigrations, newestOf, readSchema } from '../store/migrate/migrations.ts';
import { createLocalReader } from '../store/readers/reads.ts';
import { createTables, prepareTables } from '../store/tables.ts';
import type { DatabaseState } from './context.ts';
import { AS_DAEMON, failure, type Result, unknown, warning } from './finding.ts';

/** Opens the database of `dir` read-only for the checks of a command. Never throws: `closed` states why it cannot be opened. */
export function openForDoctor(dir: string): { database: DatabaseState; close(): void } {
  const closed = (finding: Result) => ({ database: { kind: 'closed' as const, finding }, close: () => {} });
  let file = dir;
  try {
    file = databaseFileIn(dir);
    if (statSync(file, { throwIfNoEntry: false }) === undefined)
      return closed(warning(file, 'There is no database yet.', 'postrider init'));
    const db = openForReading(file);
    const newest = newestOf(knownMigrations());
    let found: number | null = null;
    try {
      found = readSchema(db);
    } finally {
      if (found !== newest) db.close();
    }
    if (found !== newest) return closed(otherSchema(file, found, newest));
    const tables = createTables(db);
    prepareTables(tables);
    const database = { kind: 'open' as const, tables, reader: createLocalReader(tables) };
    return { database, close: () => void db.close() };
  } catch (error) {
    if (isDenied(error))
      return closed(unknown(file, 'The database may not be read by this user.', AS_DAEMON));
    const fault = openingFault(file, error);
    const message = fault instanceof Error ? fault.message : String(fault);
    return closed(
      failure(
        file,
        fault instanceof OperatorFault ? message : `The database cannot be opened: ${message}`,
        'Restore a backup, or salvage what is readable: sqlite3 FILE .recover | sqlite3 recovered.db',
      ),
    );
  }
}

const DENIED: ReadonlySet<unknown> = new Set(['EACCES', 'EPERM', 'SQLITE_CANTOPEN', 'SQLITE_PERM']);

function isDenied(error: unknown): boolean {
  return error instanceof Error && 'code' in error && DENIED.has(error.code);
}

function otherSchema(file: string, found: number, newest: number): Result {
  return found < newest
    ? warning(
        file,
        `The database has schema ${found}, this program needs ${newest}.`,
        'postrider migrate --dry-run, then: postrider migrate',
      )
    : failure(
        file,
        `The database has schema ${found}, this program knows ${newest}: it belongs to a newer version.`,
        'Install the version of postrider that last used this database',
      );
}
