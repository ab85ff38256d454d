import UPlot from 'uplot';
import type { ChartLine } from './chart.tsx';
import type { Axes } from './chart-axes.ts';

/* Drawing a chart on a canvas with uPlot. */

interface PlotOptions {
  /** Epoch seconds, rising. */
  times: readonly number[];
  lines: readonly ChartLine[];
  axes: Axes;
  /** Whether large numbers are drawn closer together, so that small ones can be seen, too. */
  isCompressed: boolean;
  /** Called when the pointer moves over the plot, and when it leaves. */
  onPoint: (plot: UPlot) => void;
}

const HEIGHT = 180;
const AXIS_FONT = '11px ui-sans-serif, system-ui, sans-serif';
const MANTISSAS = [1, 2, 5];
const DAY_SECONDS = 86_400;
/** Space at the outer sides of the first and the last bar, as a part of the distance between two. */
const BAR_MARGIN = 0.5;
/** The highest share of an axis is at least this one. */
const MIN_SHARE = 0.002;
/** Distances between marks of counts. */
const INTEGERS = Array.from(
  { length: 30 },
  (_, index) => (MANTISSAS[index % 3] ?? 1) * 10 ** Math.floor(index / 3),
);

/** Draws the lines into `target`. Bars are stacked: the first one is at the bottom. */
export function draw(target: HTMLElement, { times, lines, axes, isCompressed, onPoint }: PlotOptions): UPlot {
  const { timeZone, isShare, ...texts } = axes;
  const axis = { stroke: getComputedStyle(target).color, ticks: { show: false }, font: AXIS_FONT };
  const step = (times[1] ?? 0) - (times[0] ?? 0);
  const hasBars = lines.some(({ isBar }) => isBar === true);
  const margin = hasBars ? step * BAR_MARGIN : 0;
  // Higher bars are drawn first, so that the lower ones cover them.
  const drawn = [...stacked(lines).toReversed(), ...lines.filter(({ isBar }) => isBar !== true)];
  return new UPlot(
    {
      width: target.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      axes: [
        {
          ...axis,
          grid: { show: false },
          values: (_, marks) => texts.times(marks),
          // Whole days, whose labels have one line.
          ...(timeZone === undefined
            ? {}
            : { incrs: [1, 2, 7, 14, 30, 60].map((days) => days * DAY_SECONDS), size: 32 }),
        },
        {
          ...axis,
          grid: { stroke: colorOf(target, '--line'), width: 1 },
          size: 56,
          values: (_, marks) => marks.map(texts.number),
          ...(isCompressed || isShare ? {} : { incrs: INTEGERS }),
        },
      ],
      ...(timeZone === undefined ? {} : { tzDate: (at) => UPlot.tzDate(new Date(at * 1000), timeZone) }),
      scales: {
        x: { range: (_, min, max) => [min - margin, max + margin] },
        y: {
          range: (_, __, max) => [0, isShare ? Math.max(1.1 * max, MIN_SHARE) : Math.max(max, 1)],
          // The inverse hyperbolic sine (4): like a logarithm, but it has a zero. The enum is in the declarations only.
          // oxlint-disable-next-line typescript/no-unsafe-enum-assignment
          ...(isCompressed ? { distr: 4, asinh: 1 } : {}),
        },
      },
      hooks: { setCursor: [onPoint] },
      series: [
        {},
        ...drawn.map(({ label, color, isBar }) => ({
          label,
          stroke: colorOf(target, color),
          // Shares that others state are known of some days only.
          points: isShare ? { show: true, size: 5 } : { show: false },
          spanGaps: isShare,
          ...(isBar === true
            ? { width: 0, fill: colorOf(target, color), paths: UPlot.paths.bars?.({ size: [0.72, 40] }) }
            : { width: 2 }),
        })),
      ],
    },
    [[...times], ...drawn.map(({ values }) => [...values])],
    target,
  );
}

/** The bars, each on the sum of those before it. */
function stacked(lines: readonly ChartLine[]): ChartLine[] {
  let below: readonly (number | null)[] = [];
  return lines
    .filter(({ isBar }) => isBar === true)
    .map((line) => {
      const values = line.values.map((value, index) => (value ?? 0) + (below[index] ?? 0));
      below = values;
      return { ...line, values };
    });
}

/** Whether the largest bar is so much larger than usual that the others can hardly be seen. */
export function isUneven(lines: readonly ChartLine[]): boolean {
  const bars = stacked(lines);
  const totals = (bars.at(-1)?.values ?? []).flatMap((value) =>
    value === null || value === 0 ? [] : [value],
  );
  const median = totals.toSorted((one, other) => one - other)[Math.floor(totals.length / 2)];
  return median !== undefined && Math.max(...totals) > UNEVEN * median;
}

const UNEVEN = 20;

/** The value of a color of the style sheet; `light-dark()` is resolved by an element. */
function colorOf(target: HTMLElement, name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  target.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
