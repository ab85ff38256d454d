import { describe, expect, it } from 'vitest';
import { compareRates, differenceOf, winnerOf } from '../../src/campaigns/comparison.ts';

const counts = (delivered: number, opened: number, clicked = 0) => ({
  queued: delivered,
  delivered,
  opened,
  clicked,
});

describe('the interval of a difference', () => {
  // Newcombe (1998), table II, method 10.
  it.each([
    [56, 70, 48, 80, 0.0524, 0.3339],
    [9, 10, 3, 10, 0.1705, 0.809],
    [5, 56, 0, 29, -0.0381, 0.1926],
    [0, 10, 0, 20, -0.1611, 0.2775],
    [10, 10, 0, 10, 0.6075, 1],
  ])('of %i of %i and %i of %i is that of the publication', (one, of, other, ofOther, low, high) => {
    const found = differenceOf(
      { people: one, delivered: of },
      { people: other, delivered: ofOther },
      1.959964,
    );
    expect(found.value).toBeCloseTo(one / of - other / ofOther, 10);
    expect([found.low, found.high].map((value) => value.toFixed(4))).toEqual([
      low.toFixed(4),
      high.toFixed(4),
    ]);
  });
});

describe('the winner', () => {
  it('has a rate above that of each other variant, with intervals that exclude 0', () => {
    const all = [counts(1000, 200), counts(1000, 260), counts(1000, 190)];
    expect(winnerOf(all, 'opens')).toEqual({ variant: 1, reason: 'better' });
    const { rates, best } = compareRates(all, 'opens');
    expect(best).toBe(1);
    expect(rates.map(({ difference }) => difference === null || difference.high < 0)).toEqual([
      true,
      true,
      true,
    ]);
    expect(rates[1]).toEqual({ people: 260, rate: 0.26, difference: null });
  });

  it('does not exist where a difference can be chance, or is one to the best but not to all', () => {
    const none = { variant: 0, reason: 'notSignificant' };
    expect(winnerOf([counts(1000, 200), counts(1000, 210)], 'opens')).toEqual(none);
    expect(winnerOf([counts(1000, 100), counts(1000, 200), counts(1000, 205)], 'opens')).toEqual(none);
    expect(winnerOf([counts(1000, 200), counts(1000, 200)], 'opens')).toEqual(none);
    expect(winnerOf([counts(1000, 0), counts(1000, 0)], 'clicks')).toEqual(none);
  });

  it('needs a larger difference among more variants', () => {
    const two = [counts(1000, 200), counts(1000, 237)];
    expect(winnerOf(two, 'opens').reason).toBe('better');
    expect(winnerOf([...two, counts(1000, 150)], 'opens').reason).toBe('notSignificant');
  });

  it('is found by clicks alone where clicks count', () => {
    const all = [counts(1000, 500, 20), counts(1000, 100, 60)];
    expect([winnerOf(all, 'opens').variant, winnerOf(all, 'clicks').variant]).toEqual([0, 1]);
    expect(winnerOf(all, 'clicks').reason).toBe('better');
  });

  it('needs 30 delivered messages of each variant', () => {
    const few = [counts(29, 0), counts(500, 400)];
    expect(winnerOf(few, 'opens')).toEqual({ variant: 0, reason: 'tooFew' });
    expect(winnerOf([counts(30, 0), counts(500, 400)], 'opens').reason).toBe('better');
    const empty = compareRates([counts(0, 0), counts(0, 0)], 'opens');
    expect(empty.rates).toEqual([0, 0].map(() => ({ people: 0, rate: null, difference: null })));
  });
});
