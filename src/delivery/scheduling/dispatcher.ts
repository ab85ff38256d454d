import { SECOND } from '../../core/clock.ts';
import { type PackedContent, toJobContent } from '../../mail/stored-content.ts';
import type { SendingRates } from '../../reputation/sending-rates.ts';
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
import type { Sites } from './sites.ts';
import type { Target, TargetMail, Targets } from './targets.ts';

/*
 * Decides which message is sent next: the way of a message from the queue to its slot, in the order of the functions.
 *
 * `request` and `advanceSoon` note what is to be done in the next turn of the event loop: keys of the queue to read, and
 * sites to advance. A key is requested when it has new mail, when its route became known and when its site has capacity again; a
 * site is advanced when mail was read for it, when one of its slots is free again and when its rate allows the next message. A
 * `turn` reads keys in bounded portions: each message finds its target (targets.ts) and waits in the backlog of its site,
 * and a key with more mail than its site had capacity for waits there (waiting-keys.ts), so that accounts and destinations
 * take turns. Then it advances the sites: `advance` reserves slots and shares of the budgets for the next messages, and `start`
 * delivers them. New mail (`leaseNow`, `accepted`) enters the backlog of its site without being read. Once a second the
 * scan finds what was not announced.
 */

interface DispatcherParts {
  sites: Sites;
  targets: Targets;
  pools: Pick<EgressPools, 'poolCount'>;
  controls: ControlIndex;
  claims: Claims;
  waits: Waits;
  /** The automatic limits. */
  rates: Pick<SendingRates, 'waitMs' | 'take' | 'mayLimit'>;
  /** The daemon's generation, which every lease carries. */
  generation: number;
  shares: Pick<Shares, 'admits' | 'exhausted' | 'take' | 'release'>;
  recording: Pick<Recording, 'lease' | 'putBack' | 'postpone'>;
  /** All but `deliver` release the claim on the message. */
  deliveries: Pick<Deliveries, 'deliver' | 'conclude' | 'unprepared' | 'expire'>;
  /** Whether anything may be started. */
  mayStart(): boolean;
  /** Runs a task in a later turn of the event loop. Default: setImmediate. */
  defer?: (task: () => void) => void;
  /** Runs a task after a time, ms. Default: setTimeout. */
  after?: (ms: number, task: () => void) => void;
}

/** Keys in memory that are about to be read; the scan finds further ones. */
const MAX_REQUESTED_KEYS = 10_000;
/** Messages read in one turn of the event loop, which requests and results share. */
const TURN_BATCH_SIZE = 50;
/** Blocked sites that are advanced when a share of the budgets is released. */
const WAKE_BATCH_SIZE = 8;
/** A site whose rate allows the next message within this time is advanced then; the scan advances the others. */
const MAX_RATE_WAIT_MS = SECOND;
const PRIORITIES: readonly QueuePriority[] = [TRANSACTIONAL_PRIORITY, MARKETING_PRIORITY];

/** Waits because of which a key is not read. */
const KEY_WAITS = [
  'key_unreadable',
  'key_account_limited',
  'key_sending_slowed',
  'key_without_address',
] as const;
/** Messages read of one key at a time. */
const READ_BATCH_SIZE = 200;
/** A key with more claimed messages than this is not read until some of them are finished. */
const MAX_CLAIMED_OF_KEY = 5000;

/** The lease of a message that was stored with it. */
const LEASED = Promise.resolve(true);
/** Larger contents are read when they are sent: this bounds those of messages that are sent next. Bytes as stored. */
const MAX_NEXT_BYTES = 64 * 1024;
/** The same for messages that wait behind others, which are far more. */
const MAX_WAITING_BYTES = 1024;

