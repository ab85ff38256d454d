import { execFileSync } from 'node:child_process';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isRefusal, refuse } from '../../../src/core/refusal.ts';
import { type Database, openDatabase } from '../../../src/store/database/database.ts';
import { StoreUnavailable, storageFailure } from '../../../src/store/database/failure.ts';
import { MAX_FRAMES, openWriteAheadLog } from '../../../src/store/database/write-ahead-log.ts';
import { createWriter } from '../../../src/store/database/writer.ts';
import { createTables } from '../../../src/store/tables.ts';
import { builtThread } from '../../support/built-thread.ts';
import { startStore } from '../../support/store.ts';

/** Waits long enough for threads on a busy machine. */

/** Commit frames in the write-ahead log: those that name a database size (https://sqlite.org/fileformat2.html §4.1). */
function commitsInWal(dir: string): number {
  const wal = readFileSync(join(dir, 'postrider.db-wal'));
  const frame = 24 + wal.readUInt32BE(8);
  let commits = 0;
  for (let at = 32; at + frame <= wal.length; at += frame) if (wal.readUInt32BE(at + 4) > 0) commits++;
  return commits;
}

describe('the group-commit writer', () => {
  it('commits units that arrive together in one commit', async () => {
    const { dir, writer } = startStore();
    const before = commitsInWal(dir);
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        writer.run((tables) => {
          tables.settings.put(`name ${n}`, String(n));
          return n;
        }),
      ),
    );
    expect(results).toEqual(Array.from({ length: 50 }, (_, n) => n));
    expect(commitsInWal(dir) - before).toBe(1);
  });

  it('calls what units ask for after their commit, once for each subject, and not for units that are undone', async () => {
    const { writer, tables } = startStore();
    const called: unknown[][] = [];
    const unit = (subject: string, result: 'stored' | 'refused' | 'thrown') =>
      writer.run((tx) => {
        tx.settings.put(`name ${subject}`, result);
        for (let n = 0; n < 2; n++)
          writer.afterCommit(subject, () => called.push([subject, tables.settings.get(`name ${subject}`)]));
        if (result === 'thrown') throw new Error('a defect');
        return result === 'refused' ? refuse('NOT_FOUND', 'There is none') : null;
      });
    const units = [unit('a', 'stored'), unit('b', 'refused'), unit('c', 'thrown')];
    expect(called).toEqual([]);
    await Promise.allSettled(units);
    expect(called).toEqual([['a', 'stored']]);
  });

  it('splits units that take long into several commits, in order', async () => {
    const { dir, writer } = startStore();
    const before = commitsInWal(dir);
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        writer.run((tables) => {
          order.push(n);
          // By the clock, like the limit of a group: CPU time of the process includes its other threads.
          const end = performance.now() + 15;
          while (performance.now() < end) tables.settings.put(`name ${n}`, String(n));
        }),
      ),
    );
    expect(order).toEqual([0, 1, 2, 3, 4, 5]);
    expect(commitsInWal(dir) - before).toBe(6);
  });

  it('undoes only the unit that throws', async () => {
    const { tables, writer } = startStore();
    const results = await Promise.allSettled([
      writer.run((tx) => tx.settings.put('one', '1')),
      writer.run((tx) => {
        tx.settings.put('two', '2');
        throw new Error('no');
      }),
      writer.run((tx) => tx.settings.put('three', '3')),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(['one', 'two', 'three'].map((name) => tables.settings.get(name))).toEqual(['1', null, '3']);
  });

  it('undoes a unit that returns a refusal, and resolves with it', async () => {
    const { tables, writer } = startStore();
    const result = await writer.run((tx) => {
      tx.settings.put('one', '1');
      return refuse('NOT_FOUND', 'no');
    });
    expect(isRefusal(result)).toBe(true);
    expect(tables.settings.get('one')).toBeNull();
  });

  it('resolves after the commit', async () => {
    const { db, writer } = startStore();
    await writer.run((tx) => {
      tx.settings.put('one', '1');
      expect(db.inTransaction).toBe(true);
    });
    expect(db.inTransaction).toBe(false);
  });

  it('runs more units than fit into one group, in order', async () => {
    const { writer } = startStore();
    const order: number[] = [];
    await Promise.all(Array.from({ length: 1000 }, (_, n) => writer.run(() => void order.push(n))));
    expect(order).toEqual(Array.from({ length: 1000 }, (_, n) => n));
  });

  it('rejects the whole group when the commit fails, and commits later ones', async () => {
    const { db, tables, writer } = startStore();
    db.exec('CREATE TABLE parent (id INTEGER PRIMARY KEY) STRICT');
    db.exec('CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED) STRICT');
    const results = await Promise.allSettled([
      writer.run((tx) => tx.settings.put('one', '1')),
      // With so many waiting units only CPU time ends a group.
      ...Array.from({ length: 20 }, () => writer.run(() => 0)),
      writer.run(() => void db.exec('INSERT INTO child VALUES (7)')),
    ]);
    expect(new Set(results.map(({ status }) => status))).toEqual(new Set(['rejected']));
    expect(tables.settings.get('one')).toBeNull();
    await writer.run((tx) => tx.settings.put('two', '2'));
    expect(tables.settings.get('two')).toBe('2');
  });

  it('commits waiting units when it closes, and rejects later ones', async () => {
    const { tables, writer } = startStore();
    const last = writer.run((tx) => tx.settings.put('one', '1'));
    await writer.close();
    await last;
    expect(tables.settings.get('one')).toBe('1');
    await expect(writer.run((tx) => tx.settings.get('one'))).rejects.toThrow(/closing/);
  });
});

