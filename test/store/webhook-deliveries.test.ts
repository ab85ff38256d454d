import { describe, expect, it } from 'vitest';
import { DAY, MINUTE } from '../../src/core/clock.ts';
import type { WebhookRow } from '../../src/store/webhooks.ts';
import { insertAccount, startStore } from '../support/store.ts';

type Store = ReturnType<typeof startStore>;

function addWebhook({ tables, ids, clock }: Store, row: Partial<WebhookRow> = {}): number {
  const { number: _, ...columns } = row;
  return tables.webhooks.insert({
    webhook_id: ids.make('webhook'),
    account_id: 'acct_one',
    name: 'Receiver',
    description: null,
    url: 'https://receiver.example/hook',
    events: '["*"]',
    format: 'postrider',
    filter: null,
    headers: null,
    is_active: 1,
    off_reason: null,
    failing_since: null,
    created_at: clock.now(),
    updated_at: clock.now(),
    ...columns,
  });
}

/** An event with a delivery of it for each webhook; returns its seq. */
function addEvent(
  { tables, ids, clock }: Store,
  webhooks: number[],
  messageSeq: number | null = null,
): number {
  const eventSeq = tables.events.insert({
    event_id: ids.make('evt'),
    account_id: 'acct_one',
    kind: 'email_sent',
    at: clock.now(),
    message_seq: messageSeq,
    domain_id: null,
    data: '{}',
  });
  for (const webhook of webhooks)
    tables.webhookDeliveries.insert({ webhook, eventSeq, deliveryId: ids.make('whd'), at: clock.now() });
  return eventSeq;
}

/** Deletes the events before a time. */
function purgeEvents({ tables, clock }: Store, before: number) {
  return tables.retention.events.purge({ from: 0, before, now: clock.now(), rows: 10 });
}

function settle(store: Store, webhook: number, eventSeq: number, columns: object): void {
  const row = store.tables.webhookDeliveries.get(webhook, eventSeq);
  if (row === null) throw new Error('there is no such delivery');
  store.tables.webhookDeliveries.record({ ...row, ...columns });
}

describe('the webhooks that subscribe to an event', () => {
  it.each([
    ['subscribes to all kinds', { events: '["*"]' }, true],
    ['subscribes to this kind', { events: '["email_opened","email_sent"]' }, true],
    ['subscribes to other kinds', { events: '["email_opened"]' }, false],
    [
      'subscribes to kinds whose names contain it',
      { events: '["email_sent_twice","not_email_sent"]' },
      false,
    ],
    ['is not active', { is_active: 0 as const }, false],
    ['is of another account', { account_id: 'acct_two' }, false],
  ])('depend on the webhook: it %s', (_, row, isSubscribed) => {
    const store = startStore();
    insertAccount(store.tables, 'acct_two', 1);
    const number = addWebhook(store, row);
    expect(store.tables.webhooks.subscribed('acct_one', 'email_sent')).toEqual(isSubscribed ? [number] : []);
  });
});

describe('deliveries', () => {
  it('are ready in the order of the events, webhook by webhook', () => {
    const store = startStore();
    const { webhookDeliveries } = store.tables;
    const [one, two] = [addWebhook(store), addWebhook(store)];
    const first = addEvent(store, [one, two]);
    const second = addEvent(store, [two]);
    expect(webhookDeliveries.nextWithReady(0)).toBe(one);
    expect(webhookDeliveries.nextWithReady(one)).toBe(two);
    expect(webhookDeliveries.nextWithReady(two)).toBe(null);
    expect(webhookDeliveries.ready(two, 10).map((row) => row.event_seq)).toEqual([first, second]);
    expect(webhookDeliveries.ready(two, 1).map((row) => row.event_seq)).toEqual([first]);
  });

  it('wait until their time, and are made ready then', () => {
    const store = startStore();
    const { webhookDeliveries } = store.tables;
    const webhook = addWebhook(store);
    const event = addEvent(store, [webhook]);
    const due = store.clock.now() + MINUTE;
    settle(store, webhook, event, { state: 'waiting', due_at: due, failures: 3 });
    expect(webhookDeliveries.nextWithReady(0)).toBe(null);
    expect(webhookDeliveries.nextDue()).toBe(due);
    expect(webhookDeliveries.promote(due - 1, 10)).toBe(0);
    expect(webhookDeliveries.promote(due, 10)).toBe(1);
    expect(webhookDeliveries.ready(webhook, 10)).toMatchObject([{ event_seq: event, failures: 3 }]);
  });

  it.each([
    ['waiting: continue their schedule', 'waiting', 3],
    ['failed: begin their schedule again', 'failed', 0],
    ['succeeded: begin their schedule again', 'succeeded', 0],
  ])('become ready again. If they were %s', (_, state, failures) => {
    const store = startStore();
    const webhook = addWebhook(store);
    const event = addEvent(store, [webhook]);
    settle(store, webhook, event, { state, failures: 3, attempts: 3 });
    store.tables.webhookDeliveries.makeReady(webhook, event, store.clock.now());
    expect(store.tables.webhookDeliveries.get(webhook, event)).toMatchObject({
      state: 'ready',
      attempts: 3,
      failures,
    });
  });

  it('are listed newest first, by state too, page by page', () => {
    const store = startStore();
    const webhook = addWebhook(store);
    const other = addWebhook(store);
    const seqs = Array.from({ length: 6 }, () => addEvent(store, [webhook, other]));
    const states = ['succeeded', 'failed', 'waiting', 'ready', 'failed', 'succeeded'] as const;
    for (const [index, state] of states.entries()) settle(store, webhook, seqs[index] ?? 0, { state });
    const list = (wanted: (typeof states)[number][], beforeSeq = Number.MAX_SAFE_INTEGER, limit = 10) =>
      store.tables.webhookDeliveries
        .list({ webhook, states: wanted, beforeSeq, limit })
        .rows.map((row) => seqs.indexOf(row.event_seq));
    expect(list([])).toEqual([5, 4, 3, 2, 1, 0]);
    expect(list(['failed'])).toEqual([4, 1]);
    expect(list(['succeeded'])).toEqual([5, 0]);
    expect(list(['ready', 'waiting'])).toEqual([3, 2]);
    expect(list(['ready', 'waiting'], undefined, 1)).toEqual([3]);
    expect(list([], seqs[3], 2)).toEqual([2, 1]);
  });

  it('have the id and kind of their event until it is deleted', () => {
    const store = startStore();
    const webhook = addWebhook(store);
    const event = addEvent(store, [webhook]);
    const { delivery_id: id = '' } = store.tables.webhookDeliveries.get(webhook, event) ?? {};
    expect(store.tables.webhookDeliveries.byId(webhook, id)).toMatchObject({ kind: 'email_sent' });
    expect(store.tables.webhookDeliveries.byId(webhook + 1, id)).toBe(null);
    purgeEvents(store, store.clock.now() + 1);
    expect(store.tables.webhookDeliveries.byId(webhook, id)).toMatchObject({ event_id: null, kind: null });
  });
});

