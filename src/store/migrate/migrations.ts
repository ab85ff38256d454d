import { readdirSync, readFileSync } from 'node:fs';
import { type Database, readNumber } from '../database/connection.ts';
import { StoreFault } from '../database/failure.ts';

/**
 * A change of the schema, or of rows: `migrations/NNNN-name.sql`. The first one is the whole schema. A table whose
 * constraints change is written to a new table, which replaces it (https://sqlite.org/lang_altertable.html, "Making Other
 * Kinds Of Table Schema Changes"); foreign keys are not enforced meanwhile, and checked at the end.
 */
export interface Migration {
  version: number;
  name: string;
  sql: string;
}

const FOLDER = new URL('../migrations/', import.meta.url);
const FILE = /^(\d{4})-([a-z0-9-]+)\.sql$/;

/** In the header of every database. Databases of versions before 0.2.0, whose schemas had other numbers, have none. */
const APPLICATION_ID = 0x50_52_44_52;

/** The migrations belong to the program: they are read once. */
let known: readonly Migration[] | null = null;

/** All migrations in the order of their versions. */
export function knownMigrations(): readonly Migration[] {
  known ??= readdirSync(FOLDER)
    .sort()
    .flatMap((file) => {
      const [, version, name] = FILE.exec(file) ?? [];
      if (version === undefined || name === undefined) return [];
      return [{ version: Number(version), name, sql: readFileSync(new URL(file, FOLDER), 'utf8') }];
    });
  return known;
}

/** The statements of a migration, each with the comments before it. A statement ends at the end of a line. */
export function statementsOf({ sql }: Migration): string[] {
  const statements: string[] = [];
  let lines: string[] = [];
  for (const line of sql.split('\n')) {
    lines.push(line);
    const isInTrigger = lines.some((each) => each.includes('CREATE TRIGGER')) && line.trim() !== 'END;';
    if (!line.endsWith(';') || isInTrigger) continue;
    statements.push(lines.join('\n'));
    lines = [];
  }
  return [...statements, lines.join('\n')].filter((statement) => statement.trim() !== '');
}

/** `CREATE INDEX events_by_subject`: what a statement does, in a few words. */
export function statementName(statement: string): string {
  const words = statement
    .replaceAll(/--.*|;/g, '')
    .trim()
    .split(/\s+/);
  return words.slice(0, 3).join(' ');
}

/** `0002-example`. */
export function migrationName({ version, name }: Migration): string {
  return `${String(version).padStart(4, '0')}-${name}`;
}

/** The schema that the last of `migrations` creates. */
export function newestOf(migrations: readonly Migration[]): number {
  return migrations.at(-1)?.version ?? 0;
}

/** The schema of an open database; 0 when it is empty. Throws StoreFault when a version before 0.2.0 created it. */
export function readSchema(db: Database): number {
  const schema = readNumber(db, 'PRAGMA user_version');
  if (schema > 0 && readNumber(db, 'PRAGMA application_id') !== APPLICATION_ID)
    throw new StoreFault(
      `${db.name} was created by a development version of Postrider before 0.2.0, and cannot be migrated. Move it away, and move its accounts to the new database: "postrider account export" of that version, then "postrider account import" of this one`,
    );
  return schema;
}

export function writeSchema(db: Database, version: number): void {
  db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  db.exec(`PRAGMA user_version = ${version}`);
}