describe('the group-commit writer with a write-ahead log', () => {
  /** Flushes end or fail when the test settles them. */
  function start() {
    const { db, tables, dir } = startStore();
    const flushes: { done(): void; fail(error: Error): void }[] = [];
    const lost: unknown[] = [];
    const flush = () =>
      new Promise<void>((resolve, reject) => {
        flushes.push({ done: resolve, fail: reject });
      });
    const writeAheadLog = {
      flush,
      isLong: () => false,
      checkpoint: async () => ({ isComplete: true }),
      close: async () => {},
    };
    const writer = createWriter(db, tables, { writeAheadLog, onLost: (error) => lost.push(error) });
    const settled: string[] = [];
    const put = (name: string) =>
      writer
        .run((tx) => tx.settings.put(name, name))
        .then(
          () => settled.push(name),
          (error: Error) => settled.push(`${name}: ${error.message}`),
        );
    const flushing = (count: number) => expect.poll(() => flushes).toHaveLength(count);
    return { dir, tables, writer, flushes, flushing, lost, settled, put };
  }
  /** Resolves in the next turn of the event loop: a unit that did not wait for the flush would have run. */
  const nextTurn = () => new Promise(setImmediate);

  it('rejects units and ends requested checkpoints once the database was taken over', async () => {
    const { db, tables } = startStore();
    const lost: unknown[] = [];
    const takenOver = new Error('taken over');
    const writeAheadLog = {
      flush: () => Promise.resolve(),
      isLong: () => false,
      checkpoint: () => Promise.resolve({ isComplete: true }),
      close: () => Promise.resolve(),
    };
    const writer = createWriter(db, tables, {
      writeAheadLog,
      superseded: () => takenOver,
      onLost: (error) => lost.push(error),
    });
    const unit = writer.run((tx) => tx.settings.put('one', 'one'));
    const checkpoint = writer.checkpoint();
    await expect(unit).rejects.toBe(takenOver);
    await checkpoint;
    await writer.close();
    expect(lost).toEqual([takenOver]);
    expect(tables.settings.get('one')).toBeNull();
  });

  it('rejects the units of one transaction when it cannot be read whether the database was taken over', async () => {
    const { db, tables } = startStore();
    const lost: unknown[] = [];
    let error: Error | null = new Error('disk I/O error');
    const writer = createWriter(db, tables, {
      superseded: () => {
        if (error !== null) throw error;
        return null;
      },
      onLost: (reason) => lost.push(reason),
    });
    await expect(writer.run((tx) => tx.settings.put('one', 'one'))).rejects.toBe(error);
    error = null;
    await writer.run((tx) => tx.settings.put('two', 'two'));
    await writer.close();
    expect([tables.settings.get('one'), tables.settings.get('two')]).toEqual([null, 'two']);
    expect(lost).toEqual([]);
  });

  it('ends after an error outside of the units, and rejects those that wait', async () => {
    const { db, tables } = startStore();
    const lost: unknown[] = [];
    const error = new Error('a metric failed');
    const waiting: Promise<unknown>[] = [];
    const writer = createWriter(db, tables, {
      observe: () => {
        waiting.push(writer.run(() => 'two').catch((reason: unknown) => reason));
        throw error;
      },
      onLost: (reason) => lost.push(reason),
    });
    // It is committed before that.
    await writer.run((tx) => tx.settings.put('one', 'one'));
    await expect.poll(() => lost).toEqual([error]);
    expect(await Promise.all(waiting)).toEqual([error]);
    await expect(writer.run(() => 'three')).rejects.toThrow(StoreUnavailable);
    await writer.close();
  });

  it('resolves after the flush, not before', async () => {
    const { tables, flushes, flushing, settled, put } = start();
    const one = put('one');
    await flushing(1);
    expect(tables.settings.get('one')).toBe('one');
    expect(settled).toEqual([]);
    flushes[0]?.done();
    await one;
    expect(settled).toEqual(['one']);
  });

  it('resolves `durable` after the flush of everything readable', async () => {
    const { writer, flushes, flushing, settled, put } = start();
    await writer.durable();
    const one = put('one');
    await flushing(1);
    const readable = writer.durable().then(() => settled.push('readable'));
    await nextTurn();
    expect(settled).toEqual([]);
    flushes[0]?.done();
    await Promise.all([one, readable]);
    expect(settled.toSorted()).toEqual(['one', 'readable']);
    await writer.durable();
  });

  it('collects the next group during a flush, and commits it in one commit', async () => {
    const { dir, tables, flushes, flushing, settled, put } = start();
    const all = [put('one')];
    await flushing(1);
    const before = commitsInWal(dir);
    all.push(put('two'));
    await nextTurn();
    all.push(put('three'));
    await nextTurn();
    expect(tables.settings.get('two')).toBeNull();
    flushes[0]?.done();
    await flushing(2);
    expect(settled).toEqual(['one']);
    expect(commitsInWal(dir) - before).toBe(1);
    flushes[1]?.done();
    await Promise.all(all);
    expect(settled).toEqual(['one', 'two', 'three']);
  });

  it('rejects all waiting units when a flush fails, and later ones', async () => {
    const { tables, writer, flushes, flushing, lost, settled, put } = start();
    const all = [put('one')];
    await flushing(1);
    all.push(put('two'));
    flushes[0]?.fail(new Error('input/output error'));
    await Promise.all(all);
    expect(settled).toEqual(['one: input/output error', 'two: input/output error']);
    expect(lost).toEqual([new Error('input/output error')]);
    expect(tables.settings.get('two')).toBeNull();
    await expect(writer.run(() => 1)).rejects.toThrow(/closing/);
  });

  it('waits for the flush when it closes', async () => {
    const { writer, flushes, flushing, settled, put } = start();
    void put('one');
    const closed = writer.close().then(() => settled.push('closed'));
    await flushing(1);
    expect(settled).toEqual([]);
    flushes[0]?.done();
    await closed;
    expect(settled).toEqual(['one', 'closed']);
  });

  it('flushes the log of a new database and of one that was closed', async () => {
    const { dir } = startStore();
    for (const round of ['first', 'second']) {
      const db = openDatabase(dir);
      const writeAheadLog = openLog(db);
      expect(db.prepare('PRAGMA synchronous').pluck().get()).toBe(1);
      await writeAheadLog.flush();
      await writeAheadLog.close();
      await expect(writeAheadLog.flush(), round).rejects.toThrow(/closed/);
      db.close();
    }
  });
});

