import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openConnection } from '../../../src/store/database/connection.ts';
import { type Database, openDatabase } from '../../../src/store/database/database.ts';
import { clearSlack, openSlackCleaner } from '../../../src/store/maintenance/slack.ts';
import { runSlackPass } from '../../../src/store/maintenance/slack-pass.ts';
import { builtThread } from '../../support/built-thread.ts';
import { temporaryDir } from '../../support/store.ts';

/*
 * Copies of deleted rows in the unused space of pages: rows are inserted in a scattered order, so that pages are split
 * and rows distributed over neighbors, and some are then deleted. `secure_delete` is on throughout.
 */
const MARKER = 'erased-person-';
const ROWS = 4000;

function open(autoVacuum: 'NONE' | 'INCREMENTAL' = 'NONE') {
  const dir = temporaryDir();
  const db = openDatabase(dir, { busyTimeoutMs: 0 });
  db.exec(`PRAGMA auto_vacuum = ${autoVacuum}`);
  db.exec('VACUUM');
  onTestFinished(() => void db.close());
  return { db, dir };
}

function fill(db: Database): void {
  db.exec('CREATE TABLE sample_rows (n INTEGER PRIMARY KEY, name TEXT NOT NULL, note TEXT NOT NULL) STRICT');
  db.exec('CREATE INDEX people_by_name ON sample_rows (name)');
  const insert = db.prepare<[number, string, string]>('INSERT INTO sample_rows VALUES (?, ?, ?)');
  db.exec('BEGIN');
  for (let n = 0; n < ROWS; n++) {
    // 2,417 has no divisor in common with 4,000: each number once, scattered.
    const scattered = (n * 2417) % ROWS;
    const name = scattered % 4 === 0 ? `${MARKER}${scattered}` : `stays-${scattered}`;
    insert.run(scattered, name, 'x'.repeat(scattered % 150));
  }
  db.exec('COMMIT');
  db.exec(`DELETE FROM sample_rows WHERE n % 4 = 0`);
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
}

function traces(dir: string): number {
  return readdirSync(dir)
    .filter((name) => name.startsWith('postrider.db'))
    .map((name) => readFileSync(join(dir, name), 'latin1').split(MARKER).length - 1)
    .reduce((sum, count) => sum + count, 0);
}

function check(db: Database): void {
  expect(db.prepare<[], string>('PRAGMA integrity_check').pluck().all()).toEqual(['ok']);
  const sum = db.prepare<[], object>(
    'SELECT count(*) AS rows, count(DISTINCT name) AS names, sum(length(note)) AS notes FROM sample_rows WHERE n < 4000',
  );
  const numbers = Array.from({ length: ROWS }, (_, n) => n).filter((n) => n % 4 !== 0);
  expect(sum.get()).toEqual({
    rows: numbers.length,
    names: numbers.length,
    notes: numbers.reduce((notes, n) => notes + (n % 150), 0),
  });
}

const KILLED_PASS = fileURLToPath(new URL('slack-kill-process.ts', import.meta.url));

