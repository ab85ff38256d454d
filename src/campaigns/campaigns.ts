import { DAY, HOUR, iso } from '../core/clock.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { withoutNulls } from '../core/without-nulls.ts';
import type { CountFilter } from '../store/campaigns/campaign-counts.ts';
import type { CampaignRow, CampaignStatus } from '../store/campaigns/campaigns.ts';
import type { Context } from '../store/context.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Page, PageFilter } from '../store/rows/page.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import type { TestRequest } from './variants.ts';

/* Campaigns: names under which messages are sent and counted. Deleting one deletes its counts, not its messages. */

/** The fields of a campaign that a caller sets. */
export interface CampaignFields {
  name: string;
  description: string | null;
  /** What is prepared for its send. Default: nothing. */
  prepared?: PreparedSend | null;
}

export const ANALYTICS_INTERVALS = ['hour', 'day'] as const;
export type AnalyticsInterval = (typeof ANALYTICS_INTERVALS)[number];

export interface AnalyticsQuery {
  /** Epoch ms; null: since the beginning. */
  from: number | null;
  /** Epoch ms; null: until now. */
  to: number | null;
  interval: AnalyticsInterval;
}

const WIDTHS: Record<AnalyticsInterval, number> = { hour: HOUR, day: DAY };
const MAX_LINKS = 100;
const NO_END = Number.MAX_SAFE_INTEGER;

/**
 * Reads the counts of a campaign, in a reader thread: by time, in order, without spans of zeros, and the most clicked
 * links and the largest providers in the whole lifetime. `timestamp`: the beginning of each span, ISO 8601.
 */
export const campaignAnalytics = readQuery(
  'campaignAnalytics',
  (tables: Tables, filter: CountFilter, width: number) => ({
    campaignId: filter.campaignId,
    totals: tables.campaignCounts.totals(filter),
    series: tables.campaignCounts
      .series(filter, width)
      .map(({ start, ...counts }) => ({ timestamp: iso(start), ...counts })),
    links: tables.campaignCounts.links(filter.campaignId, MAX_LINKS),
    providers: tables.campaignCounts.providers(filter.campaignId),
  }),
);

/**
 * Stateless: lists and counts run through `reader`, and each change is one unit of work. Sending, which changes the
 * status, is separate (`createCampaignSending`).
 */
export function createCampaigns(
  { tables, reader, writer, clock, ids }: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids'>,
  mayAdd: MayAdd,
) {
  return {
    /** Newest first. */
    list: (filter: PageFilter): Promise<Page<CampaignRow>> =>
      reader.table(filter.accountId, 'campaigns', 'list', filter),
    get: (accountId: string, campaignId: string): CampaignRow | Refusal =>
      findCampaign(tables, accountId, campaignId),
    create: (
      accountId: string,
      { prepared = null, ...fields }: CampaignFields,
    ): Promise<CampaignRow | Refusal> =>
      writer.run((tx): CampaignRow | Refusal => {
        const full = mayAdd(tx, accountId);
        if (full !== null) return full;
        const now = clock.now();
        const row = {
          ...fields,
          prepared: writePrepared(prepared),
          campaign_id: ids.make('campaign'),
          account_id: accountId,
          status: 'draft' as const,
          created_at: now,
          updated_at: now,
        };
        return { ...row, seq: tx.campaigns.insert(row) };
      }, accountId),
    /**
     * What is prepared can be changed until the campaign is sent. `expectedUpdatedAt`: the change is refused if the
     * campaign was changed at another time, epoch ms.
     */
    update: (
      accountId: string,
      campaignId: string,
      { prepared, ...fields }: Partial<CampaignFields>,
      expectedUpdatedAt?: number,
    ): Promise<CampaignRow | Refusal> =>
      writer.run((tx): CampaignRow | Refusal => {
        const campaign = findCampaign(tx, accountId, campaignId);
        if (isRefusal(campaign)) return campaign;
        if (expectedUpdatedAt !== undefined && expectedUpdatedAt !== campaign.updated_at)
          return changedSince(campaign);
        if (prepared !== undefined && campaign.status !== 'draft')
          return refuse(
            'INVALID_STATE',
            `Campaign ${campaignId} is ${campaign.status}: what is prepared can no longer change`,
          );
        const changed = {
          ...campaign,
          ...fields,
          ...(prepared === undefined ? {} : { prepared: writePrepared(prepared) }),
          // Each change has its own time: `expectedUpdatedAt` depends on it.
          updated_at: Math.max(clock.now(), campaign.updated_at + 1),
        };
        tx.campaigns.update(changed);
        return changed;
      }, accountId),
    /** Refused while the campaign is being sent. */
    remove: (accountId: string, campaignId: string): Promise<CampaignRow | Refusal> =>
      writer.run((tx): CampaignRow | Refusal => {
        const campaign = findCampaign(tx, accountId, campaignId);
        if (isRefusal(campaign)) return campaign;
        if (ACTIVE.includes(campaign.status)) {
          return refuse('INVALID_STATE', `Campaign ${campaignId} is ${campaign.status}: cancel it first`);
        }
        // Without the campaign its remaining messages would be sent.
        if (campaign.status === 'cancelled' && tx.campaignSends.get(campaign.seq)?.open === 1)
          return refuse(
            'INVALID_STATE',
            `Messages of campaign ${campaignId} are still being cancelled; try again later`,
          );
        tx.campaigns.remove(campaign.seq);
        return campaign;
      }, accountId),
    /** `from` is rounded down to the hour, `to` up. */
    analytics: async (
      accountId: string,
      campaignId: string,
      { from, to, interval }: AnalyticsQuery,
    ): Promise<ReturnType<typeof campaignAnalytics.run> | Refusal> => {
      const campaign = findCampaign(tables, accountId, campaignId);
      if (isRefusal(campaign)) return campaign;
      const filter = {
        campaignId,
        from: from === null ? 0 : from - (from % HOUR),
        to: to === null ? NO_END : Math.ceil(to / HOUR) * HOUR,
      };
      return reader.query(accountId, campaignAnalytics, filter, WIDTHS[interval]);
    },
  };
}

