import type { KeyObject } from 'node:crypto';
import { type Refusal, refuse } from '../core/refusal.ts';

/**
 * Generation of DKIM keys, one at a time: an RSA key takes a processor and a thread of libuv's pool for 100 ms and
 * more, and anybody with a setup key can ask for one. Accounts take turns, so that one account's many requests
 * delay another account's by one key at most, and the background by as much.
 */
export interface KeyQueue {
  /** Resolves with a new private key, or immediately with a refusal when too many wait already. */
  generate(accountId: string): Promise<KeyObject | Refusal>;
  /** For work that nobody waits for; its callers bound their number themselves. */
  generateInBackground(): Promise<KeyObject>;
}

/** Keys of one account that are being generated or wait for it. */
export const MAX_KEYS_PER_ACCOUNT = 8;
/** The same of all accounts: some ten seconds on a slow machine, less than clients wait for an answer. */
export const MAX_KEYS = 64;
const RETRY_AFTER_SECONDS = 5;

/** Takes its turns like an account. */
const BACKGROUND = null;
type Owner = string | typeof BACKGROUND;

interface Waiting {
  resolve(key: KeyObject): void;
  reject(error: unknown): void;
}

export function createKeyQueue(generateKey: () => Promise<KeyObject>): KeyQueue {
  /** In the order of their turns. */
  const waiting = new Map<Owner, Waiting[]>();
  /** Waiting or under way, by account. */
  const held = new Map<string, number>();
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

  /** The first of the owner whose turn it is; the owner goes to the end of the line. */
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
    const left = (held.get(accountId) ?? 0) - 1;
    if (left > 0) held.set(accountId, left);
    else held.delete(accountId);
  }

  return {
    generate: async (accountId) => {
      const own = held.get(accountId) ?? 0;
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
      held.set(accountId, own + 1);
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
