/**
 * Shares the concurrent queries of the resolver between owners. An owner may have as many queries in progress as are left for
 * all others: one alone uses half of them, and an owner without a query gets one immediately. Of the owners with waiting
 * queries, the one with the fewest in progress is next; the queries of an owner start in order of arrival.
 */
export interface QuerySlots {
  /**
   * Calls `start`, never before it returns, when a slot is free for the owner. The returned function releases the slot, or the
   * place in the queue; call it once. Null: too many queries of the owner are waiting.
   */
  take(owner: string, start: () => void): (() => void) | null;
}

export interface QuerySlotsOptions {
  total: number;
  maxWaitingPerOwner: number;
}

interface Queries {
  running: number;
  waiting: Set<() => void>;
}

/** Begins with all slots free. Has no timers; keeps an entry for each owner with queries. */
export function createQuerySlots({ total, maxWaitingPerOwner }: QuerySlotsOptions): QuerySlots {
  const owners = new Map<string, Queries>();
  let free = total;

  function count(owner: string, queries: Queries): void {
    free--;
    queries.running++;
    // Inserted again, the owner comes after others with as few queries.
    owners.delete(owner);
    owners.set(owner, queries);
  }

  function startWaiting(): void {
    for (let next = nextOwner(); next !== null; next = nextOwner()) {
      const [owner, queries] = next;
      const [first] = queries.waiting;
      if (first === undefined) return;
      queries.waiting.delete(first);
      count(owner, queries);
      first();
    }
  }

  function nextOwner(): [owner: string, queries: Queries] | null {
    let least: [string, Queries] | null = null;
    for (const [owner, queries] of owners) {
      if (queries.waiting.size === 0 || queries.running >= free) continue;
      if (least === null || queries.running < least[1].running) least = [owner, queries];
    }
    return least;
  }

  return {
    take: (owner, start) => {
      const queries: Queries = owners.get(owner) ?? { running: 0, waiting: new Set() };
      if (queries.waiting.size >= maxWaitingPerOwner) return null;
      owners.set(owner, queries);
      if (queries.waiting.size === 0 && queries.running < free) {
        count(owner, queries);
        queueMicrotask(start);
      } else queries.waiting.add(start);
      return () => {
        if (!queries.waiting.delete(start)) {
          free++;
          queries.running--;
        }
        if (queries.running === 0 && queries.waiting.size === 0) owners.delete(owner);
        startWaiting();
      };
    },
  };
}
