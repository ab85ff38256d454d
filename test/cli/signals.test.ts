import { describe, expect, it } from 'vitest';
import { withStopSignal } from '../../src/cli/signals.ts';

const REASON = new Error('stopped by a signal');

/** Rejects as soon as the signal is aborted, as `node:stream` and `fetch` do. */
function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')));
  });
}

describe('withStopSignal', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'aborts the work at %s, and rejects with the reason',
    async (name) => {
      const stopped = withStopSignal(REASON, untilAborted);
      process.emit(name);
      await expect(stopped).rejects.toBe(REASON);
    },
  );

  it('rejects with another error of the work', async () => {
    const error = new Error('the disk is full');
    const failed = withStopSignal(REASON, async () => {
      process.emit('SIGTERM');
      throw error;
    });
    await expect(failed).rejects.toBe(error);
  });

  it('returns the result, and removes its listeners', async () => {
    const before = process.listenerCount('SIGTERM');
    expect(await withStopSignal(REASON, async () => process.listenerCount('SIGTERM'))).toBe(before + 1);
    expect(process.listenerCount('SIGTERM')).toBe(before);
  });
});
