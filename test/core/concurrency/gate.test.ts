import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createFairLimit, createGate, type GateOptions } from '../../../src/core/concurrency/gate.ts';

/** Work that lasts until the test ends it. */
function jobs() {
  const running: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const job = (name: string) => () =>
    new Promise<string>((resolve, reject) => {
      running.push(name);
      ends.set(name, (error) => {
        running.splice(running.indexOf(name), 1);
        if (error) reject(error);
        else resolve(name);
      });
    });
  const end = async (name: string, error?: Error) => {
    ends.get(name)?.(error);
    await new Promise(setImmediate);
  };
  return { running, job, end };
}

it('limits concurrent work in total and per key, and starts waiting work in order of arrival', async () => {
  const { running, job, end } = jobs();
  const gate = createGate({ concurrency: 3, perKey: 1, maxWaiting: 10 });
  const all = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1', 'd1'].map((name) => gate.run(name[0] ?? '', job(name)));
  await new Promise(setImmediate);
  expect(running).toEqual(['a1', 'b1', 'c1']);
  await end('b1');
  expect(running).toEqual(['a1', 'c1', 'b2']);
  await end('c1');
  expect(running).toEqual(['a1', 'b2', 'd1']);
  for (const name of ['a1', 'b2', 'd1', 'a2', 'a3']) await end(name);
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'b1', 'b2', 'c1', 'd1']);
});

it('starts the work of the key with the least running work first', async () => {
  const { running, job, end } = jobs();
  const gate = createGate({ concurrency: 4, perKey: 3, maxWaiting: 10 });
  const names = ['a1', 'a2', 'a3', 'b1', 'a4', 'b2', 'c1', 'b3'];
  const all = names.map((name) => gate.run(name[0] ?? '', job(name)));
  await new Promise(setImmediate);
  expect(running).toEqual(['a1', 'a2', 'a3', 'b1']);
  await end('a1');
  expect(running).toEqual(['a2', 'a3', 'b1', 'c1']);
  await end('c1');
  expect(running).toEqual(['a2', 'a3', 'b1', 'b2']);
  await end('a2');
  expect(running).toEqual(['a3', 'b1', 'b2', 'a4']);
  for (const name of ['a3', 'b1', 'b2', 'a4', 'b3']) await end(name);
  expect(await Promise.all(all)).toEqual(names);
});

it('limits the waiting work of a key', async () => {
  const { job, end } = jobs();
  const gate = createGate({ concurrency: 1, perKey: 1, maxWaiting: 10, maxWaitingPerKey: 1 });
  const admitted = [gate.run('a', job('a1')), gate.run('a', job('a2')), gate.run('b', job('b1'))];
  expect(await gate.run('a', job('a3'))).toBeNull();
  await new Promise(setImmediate);
  for (const name of ['a1', 'a2', 'b1']) await end(name);
  expect(await Promise.all(admitted)).toEqual(['a1', 'a2', 'b1']);
});

it('continues after failed work', async () => {
  const { running, job, end } = jobs();
  const gate = createGate({ concurrency: 1, perKey: 1, maxWaiting: 10 });
  const failing = expect(gate.run('a', job('a1'))).rejects.toThrow('broken');
  const next = gate.run('a', job('a2'));
  await new Promise(setImmediate);
  await end('a1', new Error('broken'));
  await failing;
  expect(running).toEqual(['a2']);
  await end('a2');
  expect(await next).toBe('a2');
});

it('limits waiting work, and begins none after it was closed', async () => {
  const { running, job, end } = jobs();
  const gate = createGate({ concurrency: 1, perKey: 1, maxWaiting: 1 });
  const first = gate.run('a', job('a1'));
  const waiting = gate.run('a', job('a2'));
  expect(await gate.run('a', job('a3'))).toBeNull();
  await new Promise(setImmediate);
  gate.close();
  expect(await gate.run('b', job('b1'))).toBeNull();
  expect(running).toEqual(['a1']);
  await end('a1');
  expect(await first).toBe('a1');
  expect(await waiting).toBeNull();
  expect(running).toEqual([]);
});

it('begins no work while it is closed, also not the one that is about to begin', async () => {
  const { running, job } = jobs();
  const gate = createGate({ concurrency: 1, perKey: 1, maxWaiting: 10 });
  const all = [gate.run('a', job('a1')), gate.run('b', job('b1'))];
  gate.close();
  expect(await Promise.all(all)).toEqual([null, null]);
  expect(running).toEqual([]);
});

