import type { SmtpPhase, SmtpReply } from '../../mail/reply.ts';

/** How one try at one address ended, and which of several ends counts. Pure. */
export type Outcome =
  /** The server's own word. 2xx only at `dot`: delivered. */
  | { kind: 'answered'; stage: SmtpPhase; reply: SmtpReply }
  /** This side will not hand the message to this server; the reply is ours. */
  | { kind: 'refused'; stage: SmtpPhase; reply: SmtpReply; nextHost: boolean }
  /** No verdict: connection trouble, or the server closed with 421, which is kept as `reply`. */
  | { kind: 'broken'; stage: SmtpPhase; reply: SmtpReply | null; error: string }
  /** Lost after the final dot: the server may have taken the message. */
  | { kind: 'unanswered'; stage: 'dot'; reply: null; error: string };

/**
 * TLS is demanded and cannot be had. Temporary, because a policy that cannot be kept today defers the mail, it
 * does not end it (RFC 8461 §5).
 */
export function insecure(stage: SmtpPhase, text: string): Outcome {
  return { kind: 'refused', stage, reply: { code: 454, enhanced: '4.7.5', text }, nextHost: true };
}

/** What to do after an outcome (design: `Where to`): nobody is asked again after a verdict on the recipient. */
export type Next = 'conclude' | 'next-host' | 'next-address';

export function whatNext(outcome: Outcome): Next {
  const { kind, stage } = outcome;
  if (kind === 'answered') return isVerdict(stage) && !isTransient(outcome.reply) ? 'conclude' : 'next-host';
  if (kind === 'refused') return outcome.nextHost ? 'next-host' : 'conclude';
  if (kind === 'broken') return stage === 'connect' ? 'next-address' : 'next-host';
  return 'conclude';
}

/**
 * Of two outcomes that were not conclusive, the one that tells more: a deferral, then an ended session, then
 * what this side demands in vain, then a refusal before RCPT (another host may well think differently
 * tomorrow, so a deferral anywhere outranks it), then plain connection trouble. The later one of equals.
 */
export function weightier(earlier: Outcome | null, later: Outcome): Outcome {
  return earlier !== null && weight(earlier) > weight(later) ? earlier : later;
}

function weight(outcome: Outcome): number {
  if (outcome.kind === 'unanswered') return 6;
  if (outcome.kind === 'broken') return outcome.reply ? 3 : 0;
  if (!isTransient(outcome.reply)) return 1;
  if (outcome.kind === 'refused') return 2;
  return isVerdict(outcome.stage) ? 5 : 4;
}

/** Replies at these stages are about the message or its recipient; earlier ones are about us or the server. */
function isVerdict(stage: SmtpPhase): boolean {
  return stage === 'rcpt' || stage === 'data' || stage === 'dot';
}

function isTransient(reply: SmtpReply): boolean {
  return reply.code >= 400 && reply.code < 500;
}
