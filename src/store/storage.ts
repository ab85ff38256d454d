import { Worker } from 'node:worker_threads';
import { builtProgram } from '../core/built-program.ts';
import { ensureLocation, instanceIn, recordIdentity, requireOriginal } from './backup/identity.ts';
import type { Context } from './context.ts';
import { type DaemonLock, openDatabase } from './database/database.ts';
import { Superseded } from './database/failure.ts';
import { openWriteAheadLog } from './database/write-ahead-log.ts';
import { createWriter, type Writer } from './database/writer.ts';
import type { CountedMessages } from './messages/hourly-counts.ts';
import type { QueueKey } from './messages/queue.ts';
import { registerBacklogMetrics } from './monitoring/backlog-metrics.ts';
import {
  registerCommitMetrics,
  registerReadMetrics,
  registerStorageGauges,
} from './monitoring/storage-metrics.ts';
import { createReaderPool, type ReaderPool, type ReaderPoolOptions } from './readers/pool.ts';
import type { Reader } from './readers/reads.ts';
import type { ReaderThreadData } from './readers/thread.ts';
import { createTables, prepareTables, type Tables } from './tables.ts';

/** The database as the daemon uses it: reads, writes and the write-ahead log. */
export interface Storage {
  tables: Tables;
  /** Runs long reads on reader threads. */
  reader: Reader;
  writer: Writer;
  /** Number of this start of the daemon; leases of earlier generations are void. */
  generation: number;
  /** The installation; copies of the database have the same id. */
  instanceId: string;
  /** Sets which keys of the queue wait on a schedule: their mail is not late (`postrider_queue_oldest_due_seconds`). */
  setOnSchedule(keys: () => readonly QueueKey[]): void;
  /** Commits the units of work that wait, ends reads in progress and closes the database. */
  close(): Promise<void>;
}

export interface StorageOptions {
  /** Held by the daemon until after `close`. */
  lock: DaemonLock;
  /** Called with the messages that a commit has counted, when it is on disk. */
  onCounted(counted: readonly CountedMessages[]): void;
  /** Resolves at the account's turn on the event loop; awaited before the result of a read is returned. */
  turn: NonNullable<ReaderPoolOptions['turn']>;
  /** Called when another daemon has taken over this database: the process must exit and send nothing more. */
  onSuperseded(error: Superseded): void;
  /** The generation becomes at least this. */
  minGeneration?: number;
}

/** Heap of a reader thread in megabytes: many times the largest page of a list. */
const READER_HEAP_MB = 256;

/**
 * Opens the database and voids the leases of earlier generations. Rejects with StoreFault when the database cannot be opened or is a copy that was not restored; nothing is open then. When a flush of the
 * write-ahead log fails, the process exits with an uncaught exception: it cannot be known which commits are on disk, and
 * the next start reads them there.
 */
export async function createStorage(
  { config, log, registry, clock }: Pick<Context, 'config' | 'log' | 'registry' | 'clock'>,
  options: StorageOptions,
): Promise<Storage> {
  const { lock, turn } = options;
  const dataDir = config.data.dir;
  const closeSteps: (() => Promise<void> | void)[] = [];
  const close = async () => {
    for (const step of closeSteps.splice(0).toReversed()) await step();
  };
  try {
    const db = openDatabase(dataDir, {
      lock,
      busyTimeoutMs: 0,
      onMigrated: (result) => log.info(result, 'database migrated'),
    });
    closeSteps.push(() => void db.close());
    const tables = createTables(db);
    prepareTables(tables);
    requireOriginal(tables, dataDir);
    const location = ensureLocation(dataDir);
    const writeAheadLog = openWriteAheadLog(db);
    closeSteps.push(() => writeAheadLog.close());
    const pool = createReaderPool({
      threads: config.readers.threads,
      get budgetMs() {
        return config.readers.budget;
      },
      log,
      startThread: () =>
        new Worker(builtProgram('reader'), {
          workerData: { file: db.name } satisfies ReaderThreadData,
          resourceLimits: { maxOldGenerationSizeMb: READER_HEAP_MB },
        }),
      observe: registerReadMetrics(registry),
      turn,
    });
    closeSteps.push(() => pool.close());
    /** Null: not known yet. */
    let generation: number | null = null;
    const writer = createWriter(db, tables, {
      superseded: () => {
        const found = generation === null ? 0 : tables.settings.generation();
        return generation === null || found === generation
          ? null
          : new Superseded(
              `Another daemon has taken over the database in ${dataDir} (generation ${found}, this daemon has ${generation})`,
            );
      },
      writeAheadLog,
      onCounted: options.onCounted,
      observe: registerCommitMetrics(registry),
      onCheckpointIncomplete: createLogRelief(pool, () => writer.checkpoint()),
      onCheckpointFailed: (error) => log.warn({ err: error }, 'WAL checkpoint failed; trying again later'),
      onLost: (error) => {
        if (error instanceof Superseded) return options.onSuperseded(error);
        log.fatal(
          { err: error },
          'write to the database failed; exiting to recover from the disk on restart',
        );
        setImmediate(() => {
          throw error;
        });
      },
    });
    closeSteps.push(() => writer.close());
    const started = await writer.run((tx) => {
      tx.queue.freeLeases();
      tx.contacts.configureIndex();
      recordIdentity(tx, location);
      tx.settings.raiseGeneration(options.minGeneration);
      return instanceIn(tx);
    });
    if (started === null) throw new Error('the database has no instance id');
    generation = started.generation;
    registerStorageGauges(registry, { pool, file: db.name, dataDir });
    let onSchedule: () => readonly QueueKey[] = () => [];
    registerBacklogMetrics({ registry, reader: pool, clock }, { onSchedule: () => onSchedule() });
    return {
      tables,
      reader: pool,
      writer,
      ...started,
      setOnSchedule: (keys) => {
        onSchedule = keys;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Returns the function to call after an incomplete checkpoint. SQLite restarts the write-ahead log only when a checkpoint
 * finds no reader in it, so overlapping long reads would let it grow without bound. Therefore no further read starts
 * until the reads in progress have ended and another checkpoint has run.
 */
export function createLogRelief(
  pool: Pick<ReaderPool, 'pause'>,
  checkpoint: Writer['checkpoint'],
): () => void {
  let isRunning = false;

  async function run(): Promise<void> {
    const { resume } = await pool.pause();
    try {
      await checkpoint();
    } finally {
      resume();
      isRunning = false;
    }
  }

  return () => {
    if (isRunning) return;
    isRunning = true;
    void run();
  };
}
