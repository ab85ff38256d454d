import { expect, it } from 'vitest';
import { DAY, HOUR, iso, SECOND } from '../../src/core/clock.ts';
import { granted } from '../support/refusal.ts';
import { startEndpoint } from '../support/webhook-endpoint.ts';
import { startWebhooks } from './setup.ts';

it('counts accepted and failed events of 24 hours by their time, and knows the last call', async () => {
  const { hook, webhooks, sent, sendDue, clock } = await startWebhooks();
  const statuses = [200, 200, 503];
  const endpoint = await startEndpoint(() => ({ status: statuses.shift() ?? 200 }));
  const { webhookId } = await hook(endpoint.url);
  expect(await webhooks.health('acct_one')).toEqual([
    {
      webhookId,
      last: null,
      succeeded: 0,
      failed: 0,
      since: iso(clock.now() - DAY),
      parts: Array.from({ length: 24 }, () => ({ succeeded: 0, failed: 0 })),
      waiting: 0,
      nextProbeAt: null,
    },
  ]);
  for (let n = 0; n < 3; n++) {
    await sent();
    await sendDue();
    clock.advance(HOUR - SECOND);
  }
  const [health] = await webhooks.health('acct_one', webhookId);
  expect(health).toMatchObject({
    succeeded: 2,
    failed: 1,
    waiting: 1,
    last: { succeeded: false, responseCode: 503, at: iso(clock.now() - HOUR + SECOND) },
  });
  expect(health?.parts.slice(-3)).toEqual([
    { succeeded: 1, failed: 0 },
    { succeeded: 1, failed: 0 },
    { succeeded: 0, failed: 1 },
  ]);
});

it('knows the last call of an endpoint that had none in 24 hours, and none of other accounts', async () => {
  const { hook, webhooks, sent, sendDue, clock } = await startWebhooks();
  const endpoint = await startEndpoint(() => ({ status: 200 }));
  await hook(endpoint.url);
  await sent();
  await sendDue();
  clock.advance(2 * DAY);
  expect(await webhooks.health('acct_one')).toMatchObject([
    { succeeded: 0, failed: 0, last: { succeeded: true, responseCode: 200 } },
  ]);
  expect(await webhooks.health('acct_two')).toEqual([]);
});

it('states when an overloaded endpoint is called again', async () => {
  const { webhooks, hook, sent, sendDue, clock } = await startWebhooks();
  const endpoint = await startEndpoint(() => ({ status: 429 }));
  await hook(endpoint.url);
  await sent();
  await sendDue();
  const [health] = granted(await webhooks.health('acct_one'));
  expect(Date.parse(health?.nextProbeAt ?? '')).toBeGreaterThan(clock.now());
});

it('counts the newest deliveries only, of the period that these have', async () => {
  const { hook, webhooks, tables, writer, clock } = await startWebhooks();
  const { webhookId } = await hook('https://receiver.example/hooks');
  const number = tables.webhooks.get('acct_one', webhookId)?.number ?? 0;
  const begin = clock.now();
  await writer.run((tx) => {
    for (let n = 1; n <= 20_001; n++) {
      const delivery = { webhook: number, eventSeq: n, deliveryId: `whd_${n}`, at: begin + n };
      tx.webhookDeliveries.insert(delivery);
      const row = tx.webhookDeliveries.get(number, n);
      if (row !== null)
        tx.webhookDeliveries.record({ ...row, state: 'succeeded', attempts: 1, attempted_at: begin + n });
    }
  });
  clock.advance(HOUR);
  // Every event of the period has a number: the first one is of an earlier time.
  const [health] = await webhooks.health('acct_one');
  expect(health).toMatchObject({ succeeded: 20_000, since: iso(begin + 2), waiting: 0 });
});