/** A gate whose work, named after its key, lasts until the test ends it. */
function startGate(options: GateOptions) {
  const gate = createGate(options);
  const running: string[] = [];
  const ends = new Map<string, () => void>();
  const settled = () => new Promise(setImmediate);
  return {
    running,
    /** Returns false when too much work of the key is waiting. */
    enter: async (name: string) => {
      const [key = ''] = name;
      const leave = gate.enter(key, () => running.push(name));
      await settled();
      if (leave === null) return false;
      ends.set(name, leave);
      return true;
    },
    end: async (name: string) => {
      if (running.includes(name)) running.splice(running.indexOf(name), 1);
      ends.get(name)?.();
      await settled();
    },
  };
}

describe('a share of what is free', () => {
  const shares = (concurrency: number, maxWaitingPerKey = 1000) =>
    startGate({ concurrency, perKey: (free) => free, maxWaiting: Infinity, maxWaitingPerKey });

  it('leaves a key at most as much as remains for all others', async () => {
    const { enter, running } = shares(8);
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5', 'a6']) await enter(name);
    expect(running).toEqual(['a1', 'a2', 'a3', 'a4']);
    for (const name of ['b1', 'b2', 'b3', 'c1', 'd1']) await enter(name);
    expect(running).toEqual(['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1', 'd1']);
  });

  it('goes first to the key with the least running work', async () => {
    const { enter, end, running } = shares(2);
    for (const name of ['a1', 'a2', 'b1', 'c1']) await enter(name);
    expect(running).toEqual(['a1', 'b1']);
    await end('b1');
    expect(running).toEqual(['a1', 'c1']);
    await enter('c2');
    await end('a1');
    expect(running).toEqual(['c1', 'a2']);
  });

  it('is not used by work that no longer waits, nor by work above the bound of its key', async () => {
    const { enter, end, running } = shares(2, 2);
    expect(await Promise.all(['a1', 'a2', 'a3', 'a4', 'b1'].map(enter))).toEqual([
      true,
      true,
      true,
      false,
      true,
    ]);
    await end('a2');
    expect(await enter('a5')).toBe(true);
    await end('a1');
    await end('b1');
    expect(running).toEqual(['a3']);
    await end('a3');
    expect(running).toEqual(['a5']);
  });
});

it('keeps its limits and never leaves capacity unused, whatever begins and ends', () => {
  const option = fc.record({
    concurrency: fc.integer({ min: 1, max: 6 }),
    perKey: fc.oneof(
      fc.integer({ min: 1, max: 4 }),
      fc.constant((free: number) => free),
    ),
    order: fc.constantFrom('least' as const, 'turns' as const),
  });
  const step = fc.oneof(
    fc.record({ key: fc.constantFrom('a', 'b', 'c'), size: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ ends: fc.nat() }),
  );
  fc.assert(
    fc.property(option, fc.array(step, { maxLength: 60 }), (options, steps) => {
      const limit = createFairLimit(options);
      const entered: { key: string; size: number; isRunning: boolean; leave(): void }[] = [];
      const isSized = typeof options.perKey === 'number';
      for (const each of steps) {
        const waiting = limit.waiting();
        if ('ends' in each) {
          const [work] = entered.splice(each.ends % Math.max(1, entered.length), 1);
          work?.leave();
        } else {
          const size = isSized ? each.size : 1;
          const work = { key: each.key, size, isRunning: false, leave: () => {} };
          // A start in a later call of `enter` or `leave`; one within this call is seen by the count of those that wait.
          work.leave = limit.enter(each.key, () => {}, size);
          entered.push(work);
          expect(limit.waiting() - waiting).toBeLessThanOrEqual(1);
        }
        for (const key of ['a', 'b', 'c']) {
          // The works of a key start in order: those that wait are its last ones.
          const own = entered.filter((work) => work.key === key);
          for (const [n, work] of own.entries()) work.isRunning = n < own.length - limit.waiting(key);
        }
        const running = entered.filter(({ isRunning }) => isRunning);
        const total = running.reduce((sum, { size }) => sum + size, 0);
        expect(total <= options.concurrency || running.length === 1).toBe(true);
        if (limit.waiting() === 0) continue;
        // What waits does so for its key, or for more than is free.
        const share = typeof options.perKey === 'number' ? options.perKey : options.concurrency - total;
        const blocked = entered.filter((work) => !work.isRunning);
        const fits = blocked.filter(({ key, size }) => {
          const own = running.filter((work) => work.key === key).reduce((sum, work) => sum + work.size, 0);
          return own < share && total + size <= options.concurrency;
        });
        // Only smaller work may wait although it fits, behind work that does not.
        const isBehind = blocked.some(({ size }) => total + size > options.concurrency);
        expect(fits.length === 0 || isBehind).toBe(true);
      }
    }),
    { numRuns: 300 },
  );
});
