import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, it } from 'vitest';
import { DATABASE_FILE, openDatabase } from '../../src/store/database/database.ts';
import { createTables } from '../../src/store/tables.ts';
import { temporaryDir } from '../support/store.ts';

it('numbers the suppressions of an older database in order', () => {
  const dir = temporaryDir();
  const old = new Sqlite(join(dir, DATABASE_FILE));
  old.exec(readFileSync(new URL('../../src/store/migrations/0001-foundation.sql', import.meta.url), 'utf8'));
  old.exec('PRAGMA user_version = 1');
  const insert = old.prepare(`
    INSERT INTO suppressions (account_id, recipient_hash, stream, reason, email, message_seq, created_at)
    VALUES ('acct_one', ?, 'all', 'manual', ?, NULL, ?)`);
  insert.run('email_b', 'b@example.net', 2000);
  insert.run('email_a', 'a@example.net', 3000);
  insert.run('email_c', null, 1000);
  old.close();

  const db = openDatabase(dir);
  const { rows } = createTables(db).suppressions.list({ accountId: 'acct_one', beforeSeq: null, limit: 10 });
  db.close();
  expect(rows.map(({ email, created_at }) => [email, created_at])).toEqual([
    ['a@example.net', 3000],
    ['b@example.net', 2000],
    [null, 1000],
  ]);
});
