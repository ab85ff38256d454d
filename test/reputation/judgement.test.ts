import { describe, expect, it } from 'vitest';
import {
  CAMPAIGN_SAMPLE,
  judge,
  messagesAhead,
  NO_COUNTS,
  type RateCounts,
  type RateLimitSettings,
  stillApplies,
  wilsonLowerBound,
} from '../../src/reputation/judgement.ts';
import { seededNumbers } from '../support/seeded-numbers.ts';

const LIMITS: RateLimitSettings = {
  hard_bounces: { notice: 3, pause: 5 },
  complaints: { notice: 0.1, pause: 0.3 },
  blocks: { slow: 20, pause: 50 },
  unsubscribes: { notice: 2 },
};

interface Shares {
  dead?: number;
  complaining?: number;
}

/**
 * The number of messages that have left when a campaign of `length` messages is stopped; null: it is sent completely.
 * Results arrive in the order of the messages, and as many messages as may be under way have left without a result.
 */
function stopOf({ dead = 0, complaining = 0 }: Shares, length: number, next: () => number): number | null {
  const counts: RateCounts = { ...NO_COUNTS };
  for (let results = 1; results <= length; results++) {
    const isDead = next() < dead;
    const isComplaint = !isDead && next() < complaining;
    if (isDead) {
      counts.bounced++;
      counts.hardBounced++;
    } else counts.delivered++;
    if (isComplaint) counts.complained++;
    // A rate rises with an event only.
    const mayStop = isDead || isComplaint || results === CAMPAIGN_SAMPLE.messages;
    if (mayStop && judge(counts, LIMITS, CAMPAIGN_SAMPLE)?.level === 'pause')
      return Math.min(length, results + messagesAhead(counts));
  }
  return null;
}

/** The share of random campaigns that stop before they have sent more than `within` messages. */
function stoppedShare(
  shares: Shares,
  { within, runs, seed }: { within: number; runs: number; seed: number },
): number {
  const next = seededNumbers(seed);
  let stopped = 0;
  for (let run = 0; run < runs; run++) if (stopOf(shares, within + 1, next) !== null) stopped++;
  return stopped / runs;
}

/** Like `stoppedShare`, but what left until the stop may not exceed `within`. */
function stoppedInTime(
  shares: Shares,
  { within, runs, seed }: { within: number; runs: number; seed: number },
): number {
  const next = seededNumbers(seed);
  let stopped = 0;
  for (let run = 0; run < runs; run++) {
    const left = stopOf(shares, 10 * within, next);
    if (left !== null && left <= within) stopped++;
  }
  return stopped / runs;
}

/** Messages that left when so many have a result. */
const leftAt = (results: number) => results + messagesAhead({ delivered: results, bounced: 0 });

/**
 * The exact probability that a campaign is stopped after each number of results up to `length`, of which a share are events of
 * one signal, independently of each other.
 */
function stopProbabilities(
  signal: 'hard_bounces' | 'complaints',
  share: number,
  length: number,
): Float64Array<ArrayBuffer> {
  const isStop = (results: number, events: number) => {
    const of =
      signal === 'complaints'
        ? { delivered: results, complained: events }
        : { delivered: results - events, bounced: events, hardBounced: events };
    return judge({ ...NO_COUNTS, ...of }, LIMITS, CAMPAIGN_SAMPLE)?.level === 'pause';
  };
  const stopped = new Float64Array(length + 1);
  /** The probability of each number of events while the campaign goes on. */
  let going = [1];
  for (let results = 1; results <= length; results++) {
    const next = Array.from(
      { length: going.length + 1 },
      (_, events) => (going[events] ?? 0) * (1 - share) + (going[events - 1] ?? 0) * share,
    );
    // More events stop it, too.
    let first = next.length;
    if (results >= CAMPAIGN_SAMPLE.messages) while (first > 0 && isStop(results, first - 1)) first--;
    stopped[results] = (stopped[results - 1] ?? 0) + next.slice(first).reduce((sum, p) => sum + p, 0);
    going = next.slice(0, first);
  }
  return stopped;
}

/** The probability that at most `within` messages have left when the campaign is stopped. */
function stopsWithin(signal: 'hard_bounces' | 'complaints', share: number, within: number): number {
  const results = Array.from({ length: within }, (_, n) => n).findLast((n) => leftAt(n) <= within) ?? 0;
  return stopProbabilities(signal, share, results)[results] ?? 0;
}

describe('stopping campaigns, computed exactly', () => {
  it('stops those with dead addresses or complaints in time', () => {
    expect(stopsWithin('hard_bounces', 0.08, 400)).toBeCloseTo(0.9951, 3);
    expect(stopsWithin('hard_bounces', 0.2, 170)).toBeGreaterThan(0.999);
    expect(stopsWithin('complaints', 0.005, 2000)).toBeCloseTo(0.923, 2);
    expect(stopsWithin('complaints', 0.005, 5000)).toBeCloseTo(0.991, 2);
    expect(stopsWithin('complaints', 0.01, 2000)).toBeGreaterThan(0.999);
  });

  it('stops fewer than one of 10,000 clean ones', () => {
    const falseStops =
      (stopProbabilities('hard_bounces', 0.01, 10_000).at(-1) ?? 1) +
      (stopProbabilities('complaints', 0.0003, 10_000).at(-1) ?? 1);
    console.log(`1 % dead addresses and 0.03 % complaints: ${falseStops.toPrecision(3)} stop`);
    expect(falseStops).toBeLessThan(0.0001);
    expect(stopProbabilities('hard_bounces', 0.02, 10_000).at(-1)).toBeLessThan(0.011);
  });
});

