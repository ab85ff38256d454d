import { describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE, SECOND } from '../../src/core/clock.ts';
import { createExpiryClock, type ExpiryClock } from '../../src/core/expiry-clock.ts';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createAttemptResults, localResult } from '../../src/delivery/attempt-result.ts';
import { createQueueRebase } from '../../src/delivery/clock-jumps.ts';
import { packContent } from '../../src/mail/stored-content.ts';
import { storeMessage } from '../../src/sending/draft.ts';
import type { MessageStatus } from '../../src/store/messages/messages.ts';
import { HELD } from '../../src/store/messages/queue.ts';
import type { Tables } from '../../src/store/tables.ts';
import { enqueue, heldClock, startStore } from '../support/store.ts';

const LIFE = { tx: 2 * DAY, mk: 4 * DAY };

function start() {
  const held = heldClock(0);
  let reads = 0;
  // As performance.now() does, with fractions of a millisecond.
  const monotonic = { now: () => held.now() + (reads++ % 5) / 10, advance: held.advance };
  let offset = Date.UTC(2026, 0, 15, 12);
  let isStopping = false;
  const clock = { now: () => offset + held.now(), advance: held.advance };
  const store = startStore(clock);
  const { tables } = store;
  const expiry = createExpiryClock(clock, monotonic);
  const rebase = createQueueRebase(
    { clock, expiry, writer: store.writer, log: createLog({ level: 'silent', hashAddresses: true }) },
    { maxWaitMs: 4 * HOUR, isStopping: () => isStopping },
  );
  const stop = () => {
    isStopping = true;
  };
  const put = (status: MessageStatus, dueIn: number, priority: 0 | 1 = 0) => {
    const dueAt = dueIn === HELD ? HELD : clock.now() + dueIn;
    const life = priority === 0 ? LIFE.tx : LIFE.mk;
    const message = enqueue(tables, clock.now(), { priority, dueAt, expires_at: clock.now() + life });
    tables.messages.setState(message.seq, status, clock.now(), null, null);
    return message.seq;
  };
  /** Marketing mail that its sender scheduled. */
  const schedule = (dueIn: number, life = LIFE.mk) => {
    const dueAt = clock.now() + dueIn;
    return enqueue(tables, clock.now(), { priority: 1, dueAt, scheduled: true, expires_at: dueAt + life })
      .seq;
  };
  const accept = (now: number) => store.writer.run((tx) => storeAt(tx, now, expiry));
  const dueIn = (seq: number) => (tables.queue.get(seq)?.due_at ?? Number.NaN) - clock.now();
  const expiresIn = (seq: number) => (tables.messages.bySeq(seq)?.expires_at ?? Number.NaN) - clock.now();
  const set = (ms: number) => {
    offset += ms;
  };
  return { ...store, rebase, expiry, accept, put, schedule, dueIn, expiresIn, set, stop, clock, monotonic };
}

/** Accepts a message whose draft was created at `now`. */
function storeAt(tx: Tables, now: number, expiry: Pick<ExpiryClock, 'acceptedAt'>): number {
  const mail = {
    accountId: 'acct_one',
    useCase: 'tx',
    domainId: 'domain_one',
    jobId: null,
    campaignId: null,
    campaignSeq: null,
    groupId: null,
    from: 'shop@sender.example',
    recipient: { mailbox: { name: '', address: 'ada@example.net' }, role: 'to' },
    messageId: `msg_${String(next++).padStart(24, '0')}`,
    contentId: tx.messages.insertContent(packContent('{}'), now),
    contentBytes: 2,
    subject: 'Hello',
    trackClicks: false,
    trackOpens: false,
    essential: false,
    labels: null,
    isSimulation: false,
    now,
    dueAt: now,
  } as const;
  return storeMessage(tx, mail, { simulatorDomain: 'simulator.example', expire: LIFE, expiry }).seq;
}
let next = 0;

