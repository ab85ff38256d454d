import type { Clock } from '../../core/clock.ts';
import { type QueueKey, type QueuePriority, queueKeyText } from '../../store/messages/queue.ts';

export type WaitingIndex = ReturnType<typeof createWaitingIndex>;

/** Keys that wait at one site; the scan of the queue finds further ones. */
export const MAX_WAITING_AT_SITE = 10_000;
/** Keys that wait at all sites, likewise. */
const MAX_WAITING = 50_000;
/** Accounts that `takeOf` examines. */
const MAX_EXAMINED = 32;

/**
 * The keys that wait at any site: a key that waits is read when the site has capacity, and need not be requested.
 *
 * `clock`: monotonic.
 */
export function createWaitingIndex(clock: Clock) {
  const waiting = new Map<string, number>();
  return {
    add: (keyText: string): void => void waiting.set(keyText, clock.now()),
    delete: (keyText: string): void => void waiting.delete(keyText),
    /** Since when the key waits (monotonic); null: it does not. `keyText`: see `queueKeyText`. */
    since: (keyText: string): number | null => waiting.get(keyText) ?? null,
    isFull: (): boolean => waiting.size >= MAX_WAITING,
  };
}

/**
 * The queue keys that wait at one site: they have more mail in the queue than the site had capacity for. Accounts take
 * turns, and so do the keys of an account.
 *
 * Empty at first. `index` is shared by all sites. Keys above `MAX_WAITING_AT_SITE` of this site or above the limit of
 * the index are ignored: the scan of the queue finds them.
 */
export function createWaitingKeys(index: WaitingIndex) {
  /** By priority, account and destination; the account and the key whose turn it is come first. */
  const accounts: [Map<string, Map<string, QueueKey>>, Map<string, Map<string, QueueKey>>] = [
    new Map(),
    new Map(),
  ];
  let size = 0;

  /** Removes and returns the first key of an account; the account becomes the last. */
  function takeFirst(priority: QueuePriority, accountId: string, keys: Map<string, QueueKey>): QueueKey[] {
    accounts[priority].delete(accountId);
    const [key] = keys.values();
    if (key === undefined) return [];
    keys.delete(key.destination);
    size--;
    index.delete(queueKeyText(key));
    if (keys.size > 0) accounts[priority].set(accountId, keys);
    return [key];
  }

  return {
    /** A key that waits already stays in its place. */
    add: (key: QueueKey): void => {
      const { priority, account_id: accountId, destination } = key;
      const keys = accounts[priority].get(accountId);
      if (keys?.has(destination) !== true) {
        if (size >= MAX_WAITING_AT_SITE || index.isFull()) return;
        size++;
        const added = { priority, account_id: accountId, destination };
        if (keys === undefined) accounts[priority].set(accountId, new Map([[destination, added]]));
        else keys.set(destination, added);
      }
      index.add(queueKeyText(key));
    },
    count: (): number => size,
    /** A copy. */
    list: (): QueueKey[] =>
      accounts.flatMap((all) => [...all.values()].flatMap((keys) => [...keys.values()])),
    /** Removes and returns the keys of a priority whose turn it is, at most `count`. */
    take: (priority: QueuePriority, count: number): QueueKey[] => {
      const taken: QueueKey[] = [];
      while (taken.length < count) {
        const [first] = accounts[priority];
        if (first === undefined) break;
        taken.push(...takeFirst(priority, ...first));
      }
      return taken;
    },
    /**
     * Like `take`, for accounts that `wants` accepts, one key each. Examines a bounded number of accounts, others each
     * time.
     */
    takeOf: (priority: QueuePriority, count: number, wants: (accountId: string) => boolean): QueueKey[] => {
      const taken: QueueKey[] = [];
      const all = accounts[priority];
      let left = Math.min(all.size, MAX_EXAMINED);
      for (const [accountId, keys] of all) {
        if (left-- <= 0 || taken.length >= count) break;
        if (wants(accountId)) {
          taken.push(...takeFirst(priority, accountId, keys));
          continue;
        }
        all.delete(accountId);
        all.set(accountId, keys);
      }
      return taken;
    },
    /** Removes all. */
    clear: (): void => {
      for (const all of accounts) {
        for (const keys of all.values()) for (const key of keys.values()) index.delete(queueKeyText(key));
        all.clear();
      }
      size = 0;
    },
  };
}
