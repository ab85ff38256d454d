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
