import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import type { OpenApiDocument } from '../../../src/http/openapi/document.ts';
import { type ApiClient, type CreatedDomain, createApiClient } from '../../support/api-client.ts';
import { eventually } from '../../support/eventually.ts';
import { type InProcess, PLATFORM, startInProcess } from '../../support/in-process-daemon.ts';
import { publishMailHost } from '../../support/recipients.ts';
import { granted } from '../../support/refusal.ts';
import { type Sink, startSink } from '../../support/smtp-sink.ts';
import { insertDomain } from '../../support/store.ts';

/** Mail of a test key over HTTP, compared with what the host of its recipient received. */
const FOOTER = '{{company_address_html}}{{unsubscribe_email_html}}';
const MAIL = {
  from: 'Shop <shop@sender.example>',
  to: 'ada@recipient.example',
  subject: 'Order 7',
  html: `<p>Thank you, {{name}}!</p>${FOOTER}`,
  templateVariables: { name: 'Ada' },
};

const NEWS = { from: 'news@news.example', subject: 'Spring', html: `<p>Hello</p>${FOOTER}` };

let daemon: InProcess;
let sink: Sink;
let live: ApiClient;
let test: ApiClient;

beforeAll(async () => {
  sink = await startSink();
  daemon = await startInProcess({ 'delivery.port': sink.port, 'delivery.allowPrivateNetworks': true });
  publishMailHost(daemon.dns, 'recipient.example', sink.host);
  live = await daemon.account('Shop');
  const { accountId } = live;
  const create = async (path: string, scopes: string[]) => {
    const { data } = await live.post<{ secret: string }>(path, { name: 'tests', scopes, livemode: false });
    return data.secret;
  };
  const sending = await create(`/web-setup/accounts/${accountId}/keys`, ['marketing', 'transactional']);
  test = createApiClient(daemon.url, {
    accountId,
    keys: {
      setup: await create('/web-setup/keys', ['setup']),
      marketing: sending,
      transactional: sending,
    },
  });
  const input = { domain: 'sender.example', useCaseId: 'tx-local' };
  const { data } = await live.put<CreatedDomain>('/web-setup/domains', input);
  daemon.dns.publish(data.dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
  await daemon.publishPlatform();
  await live.post(`/web-setup/domains/${data.domainId}/verify`);
  insertDomain(
    daemon.tables,
    {
      account_id: accountId,
      group_id: data.groupId,
      domain_id: 'domain_1',
      name: 'news.example',
      use_case: 'mk',
      next_check_at: Date.now() + DAY,
    },
    Date.now(),
  );
});

afterAll(async () => {
  await daemon.stop();
  await sink.close();
});

const stateOf = (messageId: string, status: string) =>
  eventually(`the message to be ${status}`, async () => (await live.message(messageId)).status === status);

describe('a message of a test key', () => {
  it('is rendered, stored and reported, and never leaves', async () => {
    const { data, status, text } = await test.send(MAIL);
    expect(status, text).toBe(200);
    await stateOf(data.messageId, 'delivered');
    expect(await live.message(data.messageId)).toMatchObject({ livemode: false, simulated: true });
    const events = await live.allEvents({ recipient: MAIL.to });
    expect(events.map(({ event, livemode }) => [event, livemode])).toEqual([
      ['email_sent', false],
      ['email_delivered', false],
    ]);
    const { data: content } = await live.get<{ html: string }>(
      `/web-setup/messages/${data.messageId}/content`,
    );
    expect(content.html).toContain('Thank you, Ada!');
    // What is sent after it with a live key arrives alone.
    const after = await live.send({ ...MAIL, subject: 'Live' });
    await stateOf(after.data.messageId, 'delivered');
    expect(await live.message(after.data.messageId)).toMatchObject({ livemode: true });
    expect(sink.messages).toHaveLength(1);
    expect(String(sink.messages[0]?.raw)).toContain('Live');
  });

  it('has the outcome of an address of the simulator', async () => {
    const { data } = await test.send({ ...MAIL, to: `bounced@simulator.${PLATFORM}` });
    await stateOf(data.messageId, 'bounced');
  });

  it('is checked like any other', async () => {
    const unknown = await test.send({ ...MAIL, from: 'a@other.example' });
    expect(unknown.error.code).toBe('DOMAIN_NOT_REGISTERED');
    const marketing = await test.post('/marketing/send', { ...NEWS, to: 'eve@recipient.example' });
    expect(marketing.error.code).toBe('CONSENT_REQUIRED');
    const [refused] = await live.allEvents({ recipient: 'eve@recipient.example' });
    expect(refused).toMatchObject({ event: 'email_suppressed', livemode: false, messageId: null });
  });

  it('does not answer a live request with the same Idempotency-Key', async () => {
    const key = { 'Idempotency-Key': 'order-7' };
    const first = await test.send(MAIL, key);
    const second = await live.send(MAIL, key);
    expect(second.status).toBe(200);
    expect(second.data.messageId).not.toBe(first.data.messageId);
    expect((await test.send(MAIL, key)).data.messageId).toBe(first.data.messageId);
  });

  it('is sent again as a test by a test key', async () => {
    const { data } = await live.send(MAIL);
    await stateOf(data.messageId, 'delivered');
    const before = sink.messages.length;
    const again = await test.post<{ messageId: string }>('/transactional/resend', {
      messageId: data.messageId,
    });
    await stateOf(again.data.messageId, 'delivered');
    expect(await live.message(again.data.messageId)).toMatchObject({ livemode: false });
    expect(sink.messages).toHaveLength(before);
  });

  it('counts in no statistics', async () => {
    const isOf = async () => (await live.get<{ series: object[] }>('/web-setup/statistics')).data.series;
    const before = await isOf();
    const { data } = await test.send(MAIL);
    await stateOf(data.messageId, 'delivered');
    expect(await isOf()).toEqual(before);
  });
});

describe('a campaign of a test key', () => {
  it('has a message for each member, and reaches nobody', async () => {
    const groups = '/web-setup/contacts/subscription-groups';
    const { data } = await test.post<{ group: { subscriptionGroupId: string } }>(groups, { name: 'News' });
    const { subscriptionGroupId } = data.group;
    await test.post('/web-setup/contacts', { email: 'ada@recipient.example' });
    const joined = await test.post(`${groups}/${subscriptionGroupId}/subscriptions`, {
      email: 'ada@recipient.example',
      consentMethod: 'web_form',
    });
    expect(joined.status, joined.text).toBeLessThan(300);
    const created = await test.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
      name: 'Spring',
    });
    const path = `/web-setup/campaigns/${created.data.campaign.campaignId}`;
    const before = sink.messages.length;
    const sent = await test.post(`${path}/send`, {
      ...NEWS,
      subscriptionGroupId,
    });
    expect(sent.status, sent.text).toBe(202);
    const campaign = async () =>
      (
        await live.get<{ campaign: { status: string; progress: { queued: number; livemode: boolean } } }>(
          path,
        )
      ).data.campaign;
    await eventually('the campaign to be sent', async () => (await campaign()).status === 'sent');
    expect((await campaign()).progress).toMatchObject({ queued: 1, livemode: false });
    const { campaignId } = created.data.campaign;
    await eventually('its message to be delivered', async () =>
      (await live.allMessages({ campaignId })).every(({ status }) => status === 'delivered'),
    );
    expect(sink.messages).toHaveLength(before);
    const analytics = await live.get<{ totals: Record<string, number> }>(`${path}/analytics`);
    expect(analytics.data.totals).toMatchObject({ queued: 0, delivered: 0 });
    const received = await live.post<{ count: number }>('/web-setup/segments/preview', {
      filter: { received: { withinDays: 1 } },
    });
    expect(received.data.count).toBe(0);
  });
});

