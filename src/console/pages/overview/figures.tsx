import { BouncedFigure, Figure, FigureRow } from '../../parts/figures.tsx';
import { MAX_COMPLAINED, type Point, type Totals, totals } from '../../parts/totals.ts';
import { useTexts } from '../../texts.ts';
import type { Period } from './period.ts';

interface FiguresProps {
  /** Of the period and the one before it. */
  points: readonly Point[];
  period: Period;
  /** The beginning of the period, epoch ms. */
  from: number;
}

/** The five figures of the period, each with its limit or its change. */
export function Figures({ points, period, from }: FiguresProps) {
  const { t, number, percent } = useTexts();
  const before = totals(points.filter(({ at }) => Date.parse(at) < from));
  const now = totals(points.filter(({ at }) => Date.parse(at) >= from));
  const share = (outcome: keyof Totals, of: keyof Totals = 'accepted') => percent(now[outcome], now[of]);
  const change = before.accepted === 0 ? null : now.accepted / before.accepted - 1;
  return (
    <FigureRow>
      <Figure
        color="--c-accepted"
        label={t('overview.outcome.accepted')}
        value={number(now.accepted)}
        note={
          change === null
            ? t('overview.change.none')
            : t(`overview.change.${period}`, { change: `${change > 0 ? '+' : ''}${percent(change, 1)}` })
        }
      />
      <Figure
        color="--c-delivered"
        label={t('overview.outcome.delivered')}
        value={share('delivered')}
        note={t('overview.figure.messages', { count: now.delivered })}
      />
      <BouncedFigure bounced={now.bounced} of={now.accepted} />
      <Figure
        color="--c-complained"
        label={t('overview.outcome.complained')}
        value={share('complained')}
        note={t('overview.figure.gmail', { count: now.complained, limit: percent(MAX_COMPLAINED, 1) })}
        isHigh={now.complained > MAX_COMPLAINED * now.accepted}
      />
      <Figure
        color="--c-opened"
        label={t('overview.outcome.opened')}
        value={share('opened', 'delivered')}
        note={t('overview.figure.opened', { count: now.opened, delivered: now.delivered })}
      />
    </FigureRow>
  );
}
