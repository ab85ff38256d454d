import { errorCode, errorText } from '../../core/errors.ts';
import { type Database, openForReading } from '../database/database.ts';

/*
 * The program of the process that checks the integrity of a database: `quick_check` of one table after the other on a
 * read-only connection, so that no read transaction lasts longer than the check of one table. It is a process because a
 * running check cannot be interrupted (better-sqlite3 has no interrupt). Prints one JSON object per line.
 */

/** A line of output. */
export type IntegrityLine =
  | { kind: 'tables'; count: number }
  /** `problems`: the first MAX_PROBLEMS messages of SQLite about the table; empty: it is intact. */
  | { kind: 'table'; name: string; problems: string[] }
  | { kind: 'failed'; code: string; message: string };

const MAX_PROBLEMS = 5;

const file = process.argv.at(-1) ?? '';
try {
  checkTables(file);
} catch (error) {
  print({ kind: 'failed', code: errorCode(error), message: errorText(error) });
}

function checkTables(database: string): void {
  const db = openForReading(database);
  const tables = db
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name")
    .pluck()
    .all();
  print({ kind: 'tables', count: tables.length });
  for (const name of tables) print({ kind: 'table', name, problems: problemsOf(db, name) });
}

function problemsOf(db: Database, table: string): string[] {
  try {
    const rows = db
      .prepare<[], string>(`PRAGMA quick_check("${table.replaceAll('"', '""')}")`)
      .pluck()
      .all();
    return rows.filter((row) => row !== 'ok').slice(0, MAX_PROBLEMS);
  } catch (error) {
    // Some damage is an error of the statement; the other tables may be intact.
    if (errorCode(error).startsWith('SQLITE_CORRUPT')) return [`${errorCode(error)}: ${errorText(error)}`];
    throw error;
  }
}

function print(line: IntegrityLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
