/** Time as a dependency, so that tests control it. Internally epoch milliseconds; ISO 8601 only at the edges (`iso`). */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** Milliseconds since an arbitrary moment; never set back or forward. For durations, not for dates. */
export const monotonicClock: Clock = { now: () => performance.now() };

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Epoch milliseconds as ISO 8601 UTC with milliseconds. */
export function iso(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/** `iso` of a time that may be unknown. */
export function isoOrNull(epochMs: number | null): string | null {
  return epochMs === null ? null : iso(epochMs);
}

/**
 * RFC 3339 §5.6, and ISO 8601 offsets without colon or minutes. The time of day is optional; with a time of day the zone is
 * required.
 */
const MOMENT =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)([Zz]|([+-]\d\d)(?::?(\d\d))?))?$/;

/** Parses a date or date-time; returns epoch ms, or null if it is not one or the day does not exist. */
export function parseMoment(text: string): number | null {
  const [, year, month, day, time, zone, hours, minutes = '00'] = MOMENT.exec(text) ?? [];
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return null;
  const offset = hours === undefined ? zone?.toUpperCase() : `${hours}:${minutes}`;
  const moment = Date.parse(`${year}-${month}-${day}${time === undefined ? '' : `T${time}${offset}`}`);
  return Number.isNaN(moment) ? null : moment;
}
