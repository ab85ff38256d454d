import { describe, expect, it } from 'vitest';
import {
  type BudgetShare,
  createBudget,
  defaultConnections,
} from '../../../src/delivery/scheduling/shares.ts';

const share = (account: string, changes: Partial<BudgetShare> = {}): BudgetShare => ({
  account,
  site: `mx.${account}`,
  priority: 0,
  size: 1,
  ...changes,
});

/** Takes as many shares as are admitted, at most `limit`; each at a different site unless the site has a `#`. */
function fill(budget: ReturnType<typeof createBudget>, of: BudgetShare, limit = 10_000): number {
  for (let n = 0; n < limit; n++) {
    const next = { ...of, site: of.site.includes('#') ? of.site : `${of.site} ${n}` };
    if (!budget.admits(next)) return n;
    budget.take(next);
  }
  return limit;
}

describe('a budget', () => {
  it('is never exceeded', () => {
    const budget = createBudget(100);
    for (let n = 0; n < 50; n++) fill(budget, share(`a${n}`));
    expect(budget.used()).toBeLessThanOrEqual(100);
  });

  it('gives an account that is alone most of it, and leaves some for the next one', () => {
    const budget = createBudget(500);
    expect(fill(budget, share('one'))).toBe(400);
    expect(fill(budget, share('two'))).toBeGreaterThan(50);
    expect(fill(budget, share('three'))).toBeGreaterThan(0);
  });

  it('admits a small message after several accounts filled it with large ones', () => {
    const budget = createBudget(64 << 20);
    for (const account of ['one', 'two', 'three']) fill(budget, share(account, { size: 2_800_000 }));
    expect(budget.admits(share('four', { size: 20_000 }))).toBe(true);
  });

  it('never gives one site all of it', () => {
    const budget = createBudget(300);
    expect(fill(budget, share('one', { site: '#slow' }))).toBe(200);
    expect(budget.admits(share('one', { site: '#other' }))).toBe(true);
  });

  it('reserves a part for transactional mail, with any number of accounts that send marketing', () => {
    const budget = createBudget(100);
    for (let n = 0; n < 200; n++) fill(budget, share(`a${n}`, { priority: 1 }));
    expect(budget.used()).toBeLessThanOrEqual(90);
    expect(budget.admits(share('reset', { priority: 0 }))).toBe(true);
  });

  it('admits a share that is larger than the budget when nothing else is in use', () => {
    const budget = createBudget(10);
    const large = share('one', { size: 50 });
    expect(budget.admits(large)).toBe(true);
    budget.take(large);
    expect(budget.admits(share('two'))).toBe(false);
    budget.release(large);
    expect(budget.used()).toBe(0);
    expect(budget.admits(share('two'))).toBe(true);
  });

  it('admits a share of size 0 even when it is full', () => {
    const budget = createBudget(100);
    fill(budget, share('one'));
    budget.take(share('two', { size: 100 - budget.used() }));
    expect(budget.admits(share('one', { size: 0 }))).toBe(true);
  });

  it('admits one share at a time to a budget of size 1', () => {
    const budget = createBudget(1);
    expect(fill(budget, share('one', { priority: 1 }), 5)).toBe(1);
    expect(budget.admits(share('two'))).toBe(false);
  });
});

describe('the default number of sessions', () => {
  it.each([
    [null, 500],
    [1_048_576, 500],
    [2064, 500],
    [1024, 240],
    [256, 48],
    [64, 1],
    [10, 1],
  ])('limits the sessions with %s open files to %s', (files, connections) => {
    expect(defaultConnections(files)).toBe(connections);
  });
});
