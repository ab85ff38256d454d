import type * as z from 'zod';
import type { domainSchema } from '../../../http/api/domains/domain-schemas.ts';
import type { messageSchema } from '../../../http/api/sending/messages.ts';
import type { statisticsSchema } from '../../../http/api/statistics.ts';
import type { webhook } from '../../../http/api/webhook-schemas.ts';
import { withQuery } from '../../api.ts';
import { useData } from '../../data.ts';
import { lazyPage } from '../../parts/lazy.tsx';
import { MessageTable } from '../../parts/message-table.tsx';
import { Empty, Loaded, Page } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

interface MessageList {
  messages: z.output<typeof messageSchema>[];
  nextKey?: string;
}

const InstallationProblems = lazyPage(() =>
  import('./installation-problems.tsx').then((module) => module.InstallationProblems),
);
const Volume = lazyPage(() => import('./volume.tsx').then((module) => module.Volume));

/** Statuses of messages that are problems. */
const PROBLEMS = ['bounced', 'failed', 'complained', 'deferred'] as const;
const DAY_MS = 86_400_000;
const COUNTED = 100;
/**
 * Shares of a domain's messages above which receivers begin to distrust it, if it sent enough mail: Gmail and Yahoo
 * demand complaints below 0.3 % and recommend 0.1 %.
 */
const RATES = [
  { outcome: 'bounced', limit: 0.05 },
  { outcome: 'complained', limit: 0.001 },
] as const;
const MIN_ACCEPTED = 100;

/** The problems of the account, each with a link to its list, and the latest messages. */
export function OverviewPage() {
  const { t } = useTexts();
  const { person } = useMember();
  const domains = useData<{ domains: z.output<typeof domainSchema>[] }>('/web-setup/domains');
  const recent = useData<MessageList>('/web-setup/messages?limit=10');
  return (
    <Page title={t('page.overview')} question={t('overview.question')} curl="/web-setup/messages?limit=10">
      {person.operator && <InstallationProblems />}
      <Loaded data={domains}>
        {(list) => (list.domains.length === 0 ? <Start /> : <Problems domains={list.domains} />)}
      </Loaded>
      {domains.value !== null && domains.value.domains.length > 0 && (
        <Volume domains={new Map(domains.value.domains.map(({ domainId, domain }) => [domainId, domain]))} />
      )}
      <h2>{t('overview.recent')}</h2>
      <Loaded data={recent}>
        {({ messages }) =>
          messages.length === 0 ? (
            <Empty title={t('messages.empty')}>
              <p>{t('messages.empty.hint')}</p>
            </Empty>
          ) : (
            <MessageTable messages={messages} label={t('overview.recent')} filters={{}} />
          )
        }
      </Loaded>
    </Page>
  );
}

function Start() {
  const { t } = useTexts();
  const { href } = useNavigation();
  return (
    <Empty title={t('overview.start')}>
      <p>{t('overview.start.hint')}</p>
      <a class="button primary" href={href('domains')}>
        {t('domains.add')}
      </a>
    </Empty>
  );
}

function Problems(props: { domains: z.output<typeof domainSchema>[] }) {
  const { t, named, time, percent } = useTexts();
  const { href } = useNavigation();
  // Whole hours: the address of the link remains while the page is open.
  const from = new Date(Math.floor((Date.now() - DAY_MS) / 3_600_000) * 3_600_000).toISOString();
  const [bounced, failed, complained, deferred] = [
    useMessages('bounced', from),
    useMessages('failed', from),
    useMessages('complained', from),
    useMessages('deferred', from),
  ];
  const webhooks = useData<{ webhooks: z.output<typeof webhook>[] }>(
    '/web-setup/webhooks?includeInactive=true',
  );
  const rates = useData<z.output<typeof statisticsSchema>>('/web-setup/statistics?by=domain');
  const lists = { bounced, failed, complained, deferred };
  const all = [bounced, failed, complained, deferred, webhooks, rates];
  const items = [
    ...props.domains
      .filter(({ status }) => status !== 'SUCCESS')
      .map(({ domain, domainId, status }) => ({
        text: t('overview.domain', { domain, status: named('status', status) }),
        address: href(`domains/${encodeURIComponent(domainId)}`),
      })),
    ...props.domains.flatMap(({ domain, domainId }) =>
      RATES.flatMap(({ outcome, limit }) => {
        const points = rates.value?.series.find(({ name }) => name === domainId)?.points ?? [];
        const accepted = points.reduce((sum, point) => sum + point.accepted, 0);
        const share = points.reduce((sum, point) => sum + point[outcome], 0) / Math.max(accepted, 1);
        if (accepted < MIN_ACCEPTED || share <= limit) return [];
        const values = { domain, share: percent(share, 1), limit: percent(limit, 1) };
        const address = href('messages', { domainId, status: outcome, from });
        return [{ text: t(`overview.rate.${outcome}`, values), address }];
      }),
    ),
    ...PROBLEMS.flatMap((status) => {
      const list = lists[status].value;
      // As in the volume below.
      const count = list?.messages.filter(({ simulated }) => simulated !== true).length ?? 0;
      if (list === null || (count === 0 && list.nextKey === undefined)) return [];
      const values = { status: named('status', status), count, shown: list.messages.length };
      const text = t(textOf(count, list.nextKey !== undefined), values);
      return [{ text: `${text} ${t('overview.period')}`, address: href('messages', { status, from }) }];
    }),
    ...(webhooks.value?.webhooks ?? [])
      .filter(({ isActive, failingSince }) => !isActive || failingSince !== undefined)
      .map(({ name, url, isActive, failingSince, webhookId }) => ({
        text: t(isActive ? 'overview.webhook.failing' : 'overview.webhook', {
          name: name || url,
          time: time(failingSince),
        }),
        address: href(`webhooks/${encodeURIComponent(webhookId)}`, isActive ? { status: 'failed' } : {}),
      })),
  ];
  const hasSimulated = PROBLEMS.some((status) =>
    lists[status].value?.messages.some(({ simulated }) => simulated === true),
  );
  const failure = all.find(({ error }) => error !== null);
  const isComplete = all.every(({ value }) => value !== null);
  return (
    <>
      <h2>{t('overview.problems')}</h2>
      {hasSimulated && <p class="small">{t('overview.simulated')}</p>}
      {failure !== undefined && <Loaded data={{ ...failure, value: null }}>{() => null}</Loaded>}
      {items.length > 0 && (
        <ul class="problems">
          {items.map(({ text, address }) => (
            <li key={text}>
              <a href={address}>{text}</a>
            </li>
          ))}
        </ul>
      )}
      {items.length === 0 && isComplete && (
        <Empty title={t('overview.none')}>
          <p>{t('overview.none.hint')}</p>
        </Empty>
      )}
    </>
  );
}

function useMessages(status: string, from: string) {
  return useData<MessageList>(withQuery('/web-setup/messages', { status, from, limit: String(COUNTED) }));
}

function textOf(count: number, hasMore: boolean) {
  if (!hasMore) return 'overview.messages';
  return count === 0 ? 'overview.messages.unknown' : 'overview.messages.more';
}
