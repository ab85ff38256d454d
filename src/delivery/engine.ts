import { readFileSync } from 'node:fs';
import type { Config, Route } from '../config/schema.ts';
import { type Clock, HOUR, iso, SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { fileFault } from '../core/operator-fault.ts';
import type { Random } from '../core/random.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { EventFields, Obstacle } from '../events/event-types.ts';
import type { Recorder } from '../events/record.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import { HELD, type QueuedMessage, type Stream } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import { type Claim, createBudget } from './budget.ts';
import { createClaims } from './claims.ts';
import { createClockWatch } from './clock-watch.ts';
import { createDestinations } from './destinations.ts';
import { createEgressPools } from './egress.ts';
import { createGuard } from './guard.ts';
import { createHostFinder } from './hosts.ts';
import { defaultConnections, openFilesLimit } from './limits.ts';
import { createOutcomes, type Judgement, judge, judgeLocal, type Outcome } from './outcome.ts';
import { createParking, type Parked } from './parking.ts';
import { createPool } from './pool.ts';
import type { Prepare, SignersOf } from './prepare.ts';
import { createRebasing } from './rebase.ts';
import { createRecording, type OutcomeUnit } from './recording.ts';
import { createScheduler } from './scheduler.ts';
import { createSharedContentReader } from './shared-contents.ts';
import { playSimulation } from './simulator.ts';
import { type Assignment, createSites, type Hold, type Site } from './sites.ts';
import type { AttemptReport, DeliveryJob } from './worker/protocol.ts';

/**
 * The delivery engine: queue → worker → outcome. It ties the scheduler, the sites and the workers together
 * and owns what is under way. A message is delivered at least once: the only window in which a crash sends
 * it twice lies between the destination's 250 and the commit of that outcome.
 *
 * The life of a flight: the scheduler hands over a message with a slot → everything it needs is read → it is
 * leased and becomes `sending` (one commit) → a worker has it → its outcome is recorded. Every way out of that
 * frees the slot and the shares of the limits, and either records an outcome or leaves the message in the queue.
 * At a fast and healthy site the commit comes first, while the slot is still in use (the message is armed).
 */
export interface DeliveryEngine {
  start(): void;
  /** Announces new mail in the queue (committed). */
  announce(lane: 0 | 1, stream: Stream): void;
  /** The first outcome of a message, or null after `ms` or when the signal aborts. Ask before announcing. */
  firstOutcome(seq: number, ms: number, signal: AbortSignal): Promise<Outcome | null>;
  /** Messages with a worker at the moment, and the octets of their contents that count towards the limit. */
  inFlight(): number;
  octetsInFlight(): number;
  /** Null while the queue advances, else what is wrong, in words. */
  stalled(): string | null;
  /** Null while outcomes can be recorded, else since when they cannot, and why. */
  unrecorded(): string | null;
  /** Domains and accounts whose mail cannot be prepared, 100 at most. */
  parked(): Parked[];
  parkedCount(kind: Parked['kind']): number;
  /** Queues and rows that cannot be read at present and are tried again later. */
  unreadable(): number;
  /** Why a message that waits is not sent at once although it is due, in words; null: nothing is known. */
  obstacle(message: QueuedMessage): string | null;
  /**
   * Finishes the transactions under way and records them; leaves the rest in the queue. Resolves with the number
   * of outcomes that could not be recorded: those messages will be sent again.
   */
  stop(): Promise<number>;
}

export interface EngineSettings {
  config: Config;
  clock: Clock;
  /** For everything that lasts: it does not follow when the system's clock is set. */
  monotonic: Clock;
  random: Random;
  log: Log;
  tables: Tables;
  writer: Writer;
  recorder: Recorder;
  resolver: Resolver;
  prepare: Prepare;
  signersOf: SignersOf;
  /** Null: the message may go. */
  stillAllowed(tables: Tables, message: MessageRow): Obstacle | null;
  generation: number;
  workerScript: URL;
  /** Called with every recorded outcome, for metrics. */
  observe(status: Outcome['status']): void;
  /** How long a stop may take; default 30 s. */
  graceMs?: number;
}

const GRACE_MS = 30 * SECOND;
/**
 * Of each content, what does not count towards the limit of octets in flight: ordinary mail goes out whatever large
 * mail is under way to hosts that do not take it. The number of sessions bounds it.
 */
const UNCOUNTED_OCTETS = 64 * 1024;
/** For the outcomes of what ended in the last moment of the grace. */
const LAST_OUTCOMES_MS = 2 * SECOND;
/** The queue is looked through every second; much later than that, something holds it up. */
const STALLED_AFTER_MS = 15 * SECOND;
const HOUSEKEEPING_MS = SECOND;
/** A message that cannot be prepared waits half its age, within these. */
const SHORTEST_WAIT = 60 * SECOND;
const LONGEST_WAIT = HOUR;

interface Flight {
  message: QueuedMessage;
  hold: Hold;
  sessions: Claim;
  octets: Claim;
}

export function createDeliveryEngine(settings: EngineSettings): DeliveryEngine {
  const { config, clock, monotonic, random, log, tables, writer, recorder, resolver } = settings;
  const egress = createEgressPools(config);
  const guard = createGuard({
    allowPrivateNetworks: config.delivery.allowPrivateNetworks,
    ownListeners: [config.mx.listen, config.submission.listen].filter((listen) => listen !== 'off'),
  });
  const hosts = createHostFinder({
    resolver,
    random,
    guard,
    routes: config.delivery.routes,
    port: config.delivery.port,
    ownNames: [config.hostname, ...config.delivery.egress.flatMap(({ hostname }) => hostname ?? [])],
  });
  const sites = createSites({
    clock: monotonic,
    shaping: config.delivery.shaping,
    firstSuspension: Math.min(60 * SECOND, config.delivery.retry.first),
  });
  const outcomes = createOutcomes({ clock, random, recorder, retry: config.delivery.retry });
  const passwords = readPasswords(config.delivery.routes);
  const connections = config.delivery.connections ?? defaultConnections(openFilesLimit());
  const sessionBudget = createBudget(connections);
  const octetBudget = createBudget(config.delivery.inFlightBytes);
  const sharedContent = createSharedContentReader(tables);
  const claims = createClaims(monotonic);
  const parking = createParking({ clock, monotonic, log });
  const rebasing = createRebasing({
    clock,
    watch: createClockWatch(clock, monotonic),
    retry: config.delivery.retry,
    writer,
    log,
  });
  const flights = new Map<number, Flight>();
  /** Commits under way that decide whether a flight starts. */
  const starting = new Set<Promise<void>>();
  const waiters = new Map<number, ((outcome: Outcome | null) => void)[]>();
  let housekeeping: NodeJS.Timeout | null = null;
  let stopping = false;

  const recording = createRecording({
    writer,
    tables,
    recorder,
    monotonic,
    log,
    recorded: (seq, outcome) => {
      if (outcome !== null) settings.observe(outcome.status);
      settle(seq, outcome);
    },
  });
  const pool = createPool({
    script: settings.workerScript,
    workers: config.delivery.workers,
    restingConnections: connections,
    monotonic,
    log,
    onReports: (reports) => {
      for (const report of reports) receive(report);
    },
    onLost: (ids) => {
      for (const id of ids) lost(id);
    },
    onReturned: (ids) => {
      for (const id of ids) giveBack(id);
    },
    onUnsendable: unsendable,
  });
  const scheduler = createScheduler({
    clock,
    monotonic,
    log,
    tables,
    writer,
    destinations: createDestinations({ hosts, clock: monotonic, log }),
    sites,
    egress,
    claims,
    parking,
    admits: (site, message) => {
      const { sessions, octets } = sharesOf(site, message);
      return sessionBudget.admits(sessions) && octetBudget.admits(octets);
    },
    // What is sent and not recorded would be sent again.
    mayStart: () => !stopping && recording.unrecorded() === null,
    dispatch,
    arm,
    disarm: (message) => putBack(message, 0),
    failed: (message, { failure }) =>
      conclude(message, (all) => {
        const judgement = outcomes.judgeFailure(all, message.seq, failure);
        const outcome = outcomes.record(all, message.seq, judgement, {
          lane: 'primary',
          conclusion: failure,
          sessions: [],
        });
        if (outcome !== null) logAttempt(message, judgement, { conclusion: failure });
        return outcome;
      }),
    simulate: (message) =>
      conclude(message, (all) => playSimulation({ outcomes, recorder, clock }, all, message.seq)),
    unprepared,
    expired,
  });

  function sharesOf(site: Site, message: QueuedMessage & { content_bytes: number }) {
    const party = { account: message.account_id, site: site.key, lane: message.lane };
    const counted = Math.max(0, message.content_bytes - UNCOUNTED_OCTETS);
    return { sessions: { ...party, size: 1 }, octets: { ...party, size: counted } };
  }

  /** In a unit of work: leases the message and makes it `sending`, or records why not. False: it does not go. */
  function take(all: Tables, { seq }: QueuedMessage): boolean {
    if (!all.queue.lease(seq, settings.generation)) return false;
    const current = all.messages.bySeq(seq);
    if (current === null) {
      all.queue.remove(seq);
      return false;
    }
    const obstacle = settings.stillAllowed(all, current);
    if (obstacle?.kind === 'hold') all.queue.defer(seq, HELD);
    else if (obstacle !== null) recorder.message(all, current, obstacle);
    else if (recorder.message(all, current, { kind: 'email_sent', fields: {} })) return true;
    // Its state is final: what is left in the queue is of no use.
    else all.queue.remove(seq);
    return false;
  }

  /** Takes a message and records its outcome in one commit: for mail that no worker gets. */
  function conclude(message: QueuedMessage, outcomeOf: OutcomeUnit): void {
    begin(
      message,
      (all) => (take(all, message) ? outcomeOf(all) : null),
      (outcome) => {
        if (outcome !== null) settings.observe(outcome.status);
        settle(message.seq, outcome);
      },
    );
  }

  /** A commit that ends the claim on a message. One that fails leaves it in the queue, for later. */
  function begin<T>(
    message: QueuedMessage,
    unit: (all: Tables) => T,
    then: (result: T) => void,
    otherwise?: () => void,
  ): void {
    // A unit's type forbids promises, which a generic cannot know.
    const work = writer.run(unit as (all: Tables) => never).then(
      (result: T) => {
        claims.release(message);
        then(result);
      },
      (error: unknown) => {
        log.error({ err: error, messageId: message.message_id }, 'message could not be taken from the queue');
        claims.holdOff(message);
        land(message.seq);
        otherwise?.();
        recording.suspect(error);
      },
    );
    const tracked = work.finally(() => starting.delete(tracked));
    starting.add(tracked);
  }

  function arm(site: Site, assignment: Assignment): void {
    const { message } = assignment;
    begin(
      message,
      (all) => take(all, message),
      (taken) => {
        site.arming--;
        if (!taken) settle(message.seq, null);
        else if (stopping) putBack(message, 0);
        else {
          site.armed[message.lane].push(assignment);
          if (site.freeSlots.length > 0) scheduler.advance(site);
        }
      },
      () => {
        site.arming--;
      },
    );
  }

  function dispatch(hold: Hold, assignment: Assignment, armed: boolean): void {
    const { message } = assignment;
    const flight = { message, hold, ...sharesOf(hold.site, message) };
    flights.set(message.seq, flight);
    sessionBudget.take(flight.sessions);
    octetBudget.take(flight.octets);
    let job: DeliveryJob | 'domain_deleted' | 'content_invalid';
    try {
      const wait = parking.domainWait(message.domain_id);
      if (wait > 0) {
        land(message.seq);
        if (armed) putBack(message, wait);
        else postpone(message, wait);
        return;
      }
      job = jobFor(hold, assignment);
      parking.worked({ domainId: message.domain_id, accountId: message.account_id });
    } catch (error) {
      land(message.seq);
      unprepared(message, error, armed);
      return;
    }
    if (typeof job === 'string') {
      // Without its domain or content it cannot be sent, ever.
      const reason = job;
      if (reason === 'content_invalid')
        log.error({ messageId: message.message_id }, 'message has no content; it fails');
      land(message.seq);
      fail(message, { reason }, armed);
      return;
    }
    const ready = job;
    if (armed) {
      pool.send(hold.site.number + hold.slot, ready);
      return;
    }
    begin(
      message,
      (all) => take(all, message),
      (taken) => {
        if (!taken) {
          land(message.seq);
          settle(message.seq, null);
        } else if (stopping) giveBack(message.seq);
        else pool.send(hold.site.number + hold.slot, ready);
      },
    );
  }

  /** Throws when something that the message needs cannot be read. */
  function jobFor(
    { site, slot }: Hold,
    { message, hosts, route }: Assignment,
  ): DeliveryJob | 'domain_deleted' | 'content_invalid' {
    const domain = tables.domains.byId(message.domain_id);
    if (domain === null) return 'domain_deleted';
    const content = tables.messages.content(message.content_id);
    if (content === null) return 'content_invalid';
    const { shared_id: sharedId, ...own } = content;
    const shared = sharedId === null ? null : sharedContent(sharedId);
    if (sharedId !== null && shared === null) return 'content_invalid';
    const password = route === null ? undefined : passwords.get(route);
    return {
      ...settings.prepare(message, domain, own, settings.signersOf(domain, 'primary')),
      ...(shared === null
        ? {}
        : { shared: { ...shared, identity: { messageId: message.message_id, date: message.created_at } } }),
      id: message.seq,
      slot: `${site.number}:${slot}`,
      hosts,
      port: route?.port ?? config.delivery.port,
      // Two routes may name the same host, so that they share a site, and differ in this.
      tls: route?.tls ?? site.profile.tls,
      ...(route?.user === undefined || password === undefined
        ? {}
        : { auth: { user: route.user, password, allowUnverified: route.allowUnverifiedAuth } }),
      egress: egress.entry(site.pool, slot),
      messagesPerConnection: site.profile.messagesPerConnection,
      idleMs: site.profile.idleMs,
    };
  }

  /**
   * A message that cannot be prepared waits, for the next time longer, until its time is over. It was not
   * attempted: its state stays, and there is no event but the last.
   */
  function unprepared(message: QueuedMessage, error: unknown, armed = false): void {
    parking.failed({ domainId: message.domain_id, accountId: message.account_id }, error);
    log.error(
      {
        err: error,
        messageId: message.message_id,
        domainId: message.domain_id,
        accountId: message.account_id,
      },
      'message cannot be prepared',
    );
    const now = clock.now();
    const wait = Math.min(Math.max((now - message.created_at) / 2, SHORTEST_WAIT), LONGEST_WAIT);
    const later = Math.max(wait, parking.domainWait(message.domain_id));
    if (now + later >= message.expires_at)
      expired(message, `the message cannot be prepared: ${messageOf(error)}`, armed);
    else if (armed) putBack(message, later);
    else postpone(message, later);
  }

  /** The time of a message is over without another attempt. */
  function expired(message: QueuedMessage, lastDiagnostic: string, armed = false): void {
    fail(message, { reason: 'expired', attempts: message.attempts, lastDiagnostic }, armed);
  }

  /** Ends a message that no worker has. One that is armed has left the queue's ready part: it is not let go. */
  function fail(message: QueuedMessage, fields: EventFields['email_failed'], armed: boolean): void {
    const { seq } = message;
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
    const unit = (all: Tables) => {
      const current = all.messages.bySeq(seq);
      if (current !== null) recorder.message(all, current, { kind: 'email_failed', fields });
      return null;
    };
    if (armed) recording.persist(seq, unit);
    else begin(message, unit, () => settle(seq, null));
  }

  function postpone(message: QueuedMessage, wait: number): void {
    begin(
      message,
      (all) => {
        all.queue.postpone(message.seq, clock.now() + Math.ceil(wait));
        return null;
      },
      () => {},
    );
  }

  /** Ends a flight: the slot and the shares of the limits are free again. */
  function land(seq: number): Flight | null {
    const flight = flights.get(seq);
    if (flight === undefined) return null;
    flights.delete(seq);
    sites.free(flight.hold);
    sessionBudget.release(flight.sessions);
    octetBudget.release(flight.octets);
    released.add(flight.hold.site);
    if (released.size === 1) setImmediate(fillReleased);
    return flight;
  }

  /** Sites that had a slot freed in this turn of the event loop. */
  const released = new Set<Site>();
  function fillReleased(): void {
    const freed = [...released];
    released.clear();
    for (const site of freed) scheduler.released(site);
  }

  function receive(report: AttemptReport): void {
    const flight = land(report.id);
    if (flight === null) return;
    const { message, hold } = flight;
    const judgement = judge(report);
    if (report.conclusion === 'unreachable') {
      const waitMs = sites.unreachable(hold);
      if (waitMs > 0)
        log.warn({ site: hold.site.key, waitMs }, 'site suspended: its hosts cannot be reached');
    } else if (report.conclusion === 'not-composed')
      log.error(
        { messageId: message.message_id, diagnostic: judgement.reply.text },
        'message cannot be composed; it fails',
      );
    else sites.answered(hold);
    logAttempt(message, judgement, {
      conclusion: report.conclusion,
      site: hold.site.key,
      host: report.sessions.at(-1)?.host,
    });
    recording.persist(report.id, (all) =>
      outcomes.record(all, report.id, judgement, {
        lane: 'primary',
        conclusion: report.conclusion,
        sessions: report.sessions,
      }),
    );
  }

  function lost(seq: number): void {
    const flight = land(seq);
    if (flight === null) return;
    const judgement = judgeLocal('connection-lost');
    const conclusion = 'worker-lost';
    logAttempt(flight.message, judgement, { conclusion, site: flight.hold.site.key });
    recording.persist(seq, (all) =>
      outcomes.record(all, seq, judgement, { lane: 'primary', conclusion, sessions: [] }),
    );
  }

  /** One line for each attempt, with what a person asks for: whose, where to, what was answered. */
  function logAttempt(
    message: QueuedMessage,
    { verdict, reply, source }: Judgement,
    attempt: { conclusion: string; site?: string; host?: string | undefined },
  ): void {
    log.info(
      {
        messageId: message.message_id,
        accountId: message.account_id,
        recipient: message.recipient,
        recipientDomain: message.destination,
        ...attempt,
        action: verdict.action,
        ...(verdict.action === 'deliver' ? {} : { classification: verdict.bounceClass }),
        smtpCode: reply.code,
        enhancedCode: reply.enhanced,
        reply: reply.text,
        // "local": no server said this.
        source,
      },
      'delivery attempt',
    );
  }

  /** A message that no worker began waits again, as it did before it was taken. */
  function giveBack(seq: number): void {
    const flight = land(seq);
    if (flight !== null) putBack(flight.message, 0);
  }

  /** Ends the lease of a message that was not begun. It is due again after `wait`; its state is as before. */
  function putBack({ seq, lane, account_id, destination }: QueuedMessage, wait: number): void {
    recording.persist(
      seq,
      (all) => {
        const current = all.messages.bySeq(seq);
        if (current !== null) recorder.returned(all, current);
        if (wait === 0) all.queue.release(seq, clock.now());
        else all.queue.defer(seq, clock.now() + Math.ceil(wait));
        return null;
      },
      () => scheduler.announce(lane, { account_id, destination }),
    );
  }

  function unsendable(seq: number, error: unknown): void {
    const flight = land(seq);
    if (flight === null) return;
    const { message } = flight;
    parking.failed({ domainId: message.domain_id, accountId: message.account_id }, error);
    log.error({ err: error, messageId: message.message_id }, 'message cannot be handed to a delivery worker');
    putBack(message, SHORTEST_WAIT);
  }

  function settle(seq: number, outcome: Outcome | null): void {
    for (const waiter of waiters.get(seq) ?? []) waiter(outcome);
    waiters.delete(seq);
  }

  async function keepHouse(): Promise<void> {
    try {
      pool.check();
      await recording.check();
      await rebasing.run();
    } catch (error) {
      log.error({ err: error }, 'delivery housekeeping failed');
    }
    if (!stopping) housekeeping = setTimeout(() => void keepHouse(), HOUSEKEEPING_MS);
  }

  return {
    start: () => {
      recording.suspect(null);
      void keepHouse();
      scheduler.start();
    },
    announce: (lane, stream) => scheduler.announce(lane, stream),
    inFlight: () => flights.size,
    octetsInFlight: () => octetBudget.used(),
    stalled: () => {
      if (scheduler.isFailing()) return 'the queue cannot be read; see the log';
      const since = monotonic.now() - scheduler.lookedAt();
      return since < STALLED_AFTER_MS
        ? null
        : `the queue was last looked through ${Math.round(since / SECOND)} s ago`;
    },
    unrecorded: () => recording.unrecorded(),
    parked: () => parking.list(),
    parkedCount: (kind) => parking.count(kind),
    unreadable: () => scheduler.unreadable(),
    obstacle: (message) => {
      const waits = {
        domain: parking.domainWait(message.domain_id),
        account: parking.accountWait(message.account_id),
      };
      const parked = Math.max(waits.domain, waits.account);
      if (parked > 0)
        return `mail of this ${waits.domain > 0 ? 'domain' : 'account'} cannot be prepared at present, and is tried again at ${iso(clock.now() + parked)}`;
      return recording.unrecorded() ?? scheduler.obstacle(message);
    },
    firstOutcome: (seq, ms, signal) =>
      new Promise((resolve) => {
        const done = (outcome: Outcome | null) => {
          clearTimeout(timer);
          signal.removeEventListener('abort', give);
          const left = (waiters.get(seq) ?? []).filter((waiter) => waiter !== done);
          if (left.length > 0) waiters.set(seq, left);
          else waiters.delete(seq);
          resolve(outcome);
        };
        const give = () => done(null);
        const timer = setTimeout(give, ms);
        signal.addEventListener('abort', give);
        waiters.set(seq, [...(waiters.get(seq) ?? []), done]);
      }),
    stop: async () => {
      const graceMs = settings.graceMs ?? GRACE_MS;
      const until = monotonic.now() + graceMs;
      stopping = true;
      if (housekeeping !== null) clearTimeout(housekeeping);
      scheduler.stop();
      await Promise.all(starting);
      await pool.stop(graceMs);
      // What a commit that ended in between gave back is among what is drained.
      const left = await recording.drain(Math.max(until, monotonic.now() + LAST_OUTCOMES_MS));
      if (left > 0)
        log.error(
          { messages: left },
          'outcomes could not be recorded before the end: these messages will be sent again after the start',
        );
      return left;
    },
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Read once at start: a password file that cannot be read stops the start, not a message. */
function readPasswords(routes: Route[]): Map<Route, string> {
  return new Map(
    routes.flatMap((route) =>
      route.passwordFile === undefined ? [] : [[route, readPassword(route, route.passwordFile)] as const],
    ),
  );
}

function readPassword(route: Route, file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw fileFault(`delivery.routes, passwordFile of "${route.match}"`, file, error);
  }
}
