import { useMemo } from 'preact/hooks';
import { saveExport } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { Chart } from '../../parts/chart/chart.tsx';
import { ShareBar } from '../../parts/chart/share-bar.tsx';
import { Figure, FigureRow } from '../../parts/figures.tsx';
import { FilterBar, FilterSelect } from '../../parts/filter-bar.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { toast } from '../../parts/toast.tsx';
import { MAX_BOUNCED, MAX_COMPLAINED } from '../../parts/totals.ts';
import { Card, Empty, Loaded, Outcome, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { Changes, Limits, Ramp } from './changes.tsx';
import { SpamRates } from './spam-rates.tsx';
import './providers.css';

export type Reputation = DataOf<'/web-setup/reputation'>;
type Day = Reputation['total']['days'][number];
type Sums = Reputation['total'];

const PATH = '/web-setup/reputation';
const PERIODS = [7, 30, 90] as const;
const DEFAULT_PERIOD = 30;
const DAY_MS = 86_400_000;

type Query = Readonly<Record<string, string | undefined>>;

/** What is read: the filters of the address of the page. */
function parametersOf(query: Query) {
  const days = PERIODS.find((period) => String(period) === query['days']) ?? DEFAULT_PERIOD;
  return { days, domain: query['domain'], sourceAddress: query['source'] };
}

/** The request of the page. */
export function reputationAddress(query: Query): string {
  return addressOf(PATH, parametersOf(query));
}

/** The period of the page. */
export function ReputationPeriod() {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { days } = parametersOf(location.query);
  return (
    <nav class="segments" aria-label={t('overview.volume.period')}>
      {PERIODS.map((period) => (
        <a
          class="segment"
          key={period}
          href={href('reputation', {
            ...location.query,
            days: period === DEFAULT_PERIOD ? undefined : String(period),
          })}
          aria-current={period === days ? 'true' : undefined}
        >
          {t('reputation.days', { count: period })}
        </a>
      ))}
    </nav>
  );
}

/** Saves a line for each provider and day as a CSV. */
function Export() {
  const { t } = useTexts();
  const { accountId } = useMember();
  const { location } = useNavigation();
  const { outcome, run } = useAction();
  const save = () =>
    run(async () => {
      const path = addressOf(PATH, { ...parametersOf(location.query), format: 'csv' });
      await saveExport(`/console/api${path}`, 'reputation.csv', accountId);
      toast(t('messages.content.saved', { file: 'reputation.csv' }));
      return '';
    });
  return (
    <>
      <button
        class="button"
        type="button"
        aria-label={t('contacts.export')}
        disabled={outcome?.running === true}
        onClick={() => void save()}
      >
        <Icon name="download" />
        <span class="wide-text">{t('contacts.export')}</span>
      </button>
      {outcome?.failed === true && <Outcome of={outcome} />}
    </>
  );
}

/** What mailbox providers do with the mail of the account. `domains`: all of it. */
export function Providers({ domains }: { domains: DataOf<'/web-setup/domains'>['domains'] }) {
  const { t } = useTexts();
  const { location } = useNavigation();
  const data = useOperation(PATH, parametersOf(location.query));
  return (
    <Loaded data={data} isList>
      {(reputation) =>
        reputation.providers.length === 0 &&
        reputation.spamRates.length === 0 &&
        Object.keys(location.query).every((name) => name === 'account') ? (
          <>
            <Empty title={t('overview.volume.none')} icon="chart-line">
              <p>{t('overview.simulated')}</p>
            </Empty>
            <SpamRates reputation={reputation} provider={null} days={[]} onChanged={data.reload} />
          </>
        ) : (
          <Shown reputation={reputation} domains={domains} onChanged={data.reload} />
        )
      }
    </Loaded>
  );
}

interface ShownProps {
  reputation: Reputation;
  domains: DataOf<'/web-setup/domains'>['domains'];
  onChanged: () => void;
}

function Shown({ reputation, domains, onChanged }: ShownProps) {
  const { t } = useTexts();
  const { location } = useNavigation();
  const { providers, total } = reputation;
  const provider = providers.find(({ provider: name }) => name === location.query['provider']) ?? null;
  const sums = provider ?? total;
  return (
    <>
      <div class="card">
        <Filters reputation={reputation} domains={domains} provider={provider?.provider} />
      </div>
      <div class="reputation-grid">
        <Changes changes={reputation.changes} />
        <Limits limits={reputation.limits} onChanged={onChanged} />
        <Ramp ramp={reputation.ramp} />
      </div>
      <Figures sums={sums} dmarc={reputation.dmarc} />
      <Card title={t('overview.volume.of.provider')}>
        <ProviderTable providers={providers} />
      </Card>
      <ResultChart reputation={reputation} days={sums.days} />
      <SpamRates
        reputation={reputation}
        provider={provider?.provider ?? null}
        days={sums.days}
        onChanged={onChanged}
      />
      {reputation.domains.length > 1 && (
        <SumTable
          title={t('page.domains')}
          head={t('messages.domain')}
          rows={reputation.domains.map((row) => ({ name: row.domain ?? row.domainId, sums: row }))}
        />
      )}
      {reputation.sourceAddresses.length > 0 && (
        <SumTable
          title={t('system.egress')}
          head={t('system.egress.address')}
          rows={reputation.sourceAddresses.map((row) => ({ name: row.name, sums: row }))}
        />
      )}
    </>
  );
}

interface FiltersProps extends Pick<ShownProps, 'reputation' | 'domains'> {
  provider: string | undefined;
}

/** What the page is about: a domain, a source address and a provider, or all of them. */
function Filters({ reputation, domains, provider }: FiltersProps) {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const { domain, source } = location.query;
  const choose = (changed: Query) => go(href('reputation', { ...location.query, ...changed }));
  const names = reputation.sourceAddresses.map(({ name }) => name);
  const sources = source === undefined || names.includes(source) ? names : [source, ...names];
  const named = (label: string, value: string | undefined) =>
    value === undefined ? label : `${label}: ${value}`;
  return (
    <FilterBar end={<Export />}>
      <FilterSelect
        label={named(t('messages.domain'), domains.find(({ domainId }) => domainId === domain)?.domain)}
        chosen={domain}
        options={domains.map((each) => ({
          value: each.domainId,
          name: `${each.domain} (${t(`domains.useCase.${each.useCase}`)})`,
        }))}
        onChange={(chosen) => choose({ domain: chosen })}
      />
      {sources.length > 0 && (
        <FilterSelect
          label={named(t('reputation.source'), source)}
          chosen={source}
          options={sources.map((name) => ({ value: name, name }))}
          onChange={(chosen) => choose({ source: chosen })}
        />
      )}
      <FilterSelect
        label={named(t('overview.provider'), provider === OTHER ? t('overview.volume.others') : provider)}
        chosen={provider}
        options={reputation.providers.map(({ provider: name }) => ({
          value: name,
          name: name === OTHER ? t('overview.volume.others') : name,
        }))}
        onChange={(chosen) => choose({ provider: chosen })}
      />
    </FilterBar>
  );
}

/** The providers that are not known separately. */
const OTHER = 'other';

/** The results of attempts, in the order of the bars. */
const RESULTS = [
  { result: 'delivered', color: '--c-delivered' },
  { result: 'deferred', color: '--c-deferred' },
  { result: 'bounced', color: '--c-bounced' },
  { result: 'blocked', color: '--text-2' },
] as const;

function Figures({ sums, dmarc }: { sums: Sums; dmarc: Reputation['dmarc'] }) {
  const { t, number, percent } = useTexts();
  const { attempts, delivered } = sums;
  return (
    <FigureRow>
      <Figure
        color="--c-delivered"
        label={t('overview.outcome.delivered')}
        value={percent(delivered, attempts, 'down')}
        note={t('reputation.figure.attempts', { count: attempts })}
      />
      <Figure
        color="--c-deferred"
        label={t('reputation.deferred')}
        value={percent(sums.deferred, attempts)}
        note={number(sums.deferred)}
      />
      <Figure
        color="--c-bounced"
        label={t('overview.outcome.bounced')}
        value={percent(sums.bounced, attempts)}
        note={t('reputation.figure.bounced', { hard: sums.hardBounced, soft: sums.softBounced })}
        isHigh={sums.hardBounced > MAX_BOUNCED * attempts}
      />
      <Figure
        color="--text-2"
        label={t('reputation.blocked')}
        value={percent(sums.blocked, attempts)}
        note={number(sums.blocked)}
      />
      <Figure
        color="--c-complained"
        label={t('overview.outcome.complained')}
        value={percent(sums.complained, delivered)}
        note={t('overview.figure.gmail', { count: sums.complained, limit: percent(MAX_COMPLAINED, 1) })}
        isHigh={sums.complained >= MIN_HIGH && sums.complained > MAX_COMPLAINED * delivered}
      />
      <Figure
        color="--c-opened"
        label={t('overview.outcome.opened')}
        value={percent(sums.opened, delivered)}
        note={t('reputation.figure.clicked', {
          clicked: percent(sums.clicked, delivered),
          unsubscribed: percent(sums.unsubscribed, delivered),
        })}
      />
      <Figure
        color="--accent"
        label="DMARC"
        value={percent(dmarc.passed, dmarc.messages, 'down')}
        note={
          dmarc.messages === 0
            ? t('reputation.figure.noReports')
            : t('reputation.figure.reported', { count: dmarc.messages })
        }
      />
    </FigureRow>
  );
}

/** The providers with their rates; each is a link that narrows the figures and charts to it. */
function ProviderTable({ providers }: Pick<Reputation, 'providers'>) {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  return (
    <SumRows
      label={t('overview.volume.of.provider')}
      head={t('overview.provider')}
      rows={providers.map((row) => ({
        name: row.provider === OTHER ? t('overview.volume.others') : row.provider,
        address: href('reputation', {
          ...location.query,
          provider: location.query['provider'] === row.provider ? undefined : row.provider,
        }),
        isChosen: location.query['provider'] === row.provider,
        sums: row,
      }))}
    />
  );
}

interface SumRow {
  name: string;
  address?: string;
  isChosen?: boolean;
  sums: Omit<Sums, 'days'>;
}

interface SumRowsProps {
  label: string;
  head: string;
  rows: readonly SumRow[];
}

function SumTable({ title, head, rows }: { title: string; head: string; rows: readonly SumRow[] }) {
  return (
    <Card title={title}>
      <SumRows label={title} head={head} rows={rows} />
    </Card>
  );
}

/** Rows with the same rates: of attempts and of delivered messages. */
function SumRows({ label, head, rows }: SumRowsProps) {
  const { t, number, percent } = useTexts();
  if (rows.length === 0) return <p class="all-well">{t('overview.volume.none')}</p>;
  return (
    <Table
      label={label}
      isList
      heads={[
        head,
        { text: t('reputation.attempts'), end: true },
        t('overview.figure.share'),
        { text: t('overview.outcome.delivered'), end: true },
        { text: t('reputation.deferred'), end: true },
        { text: t('reputation.hard'), end: true },
        { text: t('reputation.soft'), end: true },
        { text: t('reputation.blocked'), end: true },
        { text: t('overview.outcome.complained'), end: true },
        { text: t('overview.outcome.opened'), end: true },
      ]}
    >
      {rows.map(({ name, address, isChosen, sums }) => (
        <tr key={name} class={isChosen === true ? 'chosen' : undefined}>
          <th scope="row">
            {address === undefined ? (
              name
            ) : (
              <a href={address} aria-current={isChosen === true ? 'true' : undefined}>
                {name}
              </a>
            )}
          </th>
          <td class="aside">{number(sums.attempts)}</td>
          <td class="share">
            <ShareBar
              total={sums.attempts}
              parts={RESULTS.map(({ result, color }) => ({ color, value: sums[result] }))}
            />
          </td>
          <td class="second labelled">{percent(sums.delivered, sums.attempts, 'down')}</td>
          <td class="when labelled">
            <Rate part={sums.deferred} whole={sums.attempts} limit={HIGH.deferred} />
          </td>
          <td>
            <Rate part={sums.hardBounced} whole={sums.attempts} limit={MAX_BOUNCED} />
          </td>
          <td>
            <Rate part={sums.softBounced} whole={sums.attempts} />
          </td>
          <td>
            <Rate part={sums.blocked} whole={sums.attempts} limit={HIGH.blocked} />
          </td>
          <td>
            <Rate part={sums.complained} whole={sums.delivered} limit={MAX_COMPLAINED} />
          </td>
          <td>{percent(sums.opened, sums.delivered)}</td>
        </tr>
      ))}
    </Table>
  );
}

/** Shares that deserve a look. */
const HIGH = { deferred: 0.1, blocked: 0.02 };
/** Fewer events say little about a share. */
const MIN_HIGH = 3;

/** A share, marked when it is high; nothing is pale. */
function Rate({ part, whole, limit }: { part: number; whole: number; limit?: number }) {
  const { percent } = useTexts();
  const isHigh = limit !== undefined && part >= MIN_HIGH && part > limit * whole;
  return (
    <span class={isHigh ? 'high-rate' : part === 0 ? 'no-rate' : undefined}>{percent(part, whole)}</span>
  );
}

/** The beginnings of all days of the period, epoch seconds. */
export function timesOf({ from, to }: Pick<Reputation, 'from' | 'to'>): number[] {
  const [start, end] = [Date.parse(from), Date.parse(to)];
  return Array.from(
    { length: Math.round((end - start) / DAY_MS) },
    (_, index) => start / 1000 + index * 86_400,
  );
}

function ResultChart({ reputation, days }: { reputation: Reputation; days: readonly Day[] }) {
  const { t } = useTexts();
  const { from, to } = reputation;
  const { times, lines } = useMemo(() => {
    const byTime = new Map(days.map((day) => [Date.parse(day.date) / 1000, day]));
    const all = timesOf({ from, to });
    const line = (label: string, color: string, name: 'opened' | (typeof RESULTS)[number]['result']) => ({
      label,
      color,
      values: all.map((at) => byTime.get(at)?.[name] ?? 0),
    });
    return {
      times: all,
      lines: [
        ...RESULTS.map(({ result, color }) => ({
          ...line(t(RESULT_TEXTS[result]), color, result),
          isBar: true,
        })),
        { ...line(t('overview.outcome.opened'), '--c-opened', 'opened'), isHidden: true },
      ],
    };
  }, [days, from, to, t]);
  return <Chart label={t('reputation.byDay')} times={times} unit="day" lines={lines} />;
}

const RESULT_TEXTS = {
  delivered: 'overview.outcome.delivered',
  deferred: 'reputation.deferred',
  bounced: 'overview.outcome.bounced',
  blocked: 'reputation.blocked',
} as const;
