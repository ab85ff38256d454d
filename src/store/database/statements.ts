import type { Database } from './connection.ts';

/** A statement with its parameters, as a function. */
type Statement<Parameters extends unknown[], Result> = (...parameters: Parameters) => Result;

/**
 * Statements as functions, so that a table reads as a list of its statements: each text is prepared once, and its
 * parameters are bound in the order of the arguments (or by name, from one object). A tuple of parameters names them:
 * `sql.get<[accountId: string, groupId: string], GroupRow>('SELECT …')`.
 */
export function statements(db: Database) {
  return {
    /**
     * For an INSERT of a whole row: the table and all columns with a parameter of the same name for each, except for a
     * number that SQLite assigns (`INTEGER PRIMARY KEY`): `a_table (a, b) VALUES (@a, @b)`.
     */
    row: (table: string): string => {
      const columns = columnsOf(db, table);
      const keys = columns.filter(({ pk }) => pk > 0);
      const given = columns.filter(({ pk, type }) => pk === 0 || keys.length > 1 || type !== 'INTEGER');
      return `${table} ${columnValues(given.map(({ name }) => name).join(', '))}`;
    },
    /** For an UPDATE of a whole row, except for the columns that are fixed: `a = @a, b = @b`. */
    rowExcept: (table: string, fixed: readonly string[]): string =>
      columnsSet(
        columnsOf(db, table)
          .map(({ name }) => name)
          .filter((name) => !fixed.includes(name))
          .join(', '),
      ),
    /** Writes. */
    run: <Parameters extends unknown[] = []>(text: string): Statement<Parameters, void> => {
      const statement = db.prepare<Parameters>(text);
      return (...parameters) => {
        statement.run(...parameters);
      };
    },
    /** Inserts; returns the number of the new row. */
    insert: <Parameters extends unknown[]>(text: string): Statement<Parameters, number> => {
      const statement = db.prepare<Parameters>(text);
      return (...parameters) => Number(statement.run(...parameters).lastInsertRowid);
    },
    /** Writes; returns how many rows were changed. */
    changes: <Parameters extends unknown[] = []>(text: string): Statement<Parameters, number> => {
      const statement = db.prepare<Parameters>(text);
      return (...parameters) => statement.run(...parameters).changes;
    },
    /** Writes; returns whether a row was changed. */
    changed: <Parameters extends unknown[] = []>(text: string): Statement<Parameters, boolean> => {
      const statement = db.prepare<Parameters>(text);
      return (...parameters) => statement.run(...parameters).changes > 0;
    },
    /** Returns the first row; null: there is none. */
    get: <Parameters extends unknown[], Row>(text: string): Statement<Parameters, Row | null> => {
      const statement = db.prepare<Parameters, Row>(text);
      return (...parameters) => statement.get(...parameters) ?? null;
    },
    /** Returns all rows. */
    all: <Parameters extends unknown[], Row>(text: string): Statement<Parameters, Row[]> => {
      const statement = db.prepare<Parameters, Row>(text);
      return (...parameters) => statement.all(...parameters);
    },
    /** Returns the first column of the first row; null: it is NULL, or there is no row. */
    value: <Parameters extends unknown[], Value>(text: string): Statement<Parameters, Value | null> => {
      const statement = db.prepare<Parameters, Value>(text).pluck();
      return (...parameters) => statement.get(...parameters) ?? null;
    },
    /** Returns the first column of all rows. */
    values: <Parameters extends unknown[], Value>(text: string): Statement<Parameters, Value[]> => {
      const statement = db.prepare<Parameters, Value>(text).pluck();
      return (...parameters) => statement.all(...parameters);
    },
    /** Returns the first column of the first row, a number; 0: it is NULL, or there is no row. */
    count: <Parameters extends unknown[] = []>(text: string): Statement<Parameters, number> => {
      const statement = db.prepare<Parameters, number | null>(text).pluck();
      return (...parameters) => statement.get(...parameters) ?? 0;
    },
    /** Returns whether there is a row. */
    exists: <Parameters extends unknown[]>(text: string): Statement<Parameters, boolean> => {
      const statement = db.prepare<Parameters>(text);
      return (...parameters) => statement.get(...parameters) !== undefined;
    },
  };
}

function columnsOf(db: Database, table: string): { name: string; type: string; pk: number }[] {
  const columns = db.prepare<[string], { name: string; type: string; pk: number }>(
    'SELECT name, type, pk FROM pragma_table_info(?)',
  );
  return columns.all(table);
}

/** The columns of an INSERT with a parameter of the same name for each: `(a, b) VALUES (@a, @b)`. */
export function columnValues(columns: string): string {
  const names = columns.split(/,\s*/);
  return `(${names.join(', ')}) VALUES (${names.map((name) => `@${name}`).join(', ')})`;
}

/** The columns of an UPDATE with a parameter of the same name for each: `a = @a, b = @b`. */
export function columnsSet(columns: string): string {
  return columns
    .split(/,\s*/)
    .map((name) => `${name} = @${name}`)
    .join(', ');
}
