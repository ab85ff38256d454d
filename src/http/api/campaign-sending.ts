import * as z from 'zod';
import { MAX_EXCLUDED, MAX_GROUPS } from '../../campaigns/audience.ts';
import type { Campaigns } from '../../campaigns/campaigns.ts';
import type { CampaignSending } from '../../campaigns/send.ts';
import { isRefusal, type RefusalCode, refuse } from '../../core/refusal.ts';
import { senderOf } from '../../sending/checks.ts';
import type { OneClickNotice } from '../../sending/one-click.ts';
import type { AccountRow } from '../../store/accounts.ts';
import type { CampaignRow } from '../../store/campaigns/campaigns.ts';
import { mapResult, Reply, type Route, routesOf } from '../route.ts';
import {
  campaignResult,
  MAX_PER_HOUR,
  presentWithProgress,
  SENDING_CAMPAIGN_EXAMPLE,
  TESTED_CAMPAIGN_EXAMPLE,
  testInput,
  variantLimit,
  variantName,
} from './campaign-schemas.ts';
import { atMost } from './fields.ts';
import { commonSendFields, singleSendFields } from './sending/send-schemas.ts';

const route = routesOf({ tag: 'Campaigns', scope: 'setup', permissions: ['read', 'send'] });

/** What sends campaigns. */
export interface CampaignServices {
  campaigns: Campaigns;
  sending: CampaignSending;
  account(accountId: string): AccountRow | null;
  oneClick: OneClickNotice;
}

/** `POST /web-setup/campaigns/{campaignId}/send`, `/pause`, `/resume`, `/cancel`. */
export function campaignSendingRoutes(services: Omit<CampaignServices, 'campaigns'>): Route[] {
  const { sending } = services;
  const transition = (
    verb: 'pause' | 'cancel',
    status: CampaignRow['status'],
    summary: string,
    description: string,
  ) =>
    route(`POST /web-setup/campaigns/{campaignId}/${verb}`, {
      operationId: `${verb}Campaign`,
      // Messages of a campaign that is resumed wait for storage.
      stores: () => false,
      summary,
      description,
      response: {
        description: 'The updated campaign.',
        data: campaignResult,
        example: { campaign: { ...SENDING_CAMPAIGN_EXAMPLE, status } },
      },
      refusals: ['CAMPAIGN_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params: { campaignId } }) => {
        const changed = await sending[verb](caller.accountId, campaignId);
        return mapResult(changed, (row) => ({ campaign: presentWithProgress(sending, row) }));
      },
    });
  return [
    sendCampaign(services),
    transition(
      'pause',
      'paused',
      'Pause a campaign',
      'Stops creating messages and holds those that are queued. Messages in delivery are not stopped.',
    ),
    resumeCampaign(sending),
    chooseWinner(sending),
    transition(
      'cancel',
      'cancelled',
      'Cancel a campaign permanently',
      'Its queued and deferred messages become `cancelled`, with the event `email_failed` and the reason `cancelled`. This includes those of a campaign that is `sent`.',
    ),
  ];
}

function resumeCampaign(sending: CampaignSending): Route {
  return route('POST /web-setup/campaigns/{campaignId}/resume', {
    operationId: 'resumeCampaign',
    refusesTestKeys: 'always',
    auditDetail: (body) => body?.reason,
    // Messages of a campaign that is resumed wait for storage.
    stores: () => false,
    summary: 'Resume a paused campaign',
    description:
      'Continues where the campaign was paused. The reason for which the service paused it is checked again first, and the request is refused if it persists. A campaign that was stopped automatically (`pausedFigures`) needs a `reason`, which the event `sending_resumed` records; its results until now do not stop it again.',
    body: z
      .object({
        reason: z
          .string()
          .optional()
          .describe('Why it may continue. Required if it was stopped automatically; at most 200 characters.'),
      })
      .optional()
      .meta({ id: 'ResumeInput' }),
    example: { reason: 'Removed the addresses that were older than a year' },
    response: {
      description: 'The updated campaign.',
      data: campaignResult,
      example: { campaign: SENDING_CAMPAIGN_EXAMPLE },
    },
    refusals: ['CAMPAIGN_NOT_FOUND', 'INVALID_STATE', ...RESUME_REFUSALS],
    handle: async ({ caller, params: { campaignId }, body }) => {
      const by = { by: caller.keyId, reason: body?.reason };
      return mapResult(await sending.resume(caller.accountId, campaignId, by), (row) => ({
        campaign: presentWithProgress(sending, row),
      }));
    },
  });
}

