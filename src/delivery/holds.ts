import { SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import type { Context } from '../store/context.ts';
import { createPortions } from '../store/maintenance/portions.ts';
import type { QueueKey } from '../store/messages/queue.ts';

export type Holds = ReturnType<typeof createHolds>;

const RELEASE_INTERVAL_MS = SECOND;
const COUNT_INTERVAL_MS = 5 * SECOND;

/**
 * Releases messages that were held because their account was disabled or the verification of their domain had failed. What
 * is held, and why, is in the database: a change by another process is noticed within a second, and a release that was
 * interrupted continues after the next start. A released message is checked again when it leaves the queue.
 *
 * `start` begins two loops: one releases messages every second, the other one counts them every 5 s. `count` returns 0
 * until the first count has ended.
 */
export function createHolds(
  { clock, log, tables, writer }: Pick<Context, 'clock' | 'log' | 'tables' | 'writer'>,
  {
    countHeld,
    announce,
  }: {
    /** Counts held messages without blocking the event loop. */
    countHeld(): Promise<number>;
    /** Called for the queue keys of released messages, which are on disk and due. */
    announce(key: QueueKey): void;
  },
) {
  const portions = createPortions({ writer, share: 'held messages' });
  let held = 0;

  async function release(): Promise<void> {
    for (const domainId of tables.queue.heldDomains()) {
      // Read again in each portion: the account can be disabled again during the release.
      if (tables.domains.sendingStop(domainId) !== null) continue;
      let released = 0;
      const finished = await portions.run(
        (tx, limit) => {
          const isStopped = tx.domains.sendingStop(domainId) !== null;
          const keys = isStopped ? [] : tx.queue.releaseHeld(domainId, clock.now(), limit);
          return { keys, rows: keys.length, isDone: keys.length < limit };
        },
        ({ keys }) => {
          released += keys.length;
          for (const key of keys) announce(key);
        },
      );
      if (released > 0) log.info({ domainId, messages: released }, 'held messages released');
      if (!finished) return;
    }
  }

  const releaseLoop = createLoop({
    name: 'held-messages',
    run: release,
    intervalMs: RELEASE_INTERVAL_MS,
    log,
  });
  const countLoop = createLoop({
    name: 'held-messages-count',
    run: async () => {
      held = await countHeld();
    },
    intervalMs: COUNT_INTERVAL_MS,
    log,
  });

  return {
    start: (): void => {
      releaseLoop.start();
      countLoop.start();
    },
    /** Number of held messages, counted every few seconds. */
    count: (): number => held,
    /** Resolves after the portion in progress. */
    stop: async (): Promise<void> => {
      portions.stop();
      await Promise.all([releaseLoop.stop(), countLoop.stop()]);
    },
  };
}
