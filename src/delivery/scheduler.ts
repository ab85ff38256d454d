import { type Clock, SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Recorder } from '../events/record.ts';
import type { MessageRow } from '../store/messages.ts';
import { HELD, type QueuedMessage, type Stream } from '../store/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import type { Destinations } from './destinations.ts';
import type { EgressPools } from './egress.ts';
import type { Whereabouts } from './hosts.ts';
import type { Assignment, Site, Sites } from './sites.ts';

/**
 * Who is sent next. The queue is the database; memory holds only what was taken for sites that have room.
 *
 * Mail waits in streams: one account's mail to one destination, in the transactional or the marketing lane.
 * A stream is looked at when it has new mail, when its destination became known, and when its site has room
 * again (the site keeps the streams it had no room for, in order, so that they take turns: fairness between
 * accounts and destinations). Beside that a slow round over all streams, once a second, finds whatever was
 * missed: mail that came due, and changes made by other processes.
 *
 * Taking a message is a commit: the lease, the state and, the first time, `email_sent`. So a message that is
 * being sent is known to be, and after a crash it is taken again, never forgotten.
 */
export interface Scheduler {
  start(): void;
  /** New mail is in the queue (committed). */
  announce(lane: 0 | 1, stream: Stream): void;
  /** The site has a free slot, or may have more room. */
  advance(site: Site): void;
  /** Epoch ms at which the queue was last looked through: it stands still when that is long ago. */
  lookedAt(): number;
  /** Gives back what was taken and not started; nothing is taken any more. */
  stop(): Promise<void>;
}

export interface SchedulerSettings {
  clock: Clock;
  log: Log;
  tables: Tables;
  writer: Writer;
  recorder: Recorder;
  destinations: Destinations;
  sites: Sites;
  egress: EgressPools;
  generation: number;
  /** Why a message may not go although it was accepted; null: it may. */
  stillAllowed(tables: Tables, message: MessageRow): Obstacle | null;
  /** A slot is free for this message. */
  dispatch(site: Site, slot: number, assignment: Assignment): void;
  /** The message cannot go anywhere at present, or for good; called with leased ones. */
  failed(message: QueuedMessage, where: Extract<Whereabouts, { kind: 'failure' }>): void;
  simulate(message: QueuedMessage): void;
}

/** `hold`: not now; else it does not go at all (suppressed meanwhile, say), and this is told of it. */
export type Obstacle =
  | { kind: 'hold' }
  | { kind: 'email_suppressed' | 'email_failed'; fields: Record<string, unknown> };

/** What memory holds at most: streams to look at, streams that wait at one site. The slow round finds the rest. */
const HOT_STREAMS = 10_000;
const WAITING_STREAMS = 2000;
/** Messages taken in one commit. */
const TAKEN_AT_ONCE = 500;
/** A stream's least share of its site's room, so that many small turns do not make many small commits. */
const SMALLEST_SHARE = 10;
/** The slow round: streams looked at, deferred messages made ready, and the pause when it found the end. */
const STREAMS_A_ROUND = 500;
const PROMOTED_AT_ONCE = 1000;
const ROUND_MS = SECOND;
const BUSY_ROUND_MS = 100;
/** What was taken longer ago than this is asked again. */
const STALE_MS = 2 * SECOND;

type Where =
  | { kind: 'site'; site: Site; assignment: Assignment }
  | { kind: 'simulator' }
  | { kind: 'failure'; where: Extract<Whereabouts, { kind: 'failure' }> };

interface Taken {
  message: QueuedMessage;
  where: Where;
}

