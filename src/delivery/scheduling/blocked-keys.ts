import { type Clock, SECOND } from '../../core/clock.ts';
import { type QueueKey, queueKeyText } from '../../store/messages/queue.ts';
import type { EgressObstacle } from '../source-address.ts';

/**
 * Queue keys whose mail waits for a source address. They are not read for a while, so that a campaign that waits for
 * tomorrow costs no reads; their messages stay ready in the queue.
 */
export interface BlockedKeys {
  /** `obstacle`: why the mail of the key waits. */
  add(key: QueueKey, waitMs: number, obstacle: Pick<EgressObstacle, 'kind' | 'text'>): void;
  /** Whether the key is not to be read now. `keyText`: see `queueKeyText`. */
  has(keyText: string): boolean;
  delete(keyText: string): void;
  /** A copy. */
  list(): { key: QueueKey; kind: EgressObstacle['kind']; text: string }[];
  /** Forgets keys that were not blocked again. */
  sweep(): void;
}

/** A key is read again after this time, as an operator may have changed the warm-up. */
const MAX_WAIT_MS = 5 * SECOND;
const FORGET_AFTER_MS = 60 * SECOND;
/** Further keys are read as often as others. */
const MAX_BLOCKED = 10_000;

/** `clock`: monotonic. */
export function createBlockedKeys(clock: Clock): BlockedKeys {
  const blocked = new Map<
    string,
    { key: QueueKey; until: number; kind: EgressObstacle['kind']; text: string }
  >();
  return {
    add: (key, waitMs, { kind, text }) => {
      const keyText = queueKeyText(key);
      if (blocked.size >= MAX_BLOCKED && !blocked.has(keyText)) return;
      blocked.set(keyText, { key, until: clock.now() + Math.min(waitMs, MAX_WAIT_MS), kind, text });
    },
    has: (keyText) => blocked.size > 0 && (blocked.get(keyText)?.until ?? 0) > clock.now(),
    delete: (keyText) => void blocked.delete(keyText),
    list: () => [...blocked.values()],
    sweep: () => {
      const before = clock.now() - FORGET_AFTER_MS;
      for (const [keyText, { until }] of blocked) if (until < before) blocked.delete(keyText);
    },
  };
}