describe('clearing unused space', () => {
  it.each([1, 20])('is completed after a restart when it was killed in write %i', async (killedAt) => {
    const { db, dir } = open('INCREMENTAL');
    fill(db);
    const before = readFileSync(db.name);
    const pass = spawn(
      process.execPath,
      ['--import', import.meta.resolve('tsx'), KILLED_PASS, db.name, String(killedAt)],
      { stdio: 'inherit' },
    );
    const [, signal] = await once(pass, 'exit');
    expect(signal).toBe('SIGKILL');
    check(db);
    expect(readFileSync(db.name).equals(before)).toBe(false);
    expect(traces(dir)).toBeGreaterThan(0);
    expect(await runSlackPass(db.name)).toMatchObject({ outcome: 'cleared' });
    expect(traces(dir)).toBe(0);
    check(db);
  });

  it.each(['NONE', 'INCREMENTAL'] as const)(
    'leaves nothing of deleted rows, and the others as they were (auto_vacuum %s)',
    async (autoVacuum) => {
      const { db, dir } = open(autoVacuum);
      fill(db);
      expect(traces(dir)).toBeGreaterThan(0);
      expect(await runSlackPass(db.name)).toMatchObject({ outcome: 'cleared' });
      expect(traces(dir)).toBe(0);
      check(db);
      const again = await runSlackPass(db.name);
      expect(again.pages).toBe(0);
    },
  );

  it('makes other connections drop their cached pages', async () => {
    const { db, dir } = open();
    fill(db);
    const read = db.prepare('SELECT sum(length(name) + length(note)) FROM sample_rows');
    read.all();
    await runSlackPass(db.name);
    // Writes every page again, from the cache if it is there.
    db.exec("UPDATE sample_rows SET note = replace(note, 'x', 'y'), name = upper(name)");
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    expect(traces(dir)).toBe(0);
    expect(db.prepare('PRAGMA integrity_check').pluck().all()).toEqual(['ok']);
  });

  it('makes other connections read changed pages after every batch, also in a file of one batch', () => {
    const { db } = open();
    fill(db);
    const cleaner = openSlackCleaner(db.name);
    onTestFinished(() => cleaner.close());
    // `data_version` changes when another connection has committed.
    const version = db.prepare<[], number>('PRAGMA data_version').pluck();
    const log = () => statSync(`${db.name}-wal`).size;
    for (let batches = 1; batches <= 3; batches++) {
      // Moves rows, so that pages have unused space to clear again.
      db.exec(`DELETE FROM sample_rows WHERE n % 40 = ${batches}`);
      db.exec(
        'UPDATE sample_rows SET note = note || note WHERE n % 7 = 0; UPDATE sample_rows SET note = substr(note, 1, 20)',
      );
      expect(cleaner.begin()).toBe(true);
      const before = version.get();
      const batch = cleaner.clear(1);
      expect(batch).toMatchObject({ kind: 'cleared', next: null });
      expect(batch).not.toMatchObject({ pages: 0 });
      expect(log()).toBeGreaterThan(0);
      expect(version.get()).not.toBe(before);
    }
  });

  it('runs in a thread while other connections write', async () => {
    const { db, dir } = open('INCREMENTAL');
    fill(db);
    const insert = db.prepare<[number, string, string]>('INSERT INTO sample_rows VALUES (?, ?, ?)');
    const through = new AbortController();
    let written = 0;
    const write = async () => {
      for (; !through.signal.aborted; await sleep(5)) {
        try {
          insert.run(ROWS + written, `new-${written}`, 'z'.repeat(written % 300));
          written++;
        } catch (error) {
          // The write lock is held for a batch.
          expect(String(error)).toContain('locked');
        }
      }
    };
    const writing = write();
    const script = builtThread('store/maintenance/slack-thread.ts');
    const { outcome } = await runSlackPass(db.name, { script });
    through.abort();
    await writing;
    expect(outcome).toBe('cleared');
    expect(written).toBeGreaterThan(0);
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    expect(traces(dir)).toBe(0);
    check(db);
    expect(db.prepare('SELECT count(*) FROM sample_rows WHERE n >= ?').pluck().get(ROWS)).toBe(written);
  });

  it('is busy while another connection has the write lock or reads an old state', () => {
    const { db, dir } = open();
    fill(db);
    const cleaner = openSlackCleaner(db.name);
    onTestFinished(() => cleaner.close());
    db.exec('BEGIN IMMEDIATE');
    expect(cleaner.clear(1)).toEqual({ kind: 'busy' });
    db.exec('ROLLBACK');
    const reader = openDatabase(dir);
    onTestFinished(() => void reader.close());
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM sample_rows').get();
    expect(cleaner.begin()).toBe(true);
    db.exec("UPDATE sample_rows SET note = '' WHERE n = 1");
    db.exec("UPDATE sample_rows SET note = 'x' WHERE n = 1");
    expect(cleaner.begin()).toBe(false);
    expect(cleaner.clear(1)).toEqual({ kind: 'busy' });
    expect(cleaner.end()).toBe(false);
    reader.exec('COMMIT');
    expect(cleaner.clear(1)).toMatchObject({ kind: 'cleared', next: null });
    expect(cleaner.end()).toBe(true);
    check(db);
  });

  it('stops between two batches', async () => {
    const { db } = open();
    fill(db);
    const { outcome } = await runSlackPass(db.name, { signal: AbortSignal.abort() });
    expect(outcome).toBe('stopped');
  });
});

describe('a page', () => {
  const leaf = (change: (page: Buffer) => void = () => {}) => {
    const page = Buffer.alloc(512, 7);
    page[0] = 13;
    page.writeUInt16BE(400, 1);
    page.writeUInt16BE(1, 3);
    page.writeUInt16BE(390, 5);
    page[7] = 0;
    page.writeUInt16BE(500, 8);
    page.writeUInt16BE(0, 400);
    page.writeUInt16BE(20, 402);
    change(page);
    return page;
  };

  it('is cleared between the cell pointers and the cells, and inside free blocks', () => {
    const page = leaf();
    const expected = leaf();
    expected.fill(0, 10, 390);
    expected.fill(0, 404, 420);
    expect(clearSlack(page, 0, 512)).toBe(true);
    expect(page.equals(expected)).toBe(true);
    expect(clearSlack(page, 0, 512)).toBe(false);
  });

  it.each<[string, (page: Buffer) => void]>([
    ['does not belong to a b-tree', (page) => page.writeUInt8(0, 0)],
    ['has cells behind its end', (page) => page.writeUInt16BE(600, 5)],
    ['has more pointers than space', (page) => page.writeUInt16BE(300, 3)],
    ['points before its cells', (page) => page.writeUInt16BE(100, 8)],
    ['has a free block before its cells', (page) => page.writeUInt16BE(50, 1)],
    ['has a free block that leaves it', (page) => page.writeUInt16BE(200, 402)],
    ['has free blocks out of order', (page) => page.writeUInt16BE(399, 400)],
  ])('is not changed when it %s', (_, change) => {
    const page = leaf(change);
    expect(clearSlack(page, 0, 512)).toBe(false);
    expect(page.equals(leaf(change))).toBe(true);
  });
});

