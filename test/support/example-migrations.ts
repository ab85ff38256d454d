import type { Migration } from '../../src/store/migrate/migrations.ts';

/*
 * Migrations of a program that does not exist yet: in place, and one that writes a table anew. Their numbers are above
 * those of the program.
 */

export const IN_PLACE: Migration = {
  version: 8001,
  name: 'in-place',
  sql: `ALTER TABLE accounts ADD COLUMN color TEXT;
    UPDATE accounts SET color = 'blue';
    CREATE INDEX accounts_by_color ON accounts (color)`,
};

/** A constraint of a table changes: https://sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema Changes". */
export const REBUILD: Migration = {
  version: 8002,
  name: 'rebuild',
  sql: `CREATE TABLE strikes_next (
      account_id     TEXT NOT NULL REFERENCES accounts (account_id),
      recipient_hash TEXT NOT NULL,
      kind           TEXT NOT NULL CHECK (kind IN ('soft', 'unproven', 'hard')),
      at             INTEGER NOT NULL,
      PRIMARY KEY (account_id, recipient_hash, kind, at)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO strikes_next SELECT account_id, recipient_hash, kind, at + 1 FROM strikes;
    DROP TABLE strikes;
    ALTER TABLE strikes_next RENAME TO strikes;
    CREATE INDEX strikes_by_time ON strikes (at)`,
};
