import { stat, statfs } from 'node:fs/promises';
import { Counter, Histogram, type Registry } from 'prom-client';
import { gaugesOf } from '../../core/metrics.ts';
import { ReadRejected } from '../database/failure.ts';
import type { CommitTimes } from '../database/writer.ts';
import type { ReaderPool, ReaderPoolOptions } from '../readers/pool.ts';
import { NO_ACCOUNT } from '../readers/reads.ts';

/** Registers the metrics of reads; returns the function that counts one. */
export function registerReadMetrics(registry: Registry): NonNullable<ReaderPoolOptions['observe']> {
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

/** Registers the metrics of commits; returns the function that counts one. */
export function registerCommitMetrics(registry: Registry): (times: CommitTimes) => void {
  const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
  const commits = new Histogram({
    name: 'postrider_commit_seconds',
    help: 'Time of database transactions on the event loop, without the flush to disk.',
    buckets,
    registers: [registry],
  });
  const flushes = new Histogram({
    name: 'postrider_flush_seconds',
    help: 'Time until a commit was on disk, after its transaction.',
    buckets,
    registers: [registry],
  });
  return ({ transaction, flush }) => {
    commits.observe(transaction / 1000);
    flushes.observe(flush / 1000);
  };
}

/** Registers the gauges of the queue, of reads, of the write-ahead log and of the file system. */
export function registerStorageGauges(
  registry: Registry,
  {
    pool,
    file,
    dataDir,
  }: {
    pool: ReaderPool;
    /** The database. */
    file: string;
    dataDir: string;
  },
): void {
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
    'postrider_database_wal_bytes',
    'Size of the write-ahead log.',
    async () => (await stat(`${file}-wal`)).size,
  );
  gauge(
    'postrider_disk_free_bytes',
    'Free space of the file system with the data directory, for unprivileged processes.',
    async () => {
      const { bavail, bsize } = await statfs(dataDir);
      return bavail * bsize;
    },
  );
}
