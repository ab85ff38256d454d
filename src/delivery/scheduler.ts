import { type Clock, iso, SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { QueuedMessage, ReadyMessage, Stream } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import { type Claims, streamKey } from './claims.ts';
import type { Destinations } from './destinations.ts';
import type { EgressPools } from './egress.ts';
import type { Whereabouts } from './hosts.ts';
import type { Parking } from './parking.ts';
import type { Assignment, Hold, Site, Sites } from './sites.ts';

/**
 * Decides who is sent next. The queue is the database; memory holds only what was read ahead for sites that have
 * room, and that is lost without harm: the database shows a message as waiting until it is dispatched.
 *
 * Mail waits in streams: one account's mail to one destination, in the transactional or the marketing lane.
 * A stream is read when it has new mail, when its destination became known, and when its site has room again
 * (the site keeps the streams it had no room for, in order, so that they take turns: fairness between accounts
 * and destinations). Once a second a slow round over all streams finds what was missed: mail that came due, and
 * changes made by other processes.
 *
 * Whatever cannot be read is passed over and tried again later, each row, stream and step of the round for
 * itself: a damaged row stops nobody else's mail.
 */
export interface Scheduler {
  start(): void;
  /** New mail is in the queue (committed). */
  announce(lane: 0 | 1, stream: Stream): void;
  /** The site may have more to send. */
  advance(site: Site): void;
  /** A slot of the site, and its share of the engine's limits, are free again. */
  released(site: Site): void;
  /** Why a message is not sent at once although it is due, in words; null: nothing is known against it. */
  obstacle(message: QueuedMessage): string | null;
  /** Monotonic time at which the queue was last looked through to the end: it stands still when that is long ago. */
  lookedAt(): number;
  /** Whether the last slow rounds, two at least, could not read the queue as a whole. */
  isFailing(): boolean;
  /** Streams that cannot be read at present. */
  unreadable(): number;
  /** Nothing is dispatched any more. */
  stop(): void;
}

export interface SchedulerSettings {
  clock: Clock;
  /** For everything that lasts. */
  monotonic: Clock;
  log: Log;
  tables: Tables;
  writer: Writer;
  destinations: Destinations;
  sites: Sites;
  egress: EgressPools;
  claims: Claims;
  parking: Parking;
  /** Whether the engine's limits allow the message now. */
  admits(site: Site, message: ReadyMessage): boolean;
  /** Whether anything may be started at all. */
  mayStart(): boolean;
  /** A slot is free for this message; the claim on it passes to the callee, and so does the lease if it is armed. */
  dispatch(hold: Hold, assignment: Assignment, armed: boolean): void;
  /** Leases the message and puts it into the site's `armed`; the claim on it passes to the callee. */
  arm(site: Site, assignment: Assignment): void;
  /** Ends the lease of an armed message that gets no slot. */
  disarm(message: ReadyMessage): void;
  /** The message cannot go anywhere, now or ever; the claim on it passes to the callee. */
  failed(message: QueuedMessage, where: Extract<Whereabouts, { kind: 'failure' }>): void;
  /** The same for simulated mail. */
  simulate(message: QueuedMessage): void;
  /** What is needed to send the message cannot be read; the claim on it passes to the callee. */
  unprepared(message: QueuedMessage, error: unknown): void;
  /** The time of the message is over while its site cannot be reached; the claim on it passes to the callee. */
  expired(message: QueuedMessage, lastDiagnostic: string): void;
}

/** What memory holds at most: streams to look at, streams that wait at one site. The slow round finds the rest. */
const HOT_STREAMS = 10_000;
const WAITING_STREAMS = 2000;
/** Messages read in one turn of the event loop. */
const READ_AT_ONCE = 500;
/** Of one stream. */
const READ_OF_STREAM = 200;
/** A stream of which so many messages are claimed is left alone until some of them are settled. */
const CLAIMED_OF_STREAM = 5000;
/** A stream's least share of its site's room, so that many small turns do not make many small reads. */
const SMALLEST_SHARE = 10;
/** The slow round: streams looked at, deferred messages made ready, and the pause when it found the end. */
const STREAMS_A_ROUND = 500;
const PROMOTED_AT_ONCE = 1000;
const ROUND_MS = SECOND;
const BUSY_ROUND_MS = 100;
/** Rounds in succession that have to fail before the queue counts as unreadable: one may meet a lock. */
const MIN_FAILED_ROUNDS = 2;
/** What was read longer ago than this makes room for what others have. */
const STALE_MS = 2 * SECOND;
/** Sites that are asked at most when something is released that several wait for. */
const WAKE_AT_ONCE = 8;
/** How often the mail that waits for suspended sites is searched for what has expired, and how much of a stream. */
const EXPIRY_MS = 30 * SECOND;
const EXPIRED_OF_STREAM = 100;
/** Messages of suspended sites that one round reads, and fails when their time is over. */
const EXPIRED_A_ROUND = 100;
const FIRST_QUARANTINE = 2 * SECOND;
const LONGEST_QUARANTINE = 300 * SECOND;
const QUARANTINED = 10_000;

type Where =
  | { kind: 'site'; site: Site; assignment: Assignment }
  | { kind: 'simulator' }
  | { kind: 'failure'; where: Extract<Whereabouts, { kind: 'failure' }> };

export function createScheduler(settings: SchedulerSettings): Scheduler {
  const { clock, monotonic, log, tables, writer, destinations, sites, egress, claims, parking } = settings;
  /** Streams to look at, in order. */
  const hot = new Map<string, { lane: 0 | 1; stream: Stream }>();
  /** Egress pools of the domains in this turn. */
  const pools = new Map<string, string>();
  /** Streams that could not be read. */
  const quarantine = new Map<string, { until: number; wait: number }>();
  /** Sites with mail that the engine's limits do not allow at present, with transactional mail and without. */
  const blocked: [Set<Site>, Set<Site>] = [new Set(), new Set()];
  const cursors: [Stream | null, Stream | null] = [null, null];
  let timer: NodeJS.Timeout | null = null;
  let scheduled = false;
  let running = false;
  let lookedAt = monotonic.now();
  /** Slow rounds in succession that could not read the queue. */
  let failedRounds = 0;
  let expiredAt = monotonic.now();
  /** The search for expired messages under way. */
  let expiring: Generator<void, void> | null = null;

  function heat(lane: 0 | 1, stream: Stream): void {
    if (!running || hot.size >= HOT_STREAMS) return;
    hot.set(streamKey(lane, stream), { lane, stream });
    schedule();
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      fill();
    });
  }

  function fill(): void {
    if (!running || hot.size === 0 || !settings.mayStart()) return;
    pools.clear();
    const touched = new Set<Site>();
    let read = 0;
    // Transactional streams first, whatever order they were announced in.
    for (const lane of [0, 1] as const) {
      for (const [key, { lane: of, stream }] of hot) {
        if (read >= READ_AT_ONCE) break;
        if (of !== lane) continue;
        hot.delete(key);
        read += 1 + readStream(lane, stream, touched);
      }
    }
    for (const site of touched) advance(site);
    if (hot.size > 0) schedule();
  }

  function readStream(lane: 0 | 1, stream: Stream, touched: Set<Site>): number {
    const key = streamKey(lane, stream);
    if (parking.accountWait(stream.account_id) > 0) return 0;
    if ((quarantine.get(key)?.until ?? 0) > monotonic.now()) return 0;
    try {
      const read = choose(lane, stream, touched);
      quarantine.delete(key);
      return read;
    } catch (error) {
      const wait = Math.min((quarantine.get(key)?.wait ?? FIRST_QUARANTINE / 2) * 2, LONGEST_QUARANTINE);
      if (quarantine.size < QUARANTINED) quarantine.set(key, { until: monotonic.now() + wait, wait });
      log.error(
        { err: error, accountId: stream.account_id, destination: stream.destination, waitMs: wait },
        'queued mail of one account to one destination cannot be read; leaving it alone for a while',
      );
      return 0;
    }
  }

  /** Streams that were not read again long after their time have no more mail. */
  function forgetQuarantined(): void {
    for (const [key, { until }] of quarantine)
      if (until + LONGEST_QUARANTINE < monotonic.now()) quarantine.delete(key);
  }

  /** Reads what of a stream can go now; a stream that finds no room waits at its site. Returns how many it read. */
  function choose(lane: 0 | 1, stream: Stream, touched: Set<Site>): number {
    const known = claims.inStream(streamKey(lane, stream));
    if (known > CLAIMED_OF_STREAM) return 0;
    const all = tables.queue.readySeqs(lane, stream, READ_OF_STREAM + known);
    const seqs = all.filter((seq) => !claims.has(seq));
    let share = Number.POSITIVE_INFINITY;
    let first: Site | null = null;
    let taken = 0;
    for (const seq of seqs) {
      if (taken >= share) {
        if (first !== null) wait(first, lane, stream);
        return taken;
      }
      const message = readMessage(seq, lane, stream);
      if (message === null) continue;
      // The stream's messages may leave through different pools: each is asked for itself.
      const where = whereOf(message, () => heat(lane, stream));
      if (where === null) continue;
      if (where === 'unknown') return taken;
      if (where.kind === 'site' && first === null) {
        first = where.site;
        share = shareOf(first, lane);
        if (share <= 0) {
          wait(first, lane, stream);
          return taken;
        }
      }
      if (where.kind === 'site' && sites.room(where.site, lane) <= 0) {
        wait(where.site, lane, stream);
        return taken;
      }
      taken++;
      claims.add(message);
      if (where.kind === 'simulator') settings.simulate(message);
      else if (where.kind === 'failure') settings.failed(message, where.where);
      else {
        where.site.backlog[lane].push(where.assignment);
        touched.add(where.site);
      }
    }
    if (all.length === READ_OF_STREAM + known) {
      // There may be more.
      if (first === null) heat(lane, stream);
      else wait(first, lane, stream);
    }
    return taken;
  }

  /** Null when it may not be taken now, or cannot be read. */
  function readMessage(seq: number, lane: 0 | 1, stream: Stream): ReadyMessage | null {
    let message: ReadyMessage | null;
    try {
      message = tables.queue.ready(seq);
    } catch (error) {
      log.error({ err: error, message: seq }, 'queued message cannot be read; leaving it alone for a while');
      claims.holdOff({ seq, lane, ...stream });
      return null;
    }
    if (message === null) return null;
    const wait = parking.domainWait(message.domain_id);
    if (wait === 0) return message;
    claims.add(message);
    postpone(message, wait);
    return null;
  }

  /** Mail of a parked domain leaves the ready part of the queue, where it would stand before everybody else's. */
  function postpone(message: QueuedMessage, wait: number): void {
    writer
      .run((all) => all.queue.postpone(message.seq, clock.now() + Math.ceil(wait)))
      .then(
        () => claims.release(message),
        (error: unknown) => {
          log.error(
            { err: error, messageId: message.message_id },
            'message of a parked domain could not be postponed',
          );
          claims.holdOff(message);
        },
      );
  }

  /** Null: what is needed to know it cannot be read. */
  function whereOf(message: ReadyMessage, known: () => void): Where | 'unknown' | null {
    try {
      return whereTo(message, known) ?? 'unknown';
    } catch (error) {
      claims.add(message);
      settings.unprepared(message, error);
      return null;
    }
  }

  /** A site's room, divided among the streams that want to go there. */
  function shareOf(site: Site, lane: 0 | 1): number {
    const room = sites.room(site, lane);
    return Math.min(room, Math.max(SMALLEST_SHARE, Math.ceil(room / (1 + hot.size + site.waiting.size))));
  }

  function wait(site: Site, lane: 0 | 1, stream: Stream): void {
    if (site.waiting.size < WAITING_STREAMS) site.waiting.set(streamKey(lane, stream), { lane, stream });
  }

  function whereTo(message: ReadyMessage, known: () => void): Where | null {
    if (message.simulated === 1) return { kind: 'simulator' };
    const pool = poolOf(message);
    const where = destinations.lookUp(message.destination, egress.ipv6Of(pool), known);
    if (where === null) return null;
    if (where.kind === 'failure') return { kind: 'failure', where };
    const { hosts, route } = where;
    return {
      kind: 'site',
      site: sites.of(message.destination, hosts, route, pool),
      assignment: { message, hosts, route, takenAt: monotonic.now() },
    };
  }

  /** Asked for every message of a turn, and the same for all of a domain's. */
  function poolOf(message: Pick<QueuedMessage, 'domain_id' | 'use_case'>): string {
    const known = pools.get(message.domain_id);
    if (known !== undefined) return known;
    const region = tables.domains.byId(message.domain_id)?.region ?? '';
    const pool = egress.poolOf(region, message.use_case);
    pools.set(message.domain_id, pool);
    return pool;
  }

  function advance(site: Site): void {
    if (!running || !settings.mayStart()) return;
    for (const sites of blocked) sites.delete(site);
    dropBacklog(site, sites.suspended(site) ? Number.POSITIVE_INFINITY : monotonic.now() - STALE_MS);
    dispatch(site);
    arm(site);
    if (sites.suspended(site)) return;
    for (const lane of [0, 1] as const) {
      // Read again when half of what may be held ahead is used up: fewer, larger reads.
      if (site.backlog[lane].length * 2 > sites.ahead(site)) continue;
      // Only as many as can be given a share each: the others keep their places.
      let wanted = Math.ceil(sites.room(site, lane) / SMALLEST_SHARE);
      for (const [key, entry] of site.waiting) {
        if (wanted <= 0) break;
        if (entry.lane !== lane) continue;
        site.waiting.delete(key);
        heat(lane, entry.stream);
        wanted--;
      }
    }
  }

  function dispatch(site: Site): void {
    for (;;) {
      const next = sites.next(site, ({ message }) => settings.admits(site, message));
      if (next === 'refused') blocked[site.backlog[0].length > 0 ? 0 : 1].add(site);
      if (typeof next === 'string') return;
      settings.dispatch(next.hold, next.assignment, next.armed);
    }
  }

  /** Leases what the slots that are freed next will need. */
  function arm(site: Site): void {
    for (;;) {
      const next = sites.toArm(site, ({ message }) => settings.admits(site, message));
      if (next === null) return;
      settings.arm(site, next);
    }
  }

  /** Sites that wait for what was released, transactional mail first; those that still have to wait go last. */
  function wakeBlocked(): void {
    const woken: Site[] = [];
    for (const sites of blocked) {
      for (const site of sites) {
        if (woken.length >= WAKE_AT_ONCE) break;
        woken.push(site);
      }
    }
    for (const site of woken) advance(site);
  }

  /**
   * Messages that a site read before a time are left to the queue again: those of a suspended site need not be in
   * memory, and what has waited there for long must not keep other streams' mail out.
   */
  function dropBacklog(site: Site, readBefore: number): void {
    drop(site, site.backlog, readBefore, claims.release);
    drop(site, site.armed, readBefore, settings.disarm);
  }

  function drop(
    site: Site,
    lists: readonly Assignment[][],
    readBefore: number,
    end: (message: ReadyMessage) => void,
  ): void {
    for (const list of lists) {
      const kept = list.findIndex(({ takenAt }) => takenAt >= readBefore);
      for (const { message } of list.splice(0, kept < 0 ? list.length : kept)) {
        end(message);
        wait(site, message.lane, { account_id: message.account_id, destination: message.destination });
      }
    }
  }

  /**
   * Fails what expired while it waited for a suspended site, a bounded number of messages per round. Nothing else would
   * read them for hours.
   */
  function expireWaiting(): void {
    if (expiring === null) {
      if (monotonic.now() - expiredAt < EXPIRY_MS) return;
      expiredAt = monotonic.now();
      expiring = searchExpired();
    }
    for (let n = 0; n < EXPIRED_A_ROUND; n++) {
      if (expiring.next().done !== true) continue;
      expiring = null;
      return;
    }
  }

  /** Fails the oldest messages of each stream that waits for a suspended site; yields before each read. */
  function* searchExpired(): Generator<void, void> {
    for (const site of sites.all()) {
      if (!sites.suspended(site)) continue;
      // A copy: streams that are put back while it is searched are not searched twice.
      const waiting = [...site.waiting.values()];
      for (const { lane, stream } of waiting) {
        yield;
        for (const seq of tables.queue.readySeqs(lane, stream, EXPIRED_OF_STREAM)) {
          yield;
          const message = claims.has(seq) ? null : readMessage(seq, lane, stream);
          if (message === null) continue;
          if (message.expires_at > clock.now()) break;
          claims.add(message);
          settings.expired(message, `the mail hosts of ${message.destination} cannot be reached`);
        }
      }
    }
  }

  /** What came due becomes ready. */
  async function promote(): Promise<void> {
    const due = tables.queue.nextDue();
    if (due === null || due > clock.now()) return;
    const streams = await writer.run((all) => all.queue.promote(clock.now(), PROMOTED_AT_ONCE));
    for (const { lane, account_id, destination } of streams) heat(lane, { account_id, destination });
  }

  /** The next streams of a lane. True when it came to the end. */
  function lookThrough(lane: 0 | 1): boolean {
    let stream = cursors[lane];
    // The next round goes on where this one stopped, and starts anew when it could not go on.
    cursors[lane] = null;
    for (let n = 0; n < STREAMS_A_ROUND; n++) {
      stream = tables.queue.streamAfter(lane, stream);
      if (stream === null) return true;
      heat(lane, stream);
    }
    cursors[lane] = stream;
    return false;
  }

  /** Runs one step of the round; its failure is logged and does not keep the others from running. */
  async function attempt<T>(what: string, step: () => T | Promise<T>): Promise<T | null> {
    try {
      return await step();
    } catch (error) {
      log.error({ err: error, step: what }, 'looking through the queue failed');
      return null;
    }
  }

  /** The slow round: what came due, and whatever no announcement told of. */
  async function round(): Promise<number> {
    const promoted = await attempt('promote', async () => {
      await promote();
      return true;
    });
    claims.sweep();
    sites.sweep();
    forgetQuarantined();
    await attempt('expire', expireWaiting);
    for (const site of sites.all()) await attempt('advance', () => advance(site));
    const ends = [
      await attempt('transactional', () => lookThrough(0)),
      await attempt('marketing', () => lookThrough(1)),
    ];
    const isReadable = promoted !== null && !ends.includes(null);
    if (isReadable) lookedAt = monotonic.now();
    failedRounds = isReadable ? 0 : failedRounds + 1;
    return ends.includes(false) || expiring !== null ? BUSY_ROUND_MS : ROUND_MS;
  }

  async function tick(): Promise<void> {
    const pause = await round();
    if (running) timer = setTimeout(() => void tick(), pause);
  }

  return {
    start: () => {
      running = true;
      lookedAt = monotonic.now();
      void tick();
    },
    announce: heat,
    advance,
    released: (site) => {
      wakeBlocked();
      advance(site);
    },
    obstacle: (message) => {
      if (message.simulated === 1) return null;
      const pool = egress.poolOf(tables.domains.byId(message.domain_id)?.region ?? '', message.use_case);
      const where = destinations.lookUp(message.destination, egress.ipv6Of(pool), () => {});
      if (where?.kind !== 'hosts') return null;
      const site = sites.find(message.destination, where.hosts, where.route, pool);
      const ms = site === null ? 0 : sites.wait(site);
      if (site === null || ms === 0) return null;
      return `the mail hosts of ${message.destination} cannot be reached, and are tried again at ${iso(clock.now() + ms)}`;
    },
    lookedAt: () => lookedAt,
    isFailing: () => failedRounds >= MIN_FAILED_ROUNDS,
    unreadable: () => quarantine.size,
    stop: () => {
      running = false;
      if (timer !== null) clearTimeout(timer);
      for (const site of sites.all()) dropBacklog(site, Number.POSITIVE_INFINITY);
    },
  };
}