describe('a clock that is set back', () => {
  it.each([30_000, HOUR, 400 * DAY])(
    'by %s ms leaves deferred mail its remaining wait and lifetime',
    async (back) => {
      const { rebase, put, schedule, dueIn, expiresIn, set, tables, clock } = start();
      await rebase.run();
      const soon = put('deferred', 5 * MINUTE);
      const later = put('deferred', 3 * HOUR);
      const postponed = put('queued', 10 * MINUTE);
      const held = put('queued', HELD, 1);
      const waiting = put('queued', 0);
      const date = clock.now() + 20 * DAY;
      const scheduled = schedule(20 * DAY);
      set(-back);
      await rebase.run();
      expect(dueIn(soon)).toBe(5 * MINUTE);
      expect(dueIn(later)).toBe(3 * HOUR);
      expect(dueIn(postponed)).toBe(10 * MINUTE);
      expect(expiresIn(soon)).toBe(LIFE.tx);
      expect(expiresIn(waiting)).toBe(LIFE.tx);
      // Held mail and mail that is scheduled for a date stay.
      expect(tables.queue.get(held)?.due_at).toBe(HELD);
      expect(tables.queue.get(scheduled)?.due_at).toBe(date);
      expect(tables.messages.bySeq(scheduled)?.expires_at).toBe(date + LIFE.mk);
    },
  );

  it('is detected although the monotonic clock has fractions of a millisecond', async () => {
    const { rebase, put, dueIn, set, monotonic } = start();
    await rebase.run();
    const seq = put('deferred', HOUR);
    monotonic.advance(0.4);
    set(-DAY - 0.4 + 0.7);
    await rebase.run();
    expect(Math.abs(dueIn(seq) - HOUR)).toBeLessThanOrEqual(1);
  });

  it('is applied once', async () => {
    const { rebase, put, dueIn, set, monotonic } = start();
    await rebase.run();
    const seq = put('deferred', HOUR);
    set(-DAY);
    await rebase.run();
    monotonic.advance(MINUTE);
    await rebase.run();
    expect(dueIn(seq)).toBe(59 * MINUTE);
  });

  it('is applied in a later run when the database fails', async () => {
    const { rebase, put, dueIn, set, tables } = start();
    await rebase.run();
    const seq = put('deferred', HOUR);
    set(-DAY);
    const { makeEarlier } = tables.queue;
    tables.queue.makeEarlier = () => {
      throw new Error('database or disk is full');
    };
    await expect(rebase.run()).rejects.toThrow('full');
    tables.queue.makeEarlier = makeEarlier;
    await rebase.run();
    expect(dueIn(seq)).toBe(HOUR);
  });

  it('before the start leaves no mail with a wait longer than any deferral', async () => {
    const { rebase, put, dueIn } = start();
    const stuck = put('deferred', 300 * DAY);
    const usual = put('deferred', 4 * HOUR);
    await rebase.run();
    expect(dueIn(stuck)).toBe(0);
    expect(dueIn(usual)).toBe(4 * HOUR);
  });
});

describe('a start', () => {
  it('leaves mail that is scheduled for a date, whatever its lifetime was when it was accepted', async () => {
    const { rebase, schedule, dueIn } = start();
    const scheduled = [LIFE.mk, 3 * DAY, 36 * HOUR].map((life) => schedule(7 * DAY, life));
    await rebase.run();
    expect(scheduled.map(dueIn)).toEqual([7 * DAY, 7 * DAY, 7 * DAY]);
  });
});

describe('a clock that is set forward', () => {
  it('expires no mail: it keeps its remaining lifetime', async () => {
    const { rebase, put, expiresIn, dueIn, set } = start();
    await rebase.run();
    const seq = put('deferred', HOUR);
    set(10 * DAY);
    await rebase.run();
    expect(dueIn(seq)).toBeLessThan(0);
    expect(expiresIn(seq)).toBe(LIFE.tx);
    set(-10 * DAY);
    await rebase.run();
    expect(expiresIn(seq)).toBe(LIFE.tx);
  });
});

