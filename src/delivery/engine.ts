import { readFileSync } from 'node:fs';
import type { Config, Route } from '../config/schema.ts';
import { type Clock, SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Random } from '../core/random.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { Recorder } from '../events/record.ts';
import type { QueuedMessage, Stream } from '../store/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import { createDestinations } from './destinations.ts';
import { createEgressPools } from './egress.ts';
import { createGuard } from './guard.ts';
import { createHostFinder } from './hosts.ts';
import {
  type AttemptLog,
  createOutcomes,
  type Judgement,
  judge,
  judgeLocal,
  type Outcome,
} from './outcome.ts';
import { createPool } from './pool.ts';
import type { Prepare, SignersOf } from './prepare.ts';
import { createScheduler, type SchedulerSettings } from './scheduler.ts';
import { playSimulation } from './simulator.ts';
import { type Assignment, createSites, type Site } from './sites.ts';
import type { AttemptReport, DeliveryJob } from './worker/protocol.ts';

/**
 * The delivery engine: queue → worker → outcome. It ties the scheduler, the sites and the workers together
 * and owns what is under way. A message is delivered at least once: the only window in which a crash sends
 * it twice lies between the destination's 250 and the commit of that outcome.
 */
export interface DeliveryEngine {
  start(): void;
  /** Tells that new mail is in the queue (committed). */
  announce(lane: 0 | 1, stream: Stream): void;
  /** The first outcome of a message, or null after `ms` or when the signal aborts. Ask before announcing. */
  firstOutcome(seq: number, ms: number, signal: AbortSignal): Promise<Outcome | null>;
  /** Messages with a worker at the moment. */
  inFlight(): number;
  /** Null while the queue moves, else what is wrong, in words. */
  stalled(): string | null;
  /** Outcomes whose commit has failed and is tried again. */
  unrecorded(): number;
  /** Finishes the transactions under way and records them; gives the rest back to the queue. */
  stop(): Promise<void>;
}

export interface EngineSettings {
  config: Config;
  clock: Clock;
  random: Random;
  log: Log;
  tables: Tables;
  writer: Writer;
  recorder: Recorder;
  resolver: Resolver;
  prepare: Prepare;
  signersOf: SignersOf;
  stillAllowed: SchedulerSettings['stillAllowed'];
  generation: number;
  workerScript: URL;
  /** Told of every recorded outcome, for whoever counts. */
  observe(status: Outcome['status']): void;
}

const GRACE_MS = 30 * SECOND;
/** The queue is looked through every second; much later than that, something holds it up. */
const STALLED_AFTER_MS = 15 * SECOND;
const RECORD_AGAIN_MS = SECOND;

interface Flight {
  message: QueuedMessage;
  site: Site;
  slot: number;
}

