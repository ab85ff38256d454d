import type { Database } from '../database/connection.ts';

/** What a rebuild declares (`Rebuild`), and the SELECT statements that follow from it (`planCopies`). */
export interface Rebuild extends FileFormat {
  /** The schema that it creates. */
  version: number;
  /** Part of the file name and of log records: `compact-rows`. */
  name: string;
  /** The oldest schema that `copies` can read. Migrations between it and `version` are not run before a rebuild. */
  from: number;
  /** Creates all tables, with the rows that they must have from the start. */
  tables: string;
  /** Creates all indexes and triggers; runs after the rows have been copied. */
  indexes: string;
  /**
   * How tables of the new schema get their rows, by name; `schema` is that of the old database. A table that is not
   * named is copied as it is, by the columns that both schemas have. Tables are copied in the order in which `tables`
   * creates them, so that a copy can join what was copied before it (`main.accounts`).
   */
  copies?(schema: number): Readonly<Record<string, TableCopy>>;
  /** Tables of the old schema whose rows are not copied anywhere. */
  dropped?: readonly string[];
  /** SQL functions for `copies`; they must be deterministic. */
  functions?: Readonly<Record<string, (...values: SqlValue[]) => SqlValue>>;
}

/** Properties of the file that can only be set before the first table is created. */
export interface FileFormat {
  /** Page size in bytes; default: SQLite's own, 4096. */
  pageSize?: number;
  /** Default: incremental. */
  autoVacuum?: 'none' | 'incremental';
}

export type SqlValue = string | number | bigint | Buffer | null;

export type TableCopy = ColumnCopy | SelectCopy;

/** Each row of the old table becomes one row of the new one. */
export interface ColumnCopy {
  /** The old table; default: the one of the same name. */
  from?: string;
  /**
   * Values of columns as SQL expressions over `o`, the row of the old table. Columns that are not named here have the
   * value of the old column of the same name.
   */
  columns?: Readonly<Record<string, string>>;
  /** Joins after `FROM old.<table> AS o`; each must yield exactly one row for a row of the old table. */
  join?: string;
  /** Rows for which this is not true are not copied. */
  where?: string;
  /** Columns of the old table whose values are not copied. */
  dropped?: readonly string[];
}

/** Rows of the new table from any SELECT over the old database. */
export interface SelectCopy {
  /** The old table that is read in ranges of its key. */
  from: string;
  /** The columns of the range; default: the rowid or the primary key. A prefix of it, where a SELECT groups rows. */
  key?: readonly string[];
  /** Columns of the new table, in the order of the SELECT. */
  into: readonly string[];
  /** The SELECT; `range` is a condition on the columns of `key` of the table `o`, which it must contain. */
  select(range: string): string;
  /** SELECT of the number of rows that the new table must have. */
  count: string;
}

/** How one table of the new database gets its rows. */
export interface CopyPlan {
  table: string;
  from: string;
  key: readonly string[];
  into: readonly string[];
  select(range: string): string;
  /** SELECT of the number of rows that the new table must have. */
  count: string;
}

interface TableInfo {
  name: string;
  type: 'table' | 'virtual' | 'shadow' | 'view';
  wr: number;
}

interface ColumnInfo {
  name: string;
  pk: number;
  type: string;
}

/**
 * Plans the copies from the attached database `old`, whose schema is `schema`, in the order in which `main` created its
 * tables. Reads the catalogs only. Throws an Error when a table or column would be lost or does not exist.
 */
export function planCopies(db: Database, rebuild: Rebuild, schema: number): CopyPlan[] {
  const copies = rebuild.copies?.(schema) ?? {};
  const dropped = new Set(rebuild.dropped);
  const catalog = { new: tablesOf(db, 'main'), old: tablesOf(db, 'old') };
  const plans: CopyPlan[] = [];
  for (const table of catalog.new.values()) {
    const copy = copies[table.name] ?? {};
    const from = catalog.old.get(copy.from ?? table.name);
    if (from === undefined) {
      if (copies[table.name] !== undefined)
        throw new Error(`rebuild ${rebuild.version}: there is no table ${copy.from ?? table.name}`);
      continue;
    }
    plans.push('select' in copy ? selectPlan(db, table, from, copy) : columnPlan(db, table, from, copy));
  }
  const read = new Set(plans.map(({ from }) => from));
  const named = new Set([...catalog.new.keys(), ...read]);
  for (const name of Object.keys(copies))
    if (!catalog.new.has(name)) throw new Error(`rebuild ${rebuild.version}: no table ${name} is created`);
  for (const name of catalog.old.keys())
    if (!named.has(name) && !dropped.has(name))
      throw new Error(`rebuild ${rebuild.version}: table ${name} would be lost`);
  return plans;
}