describe.each([2 * DAY, -2 * HOUR, -3 * DAY])('a clock that is set by %s ms', (step) => {
  it('leaves mail its lifetime that is accepted before the move, during it, and after it', async () => {
    const { rebase, expiry, accept, put, set, monotonic, expiresIn, writer, clock } = start();
    await rebase.run();
    // More than one unit of work moves.
    for (let count = 0; count < 600; count++) put('deferred', HOUR);
    const drafted = clock.now();
    set(step);
    monotonic.advance(SECOND);
    const before = await accept(clock.now());
    const run = rebase.run();
    const during = writer.run((tx) => storeAt(tx, drafted, expiry));
    await run;
    const after = await accept(clock.now());
    const draftedBefore = await accept(drafted);
    for (const seq of [before, await during, after, draftedBefore])
      expect(Math.abs(expiresIn(seq) - LIFE.tx)).toBeLessThan(5 * SECOND);
    expect(expiry.now()).toBe(clock.now());
  });

  it('fails no fresh mail that is deferred before the queue is moved', async () => {
    const { rebase, accept, set, monotonic, clock, expiry, tables, recorder, writer } = start();
    await rebase.run();
    const seq = await accept(clock.now());
    set(step);
    monotonic.advance(MINUTE);
    const results = createAttemptResults(
      { clock, expiry, random: systemRandom },
      {
        recorder,
        retry: {
          first: 5 * MINUTE,
          greylisted: MINUTE,
          factor: 2,
          max: HOUR,
          expireMarketing: 0,
          expireTransactional: 0,
        },
      },
    );
    const outcome = await writer.run((tx) => {
      const message = tx.messages.bySeq(seq);
      if (message !== null) recorder.message(tx, message, { kind: 'email_sent', fields: {} });
      const attempt = { lane: 'primary', conclusion: 'unreachable', sessions: [] } as const;
      return results.record(tx, seq, localResult('unreachable'), attempt);
    });
    expect(outcome?.status).toBe('deferred');
    expect(tables.messages.bySeq(seq)?.status).toBe('deferred');
  });
});

describe('a clock that is not set', () => {
  it('moves no times while it advances or is slewed', async () => {
    const { rebase, put, dueIn, set, monotonic } = start();
    await rebase.run();
    const seq = put('deferred', HOUR);
    for (let n = 0; n < 100; n++) {
      monotonic.advance(MINUTE / 10);
      set(-100);
      await rebase.run();
    }
    expect(dueIn(seq)).toBe(50 * MINUTE + 10_000);
  });
});

describe('mail that waits for a source address', () => {
  it('is due when that changes, without other mail', async () => {
    const { rebase, put, schedule, dueIn, tables, clock } = start();
    await rebase.run();
    const waiting = [
      put('queued', DAY),
      put('deferred', DAY, 1),
      put('queued', LIFE.tx),
      put('queued', LIFE.mk, 1),
    ];
    const others = [schedule(DAY), put('deferred', DAY + 1), put('queued', HELD)];
    const held = put('queued', LIFE.tx);
    tables.queue.hold(held, clock.now() + LIFE.tx);
    const before = others.map(dueIn);
    rebase.release([clock.now() + DAY]);
    await rebase.run();
    expect(waiting.map((seq) => [dueIn(seq), tables.queue.get(seq)?.ready])).toEqual(
      waiting.map(() => [0, 1]),
    );
    expect(others.map(dueIn)).toEqual(before);
    expect(tables.queue.get(held)).toMatchObject({ ready: 0, held: 1 });
  });
});

describe('a stop', () => {
  it('ends a run after the step in progress', async () => {
    const { rebase, put, stop, writer } = start();
    // More than one step moves.
    for (let count = 0; count < 501; count++) put('deferred', 300 * DAY);
    const run = rebase.run();
    stop();
    await writer.close();
    // Another step would be rejected, as the writer is closed.
    await expect(run).resolves.toBeUndefined();
  });
});
