import { HOUR, SECOND } from '../core/clock.ts';
import { errorText } from '../core/errors.ts';
import type { EventFields } from '../events/event-types.ts';
import type { Recorder } from '../events/record.ts';
import type { Classify } from '../mail/classify/classify.ts';
import type { Context } from '../store/context.ts';
import type { Lane } from '../store/domains/domains.ts';
import type { QueuedMessage } from '../store/messages/queue.ts';
import type { QueueControlRow } from '../store/messages/queue-controls.ts';
import {
  type AttemptResult,
  type AttemptResults,
  decidingSession,
  evaluateReport,
  localResult,
  logAttempt,
} from './attempt-result.ts';
import { describeControl } from './control.ts';
import type { BuildJob } from './prepare.ts';
import type { Recording } from './recording.ts';
import type { Claims } from './scheduling/claims.ts';
import type { Assignment, ReservedMessage } from './scheduling/site.ts';
import type { LocalTarget } from './scheduling/targets.ts';
import type { Feedback } from './shaping/feedback.ts';
import { playSimulation } from './simulator.ts';
import type { Egress, Settlement } from './source-address.ts';
import type { TlsSystem } from './tls-system.ts';
import type { Waits } from './waits.ts';
import type { DeliveryJob, SessionRecord } from './worker/protocol.ts';
import type { WorkerPool } from './worker-pool.ts';

/*
 * The delivery of a message, from the slot that the dispatcher reserved for it to its recorded outcome.
 *
 * `deliver` is the whole path. A message that has a slot gets a source address (a ticket), and what a worker needs to
 * compose and send it is read (the job). Then it is leased, unless it was leased before: one commit makes it `sending`. From
 * here on the message may be sent, so that its outcome must be recorded before it is sent again. A worker sends the job
 * and reports its sessions; the report is evaluated for the message, the source address and the site. Then the slot and
 * the shares of the budgets are free for the next message, while the outcome of this one is written.
 *
 * Whatever ends the path earlier returns the message to the queue, or ends it. A message without a lease has a claim,
 * which keeps the reader of the queue from taking it again, and which ends with the commit; a lease ends in a commit that is
 * retried until it succeeds (recording.ts).
 *
 * `conclude` is the path of messages that need no connection: simulated ones, those that the operator rejects, and those
 * whose destination has no route. `expire` and `unprepared` end or delay messages that are not sent now.
 */

export type Deliveries = ReturnType<typeof createDeliveries>;

/** A message with a slot at its site and shares of the budgets, until `release` is called. */
export interface HeldMessage extends ReservedMessage {
  /** `wasUsed`: whether a worker has begun with the message. */
  release(wasUsed: boolean): void;
}

/** `site`: the key of the site. `result`: what the attempt led to. */
export type ObserveAttempt = (site: string, result: 'delivered' | 'deferred' | 'bounced', lane: Lane) => void;

export interface DeliveryParts {
  recorder: Recorder;
  results: AttemptResults;
  classify: Classify;
  feedback: Feedback;
  recording: Pick<
    Recording,
    'lease' | 'putBack' | 'persist' | 'conclude' | 'fail' | 'failLeased' | 'postpone' | 'settled'
  >;
  claims: Pick<Claims, 'release'>;
  waits: Pick<Waits, 'begin' | 'msOf' | 'prepareFailed' | 'prepared'>;
  egress: Pick<Egress, 'take' | 'release' | 'settle'>;
  buildJob: BuildJob;
  pool: Pick<WorkerPool, 'send' | 'stop'>;
  /** Called with the result of each session, for metrics. */
  observeAttempt?: ObserveAttempt | undefined;
  /** Counts TLS sessions. */
  tls?: Pick<TlsSystem, 'reports' | 'observeSessions'> | undefined;
}

/** How the slot of a message was used. */
type SlotUse =
  /** A worker had the message, or was lost with it. */
  | { kind: 'attempted'; attempt: Attempt }
  /** It waits in the queue. */
  | { kind: 'later'; waitMs: number; leased: boolean }
  /** What is needed to send it cannot be read. */
  | { kind: 'unprepared'; error: unknown; leased: boolean }
  /** It cannot be posted to a thread. */
  | { kind: 'unsendable'; error: unknown }
  /** It can never be sent. */
  | { kind: 'invalid'; reason: 'domain_deleted' | 'content_invalid'; leased: boolean }
  /** It was not leased, and the reason is recorded. */
  | { kind: 'not-taken' };

interface Attempt {
  conclusion: string;
  sessions: readonly SessionRecord[];
  /** The deciding one, for the log. */
  session?: SessionRecord | null;
  result: AttemptResult;
  settlement: Settlement;
}

/** What the action of a classification leads to. */
const RESULTS = { deliver: 'delivered', defer: 'deferred', bounce: 'bounced' } as const;

/** A message that cannot be prepared waits half of its age, within these bounds. */
const MIN_UNPREPARED_WAIT_MS = 60 * SECOND;
const MAX_UNPREPARED_WAIT_MS = HOUR;

