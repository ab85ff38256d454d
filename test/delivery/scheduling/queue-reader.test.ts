import { describe, expect, it } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { createTestScheduling, KEY, recipientsOf, unreadable, users } from './setup.ts';

describe('queue reader', () => {
  it('passes messages without a route and simulated ones to the local attempts', () => {
    const { put, announce, unroutable, simulated, started } = createTestScheduling({
      routeOf: () => ({ kind: 'failure', failure: 'null-mx', route: null, ttl: 60 }),
    });
    put(['a@one.test']);
    put(['bounced@one.test'], { simulated: 1 });
    announce();
    expect(unroutable).toEqual(['a@one.test']);
    expect(simulated).toEqual(['bounced@one.test']);
    expect(started).toEqual([]);
  });

  it("uses the egress pool of each message's use case", () => {
    const { put, announce, sites } = createTestScheduling({
      poolOf: (_region, useCase) => `pool-${useCase}`,
    });
    put(users(1));
    put(users(1), { priority: 1 });
    announce();
    announce({ priority: 1 });
    expect([...sites.all()].map(({ pool }) => pool)).toEqual(['pool-tx', 'pool-mk']);
  });

  it('reads no more than a share of the capacity when other keys compete', () => {
    const { put, dispatcher, runTasks, tables } = createTestScheduling({ connections: 5 });
    const other = put(['b@two.test']);
    put(users(200));
    const read: number[] = [];
    const { ready } = tables.queue;
    tables.queue.ready = (seq) => {
      read.push(seq);
      return ready(seq);
    };
    dispatcher.request(KEY);
    dispatcher.request({ ...KEY, destination: 'two.test' });
    runTasks();
    expect(read.indexOf(other[0]?.seq ?? 0)).toBe(20);
  });
});

describe('a message that cannot be read', () => {
  it('is skipped; the others are sent', () => {
    const { put, announce, tables, started } = createTestScheduling({ connections: 5 });
    const [bad] = put(users(3));
    const { ready } = tables.queue;
    tables.queue.ready = (seq) => (seq === bad?.seq ? unreadable() : ready(seq));
    announce();
    expect(recipientsOf(started)).toEqual(['a1@one.test', 'a2@one.test']);
    expect(tables.queue.get(bad?.seq ?? 0)?.lease).toBeNull();
  });

  it('is reported as unprepared when its domain is the cause', () => {
    const { put, announce, tables, started, unprepared, addDomain } = createTestScheduling({
      connections: 5,
    });
    addDomain('domain_bad');
    put(['a@one.test'], { domain_id: 'domain_bad' });
    put(['b@one.test']);
    const { byId } = tables.domains;
    tables.domains.byId = (id) => (id === 'domain_bad' ? unreadable() : byId(id));
    announce();
    expect(unprepared).toEqual(['a@one.test']);
    expect(recipientsOf(started)).toEqual(['b@one.test']);
  });
});

describe('a queue key that cannot be read', () => {
  it('is skipped for a while; the others are sent', () => {
    const { put, announce, tables, clock, started, waits } = createTestScheduling();
    put(['a@bad.test', 'a@one.test']);
    const { readySeqs } = tables.queue;
    let broken = true;
    tables.queue.readySeqs = (key, limit, afterSeq) =>
      broken && key.destination === 'bad.test' ? unreadable() : readySeqs(key, limit, afterSeq);
    announce({ destination: 'bad.test' });
    announce();
    expect(recipientsOf(started)).toEqual(['a@one.test']);
    expect(waits.count('key_unreadable')).toBe(1);
    broken = false;
    clock.advance(1999);
    announce({ destination: 'bad.test' });
    expect(recipientsOf(started)).toEqual(['a@one.test']);
    clock.advance(1);
    announce({ destination: 'bad.test' });
    expect(recipientsOf(started)).toEqual(['a@one.test', 'a@bad.test']);
    expect(waits.count('key_unreadable')).toBe(0);
  });

  it('is forgotten when it has no more mail', async () => {
    const { put, announce, tables, clock, waits, runScan } = createTestScheduling();
    const [message] = put(users(1));
    tables.queue.readySeqs = unreadable;
    announce();
    expect(waits.count('key_unreadable')).toBe(1);
    tables.queue.remove(message?.seq ?? 0);
    clock.advance(600_000);
    await runScan();
    expect(waits.count('key_unreadable')).toBe(0);
  });
});

describe('mail of a parked domain', () => {
  it('leaves the ready part of the queue until the domain is tried again', () => {
    const { put, announce, waits, started, postponed, addDomain } = createTestScheduling({
      connections: 5,
    });
    addDomain('domain_bad');
    put(['a@one.test'], { domain_id: 'domain_bad' });
    put(['b@one.test']);
    for (let n = 0; n < 3; n++)
      waits.prepareFailed({ domain_id: 'domain_bad', account_id: 'acct_one' }, new Error('bad key'));
    announce();
    expect(recipientsOf(started)).toEqual(['b@one.test']);
    expect(postponed).toEqual([{ recipient: 'a@one.test', waitMs: MINUTE }]);
  });
});
