import type { ComponentChildren } from 'preact';
import { useTexts } from '../texts.ts';
import { MAX_BOUNCED } from './totals.ts';
import './figures.css';

interface FigureProps {
  /** A color of the style sheet, such as `--c-delivered`. */
  color: string;
  label: string;
  value: string;
  /** Its change, its limit, or what it is a part of. */
  note: string;
  /** Whether it exceeds its limit. */
  isHigh?: boolean;
}

/** Headline figures in a row: `Figure`s, an odd number. */
export function FigureRow({ children }: { children: ComponentChildren }) {
  return <dl class="figures">{children}</dl>;
}

/** A headline figure, in a `FigureRow`. */
export function Figure({ color, label, value, note, isHigh = false }: FigureProps) {
  return (
    <div class={isHigh ? 'figure high' : 'figure'}>
      <dt>
        <svg width="8" height="8" aria-hidden="true">
          <rect width="8" height="8" rx="2" fill={`var(${color})`} />
        </svg>
        {label}
      </dt>
      <dd class="figure-value">{value}</dd>
      <dd class="figure-note">{note}</dd>
    </div>
  );
}

/** The part of the messages that bounced, with the part that receivers tolerate. */
export function BouncedFigure({ bounced, of }: { bounced: number; of: number }) {
  const { t, percent } = useTexts();
  return (
    <Figure
      color="--c-bounced"
      label={t('overview.outcome.bounced')}
      value={percent(bounced, of)}
      note={t('overview.figure.limit', { count: bounced, limit: percent(MAX_BOUNCED, 1) })}
      isHigh={bounced > MAX_BOUNCED * of}
    />
  );
}
