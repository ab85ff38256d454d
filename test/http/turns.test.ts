import { describe, expect, it } from 'vitest';
import { createTurns } from '../../src/http/turns.ts';

/** Turns over a clock that only the work itself moves: each piece of work takes as long as it says. */
function start() {
  let time = 0;
  const turns = createTurns(() => time);
  const order: string[] = [];
  const work = async (accountId: string, ms: number) => {
    await turns.next(accountId);
    order.push(accountId);
    time += ms;
  };
  return { turns, order, work, advance: (ms: number) => (time += ms) };
}

const times = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));

describe('turns', () => {
  it('go to the account that has used the least time', async () => {
    const { order, work } = start();
    const heavy = times(20, () => work('heavy', 100));
    const light = times(20, () => work('light', 1));
    await Promise.all([...heavy, ...light]);
    // The light account's whole work costs less than one turn of the other.
    expect(order.slice(0, 22).filter((account) => account === 'heavy').length).toBeLessThanOrEqual(2);
    expect(order).toHaveLength(40);
  });

  it('are equal shares of time for accounts that always want more', async () => {
    const { order, work } = start();
    const costs = { a: 10, b: 20, c: 40 };
    const used = { a: 0, b: 0, c: 0 };
    await Promise.all(
      Object.entries(costs).flatMap(([account, ms]) => times(1000 / ms, () => work(account, ms))),
    );
    // Until the first has finished, each has had the same time.
    for (const account of order) {
      if (account === 'a' || account === 'b' || account === 'c') used[account] += costs[account];
      if (used.a === 1000) break;
    }
    expect(used.b).toBeGreaterThan(900);
    expect(used.c).toBeGreaterThan(900);
  });

  it('keep the order of one account', async () => {
    const { turns } = start();
    const order: number[] = [];
    await Promise.all(times(50, (n) => turns.next('one').then(() => order.push(n))));
    expect(order).toEqual(times(50, (n) => n));
  });

  it('come before those of an account that used much, for one that arrives late', async () => {
    const { order, work } = start();
    const others = ['x', 'y', 'z'].flatMap((account) => times(30, () => work(account, 50)));
    while (order.length < 30) await new Promise(setImmediate);
    const before = order.length;
    const late = work('late', 1);
    await late;
    expect(order.indexOf('late') - before).toBeLessThanOrEqual(3);
    await Promise.all(others);
  });

  it('cannot be saved up by an account that was idle', async () => {
    const { order, work, advance } = start();
    await work('saver', 1);
    for (let n = 0; n < 100; n++) await work('busy', 10);
    // The pass of the last turn ends first.
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    advance(10_000);
    order.length = 0;
    await Promise.all([...times(40, () => work('busy', 10)), ...times(40, () => work('saver', 10))]);
    const first = order.slice(0, 40).filter((account) => account === 'saver').length;
    expect(first).toBeGreaterThan(15);
    expect(first).toBeLessThan(25);
  });
});
