/** The value of a `datetime-local` field for a time (epoch ms), in the time zone of the browser; empty for NaN. */
export function localTime(time: number): string {
  if (Number.isNaN(time)) return '';
  return new Date(time - new Date(time).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
