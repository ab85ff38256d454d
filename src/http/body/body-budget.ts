import { type Refusal, refuse } from '../../core/refusal.ts';

/**
 * Bytes of request bodies that wait in memory for their end. The first bytes of each body are not counted, so
 * that small requests are read whatever large ones are under way: their number is bounded by the concurrent
 * requests of each account. What is counted is shared: an account may hold as much as it leaves free, a key half
 * of that. So no account, and no number of its keys, takes the last of it.
 */
export interface BodyBudget {
  /** A body that is about to be read for this key. */
  open(owner: BodyOwner): BodyShare;
}

export interface BodyOwner {
  accountId: string;
  keyId: string;
}

export interface BodyShare {
  /** Counts bytes that have arrived; a refusal when they are too many. */
  take(bytes: number): Refusal | null;
  /** The body has been read or given up. */
  release(): void;
}

/** Bytes of each body that are not counted. */
export const UNCOUNTED_BODY_BYTES = 64 * 1024;

export function createBodyBudget(totalBytes: number): BodyBudget {
  const accounts = new Map<string, number>();
  const keys = new Map<string, number>();
  let used = 0;

  return {
    open: ({ accountId, keyId }) => {
      let size = 0;
      let counted = 0;
      const add = (bytes: number) => {
        counted += bytes;
        used += bytes;
        addTo(accounts, accountId, bytes);
        addTo(keys, keyId, bytes);
      };
      return {
        take: (bytes) => {
          size += bytes;
          const more = Math.max(0, size - UNCOUNTED_BODY_BYTES) - counted;
          if (more === 0) return null;
          const free = totalBytes - used - more;
          if ((accounts.get(accountId) ?? 0) + more > free) return tooMuch('account');
          if (((keys.get(keyId) ?? 0) + more) * 2 > free) return tooMuch('key');
          add(more);
          return null;
        },
        release: () => add(-counted),
      };
    },
  };
}

function addTo(held: Map<string, number>, name: string, bytes: number): void {
  const now = (held.get(name) ?? 0) + bytes;
  if (now > 0) held.set(name, now);
  else held.delete(name);
}

function tooMuch(owner: 'account' | 'key'): Refusal {
  return refuse('RATE_LIMITED', `this ${owner} is uploading too many large requests at the same time`, {
    details: [{ field: 'body', name: 'requestBytes', message: `the ${owner}'s share of memory is used up` }],
    retryAfter: 1,
  });
}
