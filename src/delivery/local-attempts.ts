import { type Clock, HOUR, SECOND } from '../core/clock.ts';
import { errorText } from '../core/errors.ts';
import type { ExpiryClock } from '../core/expiry-clock.ts';
import type { Log } from '../core/log.ts';
import type { EventFields } from '../events/event-types.ts';
import type { Recorder } from '../events/record.ts';
import type { LocalFailure } from '../mail/classify/classify.ts';
import type { QueuedMessage } from '../store/messages/queue.ts';
import type { QueueControlRow } from '../store/messages/queue-controls.ts';
import type { Tables } from '../store/tables.ts';
import { type AttemptResult, type AttemptResults, logAttempt } from './attempt-result.ts';
import { describeControl } from './control/controls.ts';
import type { Leases } from './leases.ts';
import type { Parking } from './scheduling/parking.ts';
import { playSimulation } from './simulator.ts';

/**
 * Ends messages without a connection: no route, simulated mail, mail that cannot be prepared, expired mail.
 * `leased` states whether the message has a lease already; otherwise it has a claim, which is released.
 */
export interface LocalAttempts {
  /** The destination has no usable route. */
  routeFailed(message: QueuedMessage, failure: LocalFailure): void;
  /** The operator rejects the mail to the destination of the message. */
  rejected(message: QueuedMessage, control: QueueControlRow): void;
  simulate(message: QueuedMessage): void;
  /**
   * Data that is needed to send the message cannot be read. The message waits, longer each time, until it expires. No
   * attempt was made: its state does not change, and the only event is the final failure.
   */
  unprepared(message: QueuedMessage, error: unknown, leased?: boolean): void;
  /** The message expired without another attempt. */
  expired(message: QueuedMessage, lastDiagnostic: string, leased?: boolean): void;
  /** The message can never be sent. */
  invalid(message: QueuedMessage, reason: 'domain_deleted' | 'content_invalid', leased: boolean): void;
  /** The message waits for its parked domain. */
  parked(message: QueuedMessage, waitMs: number, leased: boolean): void;
}

export interface LocalAttemptsDeps {
  clock: Clock;
  expiry: Pick<ExpiryClock, 'now'>;
  log: Log;
  recorder: Recorder;
  results: AttemptResults;
  leases: Pick<Leases, 'conclude' | 'fail' | 'failLeased' | 'postpone' | 'putBack'>;
  parking: Parking;
}

/** A message that cannot be prepared waits half of its age, within these bounds. */
export const MIN_UNPREPARED_WAIT_MS = 60 * SECOND;
const MAX_UNPREPARED_WAIT_MS = HOUR;

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

/**
 * Keeps no state. Attempts without a session are logged when they are on disk, failures without an attempt when the
 * function is called.
 */
export function createLocalAttempts(deps: LocalAttemptsDeps): LocalAttempts {
  const { clock, expiry, log, recorder, results, leases, parking } = deps;

  function fail(message: QueuedMessage, fields: EventFields['email_failed'], leased: boolean): void {
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
    if (leased) leases.failLeased(message, fields);
    else leases.fail(message, fields);
  }

  function expired(message: QueuedMessage, lastDiagnostic: string, leased = false): void {
    fail(message, { reason: 'expired', attempts: message.attempts, lastDiagnostic }, leased);
  }

  function delay(message: QueuedMessage, waitMs: number, leased: boolean): void {
    if (leased) leases.putBack(message, waitMs);
    else leases.postpone(message, waitMs);
  }

  /** Records an attempt without a session, and logs it when it is on disk. */
  function conclude(
    message: QueuedMessage,
    conclusion: string,
    resultOf: (tables: Tables) => AttemptResult,
  ): void {
    const lane = message.secondary === 1 ? 'secondary' : 'primary';
    let result: AttemptResult | null = null;
    leases.conclude(
      message,
      (tables) => {
        result = resultOf(tables);
        return results.record(tables, message.seq, result, { lane, conclusion, sessions: [] });
      },
      (outcome) => {
        if (outcome !== null && result !== null) logAttempt(log, message, result, { conclusion });
      },
    );
  }

  return {
    routeFailed: (message, failure) =>
      conclude(message, failure, (tables) => results.ofRouteFailure(tables, message.seq, failure)),
    rejected: (message, control) => conclude(message, 'rejected-by-operator', () => rejectionBy(control)),
    simulate: (message) =>
      leases.conclude(message, (tables) => playSimulation({ results, recorder }, tables, message.seq)),
    unprepared: (message, error, leased = false) => {
      const { message_id: messageId, domain_id: domainId, account_id: accountId } = message;
      parking.failed({ domainId, accountId }, error);
      log.error({ err: error, messageId, domainId, accountId }, 'message cannot be prepared');
      const ageMs = clock.now() - message.created_at;
      const waitMs = Math.max(
        Math.min(Math.max(ageMs / 2, MIN_UNPREPARED_WAIT_MS), MAX_UNPREPARED_WAIT_MS),
        parking.domainWait(domainId),
      );
      if (expiry.now() + waitMs >= message.expires_at)
        expired(message, `the message cannot be prepared: ${errorText(error)}`, leased);
      else delay(message, waitMs, leased);
    },
    expired,
    invalid: (message, reason, leased) => {
      if (reason === 'content_invalid')
        log.error({ messageId: message.message_id }, 'message has no content; it fails');
      fail(message, { reason }, leased);
    },
    parked: delay,
  };
}
