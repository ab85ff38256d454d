import { SECOND } from '../../core/clock.ts';
import {
  MARKETING_PRIORITY,
  type QueueKey,
  type QueuePriority,
  queueKeyText,
  type ReadyMessage,
  TRANSACTIONAL_PRIORITY,
} from '../../store/messages/queue.ts';
import type { Deliveries } from '../deliver.ts';
import type { Recording } from '../recording.ts';
import type { Claims } from './claims.ts';
import type { QueueReader } from './queue-reader.ts';
import type { FreedShares, Shares } from './shares.ts';
import type { Assignment, DroppedMessages, ReservedMessage, Site } from './site.ts';
import type { Sites } from './sites.ts';

/**
 * Decides which message is sent next. A queue key is read when it has new mail, when its route became known, and when
 * its site has capacity again: the site stores the keys that it had no capacity for, in order, so that they take turns
 * (fairness between accounts and destinations). The scan of the queue (queue-scan.ts) finds keys that were missed.
 */
export interface Scheduler {
  start(): void;
  /**
   * Reads a key soon: it has new mail (committed), or can be read again. A key that waits at a site is read when its turn
   * comes there.
   */
  request(key: QueueKey): void;
  /**
   * Starts the deliveries that the site has capacity for, and reads ahead for it. What was read long ago is dropped. Call
   * about once per second.
   */
  advance(site: Site): void;
  /** Keys that are about to be read. */
  requested(): number;
  /** Drops the messages that were read ahead, so that they are read again under changed conditions. */
  readAgain(): void;
  /**
   * Reserves a place for a message that is being stored. Null: other mail waits before it, or its site takes none now.
   */
  reserveNew(site: Site, assignment: Assignment): ReservedPlace | null;
  /** Starts no further delivery and drops the messages that were read ahead. */
  stop(): void;
}

/** A place for a message that is being stored. Exactly one of `committed` and `rolledBack` is called. */
export interface ReservedPlace {
  /** The message is stored with a lease, because it is sent immediately or soon. */
  leased: boolean;
  /** It waits behind others. */
  waits: boolean;
  /** The rows of the message were inserted, and its `seq` is known. */
  stored(): void;
  committed(): void;
  rolledBack(): void;
}

