import { describe, expect, it } from 'vitest';
import { MINUTE, SECOND } from '../../../src/core/clock.ts';
import { insertAccount } from '../../support/store.ts';
import { createTestDelivery, GOOD, users } from '../setup.ts';

/** Delivery with a profile for the sink. */
async function createShaped(limits: object) {
  const env = await createTestDelivery();
  const { shaping } = env.config.delivery;
  const defaults = shaping.at(-1);
  if (defaults === undefined) throw new Error('there is no default profile');
  env.config.delivery.shaping = [
    { ...defaults, name: 'sink', match: [GOOD], origin: 'configuration' as const, ...limits },
    ...shaping,
  ];
  const limitsNow = () => env.delivery.waits.siteLimits().find(({ site }) => site === 'sink via default');
  return { ...env, limitsNow };
}

describe('a site that replies that mail comes too fast', () => {
  it('is paused for the time that it names, then gets all mail, slower', async () => {
    const env = await createShaped({ connections: 4 });
    const { sink, put, delivery, clock, status, limitsNow } = env;
    sink.program({ script: { mail: '451 4.7.1 Too many messages, try again in 90 seconds' } });
    const sent = put(users(30));
    delivery.start();
    await expect.poll(() => limitsNow()?.level).toBe(1);
    await expect.poll(delivery.inFlight).toBe(0);
    const attempted = sink.sessions.flatMap(({ commands }) =>
      commands.filter((line) => line.startsWith('MAIL')),
    );
    // One message for each connection: the others wait in the queue without an attempt.
    expect(attempted.length).toBeLessThanOrEqual(4);
    expect(limitsNow()).toMatchObject({ connections: 2, level: 1 });
    expect(limitsNow()?.limitedMs).toBeGreaterThan(80 * SECOND);
    const waiting = sent.filter((message) => status(message) === 'queued');
    expect(waiting.length).toBeGreaterThanOrEqual(26);
    const [first] = waiting;
    if (first === undefined) throw new Error('no message waits');
    const queued = env.tables.queue.ready(first.seq);
    if (queued === null) throw new Error('the message is not in the queue');
    expect(delivery.waits.obstacle(queued)).toMatch(/asked to send less mail; next attempt at 2/);

    sink.program({ script: {} });
    clock.advance(95 * SECOND);
    // Time passes, so that the reduced rate does not matter; deferred messages come due.
    await expect
      .poll(() => {
        clock.advance(MINUTE);
        return sent.map(status);
      })
      .toEqual(sent.map(() => 'delivered'));
    expect(sink.count).toBe(30);
  });

  it('is still paused after a restart', async () => {
    const env = await createShaped({ connections: 2 });
    env.sink.program({ script: { greeting: { reply: '421 4.7.0 Too many connections', close: true } } });
    env.put(users(3));
    env.delivery.start();
    await expect.poll(() => env.limitsNow()?.level).toBe(1);
    await env.stop();
    const [row] = env.tables.siteLimits.ofSite('sink via default');
    expect(row).toMatchObject({ account: '', level: 1 });
    expect((row?.paused_until ?? 0) - env.clock.now()).toBeGreaterThan(50 * SECOND);
  });
});

describe('a reply about one sender', () => {
  it('slows its account alone', async () => {
    const env = await createShaped({ connections: 4 });
    const { sink, put, delivery, status, tables, clock } = env;
    insertAccount(tables, 'acct_bad', clock.now());
    env.addDomain('domain_bad', 'acct_bad');
    sink.program({
      script: {
        rcpt: (_, address) =>
          address.startsWith('bad')
            ? '421 4.7.28 unusual rate of unsolicited mail from your domain'
            : undefined,
      },
    });
    const bad = put(
      users(20).map((address) => `bad-${address}`),
      { account_id: 'acct_bad', domain_id: 'domain_bad' },
    );
    delivery.start();
    await expect.poll(() => env.limitsNow()?.accounts).toBe(1);
    await expect.poll(delivery.inFlight).toBe(0);
    const good = put(users(50));
    delivery.announce({ priority: 0, account_id: 'acct_one', destination: GOOD });
    await expect.poll(() => good.map(status)).toEqual(good.map(() => 'delivered'));
    expect(env.limitsNow()).toMatchObject({ level: 0, accounts: 1, connections: 4 });
    expect(bad.filter((message) => status(message) === 'queued').length).toBeGreaterThanOrEqual(16);
    const queued = tables.queue.ready(bad.at(-1)?.seq ?? 0);
    if (queued === null) throw new Error('the message is not in the queue');
    expect(delivery.waits.obstacle(queued)).toMatch(
      /asked to send less mail of this account; next attempt at 2/,
    );
  });
});

describe('a rate', () => {
  it('is kept by the messages of a site', async () => {
    const { sink, put, delivery, status, limitsNow } = await createShaped({ connections: 10, perSecond: 20 });
    const began = performance.now();
    const sent = put(users(60));
    delivery.start();
    await expect.poll(() => sent.map(status)).toEqual(sent.map(() => 'delivered'));
    // 20 immediately, then 20 in each second.
    const most = 20 + (20 * (performance.now() - began)) / SECOND;
    expect(sink.count).toBe(60);
    expect(60).toBeLessThanOrEqual(Math.ceil(most));
    expect(limitsNow()).toMatchObject({ perSecond: 20, level: 0 });
  });
});
