/**
 * Bounds the memory for messages that are being checked, rendered and stored. Rendering takes many times the size
 * of a message, and all requests are rendered in slices beside each other: without a bound, a few dozen large
 * messages exhaust the heap. Small messages never wait. Accounts whose messages wait take turns.
 */
export interface RenderQueue {
  /** Runs `work` when there is room for a message of `size` characters. */
  run<T>(accountId: string, size: number, work: () => Promise<T>): Promise<T>;
}

/** Messages up to this size never wait: their number is bounded by the concurrent requests of each account. */
const SMALL = 64 * 1024;
/** Messages up to this size do not wait for larger ones. */
const MEDIUM = 512 * 1024;
/** Characters of medium messages, and of large ones, that are rendered at a time. */
const MEDIUM_TOTAL = 2 * 1024 * 1024;
const LARGE_TOTAL = 8 * 1024 * 1024;

interface Waiting {
  size: number;
  start(): void;
}

export function createRenderQueue(): RenderQueue {
  const medium = createFairSemaphore(MEDIUM_TOTAL);
  const large = createFairSemaphore(LARGE_TOTAL);
  return {
    run: (accountId, size, work) => {
      if (size <= SMALL) return work();
      return (size <= MEDIUM ? medium : large).run(accountId, size, work);
    },
  };
}

/** A message larger than `total` runs alone. */
function createFairSemaphore(total: number): RenderQueue {
  /** By account, in the order of their turns. */
  const waiting = new Map<string, Waiting[]>();
  let used = 0;

  const fits = (size: number) => used === 0 || used + size <= total;

  /** Whoever is first waits until there is room: smaller messages behind it do not overtake it forever. */
  function startNext(): void {
    for (const [accountId, messages] of waiting) {
      const [first] = messages;
      if (first === undefined || !fits(first.size)) return;
      messages.shift();
      // Put back, the account comes last.
      waiting.delete(accountId);
      if (messages.length > 0) waiting.set(accountId, messages);
      used += first.size;
      first.start();
    }
  }

  async function enter(accountId: string, size: number): Promise<void> {
    if (waiting.size === 0 && fits(size)) {
      used += size;
      return;
    }
    await new Promise<void>((start) => {
      const messages = waiting.get(accountId);
      if (messages === undefined) waiting.set(accountId, [{ size, start }]);
      else messages.push({ size, start });
    });
  }

  return {
    run: async (accountId, size, work) => {
      await enter(accountId, size);
      try {
        return await work();
      } finally {
        used -= size;
        startNext();
      }
    },
  };
}
