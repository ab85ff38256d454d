import * as z from 'zod';
import { ANALYTICS_INTERVALS, type Campaigns, presentAnalytics } from '../../campaigns/campaigns.ts';
import type { CampaignSending } from '../../campaigns/send.ts';
import { invalid, isRefusal } from '../../core/refusal.ts';
import type { OneClickNotice } from '../../sending/one-click.ts';
import type { AccountRow } from '../../store/accounts.ts';
import {
  CAMPAIGN_COUNTS,
  type CampaignCount,
  PROVIDER_COUNTS,
  type ProviderCount,
} from '../../store/campaigns/campaign-counts.ts';
import { type Route, type RouteDescription, route } from '../route.ts';
import {
  CAMPAIGN_EXAMPLE,
  campaignResult,
  campaignSchema,
  preparedSchema,
  presentWithProgress,
} from './campaign-schemas.ts';
import { campaignSendingRoutes } from './campaign-sending.ts';
import { definedFields, lines, requestTime, resourceName } from './fields.ts';
import { pageEnd, pageEndFields, paging, readPageKey } from './paging.ts';

/** `/web-setup/campaigns`: campaigns, sending them to a group, and their analytics. */
export function campaignRoutes(deps: CampaignRouteDeps): Route[] {
  return [
    ...collectionRoutes(deps),
    ...memberRoutes(deps),
    ...campaignSendingRoutes(deps),
    analytics(deps.campaigns),
    content(deps.sending),
  ];
}

export interface CampaignRouteDeps {
  campaigns: Campaigns;
  sending: CampaignSending;
  account(accountId: string): AccountRow | null;
  oneClick: OneClickNotice;
}

const COMMON = { tag: 'Campaigns', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ campaignId: z.string() });

const name = resourceName;
const description = lines(2000).nullable().optional();
const prepared = preparedSchema.nullable().optional();

function collectionRoutes({ campaigns, sending }: CampaignRouteDeps): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/campaigns',
      operationId: 'listCampaigns',
      summary: 'List campaigns, newest first',
      query: z.object(paging),
      responses: {
        200: {
          description: 'A page of campaigns.',
          data: z.object({ campaigns: z.array(campaignSchema), ...pageEndFields }),
          example: { campaigns: [CAMPAIGN_EXAMPLE], count: 1 },
        },
      },
      refusals: [],
      narrowBy: ['limit'],
      handle: async ({ caller, query }) => {
        const beforeSeq = readPageKey('campaigns', query.lastKey);
        if (isRefusal(beforeSeq)) return beforeSeq;
        const page = await campaigns.list({ accountId: caller.accountId, beforeSeq, limit: query.limit });
        return {
          status: 200,
          data: {
            campaigns: page.rows.map((row) => presentWithProgress(sending, row)),
            ...pageEnd('campaigns', page),
          },
        };
      },
    }),
    route({
      ...COMMON,
      method: 'POST',
      path: '/web-setup/campaigns',
      operationId: 'createCampaign',
      summary: 'Create a campaign',
      body: z.object({ name, description, prepared }).meta({ id: 'CampaignInput' }),
      example: { name: CAMPAIGN_EXAMPLE.name, description: CAMPAIGN_EXAMPLE.description },
      responses: {
        201: {
          description: 'The created campaign.',
          data: campaignResult,
          example: { campaign: CAMPAIGN_EXAMPLE },
        },
      },
      refusals: [],
      handle: async ({ caller, body }) => {
        const { name, description = null, prepared = null } = body;
        const created = await campaigns.create(caller.accountId, { name, description, prepared });
        return isRefusal(created)
          ? created
          : { status: 201, data: { campaign: presentWithProgress(sending, created) } };
      },
    }),
  ];
}

