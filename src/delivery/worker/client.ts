import type { Runtime } from '../../core/runtime.ts';
import type { Connection } from './connection.ts';
import type { ConnectionTerms, Destination } from './protocol.ts';
import {
  createDeadlines,
  type Dial,
  dialTcp,
  SMTP_TIMEOUTS,
  type SmtpTimeouts,
  type Wire,
} from './socket.ts';
import { createEncryption, requirementOf, satisfies } from './tls.ts';
import { createBdatFaults } from './transaction.ts';

export interface ClientOptions extends Pick<Runtime, 'clock' | 'monotonic'> {
  dial?: Dial;
  timeouts?: SmtpTimeouts;
  /** Idle connections at most. Default: no limit. */
  idleConnections?: number;
  /** PEM certificates to trust in addition to the built-in ones. */
  authorities?: readonly string[];
}

/** How long servers may take to reply to QUIT when the worker ends. */
const QUIT_TIMEOUT_MS = 1000;

export type Client = ReturnType<typeof createSmtpClient>;

/**
 * The SMTP client of one worker: what all its sessions share. Opens no connection. Its deadlines are checked on an interval,
 * which does not keep the process running and which `close` ends.
 */
export function createSmtpClient({
  clock,
  monotonic,
  dial = dialTcp,
  timeouts = SMTP_TIMEOUTS,
  idleConnections,
  authorities,
}: ClientOptions) {
  const deadlines = createDeadlines(monotonic, timeouts.tick);
  const idle = createIdleConnections(idleConnections);
  const open = new Set<Wire>();
  const closeAll = (reason: string) => {
    for (const wire of open) wire.close(reason);
  };
  let aborted = false;
  return {
    /** Epoch ms, for the session records. */
    clock,
    dial,
    timeouts,
    deadlines,
    idle,
    bdatFaults: createBdatFaults(monotonic),
    open,
    encrypt: createEncryption(authorities),
    /** True after `abort`: no further session begins. */
    aborted: (): boolean => aborted,
    /** Closes every connection; waits in progress throw `SmtpSessionError`. */
    abort: (): void => {
      aborted = true;
      closeAll('the delivery worker was stopped');
    },
    /** Sends QUIT on idle connections; resolves when all sockets are closed, at the latest after `QUIT_TIMEOUT_MS`. */
    close: async (): Promise<void> => {
      idle.closeAll();
      const timer = setTimeout(() => closeAll('the delivery worker has finished'), QUIT_TIMEOUT_MS);
      await Promise.all([...open].map((wire) => wire.closed));
      clearTimeout(timer);
      deadlines.close();
    },
  };
}

/**
 * The idle connections, at most one for each slot. A connection that the server closes, or that is idle for too long, is
 * removed automatically. `limit`: maximum number of idle connections; the one that has been idle longest is closed for the
 * next.
 */
function createIdleConnections(limit = Number.POSITIVE_INFINITY) {
  const idle = new Map<string, { connection: Connection; terms: ConnectionTerms }>();
  const remove = (slot: string) => {
    const found = idle.get(slot);
    if (!found) return null;
    idle.delete(slot);
    found.connection.wire.endIdle();
    return found;
  };

  /** Removes and returns the slot's connection if it is suitable for this job; otherwise it is closed. */
  function take(job: Destination): Connection | null {
    const found = remove(job.slot);
    if (!found) return null;
    if (suits(found.connection, job) && equalTerms(found.terms, job)) return found.connection;
    found.connection.wire.quit();
    return null;
  }

  /** Stores the connection for the slot's next job; one that has reached its number of messages is closed. */
  function put(job: Destination, connection: Connection): void {
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
    idle.set(job.slot, { connection, terms: { port, egress, chunking, auth } });
    wire.startIdle(job.idleMs, () => idle.delete(job.slot));
  }

  function closeAll(): void {
    for (const slot of idle.keys()) remove(slot)?.connection.wire.quit();
  }

  return { take, put, closeAll };
}

function suits(connection: Connection, job: Destination): boolean {
  return job.hosts.some(
    (host) =>
      host.name === connection.host &&
      host.addresses.includes(connection.address) &&
      satisfies(connection, requirementOf(job, host)),
  );
}

function equalTerms(a: ConnectionTerms, b: ConnectionTerms): boolean {
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
