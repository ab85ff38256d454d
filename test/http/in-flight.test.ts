import { expect, it } from 'vitest';
import { isRefusal } from '../../src/core/refusal.ts';
import { createInFlight, MAX_LARGE_RESPONSES } from '../../src/http/in-flight.ts';

it('bounds the large responses of an account that wait, and not those of others', async () => {
  const inFlight = createInFlight();
  const entered: { release(): void }[] = [];
  const enter = async () => {
    const large = await inFlight.enterLargeResponse('acct_one');
    if (!isRefusal(large)) entered.push(large);
    return large;
  };
  for (let n = 0; n < MAX_LARGE_RESPONSES; n++) await enter();
  const waiting = Array.from({ length: 256 }, enter);
  expect(await enter()).toMatchObject({ code: 'RATE_LIMITED', extras: { retryAfter: 1 } });
  expect(isRefusal(await inFlight.enterLargeResponse('acct_two'))).toBe(false);
  expect(entered).toHaveLength(MAX_LARGE_RESPONSES);
  while (entered.length > 0) {
    for (const { release } of entered.splice(0)) release();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect((await Promise.all(waiting)).some(isRefusal)).toBe(false);
  expect(isRefusal(await enter())).toBe(false);
});
