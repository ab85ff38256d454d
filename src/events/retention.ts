import { type ScheduledTask, schedule } from 'node-cron';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Config } from '../config/schema.ts';
import { DAY, MINUTE } from '../core/clock.ts';
import { gaugesOf } from '../core/metrics.ts';
import { recordOf } from '../core/record-of.ts';
import type { Context } from '../store/context.ts';
import { type DeclaredRetentionRule, RETENTION_RULES } from '../store/data-policies.ts';
import type { FilePages } from '../store/maintenance/free-space.ts';
import { createPortions, type Portion, type PortionStep } from '../store/maintenance/portions.ts';
import type { PurgedPortion } from '../store/maintenance/retention.ts';
import type { Tables } from '../store/tables.ts';

export type PurgedKind = DeclaredRetentionRule['kind'] | 'freePages';
/** Kinds in the order in which a pass deletes them. */
export const PURGED_KINDS: readonly PurgedKind[] = [...RETENTION_RULES.map(({ kind }) => kind), 'freePages'];
export type Purged = Record<PurgedKind, number>;

export interface RetentionProgress {
  /** The kind that the running pass deletes; null: no pass is running. */
  current: PurgedKind | null;
  /** Estimate of the rows of that kind that are still to be deleted; null: unknown. */
  remaining: number | null;
  /** Epoch ms of the end of the last pass; null: none since the start. */
  completedAt: number | null;
}

/** Called after each portion. */
export type OnPortion = (kind: PurgedKind, removed: number, durationMs: number) => void;

const FIRST_PASS_MS = MINUTE;
/** At minute 17 of every hour, apart from other hourly work. */
const PASS_TIMES = '17 * * * *';
const PROGRESS_INTERVAL_MS = MINUTE;
/**
 * Share of a file's pages that stays free for new rows. Without a reserve each pass would move pages to truncate a file
 * that grows again.
 */
const FREE_RESERVE = 0.1;
/** After this time a first file is too old for a difference: what changes would be noted without end. */
const MAX_MOVE_MS = 14 * DAY;
/** A file with fewer free pages is not truncated: 16 MiB. */
const MIN_FREE_PAGES = 4096;

interface PassStep {
  kind: PurgedKind;
  estimate?: (() => number) | undefined;
  step: PortionStep<Deletion>;
}

interface Deletion extends Portion {
  deleted: number;
}

/**
 * Rows that one statement deletes. The cost of a row is unknown before its pages are read: microseconds with cached pages,
 * milliseconds with index entries on ten pages of a cold disk. So a portion consists of short statements, and the clock
 * is checked after each.
 */
const ROWS_PER_STATEMENT = 16;

/** A step that continues each statement at the place where the previous one ended. */
function walkStep<Place>(
  kind: PurgedKind,
  start: Place,
  purge: (tx: Tables, place: Place, rows: number, isOver: () => boolean) => PurgedPortion<Place>,
  estimate?: () => number,
): PassStep {
  let place = start;
  const step = (tx: Tables, rows: number, isOver: () => boolean): Deletion => {
    const sum: Deletion = { rows: 0, deleted: 0, isDone: false };
    do {
      const count = Math.min(ROWS_PER_STATEMENT, rows - sum.rows);
      const { removed, next } = purge(tx, place, count, isOver);
      place = next ?? place;
      sum.rows += count;
      sum.deleted += removed;
      sum.isDone = next === null;
    } while (!sum.isDone && sum.rows < rows && !isOver());
    return sum;
  };
  return { kind, step, estimate };
}

/** A step whose statements find the rows that are left. */
function deletionStep(kind: PurgedKind, remove: (tx: Tables, rows: number) => number): PassStep {
  return walkStep(kind, 0, (tx, place, rows) => {
    const removed = remove(tx, rows);
    return { removed, next: removed < rows ? null : place };
  });
}

/**
 * Deletes rows by age, as their tables declare (`store/data-policies`): bodies some days after all their messages are
 * final, then events, their webhook deliveries, messages, strikes, received mail and reports; idempotent responses when
 * they expire. Free pages beyond a reserve are then returned to the file system.
 *
 * A pass runs every hour, in portions (`store/maintenance/portions`). It continues from the rows that are left, so the next
 * pass completes one that was interrupted; after a start the first pass runs within a minute. A pass with nothing to
 * delete reads a few rows.
 *
 * Starts nothing until `start`. A scheduled pass that fails is logged, and the next one continues; `run` rejects. Each
 * pass reads `limits.bodyDays`, `limits.eventDays` and `limits.inboundDays` once, at its beginning.
 */
