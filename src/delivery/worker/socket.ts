import { connect as connectTcp, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { type Clock, MINUTE, SECOND } from '../../core/clock.ts';
import type { SmtpPhase } from '../../mail/reply.ts';
import {
  closedByServer,
  EgressError,
  noProgress,
  outOfTime,
  SmtpSessionError,
  socketErrorText,
  TlsHandshakeError,
  timedOut,
} from './errors.ts';
import type { JobProxy } from './protocol.ts';
import { createReplyReader, MalformedReply, type WireReply } from './reply-reader.ts';
import { createTunnel, type Tunnel } from './socks.ts';

/**
 * One TCP connection to a server: sends commands, receives replies, each wait with a timeout. The order of the commands
 * is decided in connection.ts and session.ts. After the first error the wire is dead and every wait throws that
 * `SmtpSessionError`; replies that were received before it are still returned first.
 */
export interface Wire {
  readonly localAddress: string | null;
  /** Resolves when the socket is closed. */
  readonly closed: Promise<void>;
  /**
   * Sends without waiting. An unsolicited reply that was received before it ends the wire. Returns false if the wire is dead:
   * nothing was sent.
   */
  write(commands: string | Buffer): boolean;
  /** Sends a block of the message; resolves when the operating system has accepted all of it. */
  writeBlock(bytes: Buffer): Promise<void>;
  /** The next reply. A 421 ends the wire and is thrown with its reply (RFC 5321 §3.8). */
  next(phase: SmtpPhase, limitMs: number): Promise<WireReply>;
  /** A reply that was received already; null: none. */
  early(): WireReply | null;
  /** Starts TLS. Call directly after `next('starttls')`. */
  encrypt(options: ConnectionOptions): Promise<TLSSocket>;
  /** Limits later waits: none ends after `dueAt` (clock of the deadlines), the time limit of a message. */
  limitUntil(dueAt: number): void;
  /** Leaves the wire idle for `idleMs` at most; then, or when the server sends anything, it is closed and `onClosed` called. */
  startIdle(idleMs: number, onClosed: () => void): void;
  endIdle(): void;
  dead(): boolean;
  /** Sends QUIT and closes the socket, at the latest after the timeout `trailing`. */
  quit(): void;
  /** Closes the socket now; a wait in progress throws an error with `reason`. */
  close(reason: string): void;
}

interface WireOptions {
  host: string;
  port: number;
  localAddress?: string | undefined;
  /** Connects through this SOCKS5 proxy. */
  proxy?: JobProxy | undefined;
}

export type Dial = (options: Omit<WireOptions, 'proxy'>) => Socket;

/** With TCP_NODELAY: each write is a whole group of commands, which must not wait for the ACK of an earlier one. */
export const dialTcp: Dial = (options) => connectTcp({ ...options, noDelay: true, autoSelectFamily: false });

/** What a wire needs of the client. */
export interface WireClient {
  dial: Dial;
  timeouts: SmtpTimeouts;
  deadlines: Deadlines;
  /** All wires whose socket is open, idle and closing ones included. */
  open: Set<Wire>;
}

/** A server may send four replies before they are read: three of a pipelined group and a 421. */
const MAX_WAITING_REPLIES = 8;
type TextOfPhase = (phase: SmtpPhase) => string;
type ErrorOfPhase = (phase: SmtpPhase) => SmtpSessionError;

const UNSOLICITED = 'the server sent an unsolicited reply';
const NEVER = Number.POSITIVE_INFINITY;

/** Connects, through the proxy if there is one. Throws `SmtpSessionError`. No wait ends after `dueAt` (clock of the deadlines). */
export async function openWire(options: WireOptions, dueAt: number, client: WireClient): Promise<Wire> {
  const { timeouts, deadlines, open } = client;
  const reader = createReplyReader();
  const replies: WireReply[] = [];
  const { proxy } = options;
  const tunnel = proxy === undefined ? null : createTunnel(proxy);
  let socket = client.dial(proxy === undefined ? options : { host: proxy.host, port: proxy.port });
  let phase: SmtpPhase = 'connect';
  let limitAt = dueAt;
  /** Set when the wire is dead: the error, by the phase in which a wait meets it. */
  let failure: ErrorOfPhase | null = null;
  let interrupt: ((error: SmtpSessionError) => void) | null = null;
  let takeReply: ((reply: WireReply) => void) | null = null;
  /** Set while the wire is idle. */
  let onIdleClosed: (() => void) | null = null;
  let expiryText: TextOfPhase = () => '';
  let handshaking = false;
  /** Code of the socket's error. */
  let errorCode = '';
  /** Received data is ignored. */
  let muted = false;

  let setClosed = () => {};
  const closed = new Promise<void>((resolve) => {
    setClosed = resolve;
  });
  const deadline = { dueAt: NEVER, expire };
  deadlines.watch(deadline);

  function expire(): void {
    if (failure) socket.destroy();
    else if (onIdleClosed) quit();
    else fail(expiryText);
  }

  function fail(text: TextOfPhase): void {
    const isHandshake = handshaking;
    if (!failure) {
      retire(
        (at) =>
          tunnel?.failure(at, text(at)) ??
          (isHandshake
            ? new TlsHandshakeError(at, `TLS handshake failed: ${text(at)}`, errorCode)
            : new SmtpSessionError(at, text(at))),
      );
    }
    socket.destroy();
  }

  /** Makes the wire dead; the caller ends the socket. */
  function retire(reason: ErrorOfPhase): void {
    failure = reason;
    deadline.dueAt = NEVER;
    interrupt?.(reason(phase));
    interrupt = null;
    takeReply = null;
    onIdleClosed?.();
    onIdleClosed = null;
  }

  function quit(): void {
    if (failure) return;
    retire((at) => new SmtpSessionError(at, 'the connection was closed by this side'));
    deadline.dueAt = deadlines.now() + timeouts.trailing;
    socket.end('QUIT\r\n');
  }

  /** One wait: ends with `done`, with the error of the wire, or at its timeout. */
  function wait<T>(
    timeoutMs: number,
    text: TextOfPhase,
    start: (done: (value: T) => void) => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (failure) {
        reject(failure(phase));
        return;
      }
      const timeoutAt = deadlines.now() + timeoutMs;
      deadline.dueAt = Math.min(timeoutAt, limitAt);
      expiryText = timeoutAt <= limitAt ? text : (at) => outOfTime(at, timeouts.message);
      interrupt = reject;
      start((value) => {
        if (failure) return;
        deadline.dueAt = NEVER;
        interrupt = null;
        resolve(value);
      });
    });
  }

  const takeOrQueue = (reply: WireReply) => {
    if (muted) return;
    const take = takeReply;
    takeReply = null;
    // An attacker may have injected replies after the one to STARTTLS (CVE-2011-0411).
    muted = phase === 'starttls';
    if (take) take(reply);
    else replies.push(reply);
  };
  const onData = (chunk: Buffer) => {
    if (failure || muted) return;
    if (onIdleClosed) {
      quit();
      return;
    }
    try {
      reader.push(chunk.toString('latin1'), takeOrQueue);
    } catch (error) {
      if (!(error instanceof MalformedReply)) throw error;
      if (!muted) fail(() => error.message);
    }
    if (muted) reader.clear();
    if (replies.length > MAX_WAITING_REPLIES) fail(() => UNSOLICITED);
  };
  const onError = (error: NodeJS.ErrnoException) => {
    errorCode = error.code ?? '';
    const text: TextOfPhase = (at) => socketErrorText(error, at, options.localAddress);
    if (error.code === 'EADDRNOTAVAIL' && options.localAddress !== undefined && !failure)
      retire((at) => new EgressError(at, text(at)));
    fail(text);
  };
  const onEnd = () => fail(closedByServer);
  const onClose = () => {
    fail(closedByServer);
    deadlines.forget(deadline);
    open.delete(wire);
    setClosed();
  };
  const attach = () => socket.on('data', onData).on('error', onError).on('end', onEnd).on('close', onClose);
  attach();

  /** Connects through the proxy, to which the socket is connected. Resolves with its source address. */
  function openTunnel(through: Tunnel): Promise<string | null> {
    socket.off('data', onData).off('end', onEnd);
    return wait<string | null>(timeouts.connect, timedOut(timeouts.connect), (connected) => {
      // The wire's own deadline is shorter.
      through.open(socket, options, 2 * timeouts.connect).then(
        (address) => {
          socket.on('data', onData).on('end', onEnd);
          connected(address);
        },
        (error: Error) => {
          if (!failure) retire((at) => through.rejection(at, error));
          socket.destroy();
        },
      );
    });
  }

  let localAddress: string | null = null;
  const wire: Wire = {
    closed,
    get localAddress() {
      return localAddress;
    },
    write: (commands) => {
      // An unsolicited reply would be taken for the reply to this command, and each later one for the next.
      if (replies[0] && replies[0].code !== 421) {
        replies.length = 0;
        fail(() => UNSOLICITED);
      }
      if (failure) return false;
      socket.write(commands);
      return true;
    },
    writeBlock: (bytes) => {
      phase = 'data';
      return wait<void>(
        timeouts.block,
        () => noProgress(timeouts.block),
        (done) => {
          // The error of a write is also an event of the socket, and handled there.
          socket.write(bytes, (error) => {
            if (!error) done();
          });
        },
      );
    },
    next: async (now, limitMs) => {
      phase = now;
      muted = false;
      const reply =
        replies.shift() ??
        (await wait<WireReply>(limitMs, timedOut(limitMs), (done) => {
          takeReply = done;
        }));
      if (reply.code !== 421) return reply;
      // The wire may have failed before, without this reply.
      fail(() => 'the server ended the session');
      throw new SmtpSessionError(now, 'the server ended the session', reply);
    },
    early: () => replies.shift() ?? null,
    encrypt: async (tlsOptions) => {
      handshaking = true;
      const plain = socket.off('data', onData).off('end', onEnd);
      const encrypted = connectTls({ ...tlsOptions, socket: plain });
      socket = encrypted;
      attach();
      await wait<void>(timeouts.handshake, timedOut(timeouts.handshake), (done) =>
        encrypted.once('secureConnect', done),
      );
      handshaking = false;
      return encrypted;
    },
    limitUntil: (at) => {
      limitAt = at;
    },
    startIdle: (idleMs, onClosed) => {
      // A further reply is a 421, or the server is out of step.
      if (replies.length > 0) quit();
      if (failure) {
        onClosed();
        return;
      }
      onIdleClosed = onClosed;
      deadline.dueAt = deadlines.now() + idleMs;
    },
    endIdle: () => {
      onIdleClosed = null;
      deadline.dueAt = NEVER;
    },
    dead: () => failure !== null,
    quit,
    close: (reason) => fail(() => reason),
  };
  open.add(wire);
  await wait<void>(timeouts.connect, timedOut(timeouts.connect), (done) => socket.once('connect', done));
  localAddress = socket.localAddress ?? null;
  if (tunnel !== null) localAddress = await openTunnel(tunnel);
  return wire;
}

