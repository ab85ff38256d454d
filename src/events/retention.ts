import { type ScheduledTask, schedule } from 'node-cron';
import { type Clock, DAY, MINUTE } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { AgedRows } from '../store/maintenance/aged-rows.ts';
import { createPortions, type Portion, type Step } from '../store/maintenance/portions.ts';
import type { PurgedPortion } from '../store/maintenance/retention.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';

/**
 * Deletes what is past its retention: bodies some days after all their messages are final, then events, their webhook
 * deliveries, messages, strikes, received mail and reports, and expired idempotent responses. Free pages beyond a
 * reserve are then returned to the file system.
 *
 * A pass runs every hour, in portions (`store/maintenance/portions`). It begins with the oldest rows that exist, so the next
 * pass continues an interrupted one, after a start within a minute. A pass with nothing to delete reads a few rows.
 */
export interface Retention {
  /** Runs a pass; resolves with the number of deleted rows by kind. Do not call it while a pass is running. */
  run(): Promise<Purged>;
  /** Schedules the passes. */
  start(): void;
  /** Resolves when the portion in progress, if any, is on disk. */
  stop(): Promise<void>;
  progress(): RetentionProgress;
}

export const PURGED_KINDS = [
  'bodies',
  'sharedBodies',
  'events',
  'webhookDeliveries',
  'messages',
  'strikes',
  'delayNotices',
  'keptMail',
  'dmarcReports',
  'tlsReports',
  'answers',
  'freePages',
] as const;
export type PurgedKind = (typeof PURGED_KINDS)[number];
export type Purged = Record<PurgedKind, number>;

export interface RetentionProgress {
  /** What the pass in progress is deleting; null: no pass is in progress. */
  current: PurgedKind | null;
  /** Estimated rows of that kind that remain to be deleted; null: unknown. */
  remaining: number | null;
  /** Epoch ms of the end of the last pass; null: none since the start. */
  completedAt: number | null;
}

export interface RetentionDeps {
  clock: Clock;
  log: Log;
  tables: Tables;
  writer: Writer;
  bodyDays: number;
  eventDays: number;
  /** Whether pages can be moved and the file truncated now; default: always. */
  mayShrink?(): boolean;
  /** Called after each portion. */
  onPortion?(kind: PurgedKind, removed: number, durationMs: number): void;
}

const FIRST_PASS_MS = MINUTE;
/** At minute 17 of every hour, apart from jobs that run on the hour. */
const PASS_TIMES = '17 * * * *';
const PROGRESS_INTERVAL_MS = MINUTE;
/**
 * The share of a file's pages that stays free for the data of the next days. Without a reserve each pass would move pages
 * to truncate a file that grows again.
 */
const FREE_RESERVE = 0.1;
/** A file with fewer free pages (16 MiB) is not truncated. */
const MIN_FREE_PAGES = 4096;

interface Deletion extends Portion {
  deleted: number;
}

/**
 * Rows that one statement deletes. The cost of a row is unknown before its pages are read: microseconds when they are
 * cached, milliseconds when its index entries are on ten pages of a cold disk. So a portion consists of short statements,
 * and the time is checked after each.
 */
const ROWS_PER_STATEMENT = 16;

/** Repeats a step that handles few rows until the portion's rows or its time are used up. */
function inStatements(step: Step<Deletion>): Step<Deletion> {
  return (tables, rows, isOver) => {
    const sum: Deletion = { rows: 0, deleted: 0, isDone: false };
    do {
      const part = step(tables, Math.min(ROWS_PER_STATEMENT, rows - sum.rows), isOver);
      sum.rows += part.rows;
      sum.deleted += part.deleted;
      sum.isDone = part.isDone;
    } while (!sum.isDone && sum.rows < rows && !isOver());
    return sum;
  };
}

