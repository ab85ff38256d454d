import { readFileSync } from 'node:fs';
import Sqlite from 'better-sqlite3';

/** The SQL statements of a database's schema, in an order that does not depend on the migrations. */
export function schemaOf(file: string): string {
  const db = new Sqlite(file, { readonly: true });
  const rows = db
    .prepare<[], { sql: string }>(
      "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type, name",
    )
    .all();
  db.close();
  return `${rows.map(({ sql }) => `${sql};`).join('\n\n')}\n`;
}

/** Columns of each table in schema.sql, without the tables behind a virtual table. */
export function columnsByTable(): Map<string, string[]> {
  const db = new Sqlite(':memory:');
  const schema = readFileSync(new URL('../store/schema.sql', import.meta.url), 'utf8');
  for (const statement of schema.split(/;\n\n/))
    if (/^CREATE (?:VIRTUAL )?TABLE (?!')/.test(statement)) db.exec(statement);
  const tables = db
    .prepare<[], string>(
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')",
    )
    .pluck()
    .all()
    .filter((name) => !name.startsWith('sqlite_'));
  const columns = db.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck();
  return new Map(tables.map((table) => [table, columns.all(table)]));
}
