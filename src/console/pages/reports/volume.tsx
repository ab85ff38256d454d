import { useMemo } from 'preact/hooks';
import { useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { Bars } from '../../parts/chart/bars.tsx';
import { Chart } from '../../parts/chart/chart.tsx';
import { Empty, Loaded, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import '../../parts/chart/bars.css';

type Statistics = DataOf<'/web-setup/statistics'>;
type Point = Statistics['series'][number]['points'][number];
type Outcome = Exclude<keyof Point, 'at'>;

/** Lines of the chart and columns of the tables. */
const LINES = [
  { outcome: 'accepted', color: '--c-accepted' },
  { outcome: 'delivered', color: '--c-delivered' },
  { outcome: 'deferred', color: '--c-deferred' },
  { outcome: 'bounced', color: '--c-bounced' },
  { outcome: 'complained', color: '--c-complained' },
] as const satisfies { outcome: Outcome; color: string }[];

const PERIODS = ['hour', 'day'] as const;

/** Volume and outcomes of messages: over time, by domain and by provider. `domains`: names by id. */
export function Volume({ domains }: { domains: ReadonlyMap<string, string> }) {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const interval = location.query['interval'] === 'day' ? 'day' : 'hour';
  const total = useOperation('/web-setup/statistics', { interval });
  return (
    <>
      <h2>{t('overview.volume')}</h2>
      <nav class="actions" aria-label={t('overview.volume.period')}>
        {PERIODS.map((each) => (
          <a
            class="button"
            key={each}
            href={href('reports', { tab: 'volume', interval: each })}
            aria-current={each === interval ? 'true' : undefined}
          >
            {t(`overview.volume.${each}`)}
          </a>
        ))}
      </nav>
      <Loaded data={total}>
        {({ from, to, series: [all] }) =>
          all === undefined || all.points.length === 0 ? (
            <Empty title={t('overview.volume.none')}>
              <p>{t('overview.simulated')}</p>
            </Empty>
          ) : (
            <>
              <OverTime points={all.points} from={from} to={to} interval={interval} />
              <Totals by="domain" interval={interval} nameOf={(name) => domains.get(name) ?? name} />
              <Totals by="provider" interval={interval} nameOf={(name) => name} />
            </>
          )
        }
      </Loaded>
    </>
  );
}

interface OverTimeProps {
  points: Point[];
  from: string;
  to: string;
  interval: 'hour' | 'day';
}

function OverTime({ points, from, to, interval }: OverTimeProps) {
  const { t } = useTexts();
  const times = useMemo(() => timesOf(from, to, interval), [from, to, interval]);
  const lines = useMemo(() => {
    const byTime = new Map(points.map((point) => [Date.parse(point.at) / 1000, point]));
    return LINES.map(({ outcome, color }) => ({
      label: t(`overview.outcome.${outcome}`),
      color,
      values: times.map((at) => byTime.get(at)?.[outcome] ?? 0),
    }));
  }, [points, times]);
  return <Chart label={t(`overview.volume.by.${interval}`)} times={times} unit={interval} lines={lines} />;
}

/** The beginnings of all intervals of a period (UTC), epoch seconds: those without messages have no point. */
function timesOf(from: string, to: string, interval: 'hour' | 'day'): number[] {
  const step = interval === 'day' ? 86_400 : 3600;
  const first = Math.floor(Date.parse(from) / 1000 / step) * step;
  const end = Date.parse(to) / 1000;
  const times: number[] = [];
  for (let at = first; at < end; at += step) times.push(at);
  return times;
}

interface TotalsProps {
  by: 'domain' | 'provider';
  interval: 'hour' | 'day';
  nameOf: (name: string) => string;
}

function Totals({ by, interval, nameOf }: TotalsProps) {
  const { t } = useTexts();
  const data = useOperation('/web-setup/statistics', { interval, by });
  return (
    <Loaded data={data}>
      {({ series }) => {
        const rows = series.map(({ name = '', points }) => ({
          name: name === 'other' ? t('overview.volume.others') : nameOf(name),
          sums: Object.fromEntries(
            LINES.map(({ outcome }) => [outcome, points.reduce((sum, point) => sum + point[outcome], 0)]),
          ),
        }));
        const label = t(`overview.volume.of.${by}`);
        return (
          <div class="compared">
            <Bars
              label={t('overview.volume.compared', { what: label })}
              bars={rows.map(({ name, sums }) => ({
                name,
                total: sums['accepted'] ?? 0,
                parts: BAR_PARTS.map(({ outcome, color }) => ({ color, value: sums[outcome] ?? 0 })),
              }))}
            />
            <Table
              label={label}
              heads={[label, ...LINES.map(({ outcome }) => t(`overview.outcome.${outcome}`))]}
            >
              {rows.map(({ name, sums }) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  {LINES.map(({ outcome }) => (
                    <td key={outcome}>
                      <Share
                        of={sums[outcome] ?? 0}
                        accepted={outcome === 'accepted' ? 0 : (sums['accepted'] ?? 0)}
                      />
                    </td>
                  ))}
                </tr>
              ))}
            </Table>
          </div>
        );
      }}
    </Loaded>
  );
}

/** The parts of a bar; the rest of the accepted messages waits. */
const BAR_PARTS = LINES.filter(({ outcome }) => outcome === 'delivered' || outcome === 'bounced');

/** A count, and its share of the accepted messages. */
function Share({ of, accepted }: { of: number; accepted: number }) {
  const { number, percent } = useTexts();
  return (
    <>
      {number(of)}
      {accepted > 0 && of > 0 && <p class="small">{percent(of, accepted)}</p>}
    </>
  );
}
