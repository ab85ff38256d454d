import type { SmtpPhase, SmtpReply } from '../../mail/reply.ts';

/** How one session with one address ended, and which of several results counts. Pure. */
export type SessionResult =
  /** The server's reply decides. 2xx only at `dot`: delivered. */
  | { kind: 'replied'; phase: SmtpPhase; reply: SmtpReply }
  /** This side does not offer the message to this server; the reply is this side's. */
  | { kind: 'refused-locally'; phase: SmtpPhase; reply: SmtpReply; nextHost: boolean }
  /** No deciding reply: the connection failed, or the server closed it with 421, which is `reply`. */
  | { kind: 'unreachable'; phase: SmtpPhase; reply: SmtpReply | null; error: string }
  /** The source address cannot be used; no host was contacted. */
  | { kind: 'egress-failed'; phase: SmtpPhase; reply: null; error: string }
  /** The connection was lost after the final dot: the server may have accepted the message. */
  | { kind: 'unanswered'; phase: 'dot'; reply: null; error: string };

/** The result when this side does not offer the message; `nextHost`: another host may be able to take it. */
export function refusedLocally(phase: SmtpPhase, reply: SmtpReply, nextHost: boolean): SessionResult {
  return { kind: 'refused-locally', phase, reply, nextHost };
}

/**
 * The result when TLS is required and not available: a temporary failure, so that the mail is deferred, not bounced
 * (RFC 8461 §5).
 */
export function insecure(phase: SmtpPhase, text: string): SessionResult {
  return refusedLocally(phase, { code: 454, enhanced: '4.7.5', text }, true);
}

/** What follows a session. After a decisive reply about the recipient or the message no other host is tried. */
export type StepAfterSession = 'conclude' | 'next-host' | 'next-address';

/**
 * `next-address`: the connection to this address failed. `next-host`: a 4xx reply, a reply before RCPT, a session that
 * broke later, or a refusal by this side that concerns this host alone. Else `conclude`.
 */
export function nextStep(result: SessionResult): StepAfterSession {
  const { kind, phase } = result;
  if (kind === 'replied') return isDecisive(phase) && !isTransient(result.reply) ? 'conclude' : 'next-host';
  if (kind === 'refused-locally') return result.nextHost ? 'next-host' : 'conclude';
  if (kind === 'unreachable') return phase === 'connect' ? 'next-address' : 'next-host';
  return 'conclude';
}

/**
 * The more significant of two results that did not decide: a deferral, then a session that the server ended, then a
 * requirement of this side that was not met, then a refusal before RCPT (other hosts may accept the mail later, so a
 * deferral by any host ranks higher), then a failed connection. Of equals, the later one. A permanent refusal does not count after a
 * failed connection: a backup that takes no mail is no answer of the preferred host, which is down now.
 */
export function moreSignificant(earlier: SessionResult | null, later: SessionResult): SessionResult {
  if (earlier === null) return later;
  if (isFailedConnection(earlier) && significance(later) === REFUSED_EARLY) return earlier;
  return significance(earlier) > significance(later) ? earlier : later;
}

function isFailedConnection({ kind, reply }: SessionResult): boolean {
  return kind === 'unreachable' && reply === null;
}

/** The significance of a permanent refusal before RCPT. */
const REFUSED_EARLY = 1;

function significance(result: SessionResult): number {
  if (result.kind === 'unanswered') return 6;
  if (result.kind === 'unreachable') return result.reply ? 3 : 0;
  if (result.kind === 'egress-failed') return -1;
  if (!isTransient(result.reply)) return REFUSED_EARLY;
  if (result.kind === 'refused-locally') return 2;
  return isDecisive(result.phase) ? 5 : 4;
}

/** Whether a reply concerns the message or its recipient; in earlier phases it concerns this side or the server. */
export function isDecisive(phase: SmtpPhase): boolean {
  return phase === 'rcpt' || phase === 'data' || phase === 'dot';
}

function isTransient(reply: SmtpReply): boolean {
  return reply.code >= 400 && reply.code < 500;
}
