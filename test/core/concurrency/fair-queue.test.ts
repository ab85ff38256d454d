import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createFairQueue } from '../../../src/core/concurrency/fair-queue.ts';

/** A queue with items that are named after their owner. */
function queueOf(...names: string[]) {
  const queue = createFairQueue<string>();
  for (const name of names) queue.push(name[0] ?? '', name);
  const takeAll = () => {
    const order: string[] = [];
    for (let next = queue.take(); next !== undefined; next = queue.take()) order.push(next.item);
    return order;
  };
  return { queue, takeAll };
}

describe('the fair queue', () => {
  it('returns the items in turns of their owners, in order within each', () => {
    const { takeAll } = queueOf('a1', 'a2', 'a3', 'b1', 'c1', 'c2');
    expect(takeAll()).toEqual(['a1', 'b1', 'c1', 'a2', 'c2', 'a3']);
  });

  it('prefers the lowest rank, of equal ones the owner whose turn it is, and excludes owners without a rank', () => {
    const { queue } = queueOf('a1', 'b1', 'b2', 'c1');
    const ranks: Record<string, number | null> = { a: 2, b: 1, c: 1 };
    const take = () => queue.take((owner) => ranks[owner] ?? null)?.item;
    expect([take(), take(), take()]).toEqual(['b1', 'c1', 'b2']);
    ranks['a'] = null;
    expect(take()).toBeUndefined();
    expect(queue.size).toBe(1);
  });

  it('puts an item back before the others, lets an owner miss its turn, and takes any item of an owner', () => {
    const { queue, takeAll } = queueOf('a2', 'a3', 'b1', 'b2', 'b3');
    queue.putBack('a', 'a1');
    queue.skip('a');
    expect(queue.takeOf('b', 1)).toBe('b2');
    expect(queue.takeOf('b', 2)).toBeUndefined();
    expect(takeAll()).toEqual(['a1', 'b1', 'a2', 'b3', 'a3']);
  });

  it('removes single items, those that match and all, and counts what is left', () => {
    const { queue } = queueOf('a1', 'a2', 'b1', 'b2', 'c1');
    expect([queue.remove('a', 'a2'), queue.remove('a', 'a2'), queue.remove('x', 'x1')]).toEqual([
      true,
      false,
      false,
    ]);
    expect(queue.drop((item) => item.endsWith('1') && item !== 'c1')).toEqual(['a1', 'b1']);
    expect([queue.size, queue.owners, queue.countOf('a'), queue.countOf('b'), queue.first('b')]).toEqual([
      2,
      2,
      0,
      1,
      'b2',
    ]);
    expect(queue.clear()).toEqual(['b2', 'c1']);
    expect([queue.size, queue.owners]).toEqual([0, 0]);
  });

  it('serves owners that wait equally often, whatever arrives meanwhile', () => {
    const steps = fc.array(fc.oneof(fc.constant('take'), fc.constantFrom('a', 'b', 'c', 'd')), {
      maxLength: 200,
    });
    fc.assert(
      fc.property(steps, (all) => {
        const queue = createFairQueue<{ owner: string; n: number }>();
        const pushed = new Map<string, number>();
        const taken = new Map<string, number>();
        /** Items of others since an owner that waits was served or began to wait. */
        const served = new Map<string, string[]>();
        for (const step of all) {
          if (step !== 'take') {
            const n = (pushed.get(step) ?? 0) + 1;
            pushed.set(step, n);
            if (queue.countOf(step) === 0) served.set(step, []);
            queue.push(step, { owner: step, n });
            continue;
          }
          const next = queue.take();
          if (next === undefined) {
            expect(queue.size).toBe(0);
            continue;
          }
          // The items of an owner stay in order.
          const n = (taken.get(next.owner) ?? 0) + 1;
          taken.set(next.owner, n);
          expect(next.item).toEqual({ owner: next.owner, n });
          for (const [owner, others] of served) if (owner !== next.owner) others.push(next.owner);
          served.delete(next.owner);
          if (queue.countOf(next.owner) > 0) served.set(next.owner, []);
          // Nobody is served twice while another owner waits.
          for (const others of served.values()) expect(new Set(others).size).toBe(others.length);
        }
      }),
      { numRuns: 200 },
    );
  });
});
