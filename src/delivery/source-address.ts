import { isIP, isIPv6 } from 'node:net';
import type { Config } from '../config/schema.ts';
import { type Clock, DAY, MINUTE, SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { normalizeAddress } from '../dns/address-kinds.ts';
import { PHASES_ABOUT_ADDRESS } from '../mail/classify/classify.ts';
import type { Writer } from '../store/database/writer.ts';
import type { EgressCounts } from '../store/egress/egress-counts.ts';
import { type QueuePriority, TRANSACTIONAL_PRIORITY } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import {
  type AddressBlock,
  createEgressHealth,
  type EgressHealth,
  type HealthChange,
  presentBlock,
} from './address-health.ts';
import type { AttemptResult } from './attempt-result.ts';
import { addressOf, type EgressEntry, type EgressPools, reachingEntries } from './egress-pools.ts';
import type { EgressProxies } from './proxies.ts';
import {
  createEgressUsage,
  createEgressWarmup,
  type EgressUsage,
  type EgressWarmup,
  reservedForTransactional,
} from './warmup.ts';
import type { AttemptReport, TargetHost } from './worker/protocol.ts';

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

/** What the choice of the address depends on. */
export interface EgressMail {
  /**
   * Provider that `providerOfHosts` returns; null: mail over a fixed route, for which addresses are neither limited
   * nor judged.
   */
  provider: string | null;
  /** Whose refusals of an address count together (`Profiles.receiverOf`). Default: the provider. */
  receiver?: string | undefined;
  priority: QueuePriority;
  hosts: readonly TargetHost[];
}

/** Whose refusals of an address count together; null: addresses are not judged. */
export function receiverOf({ provider, receiver }: EgressMail): string | null {
  return provider === null ? null : (receiver ?? provider);
}

/** The name of the entry in the table `egress_health`. */
export function healthName({ name }: Pick<EgressEntry, 'name'>): string {
  return name ?? '';
}

/** The source address of one attempt, and what the attempt counts toward. `Egress` describes how it ends. */
export interface EgressTicket {
  entry: EgressEntry;
  /** Provider of the recipient; null: mail over a fixed route. */
  provider: string | null;
  /** The provider to which the message counts. */
  countedAs: string;
  /** Epoch ms at which the day of the count begins. */
  day: number;
  pool: string;
  mail: EgressMail;
  /** Whether the provider refuses the address, and the attempt tests whether it still does. */
  isProbe: boolean;
}

export type SettledReport = Pick<AttemptReport, 'sessions'> & {
  conclusion: AttemptReport['conclusion'] | 'worker-lost';
  /** Absent: no reply decided. */
  phase?: AttemptReport['phase'];
};

/** What a message waits for: a limit, or an address that can be used. */
export interface EgressObstacle {
  kind: 'warmup' | 'unusable' | 'blocked';
  entry: string | null;
  address: string;
  provider: string;
  /** Of an address that is blocked. */
  block?: AddressBlock;
  /** Messages of the day; null: the obstacle is not a limit of messages. */
  limit: { cap: number; used: number } | null;
  /** Epoch ms of the next attempt. */
  until: number;
  /** `waits for tomorrow's warm-up quota of 192.0.2.1 at Google (50 of 50 used)` */
  text: string;
}

export interface EgressProblem {
  entry: string;
  /** Null: at all providers. */
  provider: string | null;
  reason: string;
}

/** Use of a warm-up on the current day. */
export interface WarmupUse {
  entry: string;
  provider: string;
  used: number;
  cap: number;
}

/**
 * What an attempt means for the source address that it used: its counts, its warm-up, its health, and whether another
 * address sends the message next. Memory is updated immediately; `record` writes the same in the unit of work of the
 * outcome.
 */
export interface Settlement {
  /** The result, deferred for `OTHER_ADDRESS_WAIT_MS` where another address can send the message. */
  result: AttemptResult;
  /** Writes the counts, the health and the step of the warm-up in that unit of work. May be repeated after a rollback. */
  record(tables: Tables): void;
  /** Called once when the unit of work is on disk. */
  recorded(): void;
  /** The entry and the provider, for the record of the attempt; undefined: the system chose the address. */
  used: { egress: string; provider: string } | undefined;
}

export interface Settlements {
  begin(ticket: EgressTicket): void;
  release(ticket: EgressTicket): void;
  settle(ticket: EgressTicket, result: AttemptResult, report: SettledReport): Settlement;
}

export interface SettlementDeps {
  config: Pick<Config, 'delivery'>;
  clock: Clock;
  log: Log;
  usage: EgressUsage;
  faults: EgressFaults;
  health: EgressHealth;
  warmup: EgressWarmup;
  /** Whether another entry could send the message of the ticket. */
  alternativeTo(ticket: EgressTicket): boolean;
  /** Called in the unit of work that records that an address is refused. */
  onRefused?: ((tables: Tables, block: AddressBlock) => void) | undefined;
}

/** After this time a message is sent again from another address. */
const OTHER_ADDRESS_WAIT_MS = 2 * SECOND;

/**
 * All state is in the collaborators. `begin` counts the message as in flight, and a probe as running, until `release`
 * or `settle`; a ticket from before midnight (UTC) no longer changes the counts in memory.
 */
export function createSettlements(deps: SettlementDeps): Settlements {
  const { config, clock, log, usage, faults, health, warmup, alternativeTo, onRefused } = deps;

  /** Null: the ticket counts nowhere, or its day is over. */
  function usageOf({ entry, provider, countedAs, day }: EgressTicket) {
    if (entry.name === null || provider === null || day !== usage.today()) return null;
    return usage.of(entry.name, countedAs);
  }

  function end(ticket: EgressTicket): void {
    const counts = usageOf(ticket);
    // Counts that were read from the database again have no messages in flight.
    if (counts !== null && counts.inFlight > 0) counts.inFlight--;
    setProbing(ticket, false);
  }

  function setProbing({ isProbe, entry, mail }: EgressTicket, isProbing: boolean): void {
    const receiver = receiverOf(mail);
    if (isProbe && receiver !== null) health.setProbing(healthName(entry), receiver, isProbing);
  }

  function judge(ticket: EgressTicket, result: AttemptResult, report: SettledReport): HealthChange | null {
    const { entry, mail } = ticket;
    const provider = receiverOf(mail);
    if (provider === null) return null;
    const name = healthName(entry);
    const { action } = result.classification;
    if (action === 'deliver') {
      const change = health.accepted(name, provider, clock.now());
      if (change?.kind === 'remove')
        log.info({ entry: name, provider }, 'source address accepted by the provider again');
      return change;
    }
    if (!isRefusal(result)) return null;
    const { reply } = result;
    const isNamed = namesAddress(reply.text, entry, report);
    const isBlock = report.phase !== undefined && PHASES_ABOUT_ADDRESS.has(report.phase);
    const change = health.refused({ entry: name, provider, reply, isNamed, isBlock }, clock.now());
    if (change?.kind === 'put')
      log.warn(
        { ...change.row, ...presentBlock(config, change.row), event: 'source_address_blocked' },
        change.row.blocked === 1
          ? 'source address blocked: its mail to the receiver waits'
          : 'source address refused by the provider',
      );
    return change;
  }

  /** Defers a message that the address could not send, or that was refused because of the address. */
  function deferForAddress(ticket: EgressTicket, result: AttemptResult, waitMs: number): AttemptResult {
    const { entry, mail } = ticket;
    const receiver = receiverOf(mail);
    const isAvoided = receiver !== null && health.isRefused(healthName(entry), receiver);
    const isUnusable = result.failure === 'egress-failed';
    if (!isUnusable && !(isAvoided && isRefusal(result))) return result;
    const hasAlternative = alternativeTo(ticket);
    if (!hasAlternative && waitMs === 0) return result;
    return {
      ...result,
      classification: {
        ...result.classification,
        action: 'defer',
        suppress: 'never',
        retryAfterMs: hasAlternative ? OTHER_ADDRESS_WAIT_MS : waitMs,
      },
    };
  }

  /** What the attempt means for the address, beyond the message. */
  function effectOf(
    ticket: EgressTicket,
    result: AttemptResult,
    report: SettledReport,
    change: HealthChange | null,
  ): AttemptResult['address'] {
    const { entry, mail } = ticket;
    const { bounceClass, scope } = result.classification;
    if (scope === 'sender' && bounceClass === 'rate-limited')
      return namesAddress(result.reply.text, entry, report) ? 'throttled' : undefined;
    if (change?.kind === 'remove') return change.wasBlocked ? 'recovered' : undefined;
    const receiver = receiverOf(mail);
    if (receiver === null || !isRefusal(result)) return undefined;
    const name = healthName(entry);
    const isLeft = health.isRefused(name, receiver) && alternativeTo(ticket);
    return isLeft || health.isBlocked(name, receiver) ? 'refused' : undefined;
  }

  function judgeUse(ticket: EgressTicket, report: SettledReport): number {
    const { entry } = ticket;
    // Without a session nothing is known about the address: no host was contacted, or the worker was lost.
    if (report.sessions.length === 0) {
      faults.released(entry);
      return 0;
    }
    const fault = report.conclusion === 'egress-failed' ? (report.sessions.at(-1)?.error ?? 'unknown') : null;
    // Where IPv6 alone fails, only mail to hosts without IPv4 waits: one account can have many such destinations.
    const isOnlyIpv6 =
      fault !== null &&
      entry.address !== undefined &&
      report.sessions.every(({ address }) => isIPv6(address));
    if (isOnlyIpv6) faults.released(entry);
    const waitMs = isOnlyIpv6 ? 0 : faults.ended(entry, fault);
    if (fault !== null)
      log.warn(
        { entry: entry.name, address: addressOf(entry), error: fault, waitMs: Math.round(waitMs) },
        'source address cannot be used',
      );
    return waitMs;
  }

  return {
    begin: (ticket) => {
      const counts = usageOf(ticket);
      if (counts !== null) counts.inFlight++;
      faults.begun(ticket.entry);
      setProbing(ticket, true);
    },
    release: (ticket) => {
      end(ticket);
      faults.released(ticket.entry);
    },
    settle: (ticket, result, report) => {
      end(ticket);
      const { entry, provider, countedAs, day, mail } = ticket;
      const waitMs = judgeUse(ticket, report);
      const used = entry.name === null ? undefined : { egress: entry.name, provider: countedAs };
      if (provider === null || !isCounted(result, report)) {
        return { ...withoutRecord(deferForAddress(ticket, result, waitMs)), used };
      }
      const added: Partial<EgressCounts> = {
        [mail.priority === TRANSACTIONAL_PRIORITY ? 'transactional' : 'marketing']: 1,
        ...outcomeOf(result),
      };
      const counts = usageOf(ticket);
      if (counts !== null) for (const [name, n] of entriesOf(added)) counts[name] += n;
      const change = judge(ticket, result, report);
      const step = counts === null ? null : warmup.evaluate(entry, countedAs);
      return {
        result: { ...deferForAddress(ticket, result, 0), address: effectOf(ticket, result, report, change) },
        record: (tables) => {
          if (entry.name !== null)
            tables.egressCounts.add({ day, entry: entry.name, provider: countedAs }, added);
          if (change?.kind === 'put') {
            tables.egressHealth.put(change.row);
            if (change.isNew) onRefused?.(tables, presentBlock(config, change.row));
          }
          if (change?.kind === 'remove') tables.egressHealth.remove(change.entry, change.provider);
          if (step !== null) tables.egressWarmup.put(step);
        },
        recorded: () => {
          if (step !== null) warmup.stored();
        },
        used,
      };
    },
  };
}

/** The settlement of an attempt that counts nowhere. */
export function withoutRecord(result: AttemptResult): Settlement {
  return { result, record: () => {}, recorded: () => {}, used: undefined };
}

/**
 * Whether a server of the provider saw the message or its sender. A worker that was lost, and a connection that was lost
 * after the final dot, may have delivered the message.
 */
function isCounted(result: AttemptResult, { conclusion, sessions }: SettledReport): boolean {
  if (conclusion === 'replied' || conclusion === 'unanswered' || conclusion === 'worker-lost') return true;
  return conclusion === 'unreachable' && result.source === 'smtp' && sessions.length > 0;
}

const THROTTLES: ReadonlySet<string> = new Set([
  'rate-limited',
  'reputation-block',
  'policy-block',
  'spam-block',
]);

function isRefusal({ classification, source }: AttemptResult): boolean {
  const { action, bounceClass, scope } = classification;
  return (
    source === 'smtp' && action !== 'deliver' && bounceClass === 'reputation-block' && scope === 'sender'
  );
}

function outcomeOf(result: AttemptResult): Partial<EgressCounts> {
  const { action, bounceClass, scope } = result.classification;
  if (action === 'deliver') return { delivered: 1 };
  if (isRefusal(result)) return { refused: 1 };
  return THROTTLES.has(bounceClass) && scope !== 'recipient' ? { throttled: 1 } : {};
}

const IPV4 = /(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\.?\d)/g;
/** Also in an address literal, `[IPv6:2001:db8::1]` (RFC 5321 §4.1.3). */
const IPV6 = /(?<![0-9a-z:.])(?:ipv6:)?([0-9a-f]{1,4}:[0-9a-f:]*[0-9a-f])(?![0-9a-z])/gi;

/** Whether the text contains an address of the entry, in any notation. */
function namesAddress(text: string, entry: EgressEntry, { sessions }: SettledReport): boolean {
  const own = [entry.address, entry.address6, entry.publicAddress, sessions.at(-1)?.localAddress];
  const words = [...(text.match(IPV4) ?? []), ...Array.from(text.matchAll(IPV6), ([, word = '']) => word)];
  const named = new Set(words.filter((word) => isIP(word) !== 0).map(normalizeAddress));
  return own.some(
    (address) => address !== undefined && address !== null && named.has(normalizeAddress(address)),
  );
}

function entriesOf(counts: Partial<EgressCounts>): [keyof EgressCounts, number][] {
  // Sound: `counts` has no other keys.
  return Object.entries(counts).map(([name, n]) => [name as keyof EgressCounts, n]);
}

/**
 * Source addresses that cannot be used from this machine: a proxy that does not work, an address that no interface has.
 * Such an address is not used for a while, longer each time; then one message probes it. In memory only: the fault is
 * found again within one message.
 */
export interface EgressFaults {
  isUsable(entry: EgressEntry): boolean;
  /** Milliseconds until the entry is probed; 0: now. */
  waitMs(entry: EgressEntry): number;
  /** An attempt began. `ended` or `released` follows. */
  begun(entry: EgressEntry): void;
  /** An attempt ended. `fault`: why the address could not be used; null: it was used. Returns the new wait, ms. */
  ended(entry: EgressEntry, fault: string | null): number;
  /** An attempt ended, and nothing is known about the address. */
  released(entry: EgressEntry): void;
  list(): EgressFault[];
}

export interface EgressFault {
  entry: string;
  error: string;
  waitMs: number;
}

/** Consecutive faults after which the address is not used: a proxy reports some failures of a destination as its own. */
const MAX_FAULTS = 2;
const FIRST_WAIT_MS = 30 * SECOND;
const MAX_WAIT_MS = 10 * MINUTE;
/** How long a message waits while another one probes the address. */
const PROBE_WAIT_MS = 5 * SECOND;

interface Fault {
  failures: number;
  until: number;
  error: string;
  /** Attempts in flight that began after the wait. */
  probes: number;
}

/** `clock`: monotonic. Entries without a name are always usable: they have no alternative. */
export function createEgressFaults(clock: Clock): EgressFaults {
  const faults = new Map<string, Fault>();
  const faultOf = ({ name }: EgressEntry) =>
    faults.size === 0 || name === null ? undefined : faults.get(name);
  const mayProbe = (fault: Fault) => fault.until <= clock.now();

  const waitMs = (entry: EgressEntry): number => {
    const fault = faultOf(entry);
    if (fault === undefined) return 0;
    if (fault.failures < MAX_FAULTS) return 0;
    if (!mayProbe(fault)) return fault.until - clock.now();
    return fault.probes === 0 ? 0 : PROBE_WAIT_MS;
  };
  return {
    isUsable: (entry) => waitMs(entry) === 0,
    waitMs,
    begun: (entry) => {
      const fault = faultOf(entry);
      if (fault !== undefined) fault.probes++;
    },
    ended: (entry, error) => {
      const { name } = entry;
      if (name === null) return 0;
      const known = faults.get(name);
      if (error === null) {
        faults.delete(name);
        return 0;
      }
      // Messages that were in flight together are one fault.
      if (known !== undefined && !mayProbe(known)) return known.until - clock.now();
      const failures = (known?.failures ?? 0) + 1;
      const doublings = Math.min(failures - MAX_FAULTS, 16);
      const wait = doublings < 0 ? 0 : Math.min(FIRST_WAIT_MS * 2 ** doublings, MAX_WAIT_MS);
      faults.set(name, { failures, until: clock.now() + wait, error, probes: 0 });
      return wait;
    },
    released: (entry) => {
      const fault = faultOf(entry);
      if (fault !== undefined && fault.probes > 0) fault.probes--;
    },
    list: () =>
      [...faults].map(([entry, { error, until }]) => ({
        entry,
        error,
        waitMs: Math.max(0, until - clock.now()),
      })),
  };
}
