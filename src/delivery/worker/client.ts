import type { Clock } from '../../core/clock.ts';
import type { Connection, ConnectionDeps } from './connection.ts';
import type { DeliveryJob } from './protocol.ts';
import { createDeadlines, type Dial, type SmtpTimeouts } from './socket.ts';
import { createEncryption, requirementOf, satisfies } from './tls.ts';
import { type BdatFaults, createBdatFaults } from './transaction.ts';

/** The SMTP client of one worker: what all its sessions share. */
export interface Client extends ConnectionDeps {
  /** Epoch ms, for the session records. */
  clock: Clock;
  idle: IdleConnections;
  bdatFaults: BdatFaults;
  /** True after `abort`: no further session begins. */
  aborted(): boolean;
  /** Closes every connection; waits in progress throw `SmtpSessionError`. */
  abort(): void;
  /** Sends QUIT on idle connections; resolves when all sockets are closed, at the latest after `QUIT_TIMEOUT_MS`. */
  close(): Promise<void>;
}

export interface ClientOptions {
  clock: Clock;
  /** Milliseconds since any moment; never set. */
  monotonic: Clock;
  dial: Dial;
  timeouts: SmtpTimeouts;
  /** Idle connections at most. Default: no limit. */
  idleConnections?: number;
  /** PEM certificates to trust in addition to the built-in ones. */
  authorities?: readonly string[];
}

/** How long servers may take to reply to QUIT when the worker ends. */
const QUIT_TIMEOUT_MS = 1000;

/**
 * Opens no connection. Its deadlines are checked on an interval, which does not keep the process running and which
 * `close` ends.
 */
export function createSmtpClient(options: ClientOptions): Client {
  const { clock, dial, timeouts } = options;
  const deadlines = createDeadlines(options.monotonic, timeouts.tick);
  const idle = createIdleConnections(options.idleConnections);
  const open: Client['open'] = new Set();
  const closeAll = (reason: string) => {
    for (const wire of open) wire.close(reason);
  };
  let aborted = false;
  return {
    clock,
    dial,
    timeouts,
    deadlines,
    idle,
    bdatFaults: createBdatFaults(options.monotonic),
    open,
    encryption: createEncryption(options.authorities),
    aborted: () => aborted,
    abort: () => {
      aborted = true;
      closeAll('the delivery worker was stopped');
    },
    close: async () => {
      idle.closeAll();
      const timer = setTimeout(() => closeAll('the delivery worker has finished'), QUIT_TIMEOUT_MS);
      await Promise.all([...open].map((wire) => wire.closed));
      clearTimeout(timer);
      deadlines.close();
    },
  };
}

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
