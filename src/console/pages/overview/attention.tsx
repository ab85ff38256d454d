import type { AttentionItem, AttentionResponse } from '../../../http/console/attention-routes.ts';
import type { Data } from '../../data.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { siteName } from '../../parts/site-name.ts';
import { Time } from '../../parts/time.tsx';
import { Card, Chip, Loaded } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { type Texts, useTexts } from '../../texts.ts';

type InstallationProblem = NonNullable<AttentionResponse['installation']>['problems'][number];

interface Entry {
  title: string;
  /** Where it is explained or mended. */
  page: string;
  query?: Record<string, string>;
  isBad: boolean;
  /** ISO 8601. */
  since?: string | null;
  waiting?: string;
}

/** What needs a person: failures first, each with what waits for it and a link to what to do. */
export function Attention({ data }: { data: Data<AttentionResponse> }) {
  const texts = useTexts();
  const { t, number } = texts;
  return (
    <div class="attention">
      <Loaded data={data}>
        {({ items, installation }) => {
          const entries = [
            ...(installation?.problems ?? []).map((problem) => ofInstallation(problem, texts)),
            ...items.map((item) => ofAccount(item, texts)),
          ].sort((one, other) => Number(other.isBad) - Number(one.isBad));
          const kind = entries.some(({ isBad }) => isBad) ? 'bad' : 'warn';
          return (
            <Card
              title={t('overview.attention')}
              action={entries.length > 0 && <Chip kind={kind}>{number(entries.length)}</Chip>}
            >
              {entries.length === 0 ? (
                <p class="all-well">
                  <Icon name="circle-check" />
                  {t('overview.none.hint')}
                </p>
              ) : (
                <section class="attention-list" tabIndex={0} aria-label={t('overview.attention')}>
                  <ul>
                    {entries.map((entry) => (
                      <Item key={`${entry.page} ${entry.title}`} entry={entry} />
                    ))}
                  </ul>
                </section>
              )}
            </Card>
          );
        }}
      </Loaded>
    </div>
  );
}

function Item({ entry: { title, page, query = {}, isBad, since, waiting } }: { entry: Entry }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const hasSince = since !== null && since !== undefined;
  return (
    <li class={isBad ? 'bad' : 'warn'}>
      <Icon name={isBad ? 'circle-x' : 'triangle-alert'} />
      <div>
        <a href={href(page, query)}>{title}</a>
        {(waiting !== undefined || hasSince) && (
          <p class="small">
            {waiting}
            {waiting !== undefined && hasSince && ' · '}
            {hasSince && (
              <>
                {t('overview.since')} <Time at={since} />
              </>
            )}
          </p>
        )}
      </div>
    </li>
  );
}

function ofAccount(item: AttentionItem, { t, plural, named, percent }: Texts): Entry {
  const { id, name, since, waiting } = item;
  const wait = (key: 'overview.waiting.messages' | 'overview.waiting.events') =>
    waiting === 0 ? {} : { waiting: plural(key, waiting) };
  switch (item.kind) {
    case 'domain':
      return {
        title: t('overview.domain', { domain: name, status: named('status', item.status) }),
        page: `domains/${encodeURIComponent(id)}`,
        isBad: item.status !== 'PENDING',
        since,
        ...wait('overview.waiting.messages'),
      };
    case 'rate':
      return {
        title: t(`overview.rate.${item.outcome}`, {
          domain: name,
          share: percent(item.share, 1),
          limit: percent(item.limit, 1),
        }),
        page: 'messages',
        query: { domainId: id, status: item.outcome },
        isBad: false,
      };
    case 'webhook':
      return {
        title: t(item.isActive ? 'overview.webhook.failing' : 'overview.webhook', { name }),
        page: `webhooks/${encodeURIComponent(id)}`,
        query: item.isActive ? { status: 'pending' } : {},
        isBad: true,
        since,
        ...wait('overview.waiting.events'),
      };
    case 'campaign':
      return {
        title: t('overview.campaign.paused', { name }),
        page: `campaigns/${encodeURIComponent(id)}`,
        isBad: false,
        since,
        ...wait('overview.waiting.messages'),
      };
    default:
      return item satisfies never;
  }
}

function ofInstallation(problem: InstallationProblem, { t, time, size }: Texts): Entry {
  const system = (section: string) => ({ page: 'system', query: { section } });
  switch (problem.kind) {
    case 'queue':
      return { title: t('system.stopped', { reason: problem.reason }), page: 'queue', isBad: true };
    case 'disk': {
      const values = { free: size(problem.freeBytes), limit: size(problem.minFreeBytes) };
      return { title: t('overview.installation.disk', values), ...system('storage'), isBad: true };
    }
    case 'certificate': {
      const { host, error } = problem;
      const title =
        error === null
          ? t('overview.installation.expired', { host })
          : t('overview.installation.certificate', { host, error });
      return { title, ...system('certificates'), isBad: true };
    }
    case 'backup':
      return {
        title: t('system.backups.failed', { error: problem.error }),
        ...system('backups'),
        isBad: true,
      };
    case 'address': {
      const { address, provider, reply, since } = problem;
      const title = t('overview.installation.refused', { address, provider, reply });
      return { title, ...system('egress'), isBad: true, since };
    }
    case 'site': {
      const values = { site: siteName(problem), time: time(problem.until) };
      return {
        title: t(`overview.installation.${problem.state}`, values),
        ...system('sites'),
        isBad: problem.state === 'suspended',
      };
    }
    default:
      return problem satisfies never;
  }
}
