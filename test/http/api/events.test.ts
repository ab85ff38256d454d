import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { eventually } from '../../support/eventually.ts';
import { type InProcess, PLATFORM, startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomainOf } from '../../support/store.ts';

/** The event feed over HTTP: the same filters as the list of messages, also for events without a message. */
const DELIVERED = `delivered@simulator.${PLATFORM}`;
const UNKNOWN = 'unknown@reader.test';

let daemon: InProcess;
let client: ApiClient;
let campaignId: string;
let groupId: string;

interface Feed {
  events: { event: string; recipient?: string; domainId?: string }[];
  count: number;
  nextKey?: string;
}
const feed = async (query: string) => {
  const answer = await client.get<Feed>(`/web-setup/events?${query}`);
  expect(answer.status).toBe(200);
  return answer.data;
};
const kinds = async (query: string) => (await feed(query)).events.map(({ event }) => event);

beforeAll(async () => {
  daemon = await startInProcess();
  client = await daemon.account('Shop');
  insertDomainOf(daemon, client, { use_case: 'mk', domain_id: 'domain_1_mk', name: 'shop.test' });
  const { data: made } = await client.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
    name: 'Spring',
  });
  campaignId = made.campaign.campaignId;
  const { data: list } = await client.post<{ group: { subscriptionGroupId: string } }>(
    '/web-setup/contacts/subscription-groups',
    { name: 'News' },
  );
  groupId = list.group.subscriptionGroupId;
  const mail = {
    from: 'news@shop.test',
    subject: 'News',
    html: '<p>{{company_address_html}}{{unsubscribe_email_html}}</p>',
    campaignId,
  };
  const refused = { ...mail, to: UNKNOWN, subscriptionGroupId: groupId };
  expect((await client.call('POST', '/marketing/send', { body: refused })).status).toBe(403);
  expect((await client.call('POST', '/marketing/send', { body: { ...mail, to: DELIVERED } })).status).toBe(
    202,
  );
  await eventually('the delivery', async () =>
    (await client.allEvents()).some(({ event }) => event === 'email_delivered') ? true : null,
  );
});
afterAll(() => daemon.stop());

describe('GET /web-setup/messages', () => {
  it('has the due time of a scheduled message', async () => {
    const scheduledAt = new Date(Date.now() + DAY).toISOString();
    const html = '<p>{{company_address_html}}{{unsubscribe_email_html}}</p>';
    const body = { to: DELIVERED, from: 'news@shop.test', subject: 'Later', html, scheduledAt };
    const { data } = await client.call<{ jobId: string }>('POST', '/marketing/send', { body });
    const listed = await client.get<{ messages: object[] }>(`/web-setup/messages?jobId=${data.jobId}`);
    expect(listed.data.messages).toMatchObject([
      { status: 'scheduled', scheduledAt, nextAttemptAt: scheduledAt },
    ]);
  });
});

describe('GET /web-setup/messages by sender and subject', () => {
  it.each([
    ['subject=NEW', true],
    ['subject=newspaper', false],
    ['sender=news%40SHOP', true],
    ['sender=orders%40shop', false],
    ['sender=shop.test&subject=news', true],
    ['sender=shop.test&subject=N%25s', false],
  ])('is filtered by %s', async (query, found) => {
    const { data } = await client.get<{ messages: { subject: string }[] }>(`/web-setup/messages?${query}`);
    expect(data.messages.some(({ subject }) => subject === 'News')).toBe(found);
  });

  it.each(['sender', 'subject'])('rejects a %s of one character', async (field) => {
    const { status, error } = await client.get(`/web-setup/messages?${field}=a`);
    expect([status, error.details?.[0]?.field]).toEqual([400, field]);
  });
});

describe('GET /web-setup/messages by recipient', () => {
  const [name, host] = DELIVERED.split('@');
  it.each([
    [DELIVERED, true],
    [DELIVERED.toUpperCase(), true],
    [`Ada <${DELIVERED}>`, true],
    [emailIdentifier(DELIVERED), true],
    ['deliv', true],
    [`@${host?.toUpperCase()}`, true],
    [`${name}@`, true],
    ['ED@simul', true],
    [` ${name} `, true],
    ['deliv%', false],
    ['@example.net', false],
    // A complete address is the whole one: another one that ends with it is not found.
    [DELIVERED.slice(1), false],
  ])('finds %s: %s', async (recipient, found) => {
    const query = new URLSearchParams({ recipient }).toString();
    const { status, data } = await client.get<{ messages: { recipient: string }[] }>(
      `/web-setup/messages?${query}`,
    );
    expect(status).toBe(200);
    expect(data.messages.some((each) => each.recipient === DELIVERED)).toBe(found);
  });

  it.each(['', 'a', ' b '])('rejects "%s", which is shorter than two characters', async (recipient) => {
    const { status, error } = await client.get(
      `/web-setup/messages?recipient=${encodeURIComponent(recipient)}`,
    );
    expect([status, error.details?.[0]?.field]).toEqual([400, 'recipient']);
  });
});

describe('GET /web-setup/events', () => {
  it('has the fields of the request in the event of a refused send', async () => {
    const [refused] = (await feed(`recipient=${UNKNOWN}`)).events;
    expect(refused).toMatchObject({
      event: 'email_suppressed',
      reasonCode: 'CONSENT_REQUIRED',
      reason: 'not_subscribed',
      recipient: UNKNOWN,
      domainId: 'domain_1_mk',
      campaignId,
      subscriptionGroupId: groupId,
      useCase: 'mk',
      from: 'news@shop.test',
      subject: 'News',
    });
  });

  it.each([
    ['a recipient', () => `recipient=${UNKNOWN}`, ['email_suppressed']],
    ['another recipient', () => `recipient=${DELIVERED}`, ['email_sent', 'email_delivered']],
    ['a campaign', () => `campaignId=${campaignId}`, ['email_suppressed', 'email_sent', 'email_delivered']],
    ['a domain', () => 'domainId=domain_1_mk', ['email_suppressed', 'email_sent', 'email_delivered']],
    ['a status', () => 'status=delivered', ['email_sent', 'email_delivered']],
    ['another status', () => 'status=bounced', []],
    ['a kind', () => 'event=email_sent', ['email_sent']],
    ['nothing, from the beginning', () => 'lastKey=', ['email_suppressed', 'email_sent', 'email_delivered']],
  ])('is filtered by %s', async (_, query, expected) => {
    expect(await kinds(query())).toEqual(expected);
  });

  it.each([
    ['status=gone', 'status'],
    ['lastKey=x', 'lastKey'],
    ['from=yesterday', 'from'],
    ['from=2026-02-01T00:00:00Z&to=2026-01-31T23:59:59Z', 'from'],
  ])('refuses %s', async (query, field) => {
    const { status, text } = await client.call('GET', `/web-setup/events?${query}`);
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({
      reasonCode: 'VALIDATION_ERROR',
      error: { details: [{ field }] },
    });
  });
});
