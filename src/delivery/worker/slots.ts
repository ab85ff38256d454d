import type { Connection, Terms } from './connection.ts';
import type { DeliveryJob } from './protocol.ts';

/**
 * The connections at rest, one a slot at most. A connection in use is not here: `take` hands it over, `keep`
 * gives it back. A connection that the server closes, or that rests too long, vanishes from here by itself.
 */
export interface Slots {
  /** The slot's connection if it serves this job too; one that does not is closed. */
  take(job: DeliveryJob): Connection | null;
  /** Keeps it for the slot's next job, unless it has done its share or is of no more use. */
  keep(job: DeliveryJob, connection: Connection): void;
  closeAll(): void;
}

/** `limit`: connections at rest at most; the one that has rested longest is closed for the next. */
export function createSlots(limit = Number.POSITIVE_INFINITY): Slots {
  const resting = new Map<string, { connection: Connection; terms: Terms }>();
  const remove = (slot: string) => {
    const rest = resting.get(slot);
    if (!rest) return null;
    resting.delete(slot);
    rest.connection.wire.wake();
    return rest;
  };
  return {
    take: (job) => {
      const rest = remove(job.slot);
      if (!rest) return null;
      if (serves(rest.connection, job) && sameTerms(rest.terms, job)) return rest.connection;
      rest.connection.wire.quit();
      return null;
    },
    keep: (job, connection) => {
      const { wire } = connection;
      if (wire.dead()) return;
      if (connection.transactions >= job.messagesPerConnection || job.idleMs <= 0) {
        wire.quit();
        return;
      }
      remove(job.slot)?.connection.wire.quit();
      for (const slot of resting.keys()) {
        if (resting.size < limit) break;
        remove(slot)?.connection.wire.quit();
      }
      const { port, tls, auth, egress } = job;
      resting.set(job.slot, { connection, terms: { port, tls, egress, ...(auth ? { auth } : {}) } });
      wire.rest(job.idleMs, () => resting.delete(job.slot));
    },
    closeAll: () => {
      for (const slot of resting.keys()) remove(slot)?.connection.wire.quit();
    },
  };
}

function serves(connection: Connection, job: DeliveryJob): boolean {
  return job.hosts.some(
    (host) => host.name === connection.host && host.addresses.includes(connection.address),
  );
}

function sameTerms(ours: Terms, theirs: Terms): boolean {
  return (
    ours.port === theirs.port &&
    ours.tls === theirs.tls &&
    ours.auth?.user === theirs.auth?.user &&
    ours.auth?.password === theirs.auth?.password &&
    ours.auth?.allowUnverified === theirs.auth?.allowUnverified &&
    ours.egress.hostname === theirs.egress.hostname &&
    ours.egress.address === theirs.egress.address &&
    ours.egress.address6 === theirs.egress.address6
  );
}