const openLog = (db: Database) =>
  openWriteAheadLog(db, { script: builtThread('store/database/flush-thread.ts') });

describe('the flush thread', () => {
  /** Occupies the threads of libuv's pool, with more calls waiting: opening a FIFO waits for its writer. */
  function fillPool(dir: string): { opened(): number; release(): Promise<void> } {
    const fifos = Array.from({ length: 12 }, (_, n) => join(dir, `fifo-${n}`));
    execFileSync('mkfifo', fifos);
    let opened = 0;
    const all = fifos.map(async (fifo) => {
      const file = await open(fifo, 'r');
      opened++;
      await file.close();
    });
    return {
      opened: () => opened,
      release: async () => {
        // For reading and writing: does not wait for a reader.
        const ends = fifos.map((fifo) => openSync(fifo, 'r+'));
        await Promise.all(all);
        for (const end of ends) closeSync(end);
      },
    };
  }

  it('flushes while the pool of libuv is busy', async () => {
    const { dir } = startStore();
    const db = openDatabase(dir);
    const writeAheadLog = openLog(db);
    await writeAheadLog.flush();
    const pool = fillPool(dir);
    try {
      for (let n = 0; n < 5; n++) await writeAheadLog.flush();
      expect(pool.opened()).toBe(0);
    } finally {
      await pool.release();
    }
    await writeAheadLog.close();
    db.close();
  });

  it('rejects every flush after the thread has ended', async () => {
    const { dir } = startStore();
    const db = openDatabase(dir);
    const script = new URL(
      `data:text/javascript,${encodeURIComponent("import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => process.exit(3));")}`,
    );
    const writeAheadLog = openWriteAheadLog(db, { script });
    await expect(writeAheadLog.flush()).rejects.toThrow('the WAL flush thread ended with code 3');
    await expect(writeAheadLog.flush()).rejects.toThrow('the WAL flush thread ended with code 3');
    await writeAheadLog.close();
    db.close();
  });

  it('rejects with the error of the disk', async () => {
    const { dir } = startStore();
    const db = openDatabase(dir);
    const script = new URL(
      `data:text/javascript,${encodeURIComponent("import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => parentPort.postMessage({ kind: 'failed', code: 'EIO', message: 'EIO: i/o error, fdatasync' }));")}`,
    );
    const writeAheadLog = openWriteAheadLog(db, { script });
    await expect(writeAheadLog.flush()).rejects.toMatchObject({
      code: 'EIO',
      message: 'EIO: i/o error, fdatasync',
    });
    await writeAheadLog.close();
    db.close();
  });
});

