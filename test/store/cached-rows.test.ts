import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AccountRow } from '../../src/store/accounts.ts';
import { cachedLookup } from '../../src/store/cached-rows.ts';
import { type Database, openDatabase } from '../../src/store/database/database.ts';
import { createTables, type Tables } from '../../src/store/tables.ts';

const ACCOUNT: AccountRow = {
  account_id: 'acct_1',
  name: 'before',
  status: 'active',
  company_name: null,
  company_address: null,
  abuse_email: null,
  moved_at: null,
  logo_url: null,
  created_at: 1,
  updated_at: 1,
};

describe('a cached row', () => {
  let dir: string;
  let db: Database;
  let tables: Tables;
  let other: Database;
  let otherTables: Tables;
  /** Executions of the statement behind `nameOf`. */
  let reads: number;
  let nameOf: (id: string) => string | undefined;

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'postrider-cached-'));
    db = openDatabase(dir);
    tables = createTables(db);
    other = openDatabase(dir);
    otherTables = createTables(other);
    tables.accounts.insert(ACCOUNT);
    const read = db.prepare<[string], { name: string }>('SELECT name FROM accounts WHERE account_id = ?');
    reads = 0;
    nameOf = cachedLookup(db, (id: string) => {
      reads++;
      return read.get(id)?.name;
    });
  });
  afterEach(() => {
    db.close();
    other.close();
    rmSync(dir, { recursive: true });
  });

  const rename = (of: Tables, name: string) => of.accounts.update({ ...ACCOUNT, name });
  const turn = () => new Promise(setImmediate);

  it('is read once', async () => {
    expect(nameOf('acct_1')).toBe('before');
    await turn();
    expect(nameOf('acct_1')).toBe('before');
    expect(reads).toBe(1);
  });

  it('is read again after this connection changed it', () => {
    expect(nameOf('acct_1')).toBe('before');
    rename(tables, 'after');
    expect(nameOf('acct_1')).toBe('after');
    expect(tables.accounts.get('acct_1')?.name).toBe('after');
  });

  it('is not read again after a message of a sequence was counted', () => {
    nameOf('acct_1');
    tables.campaignCounts.add('seq_1_a_1_0', 0, 'delivered', 1);
    tables.campaignCounts.endUnit(true);
    tables.campaignCounts.write();
    nameOf('acct_1');
    expect(reads).toBe(1);
  });

  it('is read again in the next turn after another connection changed it', async () => {
    expect(nameOf('acct_1')).toBe('before');
    rename(otherTables, 'after');
    await turn();
    expect(nameOf('acct_1')).toBe('after');
  });

  it('is read again in a transaction that began after another connection changed it', () => {
    expect(nameOf('acct_1')).toBe('before');
    rename(otherTables, 'after');
    db.exec('BEGIN IMMEDIATE');
    expect(nameOf('acct_1')).toBe('after');
    db.exec('COMMIT');
    expect(nameOf('acct_1')).toBe('after');
  });

  it('has its former value after a rollback of the transaction or of a savepoint', async () => {
    expect(nameOf('acct_1')).toBe('before');
    db.exec('BEGIN IMMEDIATE');
    db.exec('SAVEPOINT unit');
    rename(tables, 'undone');
    expect(nameOf('acct_1')).toBe('undone');
    db.exec('ROLLBACK TO unit');
    expect(nameOf('acct_1')).toBe('before');
    rename(tables, 'undone, too');
    expect(nameOf('acct_1')).toBe('undone, too');
    db.exec('ROLLBACK');
    expect(nameOf('acct_1')).toBe('before');
    await turn();
    expect(nameOf('acct_1')).toBe('before');
  });

  it('has its former value in the transaction after one that was rolled back', () => {
    db.exec('BEGIN IMMEDIATE');
    rename(tables, 'undone');
    expect(nameOf('acct_1')).toBe('undone');
    db.exec('ROLLBACK');
    db.exec('BEGIN IMMEDIATE');
    expect(nameOf('acct_1')).toBe('before');
    db.exec('COMMIT');
  });

  it('is found after it was inserted, although it was missing before', () => {
    expect(tables.accounts.get('acct_2')).toBeNull();
    tables.accounts.insert({ ...ACCOUNT, account_id: 'acct_2' });
    expect(tables.accounts.get('acct_2')?.name).toBe('before');
    expect(nameOf('acct_3')).toBeUndefined();
    expect(nameOf('acct_3')).toBeUndefined();
    expect(reads).toBe(2);
  });

  it('cannot be changed by a caller', () => {
    const row = tables.accounts.get('acct_1');
    expect(() => Object.assign(row ?? {}, { name: 'changed' })).toThrow(TypeError);
    expect(tables.accounts.get('acct_1')?.name).toBe('before');
  });

  it('is one of a bounded number', () => {
    for (let number = 0; number < 2500; number++) {
      tables.accounts.insert({ ...ACCOUNT, account_id: `many_${number}` });
    }
    for (let number = 0; number < 2500; number++) nameOf(`many_${number}`);
    expect(reads).toBe(2500);
    nameOf('many_2499');
    expect(reads).toBe(2500);
    nameOf('many_0');
    expect(reads).toBe(2501);
  });
});