const RESUME_REFUSALS: RefusalCode[] = [
  'SUBSCRIPTION_GROUP_NOT_FOUND',
  'DOMAIN_NOT_REGISTERED',
  'DOMAIN_NOT_VERIFIED',
  'USE_CASE_MISMATCH',
  'COMPANY_ADDRESS_MISSING',
];
const { headers: _headers, ...mailFields } = commonSendFields;

const id = z.string().max(100);
const audienceFields = {
  subscriptionGroupId: id.optional().describe('Required without `subscriptionGroupIds` and `segmentId`.'),
  subscriptionGroupIds: atMost(z.array(id), MAX_GROUPS)
    .optional()
    .describe(
      'Several groups. A person in more than one of them receives the campaign once, through the first one in this order.',
    ),
  segmentId: id
    .optional()
    .describe(
      'Only members who are in this segment. Without groups: of all active groups of the account, oldest first.',
    ),
  excludeSegmentIds: atMost(z.array(id), MAX_EXCLUDED)
    .optional()
    .describe('Not to people in these segments.'),
  excludeCampaignIds: atMost(z.array(id), MAX_EXCLUDED)
    .optional()
    .describe('Not to people who were sent one of these campaigns to a group.'),
};

const variant = z
  .object({
    name: variantName.optional().describe('Default: `A`, `B`, `C` or `D`.'),
    subject: mailFields.subject.describe('Default: that of the request, else of the template.'),
    templateId: mailFields.templateId.describe('Replaces the content of the request.'),
    html: mailFields.html.describe('Replaces the content of the request, with `text`.'),
    text: mailFields.text.describe('Only with `html`.'),
    syntax: mailFields.syntax.describe('Of this `html`. Default: that of the request.'),
  })
  .meta({ id: 'CampaignVariantInput' });

function chooseWinner(sending: CampaignSending): Route {
  return route('POST /web-setup/campaigns/{campaignId}/winner', {
    operationId: 'chooseCampaignWinner',
    refusesTestKeys: 'always',
    auditDetail: (body) => body.variant,
    stores: () => false,
    summary: 'Choose the winner of an A/B test',
    description:
      'Ends the test before its decision: everybody who has no message yet receives this variant. Cannot be changed afterwards.',
    body: z
      .object({ variant: variantName.describe('Name of the variant.') })
      .meta({ id: 'CampaignWinnerInput' }),
    example: { variant: 'B' },
    response: {
      description: 'The updated campaign.',
      data: campaignResult,
      example: { campaign: TESTED_CAMPAIGN_EXAMPLE },
    },
    refusals: ['CAMPAIGN_NOT_FOUND', 'INVALID_STATE'],
    handle: async ({ caller, params: { campaignId }, body: { variant: name } }) =>
      mapResult(
        await sending.choose(caller.accountId, campaignId, { variant: name, by: caller.keyId }),
        (row) => ({
          campaign: presentWithProgress(sending, row),
        }),
      ),
  });
}

