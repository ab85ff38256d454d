import { useTexts } from '../../texts.ts';
import './bars.css';

interface Bar {
  name: string;
  /** The length of the bar, as a share of the longest one. */
  total: number;
  /** Parts from the left; the rest up to `total` is gray. */
  parts: readonly { color: string; value: number }[];
}

/** Bars for comparison, next to a table with the same numbers: screen readers read only the table. */
export function Bars({ label, bars }: { label: string; bars: readonly Bar[] }) {
  const { number } = useTexts();
  const longest = Math.max(1, ...bars.map(({ total }) => total));
  return (
    <figure class="bars" aria-label={label}>
      <ul aria-hidden="true">
        {bars.map(({ name, total, parts }) => {
          let x = 0;
          return (
            <li key={name}>
              <span>
                {name} <span class="small">{number(total)}</span>
              </span>
              <svg viewBox="0 0 100 10" preserveAspectRatio="none">
                <rect width={(100 * total) / longest} height="10" fill="var(--c-accepted)" />
                {parts.map(({ color, value }) => {
                  const width = (100 * value) / longest;
                  x += width;
                  return <rect key={color} x={x - width} width={width} height="10" fill={`var(${color})`} />;
                })}
              </svg>
            </li>
          );
        })}
      </ul>
    </figure>
  );
}
