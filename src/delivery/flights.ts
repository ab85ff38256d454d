import type { Log } from '../core/log.ts';
import type { Classify } from '../mail/classify/classify.ts';
import type { Lane } from '../store/domains/domains.ts';
import type { QueuedMessage } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import {
  type AttemptResult,
  type AttemptResults,
  decidingSession,
  evaluateReport,
  localResult,
  logAttempt,
} from './attempt-result.ts';
import type { BuildJob } from './jobs.ts';
import type { Leases } from './leases.ts';
import { type LocalAttempts, MIN_UNPREPARED_WAIT_MS } from './local-attempts.ts';
import type { Recording } from './recording.ts';
import { type BudgetShare, createBudget, type FreedShares, UNCOUNTED_BYTES } from './scheduling/budget.ts';
import type { Parking } from './scheduling/parking.ts';
import type { Assignment, ReservedMessage, Site, SlotReservation } from './scheduling/site.ts';
import type { Feedback } from './shaping/feedback.ts';
import {
  type Egress,
  type EgressMail,
  type EgressTicket,
  type Settlement,
  withoutRecord,
} from './source-address.ts';
import type { TlsSystem } from './tls-system.ts';
import type { AttemptReport, DeliveryJob, SessionRecord } from './worker/protocol.ts';
import { createWorkerPool, type WorkerPool, type WorkerPoolOptions } from './worker-pool.ts';

/**
 * Messages in flight. A flight begins when the scheduler has reserved a slot for a message: what a worker needs is
 * read, the message is leased and becomes `sending` (one commit, unless it was leased ahead), a worker sends it, and
 * the result is recorded. Each end of a flight releases the slot and the shares of the budgets, and either records an
 * outcome or returns the message to the queue.
 */
export interface Flights {
  /** Whether the budgets for sessions and content bytes admit the message now. */
  admits(site: Site, message: FlightMessage): boolean;
  /** The budget that does not admit a message now, whatever its size; null: all of them do. */
  exhausted(site: Site, message: QueuedMessage): 'sessions' | 'unanswered' | null;
  start(reserved: ReservedMessage): void;
  count(): number;
  /** Bytes of the contents in flight that count toward the limit. */
  bytes(): number;
  /** Milliseconds that each worker has been busy since its thread started. */
  workerBusyMs(): number[];
  /** Ends workers that hold a job for too long. Call periodically. */
  check(): void;
  /** Lets the sessions in progress end, for at most `graceMs`; messages that no worker began are put back. */
  stop(graceMs: number): Promise<void>;
}

type FlightMessage = QueuedMessage & { content_bytes: number };

export interface FlightsDeps {
  log: Log;
  results: AttemptResults;
  classify: Classify;
  feedback: Feedback;
  leases: Pick<Leases, 'take' | 'putBack' | 'settled'>;
  /** Releases the claim on a message that is not leased. */
  unclaim(message: QueuedMessage): void;
  egress: Pick<Egress, 'take' | 'release' | 'settle'>;
  localAttempts: Pick<LocalAttempts, 'unprepared' | 'invalid' | 'parked'>;
  recording: Pick<Recording, 'persist'>;
  parking: Parking;
  buildJob: BuildJob;
  /** Concurrent sessions and content bytes at most. */
  limits: { sessions: number; bytes: number };
  pool: Pick<WorkerPoolOptions, 'script' | 'workers' | 'idleConnections' | 'authorities' | 'monotonic'>;
  /** Default: worker threads. */
  createPool?: ((options: WorkerPoolOptions) => WorkerPool) | undefined;
  /** Called with the result of each session, for metrics. */
  observeAttempt?: ObserveAttempt | undefined;
  /** Counts TLS sessions. */
  tls?: Pick<TlsSystem, 'reports' | 'observeSessions'> | undefined;
  /** Called in a later turn of the event loop than the release of a slot, once for each site. */
  onReleased(site: Site, freed: FreedShares): void;
}

/** What decides about the source address of a message. */
function mailOf({ message, provider, receiver, hosts }: ReservedMessage['assignment']): EgressMail {
  return { provider, receiver, priority: message.priority, hosts };
}

/** `site`: the key of the site. `result`: what the attempt led to. */
export type ObserveAttempt = (site: string, result: 'delivered' | 'deferred' | 'bounced', lane: Lane) => void;

/** What the action of a classification leads to. */
const RESULTS = { deliver: 'delivered', defer: 'deferred', bounce: 'bounced' } as const;

/**
 * The share of the sessions that sites may use which have not answered: each holds its session until a timeout. Without a
 * limit, a few hundred dead destinations would leave no session for the others.
 */
const UNANSWERED_SHARE = 0.5;

