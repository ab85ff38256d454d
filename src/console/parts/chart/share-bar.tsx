import './share-bar.css';

interface ShareBarProps {
  total: number;
  /** Parts from the left; the rest up to `total` is gray. */
  parts: readonly { color: string; value: number }[];
}

/** How a whole is divided, next to its numbers: screen readers read only those. */
export function ShareBar({ total, parts }: ShareBarProps) {
  let x = 0;
  return (
    <svg class="share-bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect width="100" height="6" fill="var(--line)" />
      {parts.map(({ color, value }) => {
        const width = Math.min((100 * value) / Math.max(total, 1), 100 - x);
        x += width;
        return <rect key={color} x={x - width} width={width} height="6" fill={`var(${color})`} />;
      })}
    </svg>
  );
}
