import { useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { ShareBar } from '../../parts/chart/share-bar.tsx';
import { FactList } from '../../parts/fact-list.tsx';
import { BouncedFigure, Figure, FigureRow } from '../../parts/figures.tsx';
import { lazyPage } from '../../parts/lazy.tsx';
import { Card, Loaded, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { ClickMap } from './click-map.tsx';
import type { CampaignResource } from './draft-saver.ts';
import { TestResults } from './test-results.tsx';
import './results.css';

const ANALYTICS = '/web-setup/campaigns/{campaignId}/analytics';

export type Analytics = DataOf<typeof ANALYTICS>;

const ResultChart = lazyPage(() => import('./result-chart.tsx').then((module) => module.ResultChart));

const BY_PROVIDER = [
  'bounced',
  'complained',
  'unsubscribed',
  'uniqueOpened',
  'uniqueClicked',
  'machineOpened',
  'machineClicked',
] as const;

/** The results of a campaign: rates, funnel, course, links and providers. */
export function Results({ campaign, reload }: { campaign: CampaignResource; reload: () => void }) {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { campaignId, progress } = campaign;
  const startedAt = progress?.startedAt ?? campaign.createdAt;
  const interval = location.query['interval'] === 'day' ? 'day' : 'hour';
  const data = useOperation(ANALYTICS, { campaignId, interval });
  const page = `campaigns/${encodeURIComponent(campaignId)}`;
  return (
    <>
      {progress !== undefined && campaign.status !== 'sent' && <Progress progress={progress} />}
      {progress?.test !== undefined && (
        <TestResults campaign={campaign} test={progress.test} reload={reload} />
      )}
      <Loaded data={data}>
        {({ totals, series, links, providers }) => (
          <>
            <Figures totals={totals} />
            <div class="results-grid">
              <div>
                <nav class="segments" aria-label={t('campaigns.byTime')}>
                  {(['hour', 'day'] as const).map((name) => (
                    <a
                      class="segment"
                      key={name}
                      href={href(page, { interval: name === 'day' ? name : undefined })}
                      aria-current={name === interval ? 'true' : undefined}
                    >
                      {t(`campaigns.byTime.${name}`)}
                    </a>
                  ))}
                </nav>
                <ResultChart series={series} interval={interval} startedAt={startedAt} />
              </div>
              <Funnel totals={totals} />
            </div>
            {links.length > 0 && (
              <div class="results-halves">
                <Links links={links} clicks={totals.clicked} />
                <ClickMap
                  campaignId={campaignId}
                  winner={progress?.test?.decision?.variant}
                  links={links}
                  clicks={totals.clicked}
                />
              </div>
            )}
            <Providers providers={providers} />
            <Details campaign={campaign} totals={totals} />
          </>
        )}
      </Loaded>
    </>
  );
}

/** How many members of the group are processed. */
function Progress({ progress }: { progress: NonNullable<CampaignResource['progress']> }) {
  const { t, time } = useTexts();
  const { members, queued, skipped, scheduledAt } = progress;
  const without = skipped.withoutEmail + skipped.notEligible + skipped.notRenderable;
  if (members === null)
    return scheduledAt === null ? null : <p>{t('campaigns.startsAt', { time: time(scheduledAt) })}</p>;
  return (
    <label class="campaign-progress">
      {t('campaigns.progress', { count: queued + without, members })}
      <progress value={queued + without} max={Math.max(members, 1)} />
    </label>
  );
}

function Figures({ totals }: { totals: Analytics['totals'] }) {
  const { t, number, percent } = useTexts();
  const { sent, delivered, uniqueOpened, uniqueClicked, bounced, unsubscribed, complained } = totals;
  return (
    <FigureRow>
      <Figure
        color="--c-delivered"
        label={t('campaigns.count.delivered')}
        value={percent(delivered, sent)}
        note={t('campaigns.figure.of', { count: number(delivered), whole: number(sent) })}
      />
      <Figure
        color="--c-opened"
        label={t('campaigns.count.uniqueOpened')}
        value={percent(uniqueOpened, delivered)}
        note={
          uniqueOpened > 0
            ? t('campaigns.figure.messages', { count: uniqueOpened })
            : t('campaigns.figure.noOpens')
        }
      />
      <Figure
        color="--c-clicked"
        label={t('campaigns.count.uniqueClicked')}
        value={percent(uniqueClicked, delivered)}
        note={t('campaigns.figure.messages', { count: uniqueClicked })}
      />
      <BouncedFigure bounced={bounced} of={sent} />
      <Figure
        color="--c-complained"
        label={t('campaigns.count.unsubscribed')}
        value={percent(unsubscribed, delivered)}
        note={t('campaigns.figure.complained', { count: unsubscribed, complained })}
      />
    </FigureRow>
  );
}

/** How many messages arrived, were opened and led to a click, each as a part of those sent. */
function Funnel({ totals }: { totals: Analytics['totals'] }) {
  const { t, number, percent } = useTexts();
  const steps = [
    { name: 'sent', color: '--c-accepted' },
    { name: 'delivered', color: '--c-delivered' },
    { name: 'uniqueOpened', color: '--c-opened' },
    { name: 'uniqueClicked', color: '--c-clicked' },
  ] as const;
  return (
    <Card title={t('campaigns.funnel')}>
      <ol class="funnel">
        {steps.map(({ name, color }) => (
          <li key={name}>
            <span>{t(`campaigns.count.${name}`)}</span>
            <strong>{number(totals[name])}</strong>
            <span class="funnel-share">{percent(totals[name], totals.sent)}</span>
            <ShareBar total={totals.sent} parts={[{ color, value: totals[name] }]} />
          </li>
        ))}
      </ol>
      <p class="funnel-note small">{t('campaigns.results.hint')}</p>
    </Card>
  );
}

function Links({ links, clicks }: { links: Analytics['links']; clicks: number }) {
  const { t, number, percent } = useTexts();
  return (
    <Card title={t('campaigns.links')}>
      <Table
        label={t('campaigns.links')}
        heads={[
          t('campaigns.link'),
          { text: t('campaigns.clicks'), end: true },
          { text: t('campaigns.share'), end: true },
        ]}
      >
        {links.map(({ url, clicks: count }) => (
          <tr key={url}>
            <th scope="row" class="link-address">
              {url}
              <ShareBar total={clicks} parts={[{ color: '--c-clicked', value: count }]} />
            </th>
            <td>{number(count)}</td>
            <td>{percent(count, clicks)}</td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

/** Outcomes by mailbox provider. Opens by programs are in columns of their own: they show nothing about readers. */
function Providers({ providers }: { providers: Analytics['providers'] }) {
  const { t, number, percent } = useTexts();
  if (providers.length === 0) return null;
  const most = Math.max(...providers.map(({ delivered }) => delivered));
  return (
    <div class="providers">
      <Card title={t('campaigns.providers')}>
        <Table
          label={t('campaigns.providers')}
          heads={[
            t('campaigns.provider'),
            t('campaigns.count.delivered'),
            ...BY_PROVIDER.map((name) => ({ text: t(`campaigns.count.${name}`), end: true as const })),
          ]}
        >
          {providers.map((counts) => (
            <tr key={counts.provider}>
              <th scope="row">
                {counts.provider === 'other' ? t('campaigns.provider.other') : counts.provider}
              </th>
              <td>
                <span class="progress-of">
                  {number(counts.delivered)}
                  <ShareBar total={most} parts={[{ color: '--c-delivered', value: counts.delivered }]} />
                </span>
              </td>
              {BY_PROVIDER.map((name) => (
                <td key={name}>
                  <span title={number(counts[name])}>{percent(counts[name], counts.delivered)}</span>
                </td>
              ))}
            </tr>
          ))}
        </Table>
        <p class="providers-note small">{t('campaigns.providers.hint')}</p>
      </Card>
    </div>
  );
}

/** What the headline figures leave out. */
function Details({
  campaign: { progress },
  totals,
}: {
  campaign: CampaignResource;
  totals: Analytics['totals'];
}) {
  const { t, time, number } = useTexts();
  const counted = (count: number | undefined) => (count === undefined || count === 0 ? '' : number(count));
  return (
    <Card title={t('campaigns.details')}>
      <div class="card-body">
        <FactList
          facts={[
            [t('campaigns.members'), counted(progress?.members ?? undefined)],
            [t('campaigns.count.queued'), counted(totals.queued)],
            [t('campaigns.withoutEmail'), counted(progress?.skipped.withoutEmail)],
            [t('campaigns.notEligible'), counted(progress?.skipped.notEligible)],
            [t('campaigns.notRenderable'), counted(progress?.skipped.notRenderable)],
            [t('campaigns.count.deferred'), counted(totals.deferred)],
            [t('campaigns.count.failed'), counted(totals.failed)],
            [t('campaigns.count.cancelled'), counted(totals.cancelled)],
            [t('campaigns.count.complained'), counted(totals.complained)],
            [t('campaigns.perHour'), counted(progress?.perHour ?? undefined)],
            [t('campaigns.scheduledAt'), time(progress?.scheduledAt)],
            [t('campaigns.startedAt'), time(progress?.startedAt)],
            [t('campaigns.finishedAt'), time(progress?.finishedAt)],
          ]}
        />
      </div>
    </Card>
  );
}
