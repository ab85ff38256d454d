import { SECOND } from '../../core/clock.ts';
import { type PackedContent, toJobContent } from '../../mail/stored-content.ts';
import type { Context } from '../../store/context.ts';
import {
  type ExpiryPage,
  type Lease,
  MARKETING_PRIORITY,
  type MailToLease,
  type QueueKey,
  type QueuePriority,
  queueKeyText,
  type ReadyMessage,
  TRANSACTIONAL_PRIORITY,
} from '../../store/messages/queue.ts';
import type { ControlIndex } from '../control.ts';
import type { Deliveries } from '../deliver.ts';
import type { EgressPools } from '../egress-pools.ts';
import type { Recording } from '../recording.ts';
import type { EgressObstacle } from '../source-address.ts';
import { haltReason, type Waits } from '../waits.ts';
import type { Claims } from './claims.ts';
import type { FreedShares, Shares } from './shares.ts';
import { type Assignment, MIN_SHARE, type ReservedMessage, type Site } from './site.ts';
import { createTargets, type Target, type TargetMail, type TargetParts, type Targets } from './targets.ts';

/*
 * Decides which message is sent next. `createQueueScan` searches the queue once a second for keys with mail that is due, and
 * `createScheduler` also gets those of new mail. The scheduler lets `createQueueReader` read them, in turns and in
 * bounded portions: each message finds its target (targets.ts) and waits in the backlog of its site. The scheduler then
 * reserves a slot and shares of the budgets for the next message of a site and calls `deliver`; when the slot is
 * free again, the site is advanced.
 */

type DispatchContext = Pick<Context, 'clock' | 'monotonic' | 'expiry' | 'log' | 'tables' | 'writer'>;

export interface DispatchParts extends Omit<TargetParts, 'pools'> {
  pools: TargetParts['pools'] & Pick<EgressPools, 'poolCount'>;
  claims: Claims;
  waits: Waits;
  /** The daemon's generation, which every lease carries. */
  generation: number;
  shares: Pick<Shares, 'admits' | 'exhausted' | 'take' | 'release'>;
  recording: Pick<Recording, 'take' | 'putBack' | 'postpone'>;
  /** All but `deliver` release the claim on the message. */
  deliveries: Pick<Deliveries, 'deliver' | 'conclude' | 'unprepared' | 'expire'>;
  /** Whether anything may be started. */
  mayStart(): boolean;
  /** Runs a task in a later turn of the event loop. Default: setImmediate. */
  defer?: (task: () => void) => void;
  /** Runs a task after a time, ms; returns a function that cancels it. Default: setTimeout. */
  after?: (ms: number, task: () => void) => () => void;
}

/**
 * Connects the parts. Starts nothing: the owner calls `scheduler.start` and runs `scan` in a loop. A key that the reader
 * can read again is requested from the scheduler.
 */
export function createScheduling(context: DispatchContext, parts: DispatchParts) {
  const targets = createTargets(context, parts);
  const onReadable = (key: QueueKey): void => scheduler.request(key);
  const reader = createQueueReader(context, parts, { targets, onReadable });
  const scheduler: Scheduler = createScheduler(context, parts, { targets, reader });
  const scan = createQueueScan(context, parts, { reader, scheduler });
  return { targets, reader, scheduler, scan };
}

export type Scheduler = ReturnType<typeof createScheduler>;

/** Keys in memory that are about to be read; the scan finds further ones. */
const MAX_REQUESTED_KEYS = 10_000;
/** Messages read in one turn of the event loop, which requests and results share. */
const TURN_BATCH_SIZE = 50;
/** Blocked sites that are advanced when a share of the budgets is released. */
const WAKE_BATCH_SIZE = 8;
/** A site whose rate allows the next message within this time is advanced then; the scan advances the others. */
const MAX_RATE_WAIT_MS = SECOND;
const PRIORITIES: readonly QueuePriority[] = [TRANSACTIONAL_PRIORITY, MARKETING_PRIORITY];

