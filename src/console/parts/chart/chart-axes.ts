/** The labels of the axes of a chart. */
export interface Axes {
  day(at: number): string;
  /**
   * Labels of the marks of the time axis, epoch seconds. Those of hours also have the day: the first one, and where
   * it changes.
   */
  times(marks: readonly number[]): string[];
  number(value: number): string;
  /** Whether values are shares, which are shown in percent. */
  isShare: boolean;
  /** The zone in which days begin; undefined: that of the browser. */
  timeZone: string | undefined;
}

/**
 * Days are those of UTC, as the statistics count them; hours are in the zone of the browser. `locale`: a BCP 47 tag.
 */
export function axesOf(locale: string, unit: 'hour' | 'day', isShare = false): Axes {
  const timeZone = unit === 'day' ? 'UTC' : undefined;
  const dates = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short', timeZone });
  const hours = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', timeZone });
  const numbers = new Intl.NumberFormat(
    locale,
    isShare ? { style: 'percent', maximumSignificantDigits: 2 } : {},
  );
  const day = (at: number) => dates.format(at * 1000);
  return {
    day,
    times: (marks) =>
      marks.map((at, index) => {
        if (unit === 'day') return day(at);
        const previous = marks[index - 1];
        const isNewDay = previous === undefined || day(at) !== day(previous);
        return isNewDay ? `${hours.format(at * 1000)}\n${day(at)}` : hours.format(at * 1000);
      }),
    number: numbers.format,
    isShare,
    timeZone,
  };
}
