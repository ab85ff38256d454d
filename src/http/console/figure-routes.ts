import * as z from 'zod';
import {
  type CampaignAudience,
  type CampaignFigures,
  campaignAudience,
  campaignFigures,
} from '../../campaigns/figures.ts';
import { isRefusal, refuse } from '../../core/refusal.ts';
import type { Context } from '../../store/context.ts';
import type { StatusCount } from '../../store/messages/message-list.ts';
import { messageFilter, messageFilters } from '../api/sending/messages.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';

export interface CampaignFiguresResponse {
  campaigns: CampaignFigures[];
}
export type AudienceResponse = CampaignAudience;

/** Campaigns of one request: those of a page of the list. */
const MAX_CAMPAIGNS = 50;
const MAX_ID_LENGTH = 100;

/**
 * `/console/figures`: counts of campaigns in a list, and of the audience of a campaign before it is sent;
 * `/console/message-counts`: how many messages of each status the filters of the list of messages find.
 */
export function figureRoutes({ clock, reader }: Pick<Context, 'clock' | 'reader'>): ConsoleRoute[] {
  return [
    consoleRoute('GET /console/figures/campaigns', {
      operationId: 'getCampaignFigures',
      summary: 'Get the figures of campaigns',
      access: 'read',
      query: z.object({
        /** Separated by commas. */
        campaignIds: z
          .string()
          .max(MAX_CAMPAIGNS * (MAX_ID_LENGTH + 1))
          .default(''),
      }),
      handle: async ({ caller: { accountId }, query }) => {
        const ids = query.campaignIds.split(',').filter(Boolean).slice(0, MAX_CAMPAIGNS);
        const campaigns = await reader.query(accountId, campaignFigures, { accountId, ids });
        return { campaigns } satisfies CampaignFiguresResponse;
      },
    }),
    consoleRoute('GET /console/figures/audience/{subscriptionGroupId}', {
      operationId: 'getAudience',
      summary: 'Count the audience of a campaign',
      access: 'read',
      params: { subscriptionGroupId: z.string().max(MAX_ID_LENGTH) },
      handle: async ({ caller: { accountId }, params: { subscriptionGroupId: groupId } }) => {
        const found = await reader.query(accountId, campaignAudience, {
          accountId,
          groupId,
          now: clock.now(),
        });
        return found === null
          ? refuse('SUBSCRIPTION_GROUP_NOT_FOUND', `There is no subscription group ${groupId}`)
          : (found satisfies AudienceResponse);
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
