import type { AttentionItem, AttentionResponse } from '../../http/console/attention-routes.ts';
import { useNavigation } from '../routing.ts';
import { type Texts, useTexts } from '../texts.ts';
import { Icon } from './icon/icon.tsx';
import { siteName } from './site-name.ts';
import { Time } from './time.tsx';
import './attention-list.css';

type InstallationProblem = NonNullable<AttentionResponse['installation']>['problems'][number];

interface Described {
  title: string;
  /** Where it is explained or mended. */
  page: string;
  query?: Record<string, string>;
  isBad: boolean;
  /** ISO 8601. */
  since?: string | null;
  /** What waits for it, or what to do. */
  detail?: string;
}

/** Something that needs a person, in words. `isNew`: the person has not seen it. */
export interface AttentionEntry extends Described {
  key: string;
  isNew: boolean;
}

/** What needs a person, failures first. */
export function attentionEntries({ items, installation }: AttentionResponse, texts: Texts): AttentionEntry[] {
  return [
    ...(installation?.problems ?? []).map((problem) => ({
      ...ofInstallation(problem, texts),
      key: problem.key,
      isNew: problem.isNew,
    })),
    ...items.map((item) => ({ ...ofAccount(item, texts), key: item.key, isNew: item.isNew })),
  ].sort((one, other) => Number(other.isBad) - Number(one.isBad));
}

interface AttentionListProps {
  /** Of the list, for screen readers: the page may have two. */
  label: string;
  entries: readonly AttentionEntry[];
  /** Called when a link is followed. */
  onFollow?: () => void;
  areNewMarked?: boolean;
}

/** What needs a person, each with what waits for it and a link to what to do. */
export function AttentionList({ label, entries, onFollow, areNewMarked = false }: AttentionListProps) {
  return (
    <section class="attention-list" tabIndex={0} aria-label={label}>
      <ul>
        {entries.map((entry) => (
          <Item key={entry.key} entry={entry} onFollow={onFollow} isMarked={areNewMarked && entry.isNew} />
        ))}
      </ul>
    </section>
  );
}

interface ItemProps {
  entry: AttentionEntry;
  onFollow: (() => void) | undefined;
  isMarked: boolean;
}

function Item({ entry, onFollow, isMarked }: ItemProps) {
  const { title, page, query = {}, isBad, since, detail } = entry;
  const { t } = useTexts();
  const { href } = useNavigation();
  const hasSince = since !== null && since !== undefined;
  return (
    <li class={isBad ? 'bad' : 'warn'}>
      <Icon name={isBad ? 'circle-x' : 'triangle-alert'} />
      <div>
        <a href={href(page, query)} {...(onFollow === undefined ? {} : { onClick: onFollow })}>
          {isMarked && <span class="unseen new">{t('app.bell.isNew')}: </span>}
          {title}
        </a>
        {(detail !== undefined || hasSince) && (
          <p class="small">
            {detail}
            {detail !== undefined && hasSince && ' · '}
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

function ofAccount(item: AttentionItem, { t, plural, named, percent }: Texts): Described {
  const { id, name, since, waiting } = item;
  const wait = (key: 'overview.waiting.messages' | 'overview.waiting.events') =>
    waiting === 0 ? {} : { detail: plural(key, waiting) };
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
    case 'limit':
      return {
        title: t(`overview.limit.${item.level}`, {
          what: [name || t('overview.limit.account'), item.provider ?? ''].filter(Boolean).join(' → '),
        }),
        page: 'reputation',
        isBad: item.level === 'pause',
        since,
      };
    case 'campaign':
      return {
        title: t('overview.campaign.paused', { name }),
        page: `campaigns/${encodeURIComponent(id)}`,
        isBad: false,
        since,
        ...wait('overview.waiting.messages'),
      };
    case 'erasure':
      return {
        title: t('overview.erasure', { name }),
        detail: t('overview.erasure.hint'),
        page: `contacts/${encodeURIComponent(item.contactIdentifier)}`,
        isBad: false,
        since,
      };
    default:
      return item satisfies never;
  }
}

function ofInstallation(problem: InstallationProblem, { t, time, size }: Texts): Described {
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
