import { type Clock, iso, SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { LocalFailure } from '../../mail/classify/classify.ts';
import {
  type QueuedMessage,
  type QueueKey,
  queueKeyText,
  type ReadyMessage,
} from '../../store/messages/queue.ts';
import type { QueueControlRow } from '../../store/messages/queue-controls.ts';
import type { Tables } from '../../store/tables.ts';
import { type ControlIndex, describeControl } from '../control/controls.ts';
import type { DeliveryPath, DeliveryPaths } from '../lanes/paths.ts';
import type { Leases } from '../leases.ts';
import type { LocalAttempts } from '../local-attempts.ts';
import type { EgressPools } from '../routing/egress.ts';
import type { RouteCache } from '../routing/route-cache.ts';
import type { Claims } from './claims.ts';
import type { Parking } from './parking.ts';
import type { Assignment, Site } from './site.ts';
import type { Sites } from './sites.ts';

/**
 * Reads ready messages from the queue into the backlogs of their sites. Only messages read ahead for sites that have
 * capacity are in memory, and losing them does no harm: the database shows a message as waiting until it is leased.
 *
 * A row or a key that cannot be read is skipped and retried later, separately from all others: a damaged row delays no
 * other mail.
 */
export interface QueueReader {
  /** Clears the domains that were looked up for the last batch. Call before each batch of `read`. */
  startBatch(): void;
  /**
   * Reads the messages of a key that can be sent now. A key without capacity waits at its site. Returns the number of
   * messages read. The sites whose backlog grew are added to `filled`.
   */
  read(key: QueueKey, competing: number, filled: Set<Site>): number;
  /** Fails the expired messages of a key whose site is suspended. Yields before each read. */
  expiring(key: QueueKey): Generator<void, void>;
  /** Why a due message is not sent: it is paused, or its site is suspended; null: no obstacle is known. */
  obstacle(message: QueuedMessage): string | null;
  /** Number of keys that cannot be read now. */
  unreadable(): number;
  /** Forgets keys that were unreadable and have no more mail. */
  sweep(): void;
}

export interface QueueReaderDeps {
  clock: Clock;
  monotonic: Clock;
  log: Log;
  tables: Tables;
  claims: Claims;
  parking: Parking;
  sites: Sites;
  routes: RouteCache;
  egress: Pick<EgressPools, 'ipv6Of'>;
  paths: Pick<DeliveryPaths, 'of'>;
  controls: ControlIndex;
  /** These two release the claim on the message. */
  localAttempts: Pick<LocalAttempts, 'routeFailed' | 'simulate' | 'unprepared' | 'expired' | 'rejected'>;
  leases: Pick<Leases, 'postpone'>;
  /** Called when a key can be read again: its route became known, or it may have more messages. */
  onReadable(key: QueueKey): void;
}

/** Messages read of one key at a time. */
const READ_BATCH_SIZE = 200;
/** A key with more claimed messages than this is not read until some of them are finished. */
const MAX_CLAIMED_OF_KEY = 5000;
/** A key's minimum share of its site's capacity, which bounds the number of small reads. */
export const MIN_SHARE = 10;
const EXPIRY_BATCH_SIZE = 100;
const FIRST_QUARANTINE_MS = 2 * SECOND;
const MAX_QUARANTINE_MS = 300 * SECOND;
const MAX_QUARANTINED = 10_000;

type Target =
  | { kind: 'site'; site: Site; assignment: Assignment }
  | { kind: 'simulator' }
  /** The operator rejects the mail to its destination. */
  | { kind: 'rejected'; control: QueueControlRow }
  | { kind: 'failure'; failure: LocalFailure }
  /** The route is being looked up; the key is read again when it is known. */
  | { kind: 'unknown' };

export function createQueueReader(deps: QueueReaderDeps): QueueReader {
  const { clock, monotonic, log, tables, claims, parking, sites, routes, egress, localAttempts, leases } =
    deps;
  const { controls } = deps;
  /** Paths of the domains in this batch, by lane, use case and domain. */
  const paths = new Map<string, DeliveryPath>();
  /** Keys that could not be read. */
  const quarantine = new Map<string, { until: number; waitMs: number }>();

  function read(key: QueueKey, competing: number, filled: Set<Site>): number {
    const known = claims.countOf(key);
    if (known > MAX_CLAIMED_OF_KEY) return 0;
    const limit = READ_BATCH_SIZE + known;
    const seqs = tables.queue.readySeqs(key, limit);
    let share = Number.POSITIVE_INFINITY;
    let first: Site | null = null;
    let taken = 0;
    for (const seq of seqs) {
      if (claims.has(seq)) continue;
      if (taken >= share) {
        first?.wait(key);
        return taken;
      }
      const message = readMessage(seq, key);
      if (message === null) continue;
      // The messages of a key may leave through different pools: each is routed separately.
      const target = targetOf(message, key);
      if (target === null) continue;
      if (target.kind === 'unknown') return taken;
      if (target.kind === 'site' && first === null) {
        first = target.site;
        share = shareOf(first, key, competing);
      }
      if (target.kind === 'site' && (share <= 0 || target.site.capacity(key.priority) <= 0)) {
        target.site.wait(key);
        return taken;
      }
      taken++;
      claims.add(message);
      if (target.kind === 'simulator') localAttempts.simulate(message);
      else if (target.kind === 'rejected') localAttempts.rejected(message, target.control);
      else if (target.kind === 'failure') localAttempts.routeFailed(message, target.failure);
      else {
        target.site.add(target.assignment);
        filled.add(target.site);
      }
    }
    if (seqs.length === limit) {
      // There may be more.
      if (first === null) deps.onReadable(key);
      else first.wait(key);
    }
    return taken;
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
    const waitMs = parking.domainWait(message.domain_id);
    if (waitMs === 0) return message;
    // Mail of a parked domain is removed from the ready part of the queue, where it would precede all later mail.
    claims.add(message);
    leases.postpone(message, waitMs);
    return null;
  }

  /** Null when data that decides about the target cannot be read. */
  function targetOf(message: ReadyMessage, key: QueueKey): Target | null {
    try {
      return findTarget(message, key);
    } catch (error) {
      claims.add(message);
      localAttempts.unprepared(message, error);
      return null;
    }
  }

  function findTarget(message: ReadyMessage, key: QueueKey): Target {
    if (message.simulated === 1) return { kind: 'simulator' };
    const control = controls.ofKey(message);
    if (control?.action === 'bounce') return { kind: 'rejected', control };
    const { pool, lane, via } = pathOf(message);
    const result = routes.get(message.destination, egress.ipv6Of(pool), () => deps.onReadable(key), via);
    if (result === null) return { kind: 'unknown' };
    if (result.kind === 'failure') return result;
    const { hosts, route } = result;
    return {
      kind: 'site',
      site: sites.of(message.destination, hosts, route, pool),
      assignment: { message, hosts, route, lane, readAt: monotonic.now() },
    };
  }

  /** Called for every message of a batch; reads each domain once. */
  function pathOf(message: QueuedMessage): DeliveryPath {
    // A rerouted message is rare, and its path is its own.
    if (message.reroute !== null) return deps.paths.of(message);
    const name = `${message.secondary} ${message.use_case} ${message.domain_id}`;
    const known = paths.get(name);
    if (known !== undefined) return known;
    const path = deps.paths.of(message);
    paths.set(name, path);
    return path;
  }

  /** The site's capacity divided among the keys that compete for it. */
  function shareOf(site: Site, { priority }: QueueKey, competing: number): number {
    const capacity = site.capacity(priority);
    const share = Math.ceil(capacity / (1 + competing + site.waitingCount()));
    return Math.min(capacity, Math.max(MIN_SHARE, share));
  }

  function* expiring(key: QueueKey): Generator<void, void> {
    yield;
    for (const seq of tables.queue.readySeqs(key, EXPIRY_BATCH_SIZE)) {
      yield;
      // Paused mail does not expire.
      if (controls.ofKey(key)?.action === 'pause') return;
      const message = claims.has(seq) ? null : readMessage(seq, key);
      if (message === null) continue;
      if (message.expires_at > clock.now()) return;
      claims.add(message);
      localAttempts.expired(message, `the mail hosts of ${message.destination} cannot be reached`);
    }
  }

  return {
    startBatch: () => {
      paths.clear();
    },
    read: (key, competing, filled) => {
      const text = queueKeyText(key);
      if (controls.ofKey(key)?.action === 'pause') return 0;
      if (parking.accountWait(key.account_id) > 0) return 0;
      if ((quarantine.get(text)?.until ?? 0) > monotonic.now()) return 0;
      try {
        const count = read(key, competing, filled);
        quarantine.delete(text);
        return count;
      } catch (error) {
        const previous = quarantine.get(text)?.waitMs ?? FIRST_QUARANTINE_MS / 2;
        const waitMs = Math.min(previous * 2, MAX_QUARANTINE_MS);
        if (quarantine.size < MAX_QUARANTINED)
          quarantine.set(text, { until: monotonic.now() + waitMs, waitMs });
        log.error(
          { err: error, accountId: key.account_id, destination: key.destination, waitMs },
          "an account's queued mail to a destination could not be read; trying again later",
        );
        return 0;
      }
    },
    expiring,
    obstacle: (message) => {
      const control = controls.ofKey(message);
      if (control !== null) return describeControl(control);
      if (message.simulated === 1) return null;
      const { pool, via } = deps.paths.of(message);
      const result = routes.get(message.destination, egress.ipv6Of(pool), () => {}, via);
      if (result?.kind !== 'hosts') return null;
      const site = sites.find(message.destination, result.hosts, result.route, pool);
      const pause = site === null ? null : controls.ofSite(site);
      if (pause !== null) return describeControl(pause);
      const ms = site?.suspendedMs() ?? 0;
      if (ms === 0) return null;
      return `the mail hosts of ${message.destination} cannot be reached; next attempt at ${iso(clock.now() + ms)}`;
    },
    unreadable: () => quarantine.size,
    sweep: () => {
      const before = monotonic.now() - MAX_QUARANTINE_MS;
      for (const [key, { until }] of quarantine) if (until < before) quarantine.delete(key);
    },
  };
}
