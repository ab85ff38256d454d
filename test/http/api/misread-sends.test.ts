import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { type InProcess, PLATFORM, startInProcess } from '../../support/in-process-daemon.ts';
import { sample } from '../../support/samples.ts';
import { insertDomain } from '../../support/store.ts';

/** Fields and syntax that clients of other services send: what would change a message is refused, the rest is named. */
const FOOTER = '<p>{{company_address_html}} {{unsubscribe_email_html}}</p>';
const CONTENT = { subject: 'Hi', html: `<p>Hi</p>${FOOTER}` };
const TO = `delivered@simulator.${PLATFORM}`;

let daemon: InProcess;
let api: ApiClient;
let campaignPath: string;
let subscriptionGroupId: string;

interface Data {
  warnings?: string[];
  results: { success: boolean; error?: { code: string; details: { field: string }[] } }[];
}

const transactional = (changes: object) =>
  api.post<Data>('/transactional/send', { to: TO, from: 'x@sender.test', ...CONTENT, ...changes });
const marketing = (changes: object) =>
  api.post<Data>('/marketing/send', { to: TO, from: 'n@news.test', ...CONTENT, ...changes });
const campaign = (changes: object) =>
  api.post<Data>(campaignPath, { from: 'n@news.test', subscriptionGroupId, ...CONTENT, ...changes });

beforeAll(async () => {
  daemon = await startInProcess();
  api = await daemon.account('A');
  const [group] = daemon.tables.domainGroups.list(api.accountId);
  const row = { account_id: api.accountId, group_id: group?.group_id ?? '', next_check_at: Date.now() + DAY };
  for (const [name, use_case] of [
    ['sender.test', 'tx'],
    ['news.test', 'mk'],
  ] as const)
    insertDomain(daemon.tables, { ...row, domain_id: `domain_1_${use_case}`, name, use_case }, Date.now());
  const made = await api.post<{ group: { subscriptionGroupId: string } }>(
    '/web-setup/contacts/subscription-groups',
    { name: 'News' },
  );
  ({ subscriptionGroupId } = made.data.group);
  const { data } = await api.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
    name: 'May',
  });
  campaignPath = `/web-setup/campaigns/${data.campaign.campaignId}/send`;
});
afterAll(() => daemon.stop());

describe('a field that would change the message, but is not known under its name', () => {
  it.each<[sent: object, field: string, meant: string]>([
    [{ send_at: 1_700_000_000 }, 'send_at', 'scheduledAt'],
    [{ sendAt: '2026-12-20T10:00:00Z' }, 'sendAt', 'scheduledAt'],
    [{ scheduled_at: '2026-12-20T10:00:00Z' }, 'scheduled_at', 'scheduledAt'],
    [{ 'o:deliverytime': 'tomorrow' }, '["o:deliverytime"]', 'scheduledAt'],
    [{ deliver_at: 'tomorrow' }, 'deliver_at', 'scheduledAt'],
    [{ attachment: [{ name: 'a' }] }, 'attachment', 'attachments'],
    [{ Attachments: [{ Name: 'a' }] }, 'Attachments', 'attachments'],
    [{ files: [{ name: 'a' }] }, 'files', 'attachments'],
    [{ templateVars: { a: 1 } }, 'templateVars', 'templateVariables'],
    [{ template_variables: { a: 1 } }, 'template_variables', 'templateVariables'],
    [{ dynamic_template_data: { a: 1 } }, 'dynamic_template_data', 'templateVariables'],
    [{ variables: { a: 1 } }, 'variables', 'templateVariables'],
    [{ template_id: 'x' }, 'template_id', 'templateId'],
    [{ 'reply-to': 'a@b.test' }, 'reply-to', 'replyTo'],
    [{ reply_to: 'a@b.test' }, 'reply_to', 'replyTo'],
    [{ ReplyTo: 'a@b.test' }, 'ReplyTo', 'replyTo'],
    [{ textBody: 'x' }, 'textBody', 'text'],
    [{ HtmlBody: 'x' }, 'HtmlBody', 'html'],
    [{ ccs: ['a@b.test'] }, 'ccs', 'cc'],
    [{ CC: ['a@b.test'] }, 'CC', 'cc'],
    [{ bccAddresses: ['a@b.test'] }, 'bccAddresses', 'bcc'],
    [{ recipients: ['a@b.test'] }, 'recipients', 'to'],
    [{ from_name: 'Ann' }, 'from_name', 'from'],
    [{ customHeaders: { 'X-A': 'b' } }, 'customHeaders', 'headers'],
    [{ subjct: 'x' }, 'subjct', 'subject'],
  ])('%j: names the field', async (sent, field, meant) => {
    for (const send of [transactional, marketing, campaign]) {
      const { status, error } = await send(sent);
      expect([status, error.code, error.details?.map((detail) => detail.field)]).toEqual([
        400,
        'VALIDATION_ERROR',
        [field],
      ]);
      expect(error.message).toContain(`did you mean "${meant}"`);
    }
  });

  it('is found in attachments, and before a missing required field', async () => {
    const file = { name: 'a.png', contentType: 'image/png', content: 'aGk=', cid: 'logo' };
    const { error } = await transactional({ attachments: [file], to: undefined, recipient: TO });
    expect(error.details?.map(({ field, message }) => `${field}: ${message}`)).toEqual([
      'recipient: is not a field; did you mean "to"? The field would be ignored',
      'attachments[0].cid: is not a field; did you mean "attachments[0].contentId"? The field would be ignored',
    ]);
  });

  it('is refused in the messages of a batch', async () => {
    const message = { to: TO, from: 'x@sender.test', ...CONTENT };
    const { data } = await api.post<Data>('/transactional/send-batch', {
      messages: [message, { ...message, send_at: 5 }, { ...message, subscriptionGroupId: 'sgroup_1' }],
    });
    expect(data.results.map(({ success, error }) => [success, error?.details[0]?.field])).toEqual([
      [true, undefined],
      [false, 'send_at'],
      [false, 'subscriptionGroupId'],
    ]);
  });
});

