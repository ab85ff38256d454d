import { useMemo } from 'preact/hooks';
import { Chart } from '../../parts/chart/chart.tsx';
import { useTexts } from '../../texts.ts';

interface DayChartProps {
  /** `date` as in a report: 2026-01-31. */
  days: readonly { date: string; good: number; bad: number }[];
  good: string;
  bad: string;
}

const DAY_SECONDS = 86_400;

/** Two counts over the days of a period; days without reports are gaps. One day alone has no line. */
export function DayChart({ days, good, bad }: DayChartProps) {
  const { t } = useTexts();
  const { times, lines } = useMemo(() => {
    const byTime = new Map(days.map((day) => [Date.parse(day.date) / 1000, day]));
    const known = [...byTime.keys()].toSorted((a, b) => a - b);
    const all: number[] = [];
    for (let at = known[0] ?? 0; at <= (known.at(-1) ?? -1); at += DAY_SECONDS) all.push(at);
    return {
      times: all,
      lines: [
        { label: good, color: '--c-delivered', values: all.map((at) => byTime.get(at)?.good ?? null) },
        { label: bad, color: '--c-bounced', values: all.map((at) => byTime.get(at)?.bad ?? null) },
      ],
    };
  }, [days, good, bad]);
  if (times.length < 2) return null;
  return <Chart label={t('reports.overTime')} times={times} unit="day" lines={lines} hasOwnTable />;
}
