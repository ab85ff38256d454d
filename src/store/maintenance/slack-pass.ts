import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { openedFile, openSlackCleaner, type SlackBatch } from './slack.ts';
import type { SlackRequest, SlackThreadData } from './slack-thread.ts';

/** The result of clearing the unused space of a whole database file, see slack.ts. */
export interface SlackPassResult {
  /**
   * `cleared`: no copy of a row that was deleted before the pass is left in the file or the write-ahead log. `busy`:
   * other connections hold locks continuously; the caller tries again later. `stopped`: by `signal`.
   */
  outcome: 'cleared' | 'busy' | 'stopped';
  /** Pages that had something to clear. */
  pages: number;
}

export interface SlackPassOptions {
  /** Program of a thread for the pass; default: it runs on the calling thread and blocks it. */
  script?: URL | undefined;
  signal?: AbortSignal | undefined;
}

/** Runs the requests of a pass, one at a time. */
interface Runner {
  begin(): Promise<boolean>;
  clear(fromPage: number): Promise<SlackBatch>;
  end(): Promise<boolean>;
  close(): Promise<void>;
}

/** A page can move to a position that a round has passed: rounds are repeated until one finds nothing to clear. */
const MAX_ROUNDS = 3;
const MAX_ATTEMPTS = 50;
const FIRST_RETRY_MS = 5;
const MAX_RETRY_MS = 200;
/** Larger files are read at 40 MB/s at most, because reading displaces other data from the cache of the system. */
const SMALL_FILE_BYTES = 64 * 1024 * 1024;
const PAUSE_MS = 100;

/** Clears the unused space of a database file and empties its write-ahead log. Commits continue meanwhile. */
export async function runSlackPass(file: string, options: SlackPassOptions = {}): Promise<SlackPassResult> {
  const { script, signal } = options;
  const { size } = await stat(file);
  const pauseMs = script === undefined || size <= SMALL_FILE_BYTES ? 0 : PAUSE_MS;
  const runner = script === undefined ? inThisThread(file) : inThread(file, script);
  let pages = 0;
  try {
    if ((await repeat(runner.begin, isTrue)) !== true) return { outcome: 'busy', pages };
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const before = pages;
      for (let from: number | null = 1; from !== null; ) {
        if (signal?.aborted === true) return { outcome: 'stopped', pages };
        const fromPage: number = from;
        const batch: Cleared | null = await repeat(() => runner.clear(fromPage), isCleared);
        if (batch === null) return { outcome: 'busy', pages };
        pages += batch.pages;
        from = batch.next;
        if (pauseMs > 0) await sleep(pauseMs);
      }
      if (pages === before) break;
    }
    return { outcome: (await repeat(runner.end, isTrue)) === true ? 'cleared' : 'busy', pages };
  } finally {
    await runner.close();
  }
}

function isTrue(value: boolean): value is true {
  return value;
}

type Cleared = SlackBatch & { kind: 'cleared' };

function isCleared(batch: SlackBatch): batch is Cleared {
  return batch.kind === 'cleared';
}

/** Repeats an attempt until `isWanted` accepts its value; returns null after MAX_ATTEMPTS. */
async function repeat<T, Wanted extends T>(
  attempt: () => Promise<T>,
  isWanted: (value: T) => value is Wanted,
): Promise<Wanted | null> {
  let retryMs = FIRST_RETRY_MS;
  for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
    const value = await attempt();
    if (isWanted(value)) return value;
    await sleep(retryMs);
    retryMs = Math.min(2 * retryMs, MAX_RETRY_MS);
  }
  return null;
}

function inThisThread(file: string): Runner {
  const cleaner = openSlackCleaner(file);
  return {
    begin: async () => cleaner.begin(),
    clear: async (fromPage) => cleaner.clear(fromPage),
    end: async () => cleaner.end(),
    close: async () => cleaner.close(),
  };
}

function inThread(file: string, script: URL): Runner {
  const fd = openedFile(file);
  const thread = new Worker(script, {
    workerData: { file, fd } satisfies SlackThreadData,
    resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 },
  });
  thread.unref();
  let pending: { resolve(result: unknown): void; reject(error: Error): void } | null = null;
  /** Not null: the thread is gone, and every request rejects with it. */
  let failure: Error | null = null;
  const fail = (error: Error) => {
    failure ??= error;
    pending?.reject(failure);
    pending = null;
  };
  // The thread may also fail while it waits for a request.
  thread.on('message', (result: unknown) => {
    pending?.resolve(result);
    pending = null;
  });
  thread.on('error', (error) =>
    fail(new Error('the thread that clears unused space failed', { cause: error })),
  );
  thread.on('exit', (code) => fail(new Error(`the thread that clears unused space ended with code ${code}`)));
  const send = <Result>(request: SlackRequest) =>
    new Promise<Result>((resolve, reject) => {
      if (failure !== null) return reject(failure);
      // Sound, since `resolve` is a method of `pending`: the thread answers each request with the result of its kind.
      pending = { resolve, reject };
      thread.postMessage(request);
    });
  return {
    begin: () => send({ kind: 'begin' }),
    clear: (fromPage) => send({ kind: 'clear', fromPage }),
    end: () => send({ kind: 'end' }),
    close: async () => {
      await thread.terminate();
    },
  };
}
