import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type UPlot from 'uplot';
import { Table } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import { axesOf } from './chart-axes.ts';
import { draw, isUneven } from './plot.ts';
import './chart.css';

export interface ChartLine {
  label: string;
  /** A color of the style sheet, such as `--c-delivered`. */
  color: string;
  /** Null: not known, a gap in the line. */
  values: readonly (number | null)[];
  /** Drawn as bars, which are stacked in the order of the lines. Default: a line. */
  isBar?: boolean;
  /** Not drawn until its entry in the legend is pressed. */
  isHidden?: boolean;
}

interface ChartProps {
  label: string;
  /** Epoch seconds, rising. */
  times: readonly number[];
  /** The distance between two times. Days are those of UTC. */
  unit: 'hour' | 'day';
  lines: readonly ChartLine[];
  /** Whether the values are shares, which have no sum. Default: they are counts. */
  isShare?: boolean;
  /** Whether the page has another table with these numbers. */
  hasOwnTable?: boolean;
}

/** What is under the pointer: its place in the canvas, and the position of its time. */
interface Pointed {
  left: number;
  index: number;
}

/**
 * Bars and lines over time, and the same numbers as a table: a canvas cannot be read by a screen reader. The legend has the
 * sum of each line, and shows or hides it.
 */
export function Chart({ label, times, unit, lines, isShare = false, hasOwnTable = false }: ChartProps) {
  const { t, time, number, locale } = useTexts();
  const axes = useMemo(() => axesOf(locale, unit, isShare), [locale, unit, isShare]);
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [isCompressed, setCompressed] = useState(false);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const shown = useMemo(
    () => lines.filter((line) => (line.isHidden === true) === toggled.has(line.label)),
    [lines, toggled],
  );
  const canvas = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const target = canvas.current;
    if (target === null) return undefined;
    const point = ({ cursor: { left, idx } }: UPlot) =>
      setPointed(
        left === undefined || left < 0 || idx === null || idx === undefined ? null : { left, index: idx },
      );
    const plotted = () => draw(target, { times, lines: shown, axes, isCompressed, onPoint: point });
    let plot = plotted();
    const again = () => {
      plot.destroy();
      plot = plotted();
    };
    const resized = new ResizeObserver(() =>
      plot.setSize({ width: target.clientWidth, height: plot.height }),
    );
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
  }, [times, shown, axes, isCompressed]);
  const timeOf = (at: number) => (unit === 'day' ? axes.day(at) : time(new Date(at * 1000).toISOString()));
  const toggle = (name: string) =>
    setToggled((last) => {
      const next = new Set(last);
      if (!next.delete(name)) next.add(name);
      return next;
    });
  return (
    <figure class="chart" aria-label={label}>
      <figcaption>
        {label}
        <ul class="legend">
          {lines.map((line) => (
            <li key={line.label}>
              <button
                type="button"
                class="legend-entry"
                aria-pressed={shown.includes(line)}
                onClick={() => toggle(line.label)}
              >
                <Swatch color={line.color} /> {line.label}
                {!isShare && `: ${number(sumOf(line.values))}`}
              </button>
            </li>
          ))}
          {!isShare && isUneven(lines) && (
            <li>
              <button
                type="button"
                class="legend-entry"
                aria-pressed={isCompressed}
                onClick={() => setCompressed(!isCompressed)}
              >
                {t('chart.compressed')}
              </button>
            </li>
          )}
        </ul>
      </figcaption>
      <div class="canvas" aria-hidden="true">
        <div ref={canvas} />
        {pointed !== null && times[pointed.index] !== undefined && (
          <Tooltip left={pointed.left} width={canvas.current?.clientWidth ?? 0}>
            <strong>{timeOf(times[pointed.index] ?? 0)}</strong>
            {shown.map(({ label: name, color, values }) => (
              <span key={name}>
                <Swatch color={color} /> {name} <b>{numberOf(values[pointed.index], axes.number)}</b>
              </span>
            ))}
          </Tooltip>
        )}
      </div>
      {!hasOwnTable && (
        <details>
          <summary>{t('chart.table')}</summary>
          <Table
            label={label}
            heads={[t('audit.time'), ...lines.map(({ label: text }) => ({ text, end: true as const }))]}
          >
            {times.map((at, index) => (
              <tr key={at}>
                <th scope="row">{timeOf(at)}</th>
                {lines.map(({ label: name, values }) => (
                  <td key={name}>{numberOf(values[index], axes.number)}</td>
                ))}
              </tr>
            ))}
          </Table>
        </details>
      )}
    </figure>
  );
}

function Swatch({ color }: { color: string }) {
  return (
    <svg width="8" height="8" aria-hidden="true">
      <rect width="8" height="8" fill={`var(${color})`} />
    </svg>
  );
}

interface TooltipProps {
  /** Place of the pointer in the plot, and width of the canvas, px. */
  left: number;
  width: number;
  children: ComponentChildren;
}

/** The values under the pointer, on the side with more space. */
function Tooltip({ left, width, children }: TooltipProps) {
  const card = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (card.current === null) return;
    const isRight = left < width / 2;
    card.current.style.left = isRight ? `${left + TOOLTIP_OFFSET_PX}px` : 'auto';
    card.current.style.right = isRight ? 'auto' : `${width - left - TOOLTIP_OFFSET_PX / 2}px`;
  });
  return (
    <div class="tooltip" ref={card}>
      {children}
    </div>
  );
}

/** The axis left of the plot, and a little distance from the pointer. */
const TOOLTIP_OFFSET_PX = 72;

function sumOf(values: readonly (number | null)[]): number {
  return values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
}

function numberOf(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '' : format(value);
}
