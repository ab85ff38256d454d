import { describe, expect, it } from 'vitest';
import { DAY, HOUR, SECOND } from '../../../src/core/clock.ts';
import type { EgressObstacle } from '../../../src/delivery/source-address.ts';
import { createTestScheduling, recipientsOf, users } from './setup.ts';

const obstacle = (until: number): EgressObstacle => ({
  kind: 'warmup',
  until,
  text: "waits for tomorrow's warm-up quota of 192.0.2.1 at one.test (50 of 50 used)",
});

describe('mail that waits for a source address', () => {
  it('stays ready in the queue, is not read for some seconds, and is sent when the address is free', () => {
    let isBlocked = true;
    let asked = 0;
    const env = createTestScheduling({
      egressObstacle: () => {
        asked++;
        return isBlocked ? obstacle(env.clock.now() + DAY) : null;
      },
    });
    env.put(users(5));
    env.announce();
    expect(env.started).toEqual([]);
    expect(asked).toBe(1);
    env.announce();
    expect(asked).toBe(1);
    expect(env.claims.count()).toBe(0);
    isBlocked = false;
    env.clock.advance(5 * SECOND);
    env.announce();
    expect(recipientsOf(env.started)).toEqual(users(2));
  });

  it('does not delay mail of other keys', () => {
    const env = createTestScheduling({
      egressObstacle: ({ provider }) => (provider === 'one.test' ? obstacle(env.clock.now() + DAY) : null),
    });
    env.put(users(3));
    env.put(['a@two.test']);
    env.announce();
    env.announce({ destination: 'two.test' });
    expect(recipientsOf(env.started)).toEqual(['a@two.test']);
  });

  it('because its domain is new is put off one by one, and mail of other domains behind it is sent', () => {
    const env = createTestScheduling({
      egressObstacle: ({ sender }) =>
        sender?.domain_id === 'domain_new'
          ? { ...obstacle(env.clock.now() + HOUR), kind: 'ramp', isOfDomain: true }
          : null,
    });
    env.put(['new@one.test'], { domain_id: 'domain_new' });
    env.put(['old@one.test']);
    env.announce();
    expect(env.postponed).toEqual([{ recipient: 'new@one.test', waitMs: HOUR }]);
    expect(recipientsOf(env.started)).toEqual(['old@one.test']);
  });

  it('is put off one by one when the mail of a key may leave through several pools', () => {
    const env = createTestScheduling({
      poolCount: 2,
      egressObstacle: () => obstacle(env.clock.now() + DAY),
    });
    env.put(users(2), { expires_at: env.clock.now() + HOUR });
    env.announce();
    expect(env.postponed).toEqual(users(2).map((recipient) => ({ recipient, waitMs: HOUR })));
  });

  it('fails when it expires, also behind mail that expires later, with what it waited for', async () => {
    const env = createTestScheduling({ egressObstacle: () => obstacle(env.clock.now() + DAY) });
    env.put(users(60), { expires_at: env.clock.now() + 2 * DAY });
    env.put(users(1, 'early'), { expires_at: env.clock.now() + HOUR });
    await env.runScan();
    env.clock.advance(2 * HOUR);
    for (let n = 0; n < 3; n++) {
      await env.runScan();
      // The search for expired mail begins every 30 seconds.
      env.clock.advance(31 * SECOND);
    }
    expect(env.expired).toEqual(users(1, 'early'));
  });

  it('tries expired mail once when an address can send it', () => {
    let isBlocked = true;
    const env = createTestScheduling({
      egressObstacle: () => (isBlocked ? obstacle(env.clock.now() + DAY) : null),
    });
    env.put(users(1), { expires_at: env.clock.now() + HOUR });
    env.announce();
    env.clock.advance(DAY);
    isBlocked = false;
    env.announce();
    expect(recipientsOf(env.started)).toEqual(users(1));
    expect(env.expired).toEqual([]);
  });
});
