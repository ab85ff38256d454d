import { describe, expect, it } from 'vitest';
import { createTurns, type Order, type Work } from '../../../src/core/concurrency/turns.ts';

/** Turns with a clock that only the work moves: each piece of work takes a given time. */
function start() {
  let time = 0;
  const turns = createTurns(() => time);
  const order: string[] = [];
  const work = async (accountId: string, ms: number) => {
    await turns.next(accountId);
    order.push(accountId);
    advance(ms);
  };
  const advance = (ms: number) => (time += ms);
  /** Sliced work of `count` steps, each of which takes `ms`. */
  function* steps(count: number, ms: number, accountId = ''): Work<void> {
    for (let n = 0; n < count; n++) {
      order.push(accountId);
      advance(ms);
      yield;
    }
  }
  return { turns, order, work, advance, steps };
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

  it('give equal shares of time to accounts that are always busy', async () => {
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

  it('preserve the order within an account', async () => {
    const { turns } = start();
    const order: number[] = [];
    await Promise.all(times(50, (n) => turns.next('one').then(() => order.push(n))));
    expect(order).toEqual(times(50, (n) => n));
  });

  it('prefer an account that arrives late to one that used much time', async () => {
    const { order, work } = start();
    const others = ['x', 'y', 'z'].flatMap((account) => times(30, () => work(account, 50)));
    while (order.length < 30) await new Promise(setImmediate);
    const before = order.length;
    const late = work('late', 1);
    await late;
    expect(order.indexOf('late') - before).toBeLessThanOrEqual(3);
    await Promise.all(others);
  });

  it('cannot be accumulated by an idle account', async () => {
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

  it('return soon to an account whose last turn was interrupted', async () => {
    const { order, work } = start();
    const others = ['x', 'y'].flatMap((account) => times(50, () => work(account, 10)));
    await work('light', 300);
    const before = order.length;
    await work('light', 1);
    // It owes less than one turn of the others; turns of the pass under way come first.
    expect(order.length - before).toBeLessThanOrEqual(5);
    await Promise.all(others);
  });

  it('without cost do not delay an account with a debt', async () => {
    const { turns, order, work } = start();
    const ending = new AbortController();
    // As when a large body is read: the time passes between the turns.
    const read = async (account: string) => {
      while (!ending.signal.aborted) await work(account, 0);
    };
    const others = ['x', 'y', 'z'].flatMap((account) => times(5, () => read(account)));
    await work('light', 2);
    // The end of a turn is noticed at the beginning of the next one.
    await turns.next('x');
    const before = order.length;
    await work('light', 2);
    expect(order.length - before).toBeLessThanOrEqual(16);
    ending.abort();
    await Promise.all(others);
  });

  it.each<[Order, string]>([
    ['alternate', 'aabcabcbc'],
    ['finish', 'aaabbbccc'],
    ['continue', 'aabcabcbc'],
  ])('give works of one account their order: %s', async (by, expected) => {
    const { turns, order, steps } = start();
    // Each step takes a whole turn.
    await Promise.all(['a', 'b', 'c'].map((name) => turns.run(steps(3, 10, name), 'one', by)));
    expect(order.join('')).toBe(expected);
  });

  it('continue what has begun before the account begins something else, which waits for a limited time', async () => {
    const { turns, order, work, steps } = start();
    const other = work('one', 10);
    const ending = new AbortController();
    const endless = async () => {
      while (!ending.signal.aborted) await turns.run(steps(1, 10, 'begun'), 'one', 'continue');
    };
    const begun = [endless(), endless()];
    await other;
    ending.abort();
    await Promise.all(begun);
    const at = order.indexOf('one');
    expect(at).toBeGreaterThan(32);
    expect(at).toBeLessThan(96);
  });

  it('run several slices in one iteration of the event loop', async () => {
    const { turns, steps } = start();
    let iterations = 0;
    let running = true;
    const count = () => {
      iterations++;
      if (running) setImmediate(count);
    };
    // Uses up what the first iteration has, so that all others have to wait.
    const first = turns.run(steps(3, 10), 'first');
    setImmediate(count);
    await Promise.all([first, ...times(64, () => turns.run(steps(1, 0.1), 'many'))]);
    running = false;
    expect(iterations).toBeLessThan(16);
  });

  it('end before sliced work when what precedes it took long', async () => {
    const { turns, order, steps, advance } = start();
    const longRequest = async () => {
      await turns.next('long');
      advance(30);
      setImmediate(() => order.push('other'));
      await turns.run(steps(1, 1, 'long'), 'long');
    };
    await longRequest();
    expect(order).toEqual(['other', 'long']);
  });

  it('get as much time as the rest of a busy iteration took', async () => {
    const { order, work, advance } = start();
    let isBusy = true;
    const deliver = () => {
      if (!isBusy) return;
      order.push('delivery');
      advance(10);
      setImmediate(deliver);
    };
    setImmediate(deliver);
    await Promise.all(times(60, () => work('request', 1)));
    isBusy = false;
    const deliveries = order.filter((name) => name === 'delivery').length;
    // At least ten turns in each iteration.
    expect(deliveries).toBeLessThanOrEqual(7);
  });

  it('prefer the sliced work of a light account to that of busy ones', async () => {
    const { turns, order, steps } = start();
    const busy = ['x', 'y', 'z'].flatMap((account) =>
      times(60, () => turns.run(steps(4, 2, account), account)),
    );
    while (order.length < 60) await new Promise(setImmediate);
    const before = order.length;
    await turns.run(steps(2, 1, 'light'), 'light');
    // A few slices of each busy account, instead of all that were there first.
    expect(order.length - before).toBeLessThan(30);
    await Promise.all(busy);
  });

  it('leave iterations to connecting clients, and continue meanwhile', async () => {
    const { turns, order, work, advance } = start();
    const perIteration: number[] = [];
    let before = 0;
    let running = true;
    // A client in each iteration of the event loop, as Node accepts them.
    const connect = () => {
      perIteration.push(order.length - before);
      before = order.length;
      turns.connected();
      advance(1);
      if (running) setImmediate(connect);
    };
    setImmediate(connect);
    await Promise.all(times(100, () => work('one', 2)));
    running = false;
    const without = perIteration.filter((count) => count === 0).length;
    expect(without).toBeGreaterThan(perIteration.length - without);
    expect(order).toHaveLength(100);
  });
});
