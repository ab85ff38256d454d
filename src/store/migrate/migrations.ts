import { readdirSync, readFileSync } from 'node:fs';
import { COMPACT_ROWS } from '../migrations/0021-compact-rows.ts';
import type { Rebuild } from './rebuild-plan.ts';

/**
 * The migrations of this program: `migrations/NNNN-name.sql` changes the database in place, a rebuild creates a new
 * file (`rebuild.ts`). A rebuild is a module `migrations/NNNN-name.ts` that is listed in REBUILDS; the SQL of its schema
 * is in `migrations/NNNN-name.tables.sql` and `migrations/NNNN-name.indexes.sql`.
 */
export type Migration = SqlMigration | RebuildMigration;

export interface SqlMigration {
  kind: 'sql';
  version: number;
  name: string;
  sql: string;
}

export interface RebuildMigration {
  kind: 'rebuild';
  version: number;
  name: string;
  rebuild: Rebuild;
}

const FOLDER = new URL('../migrations/', import.meta.url);
const IN_PLACE = /^(\d{4})-([a-z0-9-]+)\.sql$/;

const REBUILDS: readonly Omit<Rebuild, 'tables' | 'indexes'>[] = [COMPACT_ROWS];

/** The migrations belong to the program: they are read once. */
let known: readonly Migration[] | null = null;

/** All migrations in the order of their versions. */
export function knownMigrations(): readonly Migration[] {
  known ??= readMigrations();
  return known;
}

function readMigrations(): Migration[] {
  const inPlace = readdirSync(FOLDER).flatMap((file): Migration[] => {
    const [, version, name] = IN_PLACE.exec(file) ?? [];
    if (version === undefined || name === undefined) return [];
    return [
      { kind: 'sql', version: Number(version), name, sql: readFileSync(new URL(file, FOLDER), 'utf8') },
    ];
  });
  const rebuilds = REBUILDS.map((plan): Migration => {
    const { version, name } = plan;
    const read = (part: string) =>
      readFileSync(new URL(`${migrationName(plan)}.${part}.sql`, FOLDER), 'utf8');
    const rebuild = { ...plan, tables: read('tables'), indexes: read('indexes') };
    return { kind: 'rebuild', version, name, rebuild };
  });
  return [...inPlace, ...rebuilds].sort((a, b) => a.version - b.version);
}

/** `0016-contact-search`. */
export function migrationName({ version, name }: { version: number; name: string }): string {
  return `${String(version).padStart(4, '0')}-${name}`;
}

/** The schema that the last of `migrations` creates. */
export function newestOf(migrations: readonly Migration[]): number {
  return migrations.at(-1)?.version ?? 0;
}

/**
 * The migrations from schema `found` to the newest, in order. A rebuild that can read the schema replaces all migrations
 * before it; a new database (`found` is 0) begins with the schema of the last rebuild.
 */
export function migrationsFrom(found: number, migrations: readonly Migration[]): Migration[] {
  const ahead = migrations.filter(({ version }) => version > found);
  const last = ahead.findLast((migration) => migration.kind === 'rebuild');
  if (last === undefined) return ahead;
  const { from } = last.rebuild;
  const before =
    found === 0
      ? []
      : migrationsFrom(
          found,
          migrations.filter(({ version }) => version <= from),
        );
  return [...before, last, ...ahead.filter(({ version }) => version > last.version)];
}
