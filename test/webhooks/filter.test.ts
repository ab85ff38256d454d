import { describe, expect, it } from 'vitest';
import type { WebhookFilter } from '../../src/events/webhook-filter.ts';
import { granted } from '../support/refusal.ts';
import { insertDomain } from '../support/store.ts';
import { startEndpoint } from '../support/webhook-endpoint.ts';
import { startWebhooks } from './setup.ts';

/* Which events the filter of a webhook lets through. */

const LABELS = JSON.stringify({ tags: ['welcome', 'eu'] });

async function start() {
  const env = await startWebhooks();
  const endpoint = await startEndpoint();
  insertDomain(
    env.tables,
    { account_id: 'acct_one', domain_id: 'domain_news', name: 'news.example', use_case: 'mk' },
    env.clock.now(),
  );
  const hook = (filter: WebhookFilter | null) =>
    env.webhooks.create('acct_one', { url: endpoint.url, events: '*', filter });
  return { ...env, endpoint, hook };
}

describe('the filter of a webhook', () => {
  it.each<[string, WebhookFilter | null, string[]]>([
    ['none', null, ['order', 'news', 'tagged', 'domain']],
    ['empty lists', { domains: [], tags: [] }, ['order', 'news', 'tagged', 'domain']],
    ['a domain', { domains: ['News.Example.'] }, ['news', 'domain']],
    ['two domains', { domains: ['news.example', 'example.com'] }, ['order', 'news', 'tagged', 'domain']],
    ['a stream', { streams: ['marketing'] }, ['news', 'domain']],
    ['a tag', { tags: ['other', 'welcome'] }, ['tagged']],
    ['a stream and a tag', { streams: ['marketing'], tags: ['welcome'] }, []],
  ])('%s', async (_, filter, expected) => {
    const { hook, sent, sendDue, endpoint, tables, writer, recorder, webhooks, clock } = await start();
    const created = granted(await hook(filter));
    const from = clock.now();
    await sent({ subject: 'order' });
    await sent({ subject: 'news', use_case: 'mk', domain_id: 'domain_news', from_address: 'a@news.example' });
    await sent({ subject: 'tagged', labels: LABELS });
    const domain = tables.domains.byId('domain_news');
    if (domain === null) throw new Error('no domain');
    const status = 'SUCCESS';
    await writer.run((tx) =>
      recorder.domain(tx, domain, 'domain_deleted', { status, previousStatus: status, failing: [] }),
    );
    await sendDue();
    const names = () =>
      endpoint.received.map(
        ({ json }) => (json as { data: { object: { subject?: string } } }).data.object.subject ?? 'domain',
      );
    expect(names().toSorted()).toEqual(expected.toSorted());
    // A replay has the events that the filter lets through, no others.
    const replay = { from, to: clock.now() + 1, which: 'all' as const };
    const { replayed } = granted(await webhooks.replay('acct_one', created.webhookId, replay));
    expect(replayed).toBe(expected.length);
  });

  it('is returned, replaced and removed', async () => {
    const { hook, webhooks } = await start();
    const { webhookId, filter } = granted(await hook({ domains: ['NEWS.example'], tags: ['a', 'a'] }));
    expect(filter).toEqual({ domains: ['news.example'], tags: ['a'] });
    const update = async (patch: object) =>
      granted(await webhooks.update('acct_one', webhookId, patch)).filter;
    expect(await update({ name: 'X' })).toEqual(filter);
    expect(await update({ filter: { streams: ['transactional'] } })).toEqual({ streams: ['transactional'] });
    expect(await update({ filter: null })).toBeUndefined();
  });

  it.each([['other.example'], ['not a domain']])('cannot have the domain %s', async (name) => {
    const { hook, webhooks } = await start();
    expect(await hook({ domains: ['news.example', name] })).toMatchObject({
      code: 'VALIDATION_ERROR',
      extras: { details: [{ field: 'filter.domains[1]' }] },
    });
    expect(webhooks.list('acct_one')).toEqual([]);
  });
});

describe('a message that its account cancelled', () => {
  it.each([
    ['postrider', ['email_failed']],
    ['postmark', []],
    ['sendgrid', []],
    ['mailgun', []],
  ] as const)('is in the format %s: %j', async (format, expected) => {
    const { webhooks, endpoint, sent, sendDue, writer, recorder, clock } = await start();
    const hook = granted(
      await webhooks.create('acct_one', { url: endpoint.url, events: ['email_failed'], format }),
    );
    const { seq } = await sent({ subject: 'order' });
    await writer.run((tx) => {
      const message = tx.messages.bySeq(seq);
      if (message === null) throw new Error('no message');
      return recorder.message(tx, message, { kind: 'email_failed', fields: { reason: 'cancelled' } });
    });
    await sendDue();
    expect(endpoint.received.map(({ json }) => (json as { type: string }).type)).toEqual(expected);
    const replay = { from: 0, to: clock.now() + 1, which: 'all' as const };
    expect(granted(await webhooks.replay('acct_one', hook.webhookId, replay)).replayed).toBe(expected.length);
  });
});