export function createRetention(
  context: Pick<Context, 'clock' | 'log' | 'tables' | 'writer'> & {
    config: { limits: Pick<Config['limits'], 'bodyDays' | 'eventDays' | 'inboundDays'> };
  },
  {
    mayShrink = () => true,
    onPortion,
  }: {
    /** Whether pages may be moved and the file truncated now; default: always. */
    mayShrink?(): boolean;
    onPortion?: OnPortion;
  } = {},
) {
  const { config, clock, log, tables, writer } = context;
  const portions = createPortions({ writer, share: 'retention' });
  const progress: RetentionProgress = { current: null, remaining: null, completedAt: null };
  let timer: NodeJS.Timeout | null = null;
  let task: ScheduledTask | null = null;
  /** The pass in progress; null: none. */
  let running: Promise<void> | null = null;

  /** The steps of a pass, in their order. */
  function passOf(now: number): PassStep[] {
    const { bodyDays, eventDays, inboundDays } = config.limits;
    // Rows that expire are valid until that time, inclusive.
    const before = {
      bodies: now - bodyDays * DAY,
      events: now - eventDays * DAY,
      inbound: now - inboundDays * DAY,
      expiry: now + 1,
    };
    /** All events before this number are deleted or were skipped. */
    let eventsEnd = 0;
    const { contents, webhookDeliveries } = tables.retention;
    const stepOf = (rule: DeclaredRetentionRule): PassStep => {
      switch (rule.rows) {
        case 'contents':
          return walkStep(rule.kind, contents.start, (tx, place, rows, isOver) =>
            tx.retention.contents.purge(place, { before: before.bodies, now, rows, isOver }),
          );
        case 'shared contents':
          return deletionStep(rule.kind, (tx, rows) => tx.sharedContents.purge(before.bodies, rows));
        case 'deliveries':
          return walkStep(rule.kind, webhookDeliveries.start, (tx, place, rows) =>
            tx.retention.webhookDeliveries.purge(place, { end: eventsEnd, rows }),
          );
        case 'changes of moves':
          return deletionStep(rule.kind, (tx, rows) => tx.accountMoves.purge(now - MAX_MOVE_MS, rows));
        case 'aged':
          return walkStep(
            rule.kind,
            0,
            (tx, from, rows) => {
              const portion = tx.retention[rule.kind].purge({ from, before: before[rule.period], now, rows });
              if (rule.kind === 'events') eventsEnd = portion.next ?? portion.end;
              return portion;
            },
            () => tables.retention[rule.kind].estimate(before[rule.period]),
          );
        default:
          return deletionStep(rule.kind, (tx, rows) =>
            tx.retention[rule.kind].purge(before[rule.period], rows),
          );
      }
    };
    return [
      ...RETENTION_RULES.map(stepOf),
      deletionStep('freePages', (tx, rows) => {
        const surplus = mayShrink() ? surplusPages(tx) : 0;
        return surplus > 0 ? tx.freeSpace.release(Math.min(rows, surplus)) : 0;
      }),
    ];
  }

  /** Runs one pass; resolves with the number of rows deleted, by kind. Must not be called while one is running. */
  async function run(): Promise<Purged> {
    const purged: Purged = recordOf(PURGED_KINDS, () => 0);
    const began = performance.now();
    let loggedAt = began;
    try {
      for (const { kind, estimate, step } of passOf(clock.now())) {
        progress.current = kind;
        progress.remaining = estimate?.() ?? null;
        const completed = await portions.run(step, ({ deleted }, durationMs) => {
          purged[kind] += deleted;
          if (progress.remaining !== null) progress.remaining = Math.max(0, progress.remaining - deleted);
          onPortion?.(kind, deleted, durationMs);
          if (performance.now() - loggedAt < PROGRESS_INTERVAL_MS) return;
          loggedAt = performance.now();
          log.info(
            { kind, deleted: purged[kind], remaining: progress.remaining },
            'retention pass in progress',
          );
        });
        if (!completed) return purged;
      }
      progress.completedAt = clock.now();
      if (PURGED_KINDS.some((kind) => purged[kind] > 0)) {
        const durationMs = Math.round(performance.now() - began);
        log.info({ ...purged, durationMs }, 'retention pass completed');
      }
      return purged;
    } finally {
      progress.current = null;
      progress.remaining = null;
    }
  }

  function startPass(): void {
    running ??= run()
      .then(() => undefined)
      .catch((error: unknown) => log.error({ err: error }, 'retention pass failed; the next one continues'))
      .finally(() => {
        running = null;
      });
  }

  return {
    run,
    /** Starts hourly passes. */
    start: (): void => {
      timer = setTimeout(startPass, FIRST_PASS_MS).unref();
      task = schedule(PASS_TIMES, startPass);
    },
    /** Ends the passes; resolves when the portion in progress, if any, is durable. */
    stop: async (): Promise<void> => {
      if (timer !== null) clearTimeout(timer);
      await task?.destroy();
      portions.stop();
      await running;
    },
    progress: (): RetentionProgress => ({ ...progress }),
  };
}

/** Free pages that can be returned to the file system. */
function surplusPages({ freeSpace }: Tables): number {
  const { total, free } = freeSpace.pages();
  const reserve = Math.max(MIN_FREE_PAGES, Math.ceil(FREE_RESERVE * total));
  return free > reserve && freeSpace.isReturnable() ? free - reserve : 0;
}

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