/**
 * Decides which message is sent next. A queue key is read when it has new mail, when its route became known, and when
 * its site has capacity again: the site stores the keys that it had no capacity for, in order, so that they take turns
 * (fairness between accounts and destinations). `createQueueScan` finds keys that were missed.
 *
 * Ignores requests before `start` and after `stop`. At most 10,000 keys wait to be read; further ones are left to the
 * scan. The only timers are those of sites whose rate allows the next message within a second.
 */
function createScheduler(
  { clock, log }: DispatchContext,
  parts: DispatchParts,
  { targets, reader }: { targets: Targets; reader: Pick<QueueReader, 'read'> },
) {
  const {
    sites,
    claims,
    waits,
    controls,
    shares,
    recording,
    defer = setImmediate,
    after = startTimer,
  } = parts;
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

  /**
   * Reads a key soon: it has new mail (committed), or can be read again. A key that waits at a site is read when its turn
   * comes there.
   */
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
    if (!running || requestedCount() === 0 || !parts.mayStart()) return;
    targets.startBatch();
    const filled = new Set<Site>();
    let read = 0;
    // Transactional keys precede marketing keys that were requested earlier.
    for (const keys of requested) {
      for (const [text, key] of keys) {
        if (read >= TURN_BATCH_SIZE) break;
        keys.delete(text);
        read += 1 + reader.read(key, requestedCount(), filled);
      }
    }
    for (const site of filled) startAndRefill(site);
    if (requestedCount() > 0) schedule();
  }

  /** Starts deliveries of the site and reads ahead for it; returns the number of deliveries that it started. */
  function startAndRefill(site: Site): number {
    if (!running || !parts.mayStart()) return 0;
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
    if (backlogOf(site) === 0) return;
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
    if (await parts.deliveries.deliver({ ...reserved, release })) request(message);
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
    for (const assignment of site.toLeaseAhead(admits(site)))
      assignment.lease = recording.take(assignment.message);
  }

  /** Whether a new message can be leased; false: it waits in the queue. */
  function mayLease(mail: MailToLease): boolean {
    if (requested[mail.priority].has(queueKeyText(mail)) || isPaused(controls, mail)) return false;
    if (waits.parkedOf(mail) !== null) return false;
    // The lookup of an unknown route begins when the message is read from the queue.
    const target = targetOfNew({ ...mail, simulated: 0, secondary: 0, reroute: null });
    return target?.kind === 'site' && shares.admits(target.site, mail) && target.site.promiseLease(mail);
  }

  /**
   * The lease of each new message that can be sent as soon as it is stored; null: it waits in the queue, as do those whose
   * route is not known. Reserves nothing but the number of those that its site expects: a message that does not arrive, or
   * later than in a second, at most makes others wait in memory for their turn.
   */
  function leaseNow(mails: readonly MailToLease[]): (Lease | null)[] {
    if (!running || !parts.mayStart()) return mails.map(() => null);
    targets.startBatch();
    const lease = { generation: parts.generation, at: clock.now() };
    return mails.map((mail) => (mayLease(mail) ? lease : null));
  }

  /** Begins the delivery of messages that were stored with a lease (committed), with their contents as long as they are small. */
  function accepted(messages: readonly { message: ReadyMessage; content: PackedContent }[]): void {
    targets.startBatch();
    for (const { message, content } of messages) {
      const target = running && !isPaused(controls, message) ? targetOfNew(message) : null;
      if (target?.kind !== 'site') {
        void putBack(message);
        continue;
      }
      const { site } = target;
      const assignment = targets.assign(message, target);
      assignment.lease = LEASED;
      const isNext = backlogOf(site) === 0 && site.rateWaitMs() === 0 && site.hasFreeSlot(message.priority);
      if (mayKeep(content, isNext)) assignment.content = toJobContent(content);
      site.arrived();
      site.add(assignment);
      if (site.hasFreeSlot(message.priority)) startAndRefill(site);
    }
  }

  /** Null when data that it needs cannot be read. The message is accepted all the same, and read again from the queue. */
  function targetOfNew(mail: TargetMail): Target | null {
    try {
      return targets.find(mail, null);
    } catch (error) {
      log.warn(
        { err: error, accountId: mail.account_id },
        'new message waits in the queue: its route cannot be read',
      );
      return null;
    }
  }

  /** Returns messages to the queue that waited in memory. */
  function release(dropped: readonly Assignment[]): void {
    for (const { message, lease } of dropped) {
      if (lease === undefined) claims.release(message);
      else void endLease(message, lease);
    }
  }

  async function endLease(message: ReadyMessage, lease: Promise<boolean>): Promise<void> {
    if (await lease) await putBack(message);
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
    start: (): void => {
      running = true;
    },
    request,
    /**
     * Starts the deliveries that the site has capacity for, and reads ahead for it. What was read long ago is dropped. Call
     * about once per second.
     */
    advance: (site: Site): void => {
      release(site.dropOutdated());
      startAndRefill(site);
    },
    /** Keys that are about to be read. */
    requested: requestedCount,
    /** Drops the messages that were read ahead, so that they are read again under changed conditions. */
    readAgain: (): void => {
      for (const site of sites.all()) {
        release(site.drop());
        site.clearWaitingKeys();
        startAndRefill(site);
      }
    },
    leaseNow,
    accepted,
    /** Starts no further delivery and drops the messages that were read ahead. */
    stop: (): void => {
      running = false;
      for (const cancel of paced.values()) cancel();
      paced.clear();
      for (const site of sites.all()) release(site.drop());
    },
  };
}

