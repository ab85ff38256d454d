import { type Refusal, refuse } from '../../core/refusal.ts';

/**
 * Limits the memory for request bodies that have not arrived completely. The first bytes of each body are not counted, so
 * that small requests are read however many large ones are in progress; their number is bounded by the concurrent requests
 * of each account. The rest is shared: an account may use as much as it leaves free, a key half of that. Therefore no
 * account uses up the memory, however many keys it has.
 */
export interface BodyBudget {
  /** Opens a share for a body that is about to be read for this key. */
  open(owner: BodyOwner): BodyShare;
}

export interface BodyOwner {
  accountId: string;
  keyId: string;
  /** Whether the first bytes count, too: of bodies that are read before their sender is verified, whose number has no bound. */
  countsAll?: boolean;
}

export interface BodyShare {
  /** Counts bytes that have arrived; refuses them when they are too many. */
  take(bytes: number): Refusal | null;
  /** Releases the bytes, after the body was read or abandoned. */
  release(): void;
}

/** Bytes of each body that are not counted. */
export const UNCOUNTED_BODY_BYTES = 64 * 1024;

/**
 * Begins with all bytes free; counts by account and key in memory, only while bodies are in progress. Each share must
 * be released; releasing it again has no effect.
 */
export function createBodyBudget(totalBytes: number): BodyBudget {
  const accounts = new Map<string, number>();
  const keys = new Map<string, number>();
  let used = 0;

  return {
    open: ({ accountId, keyId, countsAll = false }) => {
      const uncounted = countsAll ? 0 : UNCOUNTED_BODY_BYTES;
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
          const more = Math.max(0, size - uncounted) - counted;
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

function addTo(sums: Map<string, number>, name: string, bytes: number): void {
  const sum = (sums.get(name) ?? 0) + bytes;
  if (sum > 0) sums.set(name, sum);
  else sums.delete(name);
}

function tooMuch(owner: 'account' | 'key'): Refusal {
  return refuse('RATE_LIMITED', `This ${owner} is uploading too many large requests at the same time`, {
    details: [{ field: 'body', name: 'requestBytes', message: `the ${owner}'s share of memory is used up` }],
    retryAfter: 1,
  });
}
