import { describe, expect, it, vi } from 'vitest';
import { withTimeout } from '../../../src/core/concurrency/with-timeout.ts';

describe('withTimeout', () => {
  it('resolves with the result, or with null after the time; the work continues', async () => {
    expect(await withTimeout(Promise.resolve('done'), 60_000)).toBe('done');
    let ended = false;
    const slow = new Promise<string>((resolve) => setTimeout(resolve, 20, 'late')).then((text) => {
      ended = true;
      return text;
    });
    expect(await withTimeout(slow, 1)).toBeNull();
    expect(ended).toBe(false);
    expect(await slow).toBe('late');
  });

  it('rejects with the error of the work, and leaves no timer', async () => {
    const clear = vi.spyOn(globalThis, 'clearTimeout');
    await expect(withTimeout(Promise.reject(new Error('no')), 60_000)).rejects.toThrow('no');
    expect(clear).toHaveBeenCalledTimes(1);
    clear.mockRestore();
  });
});
