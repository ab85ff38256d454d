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
  return destination ? pino(options, destination) : pino(options);
}

function hashed(value: unknown): unknown {
  return typeof value === 'string'
    ? `sha256:${createHash('sha256').update(value).digest('hex').slice(0, 16)}`
    : value;
}
