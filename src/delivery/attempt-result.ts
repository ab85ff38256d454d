import type { Config } from '../config/schema.ts';
import { DAY, iso } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Random } from '../core/random.ts';
import type { Recorder } from '../events/record.ts';
import {
  type Classification,
  type Classify,
  classifyLocal,
  type LocalFailure,
} from '../mail/classify/classify.ts';
import type { SmtpReply } from '../mail/reply.ts';
import type { Context } from '../store/context.ts';
import type { Lane } from '../store/domains/domains.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { QueuedMessage } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { AttemptReport, SessionRecord } from './worker/protocol.ts';
import { isDecisive } from './worker/session-result.ts';

/** The result of one delivery attempt: the deciding reply and its classification. */
export interface AttemptResult {
  classification: Classification;
  reply: SmtpReply;
  /** Which side gave the reply: the destination or this server. */
  source: 'smtp' | 'local';
  /** Set if this server gave the reply without a session. */
  failure?: LocalFailure;
  /** The rest of the wait after which the site has accepted other greylisted mail, ms. */
  greylistMs?: number | undefined;
  /**
   * refused: the receiver refuses our address, which no longer sends to it. throttled: the reply asks to send less, and
   * names our address. recovered: the receiver accepts mail again that waited for the address.
   */
  address?: 'refused' | 'throttled' | 'recovered' | undefined;
}

/** Evaluates a worker's report. `classify`: with the rules of the configuration. */
export function evaluateReport(report: AttemptReport, classify: Classify): AttemptResult {
  const host = decidingSession(report)?.host ?? null;
  if (report.conclusion === 'not-composed') {
    const result = localResult('not-composed');
    return report.reply === null ? result : { ...result, reply: report.reply };
  }
  if (report.reply !== null && report.conclusion !== 'unanswered') {
    const isLocal = report.conclusion === 'refused-locally';
    // This side refuses before MAIL, but because of the message: a permanent refusal ends it (RFC 1870 §6.1, RFC 6531
    // §3.2), while one by a server at EHLO concerns the connection.
    const phase = isLocal ? 'data' : report.phase;
    return {
      classification: classify({ phase, reply: report.reply, mxHost: host }),
      reply: report.reply,
      source: isLocal ? 'local' : 'smtp',
    };
  }
  if (report.conclusion === 'unanswered') return localResult('connection-lost');
  if (report.conclusion === 'egress-failed') return localResult('egress-failed');
  // An earlier session may have ended at STARTTLS, and the one in plain text after it for another reason.
  return localResult(report.phase === 'starttls' ? 'tls-failed' : 'unreachable');
}

/**
 * The session whose reply or error decided about the message, which is not always the last: a host that is tried after a
 * deferral may not answer. Null: there was no session.
 */
export function decidingSession({ phase, reply, sessions }: AttemptReport): SessionRecord | null {
  const inPhase = sessions.filter((session) => session.phase === phase);
  const deciding = inPhase.findLast((session) => session.reply?.text === reply?.text) ?? inPhase.at(-1);
  return deciding ?? sessions.at(-1) ?? null;
}

/**
 * What a report states about the site: whether a host answered, or none could be reached. Null when no host was
 * contacted: the message cannot be composed or signed, the source address cannot be used, or an internal error ended the
 * attempt.
 */
export function siteStateOf({ conclusion, sessions }: AttemptReport): 'answered' | 'unreachable' | null {
  // A site that takes MAIL is reachable, even if it closes the connection because of the recipient or the message.
  if (conclusion === 'unreachable')
    return sessions.some(({ phase }) => isDecisive(phase)) ? 'answered' : 'unreachable';
  if (conclusion === 'egress-failed') return null;
  // In phase dns a published TLS policy excludes the host: it was not contacted.
  return sessions.every(({ phase }) => phase === 'dns') ? null : 'answered';
}

/** The result of an attempt that failed on this side. */
export function localResult(failure: LocalFailure): AttemptResult {
  return { ...classifyLocal(failure), source: 'local', failure };
}

