import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../../src/core/log.ts';
import { ReadRejected } from '../../../src/store/database/failure.ts';
import { openWriteAheadLog, type WriteAheadLog } from '../../../src/store/database/write-ahead-log.ts';
import { createWriter } from '../../../src/store/database/writer.ts';
import { createReaderPool, type ReaderPoolLimits } from '../../../src/store/readers/pool.ts';
import type { ReaderThreadData } from '../../../src/store/readers/thread.ts';
import { createLogRelief } from '../../../src/store/storage.ts';
import { builtThread } from '../../support/built-thread.ts';
import { eventually } from '../../support/eventually.ts';
import { enqueue, insertAccount, startStore } from '../../support/store.ts';
import { deadly, endless, failing, held, probeThread, writing } from './probes.ts';

interface SetupOptions {
  threads?: number;
  budgetMs?: number;
  limits?: Partial<ReaderPoolLimits>;
}

function start({ threads = 2, budgetMs = 60_000, limits = {} }: SetupOptions = {}) {
  const store = startStore();
  insertAccount(store.tables, 'acct_two', store.clock.now());
  const observed: string[] = [];
  let started = 0;
  const pool = createReaderPool({
    threads,
    budgetMs,
    // A thread takes seconds to start where the machine is busy.
    limits: { firstRestartMs: 1, maxWaitMs: 60_000, ...limits },
    log: createLog({ level: 'silent', hashAddresses: false }),
    observe: (read, outcome) => observed.push(`${read} ${outcome}`),
    startThread: () => {
      started++;
      return new Worker(probeThread(), {
        workerData: { file: store.db.name } satisfies ReaderThreadData,
      });
    },
  });
  onTestFinished(() => pool.close());
  const messages = async (accountId: string) => {
    const { rows } = await pool.table(accountId, 'messages', 'list', { accountId, limit: 50 });
    return rows;
  };
  const allReady = () => eventually('the threads to start', () => pool.state().threads === threads);
  return { ...store, pool, observed, messages, allReady, startedThreads: () => started };
}

const SUPPRESSION = {
  recipient_hash: 'email_0123456789abcdef0123456789abcdef',
  stream: 'all',
  reason: 'manual',
  email: 'ada@example.net',
  message_seq: null,
  created_at: 1,
} as const;

/** A read of an account that occupies a thread from `isHeld` until `release`. */
function hold({ pool }: ReturnType<typeof start>, accountId: string) {
  const flags = new Int32Array(new SharedArrayBuffer(8));
  const result = pool.query(accountId, held, flags);
  return {
    result,
    isHeld: () => eventually('the read to hold a thread', () => Atomics.load(flags, 0) === 1),
    release: () => {
      Atomics.store(flags, 1, 1);
      Atomics.notify(flags, 1);
    },
  };
}

const reasonOf = (read: Promise<unknown>): Promise<string> =>
  read.then(
    () => 'done',
    (error: unknown) => (error instanceof ReadRejected ? error.reason : String(error)),
  );

