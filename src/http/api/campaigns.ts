import * as z from 'zod';
import { ANALYTICS_INTERVALS, type Campaigns } from '../../campaigns/campaigns.ts';
import type { CampaignSending } from '../../campaigns/send.ts';
import { recordOf } from '../../core/record-of.ts';
import { invalid, isRefusal } from '../../core/refusal.ts';
import { CAMPAIGN_COUNTS, PROVIDER_COUNTS } from '../../store/campaigns/campaign-counts.ts';
import type { CampaignRow } from '../../store/campaigns/campaigns.ts';
import type { TemplateContent } from '../../templates/templates.ts';
import { mapResult, type Route, routesOf } from '../route.ts';
import {
  CAMPAIGN_EXAMPLE,
  campaignResult,
  campaignSchema,
  preparedSchema,
  presentWithProgress,
} from './campaign-schemas.ts';
import { type CampaignServices, campaignSendingRoutes } from './campaign-sending.ts';
import { definedFields, lines, requestTime, resourceName } from './fields.ts';
import { pageOf, pagesBySeq, paging, seqEnd } from './paging.ts';

const route = routesOf({ tag: 'Campaigns', scope: 'setup', permissions: ['read', 'prepare'] });

const name = resourceName;
const description = lines(2000).nullable().optional();
const prepared = preparedSchema.nullable().optional();
const one = { data: campaignResult, example: { campaign: CAMPAIGN_EXAMPLE } };

/** `/web-setup/campaigns`: campaigns, sending them to a group, and their analytics. */
export function campaignRoutes({ campaigns, sending, ...others }: CampaignServices): Route[] {
  const present = (row: CampaignRow) => ({ campaign: presentWithProgress(sending, row) });
  const update = (method: 'PUT' | 'PATCH', operationId: string) =>
    route(`${method} /web-setup/campaigns/{campaignId}`, {
      operationId,
      summary: 'Update a campaign',
      description: 'Replaces the fields that are given; `null` clears a field.',
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
      response: { description: 'The updated campaign.', ...one },
      refusals: ['CAMPAIGN_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params, body: { expectedUpdatedAt, ...fields } }) => {
        const updated = await campaigns.update(
          caller.accountId,
          params.campaignId,
          definedFields(fields),
          expectedUpdatedAt === undefined ? undefined : Date.parse(expectedUpdatedAt),
        );
        return mapResult(updated, present);
      },
    });
  return [
    route('GET /web-setup/campaigns', {
      operationId: 'listCampaigns',
      summary: 'List campaigns, newest first',
      query: z.object(paging),
      page: pagesBySeq('campaigns'),
      response: pageOf('campaigns', campaignSchema, CAMPAIGN_EXAMPLE),
      narrowBy: ['limit'],
      handle: async ({ caller: { accountId }, query: { limit }, after }) => {
        const page = await campaigns.list({ accountId, beforeSeq: after, limit });
        return { campaigns: page.rows.map((row) => presentWithProgress(sending, row)), ...seqEnd(page) };
      },
    }),
    route('POST /web-setup/campaigns', {
      operationId: 'createCampaign',
      summary: 'Create a campaign',
      body: z.object({ name, description, prepared }).meta({ id: 'CampaignInput' }),
      example: { name: CAMPAIGN_EXAMPLE.name, description: CAMPAIGN_EXAMPLE.description },
      response: { status: 201, description: 'The created campaign.', ...one },
      handle: async ({ caller, body }) => {
        const { name, description = null, prepared = null } = body;
        return mapResult(await campaigns.create(caller.accountId, { name, description, prepared }), present);
      },
    }),
    route('GET /web-setup/campaigns/{campaignId}', {
      operationId: 'getCampaign',
      summary: 'Get a campaign',
      response: { description: 'The campaign.', ...one },
      refusals: ['CAMPAIGN_NOT_FOUND'],
      handle: ({ caller, params }) => mapResult(campaigns.get(caller.accountId, params.campaignId), present),
    }),
    update('PUT', 'updateCampaign'),
    update('PATCH', 'patchCampaign'),
    route('DELETE /web-setup/campaigns/{campaignId}', {
      operationId: 'deleteCampaign',
      summary: 'Delete a campaign',
      description: 'Deletes its counts as well. Its messages remain and keep their `campaignId`.',
      response: {
        description: 'The campaign was deleted.',
        data: z.object({ message: z.string(), campaignId: z.string() }),
        example: { message: 'The campaign has been deleted.', campaignId: CAMPAIGN_EXAMPLE.campaignId },
      },
      refusals: ['CAMPAIGN_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params: { campaignId } }) => {
        const removed = await campaigns.remove(caller.accountId, campaignId);
        return isRefusal(removed) ? removed : { message: 'The campaign has been deleted.', campaignId };
      },
    }),
    ...campaignSendingRoutes({ sending, ...others }),
    analytics(campaigns),
    content(sending),
  ];
}