describe('a test message of a test key', () => {
  it('reaches nobody', async () => {
    const email = 'colleague@recipient.example';
    await live.send({ ...MAIL, to: email, subject: 'Live' });
    granted(await daemon.people.invite(live.accountId, { email, role: 'sender' }, 'operator'));
    await eventually('the live message to arrive', async () =>
      sink.messages.some(({ raw }) => raw.includes(email)),
    );
    const before = sink.messages.length;
    const template = await test.post<{ template: { templateId: string } }>('/web-setup/templates', {
      name: 'Spring',
      ...NEWS,
      from: undefined,
    });
    const campaign = await test.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
      name: 'Tested',
    });
    const { templateId } = template.data.template;
    const tests: [string, object][] = [
      [`/web-setup/templates/${templateId}/test`, { type: 'marketing', from: NEWS.from }],
      [`/web-setup/campaigns/${campaign.data.campaign.campaignId}/test`, { from: NEWS.from, templateId }],
    ];
    for (const [path, body] of tests) {
      const sent = await test.post<{ messages: { messageId: string }[] }>(path, { ...body, to: [email] });
      expect(sent.status, sent.text).toBe(202);
      const messageId = sent.data.messages[0]?.messageId ?? '';
      await stateOf(messageId, 'delivered');
      expect(await live.message(messageId)).toMatchObject({ livemode: false });
    }
    expect(sink.messages).toHaveLength(before);
  });
});