/** The lease of a message that was stored with it. */
const LEASED = Promise.resolve(true);
/** Larger contents are read when they are sent: this bounds those of messages that are sent next. Bytes as stored. */
const MAX_NEXT_BYTES = 64 * 1024;
/** The same for messages that wait behind others, which are far more. */
const MAX_WAITING_BYTES = 1024;

/**
 * Whether the content stays in memory. A message that waits behind others keeps its content only if its texts are stored
 * separately, as a shared content: it then has one recipient, so that no erasure rewrites its content while it is queued.
 */
function mayKeep({ body, sharedId }: PackedContent, starts: boolean): boolean {
  return starts ? body.length <= MAX_NEXT_BYTES : sharedId !== undefined && body.length <= MAX_WAITING_BYTES;
}

/** Messages of a site that wait in memory. */
function backlogOf(site: Site): number {
  return site.backlogSize(TRANSACTIONAL_PRIORITY) + site.backlogSize(MARKETING_PRIORITY);
}

/** Whether the operator has paused the mail of a key. */
function isPaused(controls: Pick<ControlIndex, 'ofKey'>, key: QueueKey): boolean {
  return controls.ofKey(key)?.action === 'pause';
}

function startTimer(ms: number, task: () => void): () => void {
  const timer = setTimeout(task, ms);
  return () => clearTimeout(timer);
}

type QueueReader = ReturnType<typeof createQueueReader>;

/** Waits because of which a key is not read. */
const KEY_WAITS = ['key_unreadable', 'key_account_limited', 'key_without_address'] as const;
/** Messages read of one key at a time. */
const READ_BATCH_SIZE = 200;
/** A key with more claimed messages than this is not read until some of them are finished. */
const MAX_CLAIMED_OF_KEY = 5000;
const EXPIRY_BATCH_SIZE = 100;
/** Messages examined for their expiry in one step. */
const EXPIRY_SCAN_SIZE = 25;

/**
 * Reads ready messages from the queue into the backlogs of their sites. Only messages read ahead for sites that have
 * capacity are in memory, and losing them does no harm: the database shows a message as waiting until it is leased.
 *
 * A row or a key that cannot be read is skipped and retried later, separately from all others: a damaged row delays no
 * other mail.
 *
 * `read` logs errors and does not throw. Keys that it does not read for a time are in `waits`.
 */