describe('stopping random campaigns', () => {
  it('stops those with dead addresses or complaints in time', () => {
    const dead = stoppedInTime({ dead: 0.08 }, { within: 400, runs: 4000, seed: 1 });
    const complaints = stoppedInTime({ complaining: 0.005 }, { within: 2000, runs: 2000, seed: 2 });
    console.log(`8 % dead addresses: ${dead * 100} % stop within 400 messages`);
    console.log(`0.5 % complaints: ${complaints * 100} % stop within 2000 messages`);
    expect(dead).toBeGreaterThan(0.99);
    expect(complaints).toBeGreaterThan(0.9);
    expect(stoppedInTime({ dead: 0.12 }, { within: 400, runs: 1000, seed: 3 })).toBe(1);
    expect(stoppedInTime({ complaining: 0.01 }, { within: 2000, runs: 500, seed: 4 })).toBeGreaterThan(0.995);
  });

  it('does not stop clean ones, however long they are', () => {
    const runs = 500;
    const shares: [name: string, Shares, most: number][] = [
      ['1 % dead addresses, 0.03 % complaints', { dead: 0.01, complaining: 0.0003 }, 0.001],
      ['2 % dead addresses', { dead: 0.02 }, 0.02],
      ['3 % dead addresses (limit of the notice)', { dead: 0.03 }, 0.15],
      ['0.1 % complaints (limit of the notice)', { complaining: 0.001 }, 0.08],
    ];
    for (const [name, each, most] of shares) {
      const stopped = stoppedShare(each, { within: 10_000, runs, seed: 5 });
      console.log(`${name}: ${stopped * runs} of ${runs} campaigns with 10,000 messages stopped`);
      expect(stopped, name).toBeLessThanOrEqual(most);
    }
  });
});

describe('judge', () => {
  const counts = (changes: Partial<RateCounts>): RateCounts => ({ ...NO_COUNTS, ...changes });
  const level = (changes: Partial<RateCounts>) =>
    judge(counts(changes), LIMITS, CAMPAIGN_SAMPLE)?.level ?? null;

  it('decides nothing from few messages or few events', () => {
    expect(level({ delivered: 9, bounced: 1, hardBounced: 1 })).toBeNull();
    expect(level({ delivered: 10, bounced: 20, hardBounced: 20 })).toBeNull();
    expect(level({ delivered: 100, bounced: 9, hardBounced: 9 })).toBeNull();
    expect(level({ delivered: 300, complained: 5 })).toBeNull();
    expect(level({})).toBeNull();
  });

  it('names the worst rate with its sample and its limit', () => {
    expect(
      judge(
        counts({ delivered: 900, bounced: 100, hardBounced: 60, complained: 2 }),
        LIMITS,
        CAMPAIGN_SAMPLE,
      ),
    ).toMatchObject({
      signal: 'hard_bounces',
      level: 'pause',
      messages: 1000,
      events: 60,
      rate: 6,
      limit: 5,
    });
    expect(level({ delivered: 900, bounced: 100, hardBounced: 49 })).toBe('notice');
    expect(level({ delivered: 10_000, complained: 25 })).toBe('notice');
    expect(level({ delivered: 600, blocked: 400 })).toBe('slow');
    expect(level({ delivered: 400, blocked: 600 })).toBe('pause');
    expect(level({ delivered: 1000, unsubscribed: 200 })).toBe('notice');
  });

  it('ignores bounces that are not about the address', () => {
    expect(level({ delivered: 500, bounced: 500 })).toBeNull();
  });
});

it('bounds a rate from below as published tables do', () => {
  // Agresti, Coull (1998), one-sided 97.5 %.
  expect(wilsonLowerBound(1, 10, 1.96)).toBeCloseTo(0.0179, 4);
  expect(wilsonLowerBound(0, 10, 1.96)).toBe(0);
  expect(wilsonLowerBound(10, 10, 1.96)).toBeCloseTo(0.7225, 4);
});

it('ends a limit clearly below where it began', () => {
  const blocked = (share: number) => ({ ...NO_COUNTS, delivered: 100 - share, blocked: share });
  expect([20, 15, 13].map((share) => stillApplies(blocked(share), 'blocks', 20))).toEqual([
    true,
    true,
    false,
  ]);
});

it('lets few messages of a campaign leave before it has results', () => {
  expect([0, 400, 1999, 2000, 8000].map((delivered) => messagesAhead({ delivered, bounced: 0 }))).toEqual([
    50, 50, 50, 500, 2000,
  ]);
});