describe('a field of the other stream', () => {
  it.each([[{ subscriptionGroupId: 'sgroup_1' }, 'subscriptionGroupId']])(
    '%j is refused in transactional mail',
    async (sent, field) => {
      const { status, error } = await transactional(sent);
      expect([status, error.details]).toEqual([400, [{ field, message: 'is for marketing mail only' }]]);
    },
  );

  it.each([
    [{ cc: 'a@b.test' }, 'cc'],
    [{ attachments: [{ name: 'a' }] }, 'attachments'],
    [{ headers: { 'X-A': 'b' } }, 'headers'],
    [{ to: 'a@b.test' }, 'to'],
  ])('%j is refused in campaigns', async (sent, field) => {
    const { status, error } = await campaign(sent);
    expect([status, error.details?.map((detail) => detail.field)]).toEqual([400, [field]]);
  });
});

it.each([
  { campaignId: 'campaign_1' },
  { test: true, id: 5, name: 'x', type: 'y', priority: 'high', locale: 'de' },
  { trackOpens: true, enableClicktracking: true },
])('%j keeps its warning', async (sent) => {
  const { status, data } = await transactional(sent);
  expect([status, data.warnings]).toEqual([
    200,
    Object.keys(sent).map((name) => expect.stringContaining(`unknown field "${name}" was ignored`)),
  ]);
});

it('accepts options that are not set', async () => {
  const sent = {
    scheduledAt: null,
    subscriptionGroupId: null,
    send_at: null,
    ccs: [],
    attachment: '',
    vars: {},
  };
  expect((await transactional(sent)).status).toBe(200);
});

describe('the syntax of other template languages', () => {
  const html = `<p>Hi {{ firstName | default: 'there' }}{% if x %}</p>${FOOTER}`;
  const sentence =
    "{{ firstName | default: 'there' }} in html is not a variable, but the syntax of another template language: write {{firstName|there}}";

  it('is refused in marketing mail and campaigns', async () => {
    for (const send of [marketing, campaign]) {
      const { status, error } = await send({ html });
      expect([status, error.code, error.details?.map(({ name }) => name)]).toEqual([
        422,
        'TEMPLATE_SYNTAX',
        ["{{ firstName | default: 'there' }}", '{% if x %}'],
      ]);
      expect(error.message).toBe(`${sentence} (and 1 more)`);
    }
  });

  it('is refused in the subject, in the text and in stored templates', async () => {
    for (const sent of [{ subject: 'Hi {{ name | upper }}' }, { text: `{{ a || 'b' }} ${FOOTER}` }])
      expect((await campaign(sent)).error.code).toBe('TEMPLATE_SYNTAX');
    const made = await api.post<Data & { template: { templateId: string } }>('/web-setup/templates', {
      name: 'T',
      subject: 'Hi',
      html,
    });
    expect(made.data.warnings).toContain(sentence);
    const { templateId } = made.data.template;
    const { error } = await campaign({ templateId, html: undefined, subject: undefined });
    expect(error.code).toBe('TEMPLATE_SYNTAX');
  });

  it('is named in the warnings of transactional mail', async () => {
    const { status, data } = await transactional({ html });
    expect([status, data.warnings]).toEqual([200, [sentence, expect.stringContaining('{% if x %} in html')]]);
  });

  it('of the sample is refused and named', async () => {
    const { subject, html }: { subject: string; html: string } = JSON.parse(
      sample('f2-liquid-default.json').toString(),
    );
    expect((await campaign({ subject, html })).error.details).toHaveLength(3);
    expect((await transactional({ subject, html })).data.warnings).toHaveLength(3);
  });
});
