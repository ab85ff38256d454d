import { createHash } from 'node:crypto';
import { type DestinationStream, type Logger, pino } from 'pino';

/**
 * One JSON line per thing that happened, ids in fields. Never keys, bodies or secrets. People's addresses are
 * written as they are at `debug`, and hashed otherwise unless the operator asks for them.
 */
export type Log = Logger;

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

export interface LogSettings {
  level: LogLevel;
  hashAddresses: boolean;
}

/** Fields that hold a person's address. */
const ADDRESS_FIELDS = ['recipient', 'from', 'to'];

export function createLog(settings: LogSettings, destination?: DestinationStream): Log {
  const hash = settings.hashAddresses && settings.level !== 'debug' && settings.level !== 'trace';
  const options = {
    level: settings.level,
    base: {},
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: hash ? Object.fromEntries(ADDRESS_FIELDS.map((field) => [field, hashed])) : {},
  };
  return pino(options, destination ?? standardOutput());
}

/** Lines that wait while standard output takes none; more are dropped. */
const WAITING_LOG_BYTES = 1024 * 1024;

/** A log that cannot be written (a file on a full disk) must not end the process whose trouble it reports. */
function standardOutput(): DestinationStream {
  const stream = pino.destination({ dest: 1, sync: true, maxLength: WAITING_LOG_BYTES });
  stream.on('error', () => {
    // Written again with the next line; there is no other place to report it.
  });
  return stream;
}

function hashed(value: unknown): unknown {
  return typeof value === 'string'
    ? `sha256:${createHash('sha256').update(value).digest('hex').slice(0, 16)}`
    : value;
}

/**
 * Logs an error. Of errors with a `kind`, which come with every request while their cause lasts (a full disk), one
 * line is written per interval; the next one counts those left out in `suppressed`.
 */
export type LogError = (kind: string | null, fields: Record<string, unknown>, message: string) => void;

const REPEAT_INTERVAL_MS = 10_000;

/** `now`: monotonic milliseconds. */
export function createErrorLog(log: Log, now: () => number = () => performance.now()): LogError {
  const last = new Map<string, { at: number; suppressed: number }>();
  return (kind, fields, message) => {
    if (kind === null) return log.error(fields, message);
    const before = last.get(kind);
    const at = now();
    if (before !== undefined && at - before.at < REPEAT_INTERVAL_MS) {
      before.suppressed++;
      return;
    }
    last.set(kind, { at, suppressed: 0 });
    const suppressed = before?.suppressed ?? 0;
    log.error(suppressed === 0 ? fields : { ...fields, suppressed }, message);
  };
}
