import { describe, expect, it } from 'vitest';
import type { RouteResult } from '../../../src/delivery/routes.ts';
import { createTestScheduling, KEY, recipientsOf, routeTo, users } from './setup.ts';

const TWO = { account_id: 'acct_two', domain_id: 'domain_two' };

describe('dispatcher', () => {
  it('starts waiting messages at start', async () => {
    const { put, runScan, started } = createTestScheduling();
    put(users(1));
    await runScan();
    expect(recipientsOf(started)).toEqual(users(1));
  });

  it('starts new messages when they are announced', () => {
    const { put, announce, started } = createTestScheduling();
    put(users(1));
    announce();
    expect(recipientsOf(started)).toEqual(users(1));
  });

  it('never uses more slots than the site has connections', () => {
    const { put, announce, started, finish } = createTestScheduling({ connections: 3 });
    put(users(10));
    announce();
    expect(started.map(({ reservation }) => reservation.slot).sort((a, b) => a - b)).toEqual([0, 1, 2]);
    const seen = new Set<string>();
    while (started.length > 0) {
      expect(started.length).toBeLessThanOrEqual(3);
      for (const recipient of recipientsOf(started)) seen.add(recipient);
      finish(1);
    }
    expect(seen.size).toBe(10);
  });

  it('starts transactional mail before marketing mail that waited longer', () => {
    const { put, announce, started, finish } = createTestScheduling({ connections: 1 });
    put(users(5, 'news'), { priority: 1 });
    announce({ priority: 1 });
    put(['reset@one.test']);
    announce();
    finish(1);
    expect(recipientsOf(started)).toEqual(['reset@one.test']);
  });

  it('sends a single message before those of another account that are in memory', () => {
    const { put, announce, started, finish, addAccount, onlySite } = createTestScheduling({ connections: 1 });
    addAccount(TWO.account_id, TWO.domain_id);
    put(users(500, 'big'));
    announce();
    expect(onlySite().backlogSize(0)).toBeGreaterThan(10);
    put(['reset@one.test'], TWO);
    announce({ account_id: TWO.account_id });
    // At most the message in progress and the one that is leased ahead precede it.
    const before: string[] = [];
    while (!recipientsOf(started).includes('reset@one.test')) {
      before.push(...recipientsOf(started));
      expect(before.length).toBeLessThanOrEqual(2);
      finish(1);
    }
  });

  it('lets accounts take turns at a site', () => {
    const { put, announce, started, finish, addAccount } = createTestScheduling({ connections: 1 });
    addAccount(TWO.account_id, TWO.domain_id);
    put(users(500, 'big'), { priority: 1 });
    announce({ priority: 1 });
    put(users(5, 'small'), { priority: 1, ...TWO });
    announce({ priority: 1, account_id: TWO.account_id });
    let sent = 0;
    let small = 0;
    while (small < 5 && sent < 500) {
      small += recipientsOf(started).filter((recipient) => recipient.startsWith('small')).length;
      sent++;
      finish(1);
    }
    expect(small).toBe(5);
    // The messages read ahead before, and one turn of the other account.
    expect(sent).toBeLessThan(60);
  });

  it('reads no more into memory than its sites have capacity for', () => {
    const { put, announce, onlySite, tables } = createTestScheduling({ connections: 1 });
    put(users(500));
    announce();
    expect(onlySite().backlogSize(0)).toBeGreaterThan(0);
    expect(onlySite().backlogSize(0)).toBeLessThanOrEqual(20);
    expect(tables.queue.readySeqs(KEY, 1000).length).toBe(499);
  });

  it('continues with a key when its route is known', async () => {
    let route: RouteResult | null = null;
    const { put, announce, started, lookups, runTasks, settle, leasedCount } = createTestScheduling({
      routeOf: () => route,
    });
    put(users(1));
    announce();
    expect(started).toEqual([]);
    expect(leasedCount()).toBe(0);
    route = routeTo('one.test');
    for (const end of lookups) end();
    await settle();
    runTasks();
    expect(recipientsOf(started)).toEqual(users(1));
  });

  it('leaves what it has not started in the queue when it stops', () => {
    const { put, announce, dispatcher, started, claims, tables } = createTestScheduling({ connections: 1 });
    const messages = put(users(10));
    announce();
    dispatcher.stop();
    expect(started).toHaveLength(1);
    const leased = messages.filter(({ seq }) => tables.queue.get(seq)?.lease !== null);
    expect(leased.map(({ recipient }) => recipient)).toEqual(recipientsOf(started));
    expect(claims.count()).toBe(0);
  });

  it('starts nothing after it has stopped', () => {
    const { put, announce, dispatcher, started } = createTestScheduling();
    dispatcher.stop();
    put(users(1));
    announce();
    expect(started).toEqual([]);
  });
});

