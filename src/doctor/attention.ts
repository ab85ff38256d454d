import { DAY } from '../core/clock.ts';
import { messageSeries } from '../events/message-stats.ts';
import { listLimits } from '../reputation/monitor.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { LimitLevel } from '../store/sending-limits.ts';
import type { Tables } from '../store/tables.ts';

/* What needs a person, for the first page of the console and the counts of its navigation. */

/** Of an account. `rate`: the share of a domain's messages in the last 24 hours that had this outcome. */
export type AccountAttention = {
  /** Id of the domain, webhook, campaign or person. */
  id: string;
  name: string;
  /** Epoch ms; null: unknown. */
  since: number | null;
  /** Messages or events that wait for it, at most MAX_WAITING. Of a domain: among its newest messages. */
  waiting: number;
} & (
  | { kind: 'domain'; status: 'PENDING' | 'TEMPORARY_FAILURE' | 'FAILED' }
  | { kind: 'rate'; outcome: 'bounced' | 'complained'; share: number; limit: number }
  | { kind: 'webhook'; isActive: boolean }
  | { kind: 'campaign'; reason: string | null }
  /** An automatic limit of a stream. `name`: the domain, or '' for all of the account. */
  | { kind: 'limit'; level: LimitLevel; provider: string | null }
  /** A person who asked on the preference page to be erased. `since`: of the request. */
  | { kind: 'erasure'; contactIdentifier: string }
);

export interface AttentionOfAccount {
  items: AccountAttention[];
  /** All of them, also those that are not in `items`. */
  counts: { domains: number; webhooks: number; campaigns: number };
}

/** Items of one kind. */
const MAX_ITEMS = 20;
const MAX_WAITING = 10_000;
/** The share of fewer messages means little. */
const MIN_ACCEPTED = 100;
/**
 * Shares above which receivers begin to distrust a domain: Gmail and Yahoo demand complaints below 0.3 % and recommend
 * 0.1 %.
 */
const RATES = [
  { outcome: 'complained', limit: 0.001 },
  { outcome: 'bounced', limit: 0.05 },
] as const;

/**
 * Reads what needs a person in an account: failures first, in the order domains, rates, webhooks, limits, campaigns, erasures.
 * `mayErase`: with the requests for erasure.
 */
export const accountAttention = readQuery(
  'accountAttention',
  (
    tables: Tables,
    { accountId, now, mayErase }: { accountId: string; now: number; mayErase: boolean },
  ): AttentionOfAccount => {
    const domains = failingDomains(tables, accountId);
    const webhooks = failingWebhooks(tables, accountId);
    const limits = listLimits(tables, accountId).slice(0, MAX_ITEMS);
    const campaigns = tables.campaignSends.paused(accountId, MAX_ITEMS, MAX_WAITING);
    return {
      items: [
        ...domains.slice(0, MAX_ITEMS).map(
          (row): AccountAttention => ({
            kind: 'domain',
            id: row.domain_id,
            name: row.name,
            status: row.status,
            since: row.failing_since,
            waiting: tables.queue.ofDomain(row.domain_id, MAX_WAITING).length,
          }),
        ),
        ...highRates(tables, accountId, now),
        ...webhooks.slice(0, MAX_ITEMS).map(
          (row): AccountAttention => ({
            kind: 'webhook',
            id: row.webhook_id,
            // The path of the address may have a secret.
            name: row.name || new URL(row.url).host,
            isActive: row.is_active === 1,
            since: row.is_active === 1 ? row.failing_since : row.updated_at,
            waiting: tables.webhookDeliveries.countOpen(row.number, MAX_WAITING),
          }),
        ),
        ...limits.map(
          ({ limitId, domain, level, provider, since }): AccountAttention => ({
            kind: 'limit',
            id: limitId,
            name: domain ?? '',
            level,
            provider,
            since: Date.parse(since),
            waiting: 0,
          }),
        ),
        ...campaigns.map(
          (row): AccountAttention => ({
            kind: 'campaign',
            id: row.campaign_id,
            name: row.name,
            reason: row.paused_reason,
            since: row.updated_at,
            waiting: row.remaining,
          }),
        ),
        ...(mayErase ? erasureRequests(tables, accountId) : []),
      ],
      counts: {
        domains: domains.length,
        webhooks: webhooks.length,
        campaigns: tables.campaignSends.countPaused(accountId),
      },
    };
  },
);

/** The oldest first. */
function erasureRequests({ contacts }: Tables, accountId: string): AccountAttention[] {
  return contacts.erasureRequests(accountId, MAX_ITEMS).map((row): AccountAttention => {
    const contactIdentifier = row.email_hash ?? row.phone_hash ?? '';
    return {
      kind: 'erasure',
      id: row.user_id,
      name: row.email ?? row.phone ?? contactIdentifier,
      contactIdentifier,
      since: row.erasure_requested_at,
      waiting: 0,
    };
  });
}

/** Those that cannot send first. */
function failingDomains({ domains }: Tables, accountId: string) {
  return domains
    .list(accountId)
    .flatMap(({ status, ...row }) => (status === 'SUCCESS' ? [] : [{ ...row, status }]))
    .toSorted((a, b) => DOMAIN_ORDER[a.status] - DOMAIN_ORDER[b.status]);
}

const DOMAIN_ORDER = { FAILED: 0, TEMPORARY_FAILURE: 1, PENDING: 2 } as const;

/** Webhooks that every call fails for, or that the daemon disabled. One that its account disabled needs nobody. */
function failingWebhooks({ webhooks }: Tables, accountId: string) {
  return webhooks
    .list(accountId)
    .filter((row) => (row.is_active === 1 ? row.failing_since !== null : row.off_reason !== null));
}

function highRates(tables: Tables, accountId: string, now: number): AccountAttention[] {
  const { series } = messageSeries.run(tables, {
    interval: 'hour',
    by: 'domain',
    from: now - DAY,
    to: now,
    accountId,
  });
  return RATES.flatMap(({ outcome, limit }) =>
    series.flatMap(({ name: id, points }): AccountAttention[] => {
      const domain = id === undefined ? null : tables.domains.byId(id);
      const accepted = points.reduce((sum, point) => sum + point.accepted, 0);
      const share = points.reduce((sum, point) => sum + point[outcome], 0) / Math.max(accepted, 1);
      if (domain === null || accepted < MIN_ACCEPTED || share <= limit) return [];
      return [
        {
          kind: 'rate',
          id: domain.domain_id,
          name: domain.name,
          outcome,
          share,
          limit,
          since: null,
          waiting: 0,
        },
      ];
    }),
  );
}
