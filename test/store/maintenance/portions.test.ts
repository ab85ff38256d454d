import { describe, expect, it } from 'vitest';
import { createPortions, type Portion } from '../../../src/store/maintenance/portions.ts';
import { startStore } from '../../support/store.ts';

/** A clock that moves when a portion works: `msPerRow` for each row. */
function start({ msPerRow = 0.01, crowded = false } = {}) {
  const { writer } = startStore();
  let now = 0;
  const pauses: number[] = [];
  const sizes: number[] = [];
  const portions = createPortions({
    writer: { ...writer, isCrowded: () => crowded },
    share: 'test',
    now: () => now,
    pause: async (ms) => {
      pauses.push(ms);
    },
  });
  /** Processes `rows` rows; `cost` returns the time of each. */
  const work = (total: number, cost: (done: number) => number = () => msPerRow) => {
    let done = 0;
    return portions.run((_, rows): Portion => {
      sizes.push(rows);
      for (let n = 0; n < rows; n++) now += cost(done + n);
      done += rows;
      return { rows, isDone: done >= total };
    });
  };
  return { portions, pauses, sizes, work, advance: (ms: number) => void (now += ms) };
}

describe('work in portions', () => {
  it('begins with one row and grows to the rows of two milliseconds', async () => {
    const { work, sizes } = start({ msPerRow: 0.02 });
    await work(2000);
    expect(sizes.slice(0, 8)).toEqual([1, 2, 4, 8, 16, 32, 64, 100]);
    expect(Math.max(...sizes)).toBe(100);
  });

  it('has a limit of rows, however fast it is', async () => {
    const { work, sizes } = start({ msPerRow: 0 });
    await work(10_000);
    expect(Math.max(...sizes)).toBe(1000);
  });

  it('shrinks when rows become expensive, to one at least', async () => {
    const { work, sizes } = start();
    await work(1500, (done) => (done < 800 ? 0.01 : 50));
    expect(sizes.at(-1)).toBe(1);
  });

  it('pauses as long as each portion took', async () => {
    const { work, pauses } = start();
    await work(3, () => 40);
    expect(pauses).toEqual([40, 40]);
  });

  it('pauses longer while many units wait, and continues eventually', async () => {
    const { work, pauses } = start({ crowded: true });
    expect(await work(2, () => 100)).toBe(true);
    expect(pauses).toEqual([100, 200, 400, 800]);
  });

  it('reports to a step when its time is over', async () => {
    const { portions, advance } = start();
    const seen: boolean[] = [];
    await portions.run((_, rows, isOver) => {
      seen.push(isOver());
      advance(1);
      seen.push(isOver());
      advance(1);
      seen.push(isOver());
      return { rows, isDone: true };
    });
    expect(seen).toEqual([false, false, true]);
  });

  it('stops between two portions', async () => {
    const { portions, work, sizes } = start();
    portions.stop();
    expect(await work(10)).toBe(false);
    expect(sizes).toEqual([]);
  });

  it('rejects with the error that a step throws', async () => {
    const { portions } = start();
    await expect(
      portions.run(() => {
        throw new Error('a page is damaged');
      }),
    ).rejects.toThrow('a page is damaged');
  });
});