export function createDeliveryEngine(settings: EngineSettings): DeliveryEngine {
  const { config, clock, random, log, tables, writer, recorder, resolver } = settings;
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
    clock,
    shaping: config.delivery.shaping,
    firstSuspension: Math.min(60 * SECOND, config.delivery.retry.first),
  });
  const outcomes = createOutcomes({ clock, random, recorder, retry: config.delivery.retry });
  const passwords = readPasswords(config.delivery.routes);
  const flights = new Map<number, Flight>();
  const recording = new Set<Promise<void>>();
  const unrecorded = new Set<number>();
  const waiters = new Map<number, ((outcome: Outcome | null) => void)[]>();

  const pool = createPool({
    script: settings.workerScript,
    workers: config.delivery.workers,
    log,
    onReports: (reports) => {
      for (const report of reports) receive(report);
    },
    onLost: (jobs) => {
      for (const job of jobs) lost(job);
    },
  });
  const scheduler = createScheduler({
    clock,
    log,
    tables,
    writer,
    recorder,
    destinations: createDestinations({ hosts, clock, log }),
    sites,
    egress,
    generation: settings.generation,
    stillAllowed: settings.stillAllowed,
    dispatch,
    failed: (message, { failure }) => {
      track(message.seq, (all) =>
        record(all, message.seq, judgeLocal(failure), { lane: 'primary', conclusion: failure, sessions: [] }),
      );
    },
    simulate: (message) => {
      track(message.seq, (all) => playSimulation({ outcomes, recorder, clock }, all, message.seq));
    },
  });

  function dispatch(site: Site, slot: number, assignment: Assignment): void {
    const { message } = assignment;
    flights.set(message.seq, { message, site, slot });
    const job = jobFor(site, slot, assignment);
    if (job === null) {
      // Its domain was deleted while it waited; what is left of its mail is dropped as it comes up.
      land(message.seq);
      track(message.seq, (all) => {
        recorder.message(all, all.messages.bySeq(message.seq) ?? message, 'email_failed', {
          fields: { reason: 'domain_deleted' },
        });
        return null;
      });
      return;
    }
    pool.send(site.number + slot, job);
  }

  function jobFor(site: Site, slot: number, { message, hosts, route }: Assignment): DeliveryJob | null {
    const domain = tables.domains.byId(message.domain_id);
    const content = tables.messages.content(message.content_id);
    if (domain === null || content === null) return null;
    const password = route === null ? undefined : passwords.get(route);
    return {
      ...settings.prepare(message, domain, content, settings.signersOf(domain, 'primary')),
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

  /** The slot is free again. */
  function land(seq: number): Flight | null {
    const flight = flights.get(seq);
    if (flight === undefined) return null;
    flights.delete(seq);
    sites.free(flight.site, flight.slot);
    return flight;
  }

  function receive(report: AttemptReport): void {
    const flight = land(report.id);
    if (flight === null) return;
    const { message, site } = flight;
    if (report.conclusion === 'unreachable') {
      const wait = sites.unreachable(site);
      if (wait > 0)
        log.warn({ site: site.key, waitMs: wait }, 'site cannot be reached; leaving it alone for a while');
    } else sites.answered(site);
    const judgement = judge(report);
    log.info(
      {
        messageId: message.message_id,
        recipient: message.recipient,
        action: judgement.verdict.action,
        smtpCode: judgement.reply.code,
        host: report.sessions.at(-1)?.host,
      },
      'delivery attempt',
    );
    track(report.id, (all) =>
      record(all, report.id, judgement, {
        lane: 'primary',
        conclusion: report.conclusion,
        sessions: report.sessions,
      }),
    );
    scheduler.advance(site);
  }

  function lost(job: DeliveryJob): void {
    const flight = land(job.id);
    track(job.id, (all) =>
      record(all, job.id, judgeLocal('connection-lost'), {
        lane: 'primary',
        conclusion: 'worker-lost',
        sessions: [],
      }),
    );
    if (flight !== null) scheduler.advance(flight.site);
  }

  function record(all: Tables, seq: number, judgement: Judgement, attempt: AttemptLog): Outcome | null {
    return outcomes.record(all, seq, judgement, attempt);
  }

  /**
   * Commits an outcome, and keeps trying when the database cannot take it (a full disk): an outcome that
   * was forgotten would be a mail sent twice.
   */
  function track(seq: number, unit: (all: Tables) => Outcome | null): void {
    const work = commitOutcome(seq, unit).finally(() => recording.delete(work));
    recording.add(work);
  }

  async function commitOutcome(seq: number, unit: (all: Tables) => Outcome | null): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        const outcome = await writer.run(unit);
        unrecorded.delete(seq);
        if (outcome !== null) settings.observe(outcome.status);
        settle(seq, outcome);
        return;
      } catch (error) {
        unrecorded.add(seq);
        log.error({ err: error, message: seq, tries }, 'an outcome could not be recorded; trying again');
        if (stopped) return;
        await new Promise((resolve) => setTimeout(resolve, RECORD_AGAIN_MS));
      }
    }
  }

  function settle(seq: number, outcome: Outcome | null): void {
    for (const waiter of waiters.get(seq) ?? []) waiter(outcome);
    waiters.delete(seq);
  }

  let stopped = false;

  return {
    start: () => scheduler.start(),
    announce: (lane, stream) => scheduler.announce(lane, stream),
    inFlight: () => flights.size,
    unrecorded: () => unrecorded.size,
    stalled: () => {
      const since = clock.now() - scheduler.lookedAt();
      return since < STALLED_AFTER_MS
        ? null
        : `the queue was last looked through ${Math.round(since / SECOND)} s ago`;
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
      await scheduler.stop();
      await pool.stop(GRACE_MS);
      stopped = true;
      await Promise.all(recording);
    },
  };
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
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`delivery.routes: the passwordFile of "${route.match}" cannot be read: ${why}`, {
      cause: error,
    });
  }
}
