import { type Clock, SECOND } from '../../core/clock.ts';
import type { QueueKey, QueuePriority } from '../../store/messages/queue.ts';
import { queueKeyText } from '../../store/messages/queue.ts';
import type { Flights } from '../flights.ts';
import type { Leases } from '../leases.ts';
import type { Claims } from './claims.ts';
import { MIN_SHARE, type QueueReader } from './queue-reader.ts';
import type { Assignment, Site } from './site.ts';
import type { Sites } from './sites.ts';

/**
 * Decides which message is sent next. A queue key is read when it has new mail, when its route became known, and when
 * its site has capacity again: the site stores the keys that it had no capacity for, in order, so that they take turns
 * (fairness between accounts and destinations). The scan of the queue (queue-scan.ts) finds keys that were missed.
 */
export interface Scheduler {
  start(): void;
  /** Reads a key soon: it has new mail (committed), or can be read again. */
  request(key: QueueKey): void;
  /** Starts the deliveries that the site has capacity for, and reads ahead for it. */
  advance(site: Site): void;
  /** A slot of the site, and its share of the budgets, are free again. */
  released(site: Site): void;
  /** Drops the messages that were read ahead, so that they are read again under changed conditions. */
  readAgain(): void;
  /** Starts no further delivery and drops the messages that were read ahead. */
  stop(): void;
}

export interface SchedulerDeps {
  /** Monotonic. */
  clock: Clock;
  sites: Sites;
  claims: Pick<Claims, 'release'>;
  reader: Pick<QueueReader, 'startBatch' | 'read'>;
  flights: Pick<Flights, 'admits' | 'start'>;
  leases: Pick<Leases, 'take' | 'putBack'>;
  /** Whether anything may be started. */
  mayStart(): boolean;
  /** Whether the operator has paused the mail of a key. Default: never. */
  isPaused?(key: QueueKey): boolean;
  /** Runs a task in a later turn of the event loop. Default: setImmediate. */
  defer?: (task: () => void) => void;
  /** Runs a task after a time, ms; returns a function that cancels it. Default: setTimeout. */
  after?: (ms: number, task: () => void) => () => void;
}

/** Keys in memory that are about to be read; the scan finds further ones. */
const MAX_REQUESTED_KEYS = 10_000;
/** Messages read in one turn of the event loop. */
const READ_BATCH_SIZE = 500;
/** A message that was read longer ago than this is dropped, so that other keys get a turn. */
const STALE_MS = 2 * SECOND;
/** Blocked sites that are advanced when a share of the budgets is released. */
const WAKE_BATCH_SIZE = 8;
/** A site whose rate allows the next message within this time is advanced then; the scan advances the others. */
const MAX_RATE_WAIT_MS = SECOND;
const PRIORITIES: readonly QueuePriority[] = [0, 1];

