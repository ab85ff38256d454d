import { useMemo } from 'preact/hooks';
import { Chart } from '../../parts/chart.tsx';
import { useTexts } from '../../texts.ts';

interface DayChartProps {
  /** `date` as in a report: 2026-01-31. */
  days: readonly { date: string; good: number; bad: number }[];
  good: string;
  bad: string;
}

/** Two counts over the days of a period that have reports. One day alone has no line. */
export function DayChart({ days, good, bad }: DayChartProps) {
  const { t } = useTexts();
  const { times, lines } = useMemo(() => {
    const sorted = days.toSorted((a, b) => a.date.localeCompare(b.date));
    return {
      times: sorted.map(({ date }) => Date.parse(date) / 1000),
      lines: [
        { label: good, color: '--good', values: sorted.map((day) => day.good) },
        { label: bad, color: '--bad', values: sorted.map((day) => day.bad) },
      ],
    };
  }, [days, good, bad]);
  return times.length < 2 ? null : <Chart label={t('reports.overTime')} times={times} lines={lines} />;
}
