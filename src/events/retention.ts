import { type ScheduledTask, schedule } from 'node-cron';
import { type Clock, DAY, MINUTE } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { AgedRows } from '../store/maintenance/aged-rows.ts';
import { createPortions, type Portion, type PortionStep } from '../store/maintenance/portions.ts';
import type { PurgedPortion } from '../store/maintenance/retention.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';

/**
 * Deletes what is past its time: bodies some days after all their messages are final, then events, what webhooks were
 * told of them, message records, strikes, mail and reports that came in; idempotent answers when they expire. Free
 * pages beyond a reserve are then returned to the file system.
 *
 * A pass runs every hour, in portions (`store/maintenance/portions`), so that each deletes an hour's worth. Where it has to
 * continue follows from what is left: a pass that was interrupted is continued by the next one, after a start within
 * a minute. A pass with nothing to delete reads a few rows.
 */
export interface Retention {
  /** One pass; resolves with the number of rows deleted, by kind. Not to be called while one is running. */
  run(): Promise<Purged>;
  /** Passes from now on. */
  start(): void;
  /** Resolves when the portion under way, if any, is on disk. */
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
  /** What the pass under way is at, null: none is under way. */
  current: PurgedKind | null;
  /** Rows of that kind that are still to be deleted, where that is known: an estimate. */
  remaining: number | null;
  /** Epoch ms at which the last pass was completed, null: none since the start. */
  completedAt: number | null;
}

export interface RetentionDeps {
  clock: Clock;
  log: Log;
  tables: Tables;
  writer: Writer;
  bodyDays: number;
  eventDays: number;
  /** Whether pages may be moved and the file truncated at this moment; default: always. */
  mayShrink?(): boolean;
  /** Called after each portion. */
  onPortion?(kind: PurgedKind, removed: number, durationMs: number): void;
}

const FIRST_PASS_MS = MINUTE;
/** At minute 17 of every hour: not with everything else that runs on the hour. */
const PASS_TIMES = '17 * * * *';
const PROGRESS_INTERVAL_MS = MINUTE;
/**
 * Of a file's pages, how many may stay free: what comes in the next days takes them. Without a reserve each pass would
 * move pages to truncate a file that grows again.
 */
const FREE_RESERVE = 0.1;
/** A file with fewer free pages is left as it is: 16 MiB. */
const LEAST_FREE_PAGES = 4096;

interface Deletion extends Portion {
  deleted: number;
}

/**
 * Rows that one statement deletes. What a row costs is unknown before its pages are read: one whose pages are cached
 * takes microseconds, one with its index entries on ten pages of a cold disk takes milliseconds. So a portion consists
 * of short statements, with a look at the clock after each.
 */
const ROWS_PER_STATEMENT = 16;

/** Repeats a step that handles few rows until the portion's rows or its time are used up. */
function inStatements(step: PortionStep<Deletion>): PortionStep<Deletion> {
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
  /** The pass under way; null: none. */
  let running: Promise<void> | null = null;

  /** The steps of a pass, in their order. */
  function passOf(now: number): { kind: PurgedKind; estimate?: () => number; step: PortionStep<Deletion> }[] {
    const bodiesBefore = now - bodyDays * DAY;
    const eventsBefore = now - eventDays * DAY;
    const aged = (kind: PurgedKind, select: (all: Tables) => AgedRows) => {
      let from = 0;
      return {
        kind,
        estimate: () => select(tables).estimate(eventsBefore),
        step: inStatements((all, rows) => {
          const { removed, next, end } = select(all).purge({ from, before: eventsBefore, now, rows });
          from = next ?? end;
          return { rows, deleted: removed, isDone: next === null };
        }),
        /** Everything below it is deleted or was skipped. */
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
    const events = aged('events', (all) => all.retention.events);
    return [
      walked('bodies', contents.start, (all, place, rows, isOver) =>
        all.retention.contents.purge(place, { before: bodiesBefore, now, rows, isOver }),
      ),
      // Counted by their copies: those that the step before deleted the last copy of.
      timed('sharedBodies', (all, rows) => all.sharedContents.purge(bodiesBefore, rows)),
      events,
      walked('webhookDeliveries', webhookDeliveries.start, (all, place, rows) =>
        all.retention.webhookDeliveries.purge(place, { end: events.end(), rows }),
      ),
      aged('messages', (all) => all.retention.messages),
      timed('strikes', (all, rows) => all.retention.strikes.purge(eventsBefore, rows)),
      timed('delayNotices', (all, rows) => all.retention.delayNotices.purge(eventsBefore, rows)),
      aged('keptMail', (all) => all.retention.keptMail),
      aged('dmarcReports', (all) => all.retention.dmarcReports),
      aged('tlsReports', (all) => all.retention.tlsReports),
      timed('answers', (all, rows) => all.retention.answers.purge(now + 1, rows)),
      timed('freePages', (all, rows) => {
        const surplus = mayShrink() ? surplusPages(all) : 0;
        return surplus > 0 ? all.freeSpace.release(Math.min(rows, surplus)) : 0;
      }),
    ];
  }

  async function run(): Promise<Purged> {
    const purged = noneDeleted();
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

function noneDeleted(): Purged {
  // Sound: `fromEntries` forgets the names of the keys, which are those of the type.
  return Object.fromEntries(PURGED_KINDS.map((kind) => [kind, 0])) as Purged;
}

/** Free pages that may be returned to the file system. */
function surplusPages({ freeSpace }: Tables): number {
  const { total, free } = freeSpace.pages();
  const reserve = Math.max(LEAST_FREE_PAGES, Math.ceil(FREE_RESERVE * total));
  return free > reserve && freeSpace.isReturnable() ? free - reserve : 0;
}