/** Keys that one run of the scan reads. */
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
/** The queue counts as stalled if its scan, which runs every second, was not completed for this time. */
const STALLED_AFTER_MS = 15 * SECOND;
/** Failed runs in succession after which the queue counts as unreadable: a single one may be caused by a lock. */
const MIN_FAILED_RUNS = 2;
/** Sites that one run advances: mail of one account may have tens of thousands, with destinations that never respond. */
const SITE_BATCH_SIZE = 500;
const EXPIRY_INTERVAL_MS = 30 * SECOND;
/** Steps of the search for expired mail in one run, and messages that a step examines. */
const EXPIRY_RUN_SIZE = 100;
const EXPIRY_BATCH_SIZE = 25;

/** Sites that the budgets refuse: those that only the budget of sites without an answer refuses, and the others. */
type BlockedSites = readonly [unanswered: Set<Site>, others: Set<Site>];

/**
 * Ignores requests before `start` and after `stop`. At most 10,000 keys wait to be read; further ones are left to the
 * scan. The only timers are those of sites whose rate allows the next message within a second. The owner calls `scan` about
 * once per second: a run requests at most 500 keys of each priority, makes at most 1000 deferred messages ready and advances
 * at most 500 sites; the search for expired mail begins every 30 s.
 *
 * Only messages read ahead for sites that have capacity are in memory, and losing them does no harm: the database shows a
 * message as waiting until it is leased. A row or a key that cannot be read is skipped and retried later, separately from all
 * others: a damaged row delays no other mail.
 */