describe('checkpoints', () => {
  const FRAME = 24 + 4096;

  function start(script = builtThread('store/database/flush-thread.ts')) {
    const { dir } = startStore();
    const db = openDatabase(dir, { busyTimeoutMs: 0 });
    const writeAheadLog = openWriteAheadLog(db, { script });
    const failures: unknown[] = [];
    const writer = createWriter(db, createTables(db), {
      writeAheadLog,
      onCheckpointFailed: (error) => failures.push(error),
    });
    onTestFinished(async () => {
      await writer.close();
      await writeAheadLog.close();
      db.close();
    });
    /** Each commit has about 200 frames. */
    const write = async (commits: number) => {
      for (let n = 0; n < commits; n++)
        await writer.run((tx) => tx.settings.put('large', String(n % 10).repeat(800_000)));
    };
    const frames = () => statSync(join(dir, 'postrider.db-wal')).size / FRAME;
    return { dir, db, writer, failures, write, frames };
  }

  it('runs in a thread, after which the log restarts, and not in a COMMIT', async () => {
    const { db, write, frames, failures } = start();
    await write(60);
    expect(failures).toEqual([]);
    expect(db.prepare('PRAGMA wal_autocheckpoint').pluck().get()).toBe(0);
    // About 12,000 frames were written.
    expect(frames()).toBeGreaterThan(MAX_FRAMES);
    expect(frames()).toBeLessThan(2 * MAX_FRAMES + 1000);
  });

  it('keeps the frames that a reader needs, and runs again when the log has grown', async () => {
    const { dir, write, frames, failures } = start();
    const reader = openDatabase(dir);
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM settings').get();
    await write(28);
    const grown = frames();
    expect(grown).toBeGreaterThan(5000);
    reader.exec('COMMIT');
    reader.close();
    await write(75);
    expect(frames()).toBeLessThan(grown + 3 * MAX_FRAMES);
    expect(failures).toEqual([]);
  });

  /** A thread that reports a long log after the first flushes, and ends checkpoints after `release`. */
  function startHeld() {
    const { dir } = startStore();
    const db = openDatabase(dir, { busyTimeoutMs: 0 });
    const code = `import { BroadcastChannel, parentPort } from 'node:worker_threads';
      const channel = new BroadcastChannel('release');
      channel.unref();
      const open = new Promise((resolve) => (channel.onmessage = resolve));
      parentPort.on('message', async ({ kind, dueAt }) => {
        if (kind === 'flush') return parentPort.postMessage({ kind: 'flushed', isLong: dueAt <= ${MAX_FRAMES} });
        await open;
        parentPort.postMessage({ kind: 'checkpointed', frames: 10, copied: 10 });
      });`;
    const writeAheadLog = openWriteAheadLog(db, {
      script: new URL(`data:text/javascript,${encodeURIComponent(code)}`),
    });
    const channel = new BroadcastChannel('release');
    onTestFinished(async () => {
      channel.close();
      await writeAheadLog.close();
      db.close();
    });
    return { writeAheadLog, db, release: () => channel.postMessage('release') };
  }

  it('allows commits while the log is copied, and pauses them only for the second part', async () => {
    const { writeAheadLog, db, release } = startHeld();
    const writer = createWriter(db, createTables(db), { writeAheadLog });
    for (let n = 0; n < 5; n++) await writer.run((tx) => tx.settings.put('number', String(n)));
    expect(writeAheadLog.isLong()).toBe(false);
    const releases = setInterval(release, 10);
    onTestFinished(() => clearInterval(releases));
    await expect.poll(() => writeAheadLog.isLong()).toBe(true);
    await writer.run((tx) => tx.settings.put('number', 'last'));
    await writer.close();
    expect(db.prepare("SELECT value FROM settings WHERE name = 'number'").pluck().get()).toBe('last');
  });

  it('runs in another thread when the first has ended', async () => {
    const code = `import { parentPort } from 'node:worker_threads';
      parentPort.on('message', ({ kind }) => kind === 'flush' ? parentPort.postMessage({ kind: 'flushed', isLong: true }) : process.exit(3));`;
    const { write, failures } = start(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
    const failuresAfterWrite = async () => {
      await write(1);
      return failures.length;
    };
    await expect.poll(failuresAfterWrite).toBeGreaterThanOrEqual(2);
    expect(String(failures[0])).toContain('the WAL checkpoint thread ended with code 3');
  });

  it('fails without loss of data', async () => {
    const code = `import { parentPort } from 'node:worker_threads';
      parentPort.on('message', (request) => parentPort.postMessage(
        request.kind === 'flush' ? { kind: 'flushed', isLong: true } : { kind: 'failed', code: 'SQLITE_FULL', message: 'database or disk is full' }));`;
    const { write, failures } = start(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
    const failuresAfterWrite = async () => {
      await write(1);
      return failures.length;
    };
    await expect.poll(failuresAfterWrite).toBeGreaterThanOrEqual(3);
    expect(failures[0]).toMatchObject({ code: 'SQLITE_FULL' });
  });

  it('leaves no log when the database is closed', async () => {
    const { dir } = startStore();
    const own = join(dir, 'own');
    const db = openDatabase(own);
    const writeAheadLog = openWriteAheadLog(db, { script: builtThread('store/database/flush-thread.ts') });
    await writeAheadLog.flush();
    await writeAheadLog.checkpoint();
    await writeAheadLog.close();
    db.close();
    expect(readdirSync(own).toSorted()).toEqual(['daemon.lock', 'postrider.db']);
  });
});

describe('the writer while another connection holds the lock', () => {
  function start(lockWaitMs: number) {
    const { dir } = startStore();
    const db = openDatabase(dir, { busyTimeoutMs: 0 });
    const tables = createTables(db);
    const writer = createWriter(db, tables, { lockWaitMs });
    const other = openDatabase(dir);
    onTestFinished(async () => {
      await writer.close();
      db.close();
      other.close();
    });
    return { tables, writer, other };
  }

  it('waits without blocking the event loop, and commits in order when the lock is released', async () => {
    const { tables, writer, other } = start(60_000);
    other.exec('BEGIN IMMEDIATE');
    const done: string[] = [];
    const runs = ['one', 'two', 'three'].map((name) =>
      writer.run((tx) => tx.settings.put(name, name)).then(() => done.push(name)),
    );
    // Timers fire while the lock is held: a blocking wait would prevent that.
    let ticks = 0;
    while (ticks < 50) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      ticks++;
    }
    expect(done).toEqual([]);
    expect(tables.settings.get('one')).toBeNull();
    other.exec('COMMIT');
    await Promise.all(runs);
    expect(done).toEqual(['one', 'two', 'three']);
  });

  it('rejects a unit after the lock timeout, and commits the next one after the release', async () => {
    const { tables, writer, other } = start(50);
    other.exec('BEGIN IMMEDIATE');
    const error = await writer.run((tx) => tx.settings.put('one', '1')).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(storageFailure(error)).toMatchObject({ kind: 'busy' });
    other.exec('ROLLBACK');
    await writer.run((tx) => tx.settings.put('two', '2'));
    expect([tables.settings.get('one'), tables.settings.get('two')]).toEqual([null, '2']);
  });

  it('rejects waiting units after the lock timeout when it closes', async () => {
    const { writer, other } = start(50);
    other.exec('BEGIN IMMEDIATE');
    const run = writer.run(() => 1).catch((thrown: unknown) => thrown);
    await writer.close();
    expect(await run).toBeInstanceOf(StoreUnavailable);
    await expect(writer.run(() => 1)).rejects.toMatchObject({ reason: 'closing' });
    other.exec('ROLLBACK');
  });
});

it('runs shares in turns when more units wait than fit into a group, each in order', async () => {
  const { writer } = startStore();
  const order: string[] = [];
  const run = (share: string, n: number) => writer.run(() => void order.push(`${share}${n}`), share);
  const many = Array.from({ length: 500 }, (_, n) => run('many', n));
  const few = Array.from({ length: 3 }, (_, n) => run('few', n));
  await Promise.all(few);
  // No unit of `few` waits for more than a group of the others.
  expect(order.filter((unit) => unit.startsWith('many')).length).toBeLessThan(100);
  await Promise.all(many);
  expect(order.filter((unit) => unit.startsWith('many'))).toEqual(
    Array.from({ length: 500 }, (_, n) => `many${n}`),
  );
});

it('lets a share whose units take long miss turns, except that of deliveries', async () => {
  const { db, tables } = startStore();
  let ms = 0;
  const writer = createWriter(db, tables, { now: () => ms });
  const order: string[] = [];
  const run = (name: string, took: number, share?: string) =>
    writer.run(() => {
      order.push(name);
      ms += took;
    }, share);
  await Promise.all([
    run('long 1', 5, 'long'),
    run('long 2', 5, 'long'),
    run('own 1', 5),
    run('own 2', 5),
    ...[1, 2, 3, 4].map((n) => run(`short ${n}`, 1, 'short')),
  ]);
  expect(order).toEqual(['long 1', 'own 1', 'short 1', 'own 2', 'short 2', 'short 3', 'long 2', 'short 4']);
});

it('commits smaller groups while units of several shares wait', async () => {
  const { dir, writer } = startStore();
  const run = (share: string, n: number) =>
    writer.run((tables) => tables.settings.put(`name ${share}${n}`, String(n)), share);
  const before = commitsInWal(dir);
  await Promise.all(Array.from({ length: 64 }, (_, n) => run(n % 2 === 0 ? 'one' : 'two', n)));
  const shared = commitsInWal(dir) - before;
  await Promise.all(Array.from({ length: 64 }, (_, n) => run('one', n)));
  expect(shared).toBe(2);
  expect(commitsInWal(dir) - before - shared).toBe(1);
});

it('flushes the log of a database behind a symbolic link', async () => {
  const { dir, db } = startStore();
  db.close();
  const other = mkdtempSync(join(tmpdir(), 'postrider-'));
  onTestFinished(() => rmSync(other, { recursive: true }));
  symlinkSync(join(dir, 'postrider.db'), join(other, 'postrider.db'));
  const linked = openDatabase(other);
  onTestFinished(() => void linked.close());
  const writeAheadLog = openWriteAheadLog(linked, { script: builtThread('store/database/flush-thread.ts') });
  await writeAheadLog.flush();
  await writeAheadLog.close();
});