function createQueueReader(
  { clock, expiry, log, tables }: DispatchContext,
  { claims, waits, pools, controls, deliveries, recording }: DispatchParts,
  {
    targets,
    onReadable,
  }: {
    targets: Targets;
    /** Called when a key can be read again: its route became known, or it may have more messages. */
    onReadable(key: QueueKey): void;
  },
) {
  function read(key: QueueKey, competing: number, filled: Set<Site>): number {
    const claimed = claims.countOf(key);
    if (claimed > MAX_CLAIMED_OF_KEY) return 0;
    let share = Number.POSITIVE_INFINITY;
    let first: Site | null = null;
    let taken = 0;
    for (const seq of walk(key, claimed, () => share - taken)) {
      if (seq === null) {
        // There may be more.
        if (first === null) onReadable(key);
        else first.addWaitingKey(key);
        return taken;
      }
      if (claims.has(seq)) continue;
      if (taken >= share) {
        first?.addWaitingKey(key);
        return taken;
      }
      const message = readMessage(seq, key);
      if (message === null) continue;
      // The messages of a key may leave through different pools: each is routed separately.
      const target = decided(message, () => targets.find(message, () => onReadable(key)));
      if (target === null) continue;
      if (target.kind === 'waiting') return taken;
      if (target.kind === 'blocked') {
        if (block(message, key, target.obstacle) === 'key') return taken;
        continue;
      }
      if (target.kind === 'site') {
        const limitedMs = target.site.accountLimitedMs(key.account_id);
        if (limitedMs > 0) {
          waits.begin('key_account_limited', queueKeyText(key), null, limitedMs);
          return taken;
        }
      }
      if (target.kind === 'site' && first === null) {
        first = target.site;
        share = shareOf(first, key, competing);
      }
      if (target.kind === 'site' && (share <= 0 || target.site.capacity(key.priority, key.account_id) <= 0)) {
        target.site.addWaitingKey(key);
        return taken;
      }
      taken++;
      claims.add(message);
      if (target.kind === 'site') {
        target.site.add(targets.assign(message, target));
        filled.add(target.site);
      } else void deliveries.conclude(message, target);
    }
    return taken;
  }

  /**
   * The ready messages of a key, oldest first, in pages no larger than what is needed; then null when there may be more.
   * `known`: the number of those that are claimed, which usually precede the others. `needed`: how many more are taken.
   */
  function* walk(key: QueueKey, known: number, needed: () => number): Generator<number | null, void> {
    let left = READ_BATCH_SIZE + known;
    let after = 0;
    for (let size = MIN_SHARE + known; size > 0; size = Math.min(left, Math.max(needed(), 0))) {
      const seqs = tables.queue.readySeqs(key, size, after);
      yield* seqs;
      const last = seqs.at(-1);
      if (last === undefined || seqs.length < size) return;
      after = last;
      left -= size;
    }
    yield null;
  }

  /** Null when the message may not be taken now, or cannot be read. */
  function readMessage(seq: number, key: QueueKey): ReadyMessage | null {
    let message: ReadyMessage | null;
    try {
      message = tables.queue.ready(seq);
    } catch (error) {
      log.error({ err: error, message: seq }, 'queued message could not be read; trying again later');
      claims.holdOff({ seq, ...key });
      return null;
    }
    if (message === null) return null;
    const waitMs = waits.msOf('domain_parked', message.domain_id);
    if (waitMs === 0) return message;
    // Mail of a parked domain is removed from the ready part of the queue, where it would precede all later mail.
    claims.add(message);
    void recording.postpone(message, waitMs);
    return null;
  }

  /** The result of `decide`; null when data that it needs cannot be read: then the message waits. */
  function decided<Result>(message: ReadyMessage, decide: () => Result): Result | null {
    try {
      return decide();
    } catch (error) {
      claims.add(message);
      void deliveries.unprepared(message, error);
      return null;
    }
  }

  /**
   * The message stays in the queue. So do those behind it: the whole key waits, unless they may leave through other
   * pools.
   */
  function block(message: ReadyMessage, key: QueueKey, obstacle: EgressObstacle): 'key' | 'message' {
    const leftMs = message.expires_at - expiry.now();
    if (leftMs <= 0) {
      expire(message, obstacle.text);
      return 'message';
    }
    const waitMs = Math.max(obstacle.until - clock.now(), 1);
    const hasOwnPath = message.secondary === 1 || message.reroute !== null;
    if (hasOwnPath || pools.poolCount(message.use_case) > 1) {
      claims.add(message);
      void recording.postpone(message, Math.min(waitMs, leftMs));
      return 'message';
    }
    const { kind, text } = obstacle;
    waits.begin('key_without_address', queueKeyText(key), { key, kind, text }, waitMs);
    return 'key';
  }

  function expire(message: ReadyMessage, reason: string): void {
    claims.add(message);
    void deliveries.expire(message, reason);
  }

  /** What the operator has paused does not expire. */
  function expireUnlessPaused(message: ReadyMessage, reason: string): void {
    if (decided(message, () => targets.pauseOf(message) === null) === true) expire(message, reason);
  }

  /** Fails the expired messages of the keys that wait for a source address, likewise. */
  function* expiringBlocked(): Generator<void, void> {
    for (const {
      detail: { key, text },
    } of waits.list('key_without_address')) {
      for (let after: number | null = 0; after !== null; ) {
        yield;
        if (isPaused(controls, key)) break;
        const page: ExpiryPage = tables.queue.expiries(key, after, EXPIRY_SCAN_SIZE);
        after = page.last;
        for (const seq of page.seqs(expiry.now())) {
          yield;
          const message = claims.has(seq) ? null : readMessage(seq, key);
          if (message !== null) expireUnlessPaused(message, text);
        }
      }
    }
  }

  /** The site's capacity divided among the keys that compete for it. */
  function shareOf(site: Site, { priority, account_id: accountId }: QueueKey, competing: number): number {
    const capacity = site.capacity(priority, accountId);
    const share = Math.ceil(capacity / (1 + competing + site.waitingCount()));
    return Math.min(capacity, Math.max(MIN_SHARE, share));
  }

  /** Fails the expired messages of a key whose site is halted, without those that are paused. Yields before each read. */
  function* expiring(key: QueueKey, site: Site): Generator<void, void> {
    yield;
    for (const seq of tables.queue.readySeqs(key, EXPIRY_BATCH_SIZE)) {
      yield;
      if (isPaused(controls, key)) return;
      const message = claims.has(seq) ? null : readMessage(seq, key);
      if (message === null) continue;
      if (message.expires_at > expiry.now()) return;
      expireUnlessPaused(message, haltReason(message.destination, site.isSuspended()));
    }
  }

  return {
    /**
     * Reads the messages of a key that can be sent now. A key without capacity waits at its site. Returns the number of
     * messages read. `competing`: the number of keys that wait to be read, which share the capacity of the site. The sites
     * whose backlog grew are added to `filled`.
     */
    read: (key: QueueKey, competing: number, filled: Set<Site>): number => {
      const text = queueKeyText(key);
      if (isPaused(controls, key)) return 0;
      if (waits.msOf('account_parked', key.account_id) > 0) return 0;
      if (KEY_WAITS.some((reason) => waits.msOf(reason, text) > 0)) return 0;
      try {
        waits.end('key_without_address', text);
        const count = read(key, competing, filled);
        waits.end('key_unreadable', text);
        return count;
      } catch (error) {
        const waitMs = waits.begin('key_unreadable', text, null);
        log.error(
          { err: error, accountId: key.account_id, destination: key.destination, waitMs },
          "an account's queued mail to a destination could not be read; trying again later",
        );
        return 0;
      }
    },
    expiring,
    expiringBlocked,
  };
}