/** Writes one line for each attempt: the account, the destination, the reply. `session`: the deciding one. */
export function logAttempt(
  log: Log,
  message: QueuedMessage,
  { classification, reply, source }: AttemptResult,
  attempt: { conclusion: string; site?: string; lane?: Lane; session?: SessionRecord | null | undefined },
): void {
  const { session, ...sent } = attempt;
  log.info(
    {
      messageId: message.message_id,
      accountId: message.account_id,
      recipient: message.recipient,
      recipientDomain: message.destination,
      action: classification.action,
      smtpCode: reply.code,
      enhancedCode: reply.enhanced,
      reply: reply.text,
      // "local": no server gave this reply.
      source,
      ...sent,
      ...(classification.action === 'deliver' ? {} : { classification: classification.bounceClass }),
      ...(session === undefined || session === null ? {} : { host: session.host, ...tlsFields(session) }),
    },
    'delivery attempt',
  );
}

function tlsFields({ tls }: SessionRecord): Record<string, string> {
  if (tls === null) return { tls: 'none' };
  return { tls: tls.protocol, tlsVerification: tls.verification, tlsRequiredBy: tls.requiredBy };
}

/** What is stored of an attempt in addition to its result. */
export interface AttemptLog {
  lane: Lane | 'simulator';
  conclusion: string;
  sessions: readonly SessionRecord[];
  /** The source address (an entry of `delivery.egress`) and the provider that it counts to. */
  used?: { egress: string; provider: string } | undefined;
}

/** The recorded effect of an attempt on its message. */
export interface DeliveryOutcome {
  status: 'delivered' | 'deferred' | 'bounced' | 'failed';
  reply: SmtpReply;
  /** Time of the next attempt, epoch ms; null: there is none. */
  nextAttemptAt: number | null;
  /** What was decided about the lane of the message; absent: there was no reason to change it. */
  failover?: FailoverDecision;
}

export type AttemptResults = ReturnType<typeof createAttemptResults>;

/**
 * Decides whether a message is sent over the secondary lane after an attempt over the primary one has failed. It changes
 * the lane once, and the attempt that failed has ended without the message being accepted, so that a message never goes
 * out over both. Only a failure that concerns our address counts: a reply that names its listing, or the second attempt
 * that reached no host. Content, authentication (DMARC), complaints and mail that may have been accepted never do.
 */
export interface Failover {
  /** In the unit of work that records the attempt, after it was inserted. Null: there is no reason to change the lane. */
  decide(
    tables: Tables,
    message: MessageRow,
    result: AttemptResult,
    attempt: AttemptLog,
  ): FailoverDecision | null;
}

export interface FailoverDecision {
  cause: FailoverCause;
  /** False: the message stays in its lane, because too many have changed theirs. */
  isAdmitted: boolean;
  messageId: string;
  accountId: string;
  /** Text of the reply. */
  reply: string;
}

/** listing: the reply names a listing of our address. connection: no host could be reached. */
export type FailoverCause = 'listing' | 'connection';

/** The number of an attempt (1 = the first) and when it ended (epoch ms), which is the time of its event, too. */
interface AttemptEnd {
  attempts: number;
  at: number;
  /** The source address; '': it has no name. */
  source: string;
}

/**
 * Records results of attempts. Call the functions inside a unit of work.
 *
 * Keeps no state. A deferral whose next attempt would be at or after the expiry of the message ends it with
 * `email_failed`, reason `expired`; once a message has expired, it does not change its lane.
 */
