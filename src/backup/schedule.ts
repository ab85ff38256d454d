import { createTask } from 'node-cron';
import { Counter } from 'prom-client';
import { DAY, HOUR, iso, isoOrNull, MINUTE } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { gaugesOf } from '../core/metrics.ts';
import type { Context } from '../store/context.ts';
import type { Tables } from '../store/tables.ts';
import { createBackup } from './create.ts';
import { removeOldBackups } from './folder.ts';

/** Shown with the details of readiness. */
export interface BackupStatus {
  /** ISO 8601; null: none. */
  lastSuccessAt: string | null;
  nextAt: string;
  /** Why the last run failed; null: it succeeded, or there was none. */
  error: string | null;
  isRunning: boolean;
}

/** Stored between starts of the daemon. Times in epoch ms. */
interface ScheduleState {
  /** The schedule that `nextAt` was computed from. */
  schedule: string;
  nextAt: number;
  lastSuccessAt: number | null;
  error: string | null;
}

const STATE = 'backup-schedule';
/** Time within which a changed system clock is noticed. */
const MAX_PAUSE_MS = MINUTE;
const RETRY_MS = 15 * MINUTE;
/** Three retries may fail before a backup is overdue. */
const OVERDUE_MS = HOUR;
/** A run that takes longer does not end: a file system does not respond. */
const MAX_RUN_MS = DAY;

/**
 * Creates backups at the times of `backup.schedule`, and removes old ones. A missed run follows after the start of the daemon.
 *
 * Starts nothing; registers its metrics in `registry` and reads the stored state. A schedule that has changed gets a
 * new next time. A failed backup is repeated after 15 minutes. Throws when the schedule has no next time.
 */
export function createBackupSchedule(
  context: Pick<Context, 'config' | 'clock' | 'monotonic' | 'log' | 'tables' | 'writer' | 'registry'>,
  {
    schedule,
    instanceId,
  }: {
    /** `backup.schedule` */
    schedule: string;
    instanceId: string;
  },
) {
  const { config, clock, monotonic, log, tables, writer, registry } = context;
  const stopping = new AbortController();
  // Never started: the expression is only evaluated.
  const times = createTask(schedule, () => {});
  const runs = new Counter({
    name: 'postrider_backups_total',
    help: 'Scheduled backups by outcome.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  const stored = storedState(tables);
  // After a change of the schedule the time of the next run is computed again.
  let state: ScheduleState =
    stored?.schedule === schedule
      ? stored
      : { lastSuccessAt: null, error: null, ...stored, schedule, nextAt: nextRun() };
  /** Monotonic; null: no run is in progress. */
  let runningSince: number | null = null;
  /** Whether a run has failed since the start, and none succeeded after it: a run that was missed begins first. */
  let hasFailed = false;
  for (const outcome of ['succeeded', 'failed']) runs.inc({ outcome }, 0);
  const gauge = gaugesOf(registry);
  gauge(
    'postrider_backup_last_success_timestamp_seconds',
    'When the last scheduled backup was complete; 0: none yet.',
    () => (state.lastSuccessAt ?? 0) / 1000,
  );
  gauge(
    'postrider_backup_next_timestamp_seconds',
    'When the next scheduled backup is due; in the past while it runs or has failed.',
    () => state.nextAt / 1000,
  );

  /** Epoch ms. */
  function nextRun(): number {
    const [next] = times.getNextRuns(1);
    if (next === undefined) throw new Error(`backup.schedule "${schedule}" has no next time`);
    return next.getTime();
  }

  async function save(change: Partial<ScheduleState>): Promise<void> {
    state = { ...state, ...change };
    const text = JSON.stringify(state);
    await writer.run((tx) => tx.settings.put(STATE, text));
  }

  async function run(): Promise<void> {
    const began = performance.now();
    const { dir, keep, keepDays } = config.backup;
    const { path, manifest } = await createBackup({
      config,
      dir,
      includeKey: false,
      clock,
      signal: stopping.signal,
    });
    const seconds = Math.round((performance.now() - began) / 1000);
    log.info({ backup: path, bytes: manifest.bytes, seconds }, 'backup created');
    runs.inc({ outcome: 'succeeded' });
    await save({ nextAt: nextRun(), lastSuccessAt: clock.now(), error: null });
    const retention = { keep, keepDays: keepDays ?? null };
    const removed = await removeOldBackups(dir, instanceId, retention, clock.now());
    if (removed.length > 0) log.info({ removed }, 'old backups removed');
  }

  const loop = createLoop({
    name: 'backup',
    intervalMs: MAX_PAUSE_MS,
    retryMs: RETRY_MS,
    log,
    run: async () => {
      if (stopping.signal.aborted) return MAX_PAUSE_MS;
      const waitMs = state.nextAt - clock.now();
      if (waitMs > 0) return Math.min(waitMs, MAX_PAUSE_MS);
      runningSince = monotonic.now();
      try {
        await run();
        hasFailed = false;
        return 0;
      } catch (error) {
        if (stopping.signal.aborted) return MAX_PAUSE_MS;
        hasFailed = true;
        runs.inc({ outcome: 'failed' });
        await save({ error: error instanceof Error ? error.message : String(error) });
        throw error;
      } finally {
        runningSince = null;
      }
    },
  });

  return {
    start: (): void => loop.start(),
    /** Aborts a backup in progress and removes its files. */
    stop: async (): Promise<void> => {
      stopping.abort();
      await loop.stop();
      await times.destroy();
    },
    status: (): BackupStatus => ({
      lastSuccessAt: isoOrNull(state.lastSuccessAt),
      nextAt: iso(state.nextAt),
      error: state.error,
      isRunning: runningSince !== null,
    }),
    /** Why the backup that is due does not exist; null: none is overdue. */
    overdue: (): string | null => {
      const due = `the backup that was due at ${iso(state.nextAt)}`;
      if (runningSince !== null)
        return monotonic.now() - runningSince > MAX_RUN_MS ? `${due} has not ended within a day` : null;
      return hasFailed && clock.now() - state.nextAt > OVERDUE_MS ? `${due} has failed` : null;
    },
  };
}

export type BackupSchedule = ReturnType<typeof createBackupSchedule>;

/** Null: there was no run yet. */
function storedState({ settings }: Tables): ScheduleState | null {
  const text = settings.get(STATE);
  return text === null ? null : JSON.parse(text);
}
