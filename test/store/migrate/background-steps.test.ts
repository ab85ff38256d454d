import pino from 'pino';
import { describe, expect, it } from 'vitest';
import { type BackgroundStep, createBackgroundSteps } from '../../../src/store/migrate/background-steps.ts';
import { startStore } from '../../support/store.ts';

/** A step that changes `rows` rows, at most ten in a portion. */
function stepOf(name: string, rows: number): BackgroundStep & { left(): number } {
  let left = rows;
  return {
    name,
    description: `${name} filled`,
    run: (_, most) => {
      const changed = Math.min(10, most, left);
      left -= changed;
      return changed;
    },
    left: () => left,
  };
}

function harness(steps: BackgroundStep[]) {
  const { writer } = startStore();
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const rows: Record<string, number> = {};
  const pauses: number[] = [];
  let time = 0;
  const running = createBackgroundSteps({ writer, log }, steps, {
    observe: (step, changed) => {
      rows[step] = (rows[step] ?? 0) + changed;
    },
    // Each read of the clock takes two seconds.
    now: () => (time += 2000),
    pause: async (ms) => void pauses.push(ms),
  });
  return { ...running, lines, rows, pauses };
}

describe('background steps', () => {
  it('run one after the other until nothing is left, with a pause after each unit', async () => {
    const [first, second] = [stepOf('first', 95), stepOf('second', 20)];
    const { start, lines, rows, pauses } = harness([first, second]);
    start();
    await expect.poll(() => first.left() + second.left()).toBe(0);
    await expect.poll(() => lines.at(-1)).toMatchObject({ msg: 'second filled', step: 'second', rows: 20 });
    expect(rows).toEqual({ first: 95, second: 20 });
    // Each portion that changed rows is followed by a pause; the first portion has one row.
    expect(pauses.length).toBeGreaterThanOrEqual(10 + 2);
    expect(pauses.every((ms) => ms > 0)).toBe(true);
    expect(lines.find(({ msg }) => msg === 'background step continues')).toMatchObject({ step: 'first' });
  });

  it('block the event loop for a few milliseconds, and report how many are not complete', async () => {
    const { writer } = startStore();
    let now = 0;
    let left = 500;
    const took: number[] = [];
    const { start, stop, pending } = createBackgroundSteps(
      { writer, log: pino({ level: 'silent' }) },
      [
        {
          name: 'slow',
          description: 'slow filled',
          run: (_, rows, isOver) => {
            const began = now;
            let changed = 0;
            while (changed < Math.min(rows, left)) {
              // A row costs a millisecond.
              now++;
              changed++;
              if (isOver()) break;
            }
            took.push(now - began);
            left -= changed;
            return changed;
          },
        },
      ],
      {
        now: () => now,
        pause: async () => {},
      },
    );
    expect(pending()).toBe(1);
    start();
    await expect.poll(pending).toBe(0);
    await stop();
    expect(left).toBe(0);
    expect(Math.max(...took)).toBeLessThanOrEqual(2);
  });

  it('count a step that fails, log it and run the others', async () => {
    const second = stepOf('second', 5);
    const broken: BackgroundStep = {
      name: 'broken',
      description: 'broken filled',
      run: () => {
        throw new Error('a damaged row');
      },
    };
    const { start, lines, failed, pending } = harness([broken, second]);
    expect(failed()).toBe(0);
    start();
    await expect.poll(() => second.left()).toBe(0);
    await expect.poll(pending).toBe(1);
    expect(failed()).toBe(1);
    expect(lines[0]).toMatchObject({
      msg: 'background step failed; the next start continues it',
      step: 'broken',
    });
  });

  it('log nothing when there is nothing to do', async () => {
    const { start, stop, lines } = harness([stepOf('first', 0)]);
    start();
    await stop();
    expect(lines).toEqual([]);
  });

  it('stop after the unit in progress', async () => {
    const step = stepOf('first', 1_000_000);
    const { start, stop, rows } = harness([step]);
    start();
    await expect.poll(() => rows['first'] ?? 0).toBeGreaterThan(10);
    await stop();
    const { first } = rows;
    expect(step.left()).toBe(1_000_000 - (first ?? 0));
    expect(first).toBeLessThan(1_000_000);
  });
});