/** Ordinary tables in the order of their creation, without the tables that belong to a virtual table. */
function tablesOf(db: Database, schema: 'main' | 'old'): Map<string, TableInfo> {
  const rows = db
    .prepare<[], TableInfo>(
      `SELECT l.name, l.type, l.wr FROM pragma_table_list AS l
       JOIN ${schema}.sqlite_schema AS s ON s.name = l.name AND s.type = 'table'
       WHERE l.schema = '${schema}' AND l.type = 'table' AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
       ORDER BY s.rowid`,
    )
    .all();
  return new Map(rows.map((row) => [row.name, row]));
}

function columnsOf(db: Database, schema: 'main' | 'old', table: string): ColumnInfo[] {
  return db
    .prepare<[string, string], ColumnInfo>('SELECT name, pk, type FROM pragma_table_info(?, ?) ORDER BY cid')
    .all(table, schema);
}

/** The columns by which a table is read in order: the rowid, or the primary key of a table without one. */
function keyOf(table: TableInfo, columns: readonly ColumnInfo[]): string[] {
  if (table.wr === 0) return ['rowid'];
  return columns
    .filter(({ pk }) => pk > 0)
    .sort((a, b) => a.pk - b.pk)
    .map(({ name }) => name);
}

function selectPlan(db: Database, table: TableInfo, from: TableInfo, copy: SelectCopy): CopyPlan {
  const key = copy.key ?? keyOf(from, columnsOf(db, 'old', from.name));
  return { ...copy, table: table.name, from: from.name, key };
}

function columnPlan(db: Database, table: TableInfo, from: TableInfo, copy: ColumnCopy): CopyPlan {
  const oldColumns = columnsOf(db, 'old', from.name);
  const newColumns = columnsOf(db, 'main', table.name);
  const oldNames = new Set(oldColumns.map(({ name }) => name));
  const newNames = new Set(newColumns.map(({ name }) => name));
  const expressions = copy.columns ?? {};
  for (const name of Object.keys(expressions))
    if (!newNames.has(name)) throw new Error(`table ${table.name} has no column ${name}`);
  const dropped = new Set(copy.dropped);
  for (const name of oldNames)
    if (!newNames.has(name) && !dropped.has(name))
      throw new Error(`column ${name} of table ${from.name} would be lost`);

  const values = new Map<string, string>();
  for (const { name } of newColumns) {
    const value = expressions[name] ?? (oldNames.has(name) ? `o.${quoted(name)}` : undefined);
    // A new column without an expression has its default.
    if (value !== undefined) values.set(quoted(name), value);
  }
  if (hasHiddenRowid(table, newColumns) && hasHiddenRowid(from, oldColumns)) values.set('rowid', 'o.rowid');
  const source = `old.${quoted(from.name)} AS o ${copy.join ?? ''}`;
  const where = copy.where === undefined ? '' : `(${copy.where}) AND `;
  const key = keyOf(from, oldColumns);
  const order = key.map((column) => `o.${quoted(column)}`).join(', ');
  return {
    table: table.name,
    from: from.name,
    key,
    into: [...values.keys()],
    select: (range) =>
      `SELECT ${[...values.values()].join(', ')} FROM ${source} WHERE ${where}${range} ORDER BY ${order}`,
    count: countOf(from.name) + (copy.where === undefined ? '' : ` AS o WHERE ${copy.where}`),
  };
}

/** Whether no column is an alias of the rowid. */
function hasHiddenRowid({ wr }: TableInfo, columns: readonly ColumnInfo[]): boolean {
  const keys = columns.filter(({ pk }) => pk > 0);
  return wr === 0 && !(keys.length === 1 && keys[0]?.type.toUpperCase() === 'INTEGER');
}

/** SELECT of the number of all rows of a table of the attached database `old`. */
export function countOf(oldTable: string): string {
  return `SELECT count(*) FROM old.${quoted(oldTable)}`;
}

/** The name as an SQL identifier, quoted. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
