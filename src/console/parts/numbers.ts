/** Numbers in the language of the person. */
export interface Numbers {
  number(value: number): string;
  /** A part of a whole in percent; '–': of nothing. `down`: rounded down, so that 100 % means all. */
  percent(part: number, whole: number, rounding?: 'down'): string;
  /** A size in KB, MB or GB, at least 1 KB. */
  size(bytes: number): string;
}

const KB = 1000;
const MB = 1_000_000;
const GB = 1_000_000_000;

/** `locale`: of `Intl`. */
export function numbersIn(locale: string): Numbers {
  const numbers = new Intl.NumberFormat(locale);
  const percents = new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 1 });
  const sizes = (unit: string, maximumFractionDigits: number) =>
    new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits });
  return {
    number: (value) => numbers.format(value),
    percent: (part, whole, rounding) => {
      if (whole === 0) return '–';
      return percents.format(rounding === 'down' ? Math.floor((part / whole) * 1000) / 1000 : part / whole);
    },
    size: (bytes) => {
      if (bytes < MB) return sizes('kilobyte', 0).format(Math.max(bytes / KB, 1));
      return bytes < GB ? sizes('megabyte', 1).format(bytes / MB) : sizes('gigabyte', 1).format(bytes / GB);
    },
  };
}
