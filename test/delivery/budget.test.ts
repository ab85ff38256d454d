import { describe, expect, it } from 'vitest';
import { type Claim, createBudget } from '../../src/delivery/budget.ts';

const claim = (account: string, changes: Partial<Claim> = {}): Claim => ({
  account,
  site: `mx.${account}`,
  lane: 0,
  size: 1,
  ...changes,
});

/** Takes as many claims as are admitted, at most `limit`; each at a site of its own unless told otherwise. */
function fill(budget: ReturnType<typeof createBudget>, of: Claim, limit = 10_000): number {
  for (let n = 0; n < limit; n++) {
    const next = { ...of, site: of.site.includes('#') ? of.site : `${of.site} ${n}` };
    if (!budget.admits(next)) return n;
    budget.take(next);
  }
  return limit;
}

describe('a budget', () => {
  it('is never exceeded, whoever asks', () => {
    const budget = createBudget(100);
    for (let n = 0; n < 50; n++) fill(budget, claim(`a${n}`));
    expect(budget.used()).toBeLessThanOrEqual(100);
  });

  it('gives most of it to an account that is alone, and leaves something for the next', () => {
    const budget = createBudget(500);
    expect(fill(budget, claim('one'))).toBe(400);
    expect(fill(budget, claim('two'))).toBeGreaterThan(50);
    expect(fill(budget, claim('three'))).toBeGreaterThan(0);
  });

  it('admits a small message after several accounts filled it with large ones', () => {
    const budget = createBudget(64 << 20);
    for (const account of ['one', 'two', 'three']) fill(budget, claim(account, { size: 2_800_000 }));
    expect(budget.admits(claim('four', { size: 20_000 }))).toBe(true);
  });

  it('gives no site all of it', () => {
    const budget = createBudget(300);
    expect(fill(budget, claim('one', { site: '#slow' }))).toBe(200);
    expect(budget.admits(claim('one', { site: '#other' }))).toBe(true);
  });

  it('keeps a part for transactional mail, however many accounts send marketing', () => {
    const budget = createBudget(100);
    for (let n = 0; n < 200; n++) fill(budget, claim(`a${n}`, { lane: 1 }));
    expect(budget.used()).toBeLessThanOrEqual(90);
    expect(budget.admits(claim('reset', { lane: 0 }))).toBe(true);
  });

  it('lets a claim larger than the whole go alone', () => {
    const budget = createBudget(10);
    const large = claim('one', { size: 50 });
    expect(budget.admits(large)).toBe(true);
    budget.take(large);
    expect(budget.admits(claim('two'))).toBe(false);
    budget.release(large);
    expect(budget.used()).toBe(0);
    expect(budget.admits(claim('two'))).toBe(true);
  });

  it('admits what takes nothing of it, even when it is full', () => {
    const budget = createBudget(100);
    fill(budget, claim('one'));
    budget.take(claim('two', { size: 100 - budget.used() }));
    expect(budget.admits(claim('one', { size: 0 }))).toBe(true);
  });

  it('of one is used by one at a time', () => {
    const budget = createBudget(1);
    expect(fill(budget, claim('one', { lane: 1 }), 5)).toBe(1);
    expect(budget.admits(claim('two'))).toBe(false);
  });
});
