import { Worker } from 'node:worker_threads';
import { Counter, Histogram, type Registry } from 'prom-client';
import type { Log } from '../core/log.ts';
import { gaugesOf } from '../core/metrics.ts';
import { ensureLocation, instanceIn, requireOriginal, settle } from './backup/identity.ts';
import { type DaemonLock, openDatabase } from './database.ts';
import { ReadRejected, Superseded } from './failure.ts';
import {
  type BackgroundStep,
  type BackgroundSteps,
  createBackgroundSteps,
} from './migrate/background-steps.ts';
import { createReaderPool, type ReaderPool, type ReaderPoolOptions } from './readers/pool.ts';
import { NO_ACCOUNT, type Reader } from './readers/reads.ts';
import type { ReaderThreadData } from './readers/thread.ts';
import { createTables, type Tables } from './tables.ts';
import { openWriteAheadLog } from './write-ahead-log.ts';
import { createWriter, type Writer } from './writer.ts';

/** The database as the daemon uses it: reads, writes, the write-ahead log and the background steps of migrations. */
export interface Storage {
  tables: Tables;
  /** Runs long reads on reader threads. */
  reader: Reader;
  writer: Writer;
  /** Number of this start of the daemon; leases of earlier generations are void. */
  generation: number;
  /** The installation; copies of the database have the same id. */
  instanceId: string;
  /** Commits the units of work that wait, ends reads in progress and closes the database. */
  close(): Promise<void>;
}

export interface StorageDeps {
  /** Held by the daemon until after `close`. */
  lock: DaemonLock;
  log: Log;
  registry: Registry;
  /** The account's turn on the event loop, for what follows a read. */
  turn: NonNullable<ReaderPoolOptions['turn']>;
  /** Background steps of migrations, in the order in which they run. */
  steps: readonly BackgroundStep[];
  /** Another daemon has taken over this database: the process must exit without sending anything more. */
  onSuperseded(error: Superseded): void;
}

export interface StorageOptions {
  dataDir: string;
  readerThreads: number;
  /** Time budget of one read, ms; read at each use: a reload changes it. */
  readonly readBudgetMs: number;
  /** The program of the reader threads. */
  readerScript: URL;
  /** The generation becomes at least this. */
  minGeneration?: number;
  /** The program of the threads of the write-ahead log; default: the compiled one. */
  logScript?: URL | undefined;
}

/** Heap of a reader thread in megabytes: many times the largest page of a list. */
const READER_HEAP_MB = 256;

/**
 * Opens the database, voids the leases of earlier generations and starts the background steps. Rejects with StoreFault
 * when the database cannot be opened or is a copy that was not restored; nothing is open then. When a flush of the write-ahead log fails, the process
 * exits with an uncaught exception: it cannot be known which commits are on disk, and the next start reads them there.
 */