const counts = z.object(recordOf(CAMPAIGN_COUNTS, () => z.int())).meta({ id: 'CampaignCounts' });

const providerCounts = z
  .object({
    provider: z
      .string()
      .describe(
        'Its name, such as `Google`, else the domain of the recipients; `other`: those not counted separately.',
      ),
    ...recordOf(PROVIDER_COUNTS, () => z.int()),
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
  return route('GET /web-setup/campaigns/{campaignId}/analytics', {
    operationId: 'getCampaignAnalytics',
    hidesUrls: 'query',
    summary: 'Get the analytics of a campaign',
    description:
      'Counts events: a message that is deferred twice counts twice in `deferred`, one that is delivered and bounces later counts in both. `failed` counts messages that expired or were dropped, `cancelled` those that were cancelled. `hardBounced` counts bounces because of invalid addresses, `blocked` bounces and deferrals because of reputation or content. `uniqueOpened` and `uniqueClicked` count messages. Automated opens and clicks are counted in `providers` only (`machineOpened`, `machineClicked`), and simulated mail is not counted.',
    query: z.object({
      from: requestTime.optional().describe('Start, inclusive; rounded down to the full hour (UTC).'),
      to: requestTime.optional().describe('End, exclusive; rounded up to the full hour (UTC).'),
      interval: z.enum(ANALYTICS_INTERVALS).default('day').describe('Length of the intervals in `series`.'),
    }),
    response: { description: 'The counts.', data: analyticsSchema, example: EXAMPLE_ANALYTICS },
    refusals: ['CAMPAIGN_NOT_FOUND'],
    narrowBy: ['from', 'to'],
    handle: async ({ caller, params: { campaignId }, query }) => {
      const from = query.from === undefined ? null : Date.parse(query.from);
      const to = query.to === undefined ? null : Date.parse(query.to);
      if (from !== null && to !== null && from > to) return invalid('to', 'must not be before `from`');
      const period = { from, to, interval: query.interval };
      return campaigns.analytics(caller.accountId, campaignId, period);
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
    syntax: z.enum(['simple', 'liquid']),
    variants: z
      .array(
        z.object({
          name: z.string(),
          subject: z.string(),
          html: z.string(),
          text: z.string().nullable(),
          syntax: z.enum(['simple', 'liquid']),
        }),
      )
      .describe('Of an A/B test; the first one is the content above. Empty: there is no test.'),
  })
  .meta({ id: 'CampaignContent' });

function content(sending: CampaignSending): Route {
  return route('GET /web-setup/campaigns/{campaignId}/content', {
    operationId: 'getCampaignContent',
    summary: 'Get the content of a campaign',
    description: 'As it was accepted, with variables in braces. Refused before the campaign is sent.',
    hasLargeResponse: true,
    response: {
      description: 'The content.',
      data: campaignContent,
      example: {
        campaignId: CAMPAIGN_EXAMPLE.campaignId,
        from: 'Example Shop <news@shop.example.com>',
        replyTo: null,
        subject: 'Spring is here, {{firstName}}',
        html: '<p><a href="https://shop.example.com/spring">Our spring collection</a></p>',
        text: null,
        syntax: 'simple',
        variants: [],
      },
    },
    refusals: ['CAMPAIGN_NOT_FOUND', 'INVALID_STATE'],
    handle: ({ caller, params: { campaignId } }) => {
      const found = sending.content(caller.accountId, campaignId);
      if (isRefusal(found)) return found;
      const { from, replyTo } = found;
      const variants = found.variants.map((one) => ({ name: one.name, ...contentFields(one) }));
      return { campaignId, from, replyTo, ...contentFields(found), variants };
    },
  });
}

function contentFields({ subject, html, text, liquid }: TemplateContent) {
  return { subject, html, text, syntax: liquid === undefined ? ('simple' as const) : ('liquid' as const) };
}

const EXAMPLE_COUNTS = {
  queued: 1000,
  sent: 1000,
  delivered: 985,
  deferred: 12,
  bounced: 9,
  hardBounced: 6,
  blocked: 2,
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
