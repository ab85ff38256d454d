import { createHmac } from 'node:crypto';
import { type DestinationStream, type Logger, pino } from 'pino';
import { createLogOutput, type LogOutput } from './log-output.ts';
import { recordOf } from './record-of.ts';

/**
 * Structured log: one JSON line per record, ids in fields, never keys, bodies or secrets. Addresses of people are hashed
 * unless the level is `debug` or the operator turned hashing off.
 */
export type Log = Logger;

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

export interface LogSettings {
  level: LogLevel;
  hashAddresses: boolean;
}

/** Purpose from which the key is derived (`Seal.derive`). */
export const LOG_KEY_PURPOSE = 'log-addresses';
const HASH_DIGITS = 16;
const NOT_KEYED = '[address]';

/**
 * Hashes addresses with a key of this installation, so that a log does not reveal whether a guessed address is in it.
 * The key is in the data directory, which is opened after the first records; until `useKey`, addresses are omitted.
 *
 * Begins without a key: `hash` returns `[address]` until `useKey`, then `hmac:` and 16 hexadecimal digits of the
 * HMAC-SHA256 of the trimmed lower-case address.
 */
export function createAddressHasher() {
  let key: Buffer | null = null;
  return {
    useKey: (newKey: Buffer): void => {
      key = newKey;
    },
    hash: (address: string): string => {
      if (key === null) return NOT_KEYED;
      const normalized = address.trim().toLowerCase();
      return `hmac:${createHmac('sha256', key).update(normalized).digest('hex').slice(0, HASH_DIGITS)}`;
    },
  };
}

export type AddressHasher = ReturnType<typeof createAddressHasher>;

/** Fields that may contain a person's address, and fields with text from other servers, which may quote one. */
const ADDRESS_FIELDS = ['recipient', 'from', 'to'];
const TEXT_FIELDS = ['reply', 'diagnostic'];
const MAX_TEXT_LENGTH = 500;

/** Default of `output`: standard output. Without `addresses`, or before it has a key, addresses that would be hashed are omitted. */
export function createLog(
  settings: LogSettings,
  output: DestinationStream | LogOutput = createLogOutput(),
  addresses: AddressHasher = createAddressHasher(),
): Log {
  // Evaluated for each record: the level changes while the daemon runs.
  const hashes = () => settings.hashAddresses && !log.isLevelEnabled('debug');
  const ofAddress = (value: unknown) =>
    // `from` and `to` can also be a state or an id.
    typeof value === 'string' && value.includes('@') && hashes() ? addresses.hash(value) : value;
  const ofText = (value: unknown) => {
    if (typeof value !== 'string') return value;
    const text = oneLine(value);
    return bounded(hashes() ? text.replaceAll(ADDRESS_IN_TEXT, (address) => addresses.hash(address)) : text);
  };
  const log: Log = pino(
    {
      level: settings.level,
      base: {},
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label: string) => ({ level: label }) },
      serializers: {
        ...recordOf(ADDRESS_FIELDS, () => ofAddress),
        ...recordOf(TEXT_FIELDS, () => ofText),
      },
    },
    output,
  );
  if ('onDropped' in output)
    output.onDropped((dropped) => log.warn({ dropped }, 'log records dropped: standard output was not read'));
  return log;
}

/**
 * An address as quoted by servers, without the punctuation around it. The lookbehind makes the time linear: of a run of such
 * characters only the first one begins a search.
 */
const ADDRESS_IN_TEXT =
  /(?<![^\s<>()[\]{}"',;:@|\\/])[^\s<>()[\]{}"',;:@|\\/]+@(?:\[[0-9a-f:.]{2,60}\]|[\p{L}\p{N}][\p{L}\p{N}_-]{0,62}(?:\.[\p{L}\p{N}_-]{1,63}){0,10})/giu;

/** Replaces control and format characters (line breaks, terminal escapes, bidirectional overrides) with spaces. */
function oneLine(text: string): string {
  return text
    .slice(0, 4 * MAX_TEXT_LENGTH)
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
}

function bounded(text: string): string {
  return text.length > MAX_TEXT_LENGTH ? `${text.slice(0, MAX_TEXT_LENGTH)}…` : text;
}

/**
 * Logs an error. Errors with a `kind` occur with every request while their cause lasts (a full disk): one record per
 * kind and interval is written, and the next one counts the omitted ones in `suppressed`.
 */
export type LogError = (kind: string | null, fields: Record<string, unknown>, text: string) => void;

const REPEAT_INTERVAL_MS = 10_000;

/** `now`: monotonic milliseconds. */
export function createErrorLog(log: Log, now: () => number = () => performance.now()): LogError {
  const last = new Map<string, { at: number; suppressed: number }>();
  return (kind, fields, text) => {
    if (kind === null) return log.error(fields, text);
    const before = last.get(kind);
    const at = now();
    if (before !== undefined && at - before.at < REPEAT_INTERVAL_MS) {
      before.suppressed++;
      return;
    }
    last.set(kind, { at, suppressed: 0 });
    const suppressed = before?.suppressed ?? 0;
    log.error(suppressed === 0 ? fields : { ...fields, suppressed }, text);
  };
}