/** Keys that one run reads. */
const KEY_BATCH_SIZE = 500;
/**
 * A key that waits at a site is read again after this time, in case its mail goes elsewhere now: a destination may have
 * changed its hosts while those before cannot be reached.
 */
const RECHECK_AFTER_MS = 60 * SECOND;
/** Such keys in one run. */
const RECHECK_BATCH_SIZE = 20;
/** A run that requests fewer keys has mostly skipped waiting ones: the next run follows after the full interval. */
const MIN_REQUESTED_KEYS = 50;
/** While more keys than this are about to be read, no others are requested. */
const MAX_PENDING_KEYS = 1000;
/** Deferred messages that one run makes ready. */
const PROMOTE_BATCH_SIZE = 1000;
export const SCAN_INTERVAL_MS = SECOND;
/** The pause after a run that did not reach the end. */
const BUSY_SCAN_INTERVAL_MS = 100;
/** Failed runs in succession after which the queue counts as unreadable: a single one may be caused by a lock. */
const MIN_FAILED_RUNS = 2;
/** Sites that one run advances: mail of one account may have tens of thousands, with destinations that never respond. */
const SITE_BATCH_SIZE = 500;
const EXPIRY_INTERVAL_MS = 30 * SECOND;
/** Messages that the search for expired mail reads in one run. */
const EXPIRY_RUN_SIZE = 100;

