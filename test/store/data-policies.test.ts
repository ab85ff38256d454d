import { readFileSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { DATA_POLICIES, OTHER_TABLES, RETENTION_RULES } from '../../src/store/data-policies.ts';
import type { DataPolicy } from '../../src/store/data-policy.ts';

const POLICIES: readonly DataPolicy[] = DATA_POLICIES;

/** Columns of each table in schema.sql; the tables behind a virtual table are left out. */
function columnsByTable(): Map<string, string[]> {
  const db = new Sqlite(':memory:');
  const statements = readFileSync(new URL('schema.sql', import.meta.url), 'utf8').split(/;\n\n/);
  for (const statement of statements)
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

/** Names that columns with data of recipients and contacts have. */
const PERSONAL_NAME =
  /email|phone|recipient|subject|sender|ip_address|user_agent|remote_address|person|_hash$/;
/** Columns with such a name and without such data. */
const IMPERSONAL = new Set([
  // Of the account itself, and of its templates.
  'accounts.abuse_email',
  'templates.subject',
  // A count.
  'campaign_sends.without_email',
]);

describe('the data policies of tables', () => {
  const schema = columnsByTable();

  it('cover every table of the schema once', () => {
    const declared = [...POLICIES.map(({ table }) => table), ...OTHER_TABLES];
    expect(declared.toSorted()).toEqual([...schema.keys()].toSorted());
  });

  it('name columns that exist', () => {
    const unknown = POLICIES.flatMap(({ table, personal }) =>
      personal.filter((column) => !schema.get(table)?.includes(column)).map((column) => `${table}.${column}`),
    );
    expect(unknown).toEqual([]);
  });

  it('declare every column whose name indicates personal data', () => {
    const declared = new Set(
      POLICIES.flatMap(({ table, personal }) => personal.map((column) => `${table}.${column}`)),
    );
    const undeclared = [...schema]
      .flatMap(([table, columns]) => columns.map((column) => [`${table}.${column}`, column] as const))
      .filter(([name, column]) => PERSONAL_NAME.test(column) && !declared.has(name) && !IMPERSONAL.has(name));
    expect(undeclared.map(([name]) => name)).toEqual([]);
  });

  it('state for personal data how it is erased and how long it is retained', () => {
    const incomplete = POLICIES.filter(
      ({ personal, erasure, retention }) =>
        personal.length > 0 &&
        (erasure === undefined ||
          retention === undefined ||
          (Array.isArray(erasure) && erasure.length === 0)),
    );
    expect(incomplete.map(({ table }) => table)).toEqual([]);
  });

  it('have a kind of their own for each rule of retention', () => {
    const kinds = RETENTION_RULES.map(({ kind }) => kind);
    expect(kinds).toEqual([...new Set(kinds)]);
  });
});
