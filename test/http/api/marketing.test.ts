import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../../src/core/clock.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { type InProcess, PLATFORM, startInProcess } from '../../support/in-process-daemon.ts';
import { contentOf, insertDomain } from '../../support/store.ts';

/** Marketing sends and batches over HTTP: they require consent. */
const HTML = '<p>News</p>{{company_address_html}}{{unsubscribe_email_html}}';

/** What the tests read of answers. */
interface Body {
  reasonCode: string;
  subscriptionStatus?: string;
  error: { details: { field: string }[] };
  data: {
    message: string;
    jobId: string;
    status: string;
    recipients: [{ messageId: string }];
    messages: object[];
    group: { subscriptionGroupId: string };
    accepted: number;
    results: { reasonCode?: string; data?: { warnings?: string[] } }[];
  };
}

let daemon: InProcess;
let client: ApiClient;
let groupId: string;

async function call(
  method: string,
  path: string,
  body?: object,
  key = client.keys.setup,
  headers: Record<string, string> = {},
) {
  const response = await fetch(daemon.url + path, {
    method,
    headers: { 'x-api-key': key, 'x-id': client.accountId, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return {
    status: response.status,
    headers: response.headers,
    text: await response.clone().text(),
    body: (await response.json()) as Body, // the shapes are what is tested
  };
}

const send = (changes: object = {}, headers: Record<string, string> = {}) =>
  call(
    'POST',
    '/marketing/send',
    { to: 'member@reader.test', from: 'news@shop.test', subject: 'News', html: HTML, ...changes },
    client.keys.marketing,
    headers,
  );

/** A send with a header field for each key, which `fetch` cannot send. */
async function sendWithKeys(keys: string[]): Promise<{ statusCode: number | undefined; text: string }> {
  const sending = request(`${daemon.url}/marketing/send`, {
    method: 'POST',
    headers: {
      'x-api-key': client.keys.marketing,
      'x-id': client.accountId,
      'content-type': 'application/json',
      'idempotency-key': keys,
    },
  });
  const mail = { to: 'member@reader.test', from: 'news@shop.test', subject: 'News', html: HTML };
  sending.end(JSON.stringify(mail));
  const [response]: IncomingMessage[] = await once(sending, 'response');
  if (response === undefined) throw new Error('no response');
  return { statusCode: response.statusCode, text: await text(response) };
}

const contact = (email: string, more: object = {}) => call('POST', '/web-setup/contacts', { email, ...more });
const subscribe = (email: string, isActive = true) =>
  call('POST', `/web-setup/contacts/subscription-groups/${groupId}/subscriptions`, { email, isActive });

beforeAll(async () => {
  daemon = await startInProcess();
  client = await daemon.account('Shop');
  const [group] = daemon.tables.domainGroups.list(client.accountId);
  const row = { account_id: client.accountId, group_id: group?.group_id ?? '', use_case: 'mk' as const };
  insertDomain(
    daemon.tables,
    { ...row, domain_id: 'domain_1_mk', name: 'shop.test', next_check_at: Date.now() + DAY },
    Date.now(),
  );
  groupId = (await call('POST', '/web-setup/contacts/subscription-groups', { name: 'Readers' })).body.data
    .group.subscriptionGroupId;
  await contact('member@reader.test');
  await subscribe('member@reader.test');
  await contact('inactive@reader.test');
  await subscribe('inactive@reader.test', false);
  await contact('alone@reader.test');
  await contact('complained@reader.test');
  await subscribe('complained@reader.test');
  await call('POST', '/web-setup/suppressions', {
    email: 'complained@reader.test',
    reason: 'manual',
    stream: 'all',
  });
});
afterAll(() => daemon.stop());

describe('a marketing send', () => {
  it('responds with 202 and a job whose messages can be listed', async () => {
    const { status, body } = await send({ subscriptionGroupId: groupId });
    expect(status).toBe(202);
    expect(body.data).toEqual({
      message: 'Email queued',
      jobId: expect.stringMatching(/^job_\d+_[0-9a-z]{12}$/),
      status: 'queued',
      from: 'news@shop.test',
      totalRecipients: 1,
      recipients: [
        {
          email: 'member@reader.test',
          status: 'queued',
          role: 'to',
          messageId: expect.stringMatching(/^msg_/),
        },
      ],
      warnings: [expect.stringContaining('public.url is not https')],
    });
    const { messages } = (await call('GET', `/web-setup/messages?jobId=${body.data.jobId}`)).body.data;
    expect(messages).toHaveLength(1);
    expect(messages[0]).toMatchObject({
      jobId: body.data.jobId,
      subscriptionGroupId: groupId,
      useCase: 'mk',
      recipient: 'member@reader.test',
    });
  });

  it('states which header fields the service replaces', async () => {
    const headers = { 'List-Id': '<mine.shop.test>', precedence: 'list', 'X-Campaign': 'spring' };
    const { status, body } = await send({ subscriptionGroupId: groupId, headers });
    expect(status).toBe(202);
    expect(body.data).toMatchObject({
      warnings: [
        'headers.List-Id has no effect: the service sets it in marketing mail',
        'headers.precedence has no effect: the service sets it in marketing mail',
      ],
    });
  });

  it('addresses every copy to its recipient only', async () => {
    const { body } = await send({ to: 'member@reader.test, alone@reader.test' });
    const contents = body.data.recipients.map(({ messageId }: { messageId: string }) => {
      const message = daemon.tables.messages.byId(messageId);
      return contentOf(daemon.tables, message ?? undefined);
    });
    expect(contents.map(({ to }: { to: { address: string }[] }) => to.map(({ address }) => address))).toEqual(
      [['member@reader.test'], ['alone@reader.test']],
    );
    expect(new Set(contents.map(({ messageId }: { messageId: string }) => messageId)).size).toBe(2);
  });

  it.each<[string, object, number, string, string | undefined]>([
    ['no contact', { to: 'unknown@reader.test' }, 403, 'CONSENT_REQUIRED', 'not_subscribed'],
    [
      'a contact that is not in the group',
      { to: 'alone@reader.test', subscriptionGroupId: 'GROUP' },
      403,
      'CONSENT_REQUIRED',
      'not_subscribed',
    ],
    [
      'an inactive member',
      { to: 'inactive@reader.test', subscriptionGroupId: 'GROUP' },
      403,
      'RECIPIENT_UNSUBSCRIBED',
      'unsubscribed',
    ],
    [
      'a suppressed member',
      { to: 'complained@reader.test', subscriptionGroupId: 'GROUP' },
      403,
      'RECIPIENT_SUPPRESSED',
      'suppressed',
    ],
    [
      'one of two',
      { to: ['member@reader.test', 'unknown@reader.test'] },
      403,
      'CONSENT_REQUIRED',
      'not_subscribed',
    ],
    [
      'an unknown group',
      { subscriptionGroupId: 'sgroup_1_x' },
      404,
      'SUBSCRIPTION_GROUP_NOT_FOUND',
      undefined,
    ],
    ['an unknown campaign', { campaignId: 'campaign_1_x' }, 404, 'CAMPAIGN_NOT_FOUND', undefined],
    [
      'an unknown group before an unregistered domain',
      { subscriptionGroupId: 'sgroup_1_x', from: 'a@b.test' },
      404,
      'SUBSCRIPTION_GROUP_NOT_FOUND',
      undefined,
    ],
    [
      'no compliance before no consent',
      { to: 'unknown@reader.test', html: '<p>x</p>' },
      422,
      'COMPLIANCE_TEMPLATE_MISSING',
      undefined,
    ],
    [
      'a number that cannot be represented',
      { templateVariables: { n: 2 ** 64 } },
      400,
      'VALIDATION_ERROR',
      undefined,
    ],
    ['cc', { cc: 'a@b.test' }, 400, 'VALIDATION_ERROR', undefined],
    ['attachments', { attachments: [] }, 400, 'VALIDATION_ERROR', undefined],
    [
      'a schedule too far ahead',
      { scheduledAt: new Date(Date.now() + 31 * DAY).toISOString() },
      400,
      'VALIDATION_ERROR',
      undefined,
    ],
    ...[
      'tomorrow',
      '2026',
      'Nov 30 2026',
      '30 Nov 2026 10:00 PST',
      '2026-11-31T10:00:00Z',
      '2026-11-30T10:00:00',
      '2020-01-01T00:00:00Z',
      new Date(Date.now() + DAY).toISOString().slice(0, 10),
      new Date(Date.now() - HOUR).toISOString(),
    ].map((scheduledAt): [string, object, number, string, undefined] => [
      `a schedule of ${scheduledAt}`,
      { scheduledAt },
      400,
      'VALIDATION_ERROR',
      undefined,
    ]),
  ])('is refused: %s', async (_, changes, status, code, subscriptionStatus) => {
    const answer = await send(
      JSON.parse(JSON.stringify(changes).replace('"GROUP"', JSON.stringify(groupId))),
    );
    expect(answer.status).toBe(status);
    expect(answer.body).toMatchObject({ success: false, reasonCode: code });
    expect(answer.body.subscriptionStatus).toBe(subscriptionStatus);
  });

  it('requires no consent for simulator addresses', async () => {
    expect((await send({ to: `delivered@simulator.${PLATFORM}` })).status).toBe(202);
  });

  it('is sent at its scheduled time', async () => {
    const at = new Date(Date.now() + 2 * HOUR).toISOString();
    const { body } = await send({ scheduledAt: at });
    expect(body.data.message).toBe('Email scheduled');
    const message = daemon.tables.messages.byId(body.data.recipients[0].messageId);
    expect(daemon.tables.queue.get(message?.seq ?? 0)).toMatchObject({
      priority: 1,
      ready: 0,
      due_at: Date.parse(at),
    });
    expect(message?.status).toBe('queued');
  });

  it('is dropped from the queue if consent ends before delivery', async () => {
    await contact('leaver@reader.test');
    const { body } = await send({
      to: 'leaver@reader.test',
      scheduledAt: new Date(Date.now() + 1500).toISOString(),
    });
    await call('DELETE', `/web-setup/contacts/${emailIdentifier('leaver@reader.test')}`);
    const id = body.data.recipients[0].messageId;
    await expect
      .poll(async () => (await call('GET', `/web-setup/messages/${id}`)).body.data.status)
      .toBe('cancelled');
  });

  it('replays the response for its idempotency key', async () => {
    const headers = { 'idempotency-key': 'marketing-1' };
    const first = await send({}, headers);
    const again = await send({}, headers);
    expect(again.text).toBe(first.text);
    expect([first.status, again.status, again.headers.get('idempotency-replayed')]).toEqual([
      202,
      202,
      'true',
    ]);
  });

  it.each([
    [['one', 'two'], 400],
    [['same', 'same'], 400],
    [['one, two'], 202],
    [['three'], 202],
  ])('accepts one idempotency key, with a comma or not, and refuses two: %j', async (keys, status) => {
    const stored = () => daemon.tables.messages.list({ accountId: client.accountId, limit: 200 }).rows.length;
    const before = stored();
    const answer = await sendWithKeys(keys);
    expect(answer.statusCode).toBe(status);
    expect(stored() - before).toBe(status === 400 ? 0 : 1);
    if (status === 400)
      expect(JSON.parse(answer.text).error.details).toEqual([
        { field: 'Idempotency-Key', message: 'is given more than once' },
      ]);
  });

  it('requires a marketing key', async () => {
    const answer = await call('POST', '/marketing/send', {}, client.keys.transactional);
    expect([answer.status, answer.body.reasonCode]).toEqual([403, 'INSUFFICIENT_SCOPE']);
  });
});

describe('a batch', () => {
  const item = (to: string) => ({ to, from: 'news@shop.test', subject: 'News', html: HTML });
  const batch = (messages: unknown[], headers: Record<string, string> = {}) =>
    call('POST', '/marketing/send-batch', { messages }, client.keys.marketing, headers);

  it('has results in order; a refused message does not affect others', async () => {
    const { status, body } = await batch([
      item('member@reader.test'),
      item('unknown@reader.test'),
      { to: 5 },
      { ...item('alone@reader.test'), foo: 1 },
    ]);
    expect(status).toBe(202);
    expect(body.data).toMatchObject({ accepted: 2, refused: 2 });
    expect(body.data.results.map((result: { reasonCode?: string }) => result.reasonCode ?? 'ok')).toEqual([
      'ok',
      'CONSENT_REQUIRED',
      'VALIDATION_ERROR',
      'ok',
    ]);
    expect(body.data.results[3]?.data?.warnings).toEqual(['unknown field "foo" was ignored']);
  });

  it('has warnings for text in braces that is not a variable', async () => {
    const { body } = await batch([{ ...item('member@reader.test'), subject: '{{first-name}}' }]);
    expect(body.data.results[0]?.data?.warnings).toContain(
      '{{first-name}} in subject is not a variable and is sent unchanged',
    );
  });

  it('sends nothing twice for one key, and continues where it stopped', async () => {
    const headers = { 'idempotency-key': 'batch-1' };
    const first = await batch([item('member@reader.test'), item('late@reader.test')], headers);
    await contact('late@reader.test');
    const again = await batch([item('member@reader.test'), item('late@reader.test')], headers);
    expect(again.body.data.results[0]).toEqual(first.body.data.results[0]);
    expect([first.body.data.accepted, again.body.data.accepted]).toEqual([1, 2]);
    expect(again.headers.get('idempotency-replayed')).toBeNull();
  });

  it('is refused, message by message, when other messages have its key', async () => {
    const headers = { 'idempotency-key': 'batch-4' };
    await batch([item('member@reader.test'), item('nobody@reader.test')], headers);
    const { body } = await batch([item('nobody@reader.test')], headers);
    expect(body.data.results.map(({ reasonCode }) => reasonCode)).toEqual(['IDEMPOTENCY_KEY_REUSED']);
  });

  it('replays the response for its idempotency key', async () => {
    const headers = { 'idempotency-key': 'batch-2' };
    const first = await batch([item('member@reader.test'), item('alone@reader.test')], headers);
    const again = await batch([item('member@reader.test'), item('alone@reader.test')], headers);
    expect(again.text).toBe(first.text);
    expect(first.headers.get('idempotency-replayed')).toBeNull();
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([202, 'true']);
  });

  it('is a replay when nothing was sent, although a message is refused again', async () => {
    const headers = { 'idempotency-key': 'batch-3' };
    const messages = [item('member@reader.test'), item('unknown@reader.test')];
    await batch(messages, headers);
    const again = await batch(messages, headers);
    expect(again.body.data).toMatchObject({ accepted: 1, refused: 1 });
    expect(again.headers.get('idempotency-replayed')).toBe('true');
  });

  it.each([
    ['none', []],
    ['501', Array.from({ length: 501 }, () => ({}))],
    ['no list', 'x'],
  ])('is refused with %s', async (_, messages) => {
    const answer = await call('POST', '/marketing/send-batch', { messages }, client.keys.marketing);
    expect([answer.status, answer.body.error.details[0]?.field]).toEqual([400, 'messages']);
  });
});
