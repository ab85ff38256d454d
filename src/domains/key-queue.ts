import type { KeyObject } from 'node:crypto';
import { createFairLimit } from '../core/concurrency/gate.ts';
import { createTally } from '../core/concurrency/tally.ts';
import { type Refusal, refuse } from '../core/refusal.ts';

/**
 * Generates DKIM keys, one at a time: an RSA key occupies a processor and a thread of libuv's pool for at least 100 ms,
 * and anyone with a setup key can request one. Accounts take turns, so that many requests of one account delay another
 * account, and background work, by one key at most.
 */
export type KeyQueue = ReturnType<typeof createKeyQueue>;

/** Keys of one account that are being generated or waiting. */
export const MAX_KEYS_PER_ACCOUNT = 8;
/** Keys of all accounts: about ten seconds on a slow machine, less than the timeout of clients. */
export const MAX_KEYS = 64;
const RETRY_AFTER_SECONDS = 5;

/** Background work takes turns like an account. */
const BACKGROUND = '';

/** Returns a new private key for DKIM signatures. */
export type GenerateKey = () => Promise<KeyObject>;

/**
 * Empty at first. `generate` refuses an account's requests above `MAX_KEYS_PER_ACCOUNT` (`RATE_LIMITED`), and all above
 * `MAX_KEYS` (`UNAVAILABLE`). An error of `generateKey` rejects only its request.
 */
export function createKeyQueue(generateKey: GenerateKey) {
  const limit = createFairLimit({ concurrency: 1 });
  /** Keys waiting or being generated, by account. */
  const requested = createTally();

  return {
    /** Resolves with a new private key, or immediately with a refusal when too many requests are waiting. */
    generate: async (accountId: string): Promise<KeyObject | Refusal> => {
      if (requested.of(accountId) >= MAX_KEYS_PER_ACCOUNT) {
        return refuse(
          'RATE_LIMITED',
          `Limit of ${MAX_KEYS_PER_ACCOUNT} DKIM keys per account being generated at a time reached; try again in ${RETRY_AFTER_SECONDS} s`,
          { retryAfter: RETRY_AFTER_SECONDS },
        );
      }
      if (requested.total >= MAX_KEYS) {
        return refuse(
          'UNAVAILABLE',
          `Too many DKIM keys are being generated; try again in ${RETRY_AFTER_SECONDS} s`,
          { retryAfter: RETRY_AFTER_SECONDS },
        );
      }
      const end = requested.hold(accountId);
      try {
        return await limit.run(accountId, generateKey);
      } finally {
        end();
      }
    },
    /** For background work; the callers limit the number of requests. */
    generateInBackground: (): Promise<KeyObject> => limit.run(BACKGROUND, generateKey),
  };
}
