import { describe, expect, it } from 'vitest';
import { DAY, HOUR, SECOND } from '../../../src/core/clock.ts';
import type { EgressObstacle } from '../../../src/delivery/source-address.ts';
import type { QueueControlRow } from '../../../src/store/messages/queue-controls.ts';
import { createTestScheduling, recipientsOf, users } from './setup.ts';

const warmupLimit = (until: number): EgressObstacle => ({
  kind: 'warmup',
  until,
  text: "waits for tomorrow's warm-up quota of 192.0.2.1 at one.test (50 of 50 used)",
});

const control = (changes: Partial<QueueControlRow>): QueueControlRow => ({
  scope: 'destination',
  target: 'one.test',
  action: 'pause',
  reason: 'maintenance',
  until: null,
  created_at: 0,
  created_by: 'test',
  ...changes,
});

describe.each([
  { scope: 'destination', target: 'one.test' },
  { scope: 'account', target: 'acct_one' },
  { scope: 'pool', target: 'default' },
  { scope: 'site', target: 'test' },
  { scope: 'site', target: 'test via default' },
] as const)('a pause of $scope $target', (target) => {
  it('starts no delivery, and all of them once it ends', () => {
    const env = createTestScheduling({ connections: 50 });
    env.controls.push(control(target));
    env.put(users(20));
    env.announce();
    expect(env.started).toEqual([]);
    env.controls.length = 0;
    env.dispatcher.readAgain();
    env.announce();
    expect(recipientsOf(env.started)).toEqual(users(20));
  });

  it('also stops messages that were read ahead', () => {
    const env = createTestScheduling({ connections: 2 });
    env.put(users(20));
    env.announce();
    expect(env.started).toHaveLength(2);
    expect(env.onlySite().backlogSize(0)).toBeGreaterThan(0);
    env.controls.push(control(target));
    env.dispatcher.readAgain();
    env.finish(2);
    env.announce();
    expect(env.started).toEqual([]);
    expect(env.onlySite().backlogSize(0)).toBe(0);
  });

  it('keeps messages that expire while they also wait for a source address, and tries them once it ends', async () => {
    let isLimited = true;
    const env = createTestScheduling({
      egressObstacle: () => (isLimited ? warmupLimit(env.clock.now() + DAY) : null),
    });
    env.put(users(2), { expires_at: env.clock.now() + HOUR });
    env.announce();
    env.controls.push(control(target));
    env.dispatcher.readAgain();
    env.clock.advance(2 * HOUR);
    await searchExpired(env);
    expect(env.expired).toEqual([]);
    isLimited = false;
    env.controls.length = 0;
    env.dispatcher.readAgain();
    await env.runScan();
    expect(recipientsOf(env.started)).toEqual(users(2));
    expect(env.expired).toEqual([]);
  });

  it('keeps messages that expire while their site is suspended', async () => {
    const env = createTestScheduling({ connections: 2 });
    env.put(users(6), { expires_at: env.clock.now() + 20 * SECOND });
    env.announce();
    env.failAll();
    expect(env.onlySite().isSuspended()).toBe(true);
    env.controls.push(control(target));
    env.dispatcher.readAgain();
    env.clock.advance(31 * SECOND);
    await searchExpired(env);
    expect(env.expired).toEqual([]);
  });
});

describe('a pause of an egress pool', () => {
  const pause = control({ scope: 'pool', target: 'default' });

  it('keeps messages whose destination has no route', () => {
    const env = createTestScheduling({
      routeOf: () => ({ kind: 'failure', failure: 'dns-trouble', route: null, ttl: 60 }),
    });
    env.controls.push(pause);
    env.put(users(1));
    env.announce();
    expect(env.unroutable).toEqual([]);
    env.controls.length = 0;
    env.announce();
    expect(env.unroutable).toEqual(users(1));
  });

  it('keeps expired messages of a key that waits at the suspended site of another pool', async () => {
    const env = createTestScheduling({ connections: 1, poolOf: (region) => region });
    env.addDomain('domain_paused', 'paused');
    env.addDomain('domain_other', 'other');
    const expiring = { expires_at: env.clock.now() + 20 * SECOND };
    env.put(['a@one.test', 'b@one.test', 'c@one.test'], { domain_id: 'domain_other', ...expiring });
    env.put(['p@one.test'], { domain_id: 'domain_paused', ...expiring });
    env.controls.push(control({ scope: 'pool', target: 'paused' }));
    env.announce();
    for (let n = 0; n < 2; n++) env.failAll();
    expect(env.onlySite().isSuspended()).toBe(true);
    env.clock.advance(31 * SECOND);
    await searchExpired(env);
    expect(env.expired).toContain('c@one.test');
    expect(env.expired).not.toContain('p@one.test');
  });
});

/** The search for expired mail begins every 30 seconds. */
async function searchExpired(env: ReturnType<typeof createTestScheduling>): Promise<void> {
  for (let n = 0; n < 3; n++) {
    await env.runScan();
    env.clock.advance(31 * SECOND);
  }
}

describe('a pause', () => {
  it('does not concern other destinations and accounts', () => {
    const env = createTestScheduling({ connections: 50 });
    env.addAccount('acct_two', 'domain_two');
    env.controls.push(control({ scope: 'account', target: 'acct_two' }));
    env.controls.push(control({ target: 'two.test' }));
    env.put(['a@one.test']);
    env.put(['b@one.test'], { account_id: 'acct_two', domain_id: 'domain_two' });
    env.put(['c@two.test']);
    env.announce();
    env.announce({ account_id: 'acct_two' });
    env.announce({ destination: 'two.test' });
    expect(recipientsOf(env.started)).toEqual(['a@one.test']);
  });

  it('keeps messages whose lifetime ends', async () => {
    const env = createTestScheduling({ connections: 1 });
    env.put(users(1), { expires_at: env.clock.now() + 1000 });
    env.controls.push(control({}));
    env.announce();
    env.clock.advance(5000);
    await searchExpired(env);
    expect([env.started, env.expired]).toEqual([[], []]);
  });
});

describe('a rejected destination', () => {
  it('passes its messages to the local attempts, and those of other destinations to their sites', () => {
    const env = createTestScheduling({ connections: 50 });
    env.controls.push(control({ action: 'bounce' }));
    env.put(users(3));
    env.put(['z@two.test']);
    env.announce();
    env.announce({ destination: 'two.test' });
    expect(env.rejected).toEqual(users(3));
    expect(recipientsOf(env.started)).toEqual(['z@two.test']);
  });
});
