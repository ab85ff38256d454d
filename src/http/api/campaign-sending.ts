import { z } from 'zod';
import type { CampaignSending } from '../../campaigns/send.ts';
import { isRefusal, refuse } from '../../core/refusal.ts';
import type { OneClickNotice } from '../../sending/one-click.ts';
import type { AccountRow } from '../../store/accounts.ts';
import type { CampaignRow } from '../../store/campaigns/campaigns.ts';
import { successBody } from '../answers.ts';
import { type Route, type RouteDescription, route } from '../route.ts';
import { oneCampaignForm, SENDING_EXAMPLE, withProgress } from './campaign-forms.ts';
import { commonSendFields } from './send-forms.ts';

/** `POST /web-setup/campaigns/{campaignId}/send`, `/pause`, `/resume`, `/cancel`. */
export function campaignSendingRoutes(deps: CampaignSendingRouteDeps): Route[] {
  const { sending } = deps;
  const act = (
    verb: 'pause' | 'resume' | 'cancel',
    texts: Pick<RouteDescription, 'summary' | 'description'> & { status: CampaignRow['status'] },
    refusals: RouteDescription['refusals'] = [],
  ) =>
    route({
      ...COMMON,
      method: 'POST',
      path: `/web-setup/campaigns/{campaignId}/${verb}`,
      operationId: `${verb}Campaign`,
      summary: texts.summary,
      ...(texts.description === undefined ? {} : { description: texts.description }),
      params,
      answers: {
        200: {
          description: 'The updated campaign.',
          data: oneCampaignForm,
          example: { campaign: { ...SENDING_EXAMPLE, status: texts.status } },
        },
      },
      refusals: ['CAMPAIGN_NOT_FOUND', 'INVALID_STATE', ...refusals],
      handle: async ({ caller, params: { campaignId } }) => {
        const changed = await sending[verb](caller.accountId, campaignId);
        return isRefusal(changed)
          ? changed
          : { status: 200, data: { campaign: withProgress(sending, changed) } };
      },
    });
  return [
    sendCampaign(deps),
    act('pause', {
      summary: 'Pause a campaign',
      description:
        'No further messages are created, and queued ones are held. Messages that are being sent are not affected.',
      status: 'paused',
    }),
    act(
      'resume',
      {
        summary: 'Resume a paused campaign',
        description:
          'Continues where it stopped. Refused while the reason for which the service paused it persists.',
        status: 'sending',
      },
      PAUSE_REASONS,
    ),
    act('cancel', {
      summary: 'Cancel a campaign permanently',
      description:
        'Its queued and deferred messages become `cancelled`, with the event `email_failed` and reason `cancelled`, also those of a campaign that is sent.',
      status: 'cancelled',
    }),
  ];
}

interface CampaignSendingRouteDeps {
  sending: CampaignSending;
  account(accountId: string): AccountRow | null;
  oneClick: OneClickNotice;
}

const COMMON = { tag: 'Campaigns', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ campaignId: z.string() });
const PAUSE_REASONS: RouteDescription['refusals'] = [
  'SUBSCRIPTION_GROUP_NOT_FOUND',
  'DOMAIN_NOT_REGISTERED',
  'DOMAIN_NOT_VERIFIED',
  'USE_CASE_MISMATCH',
  'COMPANY_ADDRESS_MISSING',
];
/** The fields of send requests without those that a campaign does not use: they are ignored with a warning. */
const { headers: _headers, ...mailFields } = commonSendFields;
const MAX_PER_HOUR = 10_000_000;

function sendCampaign({ sending, account, oneClick }: CampaignSendingRouteDeps): Route {
  return route({
    ...COMMON,
    method: 'POST',
    path: '/web-setup/campaigns/{campaignId}/send',
    operationId: 'sendCampaign',
    summary: 'Send a campaign to a subscription group',
    description:
      'Sends a separate message to each active and eligible member. Subject, html and text can use `{{email}}`, `{{firstName}}`, `{{lastName}}`, `{{phone}}` and `{{customFields.<name>}}`; fields that a contact does not have are empty. A variable without a default that is neither in `templateVariables` nor a field of any contact of the account is refused. All checks that need no recipient are made before the response; messages are created afterwards. Contacts that join the group later may or may not receive the campaign. A campaign can be sent once.',
    limit: 'send',
    params,
    body: z.object({
      subscriptionGroupId: z.string().max(100),
      ...mailFields,
      templateVariables: mailFields.templateVariables.describe(
        'Values for all recipients. Names of contact fields are not allowed.',
      ),
      scheduledAt: z.string().optional().describe('Start time, ISO 8601, at most 30 days ahead.'),
      perHour: z
        .int()
        .min(1)
        .max(MAX_PER_HOUR)
        .optional()
        .describe('Maximum number of messages an hour, spread evenly. Default: as fast as delivery permits.'),
    }),
    example: BODY_EXAMPLE,
    answers: {
      202: {
        description: 'Accepted.',
        data: oneCampaignForm.extend({ message: z.string(), jobId: z.string() }),
        example: { message: SENT, jobId: SENDING_EXAMPLE.progress.jobId, campaign: SENDING_EXAMPLE },
      },
    },
    refusals: [
      'CAMPAIGN_NOT_FOUND',
      'SUBSCRIPTION_GROUP_NOT_FOUND',
      'TEMPLATE_NOT_FOUND',
      'INVALID_STATE',
      'DOMAIN_NOT_REGISTERED',
      'DOMAIN_NOT_VERIFIED',
      'USE_CASE_MISMATCH',
      'KEY_NOT_ALLOWED',
      'COMPLIANCE_TEMPLATE_MISSING',
      'COMPANY_ADDRESS_MISSING',
      'TEMPLATE_VARIABLE_MISSING',
      'UNAVAILABLE',
    ],
    handle: async ({ caller, params: { campaignId }, body, warnings }) => {
      const row = account(caller.accountId);
      if (row === null) return refuse('UNAUTHENTICATED', 'The account was deleted');
      const { allowFrom, allowEssential } = caller;
      const sender = { account: row, useCase: 'mk' as const, allowFrom, allowEssential };
      const sent = await sending.send(sender, campaignId, body);
      if (isRefusal(sent)) return sent;
      const campaign = withProgress(sending, sent.campaign);
      const message = sent.campaign.status === 'scheduled' ? 'The campaign is scheduled.' : SENT;
      const data = { message, jobId: campaign.progress?.jobId ?? '', campaign };
      const allWarnings = [...warnings, ...sent.warnings, ...oneClick.warnings(caller.accountId)];
      oneClick.sent(caller.accountId);
      return { status: 202, raw: successBody(data, allWarnings) };
    },
  });
}

const SENT = 'The campaign is being sent.';

const BODY_EXAMPLE = {
  subscriptionGroupId: 'sgroup_1769860800000_5t7y9u1i3o5p',
  from: 'Example Shop <news@example.com>',
  subject: 'Spring is here, {{firstName|dear reader}}',
  html: '<p>Hello {{firstName}}, 20 % on everything!</p><p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
  perHour: 20000,
};