describe('passes during a random workload', () => {
  const STRESS = fileURLToPath(new URL('slack-stress-process.ts', import.meta.url));

  interface Entry {
    kind: 'put' | 'remove';
    n: number;
    size: number;
    filling: number;
  }

  /** The rows according to the journal of the committed transactions. */
  function expectedRows(journal: readonly Entry[]): Map<number, { size: number; filling: number }> {
    const rows = new Map<number, { size: number; filling: number }>();
    for (const { kind, n, size, filling } of journal) {
      if (kind === 'put') rows.set(n, { size, filling });
      else for (let gone = n; gone <= n + size; gone++) rows.delete(gone);
    }
    return rows;
  }

  it.each([
    { seed: 11, pageSize: 512, isLink: false, isKilled: false },
    { seed: 12, pageSize: 4096, isLink: false, isKilled: true },
    { seed: 13, pageSize: 1024, isLink: true, isKilled: false },
  ])('change no row (pages of $pageSize, symbolic link: $isLink, kill -9: $isKilled)', async (options) => {
    const { seed, pageSize, isLink, isKilled } = options;
    const dir = temporaryDir();
    const file = join(dir, 'real.db');
    const db = openConnection(file, { timeout: 5000 });
    onTestFinished(() => void db.close());
    db.exec(`PRAGMA page_size = ${pageSize}; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL`);
    db.exec('CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID');
    db.exec('CREATE TABLE rows (n INTEGER PRIMARY KEY, name TEXT NOT NULL, body BLOB NOT NULL) STRICT');
    db.exec('CREATE INDEX rows_by_name ON rows (name, n)');
    db.exec(`CREATE TABLE journal (
      seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, n INTEGER NOT NULL, size INTEGER NOT NULL, filling INTEGER NOT NULL
    ) STRICT`);
    const link = join(dir, 'link.db');
    if (isLink) symlinkSync(file, link);
    // Reads while pages are cleared, and keeps pages in its cache.
    const reading = db.prepare<[], number>('SELECT sum(length(body) + length(name)) FROM rows').pluck();

    const writer = spawn(
      process.execPath,
      ['--import', import.meta.resolve('tsx'), STRESS, file, String(seed), isKilled ? '1000000' : '1000'],
      { stdio: 'inherit' },
    );
    onTestFinished(() => void writer.kill('SIGKILL'));
    const ended = once(writer, 'exit').then(([code, signal]) => code ?? signal);
    const isWriting = () => writer.exitCode === null && writer.signalCode === null;
    const cleaner = openSlackCleaner(isLink ? link : file);
    onTestFinished(() => cleaner.close());
    let cleared = 0;
    while (isWriting()) {
      if (isKilled && cleared > 50) writer.kill('SIGKILL');
      for (let from: number | null = 1; from !== null && isWriting(); ) {
        const batch = cleaner.clear(from);
        if (batch.kind === 'cleared') {
          cleared += batch.pages;
          from = batch.next;
        }
        reading.get();
        await sleep(1);
      }
    }
    expect(await ended).toBe(isKilled ? 'SIGKILL' : 0);
    expect(cleared).toBeGreaterThan(0);

    expect(db.prepare('PRAGMA integrity_check').pluck().all()).toEqual(['ok']);
    const journal = db.prepare<[], Entry>('SELECT * FROM journal ORDER BY seq').all();
    expect(journal.length).toBeGreaterThan(100);
    const rows = db.prepare<[], { n: number; name: string; body: Buffer }>('SELECT * FROM rows').all();
    const expected = expectedRows(journal);
    expect(rows.map(({ n }) => n)).toEqual([...expected.keys()].toSorted((one, two) => one - two));
    for (const { n, name, body } of rows) {
      const { size = 0, filling = 0 } = expected.get(n) ?? {};
      if (name !== `${n}-${size}` || !body.equals(Buffer.alloc(size, filling)))
        expect.fail(`row ${n} differs`);
    }
  });
});

it('rejects when the thread fails between two requests', async () => {
  const { db } = open();
  const code = `
    import { parentPort } from 'node:worker_threads';
    parentPort.once('message', () => {
      parentPort.postMessage(false);
      setImmediate(() => { throw new Error('failed while idle'); });
    });`;
  const script = new URL(`data:text/javascript,${encodeURIComponent(code)}`);
  await expect(runSlackPass(db.name, { script })).rejects.toThrow(
    'the thread that clears unused space failed',
  );
});
