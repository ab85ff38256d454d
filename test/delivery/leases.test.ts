import { describe, expect, it } from 'vitest';
import { MINUTE } from '../../src/core/clock.ts';
import { createExpiryClock } from '../../src/core/expiry-clock.ts';
import { createLog } from '../../src/core/log.ts';
import { createLeases, type LeasesDeps } from '../../src/delivery/leases.ts';
import type { OutcomeUnit } from '../../src/delivery/recording.ts';
import { createClaims } from '../../src/delivery/scheduling/claims.ts';
import { HELD, type QueueKey } from '../../src/store/messages/queue.ts';
import { enqueue, startStore } from '../support/store.ts';

const GENERATION = 7;

function createTestLeases(sendingObstacle: LeasesDeps['sendingObstacle'] = () => null) {
  const store = startStore();
  const { tables, writer, clock, recorder } = store;
  const claims = createClaims(clock);
  const outcomes: unknown[] = [];
  const returned: QueueKey[] = [];
  const suspected = { count: 0 };
  const recorded: Promise<void>[] = [];
  const leases = createLeases({
    clock,
    expiry: createExpiryClock(clock, clock),
    log: createLog({ level: 'silent', hashAddresses: true }),
    writer,
    recorder,
    claims,
    recording: {
      persist: (_seq: number, unit: OutcomeUnit, then?: () => void) => {
        recorded.push(writer.run(unit).then(() => then?.()));
      },
      suspect: () => void suspected.count++,
    },
    generation: GENERATION,
    sendingObstacle,
    onOutcome: (seq, outcome) => void outcomes.push([seq, outcome]),
    onReturned: ({ priority, account_id, destination }) =>
      void returned.push({ priority, account_id, destination }),
  });
  const { seq } = enqueue(tables, clock.now());
  const message = tables.queue.ready(seq);
  if (message === null) throw new Error('the message is not ready');
  claims.add(message);
  const take = async () => {
    const taken: boolean[] = [];
    leases.take(message, (value) => void taken.push(value));
    await leases.settled();
    return taken;
  };
  /** The message with its queue row and the kinds of its events. */
  const state = () => ({
    status: tables.messages.bySeq(seq)?.status,
    queue: tables.queue.get(seq),
    events: tables.events.ofMessage(seq).map(({ kind }) => kind),
  });
  return { ...store, leases, claims, message, outcomes, returned, suspected, recorded, take, state };
}

describe('taking a message', () => {
  it('leases it and makes it sending in one commit', async () => {
    const { take, state, claims, outcomes } = createTestLeases();
    expect(await take()).toEqual([true]);
    expect(state()).toMatchObject({
      status: 'sending',
      queue: { lease: GENERATION },
      events: ['email_sent'],
    });
    expect(claims.count()).toBe(0);
    expect(outcomes).toEqual([]);
  });

  it('leaves one in the queue that changed its lane since it was read', async () => {
    const { take, state, tables, message, clock } = createTestLeases();
    tables.queue.moveToSecondary(message.seq, clock.now());
    expect(await take()).toEqual([false]);
    expect(state()).toMatchObject({ status: 'queued', queue: { lease: null, secondary: 1 }, events: [] });
  });

  it('holds one that may not be sent now', async () => {
    const { take, state, message, outcomes } = createTestLeases(() => ({ kind: 'hold' }));
    expect(await take()).toEqual([false]);
    expect(state()).toMatchObject({ status: 'queued', queue: { lease: null, due_at: HELD }, events: [] });
    expect(outcomes).toEqual([[message.seq, null]]);
  });

  it('records why one may never be sent', async () => {
    const { take, state } = createTestLeases(() => ({
      kind: 'email_suppressed',
      fields: { reasonCode: 'RECIPIENT_SUPPRESSED', reason: 'hard_bounce' },
    }));
    expect(await take()).toEqual([false]);
    expect(state()).toMatchObject({ status: 'failed', queue: null, events: ['email_suppressed'] });
  });

  it('does not lease one that another process deferred', async () => {
    const { take, state, tables, message, clock } = createTestLeases();
    tables.queue.defer(message.seq, clock.now() + MINUTE);
    expect(await take()).toEqual([false]);
    expect(state()).toMatchObject({ status: 'queued', queue: { lease: null, ready: 0 }, events: [] });
  });

  it('leaves it in the queue when the commit fails, and skips it for a while', async () => {
    const { leases, state, claims, clock, message, suspected } = createTestLeases(() => {
      throw new Error('database or disk is full');
    });
    let failed = 0;
    leases.take(
      message,
      () => {},
      () => void failed++,
    );
    await leases.settled();
    expect(failed).toBe(1);
    expect(suspected.count).toBe(1);
    expect(state()).toMatchObject({ status: 'queued', queue: { lease: null, ready: 1 }, events: [] });
    expect(claims.has(message.seq)).toBe(true);
    clock.advance(1000);
    claims.sweep();
    expect(claims.has(message.seq)).toBe(false);
  });
});

describe('putting a message back', () => {
  it.each([0, MINUTE])('ends its lease; it is due after %s ms in its state before', async (waitMs) => {
    const { take, leases, state, returned, recorded, message, clock } = createTestLeases();
    await take();
    leases.putBack(message, waitMs);
    await Promise.all(recorded);
    expect(state()).toMatchObject({
      status: 'queued',
      queue: { lease: null, ready: waitMs === 0 ? 1 : 0, due_at: clock.now() + waitMs },
    });
    expect(returned).toEqual([{ priority: 0, account_id: 'acct_one', destination: 'example.net' }]);
  });
});

describe('failing a message', () => {
  it('ends one that is not leased', async () => {
    const { leases, state, message, claims } = createTestLeases();
    leases.fail(message, { reason: 'expired', attempts: 0, lastDiagnostic: 'x' });
    await leases.settled();
    expect(state()).toMatchObject({ status: 'failed', queue: null, events: ['email_failed'] });
    expect(claims.count()).toBe(0);
  });

  it('ends one that is leased', async () => {
    const { take, leases, state, message, recorded } = createTestLeases();
    await take();
    leases.failLeased(message, { reason: 'domain_deleted' });
    await Promise.all(recorded);
    expect(state()).toMatchObject({ status: 'failed', queue: null, events: ['email_sent', 'email_failed'] });
  });
});

describe('postponing a message', () => {
  it('keeps its state and ends the claim', async () => {
    const { leases, state, message, claims, clock } = createTestLeases();
    leases.postpone(message, MINUTE);
    await leases.settled();
    expect(state()).toMatchObject({
      status: 'queued',
      queue: { lease: null, ready: 0, due_at: clock.now() + MINUTE },
      events: [],
    });
    expect(claims.count()).toBe(0);
  });
});
