import { describe, expect, it } from 'vitest';
import { createParseQueue, type JobOrigin } from '../../../src/smtp/parser/parse-queue.ts';

const ORIGIN: JobOrigin = { priority: 'first', caller: 'one', subject: 'a' };

function start() {
  let now = 0;
  const queue = createParseQueue<{ origin: JobOrigin; name: string }>(() => now);
  const push = (name: string, origin: Partial<JobOrigin> = {}) =>
    queue.push({ name, origin: { ...ORIGIN, ...origin } });
  /** Takes all waiting jobs; each job costs its caller and subject `ms`. */
  const drain = (ms: (name: string) => number = () => 1) => {
    const order: string[] = [];
    for (let job = queue.take(() => true); job !== undefined; job = queue.take(() => true)) {
      order.push(job.name);
      queue.charge(job.origin, ms(job.name));
    }
    return order;
  };
  return { queue, push, drain, advance: (ms: number) => void (now += ms) };
}

describe('the order of the fair queue', () => {
  it('is the order of arrival for one caller and subject', () => {
    const { push, drain } = start();
    for (const name of ['1', '2', '3']) push(name);
    expect(drain()).toEqual(['1', '2', '3']);
  });

  it('alternates between callers, whatever one of them has waiting', () => {
    const { push, drain } = start();
    for (let n = 0; n < 6; n++) push(`flood ${n}`, { subject: `f${n}` });
    for (let n = 0; n < 2; n++) push(`other ${n}`, { caller: 'two', subject: `o${n}` });
    expect(drain()).toEqual([
      'flood 0',
      'other 0',
      'flood 1',
      'other 1',
      'flood 2',
      'flood 3',
      'flood 4',
      'flood 5',
    ]);
  });

  it('alternates between subjects, however many callers send to one of them', () => {
    const { push, drain } = start();
    for (let n = 0; n < 6; n++) push(`flood ${n}`, { caller: `c${n}`, subject: 'a' });
    push('other', { caller: 'new', subject: 'b' });
    expect(drain().indexOf('other')).toBe(1);
  });

  it('depends on the time of earlier jobs, which decays', () => {
    const { push, drain, advance } = start();
    push('bomb', { caller: 'one' });
    drain(() => 1000);
    const both = () => {
      push('slow', { caller: 'one', subject: 'x' });
      for (let n = 0; n < 3; n++) push(`quick ${n}`, { caller: 'two', subject: `y${n}` });
      return drain().indexOf('slow');
    };
    expect(both()).toBe(3);
    advance(600_000);
    expect(both()).toBe(0);
  });

  it('gives the lowest priority one job in 16', () => {
    const { push, drain } = start();
    for (let n = 0; n < 60; n++) push('token', { subject: `${n}` });
    for (let n = 0; n < 10; n++) push('report', { priority: 'last', caller: `${n}` });
    const order = drain();
    expect(order.slice(0, 64).filter((name) => name === 'report')).toHaveLength(4);
    expect(order).toHaveLength(70);
  });

  it('keeps a job that is not accepted in its place', () => {
    const { queue, push, drain } = start();
    push('1');
    push('2');
    expect(queue.take(() => false)).toBeUndefined();
    expect(drain()).toEqual(['1', '2']);
  });
});

describe('the shares of the fair queue', () => {
  it('are released when a job is taken', () => {
    const { push, drain } = start();
    for (let n = 0; n < 8; n++) expect(push('x')).toBe(true);
    expect(push('x')).toBe(false);
    drain();
    expect(push('x')).toBe(true);
  });

  it('are counted by caller over all subjects', () => {
    const { push } = start();
    const taken = Array.from({ length: 600 }, (_, n) => push('x', { subject: `${n}` }));
    expect(taken.filter(Boolean)).toHaveLength(500);
    expect(push('x', { caller: 'two', subject: 'new' })).toBe(true);
  });

  it('do not reject a job that is put back', () => {
    const { queue, push, drain } = start();
    for (let n = 0; n < 8; n++) push(`${n}`);
    const first = queue.take(() => true);
    push('8');
    if (first !== undefined) queue.putBack(first);
    expect(drain()).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8']);
    expect(queue.clear()).toEqual([]);
  });
});
