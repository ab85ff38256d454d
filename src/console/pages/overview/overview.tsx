import { useAttention } from '../../attention.ts';
import { useOperation } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { lazyPage } from '../../parts/lazy.tsx';
import { Loaded, Page } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { Attention } from './attention.tsx';
import { Figures } from './figures.tsx';
import { DEFAULT_PERIOD, PERIODS, type Period, rangeOf } from './period.ts';
import { Providers } from './providers.tsx';
import { RecentCampaigns } from './recent-campaigns.tsx';
import './overview.css';

const Checklist = lazyPage(() => import('./checklist.tsx').then((module) => module.Checklist));
const VolumeChart = lazyPage(() => import('./volume-chart.tsx').then((module) => module.VolumeChart));

/** Whether all is well, in one screen: what needs a person, the figures of a period, providers and campaigns. */
export function OverviewPage() {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { may } = useMember();
  const period = PERIODS.find((name) => name === location.query['period']) ?? DEFAULT_PERIOD;
  const range = rangeOf(period, Date.now());
  const shown = {
    interval: range.interval,
    from: new Date(range.before).toISOString(),
    to: new Date(range.to).toISOString(),
  };
  const statistics = useOperation('/web-setup/statistics', shown);
  const latest = useOperation('/web-setup/messages', { limit: 1 });
  const attention = useAttention();
  // Counts remain when messages are deleted.
  const isCounted = statistics.value?.series.some(({ points }) =>
    points.some(({ accepted }) => accepted > 0),
  );
  const isNew = latest.value?.messages.length === 0 && isCounted === false;
  return (
    <Page
      title={t('page.overview')}
      question={useSentence(isNew)}
      curl={addressOf('/web-setup/statistics', shown)}
      actions={
        <>
          <PeriodChoice chosen={period} />
          {may('createCampaign') && (
            <a class="button primary" href={href('campaigns/new')}>
              <Icon name="send" />
              {t('campaigns.new')}
            </a>
          )}
        </>
      }
    >
      {isNew && <Checklist />}
      <Loaded data={statistics}>
        {({ series: [all] }) => <Figures points={all?.points ?? []} period={period} from={range.from} />}
      </Loaded>
      <div class="overview-grid">
        <Loaded data={statistics}>
          {({ series: [all] }) => <VolumeChart points={all?.points ?? []} range={range} />}
        </Loaded>
        <Attention data={attention} />
        <Providers range={range} />
        <RecentCampaigns />
      </div>
    </Page>
  );
}

/** Whether mail is sent, and how much needs a person. */
function useSentence(isNew: boolean): string {
  const { t, plural } = useTexts();
  const { value } = useAttention();
  if (value === null) return t('app.loading');
  const problems = value.installation?.problems ?? [];
  const count = value.items.length + problems.length;
  const isStopped = problems.some(({ kind }) => kind === 'queue');
  const state = isStopped ? 'overview.stopped' : isNew ? 'overview.quiet' : 'overview.flowing';
  return `${t(state)} ${count === 0 ? t('overview.needs.none') : plural('overview.needs', count)}`;
}

/** The period of all figures of the page, in its address. */
function PeriodChoice({ chosen }: { chosen: Period }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  return (
    <nav class="segments" aria-label={t('overview.volume.period')}>
      {PERIODS.map((name) => (
        <a
          class="segment"
          key={name}
          href={href('', name === DEFAULT_PERIOD ? {} : { period: name })}
          aria-current={name === chosen ? 'true' : undefined}
        >
          {t(`overview.period.${name}`)}
        </a>
      ))}
    </nav>
  );
}
