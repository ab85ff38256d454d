import { createHash } from 'node:crypto';
import { openConnection } from '../../../src/store/database/connection.ts';
import type { Migration } from '../../../src/store/migrate/migrations.ts';
import type { Rebuild } from '../../../src/store/migrate/rebuild-plan.ts';

/** A small schema with every kind of table that a rebuild copies, and the same after a change. */
const OLD_TABLES = `
CREATE TABLE owners (owner TEXT PRIMARY KEY, name TEXT NOT NULL) STRICT;
CREATE TABLE letters (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL REFERENCES owners (owner), kind TEXT NOT NULL, body TEXT
) STRICT;
CREATE TABLE tries (
  letter INTEGER NOT NULL REFERENCES letters (seq), n INTEGER NOT NULL, report TEXT NOT NULL, PRIMARY KEY (letter, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE removed (x INTEGER) STRICT;
CREATE VIRTUAL TABLE words USING fts5(word, content = '', columnsize = 0);
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
`;
const NEW_TABLES = `
CREATE TABLE owners (number INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL UNIQUE, name TEXT NOT NULL) STRICT;
CREATE TABLE letters (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL REFERENCES owners (number), kind INTEGER NOT NULL,
  body TEXT, fresh INTEGER NOT NULL DEFAULT 7
) STRICT;
CREATE TABLE tries (letter INTEGER PRIMARY KEY REFERENCES letters (seq), reports TEXT NOT NULL) STRICT;
CREATE TABLE added (x INTEGER) STRICT;
CREATE VIRTUAL TABLE words USING fts5(word, content = '', columnsize = 0);
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
`;
const INDEXES = `
CREATE INDEX letters_by_owner ON letters (owner, seq);
CREATE INDEX letters_by_kind ON letters (kind) WHERE body IS NOT NULL;
CREATE TRIGGER letters_deleted AFTER DELETE ON letters BEGIN DELETE FROM tries WHERE letter = OLD.seq; END;
`;

export const CHANGED: Rebuild = {
  version: 3,
  name: 'changed',
  from: 1,
  tables: NEW_TABLES,
  indexes: INDEXES,
  autoVacuum: 'incremental',
  dropped: ['removed'],
  functions: { shout: (text) => (typeof text === 'string' ? text.toUpperCase() : text) },
  copies: () => ({
    letters: {
      columns: {
        owner: 'a.number',
        kind: "CASE o.kind WHEN 'note' THEN 1 ELSE 2 END",
        body: 'shout(o.body)',
      },
      join: 'JOIN main.owners AS a ON a.owner = o.owner',
    },
    tries: {
      from: 'tries',
      key: ['letter'],
      into: ['letter', 'reports'],
      select: (range) =>
        `SELECT o.letter, json_group_array(o.report ORDER BY o.n) FROM old.tries AS o WHERE ${range} GROUP BY o.letter`,
      count: 'SELECT count(DISTINCT letter) FROM old.tries',
    },
  }),
};

export const IDENTITY: Rebuild = {
  version: 3,
  name: 'identity',
  from: 1,
  tables: OLD_TABLES,
  indexes: INDEXES,
};

/** Two migrations in place, of which the second is replaced by the rebuild. */
export function migrationsWith(rebuild: Rebuild): Migration[] {
  return [
    { kind: 'sql', version: 1, name: 'first', sql: OLD_TABLES + INDEXES },
    { kind: 'sql', version: 2, name: 'second', sql: 'CREATE INDEX letters_by_body ON letters (body)' },
    { kind: 'rebuild', version: rebuild.version, name: rebuild.name, rebuild },
    { kind: 'sql', version: 4, name: 'fourth', sql: 'CREATE INDEX owners_by_name ON owners (name)' },
  ];
}

/** `rebuild`, or `in place`: the same without the rebuild. */
export function migrationsFor(kind: string): Migration[] {
  return migrationsWith(CHANGED).filter((migration) => kind === 'rebuild' || migration.kind === 'sql');
}

export const LETTERS = 1000;
export const DELETED = 40;

/** A database of schema 1, in WAL mode and with a log that is not yet part of the file. */
export function createOldDatabase(file: string): () => void {
  const db = openConnection(file, {});
  db.exec('PRAGMA journal_mode = WAL');
  db.exec('PRAGMA wal_autocheckpoint = 0');
  db.exec(OLD_TABLES + INDEXES);
  db.exec('PRAGMA user_version = 1');
  db.exec("INSERT INTO owners VALUES ('a', 'Ada'), ('b', 'Babbage')");
  db.exec(`INSERT INTO letters (owner, kind, body)
    WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < ${LETTERS})
    SELECT iif(x % 3 = 0, 'a', 'b'), iif(x % 5 = 0, 'note', 'card'), 'body ' || x FROM c`);
  db.exec(
    `INSERT INTO tries SELECT seq, n.value, 'try ' || n.value FROM letters, json_each('[1, 2, 3]') AS n`,
  );
  // The last numbers become free, and must not be assigned again.
  db.exec(`DELETE FROM tries WHERE letter > ${LETTERS - DELETED}`);
  db.exec(`DELETE FROM letters WHERE seq > ${LETTERS - DELETED}`);
  db.exec('INSERT INTO removed VALUES (1)');
  return () => db.close();
}

/** A fingerprint of all rows of `tables`. */
export function rowsOf(file: string, tables: readonly string[]): string {
  const db = openConnection(file, { fileMustExist: true });
  const hash = createHash('sha256');
  for (const table of tables) {
    const rows = db.prepare(`SELECT * FROM ${table}`).all();
    hash.update(JSON.stringify(rows.map((row) => JSON.stringify(row)).sort()));
  }
  db.close();
  return hash.digest('hex');
}