/** Has no state but the deliveries in progress. `stop` ends the worker threads. */
export function createDeliveries(
  {
    clock,
    config,
    expiry,
    log,
  }: Pick<Context, 'clock' | 'expiry' | 'log'> & {
    config: { hostname: string };
  },
  parts: DeliveryParts,
) {
  const { recorder, results, classify, feedback, recording, claims, waits, egress, buildJob, pool, tls } =
    parts;
  /** Deliveries that hold a slot. */
  const holding = new Set<Promise<SlotUse>>();
  let stopping = false;

  /**
   * Delivers a message once, or returns it to the queue. Resolves when its outcome is recorded, with whether it is in the
   * queue again and can be sent now.
   */
  async function deliver(held: HeldMessage): Promise<boolean> {
    const { assignment, reservation } = held;
    const sending = send(held);
    holding.add(sending);
    try {
      const use = await sending;
      // The next message has the slot while this one is recorded. `stop` waits for what is being recorded.
      const recorded = record(use, assignment, reservation.site.key);
      holding.delete(sending);
      return await recorded;
    } finally {
      holding.delete(sending);
    }
  }

  /** Sends the message over its slot, and releases the slot. */
  async function send({ reservation, assignment, release }: HeldMessage): Promise<SlotUse> {
    const { message } = assignment;
    const { site, slot } = reservation;
    const leased = assignment.lease !== undefined;
    let ticket: ReturnType<Egress['take']> = null;
    let wasUsed = false;
    try {
      if (leased && !(await assignment.lease)) return { kind: 'not-taken' };
      try {
        ticket = egress.take(site, slot, mailOf(assignment));
      } catch (error) {
        return { kind: 'unprepared', error, leased };
      }
      // The last message of the day's quota has left meanwhile.
      if (ticket === null) return { kind: 'later', waitMs: 0, leased };
      let job: DeliveryJob | 'domain_deleted' | 'content_invalid' | null;
      try {
        const waitMs = waits.msOf('domain_parked', message.domain_id);
        if (waitMs > 0) return { kind: 'later', waitMs, leased };
        job = buildJob(reservation, assignment, ticket.entry);
        waits.prepared(message);
      } catch (error) {
        return { kind: 'unprepared', error, leased };
      }
      if (typeof job === 'string') return { kind: 'invalid', reason: job, leased };
      if (!leased && !(await recording.lease(message))) return { kind: 'not-taken' };
      if (stopping) return { kind: 'later', waitMs: 0, leased: true };

      const ending = pool.send(site.number + slot, job);
      // The worker has it: a variable would keep its content in memory for the whole session.
      job = null;
      const end = await ending;
      if (end.kind === 'returned') return { kind: 'later', waitMs: 0, leased: true };
      if (end.kind === 'unsendable') return end;
      wasUsed = true;
      const used = ticket;
      ticket = null;
      if (end.kind === 'lost') {
        const lost = { conclusion: 'worker-lost' as const, sessions: [] };
        const settlement = egress.settle(used, localResult('connection-lost'), lost);
        return { kind: 'attempted', attempt: { ...lost, result: settlement.result, settlement } };
      }
      const { report } = end;
      const { conclusion, sessions } = report;
      const settlement = egress.settle(used, evaluateReport(report, classify), report);
      // Before the slot is released: whether its connection is still open depends on the answer.
      const result = feedback.apply(report, settlement.result, reservation, message);
      const session = decidingSession(report);
      return { kind: 'attempted', attempt: { conclusion, sessions, session, result, settlement } };
    } finally {
      if (ticket !== null) egress.release(ticket);
      // In the same run of code as the feedback: reports that arrive together are applied one after the other.
      release(wasUsed);
    }
  }

  /** Records what became of the message. Resolves with whether it was put back and can be sent now. */
  async function record(use: SlotUse, assignment: Assignment, site: string): Promise<boolean> {
    const { message } = assignment;
    switch (use.kind) {
      case 'attempted':
        await recordAttempt(use.attempt, assignment, site);
        break;
      case 'later':
        return delay(message, use.waitMs, use.leased);
      case 'unprepared':
        return unprepared(message, use.error, use.leased);
      case 'unsendable':
        waits.prepareFailed(message, use.error);
        log.error(
          { err: use.error, messageId: message.message_id },
          'message cannot be passed to a delivery worker',
        );
        waits.begin('message_unprepared', message.seq, null, MIN_UNPREPARED_WAIT_MS);
        return recording.putBack(message, MIN_UNPREPARED_WAIT_MS);
      case 'invalid':
        if (use.reason === 'content_invalid')
          log.error({ messageId: message.message_id }, 'message has no content; it fails');
        await fail(message, { reason: use.reason }, use.leased);
        break;
      case 'not-taken':
        break;
    }
    return false;
  }

  async function recordAttempt(attempt: Attempt, assignment: Assignment, site: string): Promise<void> {
    const { message, lane, hosts, tls: published } = assignment;
    const { conclusion, sessions, session, result, settlement } = attempt;
    if (conclusion === 'not-composed')
      log.error(
        { messageId: message.message_id, diagnostic: result.reply.text },
        'message cannot be composed; it fails',
      );
    logAttempt(log, message, result, { conclusion, site, lane, session });
    const isReported = conclusion !== 'worker-lost';
    if (isReported) {
      parts.observeAttempt?.(site, RESULTS[result.classification.action], lane);
      tls?.observeSessions(hosts, sessions);
    }
    const { used } = settlement;
    await recording.persist(
      message.seq,
      (tables) => {
        settlement.record(tables);
        // Only what was sent by published data is reported, not what followed a configured route.
        if (isReported && published !== undefined)
          tls?.reports.count(tables, { destination: message.destination, hosts, tls: published, sessions });
        return results.record(tables, message.seq, result, { lane, conclusion, sessions, used });
      },
      (tables) => results.recordStatus(tables, message.seq, result),
    );
  }

  /** Ends a claimed message that needs no connection. The attempt is logged when it is on disk. */
  async function conclude(message: QueuedMessage, target: LocalTarget): Promise<void> {
    if (target.kind === 'simulator') {
      await recording.conclude(message, (tables) =>
        playSimulation({ results, recorder, hostname: config.hostname }, tables, message.seq),
      );
      return;
    }
    const conclusion = target.kind === 'failure' ? target.failure : 'rejected-by-operator';
    const lane = message.secondary === 1 ? 'secondary' : 'primary';
    const attempt: { result: AttemptResult | null } = { result: null };
    const outcome = await recording.conclude(message, (tables) => {
      const result =
        target.kind === 'failure'
          ? results.ofRouteFailure(tables, message.seq, target.failure)
          : rejectionBy(target.control);
      attempt.result = result;
      return results.record(tables, message.seq, result, { lane, conclusion, sessions: [] });
    });
    if (outcome !== null && attempt.result !== null) logAttempt(log, message, attempt.result, { conclusion });
  }

  /**
   * Data that is needed to send the message cannot be read. The message waits, longer each time, until it expires. No
   * attempt was made: its state does not change, and the only event is the final failure.
   */
  async function unprepared(message: QueuedMessage, error: unknown, leased = false): Promise<boolean> {
    const { message_id: messageId, domain_id: domainId, account_id: accountId } = message;
    waits.prepareFailed(message, error);
    log.error({ err: error, messageId, domainId, accountId }, 'message cannot be prepared');
    const ageMs = clock.now() - message.created_at;
    const waitMs = Math.max(
      Math.min(Math.max(ageMs / 2, MIN_UNPREPARED_WAIT_MS), MAX_UNPREPARED_WAIT_MS),
      waits.msOf('domain_parked', domainId),
    );
    if (expiry.now() + waitMs < message.expires_at) {
      waits.begin('message_unprepared', message.seq, null, waitMs);
      return delay(message, waitMs, leased);
    }
    await expire(message, `the message cannot be prepared: ${errorText(error)}`, leased);
    return false;
  }

  /** Ends a message that expired without another attempt. */
  function expire(message: QueuedMessage, lastDiagnostic: string, leased = false): Promise<void> {
    return fail(message, { reason: 'expired', attempts: message.attempts, lastDiagnostic }, leased);
  }

  /** Failures without an attempt are logged now. */
  function fail(message: QueuedMessage, fields: EventFields['email_failed'], leased: boolean): Promise<void> {
    log.info(
      {
        messageId: message.message_id,
        accountId: message.account_id,
        recipient: message.recipient,
        recipientDomain: message.destination,
        reason: fields.reason,
        diagnostic: fields.lastDiagnostic,
      },
      'message failed without another delivery attempt',
    );
    return leased ? recording.failLeased(message, fields) : recording.fail(message, fields);
  }

  /** Returns the message to the queue. Resolves with whether a lease was ended. */
  async function delay(message: QueuedMessage, waitMs: number, leased: boolean): Promise<boolean> {
    if (leased) return recording.putBack(message, waitMs);
    if (waitMs > 0) await recording.postpone(message, clock.now() + waitMs);
    else claims.release(message);
    return false;
  }

  /**
   * Lets the sessions in progress end, for at most `graceMs`; messages that no worker began are put back. The outcomes
   * may still be being recorded.
   */
  async function stop(graceMs: number): Promise<void> {
    stopping = true;
    await recording.settled();
    await pool.stop(graceMs);
    while (holding.size > 0) await Promise.allSettled(holding);
  }

  return { deliver, conclude, unprepared, expire, stop };
}

/** What decides about the source address of a message. */
function mailOf({ message, provider, receiver, hosts }: Assignment) {
  return { provider, receiver, priority: message.priority, hosts, sender: message };
}

/** RFC 3463 §3.8: 5.7.1, delivery not authorized. It is about neither the recipient nor our address. */
function rejectionBy(control: QueueControlRow): AttemptResult {
  return {
    classification: {
      action: 'bounce',
      bounceType: 'block',
      bounceClass: 'policy-block',
      scope: 'site',
      suppress: 'never',
      retryAfterMs: null,
      greylisted: false,
    },
    reply: { code: 550, enhanced: '5.7.1', text: describeControl(control) },
    source: 'local',
  };
}
