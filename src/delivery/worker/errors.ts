import { MINUTE, SECOND } from '../../core/clock.ts';
import type { SmtpPhase } from '../../mail/reply.ts';
import type { WireReply } from './reply-reader.ts';

/**
 * A session that failed without a deciding reply: the connection failed, the server closed it or broke the protocol, or
 * a timeout expired. Thrown by the wire, caught in attempt.ts. The message is stored in the session record.
 */
export class SmtpSessionError extends Error {
  readonly phase: SmtpPhase;
  /** The 421 with which the server closed, if it did. */
  readonly reply: WireReply | null;

  constructor(phase: SmtpPhase, message: string, reply: WireReply | null = null) {
    super(message);
    this.phase = phase;
    this.reply = reply;
  }
}

/** The TLS handshake failed, or the certificate is not what is required. */
export class TlsHandshakeError extends SmtpSessionError {
  /** Node's or OpenSSL's code, '' for none: `CERT_HAS_EXPIRED`. */
  readonly code: string;

  constructor(phase: SmtpPhase, message: string, code = '') {
    super(phase, message);
    this.code = code;
  }
}

/** The source address cannot be used: a fault of this side, which states nothing about the destination. */
export class EgressError extends SmtpSessionError {}

/** What is awaited in each phase, for messages: `timed out after 5 min waiting for the reply to MAIL`. */
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

/** Returns a function that returns a clause: the reply of a phase did not arrive within its limit. */
export function timedOut(limitMs: number): (phase: SmtpPhase) => string {
  return (phase) => `timed out after ${duration(limitMs)} waiting for ${AWAITED[phase]}`;
}

/** Returns a clause: the time limit of the whole message expired before that of the phase. */
export function outOfTime(phase: SmtpPhase, limitMs: number): string {
  return `gave up after ${duration(limitMs)} in total, while waiting for ${AWAITED[phase]}`;
}

/** Returns a clause: the server accepted no data within the limit. */
export function noProgress(limitMs: number): string {
  return `timed out after ${duration(limitMs)}: the server accepted no data`;
}

/** Returns a clause: the server closed the connection in a phase. */
export function closedByServer(phase: SmtpPhase): string {
  return `server closed the connection ${moment(phase)}`;
}

function moment(phase: SmtpPhase): string {
  if (phase === 'greeting') return 'before the greeting';
  if (phase === 'dot') return 'after the message, without a reply';
  return `during ${phase === 'connect' ? 'connecting' : phase.toUpperCase()}`;
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

/** The text of a socket's error. `localAddress`: the address that the socket is bound to. OpenSSL's errors have a `reason`. */
export function socketErrorText(
  error: NodeJS.ErrnoException & { reason?: string },
  phase: SmtpPhase,
  localAddress: string | undefined,
): string {
  const code = error.code ?? '';
  if (code === 'EADDRNOTAVAIL' && localAddress !== undefined)
    return `local address ${localAddress} cannot be used`;
  if (code === 'ECONNRESET' || code === 'EPIPE') return `server reset the connection ${moment(phase)}`;
  // Some releases of Node append advice that does not apply here. Not linear: the text is one of OpenSSL's.
  return CONNECT_ERRORS[code] ?? error.reason ?? error.message.replace(/; if the root CA .*$/, '');
}

/** `90 s`, `5 min`, `250 ms`. */
function duration(ms: number): string {
  if (ms >= 2 * MINUTE && ms % MINUTE === 0) return `${ms / MINUTE} min`;
  return ms >= SECOND ? `${Math.round(ms / SECOND)} s` : `${ms} ms`;
}