export interface SchedulerDeps {
  sites: Sites;
  claims: Pick<Claims, 'add' | 'release'>;
  reader: Pick<QueueReader, 'startBatch' | 'read' | 'forgetRecent'>;
  shares: Pick<Shares, 'admits' | 'exhausted' | 'take' | 'release'>;
  deliver: Deliveries['deliver'];
  recording: Pick<Recording, 'take' | 'putBack'>;
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
/** Messages read in one turn of the event loop, which requests and results share. */
const READ_BATCH_SIZE = 50;
/** Blocked sites that are advanced when a share of the budgets is released. */
const WAKE_BATCH_SIZE = 8;
/** A site whose rate allows the next message within this time is advanced then; the scan advances the others. */
const MAX_RATE_WAIT_MS = SECOND;
const PRIORITIES: readonly QueuePriority[] = [TRANSACTIONAL_PRIORITY, MARKETING_PRIORITY];

/**
 * Ignores requests before `start` and after `stop`. At most 10,000 keys wait to be read; further ones are left to the
 * scan. The only timers are those of sites whose rate allows the next message within a second.
 */
export function createScheduler(deps: SchedulerDeps): Scheduler {
  const { sites, claims, reader, shares, recording, defer = setImmediate, after = startTimer } = deps;
  /** Keys to read, in order, by priority. */
  const requested: [Map<string, QueueKey>, Map<string, QueueKey>] = [new Map(), new Map()];
  /** Sites whose mail the budgets do not admit now: those with transactional mail, and the others. */
  const blocked: [Set<Site>, Set<Site>] = [new Set(), new Set()];
  /** Blocked sites for which only the budget of sites that have not answered is exhausted. */
  const blockedUnanswered: [Set<Site>, Set<Site>] = [new Set(), new Set()];
  /** In the order in which the sites are woken. */
  const allBlocked = PRIORITIES.flatMap((priority) => [blockedUnanswered[priority], blocked[priority]]);
  /** Sites that wait for their rate, with the functions that cancel the timers. */
  const paced = new Map<Site, () => void>();
  /** Sites with a slot released in this turn of the event loop. */
  const released = new Map<Site, FreedShares>();
  let scheduled = false;
  let running = false;

  const requestedCount = () => requested[TRANSACTIONAL_PRIORITY].size + requested[MARKETING_PRIORITY].size;

  function request(key: QueueKey): void {
    if (!running || requestedCount() >= MAX_REQUESTED_KEYS) return;
    const text = queueKeyText(key);
    if (sites.waiting.since(text) !== null) return;
    const { priority, account_id, destination } = key;
    requested[priority].set(text, { priority, account_id, destination });
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
    if (!running || requestedCount() === 0 || !deps.mayStart()) return;
    reader.startBatch();
    const filled = new Set<Site>();
    let read = 0;
    // Transactional keys precede marketing keys that were requested earlier.
    for (const keys of requested) {
      for (const [text, key] of keys) {
        if (read >= READ_BATCH_SIZE) break;
        keys.delete(text);
        read += 1 + reader.read(key, requestedCount(), filled);
      }
    }
    for (const site of filled) startAndRefill(site);
    if (requestedCount() > 0) schedule();
  }

  /** Starts deliveries of the site and reads ahead for it; returns the number of deliveries that it started. */
  function startAndRefill(site: Site): number {
    if (!running || !deps.mayStart()) return 0;
    for (const set of allBlocked) set.delete(site);
    if (site.isHalted()) {
      // The backlog of a halted site need not stay in memory.
      release(site.drop());
      return 0;
    }
    const started = startDeliveries(site);
    leaseAhead(site);
    for (const priority of PRIORITIES) for (const key of site.takeReadable(priority)) request(key);
    waitForRate(site);
    return started;
  }

  /** Advances the site when its rate allows the next message. */
  function waitForRate(site: Site): void {
    const ms = site.rateWaitMs();
    if (ms === 0 || ms > MAX_RATE_WAIT_MS || paced.has(site)) return;
    if (site.backlogSize(TRANSACTIONAL_PRIORITY) + site.backlogSize(MARKETING_PRIORITY) === 0) return;
    const cancel = after(ms, () => {
      paced.delete(site);
      startAndRefill(site);
    });
    paced.set(site, cancel);
  }

  function startDeliveries(site: Site): number {
    for (let started = 0; ; started++) {
      const refusals = { unanswered: 0, others: 0 };
      const next = site.reserve(admits(site, refusals));
      if (next === 'refused') {
        const sets = refusals.unanswered > 0 && refusals.others === 0 ? blockedUnanswered : blocked;
        sets[site.backlogSize(TRANSACTIONAL_PRIORITY) > 0 ? TRANSACTIONAL_PRIORITY : MARKETING_PRIORITY].add(
          site,
        );
      }
      if (typeof next === 'string') return started;
      void deliver(next);
    }
  }

  /** Delivers the message in its slot. Advances the site when the slot is free again. */
  async function deliver(reserved: ReservedMessage): Promise<void> {
    const { reservation, assignment } = reserved;
    const { site } = reservation;
    const { message } = assignment;
    const held = shares.take(site, message);
    const release = () => {
      site.release(reservation);
      const { unanswered } = shares.release(held);
      released.set(site, { unanswered: unanswered || released.get(site)?.unanswered === true });
      if (released.size === 1) defer(advanceReleased);
    };
    if (await deps.deliver({ ...reserved, release })) request(message);
  }

  function advanceReleased(): void {
    const sites = [...released];
    released.clear();
    for (const [site, freed] of sites) {
      wakeBlocked(freed);
      startAndRefill(site);
    }
  }

  /** Leases messages ahead for the slots that are released next. */
  function leaseAhead(site: Site): void {
    for (;;) {
      const assignment = site.nextToLease(admits(site));
      if (assignment === null) return;
      if (assignment.isLeased === true) {
        site.addLeased(assignment);
        continue;
      }
      void lease(site, assignment);
    }
  }

  async function lease(site: Site, assignment: Assignment): Promise<void> {
    if (await recording.take(assignment.message)) addLeased(site, assignment);
    else site.leaseEnded();
  }

  /** The lease of a message is on disk. */
  function addLeased(site: Site, assignment: Assignment): void {
    const { message } = assignment;
    if (running && deps.isPaused?.(message) !== true) {
      site.addLeased(assignment);
      if (site.hasFreeSlot(message.priority)) startAndRefill(site);
      return;
    }
    site.leaseEnded();
    void putBack(message);
  }

  /** A new message is on disk and waits in memory. */
  function addNew(site: Site, assignment: Assignment): void {
    const { message } = assignment;
    if (!running || deps.isPaused?.(message) === true) {
      site.newEnded();
      if (assignment.isLeased === true) void putBack(message);
      else claims.release(message);
      return;
    }
    site.addNew(assignment);
    if (site.hasFreeSlot(message.priority)) startAndRefill(site);
  }

  function release({ unleased, leased }: DroppedMessages): void {
    for (const message of unleased) claims.release(message);
    for (const message of leased) void putBack(message);
  }

  async function putBack(message: ReadyMessage): Promise<void> {
    if (await recording.putBack(message, 0)) request(message);
  }

  /** `refusals`: counts which budgets refuse messages. */
  function admits(
    site: Site,
    refusals?: { unanswered: number; others: number },
  ): (assignment: Assignment) => boolean {
    return ({ message }) => {
      if (shares.admits(site, message)) return true;
      if (refusals !== undefined)
        refusals[shares.exhausted(site, message) === 'unanswered' ? 'unanswered' : 'others']++;
      return false;
    };
  }

  /**
   * Advances sites that wait for the budgets that were released, those with transactional mail first; those that still
   * wait become the last. Ends with the first site that gets nothing after another got something: what was released is
   * then used up.
   */
  function wakeBlocked({ unanswered }: FreedShares): void {
    const woken: Site[] = [];
    for (const set of unanswered ? allBlocked : blocked) {
      for (const site of set) {
        if (woken.length >= WAKE_BATCH_SIZE) break;
        woken.push(site);
      }
    }
    let isUsed = false;
    for (const site of woken) {
      const started = startAndRefill(site);
      if (isUsed && started === 0) return;
      isUsed ||= started > 0;
    }
  }

  return {
    start: () => {
      running = true;
    },
    request,
    advance: (site) => {
      release(site.dropOutdated());
      startAndRefill(site);
    },
    requested: requestedCount,
    readAgain: () => {
      reader.forgetRecent();
      for (const site of sites.all()) {
        release(site.drop());
        site.clearWaitingKeys();
        startAndRefill(site);
      }
    },
    reserveNew: (site, assignment) => {
      const { message } = assignment;
      if (!running || !deps.mayStart() || requested[message.priority].has(queueKeyText(message))) return null;
      if (deps.isPaused?.(message) === true) return null;
      const place = site.reserveNew(assignment, admits(site));
      if (place === 'lease')
        return {
          leased: true,
          waits: false,
          stored: () => {},
          committed: () => addLeased(site, assignment),
          rolledBack: site.leaseEnded,
        };
      if (place === null) return null;
      const leased = place === 'leased-backlog';
      assignment.isLeased = leased;
      return {
        leased,
        waits: true,
        // Without a lease the message can be read from the queue from its commit on.
        stored: () => {
          if (!leased) claims.add(message);
        },
        committed: () => addNew(site, assignment),
        rolledBack: () => {
          site.newEnded();
          if (!leased) claims.release(message);
        },
      };
    },
    stop: () => {
      running = false;
      for (const cancel of paced.values()) cancel();
      paced.clear();
      for (const site of sites.all()) release(site.drop());
    },
  };
}

function startTimer(ms: number, task: () => void): () => void {
  const timer = setTimeout(task, ms);
  return () => clearTimeout(timer);
}
