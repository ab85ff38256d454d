import { findSubscriptionGroup } from '../audience/groups.ts';
import { NOTHING_EXCLUDED, type Selection } from '../audience/segments/evaluate.ts';
import { findSegment } from '../audience/segments/segments.ts';
import { invalid, isRefusal, type Refusal } from '../core/refusal.ts';
import type { CampaignSend } from '../store/campaigns/campaign-sends.ts';
import type { Tables } from '../store/tables.ts';
import { type AudienceRequest, findCampaign } from './campaigns.ts';

/*
 * Who receives a campaign: the active members of one or more groups, of whom a segment and exclusions select some. A segment
 * restricts members of groups and never replaces the membership. The groups are processed one after the other, so that all
 * messages of a batch have one group, which their unsubscribe links and headers name. A person in several groups receives the
 * campaign once, through the first of them.
 */

/** The audience in its stored form (JSON). */
export interface CampaignAudience {
  /** In the order in which they are processed; not empty. */
  groupIds: string[];
  segmentId: string | null;
  excludeSegmentIds: string[];
  excludeCampaignIds: string[];
}

export const MAX_GROUPS = 50;
export const MAX_EXCLUDED = 50;

/**
 * Checks the audience of a request. With a segment alone, the groups are all active groups that the account has now, oldest
 * first.
 */
export function audienceOf(
  tables: Tables,
  accountId: string,
  request: AudienceRequest,
): CampaignAudience | Refusal {
  const { subscriptionGroupId, subscriptionGroupIds = [], segmentId = null } = request;
  const { excludeSegmentIds = [], excludeCampaignIds = [] } = request;
  const named = [
    ...(subscriptionGroupId === undefined ? [] : [subscriptionGroupId]),
    ...subscriptionGroupIds,
  ];
  if (named.length === 0 && segmentId === null)
    return invalid('subscriptionGroupId', 'is required, or subscriptionGroupIds or segmentId');
  for (const groupId of named) {
    const group = findSubscriptionGroup(tables, accountId, groupId);
    if (isRefusal(group)) return group;
  }
  for (const id of [...(segmentId === null ? [] : [segmentId]), ...excludeSegmentIds]) {
    const segment = findSegment(tables, accountId, id);
    if (isRefusal(segment)) return segment;
  }
  for (const id of excludeCampaignIds) {
    const campaign = findCampaign(tables, accountId, id);
    if (isRefusal(campaign)) return campaign;
  }
  const groupIds =
    named.length > 0 ? [...new Set(named)] : tables.subscriptionGroups.activeOf(accountId, MAX_GROUPS + 1);
  if (groupIds.length === 0)
    return invalid('segmentId', 'needs an active subscription group: the account has none');
  if (groupIds.length > MAX_GROUPS)
    return invalid(
      'subscriptionGroupIds',
      `is required with segmentId: the account has more than ${MAX_GROUPS} active groups`,
    );
  return {
    groupIds,
    segmentId,
    excludeSegmentIds: [...new Set(excludeSegmentIds)],
    excludeCampaignIds: [...new Set(excludeCampaignIds)],
  };
}

/** The stored form; null: all members of one group. */
export function writeAudience(audience: CampaignAudience): string | null {
  const { groupIds, segmentId, excludeSegmentIds, excludeCampaignIds } = audience;
  const isGroup =
    groupIds.length === 1 &&
    segmentId === null &&
    excludeSegmentIds.length === 0 &&
    excludeCampaignIds.length === 0;
  return isGroup ? null : JSON.stringify(audience);
}

/** Null: all members of one group. */
export function readAudience({ audience }: Pick<CampaignSend, 'audience'>): CampaignAudience | null {
  // Sound: only `writeAudience` and the import of accounts, whose sends are complete, write it.
  return audience === null ? null : (JSON.parse(audience) as CampaignAudience);
}

/**
 * The contacts that receive a campaign through one of `groupIds`. `campaign_id` null: it does not exist yet. `now`: epoch ms.
 * `notOf`: groups whose members are excluded.
 */
export function selectionOf(
  tables: Tables,
  send: { account_id: string; campaign_id: string | null },
  { segmentId, excludeSegmentIds, excludeCampaignIds }: CampaignAudience,
  groupIds: readonly string[],
  now: number,
  notOf: readonly string[] = [],
): Selection {
  const { account_id: accountId, campaign_id: campaignId } = send;
  const filterOf = (id: string) => {
    const segment = findSegment(tables, accountId, id);
    // A segment that a campaign uses cannot be deleted.
    if (isRefusal(segment)) throw new Error(segment.message);
    return segment.filter;
  };
  const ofGroups = (ids: readonly string[]) => JSON.stringify({ any: ids.map((group) => ({ group })) });
  return {
    ...NOTHING_EXCLUDED,
    accountId,
    filters: [ofGroups(groupIds), ...(segmentId === null ? [] : [filterOf(segmentId)])],
    excluded: [...excludeSegmentIds.map(filterOf), ...(notOf.length === 0 ? [] : [ofGroups(notOf)])],
    excludedCampaigns: campaignId === null ? excludeCampaignIds : [...excludeCampaignIds, campaignId],
    now,
  };
}

/** Those of these contacts that were sent this campaign, or one that it excludes. */
export function excludedAmong(
  tables: Tables,
  { campaign_id }: Pick<CampaignSend, 'campaign_id'>,
  { excludeCampaignIds }: CampaignAudience,
  contactSeqs: readonly number[],
): ReadonlySet<number> {
  return new Set(tables.engagement.sentAmong([campaign_id, ...excludeCampaignIds], contactSeqs));
}

/** The range of the next group with members, from the group with this index on; null: there is none. */
export function rangeOfGroup(
  tables: Tables,
  accountId: string,
  groupIds: readonly string[],
  index: number,
): Pick<CampaignSend, 'subscription_group_id' | 'at_seq' | 'last_seq'> | null {
  for (const groupId of groupIds.slice(index)) {
    const group = tables.subscriptionGroups.get(accountId, groupId);
    const last = group === null ? 0 : tables.campaignSends.newestMember(group.seq);
    if (last > 0) return { subscription_group_id: groupId, at_seq: 0, last_seq: last };
  }
  return null;
}
