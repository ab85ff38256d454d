import { mkdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { DATABASE_FILE, openConnection } from '../../src/store/database/connection.ts';
import { migrateDatabase } from '../../src/store/migrate/migrate.ts';
import { knownMigrations, type Migration, newestOf } from '../../src/store/migrate/migrations.ts';
import { SMALL_DATABASE_BYTES } from '../../src/store/migrate/upgrade.ts';
import { IN_PLACE } from './example-migrations.ts';

/** The migrations of this program. */
export const PROGRAM = knownMigrations().filter(({ version }) => version < IN_PLACE.version);

/** The schema of this program, which is an old one for the next version (example-migrations.ts). */
export const OLD_SCHEMA = newestOf(PROGRAM);

/** Until the test has finished, the program in this process is the next version, with one more migration. */
function useNextVersion(): void {
  // The list is created once, and read by all.
  const known = knownMigrations() as Migration[];
  if (known.includes(IN_PLACE)) return;
  known.push(IN_PLACE);
  onTestFinished(() => void known.pop());
}

/**
 * Creates a database in `dir`, with an account and a content, that this process has to migrate until the test has
 * finished. `large`: above the size up to which every command migrates a database.
 */
export function createOldDatabase(dir: string, { large = false } = {}): string {
  useNextVersion();
  mkdirSync(dir, { recursive: true });
  const file = join(dir, DATABASE_FILE);
  migrateDatabase({ file, migrations: PROGRAM });
  const db = openConnection(file, {});
  db.exec('PRAGMA journal_mode = WAL');
  db.exec("INSERT INTO accounts VALUES ('acct_old', 'Old', 'active', NULL, NULL, NULL, NULL, 1, 1, NULL)");
  db.exec("INSERT INTO contents (body, size, created_at) VALUES ('body', 4, 1)");
  db.close();
  // A sparse extension of the file: SQLite uses the number of pages in the header.
  if (large) truncateSync(file, SMALL_DATABASE_BYTES + 1);
  return file;
}
