import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { gaugesOf } from '../core/metrics.ts';
import type { FilePages } from '../store/maintenance/free-space.ts';
import { type OnPortion, PURGED_KINDS, type RetentionProgress } from './retention.ts';

/** Registers the metrics of retention and of the database file; returns the function that counts a portion. */
export function registerRetentionMetrics(
  registry: Registry,
  progress: () => RetentionProgress,
  pages: () => FilePages,
): OnPortion {
  const registers = [registry];
  const deleted = new Counter({
    name: 'postrider_retention_deleted_total',
    help: 'Rows deleted after their retention period, by kind; freePages: pages returned to the file system.',
    labelNames: ['kind'],
    registers,
  });
  const portions = new Histogram({
    name: 'postrider_retention_portion_seconds',
    help: 'Time that one portion of a retention pass blocked the event loop.',
    buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5],
    registers,
  });
  const running = new Gauge({
    name: 'postrider_retention_running',
    help: '1 for the kind that the running retention pass is deleting.',
    labelNames: ['kind'],
    registers: [],
    collect() {
      const { current } = progress();
      for (const kind of PURGED_KINDS) this.set({ kind }, kind === current ? 1 : 0);
    },
  });
  registry.registerMetric(running);
  const remaining = new Gauge({
    name: 'postrider_retention_remaining_rows',
    help: 'Rows that the running retention pass still has to delete of its kind: an estimate, absent while unknown.',
    registers: [],
    collect() {
      const { current, remaining: rows } = progress();
      if (rows !== null) this.set(rows);
      else if (current === null) this.set(0);
      else this.remove();
    },
  });
  registry.registerMetric(remaining);
  const gauge = gaugesOf(registry);
  gauge(
    'postrider_retention_completed_timestamp_seconds',
    'When the last retention pass was completed; 0: none since the start.',
    () => (progress().completedAt ?? 0) / 1000,
  );
  const bytes = (count: (filePages: FilePages) => number) => () => {
    const filePages = pages();
    return count(filePages) * filePages.pageSize;
  };
  gauge(
    'postrider_database_bytes',
    'Size of the database file, without its write-ahead log.',
    bytes(({ total }) => total),
  );
  gauge(
    'postrider_database_free_bytes',
    'Free bytes of the database file, which are reused.',
    bytes(({ free }) => free),
  );
  return (kind, count, durationMs) => {
    deleted.inc({ kind }, count);
    portions.observe(durationMs / 1000);
  };
}