export function createScheduler(deps: SchedulerDeps): Scheduler {
  const { clock, sites, claims, reader, flights, leases, defer = setImmediate, after = startTimer } = deps;
  /** Keys to read, in order. */
  const requested = new Map<string, QueueKey>();
  /** Sites whose mail the budgets do not admit now: those with transactional mail, and the others. */
  const blocked: [Set<Site>, Set<Site>] = [new Set(), new Set()];
  /** Sites that wait for their rate, with the functions that cancel the timers. */
  const paced = new Map<Site, () => void>();
  let scheduled = false;
  let running = false;

  function request({ priority, account_id, destination }: QueueKey): void {
    if (!running || requested.size >= MAX_REQUESTED_KEYS) return;
    const key = { priority, account_id, destination };
    requested.set(queueKeyText(key), key);
    schedule();
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    defer(() => {
      scheduled = false;
      readRequested();
    });
  }

  function readRequested(): void {
    if (!running || requested.size === 0 || !deps.mayStart()) return;
    reader.startBatch();
    const filled = new Set<Site>();
    let read = 0;
    // Transactional keys precede marketing keys that were requested earlier.
    for (const priority of PRIORITIES) {
      for (const [text, key] of requested) {
        if (read >= READ_BATCH_SIZE) break;
        if (key.priority !== priority) continue;
        requested.delete(text);
        read += 1 + reader.read(key, requested.size, filled);
      }
    }
    for (const site of filled) advance(site);
    if (requested.size > 0) schedule();
  }

  function advance(site: Site): void {
    if (!running || !deps.mayStart()) return;
    for (const set of blocked) set.delete(site);
    // The backlog of a halted site need not stay in memory.
    const isHalted = site.isHalted();
    dropBacklog(site, isHalted ? Number.POSITIVE_INFINITY : clock.now() - STALE_MS);
    startDeliveries(site);
    leaseAhead(site);
    if (isHalted) return;
    requestWaiting(site);
    waitForRate(site);
  }

  /** Advances the site when its rate allows the next message. */
  function waitForRate(site: Site): void {
    const ms = site.rateWaitMs();
    if (ms === 0 || ms > MAX_RATE_WAIT_MS || paced.has(site)) return;
    if (site.backlogSize(0) + site.backlogSize(1) === 0) return;
    const cancel = after(ms, () => {
      paced.delete(site);
      advance(site);
    });
    paced.set(site, cancel);
  }

  function startDeliveries(site: Site): void {
    for (;;) {
      const next = site.reserve(admits(site));
      if (next === 'refused') blocked[site.backlogSize(0) > 0 ? 0 : 1].add(site);
      if (typeof next === 'string') return;
      flights.start(next);
    }
  }

  /** Leases messages ahead for the slots that are released next. */
  function leaseAhead(site: Site): void {
    for (;;) {
      const assignment = site.nextToLease(admits(site));
      if (assignment === null) return;
      const { message } = assignment;
      leases.take(
        message,
        (taken) => {
          if (taken && running && deps.isPaused?.(message) !== true) {
            site.addLeased(assignment);
            if (site.hasFreeSlot()) advance(site);
            return;
          }
          site.leaseEnded();
          if (taken) leases.putBack(message, 0);
        },
        site.leaseEnded,
      );
    }
  }

  /** Reads again when half of the lookahead is used up, for fewer and larger reads. */
  function requestWaiting(site: Site): void {
    for (const priority of PRIORITIES) {
      if (site.backlogSize(priority) * 2 > site.lookahead()) continue;
      // Only as many as can get a share each; the others stay in the site's order.
      const count = Math.ceil(site.capacity(priority) / MIN_SHARE);
      for (const key of site.takeWaiting(priority, count)) request(key);
    }
  }

  function dropBacklog(site: Site, readBefore: number): void {
    const { unleased, leased } = site.drop(readBefore);
    for (const message of unleased) claims.release(message);
    for (const message of leased) leases.putBack(message, 0);
  }

  function admits(site: Site): (assignment: Assignment) => boolean {
    return ({ message }) => flights.admits(site, message);
  }

  /** Advances sites that wait for the budgets, those with transactional mail first; those that still wait become the last. */
  function wakeBlocked(): void {
    const woken: Site[] = [];
    for (const set of blocked) {
      for (const site of set) {
        if (woken.length >= WAKE_BATCH_SIZE) break;
        woken.push(site);
      }
    }
    for (const site of woken) advance(site);
  }

  return {
    start: () => {
      running = true;
    },
    request,
    advance,
    released: (site) => {
      wakeBlocked();
      advance(site);
    },
    readAgain: () => {
      for (const site of sites.all()) {
        dropBacklog(site, Number.POSITIVE_INFINITY);
        advance(site);
      }
    },
    stop: () => {
      running = false;
      for (const cancel of paced.values()) cancel();
      paced.clear();
      for (const site of sites.all()) dropBacklog(site, Number.POSITIVE_INFINITY);
    },
  };
}

function startTimer(ms: number, task: () => void): () => void {
  const timer = setTimeout(task, ms);
  return () => clearTimeout(timer);
}
