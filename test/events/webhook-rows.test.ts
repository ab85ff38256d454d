import { describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import { createIds } from '../../src/core/ids.ts';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { MESSAGE_EVENT_TYPES } from '../../src/events/event-types.ts';
import { createRecorder } from '../../src/events/record.ts';
import { createRetention } from '../../src/events/retention.ts';
import { kindOfCode } from '../../src/store/rows/row-keys.ts';
import { DOMAIN_EVENT_FIELDS, exampleEvent } from '../support/events.ts';
import { enqueue, insertAccount, startStore } from '../support/store.ts';

function start() {
  const store = startStore();
  insertAccount(store.tables, 'acct_two', 1);
  const due: number[] = [];
  const recorder = createRecorder(
    { clock: store.clock, ids: createIds(store.clock, systemRandom) },
    { onWebhookDue: (webhook) => due.push(webhook) },
  );
  const addWebhook = (accountId: string, ...events: string[]) =>
    store.tables.webhooks.insert({
      webhook_id: store.ids.make('webhook'),
      account_id: accountId,
      name: 'Receiver',
      description: null,
      url: 'https://receiver.example/hook',
      events: JSON.stringify(events),
      format: 'postrider',
      filter: null,
      headers: null,
      is_active: 1,
      off_reason: null,
      failing_since: null,
      created_at: 1,
      updated_at: 1,
    });
  const rows = () =>
    store.db
      .prepare<[], { kind_code: number; webhook: number; delivery_id: string; state: string }>(`
        SELECT d.webhook, e.kind_code, d.delivery_id, d.state, d.attempts FROM webhook_deliveries d
        JOIN events e ON e.seq = d.event_seq ORDER BY d.webhook, d.event_seq`)
      .all()
      .map(({ kind_code, ...row }) => ({ ...row, kind: kindOfCode(kind_code) }));
  const log = createLog({ level: 'silent', hashAddresses: true });
  return { ...store, recorder, due, addWebhook, rows, log };
}

describe('an event', () => {
  it('has a delivery for each webhook of its account that subscribes to its kind', async () => {
    const { tables, writer, recorder, clock, due, addWebhook, rows } = start();
    const all = addWebhook('acct_one', '*');
    const sent = addWebhook('acct_one', 'email_sent', 'email_opened');
    addWebhook('acct_one', 'email_clicked');
    addWebhook('acct_two', '*');
    await writer.run(
      (unit) => void recorder.message(unit, enqueue(tables, clock.now()), exampleEvent('email_sent')),
    );
    const row = { kind: 'email_sent', state: 'ready', attempts: 0 };
    expect(rows()).toMatchObject([
      { webhook: all, ...row, delivery_id: expect.stringMatching(/^whd_\d+_[0-9a-z]{12}$/) },
      { webhook: sent, ...row },
    ]);
    expect(due).toEqual([all, sent]);
  });

  it('of a domain, of a refused send and of an opt-out has deliveries as well', async () => {
    const { tables, writer, recorder, addWebhook, rows } = start();
    addWebhook('acct_one', '*');
    const domain = tables.domains.byId('domain_one');
    if (domain === null) throw new Error('the domain is missing');
    const account = { accountId: 'acct_one', domainId: null };
    await writer.run((unit) => {
      recorder.domain(unit, domain, 'domain_verified', DOMAIN_EVENT_FIELDS);
      recorder.refusedSend(unit, { ...account, fields: MESSAGE_EVENT_TYPES.email_suppressed.example });
      recorder.optedOut(unit, { ...account, fields: { method: 'api' } });
    });
    expect(rows()).toMatchObject([
      { kind: 'domain_verified' },
      { kind: 'email_suppressed' },
      { kind: 'email_unsubscribed' },
    ]);
  });

  it('has no delivery when its unit of work is rolled back', async () => {
    const { tables, writer, recorder, clock, addWebhook, rows } = start();
    addWebhook('acct_one', '*');
    const rolledBack = writer.run((unit) => {
      recorder.message(unit, enqueue(tables, clock.now()), exampleEvent('email_sent'));
      throw new Error('undo');
    });
    await expect(rolledBack).rejects.toThrow('undo');
    expect(rows()).toEqual([]);
  });

  it('that is not recorded has no delivery', async () => {
    const { tables, writer, recorder, clock, addWebhook, rows } = start();
    addWebhook('acct_one', '*');
    await writer.run(
      (unit) => void recorder.message(unit, enqueue(tables, clock.now()), exampleEvent('email_delivered')),
    );
    expect(rows()).toEqual([]);
  });
});

describe('retention', () => {
  it('deletes deliveries together with their events', async () => {
    const { tables, writer, recorder, clock, log, addWebhook, rows } = start();
    addWebhook('acct_one', '*');
    const record = () =>
      writer.run(
        (unit) => void recorder.message(unit, enqueue(tables, clock.now()), exampleEvent('email_sent')),
      );
    await record();
    clock.advance(91 * DAY);
    await record();
    await createRetention({
      clock,
      log,
      tables,
      writer,
      config: { limits: { bodyDays: 7, eventDays: 90, inboundDays: 30 } },
    }).run();
    expect(rows()).toHaveLength(1);
  });
});
