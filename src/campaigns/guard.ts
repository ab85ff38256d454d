import { HOUR } from '../core/clock.ts';
import {
  CAMPAIGN_SAMPLE,
  countsSince,
  judge,
  NO_COUNTS,
  type RateCounts,
  type Verdict,
} from '../reputation/judgement.ts';
import { configuredLimits, type ReputationConfig } from '../reputation/limits.ts';
import type { CampaignSend } from '../store/campaigns/campaign-sends.ts';
import type { Tables } from '../store/tables.ts';

/*
 * Which results stop a campaign automatically. They are counted by hour in the transaction of each event, and judged before
 * each batch of messages.
 */

export interface CampaignResults {
  /** Since the campaign began. */
  all: RateCounts;
  /** Since a person has seen the results and resumed it. */
  unseen: RateCounts;
  /** Of this hour and the one before: a part of the list can be worse than the others. Null: `unseen` is as recent. */
  recent: RateCounts | null;
}

const RECENT_HOURS = 1;
const NO_END = Number.MAX_SAFE_INTEGER;

export function resultsOf(
  { campaignCounts }: Tables,
  {
    campaign_id: campaignId,
    seen_counts,
    started_at,
  }: Pick<CampaignSend, 'campaign_id' | 'seen_counts' | 'started_at'>,
  now: number,
): CampaignResults {
  const all = campaignCounts.totals({ campaignId, from: 0, to: NO_END });
  const from = now - (now % HOUR) - RECENT_HOURS * HOUR;
  const seen = readSeen(seen_counts);
  return {
    all,
    unseen: countsSince(all, seen?.counts ?? NO_COUNTS),
    recent:
      (seen?.at ?? started_at ?? now) >= from
        ? null
        : campaignCounts.totals({ campaignId, from, to: NO_END }),
  };
}

/** Why the campaign must stop; null: it may continue. */
export function campaignVerdict(
  { unseen, recent }: CampaignResults,
  config: ReputationConfig,
): Verdict | null {
  const limits = configuredLimits(config);
  for (const counts of [unseen, recent ?? unseen]) {
    const verdict = judge(counts, limits, CAMPAIGN_SAMPLE);
    if (verdict?.level === 'pause') return verdict;
  }
  return null;
}

/** The results that a person has seen when a campaign is resumed, in their stored form. */
export function seenNow(tables: Tables, send: CampaignSend, now: number): string {
  const { all } = resultsOf(tables, send, now);
  const { delivered, bounced, hardBounced, blocked, complained, unsubscribed } = all;
  const seen: SeenResults = {
    at: now,
    counts: { delivered, bounced, hardBounced, blocked, complained, unsubscribed },
  };
  return JSON.stringify(seen);
}

interface SeenResults {
  /** Epoch ms. */
  at: number;
  counts: RateCounts;
}

function readSeen(stored: string | null): SeenResults | null {
  // Sound: only `seenNow` writes it.
  return stored === null ? null : (JSON.parse(stored) as SeenResults);
}