export type Campaigns = ReturnType<typeof createCampaigns>;

function changedSince({ campaign_id, updated_at }: CampaignRow): Refusal {
  const message = `Campaign ${campaign_id} was changed at ${iso(updated_at)}: read it again before you change it`;
  return refuse('INVALID_STATE', message, {
    details: [{ field: 'expectedUpdatedAt', reason: 'CHANGED', message }],
  });
}

const ACTIVE: readonly CampaignStatus[] = ['scheduled', 'sending', 'paused'];

/** Returns the same refusal for an unknown campaign and for one of another account. */
export function findCampaign(tables: Tables, accountId: string, campaignId: string): CampaignRow | Refusal {
  return (
    tables.campaigns.get(accountId, campaignId) ??
    refuse('CAMPAIGN_NOT_FOUND', `There is no campaign ${campaignId}`)
  );
}

/** The campaign without its progress, which `presentWithProgress` adds; times in ISO 8601. */
export function presentCampaign(row: CampaignRow) {
  const { name, description, status } = row;
  return {
    campaignId: row.campaign_id,
    name,
    ...withoutNulls({ description }),
    status,
    prepared: readPrepared(row.prepared),
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}

/** The audience as a request has it. */
export interface AudienceRequest {
  subscriptionGroupId?: string | undefined;
  subscriptionGroupIds?: string[] | undefined;
  segmentId?: string | undefined;
  excludeSegmentIds?: string[] | undefined;
  excludeCampaignIds?: string[] | undefined;
}

/**
 * What is prepared for a campaign that is not sent. The person who sends it sees these values; the send itself uses those of its
 * request, so nothing here is checked against groups, templates and domains.
 */
interface PreparedSend extends AudienceRequest {
  templateId?: string | undefined;
  from?: string | undefined;
  subject?: string | undefined;
  perHour?: number | undefined;
  /** ISO 8601. */
  scheduledAt?: string | undefined;
  variants?:
    | { name?: string | undefined; subject?: string | undefined; templateId?: string | undefined }[]
    | undefined;
  test?: TestRequest | undefined;
}

/** Reads the stored form. */
export function readPrepared(stored: string | null): PreparedSend | null {
  // Sound: only `writePrepared` and the import of accounts, which checks it, write it.
  return stored === null ? null : (JSON.parse(stored) as PreparedSend);
}

/** The stored form; null: nothing is prepared. */
function writePrepared(prepared: PreparedSend | null): string | null {
  return prepared === null ? null : JSON.stringify(prepared);
}