interface Flight {
  message: QueuedMessage;
  lane: Lane;
  /** Where it is sent, and what is published there. */
  target: Pick<Assignment, 'hosts' | 'tls'>;
  /** The source address of the attempt. Null: it is not chosen, or the ticket has ended. */
  ticket: EgressTicket | null;
  reservation: SlotReservation;
  session: BudgetShare;
  /** Share of the budget of sites that have not answered; of size 0 if the site had answered before. */
  unanswered: BudgetShare;
  bytes: BudgetShare;
}

/**
 * Starts the worker threads immediately; `stop` ends them. Sites that have not answered may use half of the sessions in
 * `limits`. Of a content, only the bytes beyond `UNCOUNTED_BYTES` count toward `limits.bytes`.
 */
export function createFlights(deps: FlightsDeps): Flights {
  const { log, results, classify, feedback, leases, localAttempts, recording, parking, egress, buildJob } =
    deps;
  const sessionBudget = createBudget(deps.limits.sessions);
  const unansweredBudget = createBudget(Math.max(1, Math.floor(deps.limits.sessions * UNANSWERED_SHARE)));
  const byteBudget = createBudget(deps.limits.bytes);
  const flights = new Map<number, Flight>();
  /** Sites with a slot released in this turn of the event loop. */
  const released = new Map<Site, FreedShares>();
  let stopping = false;
  const pool: WorkerPool = (deps.createPool ?? createWorkerPool)({
    ...deps.pool,
    log,
    onReports: (reports) => {
      for (const report of reports) finish(report);
    },
    onLost: (ids) => {
      for (const id of ids) lose(id);
    },
    onReturned: (ids) => {
      for (const id of ids) giveBack(id);
    },
    onUnsendable: refuse,
  });

  function sharesOf(site: Site, message: FlightMessage): Pick<Flight, 'session' | 'unanswered' | 'bytes'> {
    const { account_id: account, priority } = message;
    const { key } = site;
    const counted = Math.max(0, message.content_bytes - UNCOUNTED_BYTES);
    return {
      session: { account, site: key, priority, size: 1 },
      unanswered: { account, site: key, priority, size: site.hasAnswered() ? 0 : 1 },
      bytes: { account, site: key, priority, size: counted },
    };
  }

  function start({ reservation, assignment, leased }: ReservedMessage): void {
    const { message, lane } = assignment;
    const { site, slot } = reservation;
    const ticket = egress.take(site, slot, mailOf(assignment));
    const flight = { message, lane, target: assignment, reservation, ticket, ...sharesOf(site, message) };
    flights.set(message.seq, flight);
    sessionBudget.take(flight.session);
    unansweredBudget.take(flight.unanswered);
    byteBudget.take(flight.bytes);
    if (ticket === null) {
      // The last message of the day's quota has left meanwhile: the message waits in the queue.
      end(message.seq);
      if (leased) leases.putBack(message, 0);
      else deps.unclaim(message);
      return;
    }
    let job: DeliveryJob | 'domain_deleted' | 'content_invalid';
    try {
      const waitMs = parking.domainWait(message.domain_id);
      if (waitMs > 0) {
        end(message.seq);
        localAttempts.parked(message, waitMs, leased);
        return;
      }
      job = buildJob(reservation, assignment, ticket.entry);
      parking.succeeded({ domainId: message.domain_id, accountId: message.account_id });
    } catch (error) {
      end(message.seq);
      localAttempts.unprepared(message, error, leased);
      return;
    }
    if (typeof job === 'string') {
      end(message.seq);
      localAttempts.invalid(message, job, leased);
    } else if (leased) post(reservation, job);
    else lease(message, reservation, job);
  }

  function lease(message: QueuedMessage, reservation: SlotReservation, job: DeliveryJob): void {
    leases.take(
      message,
      (taken) => {
        if (!taken) end(message.seq);
        else if (stopping) giveBack(message.seq);
        else post(reservation, job);
      },
      () => void end(message.seq),
    );
  }

  function post({ site, slot }: SlotReservation, job: DeliveryJob): void {
    pool.send(site.number + slot, job);
  }

  /** Ends a flight: the slot and the shares of the budgets are free again. Null: there is no such flight. */
  function end(seq: number): Flight | null {
    const flight = flights.get(seq);
    if (flight === undefined) return null;
    flights.delete(seq);
    if (flight.ticket !== null) egress.release(flight.ticket);
    const { site } = flight.reservation;
    site.release(flight.reservation);
    sessionBudget.release(flight.session);
    unansweredBudget.release(flight.unanswered);
    byteBudget.release(flight.bytes);
    const unanswered = flight.unanswered.size > 0 || released.get(site)?.unanswered === true;
    released.set(site, { unanswered });
    if (released.size === 1) setImmediate(notifyReleased);
    return flight;
  }

  function notifyReleased(): void {
    const sites = [...released];
    released.clear();
    for (const [site, freed] of sites) deps.onReleased(site, freed);
  }

  /** Ends the ticket of a flight with the result of its attempt; `end` follows. */
  function settle(
    flight: Flight | undefined,
    result: AttemptResult,
    report: Parameters<Egress['settle']>[2],
  ): Settlement {
    const ticket = flight?.ticket;
    if (flight === undefined || ticket === undefined || ticket === null) return withoutRecord(result);
    flight.ticket = null;
    return egress.settle(ticket, result, report);
  }

  function finish(report: AttemptReport): void {
    const flight = flights.get(report.id);
    if (flight === undefined) return;
    const settlement = settle(flight, evaluateReport(report, classify), report);
    const { message, lane, target, reservation } = flight;
    const { site } = reservation;
    const { used } = settlement;
    // Before the slot is released: whether its connection is still open depends on the answer.
    const result = feedback.apply(report, settlement.result, reservation, message);
    end(report.id);
    const { conclusion, sessions } = report;
    if (conclusion === 'not-composed')
      log.error(
        { messageId: message.message_id, diagnostic: result.reply.text },
        'message cannot be composed; it fails',
      );
    deps.observeAttempt?.(site.key, RESULTS[result.classification.action], lane);
    logAttempt(log, message, result, { conclusion, site: site.key, lane, session: decidingSession(report) });
    deps.tls?.observeSessions(target.hosts, sessions);
    const unit = (tables: Tables) => {
      settlement.record(tables);
      countTls(tables, flight, sessions);
      return results.record(tables, report.id, result, { lane, conclusion, sessions, used });
    };
    const fallback = (tables: Tables) => results.recordStatus(tables, report.id, result);
    recording.persist(report.id, unit, settlement.recorded, fallback);
  }

  /** Only what was sent by published data is reported, not what followed a configured route. */
  function countTls(tables: Tables, { message, target }: Flight, sessions: readonly SessionRecord[]): void {
    const { hosts, tls } = target;
    if (tls !== undefined)
      deps.tls?.reports.count(tables, { destination: message.destination, hosts, tls, sessions });
  }

  /** The worker died during the session: the message may have been sent. */
  function lose(seq: number): void {
    const conclusion = 'worker-lost';
    const settlement = settle(flights.get(seq), localResult('connection-lost'), { conclusion, sessions: [] });
    const flight = end(seq);
    if (flight === null) return;
    const { result, used } = settlement;
    const { lane } = flight;
    logAttempt(log, flight.message, result, { conclusion, site: flight.reservation.site.key, lane });
    const unit = (tables: Tables) => {
      settlement.record(tables);
      return results.record(tables, seq, result, { lane, conclusion, sessions: [], used });
    };
    const fallback = (tables: Tables) => results.recordStatus(tables, seq, result);
    recording.persist(seq, unit, settlement.recorded, fallback);
  }

  /** Returns a message that no worker began to the queue. */
  function giveBack(seq: number): void {
    const flight = end(seq);
    if (flight !== null) leases.putBack(flight.message, 0);
  }

  /** The job cannot be posted to a thread. */
  function refuse(seq: number, error: unknown): void {
    const flight = end(seq);
    if (flight === null) return;
    const { message } = flight;
    parking.failed({ domainId: message.domain_id, accountId: message.account_id }, error);
    log.error({ err: error, messageId: message.message_id }, 'message cannot be passed to a delivery worker');
    leases.putBack(message, MIN_UNPREPARED_WAIT_MS);
  }

  return {
    admits: (site, message) => {
      // Most refusals are due to the budget for sessions: it is checked first.
      const { account_id: account, priority } = message;
      const session = { account, site: site.key, priority, size: 1 };
      if (!sessionBudget.admits(session)) return false;
      const { unanswered, bytes } = sharesOf(site, message);
      return unansweredBudget.admits(unanswered) && byteBudget.admits(bytes);
    },
    exhausted: (site, message) => {
      const { account_id: account, priority } = message;
      const session = { account, site: site.key, priority, size: 1 };
      if (!site.hasAnswered() && !unansweredBudget.admits(session)) return 'unanswered';
      return sessionBudget.admits(session) ? null : 'sessions';
    },
    start,
    count: () => flights.size,
    bytes: () => byteBudget.used(),
    workerBusyMs: () => pool.busyMs(),
    check: () => pool.check(),
    stop: async (graceMs) => {
      stopping = true;
      await leases.settled();
      await pool.stop(graceMs);
    },
  };
}
