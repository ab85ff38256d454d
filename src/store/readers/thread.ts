import { parentPort, workerData } from 'node:worker_threads';
import { openForReading } from '../database/database.ts';
import { createTables, type Tables } from '../tables.ts';
import { BudgetExceeded, boundReads } from './budget.ts';
import { type ReadQuery, readsByName } from './reads.ts';

/* The program of a reader thread, which runs one read after the other on a read-only connection. */

export interface ReaderThreadData {
  /** The database. */
  file: string;
}

/** `budgetMs`: the time budget of the read. */
export type ReadRequest = { name: string; args: readonly unknown[]; budgetMs: number } | 'close';

type Read = Exclude<ReadRequest, string>;

export type ReadReply =
  /** The connection is open. */
  | { kind: 'ready' }
  /** `ms`: time in the thread. */
  | { kind: 'result'; value: unknown; ms: number }
  | { kind: 'too-broad'; ms: number }
  | { kind: 'failed'; code: string | undefined; message: string; stack: string | undefined; ms: number };

/** Runs requested reads until a `close` request. `queries`: reads other than the methods of tables. */
export function serveReads(queries: readonly ReadQuery<never[], unknown>[]): void {
  const port = parentPort;
  if (port === null) throw new Error('reads are served in a worker thread only');
  const { file }: ReaderThreadData = workerData;
  const reads = readsByName(queries);
  const db = openForReading(file);
  const begin = db.prepare('BEGIN');
  const end = db.prepare('COMMIT');
  const budget = boundReads(db);
  const tables = createTables(db);

  function run(tables: Tables, { name, args, budgetMs }: Read): unknown {
    const read = reads.get(name);
    if (read === undefined) throw new Error(`there is no read named ${name}`);
    budget.begin(budgetMs);
    // All statements of the read see one state of the database. It is released as soon as the read ends, because until
    // then a checkpoint cannot complete.
    begin.run();
    try {
      return read(tables, ...args);
    } finally {
      if (db.inTransaction) end.run();
    }
  }

  async function answer(read: Read): Promise<void> {
    const began = performance.now();
    const elapsed = () => performance.now() - began;
    try {
      const value = await run(tables, read);
      port?.postMessage({ kind: 'result', value, ms: elapsed() } satisfies ReadReply);
    } catch (error) {
      port?.postMessage(failure(error, elapsed()));
    }
  }

  port.on('message', (request: ReadRequest) => {
    if (request !== 'close') {
      void answer(request);
      return;
    }
    db.close();
    port.close();
  });
  port.postMessage({ kind: 'ready' } satisfies ReadReply);
}

function failure(error: unknown, ms: number): ReadReply {
  if (error instanceof BudgetExceeded) return { kind: 'too-broad', ms };
  if (!(error instanceof Error))
    return { kind: 'failed', code: undefined, message: String(error), stack: undefined, ms };
  const code = 'code' in error ? String(error.code) : undefined;
  return { kind: 'failed', code, message: error.message, stack: error.stack, ms };
}
