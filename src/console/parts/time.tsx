import { useEffect, useState } from 'preact/hooks';
import { useTexts } from '../texts.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** One timer for all times of a page: those that are shown, to be shown again each minute. */
const shown = new Set<() => void>();
let timer: number | undefined;

/** Calls `update` each minute; returns the function that ends it. */
function eachMinute(update: () => void): () => void {
  shown.add(update);
  timer ??= window.setInterval(() => {
    for (const each of shown) each();
  }, MINUTE_MS);
  return () => {
    shown.delete(update);
    if (shown.size > 0) return;
    window.clearInterval(timer);
    timer = undefined;
  };
}

/** A time: relative within a day, otherwise its date and minute; the whole time on hover. Nothing without one. */
export function Time({ at }: { at: string | null | undefined }) {
  const { locale, time } = useTexts();
  const [now, setNow] = useState(Date.now);
  useEffect(() => eachMinute(() => setNow(Date.now())), []);
  if (at === null || at === undefined || at === '') return null;
  return (
    <time dateTime={at} title={time(at)}>
      {shortTime(Date.parse(at), now, locale)}
    </time>
  );
}

/** A time (epoch ms) as `Time` shows it: "6 min ago", "28 Nov, 13:50", or with the year if that is another one. */
export function shortTime(at: number, now: number, locale: string): string {
  const distance = at - now;
  if (Math.abs(distance) < DAY_MS) {
    const format = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' });
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
