import { connect as connectTcp, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import type { SmtpPhase } from '../../mail/reply.ts';
import type { Deadlines } from './deadlines.ts';
import type { Limits } from './limits.ts';
import { createReplyReader, MalformedReply, type WireReply } from './reply-reader.ts';
import {
  blockStuck,
  HandshakeTrouble,
  hungUp,
  outOfTime,
  SessionTrouble,
  socketTrouble,
  timedOut,
} from './trouble.ts';

/**
 * One TCP connection to a server: commands out, replies in, each wait with its limit. It knows when, never
 * what: which command follows which is the business of connection.ts and session.ts. Once anything goes wrong
 * the wire is dead for good and every wait throws the same `SessionTrouble`; replies that came before the end
 * are still given out first.
 */
export interface Wire {
  readonly localAddress: string | null;
  /** Settles when the socket is closed. */
  readonly closed: Promise<void>;
  /** Sends without waiting. It ends the wire when a reply is here that nobody asked for. */
  write(commands: string): void;
  /** Sends a piece of the message; resolves once the operating system has taken all of it. */
  writeBlock(octets: Buffer): Promise<void>;
  /** The next reply. A 421 kills the wire and is thrown with its reply (RFC 5321 §3.8). */
  next(stage: SmtpPhase, limitMs: number): Promise<WireReply>;
  /** Takes a reply that is here before it was asked for. */
  early(): WireReply | null;
  /** TLS from here on; to be called right after `next('starttls')`. */
  encrypt(options: ConnectionOptions): Promise<TLSSocket>;
  /** From now on no wait outlasts `dueAt` (deadlines' clock): the bound of one message. */
  bound(dueAt: number): void;
  /** Nothing to do, for `idleMs` at most; then, or when the server stirs, it is closed and `gone` called. */
  rest(idleMs: number, gone: () => void): void;
  /** Ends a rest. */
  wake(): void;
  dead(): boolean;
  /** QUIT, and an end to it soon, whatever the server does. */
  quit(): void;
  /** Ends it now; a wait under way throws `words`. */
  cut(words: string): void;
}

export interface WireOptions {
  host: string;
  port: number;
  localAddress?: string;
}

export type Dial = (options: WireOptions) => Socket;

/** TCP_NODELAY: every write here is a whole group of commands, none should wait for an earlier one's ACK. */
export const dialTcp: Dial = (options) => connectTcp({ ...options, noDelay: true, autoSelectFamily: false });

export interface WireNeeds {
  dial: Dial;
  limits: Limits;
  deadlines: Deadlines;
  /** Every wire whose socket is still open, also those at rest or leaving. */
  open: Set<Wire>;
}

/** More than a server may have to say unasked: three replies of a pipelined group and a 421. */
const MAX_WAITING_REPLIES = 8;
type Words = (stage: SmtpPhase) => string;
type TroubleAt = (stage: SmtpPhase) => SessionTrouble;

const UNASKED = 'the server sends replies to nothing';
const NEVER = Number.POSITIVE_INFINITY;

/** Connects. Throws `SessionTrouble`. No wait outlasts `dueAt` (deadlines' clock). */
export async function openWire(options: WireOptions, dueAt: number, needs: WireNeeds): Promise<Wire> {
  const { limits, deadlines, open } = needs;
  const reader = createReplyReader();
  const replies: WireReply[] = [];
  let socket = needs.dial(options);
  let stage: SmtpPhase = 'connect';
  let boundAt = dueAt;
  /** Why it is dead, in words that say at which stage one met it. */
  let trouble: TroubleAt | null = null;
  let interrupt: ((trouble: SessionTrouble) => void) | null = null;
  let takeReply: ((reply: WireReply) => void) | null = null;
  let gone: (() => void) | null = null;
  let expiryWords: Words = () => '';
  let handshaking = false;
  /** What the server says is not heard. */
  let muted = false;

  let setClosed = () => {};
  const closed = new Promise<void>((resolve) => {
    setClosed = resolve;
  });
  const watched = { dueAt: NEVER, expire };
  deadlines.watch(watched);

  function expire(): void {
    if (trouble) socket.destroy();
    else if (gone) quit();
    else fail(expiryWords);
  }

  function fail(words: Words): void {
    const during = handshaking;
    if (!trouble) {
      retire((at) =>
        during
          ? new HandshakeTrouble(at, `TLS handshake failed: ${words(at)}`)
          : new SessionTrouble(at, words(at)),
      );
    }
    socket.destroy();
  }

  /** Dead to everyone from here on; the socket is left to the caller. */
  function retire(reason: TroubleAt): void {
    trouble = reason;
    watched.dueAt = NEVER;
    interrupt?.(reason(stage));
    interrupt = null;
    takeReply = null;
    gone?.();
    gone = null;
  }

  function quit(): void {
    if (trouble) return;
    retire((at) => new SessionTrouble(at, 'the connection was closed by this side'));
    watched.dueAt = deadlines.now() + limits.courtesy;
    socket.end('QUIT\r\n');
  }

  /** One wait: ends with `done`, with trouble, or at its limit. */
  function wait<T>(limitMs: number, words: Words, start: (done: (value: T) => void) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (trouble) {
        reject(trouble(stage));
        return;
      }
      const limitAt = deadlines.now() + limitMs;
      watched.dueAt = Math.min(limitAt, boundAt);
      expiryWords = limitAt <= boundAt ? words : (at) => outOfTime(at, limits.message);
      interrupt = reject;
      start((value) => {
        if (trouble) return;
        watched.dueAt = NEVER;
        interrupt = null;
        resolve(value);
      });
    });
  }

  const takeOrQueue = (reply: WireReply) => {
    if (muted) return;
    const take = takeReply;
    takeReply = null;
    // Behind the reply to STARTTLS anyone may have slipped something in (CVE-2011-0411).
    muted = stage === 'starttls';
    if (take) take(reply);
    else replies.push(reply);
  };
  const onData = (chunk: Buffer) => {
    if (trouble || muted) return;
    if (gone) {
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
    if (replies.length > MAX_WAITING_REPLIES) fail(() => UNASKED);
  };
  const onError = (error: NodeJS.ErrnoException) =>
    fail((at) => socketTrouble(error, at, options.localAddress));
  const onEnd = () => fail(hungUp);
  const onClose = () => {
    fail(hungUp);
    deadlines.forget(watched);
    open.delete(wire);
    setClosed();
  };
  const attach = () => socket.on('data', onData).on('error', onError).on('end', onEnd).on('close', onClose);
  attach();

  let localAddress: string | null = null;
  const wire: Wire = {
    closed,
    get localAddress() {
      return localAddress;
    },
    write: (commands) => {
      // A reply to nothing would be taken for the reply to this, and every later one with it.
      if (replies[0] && replies[0].code !== 421) {
        replies.length = 0;
        fail(() => UNASKED);
      }
      if (!trouble) socket.write(commands);
    },
    writeBlock: (octets) => {
      stage = 'data';
      return wait<void>(
        limits.block,
        () => blockStuck(limits.block),
        (done) => {
          // A write's error is also the socket's own, and handled there.
          socket.write(octets, (error) => {
            if (!error) done();
          });
        },
      );
    },
    next: async (now, limitMs) => {
      stage = now;
      muted = false;
      const reply =
        replies.shift() ??
        (await wait<WireReply>(limitMs, timedOut(limitMs), (done) => {
          takeReply = done;
        }));
      if (reply.code !== 421) return reply;
      // The end of the connection may have been noticed first, then without the reply.
      fail(() => 'the server ended the session');
      throw new SessionTrouble(now, 'the server ended the session', reply);
    },
    early: () => replies.shift() ?? null,
    encrypt: async (tlsOptions) => {
      handshaking = true;
      const plain = socket.off('data', onData).off('end', onEnd);
      const encrypted = connectTls({ ...tlsOptions, socket: plain });
      socket = encrypted;
      attach();
      await wait<void>(limits.handshake, timedOut(limits.handshake), (done) =>
        encrypted.once('secureConnect', done),
      );
      handshaking = false;
      return encrypted;
    },
    bound: (at) => {
      boundAt = at;
    },
    rest: (idleMs, whenGone) => {
      // A reply behind the last one is a 421, or a server that has lost count.
      if (replies.length > 0) quit();
      if (trouble) {
        whenGone();
        return;
      }
      gone = whenGone;
      watched.dueAt = deadlines.now() + idleMs;
    },
    wake: () => {
      gone = null;
      watched.dueAt = NEVER;
    },
    dead: () => trouble !== null,
    quit,
    cut: (words) => fail(() => words),
  };
  open.add(wire);
  await wait<void>(limits.connect, timedOut(limits.connect), (done) => socket.once('connect', done));
  localAddress = socket.localAddress ?? null;
  return wire;
}
