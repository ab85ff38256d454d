import { iso, MINUTE } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import type { ExpiryClock } from '../core/expiry-clock.ts';
import type { Recorder } from '../events/record.ts';
import type { HeldFilter } from '../store/backup/restore-holds.ts';
import type { Context } from '../store/context.ts';
import { partlyDone, unitAfter } from '../store/database/failure.ts';
import { HELD_BY_RESTORE } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';

/** Messages by number, or all that match. */
export type HeldSelection = { seqs: readonly number[] } | { filter: HeldFilter };

/** Rows in one unit of work. */
const BATCH_SIZE = 200;

/**
 * Releases or drops what a restore holds; the daemon may be running.
 *
 * Stateless: rows change in units of work of 200, so that a call that fails or is killed has changed whole batches, and
 * calling it again continues.
 */
export function createHeldMail(
  { clock, tables, writer }: Pick<Context, 'clock' | 'tables' | 'writer'>,
  recorder: Recorder,
) {
  /** Calls `apply` for each message, in batches; resolves with the number of messages for which it returned true. */
  async function change(which: HeldSelection, apply: (all: Tables, seq: number) => boolean): Promise<number> {
    let changed = 0;
    const run = async (seqs: readonly number[]) => {
      changed += await unitAfter(
        partlyDone(changed, 'message', 'changed'),
        writer.run((tx) => seqs.filter((seq) => apply(tx, seq)).length),
      );
    };
    if ('seqs' in which) {
      for (let at = 0; at < which.seqs.length; at += BATCH_SIZE)
        await run(which.seqs.slice(at, at + BATCH_SIZE));
      return changed;
    }
    for (let after = 0; ; ) {
      const seqs = tables.restoreHolds.matching(which.filter, after, BATCH_SIZE);
      const last = seqs.at(-1);
      if (last === undefined) return changed;
      await run(seqs);
      after = last;
    }
  }

  /** Repeats a step until it changes nothing. */
  async function repeat(step: (all: Tables) => number): Promise<number> {
    for (let sum = 0; ; ) {
      const changed = await unitAfter(partlyDone(sum, 'webhook call', 'changed'), writer.run(step));
      if (changed === 0) return sum;
      sum += changed;
    }
  }

  return {
    /**
     * Ends the hold of messages, which are due when they were due before; the daemon notices within a second. Resolves with
     * their number.
     */
    release: (which: HeldSelection): Promise<number> =>
      change(which, (tx, seq) => tx.restoreHolds.release(seq, clock.now()) !== null),
    /** Ends held messages as cancelled, with an event each. Resolves with their number. */
    drop: (which: HeldSelection): Promise<number> =>
      change(which, (tx, seq) => isHeld(tx, seq) && cancel(tx, seq)),
    /** Makes held webhook deliveries due; `accountId` null: of all accounts. */
    releaseWebhooks: (accountId: string | null): Promise<number> =>
      repeat((tx) => tx.restoreHolds.releaseDeliveries(accountId, BATCH_SIZE, clock.now())),
    /** Ends them as failed. */
    dropWebhooks: (accountId: string | null): Promise<number> =>
      repeat((tx) => tx.restoreHolds.dropDeliveries(accountId, BATCH_SIZE, clock.now())),
  };

  function cancel(tx: Tables, seq: number): boolean {
    const message = tx.messages.bySeq(seq);
    if (message === null) return false;
    return recorder.message(tx, message, { kind: 'email_failed', fields: { reason: 'cancelled' } });
  }
}

function isHeld(tables: Tables, seq: number): boolean {
  return tables.queue.get(seq)?.due_at === HELD_BY_RESTORE;
}

/** What is held at present, for monitoring. */
export interface HeldCounts {
  messages: number;
  webhookDeliveries: number;
}

const EXPIRY_INTERVAL_MS = MINUTE;
const MAX_COUNTED = 100_000;

/**
 * Expires held messages at the time at which they would expire in the queue, and counts what is held.
 *
 * Starts nothing: the loop runs at its start and every minute, in batches of 200 messages. `counts` returns zeros
 * before the first run.
 */
export function createHeldExpiry(
  {
    expiry,
    tables,
    writer,
    log,
  }: Pick<Context, 'tables' | 'writer' | 'log'> & { expiry: Pick<ExpiryClock, 'now'> },
  recorder: Recorder,
) {
  let counts: HeldCounts = { messages: 0, webhookDeliveries: 0 };

  async function expire(): Promise<number> {
    let failed = 0;
    for (let after: number | null = 0; after !== null; ) {
      const { seqs, next } = tables.restoreHolds.expired(after, BATCH_SIZE, expiry.now());
      if (seqs.length > 0)
        failed += await writer.run((tx) => seqs.filter((seq) => isHeld(tx, seq) && fail(tx, seq)).length);
      // Yields to the event loop.
      else await new Promise(setImmediate);
      after = next;
    }
    return failed;
  }

  function fail(tx: Tables, seq: number): boolean {
    const message = tx.messages.bySeq(seq);
    if (message === null || message.expires_at > expiry.now()) return false;
    const lastDiagnostic = `held since a restore until it expired at ${iso(message.expires_at)}`;
    const fields = { reason: 'expired', attempts: message.attempts, lastDiagnostic } as const;
    return recorder.message(tx, message, { kind: 'email_failed', fields });
  }

  const loop = createLoop({
    name: 'restore-holds',
    intervalMs: EXPIRY_INTERVAL_MS,
    log,
    run: async () => {
      const expired = await expire();
      counts = {
        messages: tables.restoreHolds.count(MAX_COUNTED),
        webhookDeliveries: tables.restoreHolds.countDeliveries(MAX_COUNTED),
      };
      if (expired > 0) log.warn({ expired, ...counts }, 'messages held since a restore have expired');
    },
  });
  return {
    start: loop.start,
    stop: loop.stop,
    /** Counts of the last run, each up to MAX_COUNTED. */
    counts: (): HeldCounts => ({ ...counts }),
  };
}
