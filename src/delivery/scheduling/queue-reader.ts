import type { Clock } from '../../core/clock.ts';
import type { ExpiryClock } from '../../core/expiry-clock.ts';
import type { Log } from '../../core/log.ts';
import {
  type ExpiryPage,
  type QueueKey,
  queueKeyText,
  type ReadyMessage,
} from '../../store/messages/queue.ts';
import type { Tables } from '../../store/tables.ts';
import type { ControlIndex } from '../control.ts';
import type { Deliveries } from '../deliver.ts';
import type { EgressPools } from '../egress-pools.ts';
import type { Recording } from '../recording.ts';
import type { EgressObstacle } from '../source-address.ts';
import { haltReason, type Waits } from '../waits.ts';
import type { Claims } from './claims.ts';
import { MIN_SHARE } from './create-site.ts';
import type { RecentMessage, RecentMessages } from './recent-messages.ts';
import type { Site } from './site.ts';
import type { Targets } from './targets.ts';

/**
 * Reads ready messages from the queue into the backlogs of their sites. Only messages read ahead for sites that have
 * capacity are in memory, and losing them does no harm: the database shows a message as waiting until it is leased.
 *
 * A row or a key that cannot be read is skipped and retried later, separately from all others: a damaged row delays no
 * other mail.
 */
export interface QueueReader {
  /** Clears what was read for the last batch. Call before each batch of `read`. */
  startBatch(): void;
  /**
   * Reads the messages of a key that can be sent now. A key without capacity waits at its site. Returns the number of
   * messages read. `competing`: the number of keys that wait to be read, which share the capacity of the site. The sites
   * whose backlog grew are added to `filled`.
   */
  read(key: QueueKey, competing: number, filled: Set<Site>): number;
  /** Fails the expired messages of a key whose site is halted, without those that are paused. Yields before each read. */
  expiring(key: QueueKey, site: Site): Generator<void, void>;
  /** Fails the expired messages of the keys that wait for a source address, likewise. */
  expiringBlocked(): Generator<void, void>;
  /** Forgets recent messages, so that they are read from the queue. */
  forgetRecent(): void;
}

export interface QueueReaderDeps {
  clock: Clock;
  expiry: Pick<ExpiryClock, 'now'>;
  log: Log;
  tables: Tables;
  claims: Claims;
  recent: RecentMessages;
  waits: Waits;
  targets: Pick<Targets, 'startBatch' | 'find' | 'pauseOf'>;
  pools: Pick<EgressPools, 'poolCount'>;
  controls: Pick<ControlIndex, 'ofKey'>;
  /** These two release the claim on the message. */
  deliveries: Pick<Deliveries, 'conclude' | 'unprepared' | 'expire'>;
  recording: Pick<Recording, 'postpone'>;
  /** Called when a key can be read again: its route became known, or it may have more messages. */
  onReadable(key: QueueKey): void;
}

/** Waits because of which a key is not read. */
const KEY_WAITS = ['key_unreadable', 'key_account_limited', 'key_without_address'] as const;
/** Messages read of one key at a time. */
const READ_BATCH_SIZE = 200;
/** A key with more claimed messages than this is not read until some of them are finished. */
const MAX_CLAIMED_OF_KEY = 5000;
const EXPIRY_BATCH_SIZE = 100;
/** Messages examined for their expiry in one step. */
const EXPIRY_SCAN_SIZE = 25;

/** `read` logs errors and does not throw. Keys that it does not read for a time are in `waits`. */
export function createQueueReader(deps: QueueReaderDeps): QueueReader {
  const { clock, expiry, log, tables, claims, recent, waits, targets, controls, deliveries, recording } =
    deps;

  function read(key: QueueKey, competing: number, filled: Set<Site>): number {
    const claimed = claims.countOf(key);
    if (claimed > MAX_CLAIMED_OF_KEY) return 0;
    let share = Number.POSITIVE_INFINITY;
    let first: Site | null = null;
    let taken = 0;
    for (const seq of walk(key, claimed, () => share - taken)) {
      if (seq === null) {
        // There may be more.
        if (first === null) deps.onReadable(key);
        else first.addWaitingKey(key);
        return taken;
      }
      if (claims.has(seq)) continue;
      if (taken >= share) {
        first?.addWaitingKey(key);
        return taken;
      }
      const known = recent.get(seq);
      const message = readMessage(seq, key, known);
      if (message === null) continue;
      // The messages of a key may leave through different pools: each is routed separately.
      const target = decided(message, () => targets.find(message, () => deps.onReadable(key)));
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
      recent.remove(seq);
      if (target.kind === 'site') {
        target.assignment.content = known?.content;
        target.site.add(target.assignment);
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

  /** Null when the message may not be taken now, or cannot be read. `known`: it need not be read. */
  function readMessage(seq: number, key: QueueKey, known?: RecentMessage): ReadyMessage | null {
    let message: ReadyMessage | null;
    try {
      message = known?.message ?? tables.queue.ready(seq);
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
    if (hasOwnPath || deps.pools.poolCount(message.use_case) > 1) {
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

  const isPaused = (key: QueueKey) => controls.ofKey(key)?.action === 'pause';

  function* expiringBlocked(): Generator<void, void> {
    for (const {
      detail: { key, text },
    } of waits.list('key_without_address')) {
      for (let after: number | null = 0; after !== null; ) {
        yield;
        if (isPaused(key)) break;
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

  function* expiring(key: QueueKey, site: Site): Generator<void, void> {
    yield;
    for (const seq of tables.queue.readySeqs(key, EXPIRY_BATCH_SIZE)) {
      yield;
      if (isPaused(key)) return;
      const message = claims.has(seq) ? null : readMessage(seq, key);
      if (message === null) continue;
      if (message.expires_at > expiry.now()) return;
      expireUnlessPaused(message, haltReason(message.destination, site.isSuspended()));
    }
  }

  return {
    startBatch: targets.startBatch,
    read: (key, competing, filled) => {
      const text = queueKeyText(key);
      if (isPaused(key)) return 0;
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
    forgetRecent: recent.clear,
  };
}
