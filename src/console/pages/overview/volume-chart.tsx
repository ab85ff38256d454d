import { useMemo } from 'preact/hooks';
import type { DataOf } from '../../operations.ts';
import { Chart } from '../../parts/chart/chart.tsx';
import { useTexts } from '../../texts.ts';
import type { PeriodRange } from './period.ts';

type Point = DataOf<'/web-setup/statistics'>['series'][number]['points'][number];

/** Bars from the bottom, and lines. */
const LINES = [
  { outcome: 'delivered', color: '--c-delivered', isBar: true },
  { outcome: 'deferred', color: '--c-deferred', isBar: true },
  { outcome: 'bounced', color: '--c-bounced', isBar: true },
  { outcome: 'opened', color: '--c-opened', isHidden: true },
  { outcome: 'clicked', color: '--c-clicked', isHidden: true },
] as const;

/** The outcomes of the period over time. Intervals without messages have no point. */
export function VolumeChart({ points, range }: { points: readonly Point[]; range: PeriodRange }) {
  const { t } = useTexts();
  const { from, to, step, interval } = range;
  const { times, lines } = useMemo(() => {
    const starts = Array.from({ length: (to - from) / step }, (_, index) => from + index * step);
    const byTime = new Map(points.map((point) => [Date.parse(point.at), point]));
    return {
      times: starts.map((at) => at / 1000),
      lines: LINES.map(({ outcome, ...style }) => ({
        ...style,
        label: t(`overview.outcome.${outcome}`),
        values: starts.map((at) => byTime.get(at)?.[outcome] ?? 0),
      })),
    };
  }, [points, from, to, step, t]);
  return <Chart label={t(`overview.volume.by.${interval}`)} times={times} unit={interval} lines={lines} />;
}
