import { type Clock, MINUTE } from '../core/clock.ts';
import type { Log } from '../core/log.ts';

interface Entry {
  since: number;
  count: number;
  /** Fields of the last occurrence. */
  fields: Record<string, string>;
}

const WINDOW_MS = MINUTE;
/** Further addresses share one line. */
const MAX_ADDRESSES = 500;
const OTHERS = 'others';

/**
 * Logs repeated occurrences as one line per address and minute, with a count, so that a flood does not fill the log. Has no
 * timer: lines are written by `sweep`, a minute after their first occurrence, and by `flush`. `message` is the text of each
 * line; beyond 500 addresses, all others share one line.
 */
export function createLogWindow(clock: Clock, log: Pick<Log, 'warn'>, message: string) {
  const entries = new Map<string, Entry>();
  const write = (before: number): void => {
    for (const [remoteAddress, { since, count, fields }] of entries) {
      if (since > before) continue;
      entries.delete(remoteAddress);
      log.warn({ ...fields, remoteAddress, count }, message);
    }
  };
  return {
    count: (remoteAddress: string, fields: Record<string, string>): void => {
      const name = entries.has(remoteAddress) || entries.size < MAX_ADDRESSES ? remoteAddress : OTHERS;
      const entry = entries.get(name);
      if (entry === undefined) entries.set(name, { since: clock.now(), count: 1, fields });
      else {
        entry.count++;
        entry.fields = fields;
      }
    },
    /** Writes the lines of windows that have ended; called every few seconds. */
    sweep: (): void => write(clock.now() - WINDOW_MS),
    /** Writes all lines. */
    flush: (): void => write(Infinity),
  };
}