export function createDispatcher(
  context: Pick<Context, 'clock' | 'monotonic' | 'expiry' | 'log' | 'tables' | 'writer'>,
  parts: DispatcherParts,
) {
  const { clock, monotonic, expiry, log, tables, writer } = context;
  const { sites, targets, claims, waits, rates, controls, shares, recording, deliveries } = parts;
  const { defer = setImmediate, after = startTimer } = parts;
  /** Keys to read, in order, by priority. */
  const requested: [Map<string, QueueKey>, Map<string, QueueKey>] = [new Map(), new Map()];
  /** Sites to advance, in order, with what their messages have released; null: nothing. */
  const toAdvance = new Map<Site, FreedShares | null>();
  /** By priority: sites with transactional mail, and those with marketing mail only. */
  const blocked: [BlockedSites, BlockedSites] = [
    [new Set(), new Set()],
    [new Set(), new Set()],
  ];
  /** Sites that are advanced by a timer. */
  const paced = new Set<Site>();
  let isTurnComing = false;
  let running = false;

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
    turnSoon();
  }

  const requestedCount = () => requested[TRANSACTIONAL_PRIORITY].size + requested[MARKETING_PRIORITY].size;

  /** `freed`: what a message of the site has released. */
  function advanceSoon(site: Site, freed: FreedShares | null = null): void {
    const before = toAdvance.get(site) ?? null;
    const isUnanswered = before?.unanswered === true || freed?.unanswered === true;
    toAdvance.set(site, before === null ? freed : { unanswered: isUnanswered });
    turnSoon();
  }

  function turnSoon(): void {
    if (isTurnComing) return;
    isTurnComing = true;
    defer(turn);
  }

  function turn(): void {
    isTurnComing = false;
    if (running && parts.mayStart()) readRequested();
    const next = [...toAdvance];
    toAdvance.clear();
    for (const [site, freed] of next) {
      try {
        // They have waited longer than the site whose message has ended.
        if (freed !== null) advanceBlocked(freed);
        advance(site);
      } catch (error) {
        log.error({ err: error, step: 'advance' }, 'queue scan failed');
      }
    }
  }

  /** Transactional keys precede marketing keys that were requested earlier. */
  function readRequested(): void {
    if (requestedCount() === 0) return;
    targets.startBatch();
    let read = 0;
    for (const keys of requested) {
      for (const [text, key] of keys) {
        if (read >= TURN_BATCH_SIZE) return turnSoon();
        keys.delete(text);
        read += 1 + readKey(key, text);
      }
    }
  }

  /** Returns the number of messages read. Logs errors, and does not throw. */
  function readKey(key: QueueKey, text: string): number {
    if (isPaused(key) || waits.msOf('account_parked', key.account_id) > 0) return 0;
    if (KEY_WAITS.some((reason) => waits.msOf(reason, text) > 0)) return 0;
    try {
      waits.end('key_without_address', text);
      const count = readMessages(key);
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
  }

  /** Reads the messages of a key that can be sent now into the backlogs of their sites. */
  function readMessages(key: QueueKey): number {
    const claimed = claims.countOf(key);
    if (claimed > MAX_CLAIMED_OF_KEY) return 0;
    let share = Number.POSITIVE_INFINITY;
    let first: Site | null = null;
    let taken = 0;
    for (const seq of walk(key, claimed, () => share - taken)) {
      if (seq !== null && claims.has(seq)) continue;
      if (seq === null || taken >= share) {
        // There may be more.
        if (first === null) request(key);
        else first.addWaitingKey(key);
        return taken;
      }
      const message = readMessage(seq, key);
      // The messages of a key may leave through different pools: each is routed separately.
      const target = message === null ? null : decided(message, () => targets.find(message, true));
      if (message === null || target === null) continue;
      if (target.kind === 'waiting') {
        void target.lookup?.then((isKnown) => (isKnown ? request(key) : undefined));
        return taken;
      }
      if (target.kind === 'blocked') {
        if (waitForAddress(message, key, target.obstacle) === 'key') return taken;
        continue;
      }
      if (target.kind === 'site') {
        const { site } = target;
        const limitedMs = site.accountLimitedMs(key.account_id);
        if (limitedMs > 0) {
          waits.begin('key_account_limited', queueKeyText(key), null, limitedMs);
          return taken;
        }
        const slowedMs = rates.waitMs(message);
        if (slowedMs > 0) {
          waits.begin('key_sending_slowed', queueKeyText(key), null, slowedMs);
          return taken;
        }
        if (first === null) {
          first = site;
          share = shareOf(site, key);
        }
        if (share <= 0 || site.capacity(key.priority, key.account_id) <= 0) {
          site.addWaitingKey(key);
          return taken;
        }
        rates.take(message);
        claims.add(message);
        site.add(targets.assign(message, target));
        advanceSoon(site);
      } else {
        claims.add(message);
        void deliveries.conclude(message, target);
      }
      taken++;
    }
    return taken;
  }

  /**
   * The ready messages of a key, oldest first, in pages no larger than what is needed; then null when there may be more.
   * `known`: the number of those that are claimed, which usually precede the others. `needed`: how many more are taken.
   */
  function* walk(key: QueueKey, known: number, needed: () => number): Generator<number | null, void> {
    let left = READ_BATCH_SIZE + known;
    let last = 0;
    for (let size = MIN_SHARE + known; size > 0; size = Math.min(left, Math.max(needed(), 0))) {
      const seqs = tables.queue.readySeqs(key, size, last);
      yield* seqs;
      if (seqs.length < size) return;
      last = seqs.at(-1) ?? last;
      left -= size;
    }
    yield null;
  }

  /** The site's capacity divided among the keys that compete for it. */
  function shareOf(site: Site, { priority, account_id: accountId }: QueueKey): number {
    const capacity = site.capacity(priority, accountId);
    const share = Math.ceil(capacity / (1 + requestedCount() + site.waitingCount()));
    return Math.min(capacity, Math.max(MIN_SHARE, share));
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
    void recording.postpone(message, clock.now() + waitMs);
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
   * pools, or are of other domains.
   */
  function waitForAddress(message: ReadyMessage, key: QueueKey, obstacle: EgressObstacle): 'key' | 'message' {
    const { kind, text } = obstacle;
    if (message.expires_at <= expiry.now()) {
      expire(message, text);
      return 'message';
    }
    const until = Math.max(obstacle.until, clock.now() + 1);
    const hasOwnPath = message.secondary === 1 || message.reroute !== null;
    if (hasOwnPath || obstacle.isOfDomain === true || parts.pools.poolCount(message.use_case) > 1) {
      claims.add(message);
      // Until exactly these times: `QueueRebase.release` finds it by them.
      void recording.postpone(message, Math.min(until, message.expires_at));
      return 'message';
    }
    const waitMs = until - clock.now();
    waits.begin('key_without_address', queueKeyText(key), { key, kind, text }, waitMs);
    return 'key';
  }

  function expire(message: ReadyMessage, reason: string): void {
    claims.add(message);
    void deliveries.expire(message, reason);
  }

  /** Starts deliveries of the site and reads ahead for it; returns the number of deliveries that it started. */
  function advance(site: Site): number {
    if (!running || !parts.mayStart()) return 0;
    for (const lines of blocked) for (const line of lines) line.delete(site);
    if (site.isHalted()) {
      // The backlog of a halted site need not stay in memory.
      returnToQueue(site.drop());
      return 0;
    }
    const started = startNext(site);
    // The slots that are released next need not wait for a commit.
    for (const assignment of site.toLeaseAhead(({ message }) => shares.admits(site, message)))
      assignment.lease = recording.lease(assignment.message);
    for (const priority of PRIORITIES) for (const key of site.takeReadable(priority)) request(key);
    const waitMs = site.rateWaitMs();
    if (waitMs > 0 && waitMs <= MAX_RATE_WAIT_MS && backlogOf(site) > 0 && !paced.has(site)) {
      paced.add(site);
      after(waitMs, () => {
        paced.delete(site);
        advanceSoon(site);
      });
    }
    return started;
  }

  /** Starts deliveries as long as the site and the budgets allow it; returns their number. */
  function startNext(site: Site): number {
    for (let started = 0; ; started++) {
      let refusal: 'unanswered' | 'other' | null = null;
      const next = site.reserve(({ message }) => {
        if (shares.admits(site, message)) return true;
        const isUnanswered = refusal !== 'other' && shares.exhausted(site, message) === 'unanswered';
        refusal = isUnanswered ? 'unanswered' : 'other';
        return false;
      });
      if (next === 'refused') lineOf(site, refusal === 'unanswered').add(site);
      if (typeof next === 'string') return started;
      void start(next);
    }
  }

  function lineOf(site: Site, isUnanswered: boolean): Set<Site> {
    const isTransactional = site.backlogSize(TRANSACTIONAL_PRIORITY) > 0;
    return blocked[isTransactional ? TRANSACTIONAL_PRIORITY : MARKETING_PRIORITY][isUnanswered ? 0 : 1];
  }

  /** Delivers the message in its slot. Advances the site when the slot is free again. */
  async function start(reserved: ReservedMessage): Promise<void> {
    const { reservation, assignment } = reserved;
    const { site } = reservation;
    const { message } = assignment;
    const held = shares.take(site, message);
    const release = (wasUsed: boolean) => {
      site.release(reservation, wasUsed);
      advanceSoon(site, shares.release(held));
    };
    if (await deliveries.deliver({ ...reserved, release })) request(message);
  }

  /**
   * Advances sites that wait for the budgets that were released; those that still wait become the last. Ends with the first
   * site that gets nothing after another got something: what was released is then used up.
   */
  function advanceBlocked({ unanswered }: FreedShares): void {
    const woken: Site[] = [];
    for (const [withoutAnswer, others] of blocked)
      for (const line of unanswered ? [withoutAnswer, others] : [others])
        for (const site of line) {
          if (woken.length >= WAKE_BATCH_SIZE) break;
          woken.push(site);
        }
    let isUsed = false;
    for (const site of woken) {
      const started = advance(site);
      if (isUsed && started === 0) return;
      isUsed ||= started > 0;
    }
  }

  /** Whether a new message can be leased; false: it waits in the queue. */
  function mayLease(mail: MailToLease): boolean {
    if (requested[mail.priority].has(queueKeyText(mail)) || isPaused(mail)) return false;
    if (waits.parkedOf(mail) !== null || rates.mayLimit(mail)) return false;
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
      const target = running && !isPaused(message) ? targetOfNew(message) : null;
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
      if (site.hasFreeSlot(message.priority)) advance(site);
    }
  }

  /** Null when data that it needs cannot be read. The message is accepted all the same, and read again from the queue. */
  function targetOfNew(mail: TargetMail): Target | null {
    try {
      return targets.find(mail, false);
    } catch (error) {
      log.warn(
        { err: error, accountId: mail.account_id },
        'new message waits in the queue: its route cannot be read',
      );
      return null;
    }
  }

  /** Messages that waited in memory. */
  function returnToQueue(dropped: readonly Assignment[]): void {
    for (const { message, lease } of dropped) {
      if (lease === undefined) claims.release(message);
      else void lease.then((isLeased) => (isLeased ? putBack(message) : undefined));
    }
  }

  async function putBack(message: ReadyMessage): Promise<void> {
    if (await recording.putBack(message, 0)) request(message);
  }

  /** Whether the operator has paused the mail of a key. */
  function isPaused(key: QueueKey): boolean {
    return controls.ofKey(key)?.action === 'pause';
  }

  /** The last key that the scan has requested, by priority; null: it starts at the first. */
  const cursors: [QueueKey | null, QueueKey | null] = [null, null];
  let completedAt: number | null = null;
  let failedRuns = 0;
  /** When the sites are advanced again from the first one on, monotonic ms. */
  let sweepAt = Number.NEGATIVE_INFINITY;
  /** The sites that are not advanced yet; null: all are. */
  let unadvanced: Iterator<Site> | null = null;
  /** Waiting keys that this run may still read again. */
  let rechecks = 0;
  /** When the last search for expired messages began, monotonic ms. */
  let searchedAt = monotonic.now();
  /** The search for expired messages in progress. */
  let search: Generator<void, void> | null = null;

  /**
   * Scans the next part of the queue for mail that was not announced: mail that came due, and changes made by other
   * processes. It also advances the sites, and expires mail that waits. A step that fails does not stop the others.
   * Resolves with the pause until the next run, ms. Never rejects.
   */
  async function scan(): Promise<number> {
    completedAt ??= monotonic.now();
    const hasMoreDue = await attempt('promote', promote);
    await attempt('advance', advanceSites);
    await attempt('expire', expireWaiting);
    rechecks = RECHECK_BATCH_SIZE;
    const found = [
      await attempt('transactional', () => requestKeys(TRANSACTIONAL_PRIORITY)),
      await attempt('marketing', () => requestKeys(MARKETING_PRIORITY)),
    ];
    const isReadable = hasMoreDue !== null && !found.includes(null);
    if (isReadable) completedAt = monotonic.now();
    failedRuns = isReadable ? 0 : failedRuns + 1;
    const isBusy = found.some((part) => part !== null && !part.isAtEnd && part.count >= MIN_REQUESTED_KEYS);
    const hasMore = isBusy || hasMoreDue === true || search !== null || unadvanced !== null;
    return hasMore ? BUSY_SCAN_INTERVAL_MS : SCAN_INTERVAL_MS;
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

  /** Makes messages that came due ready; returns whether others are due. */
  async function promote(): Promise<boolean> {
    const due = tables.queue.nextDue();
    if (due === null || due > clock.now()) return false;
    const keys = await writer.run((tx) => tx.queue.promote(clock.now(), PROMOTE_BATCH_SIZE));
    for (const key of keys) request(key);
    const next = tables.queue.nextDue();
    return next !== null && next <= clock.now();
  }

  /**
   * Advances the next sites, without what they read long ago, and removes those that are obsolete. After the last one it
   * begins again, at most once in SCAN_INTERVAL_MS.
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
      if (sites.removeObsolete(next.value)) continue;
      returnToQueue(next.value.dropOutdated());
      advanceSoon(next.value);
    }
  }

  /** Requests the next keys of a priority that are not known already. */
  function requestKeys(priority: QueuePriority): { isAtEnd: boolean; count: number } {
    let count = 0;
    if (requestedCount() >= MAX_PENDING_KEYS) return { isAtEnd: false, count: KEY_BATCH_SIZE };
    let key = cursors[priority];
    // The next run continues where this one stops; after an error it starts at the first key.
    cursors[priority] = null;
    for (let n = 0; n < KEY_BATCH_SIZE; n++) {
      key = tables.queue.keyAfter(priority, key);
      if (key === null) return { isAtEnd: true, count };
      if (isKnown(key)) continue;
      request(key);
      count++;
    }
    cursors[priority] = key;
    return { isAtEnd: false, count };
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
   * Fails mail that expired while it waited for a halted site or a source address, a bounded number of messages in each
   * run. Nothing else would read it for hours.
   */
  function expireWaiting(): void {
    if (search === null) {
      if (monotonic.now() - searchedAt < EXPIRY_INTERVAL_MS) return;
      searchedAt = monotonic.now();
      search = searchExpired();
    }
    for (let n = 0; n < EXPIRY_RUN_SIZE; n++) {
      if (search.next().done !== true) continue;
      search = null;
      return;
    }
  }

  /** Yields before each read. */
  function* searchExpired(): Generator<void, void> {
    for (const site of sites.all()) {
      // What the operator has paused does not expire.
      if (!site.isHalted() || site.isPaused()) continue;
      // Without messages that were postponed, the mail of a key is almost in the order of its expiry.
      for (const key of site.waitingKeys())
        yield* searchKey(key, haltReason(key.destination, site.isSuspended()), true);
    }
    for (const { detail } of waits.list('key_without_address'))
      yield* searchKey(detail.key, detail.text, false);
  }

  function* searchKey(key: QueueKey, reason: string, isInOrder: boolean): Generator<void, void> {
    for (let last: number | null = 0; last !== null; ) {
      yield;
      if (isPaused(key)) return;
      const page: ExpiryPage = tables.queue.expiries(key, last, EXPIRY_BATCH_SIZE);
      const expired = page.seqs(expiry.now());
      for (const seq of expired) {
        yield;
        const message = claims.has(seq) ? null : readMessage(seq, key);
        if (message !== null && decided(message, () => targets.pauseOf(message) === null) === true)
          expire(message, reason);
      }
      last = isInOrder && expired.length < EXPIRY_BATCH_SIZE ? null : page.last;
    }
  }

  const isFailing = () => failedRuns >= MIN_FAILED_RUNS;

  /** Time since the scan last reached the end without errors, ms; 0 before its first run, and while it fails: see `stalled`. */
  function unscannedMs(): number {
    return isFailing() || completedAt === null ? 0 : monotonic.now() - completedAt;
  }

  return {
    start: (): void => {
      running = true;
    },
    request,
    /** Keys that are about to be read. */
    requested: requestedCount,
    leaseNow,
    accepted,
    /** Drops the messages that were read ahead; the scan reads them again, under changed conditions. */
    readAgain: (): void => {
      for (const site of sites.all()) {
        returnToQueue(site.drop());
        site.clearWaitingKeys();
      }
    },
    scan,
    /** Null while the queue is read, else what is wrong, a clause. */
    stalled: (): string | null => {
      if (isFailing()) return 'the queue cannot be read; see the log';
      const ms = unscannedMs();
      return ms < STALLED_AFTER_MS ? null : `the queue was last scanned ${Math.round(ms / SECOND)} s ago`;
    },
    unscannedMs,
    /** Starts no further delivery and drops the messages that were read ahead. */
    stop: (): void => {
      running = false;
      for (const site of sites.all()) returnToQueue(site.drop());
    },
  };
}

/** Messages of a site that wait in memory. */
function backlogOf(site: Site): number {
  return site.backlogSize(TRANSACTIONAL_PRIORITY) + site.backlogSize(MARKETING_PRIORITY);
}

/**
 * Whether the content stays in memory. A message that waits behind others keeps its content only if its texts are stored
 * separately, as a shared content: it then has one recipient, so that no erasure rewrites its content while it is queued.
 */
function mayKeep({ body, sharedId }: PackedContent, starts: boolean): boolean {
  return starts ? body.length <= MAX_NEXT_BYTES : sharedId !== undefined && body.length <= MAX_WAITING_BYTES;
}

function startTimer(ms: number, task: () => void): void {
  setTimeout(task, ms).unref();
}
