import type * as z from 'zod';
import type { analyticsSchema } from '../../../http/api/campaigns.ts';
import { useData } from '../../data.ts';
import { Empty, Loaded, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { ClickMap } from './click-map.tsx';

type Analytics = z.output<typeof analyticsSchema>;

const COUNTS = [
  'queued',
  'sent',
  'delivered',
  'deferred',
  'bounced',
  'complained',
  'uniqueOpened',
  'uniqueClicked',
  'unsubscribed',
  'cancelled',
  'failed',
] as const satisfies (keyof Analytics['totals'])[];
/** Counts of the table by time. */
const BY_TIME = ['delivered', 'bounced', 'uniqueOpened', 'uniqueClicked', 'unsubscribed'] as const;

const BY_PROVIDER = [
  'delivered',
  'bounced',
  'complained',
  'unsubscribed',
  'uniqueOpened',
  'uniqueClicked',
  'machineOpened',
  'machineClicked',
] as const;

/** The results of a campaign: totals, clicks by link, and counts by time. */
export function Results({ campaignId, path }: { campaignId: string; path: string }) {
  const { t, number, percent } = useTexts();
  const { location, href } = useNavigation();
  const interval = location.query['interval'] === 'hour' ? 'hour' : 'day';
  const data = useData<Analytics>(`${path}/analytics?interval=${interval}`);
  const page = `campaigns/${encodeURIComponent(campaignId)}`;
  return (
    <>
      <h2>{t('campaigns.results')}</h2>
      <p class="small">{t('campaigns.results.hint')}</p>
      <Loaded data={data}>
        {({ totals, series, links, providers }) => (
          <>
            <Table
              label={t('campaigns.results')}
              heads={[t('campaigns.count'), t('campaigns.messagesCount'), '%']}
            >
              {COUNTS.map((name) => (
                <tr key={name}>
                  <th scope="row">{t(`campaigns.count.${name}`)}</th>
                  <td>{number(totals[name])}</td>
                  <td>
                    {percent(
                      totals[name],
                      name === 'queued' || name === 'sent' ? totals.queued : totals.sent,
                    )}
                  </td>
                </tr>
              ))}
            </Table>
            <h2>{t('campaigns.links')}</h2>
            {links.length === 0 ? (
              <Empty title={t('campaigns.links.empty')} />
            ) : (
              <>
                <Table label={t('campaigns.links')} heads={[t('campaigns.link'), t('campaigns.clicks'), '%']}>
                  {links.map(({ url, clicks }) => (
                    <tr key={url}>
                      <td class="value">{url}</td>
                      <td>{number(clicks)}</td>
                      <td>{percent(clicks, totals.clicked)}</td>
                    </tr>
                  ))}
                </Table>
                <ClickMap path={path} links={links} clicks={totals.clicked} />
              </>
            )}
            <Providers providers={providers} />
            <h2>{t('campaigns.byTime')}</h2>
            <p class="actions">
              {(['day', 'hour'] as const).map((name) => (
                <a
                  class="button"
                  key={name}
                  href={href(page, { interval: name === 'day' ? undefined : name })}
                  aria-current={name === interval ? 'true' : undefined}
                >
                  {t(`campaigns.byTime.${name}`)}
                </a>
              ))}
            </p>
            <Series series={series} />
          </>
        )}
      </Loaded>
    </>
  );
}

function Series({ series }: { series: Analytics['series'] }) {
  const { t, time, number } = useTexts();
  if (series.length === 0) return <Empty title={t('campaigns.byTime.empty')} />;
  return (
    <Table
      label={t('campaigns.byTime')}
      heads={[t('audit.time'), ...BY_TIME.map((name) => t(`campaigns.count.${name}`))]}
    >
      {series.map((counts) => (
        <tr key={counts.timestamp}>
          <th scope="row">
            <time dateTime={counts.timestamp}>{time(counts.timestamp)}</time>
          </th>
          {BY_TIME.map((name) => (
            <td key={name}>{number(counts[name])}</td>
          ))}
        </tr>
      ))}
    </Table>
  );
}

/** Outcomes by mailbox provider. Opens by programs are in columns of their own: they show nothing about readers. */
function Providers({ providers }: { providers: Analytics['providers'] }) {
  const { t, number, percent } = useTexts();
  if (providers.length === 0) return null;
  return (
    <>
      <h2>{t('campaigns.providers')}</h2>
      <p class="small">{t('campaigns.providers.hint')}</p>
      <Table
        label={t('campaigns.providers')}
        heads={[t('campaigns.provider'), ...BY_PROVIDER.map((name) => t(`campaigns.count.${name}`))]}
      >
        {providers.map((counts) => (
          <tr key={counts.provider}>
            <th scope="row">
              {counts.provider === 'other' ? t('campaigns.provider.other') : counts.provider}
            </th>
            {BY_PROVIDER.map((name) => (
              <td key={name}>
                {number(counts[name])}
                {name !== 'delivered' && <p class="small">{percent(counts[name], counts.delivered)}</p>}
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </>
  );
}
