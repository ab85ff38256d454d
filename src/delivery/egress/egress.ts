import type { Config } from '../../config/schema.ts';
import { type Clock, DAY, SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { Writer } from '../../store/database/writer.ts';
import { TRANSACTIONAL_PRIORITY } from '../../store/messages/queue.ts';
import type { Tables } from '../../store/tables.ts';
import type { AttemptResult } from '../attempt-result.ts';
import { addressOf, type EgressEntry, type EgressPools, reachingEntries } from '../routing/egress.ts';
import { presentBlock } from './delisting.ts';
import { createEgressFaults } from './faults.ts';
import { createEgressHealth } from './health.ts';
import type { EgressProxies } from './proxies.ts';
import { createSettlements, type Settlement } from './settlement.ts';
import {
  type AddressBlock,
  type EgressMail,
  type EgressObstacle,
  type EgressProblem,
  type EgressTicket,
  healthName,
  receiverOf,
  type SettledReport,
  type WarmupUse,
} from './ticket.ts';
import { createEgressUsage } from './usage.ts';
import { reservedForTransactional } from './warmup.ts';
import { createEgressWarmup } from './warmup-state.ts';

/**
 * Which source address sends a message: the one that the connection slot prefers, unless it cannot be used, the provider
 * refuses it, or its limit of the day is used up; then the next one of the pool. The limit of a warm-up is never exceeded
 * except by transactional mail that no other address can take (`delivery.warmup.transactionalFactor`).
 *
 * A ticket belongs to one attempt. Its owner ends it exactly once: with `release` if no server was contacted, else
 * with `settle`, and calls `record` of the settlement in the unit of work that records the outcome.
 */
export interface Egress {
  /** Why no address of the pool can send the message now; null: one can. */
  obstacle(pool: string, mail: EgressMail): EgressObstacle | null;
  /** An address for one attempt; null: none can send the message now. */
  take(site: { key: string; pool: string }, slot: number, mail: EgressMail): EgressTicket | null;
  release(ticket: EgressTicket): void;
  settle(ticket: EgressTicket, result: AttemptResult, report: SettledReport): Settlement;
  /** Reads what other processes changed, and evaluates complaints. Call about once per second. */
  refresh(): Promise<void>;
  /** Addresses that cannot be used, or that a provider refuses: at most 100. */
  problems(): EgressProblem[];
  /** The blocked addresses, for which mail waits: at most 100. */
  blocks(): (AddressBlock & { entry: string })[];
  /** Lets one message probe each refused address now. */
  probeNow(): void;
  /** Warm-ups with a limit today and mail, those with the most messages first. */
  warmupUse(): WarmupUse[];
}

export interface EgressDeps {
  config: Config;
  clock: Clock;
  monotonic: Clock;
  log: Log;
  tables: Tables;
  writer: Writer;
  pools: EgressPools;
  proxies: Pick<EgressProxies, 'isResolved'>;
  /** Called in the unit of work that records that an address is refused. */
  onRefused?: ((tables: Tables, block: AddressBlock) => void) | undefined;
}

/** How long mail waits for the first resolution of a proxy's name. */
const UNRESOLVED_WAIT_MS = 5 * SECOND;
const MAX_PROBLEMS = 100;

/**
 * Reads the refused addresses and the steps of warm-ups from the database now, and the counts of an entry at its first
 * use on a day. Starts no timer: `refresh` notices what other processes change.
 */
export function createEgress(deps: EgressDeps): Egress {
  const { config, clock, monotonic, tables, pools, proxies } = deps;
  const usage = createEgressUsage({ clock, tables });
  const faults = createEgressFaults(monotonic);
  const health = createEgressHealth();
  health.load(tables.egressHealth.all());
  const warmup = createEgressWarmup({ ...deps, usage });
  const settlements = createSettlements({ ...deps, usage, faults, health, warmup, alternativeTo });
  const offsets = new WeakMap<object, number>();

  /** Sites begin with different entries, so that each entry is the first one of some. */
  function offsetOf(site: { key: string }): number {
    let offset = offsets.get(site);
    if (offset === undefined) {
      offset = hash(site.key);
      offsets.set(site, offset);
    }
    return offset;
  }

  /** Why the quota of the day excludes one more message; null: it does not. `factor`: of the quota. */
  function quotaOf(
    entry: EgressEntry,
    { provider, priority }: EgressMail,
    factor: number,
  ): EgressObstacle | null {
    if (entry.warmup === undefined || entry.name === null || provider === null) return null;
    const countedAs = usage.countedAs(entry, provider);
    const { cap, day } = warmup.position(entry.name, entry.warmup, countedAs);
    if (cap === null) return null;
    const counts = usage.of(entry.name, countedAs);
    const { transactional } = counts;
    const used = transactional + counts.marketing + counts.inFlight;
    const transactionalBefore = usage.transactionalBefore(entry.name, countedAs);
    const reserved =
      priority === TRANSACTIONAL_PRIORITY
        ? 0
        : reservedForTransactional(cap, { transactional, transactionalBefore });
    if (used + reserved < cap * factor) return null;
    const address = addressOf(entry);
    const until = day === 0 ? Date.parse(entry.warmup.started) : usage.today() + DAY;
    const what = day === 0 ? 'the warm-up' : "tomorrow's warm-up quota";
    const kept = reserved === 0 ? '' : `, ${reserved} kept for transactional mail`;
    return {
      kind: 'warmup',
      entry: entry.name,
      address,
      provider: countedAs,
      limit: { cap, used },
      until,
      text: `waits for ${what} of ${address} at ${countedAs} (${used} of ${cap} used${kept})`,
    };
  }

  function unusable(entry: EgressEntry, { provider }: EgressMail): EgressObstacle | null {
    const waitMs = proxies.isResolved(entry) ? faults.waitMs(entry) : UNRESOLVED_WAIT_MS;
    if (waitMs === 0) return null;
    const address = addressOf(entry);
    return {
      kind: 'unusable',
      entry: entry.name,
      address,
      provider: provider ?? '',
      limit: null,
      until: clock.now() + Math.ceil(waitMs),
      text: `waits for the source address ${address}, which cannot be used now`,
    };
  }

  function isRefused(entry: EgressEntry, mail: EgressMail): boolean {
    const receiver = receiverOf(mail);
    return receiver !== null && health.isRefused(healthName(entry), receiver);
  }

  function mayProbe(entry: EgressEntry, mail: EgressMail): boolean {
    const receiver = receiverOf(mail);
    return receiver !== null && health.mayProbe(healthName(entry), receiver, clock.now());
  }

  /** What mail waits for that only a blocked address can send; null: the address is not blocked. */
  function blockOf(entry: EgressEntry, mail: EgressMail): EgressObstacle | null {
    const receiver = receiverOf(mail);
    if (receiver === null || !health.isBlocked(healthName(entry), receiver)) return null;
    const row = health.get(healthName(entry), receiver);
    if (row === null) return null;
    const address = addressOf(entry);
    return {
      kind: 'blocked',
      entry: entry.name,
      address,
      provider: receiver,
      limit: null,
      block: presentBlock(config, row),
      until: health.probeAt(healthName(entry), receiver, clock.now()),
      text: `waits until ${receiver} accepts mail from ${address} again`,
    };
  }

  /** Whether an entry other than `entry` could send the message, now or when its quota allows it. */
  function alternativeTo({ entry, pool, mail }: EgressTicket): boolean {
    const others = reachingEntries(pools.entries(pool), mail.hosts).filter((other) => other !== entry);
    return others.some((other) => faults.isUsable(other) && !isRefused(other, mail));
  }

  /** The first usable entry from `first` on, else the obstacle that ends first. */
  function choose(entries: readonly EgressEntry[], first: number, mail: EgressMail): Choice | EgressObstacle {
    const ordered = [...entries.slice(first), ...entries.slice(0, first)];
    const areAllRefused = ordered.every((entry) => isRefused(entry, mail));
    const obstacles: EgressObstacle[] = [];
    const usable = ordered.filter((entry) => {
      const found = unusable(entry, mail);
      if (found !== null) obstacles.push(found);
      return found === null;
    });
    // When a provider refuses all addresses, those that it does not block are used.
    const isAvoided = (entry: EgressEntry) =>
      areAllRefused ? blockOf(entry, mail) !== null : isRefused(entry, mail);
    const accepted = usable.filter((entry) => !isAvoided(entry));
    const avoided = usable.filter(isAvoided);
    obstacles.push(...avoided.flatMap((entry) => blockOf(entry, mail) ?? []));
    const probe = avoided.find((entry) => mayProbe(entry, mail) && quotaOf(entry, mail, 1) === null);
    if (probe !== undefined) return { entry: probe, isProbe: true };
    for (const entry of accepted) {
      const found = quotaOf(entry, mail, 1);
      if (found === null) return { entry, isProbe: false };
      obstacles.push(found);
    }
    if (mail.priority === TRANSACTIONAL_PRIORITY) {
      const factor = config.delivery.warmup.transactionalFactor;
      const over = accepted.find((entry) => quotaOf(entry, mail, factor) === null);
      if (over !== undefined) return { entry: over, isProbe: false };
    }
    // An entry that is not avoided either sends the message or has an obstacle, as a blocked one has.
    const [next] = obstacles.toSorted((a, b) => a.until - b.until);
    if (next === undefined) throw new Error('no address of the pool was chosen or had an obstacle');
    return next;
  }

  /** Whether every entry may send any message: the usual case, decided without the counts. */
  function isUnrestricted(entries: readonly EgressEntry[], mail: EgressMail): boolean {
    return entries.every(
      (entry) =>
        entry.warmup === undefined &&
        !isRefused(entry, mail) &&
        faults.isUsable(entry) &&
        proxies.isResolved(entry),
    );
  }

  return {
    obstacle: (pool, mail) => {
      const entries = reachingEntries(pools.entries(pool), mail.hosts);
      if (isUnrestricted(entries, mail)) return null;
      const choice = choose(entries, 0, mail);
      return 'isProbe' in choice ? null : choice;
    },
    take: (site, slot, mail) => {
      const { pool } = site;
      const entries = reachingEntries(pools.entries(pool), mail.hosts);
      const first = (offsetOf(site) + slot) % entries.length;
      const preferred = entries[first];
      const choice =
        preferred !== undefined && isUnrestricted(entries, mail)
          ? { entry: preferred, isProbe: false }
          : choose(entries, first, mail);
      if (!('isProbe' in choice)) return null;
      const { entry, isProbe } = choice;
      const { provider } = mail;
      const countedAs = provider === null ? '' : usage.countedAs(entry, provider);
      const ticket = { entry, provider, countedAs, day: usage.today(), pool, mail, isProbe };
      settlements.begin(ticket);
      return ticket;
    },
    release: settlements.release,
    settle: settlements.settle,
    refresh: warmup.refresh,
    problems: () =>
      [
        ...faults.list().map(({ entry, error }) => ({ entry, provider: null, reason: error })),
        ...health
          .all()
          .slice(0, MAX_PROBLEMS)
          .map(({ entry, provider, reply }) => ({ entry, provider, reason: reply })),
      ].slice(0, MAX_PROBLEMS),
    blocks: () =>
      health
        .all()
        .filter(({ blocked }) => blocked === 1)
        .slice(0, MAX_PROBLEMS)
        .map((row) => ({ entry: row.entry, ...presentBlock(config, row) })),
    probeNow: () => health.probeNow(clock.now()),
    warmupUse: () =>
      pools
        .all()
        .flatMap(({ name, warmup: setting }) =>
          name === null || setting === undefined
            ? []
            : [...usage.all(name)].flatMap(([provider, { transactional, marketing }]) => {
                const { cap } = warmup.position(name, setting, provider);
                return cap === null ? [] : [{ entry: name, provider, used: transactional + marketing, cap }];
              }),
        )
        .toSorted((a, b) => b.used - a.used),
  };
}

interface Choice {
  entry: EgressEntry;
  isProbe: boolean;
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193) >>> 0;
  return value;
}
