import { type Clock, DAY, HOUR, iso } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type {
  CampaignTotals,
  CountedSpan,
  CountFilter,
  LinkClicks,
} from '../store/campaigns/campaign-counts.ts';
import type { CampaignRow, CampaignStatus } from '../store/campaigns/campaigns.ts';
import { createLocalReader, type Reader, readQuery } from '../store/readers/reads.ts';
import type { Page, PageFilter } from '../store/rows/page.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';

/**
 * Campaigns: a name under which messages are sent and counted. Their messages do not depend on them: deleting
 * a campaign takes its counts along and leaves its mail as it is.
 */
export interface CampaignFields {
  name: string;
  description: string | null;
}

export const ANALYTICS_INTERVALS = ['hour', 'day'] as const;
export type AnalyticsInterval = (typeof ANALYTICS_INTERVALS)[number];

/** Epoch ms; null: from the beginning, up to now. */
export interface AnalyticsWish {
  from: number | null;
  to: number | null;
  interval: AnalyticsInterval;
}

export interface CampaignAnalytics {
  totals: CampaignTotals;
  /** In order; spans in which nothing happened are left out. `start`: epoch ms. */
  series: CountedSpan[];
  /** Of all times, the most clicked first. */
  links: LinkClicks[];
}

export interface Campaigns {
  /** Newest first. */
  list(filter: PageFilter): Promise<Page<CampaignRow>>;
  get(accountId: string, campaignId: string): CampaignRow | Refusal;
  create(accountId: string, fields: CampaignFields): Promise<CampaignRow>;
  /** Changes the fields that are given. */
  update(
    accountId: string,
    campaignId: string,
    fields: Partial<CampaignFields>,
  ): Promise<CampaignRow | Refusal>;
  /** Refused while it is being sent: somebody would have half of it. */
  remove(accountId: string, campaignId: string): Promise<CampaignRow | Refusal>;
  /** Counted by hours: `from` is taken back to the full hour, `to` forward. */
  analytics(accountId: string, campaignId: string, wish: AnalyticsWish): Promise<CampaignAnalytics | Refusal>;
}

const WIDTHS: Record<AnalyticsInterval, number> = { hour: HOUR, day: DAY };
const MAX_LINKS = 100;
const END_OF_TIME = Number.MAX_SAFE_INTEGER;

/** What was counted of a campaign, as reader threads read it. */
export const campaignAnalytics = readQuery(
  'campaignAnalytics',
  (tables: Tables, filter: CountFilter, width: number): CampaignAnalytics => ({
    totals: tables.campaignCounts.totals(filter),
    series: tables.campaignCounts.series(filter, width),
    links: tables.campaignCounts.links(filter.campaignId, MAX_LINKS),
  }),
);

export function createCampaigns(house: {
  tables: Tables;
  /** Where lists are read; default: this thread. */
  reader?: Reader;
  writer: Writer;
  clock: Clock;
  ids: Ids;
}): Campaigns {
  const { tables, writer, clock, ids } = house;
  const reader = house.reader ?? createLocalReader(tables);
  return {
    list: (filter) => reader.table(filter.accountId, 'campaigns', 'list', filter),
    get: (accountId, campaignId) => findCampaign(tables, accountId, campaignId),
    create: (accountId, fields) =>
      writer.run((all): CampaignRow => {
        const now = clock.now();
        const row = {
          ...fields,
          campaign_id: ids.make('campaign'),
          account_id: accountId,
          status: 'draft' as const,
          created_at: now,
          updated_at: now,
        };
        return { ...row, seq: all.campaigns.insert(row) };
      }),
    update: (accountId, campaignId, fields) =>
      writer.run((all): CampaignRow | Refusal => {
        const campaign = findCampaign(all, accountId, campaignId);
        if (isRefusal(campaign)) return campaign;
        const changed = { ...campaign, ...fields, updated_at: clock.now() };
        all.campaigns.update(changed);
        return changed;
      }),
    remove: (accountId, campaignId) =>
      writer.run((all): CampaignRow | Refusal => {
        const campaign = findCampaign(all, accountId, campaignId);
        if (isRefusal(campaign)) return campaign;
        if (UNDER_WAY.includes(campaign.status)) {
          return refuse('INVALID_STATE', `the campaign is ${campaign.status}: cancel it first`);
        }
        // Without the campaign nobody would know that its mail is not to go.
        if (campaign.status === 'cancelled' && all.campaignSends.get(campaign.seq)?.open === 1)
          return refuse('INVALID_STATE', 'mail of the campaign is still being called off; try again shortly');
        all.campaigns.remove(campaign.seq);
        return campaign;
      }),
    analytics: async (accountId, campaignId, { from, to, interval }) => {
      const campaign = findCampaign(tables, accountId, campaignId);
      if (isRefusal(campaign)) return campaign;
      const filter = {
        campaignId,
        from: from === null ? 0 : from - (from % HOUR),
        to: to === null ? END_OF_TIME : Math.ceil(to / HOUR) * HOUR,
      };
      return reader.query(accountId, campaignAnalytics, filter, WIDTHS[interval]);
    },
  };
}

const UNDER_WAY: readonly CampaignStatus[] = ['scheduled', 'sending', 'paused'];

/** The same refusal for an unknown campaign and for another account's. */
export function findCampaign(tables: Tables, accountId: string, campaignId: string): CampaignRow | Refusal {
  return (
    tables.campaigns.get(accountId, campaignId) ??
    refuse('CAMPAIGN_NOT_FOUND', `there is no campaign ${campaignId}`)
  );
}

export interface ShownCampaign {
  campaignId: string;
  name: string;
  description: string | null;
  status: CampaignStatus;
  createdAt: string;
  updatedAt: string;
}

/** A campaign as callers see it. */
export function shownCampaign(row: CampaignRow): ShownCampaign {
  const { name, description, status } = row;
  return {
    campaignId: row.campaign_id,
    name,
    description,
    status,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}

export interface ShownAnalytics {
  campaignId: string;
  totals: CampaignTotals;
  series: ({ timestamp: string } & CampaignTotals)[];
  links: LinkClicks[];
}

export function shownAnalytics(
  campaignId: string,
  { totals, series, links }: CampaignAnalytics,
): ShownAnalytics {
  return {
    campaignId,
    totals,
    series: series.map(({ start, ...counts }) => ({ timestamp: iso(start), ...counts })),
    links,
  };
}
