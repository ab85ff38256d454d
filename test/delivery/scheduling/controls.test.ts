import { describe, expect, it } from 'vitest';
import type { QueueControlRow } from '../../../src/store/messages/queue-controls.ts';
import { createTestScheduling, recipientsOf, users } from './setup.ts';

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
    env.scheduler.readAgain();
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
    env.scheduler.readAgain();
    env.finish(2);
    env.announce();
    expect(env.started).toEqual([]);
    expect(env.onlySite().backlogSize(0)).toBe(0);
  });
});

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

  it('keeps messages whose lifetime ends', () => {
    const env = createTestScheduling({ connections: 1 });
    env.put(users(1), { expires_at: env.clock.now() + 1000 });
    env.controls.push(control({}));
    env.announce();
    env.clock.advance(5000);
    for (const site of env.sites.all())
      for (const key of site.waitingKeys()) Array.from(env.reader.expiring(key, site));
    expect(env.expired).toEqual([]);
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