export function createAttemptResults(
  { clock, expiry, random }: Pick<Context, 'clock' | 'expiry' | 'random'>,
  {
    recorder,
    retry,
    failover: lanes,
  }: {
    recorder: Recorder;
    retry: RetrySchedule;
    /** Default: every message stays in its lane. */
    failover?: Failover;
  },
) {
  function defer(
    tables: Tables,
    message: MessageRow,
    ended: AttemptEnd,
    result: AttemptResult,
    nextAttemptAt: number,
    isLast: boolean,
  ): DeliveryOutcome {
    if (isLast) {
      const expired = localResult('expired');
      const fields = {
        reason: 'expired' as const,
        attempts: ended.attempts,
        ...replyFields(result),
        lastDiagnostic: result.reply.text,
      };
      recorder.message(tables, message, { kind: 'email_failed', fields }, ended);
      return { status: 'failed', reply: expired.reply, nextAttemptAt: null };
    }
    const fields = { attempt: ended.attempts, nextAttemptAt: iso(nextAttemptAt), ...replyFields(result) };
    recorder.message(tables, message, { kind: 'email_delayed', fields }, ended);
    tables.queue.defer(message.seq, nextAttemptAt);
    return { status: 'deferred', reply: result.reply, nextAttemptAt };
  }

  function changeLane(
    tables: Tables,
    message: MessageRow,
    ended: AttemptEnd,
    result: AttemptResult,
  ): DeliveryOutcome {
    const { attempts, at } = ended;
    const next = { attempt: attempts, nextAttemptAt: iso(at), nextLane: 'secondary' } as const;
    const fields = { ...next, ...replyFields(result) };
    recorder.message(tables, message, { kind: 'email_delayed', fields }, ended);
    tables.queue.moveToSecondary(message.seq, at);
    return { status: 'deferred', reply: result.reply, nextAttemptAt: at };
  }

  function bounce(
    tables: Tables,
    message: MessageRow,
    ended: AttemptEnd,
    result: AttemptResult,
  ): DeliveryOutcome {
    const { classification, reply } = result;
    if (result.failure === 'not-composed') {
      // No destination refused the message: the failure is local, and permanent.
      const fields = { reason: 'content_invalid', ...replyFields(result) } as const;
      recorder.message(tables, message, { kind: 'email_failed', fields }, ended);
      return { status: 'failed', reply, nextAttemptAt: null };
    }
    if (classification.bounceClass === 'routing-loop') {
      const fields = { reason: 'loop', ...replyFields(result) } as const;
      recorder.message(tables, message, { kind: 'email_failed', fields }, ended);
      return { status: 'failed', reply, nextAttemptAt: null };
    }
    const { scope, suppress } = classification;
    const bounceType = classification.bounceType ?? 'soft';
    const fields = { bounceType, ...replyFields(result), source: result.source };
    if (scope === 'message') recorder.message(tables, message, { kind: 'email_rejected', fields }, ended);
    else {
      const effect = { scope, suppress };
      recorder.message(tables, message, { kind: 'email_bounced', fields, effect }, ended);
    }
    return { status: 'bounced', reply, nextAttemptAt: null };
  }

  /** Whether an attempt on an earlier day (UTC) had the same conclusion. */
  function seenOnAnotherDay(tables: Tables, seq: number, conclusion: string): boolean {
    const today = Math.floor(clock.now() / DAY);
    return tables.messages.attemptsOf(seq).some(({ at, report }) => {
      const attempt: { conclusion?: string } = JSON.parse(report);
      return attempt.conclusion === conclusion && Math.floor(at / DAY) < today;
    });
  }

  return {
    /**
     * The result when there is no route. A domain with neither MX nor address may be about to change: mail to it bounces
     * only when an attempt on an earlier day (UTC) found the same.
     */
    ofRouteFailure: (tables: Tables, seq: number, failure: LocalFailure): AttemptResult =>
      localResult(
        failure === 'no-mail-service' && seenOnAnotherDay(tables, seq, failure)
          ? 'no-mail-service-again'
          : failure,
      ),
    /**
     * Records only what the result means for the message, without attempt, event and suppression, for a result that `record`
     * cannot record: the message must not be sent again. A deferral is tried again after the longest wait of the schedule.
     */
    recordStatus: (
      tables: Tables,
      seq: number,
      { classification, reply }: AttemptResult,
    ): DeliveryOutcome | null => {
      const message = tables.messages.bySeq(seq);
      if (message?.status !== 'sending') return null;
      const { action } = classification;
      const leftMs = message.expires_at - expiry.now();
      tables.messages.setAttempts(seq, message.attempts + 1);
      if (action === 'defer' && leftMs > retry.max) {
        const nextAttemptAt = clock.now() + retry.max;
        recorder.returned(tables, { ...message, attempts: message.attempts + 1 });
        tables.queue.defer(seq, nextAttemptAt);
        return { status: 'deferred', reply, nextAttemptAt };
      }
      const status = action === 'deliver' ? 'delivered' : action === 'bounce' ? 'bounced' : 'failed';
      recorder.endedWithoutEvent(tables, message, status);
      return { status, reply, nextAttemptAt: null };
    },
    /**
     * Records an attempt and its effect. Null when the message is no longer `sending` (it was cancelled meanwhile), and only
     * the attempt is recorded; also null when the message was deleted, and nothing is recorded.
     */
    record: (
      tables: Tables,
      seq: number,
      result: AttemptResult,
      attempt: AttemptLog,
    ): DeliveryOutcome | null => {
      const message = tables.messages.bySeq(seq);
      if (message === null) return null;
      const at = clock.now();
      const attempts = message.attempts + 1;
      const ended = { attempts, at, source: attempt.used?.egress ?? '' };
      const { classification, reply } = result;
      const { greylistMs } = result;
      const waitMs = retryWait(retry, attempts, { greylistMs, ...classification }, random);
      const leftMs = message.expires_at - expiry.now();
      const isLast = classification.action === 'defer' && waitMs >= leftMs;
      tables.messages.insertAttempt({
        message_seq: seq,
        attempt: attempts,
        at,
        lane: attempt.lane,
        report: {
          conclusion: attempt.conclusion,
          action: classification.action,
          classification: classification.action === 'deliver' ? undefined : classification.bounceClass,
          reply,
          // Deferred, but there is no time for another attempt before the message expires.
          lastAttempt: isLast ? true : undefined,
          sessions: attempt.sessions.map(toStoredSession),
          ...attempt.used,
        },
      });
      if (message.status !== 'sending') {
        tables.messages.setAttempts(seq, attempts);
        return null;
      }
      const failover = leftMs <= 0 ? null : (lanes?.decide(tables, message, result, attempt) ?? null);
      const decided = failover === null ? {} : { failover };
      if (failover?.isAdmitted === true) return { ...changeLane(tables, message, ended, result), ...decided };
      if (classification.action === 'defer')
        return { ...defer(tables, message, ended, result, at + waitMs, isLast), ...decided };
      if (classification.action === 'bounce')
        return { ...bounce(tables, message, ended, result), ...decided };
      const session = attempt.sessions.at(-1);
      const fields = {
        ...replyText(reply),
        ...(session === undefined ? {} : { remoteHost: session.host, tls: session.tls?.protocol ?? null }),
      };
      recorder.message(tables, message, { kind: 'email_delivered', fields }, ended);
      return { status: 'delivered', reply, nextAttemptAt: null };
    },
  };
}

