import type { Clock } from '../../core/clock.ts';
import { type BdatFaults, createBdatFaults } from './bdat-faults.ts';
import type { ConnectionDeps } from './connection.ts';
import { createEncryption } from './encryption.ts';
import { createIdleConnections, type IdleConnections } from './idle-connections.ts';
import { createDeadlines, type SmtpTimeouts } from './timeouts.ts';
import type { Dial } from './wire.ts';

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
