import { describe, expect, it } from 'vitest';
import { createReadQueue } from '../../../src/store/readers/queue.ts';

const LIMITS = { maxWaiting: 6, maxWaitingPerAccount: 4, threads: 2 };

function start(limits: Partial<typeof LIMITS> = {}) {
  const queue = createReadQueue<{ accountId: string; n: number }>({ ...LIMITS, ...limits });
  const job = (accountId: string, n: number) => ({ accountId, n });
  const taken = (idle: number) => {
    const next = queue.take(idle);
    return next === undefined ? null : `${next.accountId}${next.n}`;
  };
  return { queue, job, taken };
}

describe('the read queue', () => {
  it('returns reads in turns of accounts, in order within each', () => {
    const { queue, job, taken } = start({ threads: 1 });
    for (const n of [1, 2, 3]) queue.push(job('a', n));
    for (const n of [1, 2]) queue.push(job('b', n));
    const order = Array.from({ length: 5 }, () => {
      const next = queue.take(1);
      if (next !== undefined) queue.ended(next);
      return next === undefined ? null : `${next.accountId}${next.n}`;
    });
    expect(order).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
    expect(taken(1)).toBeNull();
  });

  it('leaves the last thread to accounts that have none', () => {
    const { queue, job, taken } = start();
    queue.push(job('a', 1));
    queue.push(job('a', 2));
    expect(taken(2)).toBe('a1');
    expect(taken(1)).toBeNull();
    queue.push(job('b', 1));
    expect(taken(1)).toBe('b1');
    queue.ended(job('a', 1));
    expect(taken(1)).toBe('a2');
  });

  it('gives an account further threads while one stays free, after accounts that have none', () => {
    const { queue, job, taken } = start({ threads: 4 });
    for (const n of [1, 2, 3, 4]) queue.push(job('a', n));
    expect(taken(4)).toBe('a1');
    queue.push(job('b', 1));
    expect(taken(3)).toBe('b1');
    expect(taken(2)).toBe('a2');
    expect(taken(1)).toBeNull();
  });

  it('limits the reads of each account', () => {
    const { queue, job } = start();
    const last = job('a', 5);
    for (const n of [1, 2, 3, 4]) expect(queue.push(job('a', n))).toBeNull();
    expect(queue.push(last)).toBe(last);
    expect(queue.push(job('b', 1))).toBeNull();
  });

  it('rejects the newest read of the account with the most reads when the queue is full', () => {
    const { queue, job } = start();
    const newest = job('a', 4);
    for (const n of [1, 2, 3]) queue.push(job('a', n));
    queue.push(newest);
    for (const n of [1, 2]) queue.push(job('b', n));
    expect(queue.push(job('c', 1))).toBe(newest);
    expect(queue.size).toBe(6);
    const refused = job('a', 5);
    expect(queue.push(refused)).toBe(refused);
    const third = job('b', 3);
    expect(queue.push(third)).toBe(third);
  });

  it('removes single reads and all reads', () => {
    const { queue, job, taken } = start();
    const one = job('a', 1);
    queue.push(one);
    queue.push(job('a', 2));
    expect(queue.remove(one)).toBe(true);
    expect(queue.remove(one)).toBe(false);
    expect(queue.clear()).toEqual([{ accountId: 'a', n: 2 }]);
    expect(queue.size).toBe(0);
    expect(taken(2)).toBeNull();
  });
});