/** Operations whose names state that something is sent, and whose mail is simulated or that send no mail. */
const HARMLESS = new Set([
  'sendTransactional',
  'sendTransactionalBatch',
  'sendRawTransactional',
  'sendMarketing',
  'sendMarketingBatch',
  'resendTransactional',
  'sendCampaign',
  'testCampaign',
  'testTemplate',
  // Calls of webhooks.
  'testWebhook',
  'retryWebhookDelivery',
  // A test key never has the scope `operator`.
  'retryQueue',
]);

describe('a test key', () => {
  it('cannot release live mail', async () => {
    for (const [path, body] of [
      ['/web-setup/messages/msg_1/retry'],
      ['/web-setup/campaigns/campaign_1/resume'],
      ['/web-setup/campaigns/campaign_1/winner', { variant: 'B' }],
    ] as const)
      expect((await test.post(path, body)).error.code, path).toBe('KEY_NOT_ALLOWED');
  });

  it('is refused by each operation whose name states that something is sent', async () => {
    const document = (await (await fetch(`${daemon.url}/openapi.json`)).json()) as OpenApiDocument;
    const sending = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.entries(operations)
        .filter(([, { operationId }]) =>
          /^(?:re)?(?:send|test|try|sume|schedule|activate|choose|release)[A-Z]/.test(operationId),
        )
        .map(([method, operation]) => ({ method, path, ...operation })),
    );
    expect(sending.length).toBeGreaterThan(HARMLESS.size);
    const others = sending.filter(({ operationId }) => !HARMLESS.has(operationId));
    for (const { method, path, operationId, requestBody } of others) {
      const body = requestBody?.content['application/json']?.example;
      const { error } = await test.call(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'unknown'), {
        body,
      });
      expect(error.code, operationId).toBe('KEY_NOT_ALLOWED');
    }
  });

  it('cannot verify or change a domain whose mail is held because its verification failed', async () => {
    const [domain] = daemon.tables.domains.named(live.accountId, 'sender.example');
    if (domain === undefined) throw new Error('the domain is missing');
    const path = `/web-setup/domains/${domain.domain_id}`;
    const track = () => test.call('PATCH', path, { body: { enableOpenTracking: false } });
    daemon.tables.domains.update({ ...domain, status: 'FAILED' });
    expect((await test.post(`${path}/verify`)).error.code).toBe('KEY_NOT_ALLOWED');
    expect((await test.post(`${path}/rotate-dkim`)).error.code).toBe('KEY_NOT_ALLOWED');
    expect((await track()).error.code).toBe('KEY_NOT_ALLOWED');
    daemon.tables.domains.update(domain);
    expect((await track()).status).toBe(200);
  });

  it('cannot create a live key', async () => {
    const refused = await test.post('/web-setup/keys', { name: 'live', scopes: ['setup'] });
    expect(refused.error.code).toBe('INSUFFICIENT_SCOPE');
  });

  it('cannot change contacts while a sequence sends to them', async () => {
    const body = {
      name: 'Thanks',
      trigger: { event: 'bought' },
      steps: [{ send: NEWS }],
    };
    expect((await test.post('/web-setup/sequences', body)).error.code).toBe('KEY_NOT_ALLOWED');
    const created = await live.post<{ sequence: { sequenceId: string } }>('/web-setup/sequences', body);
    const path = `/web-setup/sequences/${created.data.sequence.sequenceId}`;
    const add = (email: string) => test.post('/web-setup/contacts', { email });
    expect((await add('bob@recipient.example')).status).toBe(201);
    expect((await test.post(`${path}/activate`)).error.code).toBe('KEY_NOT_ALLOWED');
    expect((await live.post(`${path}/activate`, {})).status).toBe(200);
    expect((await add('eve@recipient.example')).error.code).toBe('KEY_NOT_ALLOWED');
    expect((await live.post(`${path}/pause`)).status).toBe(200);
    expect((await add('eve@recipient.example')).status).toBe(201);
  });
});
