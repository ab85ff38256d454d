import { connect as connectTcp, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import type { Stage } from '../../mail/reply.ts';
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
  /** Sends without waiting. */
  write(commands: string): void;
  /** Sends a piece of the message; resolves once the operating system has taken all of it. */
  writeBlock(octets: Buffer): Promise<void>;
  /** The next reply. A 421 kills the wire and is thrown with its reply (RFC 5321 §3.8). */
  next(stage: Stage, limitMs: number): Promise<WireReply>;
  /** Takes a reply that is here before it was asked for. */
  early(): WireReply | null;
  /** TLS from here on. What the server said before the handshake is thrown away (CVE-2011-0411). */
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
const NEVER = Number.POSITIVE_INFINITY;

/** Connects. Throws `SessionTrouble`. No wait outlasts `dueAt` (deadlines' clock). */
export async function openWire(options: WireOptions, dueAt: number, needs: WireNeeds): Promise<Wire> {
  const { limits, deadlines, open } = needs;
  const reader = createReplyReader();
  let replies: WireReply[] = [];
  let socket = needs.dial(options);
  let stage: Stage = 'connect';
  let boundAt = dueAt;
  let trouble: SessionTrouble | null = null;
  let interrupt: ((trouble: SessionTrouble) => void) | null = null;
  let takeReply: ((reply: WireReply) => void) | null = null;
  let gone: (() => void) | null = null;
  let expiryWords = '';
  let handshaking = false;

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

  function fail(words: string): void {
    if (!trouble) {
      retire(
        handshaking
          ? new HandshakeTrouble(stage, `TLS handshake failed: ${words}`)
          : new SessionTrouble(stage, words),
      );
    }
    socket.destroy();
  }

  /** Dead to everyone from here on; the socket is left to the caller. */
  function retire(reason: SessionTrouble): void {
    trouble = reason;
    watched.dueAt = NEVER;
    interrupt?.(reason);
    interrupt = null;
    takeReply = null;
    gone?.();
    gone = null;
  }

  function quit(): void {
    if (trouble) return;
    retire(new SessionTrouble(stage, 'the connection was closed by this side'));
    watched.dueAt = deadlines.now() + limits.courtesy;
    socket.end('QUIT\r\n');
  }

  /** One wait: ends with `done`, with trouble, or at its limit. */
  function wait<T>(limitMs: number, words: string, start: (done: (value: T) => void) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (trouble) {
        reject(trouble);
        return;
      }
      const limitAt = deadlines.now() + limitMs;
      watched.dueAt = Math.min(limitAt, boundAt);
      expiryWords = limitAt <= boundAt ? words : outOfTime(stage, limits.message);
      interrupt = reject;
      start((value) => {
        if (trouble) return;
        watched.dueAt = NEVER;
        interrupt = null;
        resolve(value);
      });
    });
  }

  const onData = (chunk: Buffer) => {
    if (trouble) return;
    if (gone) {
      // At rest we asked for nothing: it is a 421, or a server that has lost count.
      quit();
      return;
    }
    try {
      replies.push(...reader.push(chunk.toString('latin1')));
    } catch (error) {
      if (!(error instanceof MalformedReply)) throw error;
      fail(error.message);
      return;
    }
    const first = takeReply && replies.shift();
    if (first) {
      takeReply?.(first);
      takeReply = null;
    }
    if (replies.length > MAX_WAITING_REPLIES) fail('the server sends replies to nothing');
  };
  const onError = (error: NodeJS.ErrnoException) => fail(socketTrouble(error, stage, options.localAddress));
  const onEnd = () => fail(hungUp(stage));
  const onClose = () => {
    fail(hungUp(stage));
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
      if (!trouble) socket.write(commands);
    },
    writeBlock: (octets) => {
      stage = 'data';
      return wait<void>(limits.block, blockStuck(limits.block), (done) => {
        // A write's error is also the socket's own, and handled there.
        socket.write(octets, (error) => {
          if (!error) done();
        });
      });
    },
    next: async (now, limitMs) => {
      stage = now;
      const reply =
        replies.shift() ??
        (await wait<WireReply>(limitMs, timedOut(now, limitMs), (done) => {
          takeReply = done;
        }));
      if (reply.code !== 421) return reply;
      // The end of the connection may have been noticed first, then without the reply.
      fail('the server ended the session');
      throw new SessionTrouble(now, 'the server ended the session', reply);
    },
    early: () => replies.shift() ?? null,
    encrypt: async (tlsOptions) => {
      stage = 'starttls';
      replies = [];
      reader.clear();
      handshaking = true;
      const plain = socket.off('data', onData).off('end', onEnd);
      const encrypted = connectTls({ ...tlsOptions, socket: plain });
      socket = encrypted;
      attach();
      await wait<void>(limits.handshake, timedOut(stage, limits.handshake), (done) =>
        encrypted.once('secureConnect', done),
      );
      handshaking = false;
      return encrypted;
    },
    bound: (at) => {
      boundAt = at;
    },
    rest: (idleMs, whenGone) => {
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
    cut: fail,
  };
  open.add(wire);
  await wait<void>(limits.connect, timedOut('connect', limits.connect), (done) =>
    socket.once('connect', done),
  );
  localAddress = socket.localAddress ?? null;
  return wire;
}
