import type { Log } from '../core/log.ts';
import type { Lane } from '../store/domains/domains.ts';
import type { QueuedMessage } from '../store/messages/queue.ts';
import {
  type AttemptResults,
  evaluateReport,
  localResult,
  logAttempt,
  siteStateOf,
} from './attempt-result.ts';
import type { BuildJob } from './jobs.ts';
import type { Leases } from './leases.ts';
import { type LocalAttempts, MIN_UNPREPARED_WAIT_MS } from './local-attempts.ts';
import type { Recording } from './recording.ts';
import { type BudgetShare, createBudget } from './scheduling/budget.ts';
import type { Parking } from './scheduling/parking.ts';
import type { ReservedMessage, Site, SlotReservation } from './scheduling/site.ts';
import type { AttemptReport, DeliveryJob } from './worker/protocol.ts';
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
  leases: Pick<Leases, 'take' | 'putBack' | 'settled'>;
  localAttempts: Pick<LocalAttempts, 'unprepared' | 'invalid' | 'parked'>;
  recording: Pick<Recording, 'persist'>;
  parking: Parking;
  buildJob: BuildJob;
  /** Concurrent sessions and content bytes at most. */
  limits: { sessions: number; bytes: number };
  pool: Pick<WorkerPoolOptions, 'script' | 'workers' | 'idleConnections' | 'monotonic'>;
  /** Called with the result of each session, for metrics. */
  observeAttempt?: ObserveAttempt | undefined;
  /** Called in a later turn of the event loop than the release of a slot, once for each site. */
  onReleased(site: Site): void;
}

/** `site`: the key of the site. `result`: what the attempt led to. */
export type ObserveAttempt = (site: string, result: 'delivered' | 'deferred' | 'bounced', lane: Lane) => void;

/** What the action of a classification leads to. */
const RESULTS = { deliver: 'delivered', defer: 'deferred', bounce: 'bounced' } as const;

/**
 * The part of each content that does not count toward the limit on bytes, so that large messages to slow hosts do not
 * block ordinary mail. The number of sessions bounds the sum of these parts.
 */
const UNCOUNTED_BYTES = 64 * 1024;

interface Flight {
  message: QueuedMessage;
  lane: Lane;
  reservation: SlotReservation;
  session: BudgetShare;
  bytes: BudgetShare;
}

export function createFlights(deps: FlightsDeps): Flights {
  const { log, results, leases, localAttempts, recording, parking, buildJob } = deps;
  const sessionBudget = createBudget(deps.limits.sessions);
  const byteBudget = createBudget(deps.limits.bytes);
  const flights = new Map<number, Flight>();
  /** Sites with a slot released in this turn of the event loop. */
  const released = new Set<Site>();
  let stopping = false;
  const pool: WorkerPool = createWorkerPool({
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

  function sharesOf(site: Site, message: FlightMessage): Pick<Flight, 'session' | 'bytes'> {
    const owner = { account: message.account_id, site: site.key, priority: message.priority };
    const counted = Math.max(0, message.content_bytes - UNCOUNTED_BYTES);
    return { session: { ...owner, size: 1 }, bytes: { ...owner, size: counted } };
  }

  function start({ reservation, assignment, leased }: ReservedMessage): void {
    const { message, lane } = assignment;
    const flight = { message, lane, reservation, ...sharesOf(reservation.site, message) };
    flights.set(message.seq, flight);
    sessionBudget.take(flight.session);
    byteBudget.take(flight.bytes);
    let job: DeliveryJob | 'domain_deleted' | 'content_invalid';
    try {
      const waitMs = parking.domainWait(message.domain_id);
      if (waitMs > 0) {
        end(message.seq);
        localAttempts.parked(message, waitMs, leased);
        return;
      }
      job = buildJob(reservation, assignment);
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
    const { site } = flight.reservation;
    site.release(flight.reservation);
    sessionBudget.release(flight.session);
    byteBudget.release(flight.bytes);
    released.add(site);
    if (released.size === 1) setImmediate(notifyReleased);
    return flight;
  }

  function notifyReleased(): void {
    const sites = [...released];
    released.clear();
    for (const site of sites) deps.onReleased(site);
  }

  function finish(report: AttemptReport): void {
    const flight = end(report.id);
    if (flight === null) return;
    const { message, lane, reservation } = flight;
    const { site } = reservation;
    const result = evaluateReport(report);
    const { conclusion, sessions } = report;
    const siteState = siteStateOf(report);
    if (siteState === 'answered') site.answered(reservation);
    if (siteState === 'unreachable') {
      const waitMs = site.unreachable(reservation);
      if (waitMs > 0) log.warn({ site: site.key, waitMs }, 'site suspended: its hosts cannot be reached');
    }
    if (conclusion === 'not-composed')
      log.error(
        { messageId: message.message_id, diagnostic: result.reply.text },
        'message cannot be composed; it fails',
      );
    deps.observeAttempt?.(site.key, RESULTS[result.classification.action], lane);
    logAttempt(log, message, result, { conclusion, site: site.key, lane, host: sessions.at(-1)?.host });
    recording.persist(report.id, (tables) =>
      results.record(tables, report.id, result, { lane, conclusion, sessions }),
    );
  }

  /** The worker died during the session: the message may have been sent. */
  function lose(seq: number): void {
    const flight = end(seq);
    if (flight === null) return;
    const result = localResult('connection-lost');
    const conclusion = 'worker-lost';
    const { lane } = flight;
    logAttempt(log, flight.message, result, { conclusion, site: flight.reservation.site.key, lane });
    recording.persist(seq, (tables) =>
      results.record(tables, seq, result, { lane, conclusion, sessions: [] }),
    );
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
      const { session, bytes } = sharesOf(site, message);
      return sessionBudget.admits(session) && byteBudget.admits(bytes);
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