/**
 * Scans the queue for mail that was not announced: mail that came due, and changes made by other processes. It also advances
 * the sites, a part of them in each run, and expires mail that waits for halted ones. A step that fails does not stop the
 * others.
 *
 * Starts no timer. A run requests at most 500 keys of each priority, makes at most 1000 deferred messages ready and advances at
 * most 500 sites; the search for expired mail begins every 30 s and reads 100 messages in a run.
 */
function createQueueScan(
  { clock, monotonic, log, tables, writer }: DispatchContext,
  { sites, claims, waits }: DispatchParts,
  { reader, scheduler }: { reader: QueueReader; scheduler: Scheduler },
) {
  /** The last key that was read, by priority; null: start at the first. */
  const cursors: [QueueKey | null, QueueKey | null] = [null, null];
  let completedAt: number | null = null;
  /** When the last search for expired messages began. */
  let searchedAt = monotonic.now();
  /** The search for expired messages in progress. */
  let expiry: Generator<void, void> | null = null;
  let failedRuns = 0;
  /** When the sites are advanced again from the first one on, monotonic ms. */
  let sweepAt = Number.NEGATIVE_INFINITY;
  /** The sites that are not advanced yet; null: all are. */
  let unadvanced: Iterator<Site> | null = null;
  /** Waiting keys that this run may still read again. */
  let rechecks = 0;

  /** Makes messages that came due ready; returns whether others are due. */
  async function promote(): Promise<boolean> {
    const due = tables.queue.nextDue();
    if (due === null || due > clock.now()) return false;
    const keys = await writer.run((tx) => tx.queue.promote(clock.now(), PROMOTE_BATCH_SIZE));
    for (const key of keys) scheduler.request(key);
    const next = tables.queue.nextDue();
    return next !== null && next <= clock.now();
  }

  /**
   * Fails mail that expired while it waited for a halted site or a source address, a bounded number of messages in each
   * run. Nothing else would read it for hours.
   */
  function expireWaiting(): void {
    if (expiry === null) {
      if (monotonic.now() - searchedAt < EXPIRY_INTERVAL_MS) return;
      searchedAt = monotonic.now();
      expiry = expiringWaiting();
    }
    for (let n = 0; n < EXPIRY_RUN_SIZE; n++) {
      if (expiry.next().done !== true) continue;
      expiry = null;
      return;
    }
  }

  function* expiringWaiting(): Generator<void, void> {
    for (const site of sites.all()) {
      // What the operator has paused does not expire.
      if (!site.isHalted() || site.isPaused()) continue;
      for (const key of site.waitingKeys()) yield* reader.expiring(key, site);
    }
    yield* reader.expiringBlocked();
  }

  /** Requests the next keys of a priority that are not known already. */
  function requestKeys(priority: QueuePriority): { isAtEnd: boolean; requested: number } {
    let requested = 0;
    if (scheduler.requested() >= MAX_PENDING_KEYS) return { isAtEnd: false, requested: KEY_BATCH_SIZE };
    let key = cursors[priority];
    // The next run continues where this one stops; after an error it starts at the first key.
    cursors[priority] = null;
    for (let n = 0; n < KEY_BATCH_SIZE; n++) {
      key = tables.queue.keyAfter(priority, key);
      if (key === null) return { isAtEnd: true, requested };
      if (isKnown(key)) continue;
      scheduler.request(key);
      requested++;
    }
    cursors[priority] = key;
    return { isAtEnd: false, requested };
  }

  /** Whether the key waits at a site or has messages in memory, so that it need not be requested. */
  function isKnown(key: QueueKey): boolean {
    const text = queueKeyText(key);
    const since = sites.waiting.since(text);
    if (since === null) return claims.isInProgress(text);
    if (rechecks === 0 || monotonic.now() - since < RECHECK_AFTER_MS) return true;
    rechecks--;
    // It stays in its place at the site.
    sites.waiting.delete(text);
    return false;
  }

  /**
   * Advances the next sites, and removes those that are obsolete. After the last one it begins again, at most once in
   * SCAN_INTERVAL_MS.
   */
  function advanceSites(): void {
    if (unadvanced === null) {
      if (monotonic.now() < sweepAt) return;
      sweepAt = monotonic.now() + SCAN_INTERVAL_MS;
      waits.sweep();
      unadvanced = sites.all()[Symbol.iterator]();
    }
    for (let n = 0; n < SITE_BATCH_SIZE; n++) {
      const next = unadvanced.next();
      if (next.done === true) {
        unadvanced = null;
        return;
      }
      const site = next.value;
      if (sites.removeObsolete(site)) continue;
      try {
        scheduler.advance(site);
      } catch (error) {
        log.error({ err: error, step: 'advance' }, 'queue scan failed');
      }
    }
  }

  /** Runs one step; logs its error. */
  async function attempt<T>(step: string, run: () => T | Promise<T>): Promise<T | null> {
    try {
      return await run();
    } catch (error) {
      log.error({ err: error, step }, 'queue scan failed');
      return null;
    }
  }

  return {
    /** Scans the next part of the queue. Resolves with the pause until the next run, ms. Never rejects. */
    run: async (): Promise<number> => {
      completedAt ??= monotonic.now();
      const hasMoreDue = await attempt('promote', promote);
      await attempt('advance', advanceSites);
      await attempt('expire', expireWaiting);
      rechecks = RECHECK_BATCH_SIZE;
      const parts = [
        await attempt('transactional', () => requestKeys(TRANSACTIONAL_PRIORITY)),
        await attempt('marketing', () => requestKeys(MARKETING_PRIORITY)),
      ];
      const isReadable = hasMoreDue !== null && !parts.includes(null);
      if (isReadable) completedAt = monotonic.now();
      failedRuns = isReadable ? 0 : failedRuns + 1;
      const isBusy = parts.some(
        (part) => part !== null && !part.isAtEnd && part.requested >= MIN_REQUESTED_KEYS,
      );
      const hasMore = isBusy || hasMoreDue === true || expiry !== null || unadvanced !== null;
      return hasMore ? BUSY_SCAN_INTERVAL_MS : SCAN_INTERVAL_MS;
    },
    /**
     * Monotonic time at which the scan last reached the end without errors, initially that of the first run. Null: it has
     * not run yet.
     */
    completedAt: (): number | null => completedAt,
    /** Whether the last runs, two at least, could not read the queue as a whole. */
    isFailing: (): boolean => failedRuns >= MIN_FAILED_RUNS,
  };
}
