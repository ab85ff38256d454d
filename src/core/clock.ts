/**
 * Time, passed in so that a test can hold it still. Inside the house time is epoch milliseconds; ISO 8601
 * appears only at the edges (`iso`).
 */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** Milliseconds since some moment in the past; never set back or forward. For durations, never for a date. */
export const monotonicClock: Clock = { now: () => performance.now() };

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Epoch milliseconds as ISO 8601 UTC with milliseconds. */
export function iso(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/** RFC 3339 §5.6; the time of day may be left out, its zone may not. */
const MOMENT = /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d))?$/;

/** A moment as people and programs write it, in epoch ms; null when it is none, or a day that is in no calendar. */
export function parseMoment(text: string): number | null {
  const [, year, month, day] = MOMENT.exec(text) ?? [];
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return null;
  const moment = Date.parse(text.replace(' ', 'T'));
  return Number.isNaN(moment) ? null : moment;
}
