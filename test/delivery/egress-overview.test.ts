import { expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import { storedObstacle } from '../../src/delivery/egress-overview.ts';
import { enqueue } from '../support/store.ts';
import { createTestEgress } from './source-addresses.ts';

/** A queued message to example.net, and an address of its pool whose warm-up begins later. */
function setup(settings: Record<string, string> = {}) {
  const env = createTestEgress(
    '[{ name = "new", address = "192.0.2.1", warmup = { started = "2026-12-24" } }, { name = "spare", address = "192.0.2.2", pools = ["spare"] }]',
    settings,
  );
  const { seq } = enqueue(env.tables, env.clock.now(), { recipient: 'a@example.net' });
  const obstacle = (of = seq) => {
    const queued = env.tables.queue.listed(of);
    if (queued === null) throw new Error('the message is not in the queue');
    return storedObstacle(env, queued);
  };
  return { ...env, seq, obstacle };
}

it('is the source address of the message', () => {
  expect(setup().obstacle()).toMatchObject({ kind: 'warmup' });
});

it('is none over a configured route, to which no warm-up applies', () => {
  const { obstacle } = setup({ 'delivery.routes': '[{ match = "example.net", host = "relay.example" }]' });
  expect(obstacle()).toBeNull();
});

it.each([
  ['another pool', { host: null, port: null, tls: null, pool: 'spare' }],
  ['another next hop', { host: 'relay.example', port: 25, tls: null, pool: null }],
])('is none after a reroute to %s', (_, reroute) => {
  const { tables, seq, obstacle } = setup();
  tables.queueReroutes.assign(seq, tables.queueReroutes.number(reroute));
  expect(obstacle()).toBeNull();
});

it('is the ramp of a new account', async () => {
  const { config, tables, writer, clock, obstacle } = setup();
  config.reputation.ramp = { messages: 1, factor: 2, days: 3 };
  const day = clock.now() - (clock.now() % DAY);
  await writer.run((tx) =>
    tx.reputationCounts.add(
      { day, accountId: 'acct_one', domainId: 'domain_one', source: '', provider: 'Google' },
      'delivered',
    ),
  );
  const { seq } = enqueue(tables, clock.now(), { recipient: 'a@example.net', priority: 1 });
  expect(obstacle(seq)).toMatchObject({ kind: 'ramp', until: day + DAY });
});
