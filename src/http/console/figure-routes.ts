import * as z from 'zod';
import {
  audienceOf,
  MAX_EXCLUDED,
  MAX_GROUPS,
  selectionOf,
  writeAudience,
} from '../../campaigns/audience.ts';
import {
  type AudienceFigures,
  type CampaignFigures,
  campaignFigures,
  groupAudience,
  selectedAudience,
} from '../../campaigns/figures.ts';
import { isRefusal, refuse } from '../../core/refusal.ts';
import type { Context } from '../../store/context.ts';
import type { StatusCount } from '../../store/messages/message-list.ts';
import { messageFilter, messageFilters } from '../api/sending/messages.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';

export interface CampaignFiguresResponse {
  campaigns: CampaignFigures[];
}
export interface AudienceResponse extends AudienceFigures {
  /** The names of the groups and the segment that were chosen, and of the segments and campaigns that are excluded. */
  groups: string[];
  segment: string | null;
  excluded: string[];
}

/** Campaigns of one request: those of a page of the list. */
const MAX_CAMPAIGNS = 50;
const MAX_ID_LENGTH = 100;

/** Ids separated by commas. */
function ids(max: number) {
  return z
    .string()
    .max(max * (MAX_ID_LENGTH + 1))
    .default('')
    .transform((text) => text.split(',').filter(Boolean).slice(0, max));
}

/**
 * `/console/figures`: counts of campaigns in a list, and of the audience of a campaign before it is sent;
 * `/console/message-counts`: how many messages of each status the filters of the list of messages find.
 */
export function figureRoutes({
  clock,
  reader,
  tables,
}: Pick<Context, 'clock' | 'reader' | 'tables'>): ConsoleRoute[] {
  return [
    consoleRoute('GET /console/figures/campaigns', {
      operationId: 'getCampaignFigures',
      summary: 'Get the figures of campaigns',
      access: 'read',
      query: z.object({
        campaignIds: ids(MAX_CAMPAIGNS),
      }),
      handle: async ({ caller: { accountId }, query: { campaignIds: ids } }) => {
        const campaigns = await reader.query(accountId, campaignFigures, { accountId, ids });
        return { campaigns } satisfies CampaignFiguresResponse;
      },
    }),
    consoleRoute('GET /console/figures/audience', {
      operationId: 'getAudience',
      summary: 'Count the audience of a campaign',
      access: 'read',
      query: z.object({
        subscriptionGroupIds: ids(MAX_GROUPS),
        segmentId: z.string().max(MAX_ID_LENGTH).optional(),
        excludeSegmentIds: ids(MAX_EXCLUDED),
        excludeCampaignIds: ids(MAX_EXCLUDED),
      }),
      handle: async ({ caller: { accountId }, query }) => {
        const audience = audienceOf(tables, accountId, query);
        if (isRefusal(audience)) return audience;
        const { groupIds, segmentId, excludeSegmentIds, excludeCampaignIds } = audience;
        const segmentName = (id: string) => tables.segments.get(accountId, id)?.name ?? [];
        const names = {
          groups: query.subscriptionGroupIds.flatMap(
            (id) => tables.subscriptionGroups.get(accountId, id)?.name ?? [],
          ),
          segment: segmentId === null ? null : (tables.segments.get(accountId, segmentId)?.name ?? null),
          excluded: [
            ...excludeSegmentIds.flatMap(segmentName),
            ...excludeCampaignIds.flatMap((id) => tables.campaigns.get(accountId, id)?.name ?? []),
          ],
        };
        const [groupId = ''] = groupIds;
        const campaign = { account_id: accountId, campaign_id: null };
        const figures =
          writeAudience(audience) === null
            ? await reader.query(accountId, groupAudience, accountId, groupId)
            : await reader.query(
                accountId,
                selectedAudience,
                selectionOf(tables, campaign, audience, groupIds, clock.now()),
              );
        return figures === null
          ? refuse('SUBSCRIPTION_GROUP_NOT_FOUND', `There is no subscription group ${groupId}`)
          : ({ ...figures, ...names } satisfies AudienceResponse);
      },
    }),
    // Each count is of the newest messages that a page can examine.
    consoleRoute('GET /console/message-counts', {
      operationId: 'countMessages',
      summary: 'Count messages by status',
      access: 'read',
      query: z.object(messageFilters),
      handle: async ({ caller, query }) => {
        const filter = messageFilter(caller.accountId, query);
        if (isRefusal(filter)) return filter;
        const counts = await reader.table(caller.accountId, 'messages', 'statusCounts', filter);
        return { counts } satisfies MessageCounts;
      },
    }),
  ];
}

/** The response of `GET /console/message-counts`. */
export interface MessageCounts {
  counts: StatusCount[];
}
