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
export function campaignSendingRoutes(house: CampaignSendingHouse): Route[] {
  const { sending } = house;
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
          description: 'The campaign as it is now.',
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
    sendCampaign(house),
    act('pause', {
      summary: 'Pause a campaign',
      description:
        'Nothing more of it is sent, what waits already is held. What is being sent at this moment is not stopped.',
      status: 'paused',
    }),
    act(
      'resume',
      {
        summary: 'Resume a paused campaign',
        description:
          'From where it stopped. What made the service pause it is looked at again first, and refused if it still stands in the way.',
        status: 'sending',
      },
      STANDS_IN_THE_WAY,
    ),
    act('cancel', {
      summary: 'Cancel a campaign permanently',
      description:
        'Its queued and deferred messages become `cancelled`, with the event `email_failed` and reason `cancelled`, also those of a campaign that is sent.',
      status: 'cancelled',
    }),
  ];
}

/** What the routes need. */
interface CampaignSendingHouse {
  sending: CampaignSending;
  account(accountId: string): AccountRow | null;
  oneClick: OneClickNotice;
}

const COMMON = { tag: 'Campaigns', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ campaignId: z.string() });
const STANDS_IN_THE_WAY: RouteDescription['refusals'] = [
  'SUBSCRIPTION_GROUP_NOT_FOUND',
  'DOMAIN_NOT_REGISTERED',
  'DOMAIN_NOT_VERIFIED',
  'USE_CASE_MISMATCH',
  'COMPANY_ADDRESS_MISSING',
];
/** Those of the send endpoints; what a campaign has no use for is ignored, and named in a warning. */
const { headers: _headers, ...mailFields } = commonSendFields;
const MAX_PER_HOUR = 10_000_000;

function sendCampaign({ sending, account, oneClick }: CampaignSendingHouse): Route {
  return route({
    ...COMMON,
    method: 'POST',
    path: '/web-setup/campaigns/{campaignId}/send',
    operationId: 'sendCampaign',
    summary: 'Sends a campaign to a subscription group',
    description:
      'To every active member who may be written to, a message of their own. Subject, html and text may use `{{email}}`, `{{firstName}}`, `{{lastName}}`, `{{phone}}` and `{{customFields.<name>}}`: what a contact does not have is empty. A name that is neither in `templateVariables` nor a field that some contact of the account has, and has no default, is refused. Everything else is checked at once, too; the answer comes when it is stored, and members are taken up from then on. Who joins the group after that may get it or not. A campaign is sent once.',
    limit: 'send',
    params,
    body: z.object({
      subscriptionGroupId: z.string().max(100),
      ...mailFields,
      templateVariables: mailFields.templateVariables.describe(
        'Values that are the same for all. Names of contact fields cannot be given.',
      ),
      scheduledAt: z.string().optional().describe('When to begin, ISO 8601, at most 30 days ahead.'),
      perHour: z
        .int()
        .min(1)
        .max(MAX_PER_HOUR)
        .optional()
        .describe('Messages an hour at most, spread evenly; without it as fast as mail leaves.'),
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
      if (row === null) return refuse('UNAUTHENTICATED', 'The account is gone');
      const { allowFrom, allowEssential } = caller;
      const sender = { account: row, useCase: 'mk' as const, allowFrom, allowEssential };
      const sent = await sending.send(sender, campaignId, body);
      if (isRefusal(sent)) return sent;
      const campaign = withProgress(sending, sent.campaign);
      const message = sent.campaign.status === 'scheduled' ? 'The campaign is scheduled.' : SENT;
      const data = { message, jobId: campaign.progress?.jobId ?? '', campaign };
      const noted = [...warnings, ...sent.warnings, ...oneClick.warnings(caller.accountId)];
      oneClick.sent(caller.accountId);
      return { status: 202, raw: successBody(data, noted) };
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
