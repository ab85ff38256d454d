import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { abortAfter } from '../../../src/core/concurrency/abort.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('aborts after the time', () => {
  const signal = abortAfter(100, new AbortController().signal);
  vi.advanceTimersByTime(99);
  expect(signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect(signal.reason).toMatchObject({ name: 'TimeoutError' });
});

it('aborts with the parent, and leaves no timer', () => {
  const parent = new AbortController();
  const signal = abortAfter(100, parent.signal);
  parent.abort('closed');
  expect(signal.reason).toBe('closed');
  expect(vi.getTimerCount()).toBe(0);
});

it('allows many listeners, and many signals with one parent, without a warning', () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const parent = new AbortController();
  const signals = Array.from({ length: 20 }, () => abortAfter(100, parent.signal));
  for (let n = 0; n < 20; n++) signals[0]?.addEventListener('abort', () => {});
  expect(warn).not.toHaveBeenCalled();
  warn.mockRestore();
  parent.abort();
});

it('is aborted from the start if the parent is', () => {
  expect(abortAfter(100, AbortSignal.abort('closed')).reason).toBe('closed');
  expect(vi.getTimerCount()).toBe(0);
});