export function createRetention(deps: RetentionDeps): Retention {
  const { clock, log, tables, writer, bodyDays, eventDays, onPortion, mayShrink = () => true } = deps;
  const portions = createPortions({ writer, share: 'retention' });
  const progress: RetentionProgress = { current: null, remaining: null, completedAt: null };
  let timer: NodeJS.Timeout | null = null;
  let task: ScheduledTask | null = null;
  /** The pass in progress; null: none. */
  let running: Promise<void> | null = null;

  /** The steps of a pass in order. */
  function passOf(now: number): { kind: PurgedKind; estimate?: () => number; step: Step<Deletion> }[] {
    const bodiesBefore = now - bodyDays * DAY;
    const eventsBefore = now - eventDays * DAY;
    const agedRows = (kind: PurgedKind, select: (all: Tables) => AgedRows) => {
      let from = 0;
      return {
        kind,
        estimate: () => select(tables).estimate(eventsBefore),
        step: inStatements((all, rows) => {
          const { removed, next, end } = select(all).purge({ from, before: eventsBefore, now, rows });
          from = next ?? end;
          return { rows, deleted: removed, isDone: next === null };
        }),
        /** All rows below it were deleted or skipped. */
        end: () => from,
      };
    };
    const walked = <Place>(
      kind: PurgedKind,
      start: Place,
      walk: (all: Tables, place: Place, rows: number, isOver: () => boolean) => PurgedPortion<Place>,
    ) => {
      let place = start;
      return {
        kind,
        step: inStatements((all, rows, isOver) => {
          const { removed, next } = walk(all, place, rows, isOver);
          place = next ?? place;
          return { rows, deleted: removed, isDone: next === null };
        }),
      };
    };
    const timed = (kind: PurgedKind, remove: (all: Tables, rows: number) => number) => ({
      kind,
      step: inStatements((all, rows) => {
        const deleted = remove(all, rows);
        return { rows: deleted, deleted, isDone: deleted < rows };
      }),
    });
    const { contents, webhookDeliveries } = tables.retention;
    const events = agedRows('events', (all) => all.retention.events);
    return [
      walked('bodies', contents.start, (all, place, rows, isOver) =>
        all.retention.contents.purge(place, { before: bodiesBefore, now, rows, isOver }),
      ),
      // Those whose last copy was deleted by the step before.
      timed('sharedBodies', (all, rows) => all.sharedContents.purge(bodiesBefore, rows)),
      events,
      walked('webhookDeliveries', webhookDeliveries.start, (all, place, rows) =>
        all.retention.webhookDeliveries.purge(place, { end: events.end(), rows }),
      ),
      agedRows('messages', (all) => all.retention.messages),
      timed('strikes', (all, rows) => all.retention.strikes.purge(eventsBefore, rows)),
      timed('delayNotices', (all, rows) => all.retention.delayNotices.purge(eventsBefore, rows)),
      agedRows('keptMail', (all) => all.retention.keptMail),
      agedRows('dmarcReports', (all) => all.retention.dmarcReports),
      agedRows('tlsReports', (all) => all.retention.tlsReports),
      timed('answers', (all, rows) => all.retention.answers.purge(now + 1, rows)),
      timed('freePages', (all, rows) => {
        const surplus = mayShrink() ? surplusPages(all) : 0;
        return surplus > 0 ? all.freeSpace.release(Math.min(rows, surplus)) : 0;
      }),
    ];
  }

  async function run(): Promise<Purged> {
    const purged = zeroCounts();
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
    start: () => {
      timer = setTimeout(startPass, FIRST_PASS_MS).unref();
      task = schedule(PASS_TIMES, startPass);
    },
    stop: async () => {
      if (timer !== null) clearTimeout(timer);
      await task?.destroy();
      portions.stop();
      await running;
    },
    progress: () => ({ ...progress }),
  };
}

function zeroCounts(): Purged {
  // Sound: `fromEntries` does not preserve the type of the keys.
  return Object.fromEntries(PURGED_KINDS.map((kind) => [kind, 0])) as Purged;
}

/** Free pages that can be returned to the file system. */
function surplusPages({ freeSpace }: Tables): number {
  const { total, free } = freeSpace.pages();
  const reserve = Math.max(MIN_FREE_PAGES, Math.ceil(FREE_RESERVE * total));
  return free > reserve && freeSpace.isReturnable() ? free - reserve : 0;
}
