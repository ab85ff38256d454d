import { MINUTE, SECOND } from '../../core/clock.ts';
import type { SmtpPhase } from '../../mail/reply.ts';
import type { WireReply } from './reply-reader.ts';

/**
 * Why a session came to no verdict: the connection failed, the server hung up or talked nonsense, or we gave
 * up waiting. Thrown by the wire, caught in attempt.ts. The message is for a person to read.
 */
export class SessionTrouble extends Error {
  readonly stage: SmtpPhase;
  /** The 421 with which the server closed, if it did. */
  readonly reply: WireReply | null;

  constructor(stage: SmtpPhase, words: string, reply: WireReply | null = null) {
    super(words);
    this.stage = stage;
    this.reply = reply;
  }
}

/** The TLS handshake failed. */
export class HandshakeTrouble extends SessionTrouble {}

/** What each stage's reply answers, in words: `waiting for the reply to MAIL`, `during MAIL`. */
const AWAITED: Record<SmtpPhase, string> = {
  dns: 'the address',
  connect: 'the connection',
  greeting: 'the greeting',
  ehlo: 'the reply to EHLO',
  starttls: 'TLS',
  auth: 'the reply to AUTH',
  mail: 'the reply to MAIL',
  rcpt: 'the reply to RCPT',
  data: 'the reply to DATA',
  dot: 'the reply to the message',
};

export function timedOut(limitMs: number): (stage: SmtpPhase) => string {
  return (stage) => `timed out after ${duration(limitMs)} waiting for ${AWAITED[stage]}`;
}

/** The absolute bound of a message came before the limit of the stage. */
export function outOfTime(stage: SmtpPhase, boundMs: number): string {
  return `gave up after ${duration(boundMs)} in all, while waiting for ${AWAITED[stage]}`;
}

export function blockStuck(limitMs: number): string {
  return `timed out after ${duration(limitMs)} in which the server took no data`;
}

export function hungUp(stage: SmtpPhase): string {
  return `server closed the connection ${moment(stage)}`;
}

function moment(stage: SmtpPhase): string {
  if (stage === 'greeting') return 'before the greeting';
  if (stage === 'dot') return 'after the message, without a reply';
  return `during ${stage === 'connect' ? 'connecting' : stage.toUpperCase()}`;
}

const CONNECT_ERRORS: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ETIMEDOUT: 'connection timed out',
  EHOSTUNREACH: 'no route to the host',
  EHOSTDOWN: 'host is down',
  ENETUNREACH: 'network unreachable',
  EACCES: "blocked by this machine's own firewall",
  EPERM: "blocked by this machine's own firewall",
  EMFILE: 'this process has too many open files',
  ENFILE: 'this machine has too many open files',
};

/** A socket's error in words. `localAddress` is what we bound to; OpenSSL's errors carry a `reason`. */
export function socketTrouble(
  error: NodeJS.ErrnoException & { reason?: string },
  stage: SmtpPhase,
  localAddress: string | undefined,
): string {
  const code = error.code ?? '';
  if (code === 'EADDRNOTAVAIL' && localAddress !== undefined)
    return `local address ${localAddress} cannot be used`;
  if (code === 'ECONNRESET' || code === 'EPIPE') return `server reset the connection ${moment(stage)}`;
  // Newer releases of Node add advice for programs that they take for browsers.
  return CONNECT_ERRORS[code] ?? error.reason ?? error.message.replace(/; if the root CA .*$/, '');
}

/** `90 s`, `5 min`, `250 ms`. */
function duration(ms: number): string {
  if (ms >= 2 * MINUTE && ms % MINUTE === 0) return `${ms / MINUTE} min`;
  return ms >= SECOND ? `${Math.round(ms / SECOND)} s` : `${ms} ms`;
}
