import { z } from 'zod';
import { ANALYTICS_INTERVALS, type Campaigns, shownAnalytics } from '../../campaigns/campaigns.ts';
import type { CampaignSending } from '../../campaigns/send.ts';
import { invalid, isRefusal } from '../../core/refusal.ts';
import type { OneClickNotice } from '../../sending/one-click.ts';
import type { AccountRow } from '../../store/accounts.ts';
import { CAMPAIGN_COUNTS, type CampaignCount } from '../../store/campaigns/campaign-counts.ts';
import { readPageKey } from '../page-key.ts';
import { type Route, type RouteDescription, route } from '../route.ts';
import { campaignForm, EXAMPLE, oneCampaignForm as one, withProgress } from './campaign-forms.ts';
import { campaignSendingRoutes } from './campaign-sending.ts';
import { pageEnd, pageEndForm, paging } from './paging.ts';
import { line, lines, withoutUndefined } from './text-form.ts';

/** `/web-setup/campaigns`: campaigns, their way to a group, and what became of their mail. */
export function campaignRoutes(house: CampaignHouse): Route[] {
  return [
    ...allCampaigns(house),
    ...oneCampaign(house),
    ...campaignSendingRoutes(house),
    analytics(house.campaigns),
  ];
}

export interface CampaignHouse {
  campaigns: Campaigns;
  sending: CampaignSending;
  account(accountId: string): AccountRow | null;
  oneClick: OneClickNotice;
}

const COMMON = { tag: 'Campaigns', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ campaignId: z.string() });

const name = line(200);
const description = lines(2000).nullable().optional();

function allCampaigns({ campaigns, sending }: CampaignHouse): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/campaigns',
      operationId: 'listCampaigns',
      summary: 'Campaigns, newest first',
      query: z.object(paging),
      answers: {
        200: {
          description: 'A page of campaigns.',
          data: z.object({ campaigns: z.array(campaignForm), ...pageEndForm }),
          example: { campaigns: [EXAMPLE], count: 1 },
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
            campaigns: page.rows.map((row) => withProgress(sending, row)),
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
      summary: 'Makes a campaign',
      body: z.object({ name, description }),
      example: { name: EXAMPLE.name, description: EXAMPLE.description },
      answers: { 201: { description: 'Made.', data: one, example: { campaign: EXAMPLE } } },
      refusals: [],
      handle: async ({ caller, body }) => {
        const { description = null } = body;
        const made = await campaigns.create(caller.accountId, { name: body.name, description });
        return { status: 201, data: { campaign: withProgress(sending, made) } };
      },
    }),
  ];
}

function oneCampaign({ campaigns, sending }: CampaignHouse): Route[] {
  const change = (method: 'PUT' | 'PATCH', operationId: string) =>
    route({
      ...COMMON,
      method,
      path: '/web-setup/campaigns/{campaignId}',
      operationId,
      summary: 'Changes a campaign',
      description: 'Fields that are given replace what was there, others stay, `null` takes a value away.',
      params,
      body: z.object({ name: name.optional(), description }),
      example: { name: EXAMPLE.name },
      answers: {
        200: { description: 'The campaign as it is now.', data: one, example: { campaign: EXAMPLE } },
      },
      refusals: ['CAMPAIGN_NOT_FOUND'],
      handle: async ({ caller, params, body }) => {
        const changed = await campaigns.update(caller.accountId, params.campaignId, withoutUndefined(body));
        return isRefusal(changed)
          ? changed
          : { status: 200, data: { campaign: withProgress(sending, changed) } };
      },
    });
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/campaigns/{campaignId}',
      operationId: 'getCampaign',
      summary: 'One campaign',
      params,
      answers: { 200: { description: 'The campaign.', data: one, example: { campaign: EXAMPLE } } },
      refusals: ['CAMPAIGN_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const found = campaigns.get(caller.accountId, params.campaignId);
        return isRefusal(found) ? found : { status: 200, data: { campaign: withProgress(sending, found) } };
      },
    }),
    change('PUT', 'updateCampaign'),
    change('PATCH', 'patchCampaign'),
    route({
      ...COMMON,
      method: 'DELETE',
      path: '/web-setup/campaigns/{campaignId}',
      operationId: 'deleteCampaign',
      summary: 'Deletes a campaign',
      description: 'With its counts. Its messages stay, and go on naming it.',
      params,
      answers: {
        200: {
          description: 'Deleted.',
          data: z.object({ message: z.string(), campaignId: z.string() }),
          example: { message: 'The campaign has been deleted.', campaignId: EXAMPLE.campaignId },
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

const moment = z.iso.datetime({
  offset: true,
  error: 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z',
});

const counts = z.object(
  // fromEntries forgets the names that it is given.
  Object.fromEntries(CAMPAIGN_COUNTS.map((count) => [count, z.int()])) as Record<CampaignCount, z.ZodInt>,
);

function analytics(campaigns: Campaigns): Route {
  return route({
    ...COMMON,
    method: 'GET',
    path: '/web-setup/campaigns/{campaignId}/analytics',
    operationId: 'getCampaignAnalytics',
    summary: 'What became of a campaign’s mail',
    description:
      'Counts of events: a message that is deferred twice counts twice in `deferred`, one that is delivered and bounces afterwards in both; `failed` counts what expired or was dropped, `cancelled` what was cancelled. `uniqueOpened` and `uniqueClicked` count messages. Machines that look into mail do not count, nor does simulated mail.',
    params,
    query: z.object({
      from: moment.optional().describe('At or after; taken back to the full hour (UTC).'),
      to: moment.optional().describe('Before; taken forward to the full hour (UTC).'),
      interval: z.enum(ANALYTICS_INTERVALS).default('day').describe('Length of the spans in `series`.'),
    }),
    answers: {
      200: {
        description: 'The counts.',
        data: z.object({
          campaignId: z.string(),
          totals: counts,
          series: z
            .array(counts.extend({ timestamp: z.iso.datetime().describe('Beginning of the span, UTC.') }))
            .describe('In order; spans in which nothing happened are left out.'),
          links: z
            .array(z.object({ url: z.string(), clicks: z.int() }))
            .describe('The 100 most clicked addresses, of all times.'),
        }),
        example: EXAMPLE_ANALYTICS,
      },
    },
    refusals: ['CAMPAIGN_NOT_FOUND'],
    narrowBy: ['from', 'to'],
    handle: async ({ caller, params: { campaignId }, query }) => {
      const from = query.from === undefined ? null : Date.parse(query.from);
      const to = query.to === undefined ? null : Date.parse(query.to);
      if (from !== null && to !== null && from > to) return invalid('to', 'must not be before from');
      const found = await campaigns.analytics(caller.accountId, campaignId, {
        from,
        to,
        interval: query.interval,
      });
      return isRefusal(found) ? found : { status: 200, data: shownAnalytics(campaignId, found) };
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
  campaignId: EXAMPLE.campaignId,
  totals: EXAMPLE_COUNTS,
  series: [{ timestamp: '2026-01-31T00:00:00.000Z', ...EXAMPLE_COUNTS }],
  links: [{ url: 'https://shop.example.com/spring', clicks: 98 }],
};
