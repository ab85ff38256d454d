import { PATIENCE_MS } from './patience.ts';

/** The first pause, which grows by half each time, and the longest: frequent polling takes CPU time from other processes. */
const FIRST_PAUSE_MS = 10;
const MAX_PAUSE_MS = 200;

/**
 * Polls `probe` until it returns a value that is neither null nor false, and returns that value: for conditions of
 * another process, which can only be polled. After `ms` (default: `PATIENCE_MS`) throws an error that names `what`. `everyMs`: a
 * constant interval.
 */
export async function eventually<T>(
  what: string,
  probe: () => T | null | false | Promise<T | null | false>,
  options: { ms?: number; everyMs?: number } = {},
): Promise<T> {
  const { ms = PATIENCE_MS, everyMs } = options;
  const deadline = Date.now() + ms;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 1.5, MAX_PAUSE_MS)) {
    const result = await probe();
    if (result !== null && result !== false) return result;
    if (Date.now() > deadline) throw new Error(`timed out after ${ms} ms waiting for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs ?? pause));
  }
}