describe('a slow site', () => {
  it('sends in order although what was read ahead is dropped as stale', () => {
    const { put, announce, clock, started, finish } = createTestScheduling({ connections: 1 });
    put(users(4));
    announce();
    const seen: string[] = [];
    while (started.length > 0) {
      seen.push(...recipientsOf(started));
      clock.advance(3000);
      finish(1);
    }
    expect(seen).toEqual(users(4));
  });
});

describe('a site that cannot be reached', () => {
  it('has no mail in memory, and its mail shows as it did before', () => {
    const { put, announce, failAll, claims, started, tables } = createTestScheduling({ connections: 2 });
    const messages = put(users(8));
    announce();
    failAll();
    expect(started).toEqual([]);
    expect(claims.count()).toBe(0);
    const others = messages.slice(2).map(({ seq }) => tables.queue.get(seq)?.lease);
    expect(others).toEqual(Array.from({ length: 6 }, () => null));
    expect(messages.map(({ seq }) => tables.messages.bySeq(seq)?.status)).toEqual(
      Array.from({ length: 8 }, () => 'queued'),
    );
  });
});

describe('a fast and healthy site', () => {
  async function sendFour(answers: boolean) {
    const env = createTestScheduling({ connections: 2 });
    env.put(users(30));
    env.announce();
    // A new site is not known to be healthy.
    expect(env.leasedCount()).toBe(2);
    for (let n = 0; n < 4; n++) {
      const [first] = env.started;
      if (answers && first !== undefined) first.reservation.site.answered(first.reservation, true);
      env.finish(1);
      await env.settle();
    }
    return env;
  }

  it('has the next message for each connection leased before a slot is free', async () => {
    const { started, leasedCount } = await sendFour(true);
    expect(started).toHaveLength(2);
    // Those that were sent, those in flight, and those leased ahead.
    expect(leasedCount()).toBe(4 + 2 + 2);
  });

  it('leases nothing ahead while it has never answered', async () => {
    expect((await sendFour(false)).leasedCount()).toBe(4 + 2);
  });

  it('puts messages back that were leased ahead when it cannot be reached any more', async () => {
    const { failAll, returned, started, leasedCount, settle } = await sendFour(true);
    failAll();
    await settle();
    expect(returned).toHaveLength(2);
    expect(leasedCount()).toBe(4 + 2);
    expect(started).toEqual([]);
  });
});

describe('budgets', () => {
  it('hold mail of one account back and admit that of another', () => {
    let full = true;
    const { put, announce, started, finish, addAccount } = createTestScheduling({
      connections: 2,
      admits: ({ account_id }) => !full || account_id === TWO.account_id,
    });
    addAccount(TWO.account_id, TWO.domain_id);
    put(users(3, 'big'));
    put(['small@one.test'], TWO);
    announce();
    announce({ account_id: TWO.account_id });
    expect(recipientsOf(started)).toEqual(['small@one.test']);
    full = false;
    finish(1);
    expect(recipientsOf(started)).toEqual(['big0@one.test', 'big1@one.test']);
  });
});

