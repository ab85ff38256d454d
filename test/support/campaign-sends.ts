import type { CampaignSendRow } from '../../src/store/campaigns/campaign-sends.ts';
import type { CampaignStatus } from '../../src/store/campaigns/campaigns.ts';
import type { Tables } from '../../src/store/tables.ts';

/** Inserts a campaign of acct_one that was sent to a group, of whose ten members four were processed. */
export function insertCampaignSend(
  tables: Tables,
  { id, status, ...changes }: { id: string; status: CampaignStatus } & Partial<CampaignSendRow>,
  now: number,
): void {
  const seq = tables.campaigns.insert({
    campaign_id: id,
    account_id: 'acct_one',
    name: `Name of ${id}`,
    description: null,
    status,
    prepared: null,
    created_at: now,
    updated_at: now,
  });
  tables.campaignSends.insert(
    {
      campaign_seq: seq,
      account_id: 'acct_one',
      job_id: `job_${id}`,
      subscription_group_id: 'sg_one',
      scheduled_at: null,
      per_hour: null,
      members: 10,
      last_seq: 10,
      at_seq: 4,
      queued: 2,
      without_email: 1,
      not_eligible: 1,
      not_renderable: 0,
      next_at: now,
      open: 1,
      audience: null,
      test: null,
      decide_at: null,
      decision: null,
      in_rest: 0,
      paused_reason: null,
      paused_figures: null,
      seen_counts: null,
      simulated: 0,
      started_at: now,
      finished_at: null,
      created_at: now,
      ...changes,
    },
    '{}',
  );
}
