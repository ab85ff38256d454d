import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../../src/store/database/database.ts';

/** Columns of each table of a new database, without the tables behind a virtual table. */
export function columnsByTable(): Map<string, string[]> {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-schema-'));
  const db = openDatabase(dir);
  const tables = db
    .prepare<[], string>(
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')",
    )
    .pluck()
    .all()
    .filter((name) => !name.startsWith('sqlite_'));
  const columns = db.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck();
  const found = new Map(tables.map((table) => [table, columns.all(table)]));
  db.close();
  rmSync(dir, { recursive: true });
  return found;
}
