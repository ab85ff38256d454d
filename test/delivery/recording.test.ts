import { describe, expect, it } from 'vitest';
import { monotonicClock } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import type { DeliveryOutcome } from '../../src/delivery/attempt-result.ts';
import { createRecording, type OutcomeUnit } from '../../src/delivery/recording.ts';
import { startStore } from '../support/store.ts';

const OUTCOME: DeliveryOutcome = {
  status: 'delivered',
  reply: { code: 250, enhanced: null, text: '' },
  nextAttemptAt: null,
};

function start(onRecorded: () => void = () => {}) {
  const store = startStore();
  const recorded: number[] = [];
  const lines: string[] = [];
  const recording = createRecording({
    ...store,
    monotonic: monotonicClock,
    firstRetryMs: 10,
    maxTries: 3,
    log: createLog(
      { level: 'info', hashAddresses: true },
      { write: (line) => void lines.push(String(JSON.parse(line).msg)) },
    ),
    onOutcome: (seq) => {
      recorded.push(seq);
      onRecorded();
    },
  });
  return { ...store, recording, recorded, lines };
}

const fails = () => {
  throw new Error('database or disk is full');
};

describe('an outcome', () => {
  it('is retried until it is recorded', async () => {
    const { recording, recorded } = start();
    let tries = 0;
    recording.persist(1, () => (++tries < 3 ? fails() : OUTCOME));
    expect(recording.pending()).toBe(1);
    await expect.poll(() => recorded).toEqual([1]);
    expect(tries).toBe(3);
    expect(recording.pending()).toBe(0);
  });

  it('is recorded once even if its callback throws', async () => {
    const { recording, recorded, lines } = start(() => {
      throw new Error('a defect');
    });
    let units = 0;
    recording.persist(1, () => {
      units++;
      return OUTCOME;
    });
    await expect.poll(() => recording.pending()).toBe(0);
    expect(units).toBe(1);
    expect(recorded).toEqual([1]);
    expect(lines).toContain('outcome was recorded, but not announced');
  });

  it('counts no failure of the database for one outcome that fails alone', async () => {
    const { recording } = start();
    let tries = 0;
    recording.persist(1, () => {
      tries++;
      return fails();
    });
    await expect.poll(() => tries).toBeGreaterThan(0);
    await recording.check();
    expect(recording.unrecorded()).toBeNull();
    expect(await recording.drain(monotonicClock.now())).toBe(1);
  });
});

describe('an outcome whose unit of work always throws', () => {
  const unrecordable = () => {
    throw new Error('the fields of the event are not valid');
  };

  it('is replaced by its fallback, which is reported', async () => {
    const { recording, recorded, lines } = start();
    recording.persist(1, unrecordable, undefined, () => OUTCOME);
    await expect.poll(() => recorded).toEqual([1]);
    expect(recording.pending()).toBe(0);
    expect(lines).toContain('outcome cannot be recorded; recorded only the status of its message');
  });

  it('is not replaced while the database records nothing', async () => {
    const { recording, recorded, tables } = start();
    tables.events.insert = unrecordable;
    let fallbacks = 0;
    let tries = 0;
    const unit: OutcomeUnit = () => {
      tries++;
      return fails();
    };
    for (const seq of [1, 2, 3])
      recording.persist(seq, unit, undefined, () => {
        fallbacks++;
        return OUTCOME;
      });
    await expect.poll(() => recording.unrecorded()).not.toBeNull();
    const before = tries;
    await expect.poll(() => tries).toBeGreaterThan(before + 9);
    expect([fallbacks, recorded]).toEqual([0, []]);
    await recording.drain(monotonicClock.now());
  });
});

describe('outcomes count as unrecordable', () => {
  it('while events cannot be inserted', async () => {
    const { recording, tables, lines } = start();
    const { insert } = tables.events;
    tables.events.insert = fails;
    recording.suspect();
    await recording.check();
    expect(recording.unrecorded()).toMatch(
      /^outcomes could not be recorded for \d+ s: database or disk is full$/,
    );
    await recording.check();
    expect(recording.unrecorded()).not.toBeNull();
    tables.events.insert = insert;
    await recording.check();
    expect(recording.unrecorded()).toBeNull();
    expect(lines).toEqual(['outcomes cannot be recorded', 'outcomes are recorded again']);
  });

  it('while the newest event cannot be read, although nothing is sent', async () => {
    const { recording, tables } = start();
    tables.events.checkReadable = fails;
    await recording.check();
    expect(recording.unrecorded()).not.toBeNull();
  });

  it('while several fail and none succeeds, although events can be inserted', async () => {
    const { recording, recorded } = start();
    let broken = true;
    for (const seq of [1, 2, 3]) recording.persist(seq, () => (broken ? fails() : OUTCOME));
    await expect.poll(() => recording.unrecorded()).not.toBeNull();
    await recording.check();
    expect(recording.unrecorded()).not.toBeNull();
    broken = false;
    await expect.poll(() => recorded.length).toBe(3);
    expect(recording.unrecorded()).toBeNull();
  });

  it('only by a check that inserts nothing', async () => {
    const { recording, tables } = start();
    recording.suspect();
    await recording.check();
    expect(tables.events.feed({ accountId: '', afterSeq: 0, limit: 10 }).rows).toEqual([]);
  });
});

describe('drain', () => {
  it('retries until the time is over and returns how many are left', async () => {
    const { recording } = start();
    const tries = new Map<number, number>();
    for (const seq of [1, 2])
      recording.persist(seq, () => {
        tries.set(seq, (tries.get(seq) ?? 0) + 1);
        return fails();
      });
    await expect.poll(() => tries.size).toBe(2);
    expect(await recording.drain(monotonicClock.now() + 100)).toBe(2);
    for (const count of tries.values()) expect(count).toBeGreaterThan(1);
  });

  it('resolves as soon as all outcomes are recorded', async () => {
    const { recording, recorded } = start();
    let broken = true;
    for (const seq of [1, 2]) recording.persist(seq, () => (broken ? fails() : OUTCOME));
    await expect.poll(() => recording.pending()).toBe(2);
    const left = recording.drain(monotonicClock.now() + 60_000);
    broken = false;
    expect(await left).toBe(0);
    expect(recorded.toSorted((a, b) => a - b)).toEqual([1, 2]);
  });
});
