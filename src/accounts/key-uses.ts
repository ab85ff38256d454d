import type { Clock } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import type { Log } from '../core/log.ts';
import type { Writer } from '../store/database/writer.ts';

const WRITE_INTERVAL_MS = 60_000;

/**
 * When keys were last used. A call changes memory only; once a minute the new times are written in one unit of work.
 * What a kill or a failed write loses is at most a minute of them. Begins without a timer: `note` only changes memory,
 * and the loop of `start` writes for the first time after a minute. A last write that fails in `stop` is logged, not
 * thrown.
 */
export function createKeyUses({ writer, clock, log }: { writer: Writer; clock: Clock; log: Log }) {
  // At most one entry per key.
  let noted = new Map<string, number>();
  const write = async (): Promise<void> => {
    if (noted.size === 0) return;
    const uses = noted;
    noted = new Map();
    await writer.run((tables) => {
      for (const [keyId, at] of uses) tables.apiKeys.use(keyId, at);
    });
  };
  const loop = createLoop({
    name: 'key-uses',
    run: write,
    intervalMs: WRITE_INTERVAL_MS,
    firstMs: WRITE_INTERVAL_MS,
    log,
  });
  return {
    /** Notes a use of a key that exists. */
    note: (keyId: string): void => {
      noted.set(keyId, clock.now());
    },
    /** Writes what was noted since the last write. */
    write,
    start: loop.start,
    /** Writes what was noted, then stops. */
    stop: async (): Promise<void> => {
      await loop.stop();
      await write().catch((error: unknown) =>
        log.warn({ err: error }, 'last uses of API keys were not recorded'),
      );
    },
  };
}

export type KeyUses = ReturnType<typeof createKeyUses>;
