import { describe, expect, it } from 'vitest';
import { createTestScheduling, recipientsOf, unreadable, users } from './setup.ts';

describe('queue scan', () => {
  it('requests messages that came due', async () => {
    const { put, runScan, clock, started } = createTestScheduling();
    put(users(1), { dueAt: clock.now() + 1000 });
    await runScan();
    expect(started).toEqual([]);
    clock.advance(1000);
    await runScan();
    expect(recipientsOf(started)).toEqual(users(1));
  });

  it('continues where the previous run stopped when there are many keys', async () => {
    const { put, dispatcher, runTasks, started } = createTestScheduling({ connections: 600 });
    put(Array.from({ length: 510 }, (_, n) => `a@d${n}.test`));
    expect(await dispatcher.scan()).toBe(100);
    runTasks();
    expect(started).toHaveLength(500);
    expect(await dispatcher.scan()).toBe(1000);
    runTasks();
    expect(started).toHaveLength(510);
  });

  it('continues soon while more messages are due than one run makes ready', async () => {
    const { put, dispatcher, clock } = createTestScheduling();
    put(users(1001), { dueAt: clock.now() + 1000 });
    clock.advance(1000);
    expect(await dispatcher.scan()).toBe(100);
    expect(await dispatcher.scan()).toBe(1000);
  });

  it('reads one priority although the other cannot be read, and reports that it fails', async () => {
    const { put, runScan, tables, clock, dispatcher, started } = createTestScheduling();
    put(users(1), { priority: 1 });
    const { keyAfter } = tables.queue;
    tables.queue.keyAfter = (priority, after) => (priority === 0 ? unreadable() : keyAfter(priority, after));
    await runScan();
    expect(recipientsOf(started)).toEqual(users(1));
    expect([dispatcher.stalled(), dispatcher.unscannedMs()]).toEqual([null, 0]);
    clock.advance(1000);
    await runScan();
    expect([dispatcher.stalled(), dispatcher.unscannedMs()]).toEqual([
      'the queue cannot be read; see the log',
      0,
    ]);
    tables.queue.keyAfter = keyAfter;
    await runScan();
    expect([dispatcher.stalled(), dispatcher.unscannedMs()]).toEqual([null, 0]);
  });
});

describe('the sites', () => {
  it('are advanced in portions, each once, also after one that fails', async () => {
    const { put, dispatcher, runTasks, sites, clock } = createTestScheduling();
    put(Array.from({ length: 700 }, (_, n) => `a@d${n}.example`));
    const scan = async () => {
      const pause = await dispatcher.scan();
      runTasks();
      return pause;
    };
    for (let n = 0; n < 2; n++) await scan();
    const keys = Array.from(sites.all(), ({ key }) => key);
    expect(keys).toHaveLength(700);
    const advanced: string[] = [];
    for (const site of sites.all())
      site.rateWaitMs = () => {
        advanced.push(site.key);
        if (advanced.length === 1) throw new Error('no');
        return 0;
      };
    clock.advance(1000);
    expect([await scan(), advanced.length]).toEqual([100, 500]);
    expect([await scan(), advanced]).toEqual([1000, keys]);
    await scan();
    expect(advanced).toEqual(keys);
    clock.advance(1000);
    await scan();
    expect(advanced).toHaveLength(1200);
  });

  it('are removed when they have not been used for ten minutes', async () => {
    const { put, runScan, sites, clock, finish } = createTestScheduling();
    put(users(1));
    await runScan();
    finish(1);
    clock.advance(9 * 60_000);
    await runScan();
    expect([...sites.all()]).toHaveLength(1);
    clock.advance(2 * 60_000);
    await runScan();
    expect([...sites.all()]).toHaveLength(0);
  });
});

describe('messages that expire while their site is suspended', () => {
  it('fail', async () => {
    const { put, announce, clock, failAll, runScan, expired } = createTestScheduling({ connections: 2 });
    put(users(4), { expires_at: clock.now() + 31_000 });
    announce();
    failAll();
    clock.advance(32_000);
    await runScan();
    expect(expired).toEqual(['a2@one.test', 'a3@one.test']);
  });

  it('fail in portions: one run reads a bounded number of them', async () => {
    const { db, clock, announce, addAccount, failAll, dispatcher, put, expired } = createTestScheduling({
      connections: 2,
    });
    const accounts = Array.from({ length: 6 }, (_, n) => `acct_${n}`);
    db.transaction(() => {
      for (const account_id of accounts) {
        addAccount(account_id, `domain_of_${account_id}`);
        put(users(60), { account_id, expires_at: clock.now() + 31_000 });
      }
    })();
    for (const account_id of accounts) announce({ account_id });
    failAll();
    clock.advance(32_000);
    const portions: number[] = [];
    for (let before = 0; before < 358; before = expired.length) {
      expect(await dispatcher.scan()).toBe(before + 100 < 358 ? 100 : 1000);
      portions.push(expired.length - before);
    }
    expect(Math.max(...portions)).toBeLessThanOrEqual(100);
    expect(expired).toHaveLength(358);
  });
});
