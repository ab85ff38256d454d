import { type Clock, MINUTE, SECOND } from '../../core/clock.ts';

/**
 * How long a peer may take, ms. Not shorter than the minimum of RFC 5321 §4.5.3.2 where that section names one, except
 * `greeting`; `connect`, `handshake` and `message` are this program's, so that a dead or slow peer cannot hold a slot. A
 * timeout counts from the start of the wait: bytes that arrive do not restart it.
 */
export interface SmtpTimeouts {
  /** TCP connection. */
  connect: number;
  /** The 220 (§4.5.3.2.1 requires 5 min; a server that needs longer than one minute is skipped). */
  greeting: number;
  /** TLS handshake after STARTTLS. */
  handshake: number;
  /** Reply to EHLO, STARTTLS, AUTH, MAIL, RCPT, RSET (§4.5.3.2.2, §4.5.3.2.3). */
  command: number;
  /** The 354 (§4.5.3.2.4). */
  data: number;
  /** Until the peer has accepted one block of the message (§4.5.3.2.5). */
  block: number;
  /** Reply after the final dot (§4.5.3.2.6); a shorter timeout causes duplicates. */
  dot: number;
  /** All sessions of one message together. */
  message: number;
  /** Replies without effect: those after the deciding one, and the 221. */
  trailing: number;
  /** How often the deadlines are checked: the precision of all other timeouts. */
  tick: number;
}

export const SMTP_TIMEOUTS: SmtpTimeouts = {
  connect: 30 * SECOND,
  greeting: MINUTE,
  handshake: MINUTE,
  command: 5 * MINUTE,
  data: 2 * MINUTE,
  block: 3 * MINUTE,
  dot: 10 * MINUTE,
  message: 15 * MINUTE,
  trailing: 10 * SECOND,
  tick: SECOND,
};

/**
 * One coarse timer for all connections of a worker. A wait starts or ends with an assignment to `dueAt` instead of a
 * timer that is created and cleared: at thousands of messages per second that is measurable.
 */
export interface Deadline {
  /** By the clock of `Deadlines`; `Infinity`: no wait is in progress. */
  dueAt: number;
  /** Called when `dueAt` is reached; `dueAt` is `Infinity` again then. */
  expire(): void;
}

export interface Deadlines {
  now(): number;
  watch(deadline: Deadline): void;
  forget(deadline: Deadline): void;
  close(): void;
}

/** `clock` must be monotonic: setting the system clock must not close connections. */
export function createDeadlines(clock: Clock, tickMs: number): Deadlines {
  const all = new Set<Deadline>();
  const timer = setInterval(() => {
    const now = clock.now();
    for (const deadline of all) {
      if (deadline.dueAt > now) continue;
      deadline.dueAt = Number.POSITIVE_INFINITY;
      deadline.expire();
    }
  }, tickMs);
  timer.unref();
  return {
    now: () => clock.now(),
    watch: (deadline) => void all.add(deadline),
    forget: (deadline) => void all.delete(deadline),
    close: () => clearInterval(timer),
  };
}
