import { useMemo } from 'preact/hooks';
import { useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { Bars } from '../../parts/chart/bars.tsx';
import { Chart } from '../../parts/chart/chart.tsx';
import { Figure, FigureRow } from '../../parts/figures.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { MAX_BOUNCED, MAX_COMPLAINED, totals } from '../../parts/totals.ts';
import { Card, Empty, Loaded, Table } from '../../parts.tsx';
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
      <div class="card">
        <FilterBar>
          <nav class="segments" aria-label={t('overview.volume.period')}>
            {PERIODS.map((each) => (
              <a
                class="segment"
                key={each}
                href={href('reputation', { tab: 'volume', interval: each })}
                aria-current={each === interval ? 'true' : undefined}
              >
                {t(`overview.volume.${each}`)}
              </a>
            ))}
          </nav>
        </FilterBar>
      </div>
      <Loaded data={total} isList>
        {({ from, to, series: [all] }) =>
          all === undefined || all.points.length === 0 ? (
            <Empty title={t('overview.volume.none')} icon="chart-line">
              <p>{t('overview.simulated')}</p>
            </Empty>
          ) : (
            <>
              <Figures points={all.points} />
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

/** What became of the messages of the period. */
function Figures({ points }: { points: readonly Point[] }) {
  const { t, number, percent } = useTexts();
  const sums = totals(points);
  return (
    <FigureRow>
      {LINES.map(({ outcome, color }) => (
        <Figure
          key={outcome}
          color={color}
          label={t(`overview.outcome.${outcome}`)}
          value={outcome === 'accepted' ? number(sums.accepted) : percent(sums[outcome], sums.accepted)}
          note={t('overview.figure.messages', { count: sums[outcome] })}
          isHigh={
            sums.accepted > 0 &&
            ((outcome === 'bounced' && sums.bounced > MAX_BOUNCED * sums.accepted) ||
              (outcome === 'complained' && sums.complained > MAX_COMPLAINED * sums.accepted))
          }
        />
      ))}
    </FigureRow>
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
          <Card title={label}>
            <div class="card-body">
              <Bars
                label={t('overview.volume.compared', { what: label })}
                bars={rows.map(({ name, sums }) => ({
                  name,
                  total: sums['accepted'] ?? 0,
                  parts: BAR_PARTS.map(({ outcome, color }) => ({ color, value: sums[outcome] ?? 0 })),
                }))}
              />
            </div>
            <Table
              label={label}
              isList
              heads={[
                label,
                ...LINES.map(
                  ({ outcome }) => ({ text: t(`overview.outcome.${outcome}`), end: true }) as const,
                ),
              ]}
            >
              {rows.map(({ name, sums }) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  {LINES.map(({ outcome }) => (
                    <td key={outcome} class={ON_PHONES[outcome]}>
                      <Share
                        of={sums[outcome] ?? 0}
                        accepted={outcome === 'accepted' ? 0 : (sums['accepted'] ?? 0)}
                      />
                    </td>
                  ))}
                </tr>
              ))}
            </Table>
          </Card>
        );
      }}
    </Loaded>
  );
}

/** The columns that phones show, see `Table`. */
const ON_PHONES: Partial<Record<Outcome, string>> = {
  accepted: 'aside',
  delivered: 'second labelled',
  bounced: 'when labelled',
};

/** The parts of a bar; the rest of the accepted messages waits. */
const BAR_PARTS = LINES.filter(({ outcome }) => outcome === 'delivered' || outcome === 'bounced');

/** A count, and its share of the accepted messages. */
function Share({ of, accepted }: { of: number; accepted: number }) {
  const { number, percent } = useTexts();
  return (
    <>
      {number(of)}
      {accepted > 0 && of > 0 && <span class="part"> {percent(of, accepted)}</span>}
    </>
  );
}