/** A session as it is stored and as the API presents it, in the order of `SHAPES` in store/rows/packed-json. */
function toStoredSession(session: SessionRecord): Record<string, unknown> {
  const { host, address, port, localAddress, tls, phase, reply, error, startedAt, endedAt } = session;
  return { host, address, port, localAddress, tls, stage: phase, reply, error, startedAt, endedAt };
}

function replyFields({ classification, reply }: AttemptResult) {
  return { classification: classification.bounceClass, ...replyText(reply) };
}

function replyText(reply: SmtpReply) {
  return { smtpCode: reply.code, enhancedCode: reply.enhanced, diagnostic: reply.text };
}

export type RetrySchedule = Config['delivery']['retry'];

const JITTER = 0.1;
/** Attempts after which a wait that the reply names may be shorter than the schedule's. */
const MAX_SHORT_WAITS = 5;

/**
 * Milliseconds to wait after attempt number `attempts` (1 = the first) was deferred: the wait that the reply names, the
 * wait that the site required from other greylisted mail, else the schedule's (the first wait, then longer by the factor
 * up to the maximum), with a jitter of 10 % so that messages that failed together are not tried together. From the sixth
 * attempt on, the wait is not shorter than the schedule's: a receiver that always names a second must not cause an attempt
 * per second.
 */
export function retryWait(
  schedule: RetrySchedule,
  attempts: number,
  reply: Pick<Classification, 'retryAfterMs' | 'greylisted'> & Pick<AttemptResult, 'greylistMs'>,
  random: Random,
): number {
  const { retryAfterMs, greylisted, greylistMs } = reply;
  const named = retryAfterMs ?? greylistMs;
  const first = greylisted && attempts === 1 ? schedule.greylisted : schedule.first;
  // The exponent is bounded so that a message with many attempts cannot overflow it.
  const grown = first * schedule.factor ** Math.min(attempts - 1, 64);
  const scheduled = Math.min(grown, schedule.max);
  if (named === undefined) return jitter(scheduled, random);
  return jitterLater(attempts > MAX_SHORT_WAITS ? Math.max(named, scheduled) : named, random);
}

/** `ms` ± 10 %. */
function jitter(ms: number, random: Random): number {
  return Math.round(ms * (1 - JITTER + 2 * JITTER * fraction(random)));
}

/** `ms` or up to 10 % more: the reply named a minimum. */
function jitterLater(ms: number, random: Random): number {
  return Math.round(ms * (1 + JITTER * fraction(random)));
}

/** A number from 0 to 1, both included. */
function fraction(random: Random): number {
  return random.below(10_001) / 10_000;
}
