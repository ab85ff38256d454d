/**
 * Time, passed in so that a test can hold it still. Inside the house time is epoch milliseconds; ISO 8601
 * appears only at the edges (`iso`).
 */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Epoch milliseconds as ISO 8601 UTC with milliseconds. */
export function iso(epochMs: number): string {
  return new Date(epochMs).toISOString();
}