function sendCampaign({ sending, account, oneClick }: Omit<CampaignServices, 'campaigns'>): Route {
  return route('POST /web-setup/campaigns/{campaignId}/send', {
    operationId: 'sendCampaign',
    summary: 'Send a campaign to subscription groups or a segment',
    description:
      'Sends an individual message to every active member that is eligible. Subject, html and text may use `{{email}}`, `{{firstName}}`, `{{lastName}}`, `{{phone}}` and `{{customFields.<name>}}`; a value that a contact does not have is empty. A variable that is neither in `templateVariables` nor a field of any contact of the account, and has no default, is refused. All checks run before the response, which is sent when the campaign is stored; members are processed from then on. A segment is evaluated shortly before it is a person’s turn: a change before that counts. Contacts who join the group later may or may not receive it. A campaign can be sent once.',
    limit: 'send',
    refusesMisnamed: true,
    body: z
      .object({
        ...audienceFields,
        ...mailFields,
        ...singleSendFields,
        templateVariables: mailFields.templateVariables.describe(
          'Values that are the same for all recipients. Names of contact fields are not allowed.',
        ),
        scheduledAt: z
          .string()
          .optional()
          .describe(
            'Start, an ISO 8601 time with its zone, at most 30 days ahead. A time that passed more than 15 minutes ago is refused.',
          ),
        perHour: z
          .int()
          .min(1)
          .max(MAX_PER_HOUR)
          .optional()
          .describe('Maximum number of messages per hour, spread evenly. Default: no limit.'),
        variants: variantLimit(z.array(variant))
          .optional()
          .describe(
            'An A/B test of 2 to 4 variants of the subject or the content, with `test`. The first one may be empty: that is the mail of the request.',
          ),
        test: testInput.optional().describe('Required with `variants`.'),
      })
      .meta({ id: 'CampaignSendInput' }),
    example: SEND_EXAMPLE,
    response: {
      status: 202,
      description: 'Accepted.',
      data: campaignResult.extend({ message: z.string(), jobId: z.string() }),
      example: {
        message: SENT,
        jobId: SENDING_CAMPAIGN_EXAMPLE.progress.jobId,
        campaign: SENDING_CAMPAIGN_EXAMPLE,
      },
    },
    refusals: [
      'CAMPAIGN_NOT_FOUND',
      'SUBSCRIPTION_GROUP_NOT_FOUND',
      'SEGMENT_NOT_FOUND',
      'TEMPLATE_NOT_FOUND',
      'INVALID_STATE',
      'DOMAIN_NOT_REGISTERED',
      'DOMAIN_NOT_VERIFIED',
      'USE_CASE_MISMATCH',
      'KEY_NOT_ALLOWED',
      'COMPLIANCE_TEMPLATE_MISSING',
      'COMPANY_ADDRESS_MISSING',
      'TEMPLATE_VARIABLE_MISSING',
      'TEMPLATE_SYNTAX',
      'UNAVAILABLE',
    ],
    handle: async ({ caller, params: { campaignId }, body }) => {
      const row = account(caller.accountId);
      if (row === null) return refuse('UNAUTHENTICATED', 'The account does not exist');
      const sender = senderOf(row, caller, 'mk');
      const sent = await sending.send(sender, campaignId, body);
      if (isRefusal(sent)) return sent;
      const campaign = presentWithProgress(sending, sent.campaign);
      const message = sent.campaign.status === 'scheduled' ? 'The campaign is scheduled.' : SENT;
      const data = { message, jobId: campaign.progress?.jobId ?? '', campaign };
      const warnings = [...sent.warnings, ...oneClick.warnings(caller.accountId)];
      oneClick.sent(caller.accountId);
      return new Reply({ data }, { warnings });
    },
  });
}

const SENT = 'The campaign is being sent.';

const SEND_EXAMPLE = {
  subscriptionGroupId: 'sgroup_1769860800000_5t7y9u1i3o5p',
  from: 'Example Shop <news@example.com>',
  subject: 'Spring is here, {{firstName|dear reader}}',
  html: '<p>Hello {{firstName}}, 20 % on everything!</p><p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
  perHour: 20000,
};
