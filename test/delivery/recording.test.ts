import { describe, expect, it, vi } from 'vitest';
import { MINUTE, monotonicClock, SECOND } from '../../src/core/clock.ts';
import { createExpiryClock } from '../../src/core/expiry-clock.ts';
import { createLog } from '../../src/core/log.ts';
import type { DeliveryOutcome } from '../../src/delivery/attempt-result.ts';
import { createRecording, type OutcomeUnit, type RecordingParts } from '../../src/delivery/recording.ts';
import { createClaims } from '../../src/delivery/scheduling/claims.ts';
import { createWaits } from '../../src/delivery/waits.ts';
import { HELD } from '../../src/store/messages/queue.ts';
import { enqueue, startStore } from '../support/store.ts';

const GENERATION = 7;

const OUTCOME: DeliveryOutcome = {
  status: 'delivered',
  reply: { code: 250, enhanced: null, text: '' },
  nextAttemptAt: null,
};

function start(parts: Partial<RecordingParts> = {}) {
  const store = startStore();
  const { tables, clock } = store;
  const lines: string[] = [];
  const log = createLog(
    { level: 'info', hashAddresses: true },
    { write: (line) => void lines.push(String(JSON.parse(line).msg)) },
  );
  const claims = createClaims(createWaits({ clock, monotonic: clock, log }));
  const observed: unknown[] = [];
  const recording = createRecording(
    {
      ...store,
      monotonic: monotonicClock,
      expiry: createExpiryClock(clock, clock),
      log,
    },
    {
      recorder: store.recorder,
      claims,
      generation: GENERATION,
      sendingObstacle: () => null,
      observe: ({ status }) => void observed.push(status),
      firstRetryMs: 10,
      maxTries: 3,
      ...parts,
    },
  );
  /** A message in the queue that is claimed. */
  const claimed = () => {
    const { seq } = enqueue(tables, clock.now());
    const message = tables.queue.ready(seq) ?? expect.fail('the message is not ready');
    claims.add(message);
    /** The message with its queue row and the kinds of its events. */
    const state = () => ({
      status: tables.messages.bySeq(seq)?.status,
      queue: tables.queue.get(seq),
      events: tables.events.ofMessage(seq).map(({ kind }) => kind),
    });
    return { message, state };
  };
  return { ...store, recording, observed, lines, claims, ...claimed() };
}

const never = () => new AbortController().signal;
const fails = () => {
  throw new Error('database or disk is full');
};