function memberRoutes({ campaigns, sending }: CampaignRouteDeps): Route[] {
  const update = (method: 'PUT' | 'PATCH', operationId: string) =>
    route({
      ...COMMON,
      method,
      path: '/web-setup/campaigns/{campaignId}',
      operationId,
      summary: 'Update a campaign',
      description: 'Replaces the fields that are given; `null` clears a field.',
      params,
      body: z
        .object({
          name: name.optional(),
          description,
          prepared,
          expectedUpdatedAt: requestTime
            .optional()
            .describe(
              '`updatedAt` of the campaign as it was read: if it was changed since, the change is refused with `INVALID_STATE` and the reason `CHANGED`. Default: replaces changes of others.',
            ),
        })
        .meta({ id: 'CampaignPatch' }),
      example: { name: CAMPAIGN_EXAMPLE.name },
      responses: {
        200: {
          description: 'The updated campaign.',
          data: campaignResult,
          example: { campaign: CAMPAIGN_EXAMPLE },
        },
      },
      refusals: ['CAMPAIGN_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params, body: { expectedUpdatedAt, ...fields } }) => {
        const updated = await campaigns.update(
          caller.accountId,
          params.campaignId,
          definedFields(fields),
          expectedUpdatedAt === undefined ? undefined : Date.parse(expectedUpdatedAt),
        );
        return isRefusal(updated)
          ? updated
          : { status: 200, data: { campaign: presentWithProgress(sending, updated) } };
      },
    });
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/campaigns/{campaignId}',
      operationId: 'getCampaign',
      summary: 'Get a campaign',
      params,
      responses: {
        200: { description: 'The campaign.', data: campaignResult, example: { campaign: CAMPAIGN_EXAMPLE } },
      },
      refusals: ['CAMPAIGN_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const found = campaigns.get(caller.accountId, params.campaignId);
        return isRefusal(found)
          ? found
          : { status: 200, data: { campaign: presentWithProgress(sending, found) } };
      },
    }),
    update('PUT', 'updateCampaign'),
    update('PATCH', 'patchCampaign'),
    route({
      ...COMMON,
      method: 'DELETE',
      path: '/web-setup/campaigns/{campaignId}',
      operationId: 'deleteCampaign',
      summary: 'Delete a campaign',
      description: 'Deletes its counts as well. Its messages remain and keep their `campaignId`.',
      params,
      responses: {
        200: {
          description: 'The campaign was deleted.',
          data: z.object({ message: z.string(), campaignId: z.string() }),
          example: { message: 'The campaign has been deleted.', campaignId: CAMPAIGN_EXAMPLE.campaignId },
        },
      },
      refusals: ['CAMPAIGN_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params: { campaignId } }) => {
        const removed = await campaigns.remove(caller.accountId, campaignId);
        return isRefusal(removed)
          ? removed
          : { status: 200, data: { message: 'The campaign has been deleted.', campaignId } };
      },
    }),
  ];
}

const counts = z
  .object(
    // Sound: the keys are all counts; the type of `fromEntries` loses them.
    Object.fromEntries(CAMPAIGN_COUNTS.map((count) => [count, z.int()])) as Record<CampaignCount, z.ZodInt>,
  )
  .meta({ id: 'CampaignCounts' });

const providerCounts = z
  .object({
    provider: z
      .string()
      .describe(
        'Its name, such as `Google`, else the domain of the recipients; `other`: those not counted separately.',
      ),
    // Sound: the keys are all counts; the type of `fromEntries` loses them.
    ...(Object.fromEntries(PROVIDER_COUNTS.map((count) => [count, z.int()])) as Record<
      ProviderCount,
      z.ZodInt
    >),
  })
  .meta({ id: 'CampaignProvider' });

export const analyticsSchema = z.object({
  campaignId: z.string(),
  totals: counts,
  series: z
    .array(counts.extend({ timestamp: z.iso.datetime().describe('Start of the interval, UTC.') }))
    .describe('In order; intervals without events are omitted.'),
  links: z
    .array(z.object({ url: z.string(), clicks: z.int() }))
    .describe('The 100 most clicked URLs, regardless of `from` and `to`.'),
  providers: z
    .array(providerCounts)
    .describe('By mailbox provider of the recipients, regardless of `from` and `to`; at most 101.'),
});

