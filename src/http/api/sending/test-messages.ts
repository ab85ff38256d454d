import * as z from 'zod';
import type { Campaigns } from '../../../campaigns/campaigns.ts';
import { EMPTY_CONTACT, isContactField } from '../../../campaigns/fields.ts';
import type { CampaignSending } from '../../../campaigns/send.ts';
import { isRefusal, type Refusal, type RefusalCode, refuse } from '../../../core/refusal.ts';
import {
  MAX_TEST_RECIPIENTS,
  MAX_TESTS_PER_HOUR,
  type SentTests,
  type TestMail,
  type TestMessages,
} from '../../../sending/test-messages.ts';
import type { Context } from '../../../store/context.ts';
import type { Stream } from '../../../store/domains/domains.ts';
import { findTemplate } from '../../../templates/templates.ts';
import { type Caller, Reply, type Route, routesOf } from '../../route.ts';
import { variantName } from '../campaign-schemas.ts';
import { atMost } from '../fields.ts';
import { commonSendFields } from './send-schemas.ts';

const route = routesOf({ tag: 'Templates', scope: 'setup', permissions: ['read', 'send'] });
const ofCampaign = routesOf({ tag: 'Campaigns', scope: 'setup', permissions: ['read', 'send'] });

const to = atMost(z.array(z.string().min(1).max(500)).min(1), MAX_TEST_RECIPIENTS).describe(
  `Addresses of people who use the console of the account, at most ${MAX_TEST_RECIPIENTS}. They need not be contacts, and need no consent.`,
);
const { from, subject, html, text, syntax, templateId, templateVariables } = commonSendFields;

const LIMITS = `At most ${MAX_TESTS_PER_HOUR.caller} test messages within an hour of a key or a person, and ${MAX_TESTS_PER_HOUR.account} of an account.`;
const DESCRIPTION = `Sends it to people of the account, with \`[Test] \` before the subject and \`{{email}}\` of each recipient. The messages belong to no campaign and no group: they are in no statistics of a campaign. ${LIMITS}`;

const response = {
  status: 202,
  description: 'The messages are stored durably.',
  data: z
    .object({ messages: z.array(z.object({ messageId: z.string(), recipient: z.string() })) })
    .meta({ id: 'TestMessages' }),
  example: {
    messages: [{ messageId: 'msg_1769862600000_4c6v8b1n3m5q', recipient: 'ada@example.com' }],
  },
};
const REFUSALS: RefusalCode[] = [
  'TEMPLATE_NOT_FOUND',
  'DOMAIN_NOT_REGISTERED',
  'DOMAIN_NOT_VERIFIED',
  'USE_CASE_MISMATCH',
  'KEY_NOT_ALLOWED',
  'RECIPIENT_SUPPRESSED',
  'COMPLIANCE_TEMPLATE_MISSING',
  'COMPANY_ADDRESS_MISSING',
  'TEMPLATE_VARIABLE_MISSING',
  'TEMPLATE_SYNTAX',
  'UNAVAILABLE',
];

/** `POST /web-setup/templates/{templateId}/test` and `POST /web-setup/campaigns/{campaignId}/test`. */
export function testMessageRoutes(
  { tables }: Pick<Context, 'tables'>,
  {
    tests,
    campaigns,
    sending,
  }: {
    tests: TestMessages;
    campaigns: Pick<Campaigns, 'get'>;
    sending: Pick<CampaignSending, 'testMail'>;
  },
): Route[] {
  async function send(caller: Caller, recipients: string[], test: TestMail): Promise<Reply | Refusal> {
    const { accountId, keyId: callerId, allowFrom, livemode } = caller;
    const account = tables.accounts.get(accountId);
    if (account === null) return refuse('UNAUTHENTICATED', 'The account does not exist');
    const sent: SentTests | Refusal = await tests.send(
      { account, allowFrom, callerId, isSimulation: !livemode },
      recipients,
      test,
    );
    if (isRefusal(sent)) return sent;
    const { messages, warnings } = sent;
    return new Reply({ data: { messages } }, { warnings });
  }

  return [
    route('POST /web-setup/templates/{templateId}/test', {
      operationId: 'testTemplate',
      summary: 'Send a template as a test message',
      description: DESCRIPTION,
      limit: 'send',
      body: z
        .object({
          to,
          from,
          subject,
          type: z
            .enum(['transactional', 'marketing'])
            .optional()
            .describe('The stream. Default: that of the template, else `marketing`.'),
          templateVariables,
        })
        .meta({ id: 'TemplateTestInput' }),
      example: {
        to: ['ada@example.com'],
        from: 'Example Shop <news@example.com>',
        templateVariables: { firstName: 'Ada' },
      },
      response,
      refusals: REFUSALS,
      handle: ({ caller, params, body: { to: recipients, type, ...mail } }) => {
        const template = findTemplate(tables, caller.accountId, params.templateId);
        if (isRefusal(template)) return template;
        const stream: Stream = (type ?? template.type) === 'transactional' ? 'tx' : 'mk';
        const ofTemplate = { subject: template.subject ?? undefined, templateId: params.templateId };
        return send(caller, recipients, { stream, mail: { ...ofTemplate, ...mail } });
      },
    }),
    ofCampaign('POST /web-setup/campaigns/{campaignId}/test', {
      operationId: 'testCampaign',
      summary: 'Send a campaign as a test message',
      description: `${DESCRIPTION} Without a content, that of the campaign: as it was sent, or as it is prepared. Fields of contacts without a value in \`templateVariables\` are empty.`,
      limit: 'send',
      body: z
        .object({
          to,
          from: from.optional(),
          subject,
          html,
          text,
          syntax,
          templateId,
          templateVariables,
          variant: variantName
            .optional()
            .describe(
              'Name of a variant of an A/B test. Default: the first one. Not together with a content.',
            ),
        })
        .meta({ id: 'CampaignTestInput' }),
      example: { to: ['ada@example.com', 'grace@example.com'] },
      response,
      refusals: ['CAMPAIGN_NOT_FOUND', ...REFUSALS],
      handle: ({ caller, params: { campaignId }, body: { to: recipients, ...given } }) => {
        const campaign = campaigns.get(caller.accountId, campaignId);
        if (isRefusal(campaign)) return campaign;
        const mail = sending.testMail(campaign, given);
        if (isRefusal(mail)) return mail;
        const template =
          mail.templateId === undefined ? null : findTemplate(tables, caller.accountId, mail.templateId);
        if (isRefusal(template)) return template;
        return send(caller, recipients, {
          stream: 'mk',
          mail: {
            ...mail,
            subject: mail.subject ?? template?.subject ?? undefined,
            templateVariables: { ...EMPTY_CONTACT, ...mail.templateVariables },
          },
          isOptional: isContactField,
        });
      },
    }),
  ];
}
