import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createLoop, type LoopOptions } from '../../../src/core/concurrency/loop.ts';
import { createLog } from '../../../src/core/log.ts';

const INTERVAL_MS = 1000;

describe('a loop', () => {
  let runs = 0;
  let logged: string[] = [];

  beforeEach(() => {
    vi.useFakeTimers();
    runs = 0;
    logged = [];
  });
  afterEach(() => vi.useRealTimers());

  function loop(options: Partial<LoopOptions> = {}) {
    const log = createLog(
      { level: 'info', hashAddresses: false },
      { write: (line: string) => void logged.push(JSON.parse(line).msg) },
    );
    return createLoop({ name: 'test', run: () => void runs++, intervalMs: INTERVAL_MS, log, ...options });
  }

  it('runs at the start and after every interval', async () => {
    const tested = loop();
    tested.start();
    expect(runs).toBe(1);
    await vi.advanceTimersByTimeAsync(2 * INTERVAL_MS);
    expect(runs).toBe(3);
  });

  it('waits for the pause that a run returns', async () => {
    const tested = loop({ run: () => (runs++ === 0 ? 10 : undefined) });
    tested.start();
    await vi.advanceTimersByTimeAsync(10);
    expect(runs).toBe(2);
    await vi.advanceTimersByTimeAsync(INTERVAL_MS - 1);
    expect(runs).toBe(2);
  });

  it('waits before the first run', async () => {
    const tested = loop({ firstMs: 50 });
    tested.start();
    await vi.advanceTimersByTimeAsync(49);
    expect(runs).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(runs).toBe(1);
  });

  it('lengthens the pause by the jitter', async () => {
    const tested = loop({ jitter: 0.5, random: () => 0.5 });
    tested.start();
    await vi.advanceTimersByTimeAsync(1.25 * INTERVAL_MS - 1);
    expect(runs).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(runs).toBe(2);
  });

  it('runs once more when it is woken during a run, and never twice at a time', async () => {
    const gates: (() => void)[] = [];
    const tested = loop({ run: () => new Promise<void>((resolve) => void gates.push(resolve)) });
    tested.start();
    tested.wake();
    tested.wake();
    await vi.advanceTimersByTimeAsync(5 * INTERVAL_MS);
    expect(gates).toHaveLength(1);
    gates[0]?.();
    await vi.advanceTimersByTimeAsync(0);
    expect(gates).toHaveLength(2);
    gates[1]?.();
    await vi.advanceTimersByTimeAsync(INTERVAL_MS - 1);
    expect(gates).toHaveLength(2);
  });

  it('runs when it is woken between runs, and only then', async () => {
    const tested = loop();
    tested.wake();
    expect(runs).toBe(0);
    tested.start();
    await vi.advanceTimersByTimeAsync(INTERVAL_MS / 2);
    tested.wake();
    expect(runs).toBe(2);
    await vi.advanceTimersByTimeAsync(INTERVAL_MS - 1);
    expect(runs).toBe(2);
  });

  it('logs an error once, continues after the retry pause, and logs that it succeeds again', async () => {
    const observed: boolean[] = [];
    const tested = loop({
      run: () => {
        if (runs++ < 2) throw new Error('no space');
      },
      retryMs: 10,
      observe: (_name, _durationMs, failed) => void observed.push(failed),
    });
    tested.start();
    await vi.advanceTimersByTimeAsync(20);
    expect(runs).toBe(3);
    expect(logged).toEqual(['background work failed; trying again later', 'background work succeeds again']);
    expect(observed).toEqual([true, true, false]);
  });

  it('stops after the run in progress', async () => {
    let end = () => {};
    const tested = loop({ run: () => new Promise<void>((resolve) => void (end = resolve)) });
    tested.start();
    let stopped = false;
    void tested.stop().then(() => void (stopped = true));
    tested.wake();
    await vi.advanceTimersByTimeAsync(INTERVAL_MS);
    expect(stopped).toBe(false);
    end();
    await vi.advanceTimersByTimeAsync(0);
    expect(stopped).toBe(true);
    await vi.advanceTimersByTimeAsync(INTERVAL_MS);
    expect(vi.getTimerCount()).toBe(0);
  });
});