describe('an outcome', () => {
  it('is retried until it is recorded', async () => {
    const { recording, observed } = start();
    let tries = 0;
    const recorded = recording.persist(1, () => (++tries < 3 ? fails() : OUTCOME));
    expect(recording.pending()).toBe(1);
    expect(await recorded).toBe('recorded');
    expect(observed).toEqual(['delivered']);
    expect(tries).toBe(3);
    expect(recording.pending()).toBe(0);
  });

  it('is recorded once even if its observer throws', async () => {
    const { recording, lines } = start({
      observe: () => {
        throw new Error('a defect');
      },
    });
    let units = 0;
    const recorded = recording.persist(1, () => {
      units++;
      return OUTCOME;
    });
    expect(await recorded).toBe('recorded');
    expect([units, recording.pending()]).toEqual([1, 0]);
    expect(lines).toContain('outcome was recorded, but not announced');
  });

  it('counts no failure of the database for one outcome that fails alone', async () => {
    const { recording } = start();
    let tries = 0;
    void recording.persist(1, () => {
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
    const { recording, observed, lines } = start();
    expect(await recording.persist(1, unrecordable, () => OUTCOME)).toBe('replaced');
    expect(observed).toEqual(['delivered']);
    expect(recording.pending()).toBe(0);
    expect(lines).toContain('outcome cannot be recorded; recorded only the status of its message');
  });

  it('is not replaced while the database records nothing', async () => {
    const { recording, observed, tables } = start();
    tables.events.insert = unrecordable;
    let fallbacks = 0;
    let tries = 0;
    const unit: OutcomeUnit = () => {
      tries++;
      return fails();
    };
    for (const seq of [1, 2, 3])
      void recording.persist(seq, unit, () => {
        fallbacks++;
        return OUTCOME;
      });
    await expect.poll(() => recording.unrecorded()).not.toBeNull();
    const before = tries;
    await expect.poll(() => tries).toBeGreaterThan(before + 9);
    expect([fallbacks, observed]).toEqual([0, []]);
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
    const { recording, observed } = start();
    let broken = true;
    for (const seq of [1, 2, 3]) void recording.persist(seq, () => (broken ? fails() : OUTCOME));
    await expect.poll(() => recording.unrecorded()).not.toBeNull();
    await recording.check();
    expect(recording.unrecorded()).not.toBeNull();
    broken = false;
    await expect.poll(() => observed.length).toBe(3);
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
      void recording.persist(seq, () => {
        tries.set(seq, (tries.get(seq) ?? 0) + 1);
        return fails();
      });
    await expect.poll(() => tries.size).toBe(2);
    expect(await recording.drain(monotonicClock.now() + 100)).toBe(2);
    for (const count of tries.values()) expect(count).toBeGreaterThan(1);
  });

  it('resolves as soon as all outcomes are recorded', async () => {
    const { recording } = start();
    let broken = true;
    const recorded = [1, 2].map((seq) => recording.persist(seq, () => (broken ? fails() : OUTCOME)));
    await expect.poll(() => recording.pending()).toBe(2);
    const left = recording.drain(monotonicClock.now() + 60_000);
    broken = false;
    expect(await left).toBe(0);
    expect(await Promise.all(recorded)).toEqual(['recorded', 'recorded']);
  });
});

describe('taking a message', () => {
  it('leases it and makes it sending in one commit', async () => {
    const { recording, message, state, claims, observed } = start();
    expect(await recording.lease(message)).toBe(true);
    expect(state()).toMatchObject({
      status: 'sending',
      queue: { lease: GENERATION },
      events: ['email_sent'],
    });
    expect(claims.count()).toBe(0);
    expect(observed).toEqual([]);
  });

  it('leaves one in the queue that changed its lane since it was read', async () => {
    const { recording, state, tables, message, clock } = start();
    tables.queue.moveToSecondary(message.seq, clock.now());
    expect(await recording.lease(message)).toBe(false);
    expect(state()).toMatchObject({ status: 'queued', queue: { lease: null, secondary: 1 }, events: [] });
  });

  it('holds one that may not be sent now, and ends the wait for its outcome', async () => {
    const { recording, state, message } = start({ sendingObstacle: () => ({ kind: 'hold' }) });
    const outcome = recording.firstOutcome(message.seq, 60_000, never());
    expect(await recording.lease(message)).toBe(false);
    expect(state()).toMatchObject({ status: 'queued', queue: { lease: null, due_at: HELD }, events: [] });
    expect(await outcome).toBeNull();
  });

  it('records why one may never be sent', async () => {
    const { recording, message, state } = start({
      sendingObstacle: () => ({
        kind: 'email_suppressed',
        fields: { reasonCode: 'RECIPIENT_SUPPRESSED', reason: 'hard_bounce' },
      }),
    });
    expect(await recording.lease(message)).toBe(false);
    expect(state()).toMatchObject({ status: 'failed', queue: null, events: ['email_suppressed'] });
  });

  it('does not lease one that another process deferred', async () => {
    const { recording, state, tables, message, clock } = start();
    tables.queue.defer(message.seq, clock.now() + MINUTE);
    expect(await recording.lease(message)).toBe(false);
    expect(state()).toMatchObject({ status: 'queued', queue: { lease: null, ready: 0 }, events: [] });
  });

  it('leaves it in the queue when the commit fails, skips it for a while, and checks the database', async () => {
    const { recording, recorder, state, claims, clock, message } = start({
      sendingObstacle: () => {
        throw new Error('database or disk is full');
      },
    });
    const probe = vi.spyOn(recorder, 'probe');
    expect(await recording.lease(message)).toBe(false);
    await recording.check();
    expect(probe).toHaveBeenCalledOnce();
    expect(state()).toMatchObject({ status: 'queued', queue: { lease: null, ready: 1 }, events: [] });
    expect(claims.has(message.seq)).toBe(true);
    clock.advance(1000);
    expect(claims.has(message.seq)).toBe(false);
  });
});

describe('putting a message back', () => {
  it.each([0, MINUTE])('ends its lease; it is due after %s ms in its state before', async (waitMs) => {
    const { recording, state, message, clock } = start();
    await recording.lease(message);
    expect(await recording.putBack(message, waitMs)).toBe(true);
    expect(state()).toMatchObject({
      status: 'queued',
      queue: { lease: null, ready: waitMs === 0 ? 1 : 0, due_at: clock.now() + waitMs },
    });
  });
});

describe('failing a message', () => {
  it('ends one that is not leased', async () => {
    const { recording, state, message, claims } = start();
    await recording.fail(message, { reason: 'expired', attempts: 0, lastDiagnostic: 'x' });
    expect(state()).toMatchObject({ status: 'failed', queue: null, events: ['email_failed'] });
    expect(claims.count()).toBe(0);
  });

  it('ends one that is leased', async () => {
    const { recording, state, message } = start();
    await recording.lease(message);
    await recording.failLeased(message, { reason: 'domain_deleted' });
    expect(state()).toMatchObject({ status: 'failed', queue: null, events: ['email_sent', 'email_failed'] });
  });
});

describe('postponing a message', () => {
  it('keeps its state and ends the claim', async () => {
    const { recording, state, message, claims, clock } = start();
    await recording.postpone(message, clock.now() + MINUTE);
    expect(state()).toMatchObject({
      status: 'queued',
      queue: { lease: null, ready: 0, due_at: clock.now() + MINUTE },
      events: [],
    });
    expect(claims.count()).toBe(0);
  });

  it('does nothing when it was retried or rerouted after it was read', async () => {
    const { recording, state, message, tables, clock } = start();
    clock.advance(SECOND);
    tables.queue.release(message.seq, clock.now());
    await recording.postpone(message, clock.now() + MINUTE);
    expect(state().queue).toMatchObject({ ready: 1, due_at: clock.now() });
    const read = tables.queue.ready(message.seq) ?? expect.fail('not ready');
    const reroute = { host: 'relay.example', port: 25, tls: 'required', pool: null } as const;
    tables.queueReroutes.assign(message.seq, tables.queueReroutes.number(reroute));
    await recording.postpone(read, clock.now() + MINUTE);
    expect(state().queue).toMatchObject({ ready: 1 });
  });
});

describe('the first outcome of a message', () => {
  it('resolves all requests that wait for it', async () => {
    const { recording } = start();
    const first = [recording.firstOutcome(1, 60_000, never()), recording.firstOutcome(1, 60_000, never())];
    const other = recording.firstOutcome(2, 1, never());
    await recording.persist(1, () => OUTCOME);
    await recording.persist(1, () => null);
    expect(await Promise.all(first)).toEqual([OUTCOME, OUTCOME]);
    expect(await other).toBeNull();
  });

  it('is null when the request is aborted', async () => {
    const { recording } = start();
    const abort = new AbortController();
    const outcome = recording.firstOutcome(1, 60_000, abort.signal);
    abort.abort();
    expect(await outcome).toBeNull();
  });

  it('is null when the request was aborted before', async () => {
    const { recording } = start();
    const outcome = recording.firstOutcome(1, 60_000, AbortSignal.abort());
    await recording.persist(1, () => OUTCOME);
    expect(await outcome).toBeNull();
  });
});
