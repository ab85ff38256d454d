import { describe, expect, it } from 'vitest';
import { inSlices as inSlicesOf, type Work, withoutPause } from '../../../src/core/concurrency/slices.ts';

const inSlices = <Result>(work: Work<Result>) => inSlicesOf(work, 'account');

/** Work of `steps` steps, each of which occupies the thread for 2 ms. */
function* busy(steps: number, log: string[] = [], name = ''): Work<string> {
  for (let step = 0; step < steps; step++) {
    const began = performance.now();
    while (performance.now() - began < 2) log.length += 0;
    log.push(name);
    yield;
  }
  return name;
}

describe('sliced work', () => {
  it('returns what the work returns', async () => {
    expect(await inSlices(busy(3, [], 'done'))).toBe('done');
    expect(withoutPause(busy(3, [], 'done'))).toBe('done');
  });

  it('rejects with what the work throws', async () => {
    function* failing(): Work<void> {
      yield;
      throw new Error('no');
    }
    await expect(inSlices(failing())).rejects.toThrow('no');
  });

  it('lets the event loop run between slices', async () => {
    let turns = 0;
    let running = true;
    const count = () => {
      turns++;
      if (running) setImmediate(count);
    };
    setImmediate(count);
    await inSlices(busy(50));
    running = false;
    // 100 ms of work, at most about 7 ms of it in an iteration.
    expect(turns).toBeGreaterThan(8);
  });

  it('alternates with other sliced work', async () => {
    const log: string[] = [];
    await Promise.all([inSlices(busy(40, log, 'a')), inSlices(busy(40, log, 'b'))]);
    expect(log.indexOf('b')).toBeLessThan(log.lastIndexOf('a'));
    expect(log.indexOf('a')).toBeLessThan(log.lastIndexOf('b'));
    expect(log).toHaveLength(80);
  });

  it('shares one slice per iteration among all tasks', async () => {
    const perTurn: number[] = [];
    let done = 0;
    let running = true;
    const observe = () => {
      perTurn.push(done);
      done = 0;
      if (running) setImmediate(observe);
    };
    setImmediate(observe);
    function* counted(): Work<void> {
      for (const step of busy(10)) {
        done++;
        yield step;
      }
    }
    await Promise.all(Array.from({ length: 20 }, () => inSlices(counted())));
    running = false;
    // Three steps of 2 ms go into a slice, and one of another task's may begin in the same turn.
    expect(Math.max(...perTurn)).toBeLessThan(10);
  });
});