export function createScheduler(settings: SchedulerSettings): Scheduler {
  const { clock, log, tables, writer, recorder, destinations, sites, egress } = settings;
  /** Streams to look at, in order. */
  const hot = new Map<string, { lane: 0 | 1; stream: Stream }>();
  /** Egress pools of the domains in this round. */
  const pools = new Map<string, string>();
  const cursors: [Stream | null, Stream | null] = [null, null];
  let timer: NodeJS.Timeout | null = null;
  let scheduled = false;
  let filling: Promise<void> | null = null;
  let running = false;
  let lookedAt = clock.now();

  function heat(lane: 0 | 1, stream: Stream): void {
    if (!running || hot.size >= HOT_STREAMS) return;
    hot.set(streamKey(lane, stream), { lane, stream });
    if (scheduled || filling !== null) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      fill();
    });
  }

  function fill(): void {
    if (!running || filling !== null || hot.size === 0) return;
    const taken: Taken[] = [];
    pools.clear();
    // Transactional streams first, whatever order they were announced in.
    for (const lane of [0, 1] as const) {
      for (const [key, entry] of hot) {
        if (taken.length >= TAKEN_AT_ONCE) break;
        if (entry.lane !== lane) continue;
        hot.delete(key);
        choose(lane, entry.stream, taken);
      }
    }
    if (taken.length === 0) return;
    filling = claim(taken)
      .catch((error: unknown) => log.error({ err: error }, 'taking messages from the queue failed'))
      .finally(() => {
        filling = null;
        if (hot.size > 0) fill();
      });
  }

  /** Picks what of a stream can go now; a stream that finds no room waits at its site. */
  function choose(lane: 0 | 1, stream: Stream, taken: Taken[]): void {
    let rows = tables.queue.ready(lane, stream, SMALLEST_SHARE);
    const first = rows[0];
    const where = first === undefined ? null : whereTo(first, () => heat(lane, stream));
    if (where === null) return;
    const share = where.kind === 'site' ? shareOf(where.site, lane) : TAKEN_AT_ONCE;
    if (share > SMALLEST_SHARE && rows.length === SMALLEST_SHARE)
      rows = tables.queue.ready(lane, stream, share);
    for (const message of rows.slice(0, Math.max(share, 0))) {
      // The stream's messages may leave through different pools: each is asked for itself.
      const where = whereTo(message, () => heat(lane, stream));
      if (where === null) return;
      if (where.kind === 'site' && sites.room(where.site, lane) - where.site.taking[lane] <= 0) break;
      if (where.kind === 'site') where.site.taking[lane]++;
      taken.push({ message, where });
    }
    if (rows.length < share) return;
    if (where.kind === 'site') wait(where.site, lane, stream);
    else heat(lane, stream);
  }

  /** A site's room, divided among the streams that want to go there. */
  function shareOf(site: Site, lane: 0 | 1): number {
    const room = sites.room(site, lane) - site.taking[lane];
    return Math.min(room, Math.max(SMALLEST_SHARE, Math.ceil(room / (1 + hot.size + site.waiting.size))));
  }

  function wait(site: Site, lane: 0 | 1, stream: Stream): void {
    if (site.waiting.size < WAITING_STREAMS) site.waiting.set(streamKey(lane, stream), { lane, stream });
  }

  function whereTo(message: QueuedMessage, known: () => void): Where | null {
    if (message.simulated === 1) return { kind: 'simulator' };
    const pool = poolOf(message);
    const where = destinations.lookUp(message.destination, egress.ipv6Of(pool), known);
    if (where === null) return null;
    if (where.kind === 'failure') return { kind: 'failure', where };
    const { hosts, route } = where;
    return {
      kind: 'site',
      site: sites.of(message.destination, hosts, route, pool),
      assignment: { message, hosts, route, takenAt: clock.now() },
    };
  }

  /** Asked for every message of a round, and the same for all of a domain's. */
  function poolOf(message: MessageRow): string {
    const known = pools.get(message.domain_id);
    if (known !== undefined) return known;
    const region = tables.domains.byId(message.domain_id)?.region ?? '';
    const pool = egress.poolOf(region, message.use_case);
    pools.set(message.domain_id, pool);
    return pool;
  }

  async function claim(taken: Taken[]): Promise<void> {
    const touched = new Set<Site>();
    let held: Taken[];
    try {
      held = await writer.run((all) => taken.filter(({ message }) => take(all, message)));
    } finally {
      for (const { message, where } of taken) if (where.kind === 'site') where.site.taking[message.lane]--;
    }
    // Also where none of them may go: there is room for others.
    for (const { where } of taken) if (where.kind === 'site') touched.add(where.site);
    for (const { message, where } of held) {
      if (where.kind === 'simulator') settings.simulate(message);
      else if (where.kind === 'failure') settings.failed(message, where.where);
      else where.site.backlog[message.lane].push(where.assignment);
    }
    for (const site of touched) advance(site);
  }

  /** In a unit of work: the message is ours now, or it is not. */
  function take(all: Tables, message: QueuedMessage): boolean {
    if (!all.queue.lease(message.seq, settings.generation)) return false;
    const current = all.messages.bySeq(message.seq);
    if (current === null) return false;
    const obstacle = settings.stillAllowed(all, current);
    if (obstacle === null) return recorder.message(all, current, 'email_sent', {});
    if (obstacle.kind === 'hold') all.queue.defer(message.seq, HELD);
    else recorder.message(all, current, obstacle.kind, { fields: obstacle.fields });
    return false;
  }

  function advance(site: Site): void {
    if (!running) return;
    giveBack(site, sites.suspended(site) ? Number.POSITIVE_INFINITY : clock.now() - STALE_MS);
    for (;;) {
      const next = sites.next(site);
      if (next === null) break;
      settings.dispatch(site, next.slot, next.assignment);
    }
    if (sites.suspended(site)) return;
    for (const lane of [0, 1] as const) {
      // Asked again when half of what may be held ahead is used up: fewer, larger commits.
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

  /**
   * Messages that a site took before a time go back to the queue: those of a suspended site need not wait in
   * memory, and what has waited there for long is to be asked again whether it may go.
   */
  function giveBack(site: Site, takenBefore: number): void {
    const given = site.backlog.flatMap((list) => {
      const kept = list.findIndex(({ takenAt }) => takenAt >= takenBefore);
      return list.splice(0, kept < 0 ? list.length : kept).map(({ message }) => message);
    });
    if (given.length === 0) return;
    writer
      .run((all) => {
        for (const { seq } of given) all.queue.release(seq, clock.now());
      })
      .then(() => {
        for (const { lane, account_id, destination } of given) wait(site, lane, { account_id, destination });
        advance(site);
      })
      .catch((error: unknown) =>
        log.error({ err: error, messages: given.length }, 'giving messages back to the queue failed'),
      );
  }

  /** The slow round: what came due, and whatever no announcement told of. True when it came to the end. */
  async function round(): Promise<boolean> {
    const due = tables.queue.nextDue();
    if (due !== null && due <= clock.now()) {
      const streams = await writer.run((all) => all.queue.promote(clock.now(), PROMOTED_AT_ONCE));
      for (const { lane, account_id, destination } of streams) heat(lane, { account_id, destination });
    }
    sites.sweep();
    for (const site of sites.all()) advance(site);
    for (const lane of [0, 1] as const) {
      let stream = cursors[lane];
      for (let n = 0; n < STREAMS_A_ROUND; n++) {
        stream = tables.queue.streamAfter(lane, stream);
        if (stream === null) break;
        heat(lane, stream);
      }
      // The next round goes on where this one stopped.
      cursors[lane] = stream;
    }
    lookedAt = clock.now();
    return cursors[0] === null && cursors[1] === null;
  }

  async function tick(): Promise<void> {
    let pause = ROUND_MS;
    try {
      if (!(await round())) pause = BUSY_ROUND_MS;
    } catch (error) {
      log.error({ err: error }, 'looking through the queue failed');
    }
    if (running) timer = setTimeout(() => void tick(), pause);
  }

  return {
    start: () => {
      running = true;
      void tick();
    },
    announce: heat,
    advance,
    lookedAt: () => lookedAt,
    stop: async () => {
      running = false;
      if (timer !== null) clearTimeout(timer);
      await filling;
      const seqs = [...sites.all()].flatMap((site) =>
        site.backlog.flatMap((list) => list.splice(0).map(({ message }) => message.seq)),
      );
      await writer.run((all) => {
        for (const seq of seqs) all.queue.release(seq, clock.now());
      });
    },
  };
}

function streamKey(lane: 0 | 1, stream: Stream): string {
  return `${lane} ${stream.account_id} ${stream.destination}`;
}
