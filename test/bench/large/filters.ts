import { join } from 'node:path';
import { systemRandom } from '../../../src/core/random.ts';
import { createSeal } from '../../../src/core/seal.ts';
import { pageKeysOf } from '../../../src/http/page-keys.ts';
import { readMasterKey } from '../../../src/store/master-key.ts';
import { DAY_MS, DAYS, jobIdOf, membersOf, personAddress } from './history.ts';
import type { HistoryExtent, RunningInstallation } from './installation.ts';

/**
 * Every documented filter of every list that grows with the history, each with its first page, a page deep in the
 * history and a value that nothing matches.
 */
export interface ListCase {
  list: string;
  /** Description of the filter. */
  filter: string;
  page: 'first' | 'deep' | 'empty';
  path: string;
}

/** A filter with a query that matches rows and one that matches none; null: there is none. */
type Filter = [name: string, matching: string, empty: string | null];

export function listCases(running: RunningInstallation, { messages, now }: HistoryExtent): ListCase[] {
  const { domains, campaignIds, webhook, group, accounts, daemon } = running;
  // A key in the middle, as the first account gets it on the pages before.
  const pageKeys = pageKeysOf(createSeal(readMasterKey(join(daemon.dataDir, 'master.key')), systemRandom));
  const keyOf = (list: string, seq: number) => pageKeys.seal(accounts[0]?.accountId ?? '', `${list}:${seq}`);
  const middle = {
    message: Math.floor(messages / 2),
    event: Math.floor(messages * 1.2),
    person: Math.floor(membersOf(messages) / 2),
    suppression: Math.floor(messages * 0.02),
  };
  const nobody = encodeURIComponent('nobody@elsewhere.example');
  const person = encodeURIComponent(personAddress(3));
  const draft = campaignIds.at(-1) ?? '';
  const campaign = campaignIds[4] ?? '';
  const time = (days: number) => encodeURIComponent(new Date(now - days * DAY_MS).toISOString());
  const unknownJob = 'job_1700000000000_000000000000';
  const knownJob = jobIdOf(now, { campaign: 4, account: 0 });
  const before = time(DAYS + 1);

  /** Filters that messages and events have in common. */
  const common: Filter[] = [
    ['none', '', null],
    ['recipient', `recipient=${person}`, `recipient=${nobody}`],
    ['domainId', `domainId=${domains.tx.domainId}`, 'domainId=domain_1700000000000_none00000000'],
    ['domainId with few messages', `domainId=${domains.rare.domainId}`, null],
    ['campaignId', `campaignId=${campaign}`, `campaignId=${draft}`],
    ['jobId', `jobId=${knownJob}`, `jobId=${unknownJob}`],
    ['status common', 'status=delivered', null],
    ['status rare', 'status=complained', 'status=sending'],
    ['from recent', `from=${time(1)}`, `from=${time(-30)}`],
    ['to 60 days back', `to=${time(60)}`, `to=${before}`],
    ['from and to', `from=${time(61)}&to=${time(60)}`, `from=${time(DAYS + 3)}&to=${before}`],
    [
      'domainId and status',
      `domainId=${domains.tx.domainId}&status=bounced`,
      `domainId=${domains.tx.domainId}&status=sending`,
    ],
    [
      'campaignId and status',
      `campaignId=${campaign}&status=complained`,
      `campaignId=${campaign}&status=sending`,
    ],
    ['status and from', `status=failed&from=${time(60)}`, `status=sending&from=${time(60)}`],
    [
      'recipient and domainId',
      `recipient=${person}&domainId=${domains.tx.domainId}`,
      `recipient=${nobody}&domainId=${domains.tx.domainId}`,
    ],
    [
      'all',
      `recipient=${person}&domainId=${domains.mk.domainId}&campaignId=${campaign}&status=delivered&from=${time(80)}&to=${time(1)}`,
      `recipient=${nobody}&domainId=${domains.mk.domainId}&campaignId=${draft}&status=sending&from=${time(80)}&to=${time(1)}`,
    ],
  ];
  const eventFilters: Filter[] = [
    ...common,
    ['event common', 'event=email_delivered', null],
    ['event rare', 'event=email_complained', 'event=email_rejected'],
    [
      'event and domainId',
      `event=email_bounced&domainId=${domains.tx.domainId}`,
      `event=email_rejected&domainId=${domains.tx.domainId}`,
    ],
    ['event and from', `event=email_clicked&from=${time(30)}`, `event=email_rejected&from=${time(30)}`],
    ['event and status', 'event=email_opened&status=complained', 'event=email_opened&status=sending'],
    ['messageId', 'messageId=msg_1700000000000_000000000000', null],
  ];
  const suppressionFilters: Filter[] = [
    ['none', '', null],
    ['email', `email=${encodeURIComponent(personAddress(0))}`, `email=${nobody}`],
    ['stream', 'stream=mk', null],
    ['reason', 'reason=complaint', 'reason=soft_bounces'],
    ['stream and reason', 'stream=all&reason=manual', 'stream=mk&reason=hard_bounce'],
  ];
  const contactFilters: Filter[] = [
    ['none', '', null],
    ['status', 'status=complained', 'status=suppressed'],
    ['search common', 'search=first', 'search=qqqqqq'],
    ['search one', `search=${person}`, 'search=nobody%40elsewhere'],
    ['search prefix', 'search=la', null],
    ['search and status', 'search=last7&status=bounced', 'search=last7&status=suppressed'],
  ];
  const memberFilters: Filter[] = [
    ['none', '', null],
    ['isActive', 'isActive=true', 'isActive=false'],
    ['search', 'search=first10', 'search=qqqqqq'],
  ];
  const deliveryFilters: Filter[] = [
    ['none', '', null],
    ['status', 'status=failed', 'status=pending'],
    ['status common', 'status=succeeded', null],
  ];
  return [
    ...casesOf('messages', '/web-setup/messages', common, keyOf('messages', middle.message)),
    ...casesOf('events', '/web-setup/events', eventFilters, keyOf('events', middle.event)),
    ...casesOf(
      'suppressions',
      '/web-setup/suppressions',
      suppressionFilters,
      keyOf('suppressions', middle.suppression),
    ),
    ...casesOf('contacts', '/web-setup/contacts', contactFilters, keyOf('contacts', middle.person)),
    ...casesOf(
      'group members',
      `/web-setup/contacts/subscription-groups/${group.subscriptionGroupId}/subscriptions`,
      memberFilters,
      keyOf('subscriptions', middle.person),
    ),
    ...casesOf(
      'webhook deliveries',
      `/web-setup/webhooks/${webhook.webhookId}/deliveries`,
      deliveryFilters,
      keyOf('webhook-deliveries', middle.event),
    ),
    ...casesOf('campaigns', '/web-setup/campaigns', [['none', '', null]], null),
    ...casesOf(
      'campaign analytics',
      `/web-setup/campaigns/${campaign}/analytics`,
      [
        ['none', '', null],
        ['interval', 'interval=hour', null],
      ],
      null,
    ),
    ...casesOf('webhooks', '/web-setup/webhooks', [['none', '', null]], null),
    ...casesOf('domains', '/web-setup/domains', [['none', '', null]], null),
  ];
}

function casesOf(list: string, path: string, filters: Filter[], deepKey: string | null): ListCase[] {
  return filters.flatMap(([filter, matching, empty]): ListCase[] => {
    // Searches have another form of page key.
    const hasDeep = deepKey !== null && !matching.includes('search=') && !matching.includes('messageId=');
    return [
      { list, filter, page: 'first', path: withQuery(path, matching) },
      ...(hasDeep
        ? [{ list, filter, page: 'deep' as const, path: withQuery(path, matching, `lastKey=${deepKey}`) }]
        : []),
      ...(empty === null ? [] : [{ list, filter, page: 'empty' as const, path: withQuery(path, empty) }]),
    ];
  });
}

function withQuery(path: string, ...parts: string[]): string {
  const query = parts.filter((part) => part !== '').join('&');
  return query === '' ? path : `${path}?${query}`;
}