function analytics(campaigns: Campaigns): Route {
  return route({
    ...COMMON,
    method: 'GET',
    path: '/web-setup/campaigns/{campaignId}/analytics',
    operationId: 'getCampaignAnalytics',
    summary: 'Get the analytics of a campaign',
    description:
      'Counts events: a message that is deferred twice counts twice in `deferred`, one that is delivered and bounces later counts in both. `failed` counts messages that expired or were dropped, `cancelled` those that were cancelled. `uniqueOpened` and `uniqueClicked` count messages. Automated opens and clicks are counted in `providers` only (`machineOpened`, `machineClicked`), and simulated mail is not counted.',
    params,
    query: z.object({
      from: requestTime.optional().describe('Start, inclusive; rounded down to the full hour (UTC).'),
      to: requestTime.optional().describe('End, exclusive; rounded up to the full hour (UTC).'),
      interval: z.enum(ANALYTICS_INTERVALS).default('day').describe('Length of the intervals in `series`.'),
    }),
    responses: {
      200: {
        description: 'The counts.',
        data: analyticsSchema,
        example: EXAMPLE_ANALYTICS,
      },
    },
    refusals: ['CAMPAIGN_NOT_FOUND'],
    narrowBy: ['from', 'to'],
    handle: async ({ caller, params: { campaignId }, query }) => {
      const from = query.from === undefined ? null : Date.parse(query.from);
      const to = query.to === undefined ? null : Date.parse(query.to);
      if (from !== null && to !== null && from > to) return invalid('to', 'must not be before `from`');
      const found = await campaigns.analytics(caller.accountId, campaignId, {
        from,
        to,
        interval: query.interval,
      });
      return isRefusal(found) ? found : { status: 200, data: presentAnalytics(campaignId, found) };
    },
  });
}

export const campaignContent = z
  .object({
    campaignId: z.string(),
    from: z.string(),
    replyTo: z.string().nullable(),
    subject: z.string(),
    html: z.string(),
    text: z.string().nullable().describe('`null`: derived from the html.'),
  })
  .meta({ id: 'CampaignContent' });

function content(sending: CampaignSending): Route {
  return route({
    ...COMMON,
    method: 'GET',
    path: '/web-setup/campaigns/{campaignId}/content',
    operationId: 'getCampaignContent',
    summary: 'Get the content of a campaign',
    description: 'As it was accepted, with variables in braces. Refused before the campaign is sent.',
    hasLargeResponse: true,
    params,
    responses: {
      200: {
        description: 'The content.',
        data: campaignContent,
        example: {
          campaignId: CAMPAIGN_EXAMPLE.campaignId,
          from: 'Example Shop <news@shop.example.com>',
          replyTo: null,
          subject: 'Spring is here, {{firstName}}',
          html: '<p><a href="https://shop.example.com/spring">Our spring collection</a></p>',
          text: null,
        },
      },
    },
    refusals: ['CAMPAIGN_NOT_FOUND', 'INVALID_STATE'],
    handle: ({ caller, params: { campaignId } }) => {
      const found = sending.content(caller.accountId, campaignId);
      if (isRefusal(found)) return found;
      const { from, replyTo, subject, html, text } = found;
      return { status: 200, data: { campaignId, from, replyTo, subject, html, text } };
    },
  });
}

const EXAMPLE_COUNTS = {
  queued: 1000,
  sent: 1000,
  delivered: 985,
  deferred: 12,
  bounced: 9,
  complained: 1,
  opened: 410,
  uniqueOpened: 312,
  clicked: 98,
  uniqueClicked: 74,
  unsubscribed: 3,
  cancelled: 0,
  failed: 6,
};
const EXAMPLE_ANALYTICS = {
  campaignId: CAMPAIGN_EXAMPLE.campaignId,
  totals: EXAMPLE_COUNTS,
  series: [{ timestamp: '2026-01-31T00:00:00.000Z', ...EXAMPLE_COUNTS }],
  links: [{ url: 'https://shop.example.com/spring', clicks: 98 }],
  providers: [
    {
      provider: 'Google',
      delivered: 512,
      bounced: 4,
      complained: 1,
      unsubscribed: 2,
      uniqueOpened: 171,
      uniqueClicked: 40,
      machineOpened: 12,
      machineClicked: 3,
    },
  ],
};