export async function createStorage(deps: StorageDeps, options: StorageOptions): Promise<Storage> {
  const { lock, log, registry, turn, steps } = deps;
  const { dataDir, readerThreads, readerScript, logScript } = options;
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
    requireOriginal(tables, dataDir);
    const location = ensureLocation(dataDir);
    const writeAheadLog = openWriteAheadLog(db, { script: logScript });
    closeSteps.push(() => writeAheadLog.close());
    const pool = createReaderPool({
      threads: readerThreads,
      get budgetMs() {
        return options.readBudgetMs;
      },
      log,
      startThread: () =>
        new Worker(readerScript, {
          workerData: { file: db.name } satisfies ReaderThreadData,
          resourceLimits: { maxOldGenerationSizeMb: READER_HEAP_MB },
        }),
      observe: createReadObserver(registry),
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
              `another daemon has taken over the database in ${dataDir} (generation ${found}, this daemon has ${generation})`,
            );
      },
      log: writeAheadLog,
      onCheckpointIncomplete: createLogRelief({ pool, checkpoint: () => writer.checkpoint() }),
      onCheckpointFailed: (error) => log.warn({ err: error }, 'WAL checkpoint failed; trying again later'),
      onLost: (error) => {
        if (error instanceof Superseded) return deps.onSuperseded(error);
        log.fatal({ err: error }, 'WAL flush failed; exiting to recover from the disk on restart');
        setImmediate(() => {
          throw error;
        });
      },
    });
    closeSteps.push(() => writer.close());
    const started = await writer.run((units) => {
      units.queue.freeLeases();
      units.contacts.configureIndex();
      settle(units, location);
      units.settings.raiseGeneration(options.minGeneration);
      return instanceIn(units);
    });
    if (started === null) throw new Error('the database has no instance id');
    generation = started.generation;
    const backgroundSteps = createBackgroundSteps({
      steps,
      writer,
      log,
      observe: createStepObserver(registry),
    });
    registerGauges(registry, pool, backgroundSteps);
    backgroundSteps.start();
    closeSteps.push(() => backgroundSteps.stop());
    return { tables, reader: pool, writer, ...started, close };
  } catch (error) {
    await close();
    throw error;
  }
}

export interface LogReliefDeps {
  pool: Pick<ReaderPool, 'pause'>;
  /** Of the writer. */
  checkpoint(): Promise<void>;
}

/**
 * Returns what to call after an incomplete checkpoint. SQLite restarts the write-ahead log only when a checkpoint finds
 * no reader in it, so overlapping long reads would let it grow without bound. Therefore no further read starts until
 * the reads in progress have ended and another checkpoint has run.
 */
export function createLogRelief(deps: LogReliefDeps): () => void {
  let isRunning = false;

  async function run(): Promise<void> {
    const { resume } = await deps.pool.pause();
    try {
      await deps.checkpoint();
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

function createReadObserver(registry: Registry): NonNullable<ReaderPoolOptions['observe']> {
  const reads = new Counter({
    name: 'postrider_reads_total',
    help: 'Database reads of reader threads, by outcome; too-broad: stopped after the time budget.',
    labelNames: ['read', 'outcome'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'postrider_read_seconds',
    help: 'Time of database reads in reader threads.',
    labelNames: ['read'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.03, 0.1, 0.3, 1, 3],
    registers: [registry],
  });
  return (read, outcome, ms) => {
    reads.labels(read, outcome).inc();
    if (ms > 0) duration.labels(read).observe(ms / 1000);
  };
}

function createStepObserver(registry: Registry): (step: string, rows: number) => void {
  const changed = new Counter({
    name: 'postrider_background_step_rows_total',
    help: 'Rows that background steps of a migration have changed.',
    labelNames: ['step'],
    registers: [registry],
  });
  return (step, rows) => changed.inc({ step }, rows);
}

function registerGauges(registry: Registry, pool: ReaderPool, backgroundSteps: BackgroundSteps): void {
  const gauge = gaugesOf(registry);
  let queued = 0;
  gauge('postrider_queue_messages', 'Messages waiting to be delivered.', async () => {
    queued = await pool.table(NO_ACCOUNT, 'queue', 'count').catch((error: unknown) => {
      // The other metrics are needed most when reads are slow.
      if (error instanceof ReadRejected) return queued;
      throw error;
    });
    return queued;
  });
  gauge(
    'postrider_reads_waiting',
    'Database reads that wait for a reader thread.',
    () => pool.state().waiting,
  );
  gauge('postrider_reader_threads', 'Reader threads that are running.', () => pool.state().threads);
  gauge('postrider_reader_threads_busy', 'Reader threads that are running a read.', () => pool.state().busy);
  gauge(
    'postrider_background_steps_pending',
    'Background steps of a migration that are not complete.',
    backgroundSteps.pending,
  );
  gauge(
    'postrider_background_steps_failed',
    'Background steps that failed since the start; the next start continues them.',
    backgroundSteps.failed,
  );
}
