import type { Connection } from './connection.ts';
import type { DeliveryJob } from './protocol.ts';
import { requirementOf, satisfies } from './requirement.ts';

/**
 * The idle connections, at most one for each slot. `take` removes a connection, `put` returns it. A connection that the
 * server closes, or that is idle for too long, is removed automatically.
 */
export interface IdleConnections {
  /** The slot's connection if it is suitable for this job; otherwise it is closed. */
  take(job: SlotJob): Connection | null;
  /** Stores the connection for the slot's next job; one that has reached its number of messages is closed. */
  put(job: SlotJob, connection: Connection): void;
  closeAll(): void;
}

/** The part of a job that matters for connections. */
export type SlotJob = Pick<
  DeliveryJob,
  | 'slot'
  | 'hosts'
  | 'port'
  | 'tls'
  | 'tlsSource'
  | 'chunking'
  | 'auth'
  | 'egress'
  | 'messagesPerConnection'
  | 'idleMs'
>;

/** What jobs that share a connection have in common, in addition to TLS. */
type SharedTerms = Pick<DeliveryJob, 'port' | 'auth' | 'egress' | 'chunking'>;

/** `limit`: maximum number of idle connections; the one that has been idle longest is closed for the next. */
export function createIdleConnections(limit = Number.POSITIVE_INFINITY): IdleConnections {
  const idle = new Map<string, { connection: Connection; terms: SharedTerms }>();
  const remove = (slot: string) => {
    const found = idle.get(slot);
    if (!found) return null;
    idle.delete(slot);
    found.connection.wire.endIdle();
    return found;
  };
  return {
    take: (job) => {
      const found = remove(job.slot);
      if (!found) return null;
      if (suits(found.connection, job) && equalTerms(found.terms, job)) return found.connection;
      found.connection.wire.quit();
      return null;
    },
    put: (job, connection) => {
      const { wire } = connection;
      if (wire.dead()) return;
      if (connection.transactions >= job.messagesPerConnection || job.idleMs <= 0) {
        wire.quit();
        return;
      }
      remove(job.slot)?.connection.wire.quit();
      for (const slot of idle.keys()) {
        if (idle.size < limit) break;
        remove(slot)?.connection.wire.quit();
      }
      const { port, auth, egress, chunking } = job;
      idle.set(job.slot, { connection, terms: { port, egress, chunking, ...(auth ? { auth } : {}) } });
      wire.startIdle(job.idleMs, () => idle.delete(job.slot));
    },
    closeAll: () => {
      for (const slot of idle.keys()) remove(slot)?.connection.wire.quit();
    },
  };
}

function suits(connection: Connection, job: SlotJob): boolean {
  return job.hosts.some(
    (host) =>
      host.name === connection.host &&
      host.addresses.includes(connection.address) &&
      satisfies(connection, requirementOf(job, host)),
  );
}

function equalTerms(a: SharedTerms, b: SharedTerms): boolean {
  return (
    a.port === b.port &&
    a.chunking === b.chunking &&
    a.auth?.user === b.auth?.user &&
    a.auth?.password === b.auth?.password &&
    a.auth?.allowUnverified === b.auth?.allowUnverified &&
    a.egress.hostname === b.egress.hostname &&
    a.egress.address === b.egress.address &&
    a.egress.address6 === b.egress.address6 &&
    a.egress.proxy?.host === b.egress.proxy?.host &&
    a.egress.proxy?.port === b.egress.proxy?.port &&
    a.egress.proxy?.user === b.egress.proxy?.user &&
    a.egress.proxy?.password === b.egress.proxy?.password
  );
}