describe('retention of deliveries', () => {
  it('deletes those of deleted events only', () => {
    const store = startStore();
    const webhook = addWebhook(store);
    const old = [addEvent(store, [webhook]), addEvent(store, [webhook])];
    store.clock.advance(DAY);
    const young = addEvent(store, [webhook]);
    const { end } = purgeEvents(store, store.clock.now());
    const { start, purge } = store.tables.retention.webhookDeliveries;
    const { removed, next } = purge(start, { end, rows: 1 });
    expect([removed, next]).toEqual([1, { webhook, eventSeq: old[1] }]);
    expect(purge(next ?? start, { end, rows: 10 }).removed).toBe(1);
    expect(purge(start, { end, rows: 10 }).removed).toBe(0);
    expect(old.map((seq) => store.tables.webhookDeliveries.get(webhook, seq))).toEqual([null, null]);
    expect(store.tables.webhookDeliveries.get(webhook, young)).not.toBe(null);
  });

  it('deletes those of a deleted webhook, whose number is not assigned again', () => {
    const store = startStore();
    const { webhooks, webhookDeliveries } = store.tables;
    const kept = addWebhook(store);
    const gone = addWebhook(store);
    webhooks.addSecret(gone, Buffer.from('sealed'));
    const event = addEvent(store, [kept, gone]);
    webhooks.remove(gone);
    expect(webhooks.secrets(gone, 0)).toEqual([]);
    expect(webhookDeliveries.hasOrphans()).toBe(true);
    expect(webhookDeliveries.purgeOrphans(10)).toBe(1);
    expect(webhookDeliveries.hasOrphans()).toBe(false);
    expect(webhookDeliveries.get(kept, event)).not.toBe(null);
    expect(addWebhook(store)).toBeGreaterThan(gone);
  });
});

describe('the first event at a time', () => {
  it.each([
    ['before the first', -5, 0],
    ['at an event', 2, 2],
    ['between two', 2.5, 3],
    ['after the last', 99, 10],
  ])('%s', (_, minutes, index) => {
    const store = startStore();
    const start = store.clock.now();
    const seqs = Array.from({ length: 10 }, () => {
      const seq = addEvent(store, []);
      store.clock.advance(MINUTE);
      return seq;
    });
    // A gap, as after a purge or a rollback.
    store.db.prepare('DELETE FROM events WHERE seq = ?').run(seqs[5]);
    const expected = seqs[index] ?? (seqs[9] ?? 0) + 1;
    expect(store.tables.events.firstSeqAt(start + minutes * MINUTE)).toBe(expected);
  });

  it('without any event', () => {
    expect(startStore().tables.events.firstSeqAt(0)).toBe(1);
  });
});

describe('secrets', () => {
  it('sign until they expire, the current one first', () => {
    const store = startStore();
    const { webhooks } = store.tables;
    const now = store.clock.now();
    const number = addWebhook(store);
    webhooks.addSecret(number, Buffer.from('one'));
    webhooks.retireSecret(number, now + DAY, now);
    webhooks.addSecret(number, Buffer.from('two'));
    const names = (at: number) => webhooks.secrets(number, at).map(({ secret }) => secret.toString());
    expect(names(now)).toEqual(['two', 'one']);
    expect(names(now + DAY - 1)).toEqual(['two', 'one']);
    expect(names(now + DAY)).toEqual(['two']);
    webhooks.retireSecret(number, now + 2 * DAY, now + DAY);
    webhooks.addSecret(number, Buffer.from('three'));
    expect(store.db.prepare('SELECT count(*) FROM webhook_secrets').pluck().get()).toBe(2);
  });
});
