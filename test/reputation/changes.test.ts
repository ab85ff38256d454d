import { describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import {
  changeSentence,
  type DailyCounts,
  percentText,
  providerChanges,
} from '../../src/reputation/changes.ts';
import {
  emptyReputationCounts,
  type ReputationCounts,
} from '../../src/store/reputation/reputation-counts.ts';

const TODAY = Date.UTC(2026, 10, 29);

/** Counts of each day up to today, the last of the list is today; `of`: counts of the day that is so many days ago. */
function days(length: number, of: (age: number) => Partial<ReputationCounts> | null): DailyCounts[] {
  return Array.from({ length }, (_, index) => length - 1 - index).flatMap((age) => {
    const counts = of(age);
    return counts === null
      ? []
      : [
          {
            domain: 'example.com',
            provider: 'Google',
            day: TODAY - age * DAY,
            counts: { ...emptyReputationCounts(), ...counts },
          },
        ];
  });
}

const sentences = (rows: DailyCounts[]) => providerChanges(rows, TODAY).map(changeSentence);

describe('a change', () => {
  it('is named with its beginning and the week before', () => {
    const rows = days(21, (age) =>
      age <= 5 ? { delivered: 880, deferred: 120 } : { delivered: 990, deferred: 10 },
    );
    expect(sentences(rows)).toEqual([
      "Google has deferred 12 % of example.com's mail since 24 November; it was 1 % in the week before.",
    ]);
    expect(providerChanges(rows, TODAY)).toMatchObject([
      { rate: 'deferred', trend: 'worse', since: Date.UTC(2026, 10, 24), share: 0.12, before: 0.01 },
    ]);
  });

  it('can be an improvement', () => {
    const rows = days(21, (age) => (age <= 3 ? { delivered: 1000 } : { delivered: 800, blocked: 200 }));
    expect(providerChanges(rows, TODAY)).toMatchObject([{ rate: 'blocked', trend: 'better', share: 0 }]);
  });

  it('of opens waits for the day to end', () => {
    const steady = days(21, (age) => ({ delivered: 1000, opened: age === 0 ? 0 : 400 }));
    expect(sentences(steady)).toEqual([]);
    const fallen = days(21, (age) => ({ delivered: 1000, opened: age <= 4 ? 40 : 400 }));
    expect(sentences(fallen)).toEqual([
      "4 % of example.com's mail at Google has been opened since 25 November; it was 40 % in the week before.",
    ]);
  });

  it.each<[string, DailyCounts[]]>([
    ['of few messages', days(21, (age) => (age <= 3 ? { delivered: 5, deferred: 4 } : { delivered: 6 }))],
    ['without a week to compare with', days(3, () => ({ delivered: 500, deferred: 500 }))],
    ['that is over', days(21, (age) => ({ delivered: 900, deferred: age >= 3 && age <= 5 ? 300 : 10 }))],
    ['that is small', days(21, (age) => ({ delivered: 100_000, deferred: age <= 5 ? 3000 : 1000 }))],
    ['of one message in ten', days(21, (age) => ({ delivered: 9, hardBounced: age === 0 ? 1 : 0 }))],
    ['without any mail', []],
  ])('%s is none', (_, rows) => {
    expect(sentences(rows)).toEqual([]);
  });

  it('is not found in steady mail with chance', () => {
    // A linear congruential generator: the same numbers in every run.
    let state = 1;
    const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
    const drawn = (n: number, share: number) =>
      Array.from({ length: n }, random).filter((x) => x < share).length;
    let found = 0;
    for (let run = 0; run < 200; run++) {
      const rows = days(21, () => {
        const n = 100 + Math.floor(random() * 400);
        const deferred = drawn(n, 0.08);
        const complained = drawn(n, 0.001);
        return { delivered: n - deferred, deferred, complained, opened: drawn(n - deferred, 0.3) };
      });
      found += providerChanges(rows, TODAY).length;
    }
    expect(found).toBe(0);
  });
});

describe('a share in a sentence', () => {
  it.each([
    [0.12, '12 %'],
    [0.0034, '0.34 %'],
    [0.001, '0.1 %'],
    [0, '0 %'],
    [1, '100 %'],
  ])('%d is %s', (share, text) => {
    expect(percentText(share)).toBe(text);
  });
});
