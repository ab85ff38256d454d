import { useMemo } from 'preact/hooks';
import { Chart } from '../../parts/chart/chart.tsx';
import { useTexts } from '../../texts.ts';
import type { Analytics } from './results.tsx';

/** Bars from the bottom, and lines. */
const LINES = [
  { name: 'delivered', color: '--c-delivered', isBar: true },
  { name: 'bounced', color: '--c-bounced', isBar: true },
  { name: 'uniqueOpened', color: '--c-opened' },
  { name: 'uniqueClicked', color: '--c-clicked' },
  { name: 'unsubscribed', color: '--c-complained', isHidden: true },
] as const;
const HOUR_MS = 3_600_000;
/** The length of an interval, and how many are shown: opens and clicks may continue for years. */
const INTERVALS = {
  hour: { step: HOUR_MS, least: 24, most: 3 * 24 },
  day: { step: 24 * HOUR_MS, least: 7, most: 90 },
} as const;

interface ResultChartProps {
  /** Intervals without events are not in it. */
  series: Analytics['series'];
  interval: 'hour' | 'day';
  /** ISO 8601. */
  startedAt: string;
}

/** The course of a campaign from its start, in whole intervals of UTC. */
export function ResultChart({ series, interval, startedAt }: ResultChartProps) {
  const { t } = useTexts();
  const { times, lines } = useMemo(() => {
    const { step, least, most } = INTERVALS[interval];
    const byTime = new Map(series.map((counts) => [Date.parse(counts.timestamp), counts]));
    const from = Math.floor(Math.min(Date.parse(startedAt), ...byTime.keys()) / step) * step;
    const last = Math.max(from, ...byTime.keys());
    const count = Math.min(Math.max((last - from) / step + 1, least), most);
    const starts = Array.from({ length: count }, (_, index) => from + index * step);
    return {
      times: starts.map((at) => at / 1000),
      lines: LINES.map(({ name, ...style }) => ({
        ...style,
        label: t(`campaigns.count.${name}`),
        values: starts.map((at) => byTime.get(at)?.[name] ?? 0),
      })),
    };
  }, [series, interval, startedAt, t]);
  return <Chart label={t('campaigns.byTime')} times={times} unit={interval} lines={lines} />;
}
