import { describe, expect, it } from 'vitest';
import { createLog } from '../../../src/core/log.ts';
import { type ClaimedMessage, createClaims } from '../../../src/delivery/scheduling/claims.ts';
import { createWaits } from '../../../src/delivery/waits.ts';
import { heldClock } from '../../support/store.ts';

const message = (seq: number): ClaimedMessage => ({
  seq,
  priority: 0,
  account_id: 'acct_one',
  destination: 'one.test',
});
function startClaims() {
  const clock = heldClock();
  const log = createLog({ level: 'silent', hashAddresses: true });
  const waits = createWaits({ clock, monotonic: clock, log });
  return { clock, waits, claims: createClaims(waits) };
}
const KEY = { priority: 0, account_id: 'acct_one', destination: 'one.test' } as const;

describe('a claim', () => {
  it('is counted once for its key, until it is released', () => {
    const claims = startClaims().claims;
    claims.add(message(1));
    claims.add(message(1));
    expect([claims.has(1), claims.countOf(KEY), claims.count()]).toEqual([true, 1, 1]);
    claims.release(message(1));
    claims.release(message(1));
    expect([claims.has(1), claims.countOf(KEY), claims.count()]).toEqual([false, 0, 0]);
  });

  it('on a message that failed expires, later after each failure', () => {
    const { clock, waits, claims } = startClaims();
    const waitedSeconds: number[] = [];
    for (let n = 0; n < 12; n++) {
      claims.holdOff(message(1));
      let waited = 0;
      while (claims.has(1)) {
        clock.advance(1000);
        waited++;
        waits.sweep();
      }
      waitedSeconds.push(waited);
    }
    expect(waitedSeconds).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
    claims.release(message(1));
    claims.holdOff(message(1));
    clock.advance(1000);
    waits.sweep();
    expect(claims.has(1)).toBe(false);
  });

  it('counts as work in progress unless its message is skipped', () => {
    const { clock, waits, claims } = startClaims();
    const key = '0 acct_one one.test';
    expect(claims.isInProgress(key)).toBe(false);
    claims.holdOff(message(1));
    claims.holdOff(message(1));
    expect([claims.isInProgress(key), claims.countOf(KEY)]).toEqual([false, 1]);
    claims.add(message(2));
    expect(claims.isInProgress(key)).toBe(true);
    claims.holdOff(message(2));
    expect(claims.isInProgress(key)).toBe(false);
    clock.advance(2000);
    waits.sweep();
    claims.add(message(1));
    expect([claims.isInProgress(key), claims.countOf(KEY)]).toEqual([true, 1]);
    claims.release(message(1));
    expect([claims.isInProgress(key), claims.countOf(KEY)]).toEqual([false, 0]);
  });

  it('keeps the claim of a message that was read again when the memory of its failure is dropped', () => {
    const { clock, waits, claims } = startClaims();
    claims.holdOff(message(1));
    clock.advance(1000);
    waits.sweep();
    claims.add(message(1));
    for (let seq = 2; seq <= 10_001; seq++) claims.holdOff(message(seq));
    expect([claims.has(1), claims.has(2), claims.countOf(KEY)]).toEqual([true, true, 10_001]);
  });

  it('on messages that failed is bounded in number: the oldest expires early', () => {
    const claims = startClaims().claims;
    for (let seq = 1; seq <= 10_050; seq++) claims.holdOff(message(seq));
    expect(claims.countOf(KEY)).toBe(10_000);
    expect(claims.has(50)).toBe(false);
    expect(claims.has(51)).toBe(true);
  });
});
