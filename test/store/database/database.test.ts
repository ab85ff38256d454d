import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { unpackContent } from '../../../src/mail/stored-content.ts';
import { DATABASE_FILE, lockDaemon, openDatabase } from '../../../src/store/database/database.ts';
import { messageTable } from '../../../src/store/messages/messages.ts';
import { schemaOf } from '../../support/schema.ts';
import { temporaryDir } from '../../support/store.ts';

const SOURCES = new URL('../../../src/', import.meta.url);

describe('the database', () => {
  it('is opened by one module only, which references all objects of better-sqlite3', () => {
    const creates = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter(
      (file) =>
        file.endsWith('.ts') &&
        /new Sqlite\(|\.(?:iterate|pragma)\(/.test(readFileSync(new URL(file, SOURCES), 'utf8')),
    );
    // The objects of the flush thread are variables of its module.
    expect(creates.toSorted()).toEqual(['store/database/connection.ts', 'store/database/flush-thread.ts']);
  });

  it('has the schema of schema.sql', () => {
    const dir = temporaryDir();
    openDatabase(dir).close();
    const golden = readFileSync(new URL('../schema.sql', import.meta.url), 'utf8');
    expect(schemaOf(join(dir, DATABASE_FILE))).toBe(golden);
  });

  it('is readable by its owner only', () => {
    const dir = temporaryDir();
    openDatabase(dir).close();
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    expect(statSync(join(dir, DATABASE_FILE)).mode & 0o777).toBe(0o600);
  });

  it('flushes every commit to disk', () => {
    const db = openDatabase(temporaryDir());
    expect(db.prepare('PRAGMA journal_mode').pluck().get()).toBe('wal');
    expect(db.prepare('PRAGMA synchronous').pluck().get()).toBe(2);
    expect(db.prepare('PRAGMA foreign_keys').pluck().get()).toBe(1);
    db.close();
  });

  it('can return free pages to the file system', () => {
    const db = openDatabase(temporaryDir());
    expect(db.prepare('PRAGMA auto_vacuum').pluck().get()).toBe(2);
    db.close();
  });

  it('rejects a database that is newer than the program', () => {
    const dir = temporaryDir();
    const db = openDatabase(dir);
    db.exec('PRAGMA user_version = 9000');
    db.close();
    expect(() => openDatabase(dir)).toThrow(
      /has schema 9000, this program \(Postrider \d[^)]*\) knows schemas up to \d+: Postrider \d\S* migrated it\. Install/,
    );
  });

  it.each([
    ['cannot be created', '/proc/postrider/data', /data\.dir \/proc\/postrider\/data cannot be used: ENOENT/],
    ['is a file', '/dev/null/data', /data\.dir \/dev\/null\/data cannot be used: ENOTDIR/],
  ])('throws StoreFault for a directory that %s', (_, dir, words) => {
    expect(() => openDatabase(dir)).toThrow(words);
  });

  it('creates missing directories', () => {
    const dir = join(temporaryDir(), 'a', 'b');
    openDatabase(dir).close();
    expect(readdirSync(dir)).toContain(DATABASE_FILE);
  });

  it('removes resolved addresses from the errors of webhook calls that older programs recorded', () => {
    const db = openDatabase(temporaryDir());
    const insert = db.prepare(
      `INSERT INTO webhook_deliveries (webhook, event_seq, delivery_id, state, attempts, failures, due_at, response_code, error, created_at)
       VALUES (1, ?, ?, 'failed', 1, 1, 0, ?, ?, 0)`,
    );
    const errors: [number | null, string | null, string | null][] = [
      [null, 'connect ECONNREFUSED 10.0.0.5:8080', 'the call failed'],
      [null, 'hooks.example leads to 10.0.0.5, which may not be called', 'the call failed'],
      [null, 'no answer within 15 s', 'no answer within 15 s'],
      [null, 'the event is past its retention', 'the event is past its retention'],
      [500, 'the endpoint answered 500', 'the endpoint answered 500'],
      [200, null, null],
    ];
    for (const [seq, [status, error]] of errors.entries()) insert.run(seq, `whd_${seq}`, status, error);
    const file = new URL('../../../src/store/migrations/0013-neutral-webhook-errors.sql', import.meta.url);
    db.exec(readFileSync(file, 'utf8'));
    const kept = db.prepare('SELECT error FROM webhook_deliveries ORDER BY event_seq').pluck().all();
    db.close();
    expect(kept).toEqual(errors.map(([, , after]) => after));
  });

  it('reads contents of older programs, which are not deflated', () => {
    const dir = temporaryDir();
    const file = join(dir, DATABASE_FILE);
    const old = new Sqlite(file);
    const migrations = new URL('../../../src/store/migrations/', import.meta.url);
    for (const name of readdirSync(migrations).sort()) {
      if (Number(name.slice(0, 4)) > 16) break;
      const sql = readFileSync(new URL(name, migrations), 'utf8');
      old.unsafeMode(sql.includes('writable_schema'));
      old.exec(sql);
      old.exec(`PRAGMA user_version = ${Number(name.slice(0, 4))}`);
    }
    const json = JSON.stringify({ subject: 'Bücher', html: '<p>Hi</p>' });
    const insert = old.prepare('INSERT INTO contents (body, created_at) VALUES (?, 1)');
    const id = Number(insert.run(json).lastInsertRowid);
    old.close();
    const db = openDatabase(dir);
    const content = messageTable(db).content(id);
    db.close();
    expect(content).toMatchObject({ encoding: 'json', size: Buffer.byteLength(json), shared_id: null });
    expect(content && unpackContent(content)).toBe(json);
  });

  it('is locked by one daemon at a time', () => {
    const dir = temporaryDir();
    const lock = lockDaemon(dir);
    expect(() => lockDaemon(dir)).toThrow(/Another postrider daemon is running/);
    lock.release();
    lockDaemon(dir).release();
    expect(readdirSync(dir)).toContain('daemon.lock');
  });
});
