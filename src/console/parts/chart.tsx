import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { Table } from '../parts.tsx';
import { useTexts } from '../texts.ts';
import './chart.css';

export interface ChartLine {
  label: string;
  /** A color of the style sheet, such as `--good`. */
  color: string;
  values: readonly number[];
}

interface ChartProps {
  label: string;
  /** Epoch seconds, rising. */
  times: readonly number[];
  lines: readonly ChartLine[];
}

const HEIGHT = 240;

/** Lines over time, and the same numbers as a table: a canvas cannot be read by a screen reader. */
export function Chart({ label, times, lines }: ChartProps) {
  const { t, time } = useTexts();
  const canvas = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const target = canvas.current;
    if (target === null) return undefined;
    let plot = draw(target, times, lines);
    const again = () => {
      plot.destroy();
      plot = draw(target, times, lines);
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
  }, [times, lines]);
  return (
    <figure aria-label={label}>
      <figcaption>
        {label}
        <ul class="legend">
          {lines.map(({ label: name, color, values }) => (
            <li key={name}>
              <svg width="12" height="12" aria-hidden="true">
                <rect width="12" height="12" fill={`var(${color})`} />
              </svg>{' '}
              {name}: {values.reduce((sum, value) => sum + value, 0)}
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={canvas} aria-hidden="true" />
      <details>
        <summary>{t('chart.table')}</summary>
        <Table label={label} heads={[t('audit.time'), ...lines.map(({ label: name }) => name)]}>
          {times.map((at, index) => (
            <tr key={at}>
              <th scope="row">{time(new Date(at * 1000).toISOString())}</th>
              {lines.map(({ label: name, values }) => (
                <td key={name}>{values[index]}</td>
              ))}
            </tr>
          ))}
        </Table>
      </details>
    </figure>
  );
}

function draw(target: HTMLElement, times: readonly number[], lines: readonly ChartLine[]): UPlot {
  const style = getComputedStyle(target);
  const axis = { stroke: style.color, grid: { stroke: colorOf(target, '--line'), width: 1 } };
  return new UPlot(
    {
      width: target.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      axes: [axis, { ...axis, size: 60 }],
      scales: { y: { range: (_, __, max) => [0, Math.max(max, 1)] } },
      series: [{}, ...lines.map(({ label, color }) => ({ label, stroke: colorOf(target, color), width: 2 }))],
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
