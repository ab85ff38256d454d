import { useEffect, useState } from 'preact/hooks';
import { useTexts } from '../texts.ts';
import { shortTime } from './local-time.ts';

const MINUTE_MS = 60_000;

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
