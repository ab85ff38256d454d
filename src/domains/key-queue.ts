import type { KeyObject } from 'node:crypto';
import { type Refusal, refuse } from '../core/refusal.ts';

/**
 * Generates DKIM keys, one at a time: an RSA key occupies a processor and a thread of libuv's pool for at least 100 ms,
 * and anyone with a setup key can request one. Accounts take turns, so that many requests of one account delay another
 * account, and background work, by one key at most.
 */
export interface KeyQueue {
  /** Resolves with a new private key, or immediately with a refusal when too many requests are waiting. */
  generate(accountId: string): Promise<KeyObject | Refusal>;
  /** For background work; the callers limit the number of requests. */
  generateInBackground(): Promise<KeyObject>;
}

/** Keys of one account that are being generated or waiting. */
export const MAX_KEYS_PER_ACCOUNT = 8;
/** Keys of all accounts: about ten seconds on a slow machine, less than the timeout of clients. */
export const MAX_KEYS = 64;
const RETRY_AFTER_SECONDS = 5;

/** Background work takes turns like an account. */
const BACKGROUND = null;
type Owner = string | typeof BACKGROUND;

interface Waiting {
  resolve(key: KeyObject): void;
  reject(error: unknown): void;
}

/** Returns a new private key for DKIM signatures. */
export type GenerateKey = () => Promise<KeyObject>;

/**
 * Empty at first. `generate` refuses an account's requests above `MAX_KEYS_PER_ACCOUNT` (`RATE_LIMITED`), and all above
 * `MAX_KEYS` (`UNAVAILABLE`). An error of `generateKey` rejects only its request.
 */
export function createKeyQueue(generateKey: GenerateKey): KeyQueue {
  /** Keys that wait, by owner, in the order of turns. */
  const waiting = new Map<Owner, Waiting[]>();
  /** Keys waiting or being generated, by account. */
  const counts = new Map<string, number>();
  let total = 0;
  let running = false;

  function enqueue(owner: Owner): Promise<KeyObject> {
    return new Promise((resolve, reject) => {
      const queue = waiting.get(owner);
      if (queue === undefined) waiting.set(owner, [{ resolve, reject }]);
      else queue.push({ resolve, reject });
      if (!running) void work();
    });
  }

  async function work(): Promise<void> {
    running = true;
    for (let next = takeNext(); next !== null; next = takeNext()) {
      await generateKey().then(next.resolve, next.reject);
    }
    running = false;
  }

  /** The first request of the owner whose turn it is; the owner moves to the end of the order. */
  function takeNext(): Waiting | null {
    for (const [owner, queue] of waiting) {
      waiting.delete(owner);
      const next = queue.shift();
      if (queue.length > 0) waiting.set(owner, queue);
      if (next !== undefined) return next;
    }
    return null;
  }

  function release(accountId: string): void {
    total--;
    const remaining = (counts.get(accountId) ?? 0) - 1;
    if (remaining > 0) counts.set(accountId, remaining);
    else counts.delete(accountId);
  }

  return {
    generate: async (accountId) => {
      const own = counts.get(accountId) ?? 0;
      if (own >= MAX_KEYS_PER_ACCOUNT) {
        return refuse(
          'RATE_LIMITED',
          `Limit of ${MAX_KEYS_PER_ACCOUNT} DKIM keys per account being generated at a time reached; try again in ${RETRY_AFTER_SECONDS} s`,
          { retryAfter: RETRY_AFTER_SECONDS },
        );
      }
      if (total >= MAX_KEYS) {
        return refuse(
          'UNAVAILABLE',
          `Too many DKIM keys are being generated; try again in ${RETRY_AFTER_SECONDS} s`,
          { retryAfter: RETRY_AFTER_SECONDS },
        );
      }
      counts.set(accountId, own + 1);
      total++;
      try {
        return await enqueue(accountId);
      } finally {
        release(accountId);
      }
    },
    generateInBackground: () => enqueue(BACKGROUND),
  };
}
