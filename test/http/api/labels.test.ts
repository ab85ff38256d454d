import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { eventually } from '../../support/eventually.ts';
import { type InProcess, PLATFORM, startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomain } from '../../support/store.ts';

/** Tags and metadata of messages, from the send to lists, events and statistics. */
const TO = `delivered@simulator.${PLATFORM}`;
const HTML = '<p>{{company_address_html}} {{unsubscribe_email_html}}</p>';
const MAIL = { to: TO, from: 'orders@sender.test', subject: 'Hi', html: HTML };

let daemon: InProcess;
let api: ApiClient;

interface Labelled {
  messageId: string;
  tags?: string[];
  metadata?: Record<string, string>;
}
interface Events {
  events: (Labelled & { event: string })[];
}

const send = (changes: object) => api.post<Labelled>('/transactional/send', { ...MAIL, ...changes });
const messages = async (query: string) =>
  (await api.get<{ messages: Labelled[] }>(`/web-setup/messages?${query}`)).data.messages;
const events = async (query: string) => (await api.get<Events>(`/web-setup/events?${query}`)).data.events;

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
});
afterAll(() => daemon.stop());

describe('tags and metadata of a send', () => {
  it('are in the message and its events, and filter both', async () => {
    const labels = { tags: ['invoice', 'a, b ', 'ü'], metadata: { orderId: '10042', note: '' } };
    const { data } = await send(labels);
    await send({ tags: ['other'] });
    await send({});
    expect(await messages('tag=invoice')).toMatchObject([{ messageId: data.messageId, ...labels }]);
    expect(await messages(`tag=${encodeURIComponent('a, b ')}&status=queued,sending,delivered`)).toHaveLength(
      1,
    );
    expect(await messages('tag=INVOICE')).toEqual([]);
    await eventually('the delivery', async () =>
      (await events('tag=invoice')).some(({ event }) => event === 'email_delivered') ? true : null,
    );
    for (const event of await events('tag=invoice'))
      expect(event).toMatchObject({ messageId: data.messageId, ...labels });
    const [untagged] = await events('event=email_sent&tag=other');
    expect([untagged?.tags, untagged?.metadata]).toEqual([['other'], undefined]);
  });

  it('are in those of a batch, and in the event of a refused send', async () => {
    await api.post('/web-setup/suppressions', { email: 'gone@reader.test' });
    await api.post('/transactional/send-batch', {
      messages: [
        { ...MAIL, tags: ['batch'] },
        { ...MAIL, to: 'gone@reader.test', tags: ['refused'], metadata: { a: 'b' } },
      ],
    });
    expect(await messages('tag=batch')).toHaveLength(1);
    expect(await events('tag=refused')).toMatchObject([
      { event: 'email_suppressed', tags: ['refused'], metadata: { a: 'b' } },
    ]);
  });

  it('are counted by tag', async () => {
    await send({ to: 'a@reader.test', tags: ['counted', 'twice'] });
    await send({ to: ['b@reader.test', 'c@reader.test'], tags: ['counted', 'counted'] });
    const { data } = await api.get<{ series: { points: { accepted: number }[] }[] }>(
      '/web-setup/statistics?tag=counted',
    );
    expect(data.series[0]?.points.reduce((sum, { accepted }) => sum + accepted, 0)).toBe(3);
    const none = await api.get<{ series: object[] }>('/web-setup/statistics?tag=never');
    expect(none.data.series).toEqual([]);
    const both = await api.get('/web-setup/statistics?tag=counted&by=domain');
    expect([both.status, both.error.details?.[0]?.field]).toEqual([400, 'by']);
  });

  it.each<[sent: object, field: string]>([
    [{ tags: Array.from({ length: 11 }, (_, n) => `t${n}`) }, 'tags'],
    [{ tags: ['a', ''] }, 'tags[1]'],
    [{ tags: ['x'.repeat(51)] }, 'tags[0]'],
    [{ tags: ['a\u0000'] }, 'tags[0]'],
    [{ tags: 'a' }, 'tags'],
    [{ tags: [1] }, 'tags[0]'],
    [{ metadata: { a: 1 } }, 'metadata.a'],
    [{ metadata: { a: 'x'.repeat(2048) } }, 'metadata'],
    [{ metadata: { '': 'x' } }, 'metadata.'],
    [{ metadata: ['x'] }, 'metadata'],
  ])('are refused: %j', async (sent, field) => {
    const { status, error } = await send(sent);
    expect([status, error.code, error.details?.map((detail) => detail.field)]).toEqual([
      400,
      'VALIDATION_ERROR',
      [field],
    ]);
  });

  it('go with the messages of a campaign', async () => {
    await api.post('/web-setup/contacts', { email: TO, consentMethod: 'web_form' });
    const { data: made } = await api.post<{ group: { subscriptionGroupId: string } }>(
      '/web-setup/contacts/subscription-groups',
      { name: 'News' },
    );
    const { subscriptionGroupId } = made.group;
    const path = `/web-setup/contacts/subscription-groups/${subscriptionGroupId}/subscriptions`;
    await api.post(path, { email: TO, consentMethod: 'web_form' });
    const { data } = await api.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
      name: 'May',
    });
    const sent = await api.post(`/web-setup/campaigns/${data.campaign.campaignId}/send`, {
      from: 'n@news.test',
      subject: 'News',
      html: HTML,
      subscriptionGroupId,
      tags: ['spring'],
      metadata: { tenant: 'north' },
    });
    expect(sent.status, sent.text).toBeLessThan(300);
    const [message] = await eventually('the message', async () => {
      const found = await messages('tag=spring');
      return found.length > 0 ? found : null;
    });
    expect(message?.metadata).toEqual({ tenant: 'north' });
  });

  it('are removed by the erasure of the recipient', async () => {
    const to = 'erased@reader.test';
    await api.post('/web-setup/contacts', { email: to });
    const { data } = await send({ to, tags: ['personal'], metadata: { name: 'Ann' } });
    expect(await messages('tag=personal')).toHaveLength(1);
    await api.call('DELETE', `/web-setup/contacts/email:${to}`);
    await eventually('the erasure', async () =>
      (await messages('tag=personal')).length === 0 ? true : null,
    );
    const message = daemon.tables.messages.byId(data.messageId);
    expect(message?.labels).toBeNull();
  });
});