export type SmtpTimeouts = typeof SMTP_TIMEOUTS;

/**
 * How long a peer may take, ms. Not shorter than the minimum of RFC 5321 §4.5.3.2 where that section names one, except
 * `greeting`; `connect`, `handshake` and `message` are this program's, so that a dead or slow peer cannot hold a slot. A
 * timeout counts from the start of the wait: bytes that arrive do not restart it.
 */
export const SMTP_TIMEOUTS = {
  /** TCP connection. */
  connect: 30 * SECOND,
  /** The 220 (§4.5.3.2.1 requires 5 min; a server that needs longer than one minute is skipped). */
  greeting: MINUTE,
  /** TLS handshake after STARTTLS. */
  handshake: MINUTE,
  /** Reply to EHLO, STARTTLS, AUTH, MAIL, RCPT, RSET (§4.5.3.2.2, §4.5.3.2.3). */
  command: 5 * MINUTE,
  /** The 354 (§4.5.3.2.4). */
  data: 2 * MINUTE,
  /** Until the peer has accepted one block of the message (§4.5.3.2.5). */
  block: 3 * MINUTE,
  /** Reply after the final dot (§4.5.3.2.6); a shorter timeout causes duplicates. */
  dot: 10 * MINUTE,
  /** All sessions of one message together. */
  message: 15 * MINUTE,
  /** Replies without effect: those after the deciding one, and the 221. */
  trailing: 10 * SECOND,
  /** How often the deadlines are checked: the precision of all other timeouts. */
  tick: SECOND,
};

/**
 * One coarse timer for all connections of a worker. A wait starts or ends with an assignment to `dueAt` instead of a
 * timer that is created and cleared: at thousands of messages per second that is measurable.
 */
interface Deadline {
  /** By the clock of `Deadlines`; `Infinity`: no wait is in progress. */
  dueAt: number;
  /** Called when `dueAt` is reached; `dueAt` is `Infinity` again then. */
  expire(): void;
}

export type Deadlines = ReturnType<typeof createDeadlines>;

/** `clock` must be monotonic: setting the system clock must not close connections. */
export function createDeadlines(clock: Clock, tickMs: number) {
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
    now: (): number => clock.now(),
    watch: (deadline: Deadline): void => void all.add(deadline),
    forget: (deadline: Deadline): void => void all.delete(deadline),
    close: (): void => clearInterval(timer),
  };
}
