import { useEffect, useMemo, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import { Table } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import { type Axes, axesOf } from './chart-axes.ts';
import './chart.css';

export interface ChartLine {
  label: string;
  /** A color of the style sheet, such as `--c-delivered`. */
  color: string;
  /** Null: not known, a gap in the line. */
  values: readonly (number | null)[];
}

interface ChartProps {
  label: string;
  /** Epoch seconds, rising. */
  times: readonly number[];
  /** The distance between two times. Days are those of UTC. */
  unit: 'hour' | 'day';
  lines: readonly ChartLine[];
  /** Whether the page has another table with these numbers. */
  hasOwnTable?: boolean;
}

const HEIGHT = 240;

/** Lines over time, and the same numbers as a table: a canvas cannot be read by a screen reader. */
export function Chart({ label, times, unit, lines, hasOwnTable = false }: ChartProps) {
  const { t, time, number, locale } = useTexts();
  const axes = useMemo(() => axesOf(locale, unit), [locale, unit]);
  const canvas = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const target = canvas.current;
    if (target === null) return undefined;
    let plot = draw(target, times, lines, axes);
    const again = () => {
      plot.destroy();
      plot = draw(target, times, lines, axes);
    };
    const resized = new ResizeObserver(() => plot.setSize({ width: target.clientWidth, height: HEIGHT }));
    resized.observe(target);
    // Colors are those of the theme at the time of drawing.
    const dark = window.matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', again);
    const theme = new MutationObserver(again);
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      resized.disconnect();
      theme.disconnect();
      dark.removeEventListener('change', again);
      plot.destroy();
    };
  }, [times, lines, axes]);
  return (
    <figure class="chart" aria-label={label}>
      <figcaption>
        {label}
        <ul class="legend">
          {lines.map(({ label: name, color, values }) => (
            <li key={name}>
              <svg width="8" height="8" aria-hidden="true">
                <rect width="8" height="8" fill={`var(${color})`} />
              </svg>{' '}
              {name}: {number(values.reduce<number>((sum, value) => sum + (value ?? 0), 0))}
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="canvas" ref={canvas} aria-hidden="true" />
      {!hasOwnTable && (
        <details>
          <summary>{t('chart.table')}</summary>
          <Table label={label} heads={[t('audit.time'), ...lines.map(({ label: name }) => name)]}>
            {times.map((at, index) => (
              <tr key={at}>
                <th scope="row">{unit === 'day' ? axes.day(at) : time(new Date(at * 1000).toISOString())}</th>
                {lines.map(({ label: name, values }) => (
                  <td key={name}>{numberOf(values[index], number)}</td>
                ))}
              </tr>
            ))}
          </Table>
        </details>
      )}
    </figure>
  );
}

function numberOf(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '' : format(value);
}

const DAY_SECONDS = 86_400;
/** Distances between marks of counts. */
const INTEGERS = Array.from(
  { length: 30 },
  (_, index) => [1, 2, 5][index % 3]! * 10 ** Math.floor(index / 3),
);

function draw(
  target: HTMLElement,
  times: readonly number[],
  lines: readonly ChartLine[],
  { timeZone, ...texts }: Axes,
): UPlot {
  const style = getComputedStyle(target);
  const axis = { stroke: style.color, grid: { stroke: colorOf(target, '--line'), width: 1 } };
  return new UPlot(
    {
      width: target.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      axes: [
        {
          ...axis,
          values: (_, marks) => texts.times(marks),
          // Whole days.
          ...(timeZone === undefined
            ? {}
            : { incrs: [1, 2, 7, 14, 30, 60].map((days) => days * DAY_SECONDS) }),
        },
        { ...axis, size: 60, values: (_, marks) => marks.map(texts.number), incrs: INTEGERS },
      ],
      ...(timeZone === undefined ? {} : { tzDate: (at) => UPlot.tzDate(new Date(at * 1000), timeZone) }),
      scales: { y: { range: (_, __, max) => [0, Math.max(max, 1)] } },
      series: [
        {},
        ...lines.map(({ label, color }) => ({
          label,
          stroke: colorOf(target, color),
          width: 2,
          points: { show: true, size: 4 },
        })),
      ],
    },
    [[...times], ...lines.map(({ values }) => [...values])],
    target,
  );
}

/** The value of a color of the style sheet; `light-dark()` is resolved by an element. */
function colorOf(target: HTMLElement, name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  target.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
