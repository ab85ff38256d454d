import { monitorEventLoopDelay } from 'node:perf_hooks';
import { type Clock, MINUTE, monotonicClock, SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import type { Runtime } from '../core/runtime.ts';
import { createNotifier, type Notification, type SystemdNotifier } from './notify.ts';

/**
 * Reports to systemd: readiness, reload, stop, status, and the ping of the watchdog.
 *
 * The watchdog restarts a daemon that a restart helps: one that makes no progress although nothing outside of it is the
 * cause. These withhold the ping:
 *
 * - The event loop is blocked, or the process is stopped: the ping is sent by the loop.
 * - A write to the database does not end, with neither a result nor an error, for `STUCK_MS`.
 * - The scan of the queue does not end for `STUCK_MS`.
 *
 * Everything else is shown in the status and left to monitoring (`/readyz`), since a restart would only interrupt what
 * still works: a full or failing disk, a database that another process has locked, refused sends, results of deliveries
 * that cannot be recorded (a restart would lose them, and the messages would be sent twice), a slow event loop (a
 * restart adds to the load), parked domains, destinations that do not respond.
 */
export interface ServiceReports {
  /** The start takes long: extends its timeout until `ready`. */
  starting(): void;
  /** All listeners are up. From now on `vitals` is reported, and the watchdog pinged. */
  ready(vitals: () => Promise<Vitals>): Promise<void>;
  /** Runs `reload`, reported as a reload. Resolves with its result. */
  reload<T>(reload: () => Promise<T> | T): Promise<T>;
  stopping(): Promise<void>;
  /** Ends the reports. Resolves when the loop has ended. */
  close(): Promise<void>;
}

/** The state of the running daemon. */
export interface Vitals {
  /** Messages in the queue. */
  queued: number;
  /** Messages delivered since the start. */
  delivered: number;
  /** Failed readiness checks, such as `sends: the disk is nearly full`. */
  faults: readonly string[];
  /** Work in progress that should end within seconds, with the time since it began. */
  pending: readonly { work: string; ms: number }[];
}

/**
 * Work that takes longer is stuck. Disks of virtual machines stop for a minute during a migration to another host, and
 * a restart does not help them.
 */
export const STUCK_MS = 5 * MINUTE;
const MAX_INTERVAL_MS = 15 * SECOND;
/** Pings per watchdog period: one may be late because the service manager is busy. */
const PINGS_PER_PERIOD = 4;
const RATE_WINDOW_MS = MINUTE;
/** The status shows a delay of the event loop from this length. */
const SHOWN_DELAY_MS = SECOND;

/** `NOTIFY_SOCKET`, `WATCHDOG_USEC`, `WATCHDOG_PID`. */
type Environment = Readonly<Record<string, string | undefined>>;

export interface ServiceOptions {
  /** Default: systemd-notify. */
  notifier?: SystemdNotifier;
  /** Must be CLOCK_MONOTONIC for systemd. Default: the process's own. */
  monotonicUs?: () => bigint;
  clock?: Clock;
  /** The largest delay of the event loop since the last call, ms. */
  loopDelayMs?: () => number;
}

/** Without `NOTIFY_SOCKET` nothing is reported. */
export function createServiceReports(
  { log }: Pick<Runtime, 'log'>,
  env: Environment,
  options: ServiceOptions = {},
): ServiceReports {
  const socket = env['NOTIFY_SOCKET'];
  if (socket === undefined || socket === '') return NO_REPORTS;
  const {
    notifier = createNotifier({ socket, log, path: env['PATH'] }),
    monotonicUs = () => process.hrtime.bigint() / 1000n,
    clock = monotonicClock,
    loopDelayMs = loopDelayMeter(),
  } = options;
  const watchdogMs = watchdogPeriodMs(env);
  const intervalMs = Math.min(MAX_INTERVAL_MS, (watchdogMs ?? Number.POSITIVE_INFINITY) / PINGS_PER_PERIOD);
  const rate = createRateMeter(clock);
  let vitals: (() => Promise<Vitals>) | null = null;
  let state: 'starting' | 'running' | 'stopping' = 'starting';
  let wasStuck = false;

  async function report(): Promise<Notification> {
    if (state === 'starting' || vitals === null) return extension(intervalMs);
    if (state === 'stopping') return { WATCHDOG: '1' };
    const current = await vitals();
    const stuck = current.pending.filter(({ ms }) => ms >= STUCK_MS);
    if (stuck.length > 0 && !wasStuck && watchdogMs !== null)
      log.error({ stuck }, 'no progress: waiting to be restarted by the watchdog');
    wasStuck = stuck.length > 0;
    return {
      STATUS: statusText(current, rate(current.delivered), loopDelayMs()),
      ...(stuck.length > 0 || watchdogMs === null ? {} : { WATCHDOG: '1' }),
    };
  }

  const loop = createLoop({
    name: 'service-manager',
    intervalMs,
    log,
    run: async () => {
      const before = state;
      const message = await report();
      if (state === before) await notifier.send(message);
    },
  });

  return {
    starting: loop.start,
    ready: async (read) => {
      vitals = read;
      state = 'running';
      // Discards the delays of the start.
      loopDelayMs();
      await notifier.send({ READY: '1', ...(await report()) });
      loop.start();
    },
    reload: async (reload) => {
      // READY=1 at its end would report a start that is not complete.
      if (state !== 'running') return reload();
      await notifier.send({ RELOADING: '1', MONOTONIC_USEC: String(monotonicUs()) });
      try {
        return await reload();
      } finally {
        await notifier.send({ READY: '1' });
      }
    },
    stopping: async () => {
      state = 'stopping';
      await notifier.send({ STOPPING: '1', STATUS: 'completing work in progress' });
    },
    close: async () => {
      notifier.close();
      await loop.stop();
    },
  };
}

const NO_REPORTS: ServiceReports = {
  starting: () => {},
  ready: async () => {},
  reload: async (reload) => reload(),
  stopping: async () => {},
  close: async () => {},
};

/** `WATCHDOG_USEC` in ms (sd_watchdog_enabled(3)); null: the watchdog is off or meant for another process. */
export function watchdogPeriodMs(env: Environment, pid: number = process.pid): number | null {
  const micros = Number(env['WATCHDOG_USEC']);
  const watched = env['WATCHDOG_PID'];
  if (!(micros > 0) || (watched !== undefined && watched !== String(pid))) return null;
  return micros / 1000;
}

/** Extends the timeout of the start beyond the next report. */
function extension(intervalMs: number): Notification {
  return {
    EXTEND_TIMEOUT_USEC: String(Math.round(PINGS_PER_PERIOD * intervalMs * 1000)),
    STATUS: 'starting',
  };
}

/** `12,345 queued, 210/min delivered; sends: the disk is nearly full`. */
export function statusText(vitals: Vitals, perMinute: number, loopDelayMs: number): string {
  const number = (value: number) => Math.round(value).toLocaleString('en-US');
  return [
    `${number(vitals.queued)} queued, ${number(perMinute)}/min delivered`,
    ...vitals.faults,
    ...(loopDelayMs >= SHOWN_DELAY_MS
      ? [`event loop delayed by ${(loopDelayMs / SECOND).toFixed(1)} s`]
      : []),
  ].join('; ');
}

/** The increase of a count per minute, in the last minute or since the first call. */
export function createRateMeter(clock: Clock): (count: number) => number {
  const samples: { at: number; count: number }[] = [];
  return (count) => {
    const at = clock.now();
    samples.push({ at, count });
    // One sample at the beginning of the window is kept.
    while (samples[1] !== undefined && at - samples[1].at >= RATE_WINDOW_MS) samples.shift();
    const [first] = samples;
    if (first === undefined || at === first.at) return 0;
    return ((count - first.count) * MINUTE) / (at - first.at);
  };
}

function loopDelayMeter(): () => number {
  const histogram = monitorEventLoopDelay({ resolution: 20 });
  histogram.enable();
  return () => {
    const delayMs = histogram.max / 1e6;
    histogram.reset();
    return delayMs;
  };
}