describe('the budget of sites that have not answered', () => {
  const start = (exhausted: 'sessions' | 'unanswered') => {
    const env = createTestScheduling({
      connections: 2,
      isOneSite: false,
      exhausted,
      admits: ({ account_id }) => admitted(account_id),
    });
    let full = true;
    const admitted = (accountId: string) => !full || accountId === TWO.account_id;
    env.addAccount(TWO.account_id, TWO.domain_id);
    env.put(['one@one.test']);
    env.put(['two@two.test'], TWO);
    env.announce();
    env.announce({ account_id: TWO.account_id, destination: 'two.test' });
    expect(recipientsOf(env.started)).toEqual(['two@two.test']);
    full = false;
    return env;
  };

  it('is not examined when a session of another site ends', () => {
    const { started, finish } = start('unanswered');
    finish(1);
    expect(recipientsOf(started)).toEqual([]);
  });

  it('is examined when a session of a site without an answer ends', () => {
    const { started, finish } = start('unanswered');
    finish(1, true);
    expect(recipientsOf(started)).toEqual(['one@one.test']);
  });

  it('does not matter to mail that another budget holds back', () => {
    const { started, finish } = start('sessions');
    finish(1);
    expect(recipientsOf(started)).toEqual(['one@one.test']);
  });
});

describe('a site with a rate', () => {
  it('starts a message when its rate allows one, without waiting for the scan', () => {
    const { started, put, announce, timers, clock, runTasks, finish } = createTestScheduling({
      connections: 10,
      perSecond: 2,
    });
    put(users(6));
    announce();
    expect(started).toHaveLength(2);
    const counts: number[] = [];
    for (let n = 0; n < 3; n++) {
      const [timer] = timers.splice(0);
      if (timer === undefined) throw new Error('there is no timer');
      expect(timer.ms).toBe(500);
      clock.advance(timer.ms);
      timer.task();
      runTasks();
      counts.push(started.length);
    }
    expect(counts).toEqual([3, 4, 5]);
    // One timer at a time, however many slots are released.
    finish(3);
    expect(timers).toHaveLength(1);
  });

  it('does not count messages toward it that no worker began', () => {
    const { started, put, announce, runTasks } = createTestScheduling({ connections: 10, perSecond: 2 });
    put(users(4));
    announce();
    const [held] = started.splice(0, 1);
    held?.release(false);
    runTasks();
    expect(recipientsOf(started)).toEqual(['a1@one.test', 'a2@one.test']);
  });

  it('has no timer without mail', () => {
    const { put, announce, timers } = createTestScheduling({ connections: 10, perSecond: 2 });
    put(users(2));
    announce();
    expect(timers).toEqual([]);
  });
});

describe('a site that asked to send less', () => {
  it('gets no mail while it is paused, and drops what was read ahead', async () => {
    const env = createTestScheduling({ connections: 2 });
    env.put(users(10));
    env.announce();
    const [first] = env.started;
    if (first === undefined) throw new Error('nothing was started');
    const site = env.onlySite();
    expect(site.throttled(first.reservation, 30_000)).toBe(30_000);
    env.finish(2);
    expect(env.started).toHaveLength(0);
    expect(site.backlogSize(0)).toBe(0);
    env.clock.advance(30_000);
    await env.runScan();
    expect(env.started).toHaveLength(1);
  });

  it('does not read the mail of an account that is paused, and reads that of others', async () => {
    const env = createTestScheduling({ connections: 4 });
    env.addAccount('acct_two', 'domain_two');
    env.put(users(4, 'bad'));
    env.announce();
    const [first] = env.started;
    if (first === undefined) throw new Error('nothing was started');
    env.onlySite().senderThrottled(first.reservation, 60_000);
    env.finish(4);
    env.put(users(3, 'late'));
    env.put(users(3, 'good'), { account_id: 'acct_two', domain_id: 'domain_two' });
    await env.runScan();
    expect(recipientsOf(env.started)).toEqual(users(3, 'good'));
    env.finish(3);
    env.clock.advance(61_000);
    await env.runScan();
    expect(recipientsOf(env.started)).toContain('late0@one.test');
  });
});
