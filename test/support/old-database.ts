import { mkdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { DATABASE_FILE, openConnection } from '../../src/store/database/connection.ts';
import { migrateDatabase } from '../../src/store/migrate/migrate.ts';
import { knownMigrations } from '../../src/store/migrate/migrations.ts';
import { SMALL_DATABASE_BYTES } from '../../src/store/migrate/upgrade.ts';

/** A schema that has at least one migration after it. */
export const OLD_SCHEMA = 15;

/**
 * Creates a database of an older release in `dir`, with an account and a content. `large`: above the size up to which
 * every command migrates a database.
 */
export function createOldDatabase(dir: string, { large = false } = {}): string {
  mkdirSync(dir, { recursive: true });
  const file = join(dir, DATABASE_FILE);
  migrateDatabase({ file, migrations: knownMigrations().filter(({ version }) => version <= OLD_SCHEMA) });
  const db = openConnection(file, {});
  db.exec('PRAGMA journal_mode = WAL');
  db.exec("INSERT INTO accounts VALUES ('acct_old', 'Old', 'active', NULL, NULL, NULL, NULL, 1, 1)");
  db.exec("INSERT INTO contents (body, created_at) VALUES ('body', 1)");
  db.close();
  // A sparse extension of the file: SQLite uses the number of pages in the header.
  if (large) truncateSync(file, SMALL_DATABASE_BYTES + 1);
  return file;
}
