import './sparkline.css';

interface SparklineProps {
  /** For each column its parts, from the bottom. */
  columns: readonly (readonly number[])[];
  /** Of the parts: names of CSS variables. */
  colors: readonly string[];
}

const WIDTH = 80;
const HEIGHT = 24;
/** The share of a column that is bar. */
const BAR = 0.75;

/** How a number changed, next to the number: screen readers read only that. */
export function Sparkline({ columns, colors }: SparklineProps) {
  const step = WIDTH / Math.max(columns.length, 1);
  const max = Math.max(1, ...columns.map((parts) => parts.reduce((sum, part) => sum + part, 0)));
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {columns.map((parts, index) => {
        let top = HEIGHT;
        return parts.map((part, kind) => {
          // What is not zero is visible.
          const height = part === 0 ? 0 : Math.max(1.5, (part / max) * (HEIGHT - 1));
          top -= height;
          return height === 0 ? null : (
            <rect
              key={`${index} ${colors[kind]}`}
              x={index * step}
              y={top}
              width={step * BAR}
              height={height}
              fill={`var(${colors[kind]})`}
            />
          );
        });
      })}
      <rect y={HEIGHT - 0.5} width={WIDTH} height="0.5" fill="var(--line-strong)" />
    </svg>
  );
}
