const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The value of a `datetime-local` field for a time (epoch ms), in the time zone of the browser; empty for NaN. */
export function localTime(time: number): string {
  if (Number.isNaN(time)) return '';
  return new Date(time - new Date(time).getTimezoneOffset() * MINUTE_MS).toISOString().slice(0, 16);
}

/** A time (epoch ms) as `Time` shows it: "6 min ago", "28 Nov, 13:50", or with the year if that is another one. */
export function shortTime(at: number, now: number, locale: string): string {
  const distance = at - now;
  if (Math.abs(distance) < DAY_MS) {
    const format = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' });
    if (Math.abs(distance) < MINUTE_MS) return format.format(0, 'second');
    return Math.abs(distance) < HOUR_MS
      ? format.format(Math.trunc(distance / MINUTE_MS), 'minute')
      : format.format(Math.trunc(distance / HOUR_MS), 'hour');
  }
  const isThisYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  return new Intl.DateTimeFormat(locale, {
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    ...(isThisYear ? {} : { year: 'numeric' }),
  }).format(at);
}
