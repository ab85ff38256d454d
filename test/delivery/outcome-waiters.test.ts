import { describe, expect, it } from 'vitest';
import type { DeliveryOutcome } from '../../src/delivery/attempt-result.ts';
import { createOutcomeWaiters } from '../../src/delivery/outcome-waiters.ts';

const OUTCOME: DeliveryOutcome = {
  status: 'delivered',
  reply: { code: 250, enhanced: null, text: '' },
  nextAttemptAt: null,
};
const never = () => new AbortController().signal;

describe('the first outcome of a message', () => {
  it('resolves all requests that wait for it', async () => {
    const waiters = createOutcomeWaiters();
    const first = [waiters.first(1, 60_000, never()), waiters.first(1, 60_000, never())];
    const other = waiters.first(2, 1, never());
    waiters.resolve(1, OUTCOME);
    waiters.resolve(1, null);
    expect(await Promise.all(first)).toEqual([OUTCOME, OUTCOME]);
    expect(await other).toBeNull();
  });

  it('is null when the request is aborted', async () => {
    const waiters = createOutcomeWaiters();
    const abort = new AbortController();
    const outcome = waiters.first(1, 60_000, abort.signal);
    abort.abort();
    expect(await outcome).toBeNull();
  });

  it('is null when the request was aborted before', async () => {
    const waiters = createOutcomeWaiters();
    const outcome = waiters.first(1, 60_000, AbortSignal.abort());
    waiters.resolve(1, OUTCOME);
    expect(await outcome).toBeNull();
  });
});