/** The timeout allows for starting threads. */
describe('reader threads', () => {
  it('returns what the method of the table returns', async () => {
    const { messages, tables, clock } = start();
    for (let n = 0; n < 3; n++) enqueue(tables, clock.now(), { recipient: `ada${n}@example.net` });
    const filter = { accountId: 'acct_one', limit: 50 };
    expect(await messages('acct_one')).toEqual(tables.messages.list(filter).rows);
    expect(await messages('acct_two')).toEqual([]);
  });

  it('shows every commit to reads that are requested after it', async () => {
    const { messages, writer, clock } = start();
    for (let n = 1; n <= 40; n++) {
      await writer.run((tx) => void enqueue(tx, clock.now(), { recipient: `ada${n}@example.net` }));
      expect(await messages('acct_one')).toHaveLength(n);
    }
  });

  it('reads a commit before it is on disk; `durable` resolves after the flush', async () => {
    const { pool, db, tables } = start({ threads: 1 });
    let reachDisk = () => {};
    const writeAheadLog: WriteAheadLog = {
      flush: () => new Promise((resolve) => (reachDisk = resolve)),
      isLong: () => false,
      checkpoint: () => Promise.resolve({ isComplete: true }),
      close: () => Promise.resolve(),
    };
    const writer = createWriter(db, tables, { writeAheadLog });
    const filter = { accountId: 'acct_one', beforeSeq: null, limit: 5 };
    const added = writer.run((tx) => void tx.suppressions.add({ ...SUPPRESSION, account_id: 'acct_one' }));
    const page = await eventually('the commit to be visible', async () => {
      const { rows } = await pool.table('acct_one', 'suppressions', 'list', filter);
      return rows.length === 1;
    });
    expect(page).toBe(true);
    let isSettled = false;
    const settled = writer.durable().then(() => {
      isSettled = true;
    });
    await pool.table('acct_one', 'suppressions', 'list', filter);
    expect(isSettled).toBe(false);
    reachDisk();
    await Promise.all([settled, added]);
    await writer.close();
  });

  it('rejects writes', async () => {
    const { pool, tables } = start();
    await expect(pool.query('acct_one', writing)).rejects.toMatchObject({ code: 'SQLITE_READONLY' });
    expect(tables.settings.get('written')).toBeNull();
  });

  it('rejects with the error of the read and its code', async () => {
    const { pool, observed } = start();
    await expect(pool.query('acct_one', failing)).rejects.toMatchObject({
      message: 'no such table: nothing',
      code: 'SQLITE_ERROR',
    });
    expect(observed).toEqual(['failing failed']);
  });

  it('ends a read that exceeds its budget, without blocking the event loop', async () => {
    const { pool, messages, observed } = start({ threads: 1, budgetMs: 300 });
    await messages('acct_one');
    let iterations = 0;
    let isOver = false;
    const count = () => {
      iterations++;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    expect(await reasonOf(pool.query('acct_one', endless))).toBe('too-broad');
    isOver = true;
    // A read on the main thread would block the event loop.
    expect(iterations).toBeGreaterThan(20);
    expect(observed).toContain('endless too-broad');
    // The thread runs further reads.
    expect(await messages('acct_one')).toEqual([]);
  });

  it("runs reads of another account while one account's reads do not end", async () => {
    const setup = start();
    const slow = [hold(setup, 'acct_one'), hold(setup, 'acct_one'), hold(setup, 'acct_one')];
    await slow[0]?.isHeld();
    expect(await setup.messages('acct_two')).toEqual([]);
    expect(setup.pool.state()).toEqual({ waiting: 2, busy: 1, threads: 2 });
    for (const { release } of slow) release();
    expect(await Promise.all(slow.map(({ result }) => result))).toEqual(Array(3).fill('acct_one'));
  });

  it('runs reads in turns of accounts with a single thread', async () => {
    const setup = start({ threads: 1 });
    const order: string[] = [];
    const recorded = (name: string, read: Promise<unknown>) => read.then(() => order.push(name));
    const first = hold(setup, 'acct_one');
    await first.isHeld();
    const reads = [
      recorded('one, 2', setup.messages('acct_one')),
      recorded('one, 3', setup.messages('acct_one')),
      recorded('two, 1', setup.messages('acct_two')),
    ];
    first.release();
    await Promise.all(reads);
    expect(order).toEqual(['one, 2', 'two, 1', 'one, 3']);
  });

  it('rejects reads above the limits of the queue', async () => {
    const setup = start({ threads: 1, limits: { maxWaiting: 3, maxWaitingPerAccount: 2 } });
    const first = hold(setup, 'acct_one');
    await first.isHeld();
    const waiting = [setup.messages('acct_one'), setup.messages('acct_one')];
    expect(await reasonOf(setup.messages('acct_one'))).toBe('busy');
    waiting.push(setup.messages('acct_two'));
    expect(await reasonOf(setup.messages('acct_two'))).toBe('busy');
    first.release();
    expect(await Promise.all(waiting)).toEqual([[], [], []]);
    expect(setup.observed.filter((read) => read.endsWith('busy'))).toHaveLength(2);
  });

  it('rejects a read that waits too long for a thread', async () => {
    const setup = start({ threads: 1, limits: { maxWaitMs: 20 } });
    await setup.allReady();
    const first = hold(setup, 'acct_one');
    await first.isHeld();
    expect(await reasonOf(setup.messages('acct_two'))).toBe('busy');
    expect(setup.pool.state().waiting).toBe(0);
    first.release();
    await first.result;
  });

  it('replaces a thread that ends; only the read that it ran is rejected', async () => {
    const setup = start();
    const other = hold(setup, 'acct_two');
    await other.isHeld();
    expect(await reasonOf(setup.pool.query('acct_one', deadly))).toBe('lost');
    other.release();
    expect(await other.result).toBe('acct_one');
    await eventually('a new thread', () => setup.pool.state().threads === 2);
    expect(await setup.messages('acct_one')).toEqual([]);
    expect(setup.startedThreads()).toBe(3);
  });

  it('rejects reads when the only thread ends, until the next one has started', async () => {
    const { pool, messages } = start({ threads: 1, limits: { firstRestartMs: 60_000 } });
    const reads = [pool.query('acct_one', deadly), messages('acct_one'), messages('acct_two')];
    expect(await Promise.all(reads.map(reasonOf))).toEqual(['lost', 'lost', 'lost']);
    expect(await reasonOf(messages('acct_two'))).toBe('lost');
  });

  it('rejects a read that does not end with its budget', async () => {
    const setup = start({ threads: 1, budgetMs: 1, limits: { overdueMs: 1 } });
    const stuck = hold(setup, 'acct_one');
    expect(await reasonOf(stuck.result)).toBe('too-broad');
    expect(setup.pool.state().busy).toBe(1);
    stuck.release();
    await eventually('the thread to be idle', () => setup.pool.state().busy === 0);
    expect(setup.observed).toEqual(['held too-broad']);
  });

  it('blocks no checkpoint once its reads have ended', async () => {
    const setup = start();
    // A thread that starts reads the schema, which prevents a checkpoint, too.
    await setup.allReady();
    // As in the daemon: the connection does not wait for readers.
    setup.db.exec('PRAGMA busy_timeout = 0');
    const emptyLog = () => setup.tables.erasures.emptyLog();
    const read = hold(setup, 'acct_one');
    await read.isHeld();
    await setup.writer.run((tx) => tx.settings.put('a', 'b'));
    expect(emptyLog()).toBe(false);
    const paused = setup.pool.pause();
    const later = setup.messages('acct_one');
    read.release();
    const { resume } = await paused;
    expect(emptyLog()).toBe(true);
    expect(setup.pool.state()).toMatchObject({ busy: 0, waiting: 1 });
    resume();
    expect(await later).toEqual([]);
    expect(emptyLog()).toBe(true);
  });

  it('lets the write-ahead log restart while reads overlap all the time', async () => {
    const setup = start();
    const { db, tables, pool } = setup;
    db.exec('PRAGMA busy_timeout = 0');
    const writeAheadLog = openWriteAheadLog(db, { script: builtThread('store/database/flush-thread.ts') });
    let incomplete = 0;
    const relieve = createLogRelief(pool, () => writer.checkpoint());
    const writer = createWriter(db, tables, {
      writeAheadLog,
      onCheckpointIncomplete: () => {
        incomplete++;
        relieve();
      },
    });
    let read = hold(setup, 'acct_one');
    await read.isHeld();
    await setup.allReady();
    // A read is always in progress: each begins before the previous one ends.
    const writing = new AbortController();
    let turn = 0;
    const overlapping = (async () => {
      while (!writing.signal.aborted) {
        await eventually('an incomplete checkpoint', () => writing.signal.aborted || incomplete > 0);
        incomplete = 0;
        const next = hold(setup, turn++ % 2 === 0 ? 'acct_two' : 'acct_one');
        if (pool.state().waiting === 0) await next.isHeld();
        read.release();
        await read.result;
        read = next;
      }
      read.release();
      await read.result;
    })();
    // Every page changes, because SQLite writes only changed pages.
    for (let n = 0; n < 2000; n++)
      await writer.run((tx) => tx.settings.put('row', String(n % 10).repeat(100_000)));
    writing.abort();
    await overlapping;
    await writer.close();
    await writeAheadLog.close();
    // 2000 units of 100 kB without the relief: 200 MB. A checkpoint is due at 16 MB, and at 32 MB commits wait for it.
    // On a busy machine the relief comes later: 90 MB.
    expect(statSync(`${db.name}-wal`).size).toBeLessThan(150_000_000);
  });

  it('waits for reads in progress and rejects waiting ones when the pool closes', async () => {
    const setup = start({ threads: 1 });
    const first = hold(setup, 'acct_one');
    await first.isHeld();
    const waiting = reasonOf(setup.messages('acct_two'));
    const closing = setup.pool.close();
    expect(await waiting).toBe('closing');
    expect(await reasonOf(setup.messages('acct_two'))).toBe('closing');
    first.release();
    expect(await first.result).toBe('acct_one');
    await closing;
  });
});
