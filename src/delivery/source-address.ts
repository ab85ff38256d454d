import { isIP, isIPv6 } from 'node:net';
import { type Clock, DAY, MINUTE, SECOND } from '../core/clock.ts';
import { normalizeAddress } from '../dns/address-kinds.ts';
import { PHASES_ABOUT_ADDRESS } from '../mail/classify/classify.ts';
import type { Context } from '../store/context.ts';
import type { EgressCounts } from '../store/egress/egress-counts.ts';
import { type QueuePriority, TRANSACTIONAL_PRIORITY } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import { type AddressBlock, createAddressHealth, type HealthChange, presentBlock } from './address-health.ts';
import type { AttemptResult } from './attempt-result.ts';
import { addressOf, type EgressEntry, type EgressPools, reachingEntries } from './egress-pools.ts';
import type { EgressProxies } from './proxies.ts';
import { createRamp, type RampShare, type Sender } from './ramp.ts';
import { createEgressUsage, createWarmup, reservedForTransactional } from './warmup.ts';
import type { AttemptReport, TargetHost } from './worker/protocol.ts';

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
  /** Whose ramp applies; absent: none does. */
  sender?: Sender | undefined;
}

/** Whose refusals of an address count together; null: addresses are not judged. */
export function receiverOf({ provider, receiver }: EgressMail): string | null {
  return provider === null ? null : (receiver ?? provider);
}

/** The source address of one attempt, and what the attempt counts toward. `createEgress` describes how it ends. */
export interface EgressTicket {
  entry: EgressEntry;
  /** The provider to which the message counts. */
  countedAs: string;
  /** Epoch ms at which the day of the count begins. */
  day: number;
  pool: string;
  mail: EgressMail;
  /** See `receiverOf`. */
  receiver: string | null;
  /** Whether the provider refuses the address, and the attempt tests whether it still does. */
  isProbe: boolean;
  /** What it counts toward of the ramp of a new sender. */
  ramp: RampShare;
}

export type SettledReport = Pick<AttemptReport, 'sessions'> & {
  conclusion: AttemptReport['conclusion'] | 'worker-lost';
  /** Absent: no reply decided. */
  phase?: AttemptReport['phase'];
};

/** What a message waits for: a limit, or an address that can be used. */
export interface EgressObstacle {
  kind: 'warmup' | 'ramp' | 'unusable' | 'blocked';
  /** Of a ramp: it is that of one domain, and mail of others may be sent. */
  isOfDomain?: boolean;
  /** Of an address that is blocked. */
  block?: AddressBlock;
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

/** What an attempt means for the source address that it used, see `createEgress`. */
export interface Settlement {
  /** The result, deferred for `OTHER_ADDRESS_WAIT_MS` where another address can send the message. */
  result: AttemptResult;
  /** Writes the counts, the health and the step of the warm-up in that unit of work. May be repeated after a rollback. */
  record(tables: Tables): void;
  /** The entry and the provider, for the record of the attempt; undefined: the system chose the address. */
  used: { egress: string; provider: string } | undefined;
}

/** How long mail waits for the first resolution of a proxy's name. */
const UNRESOLVED_WAIT_MS = 5 * SECOND;
/** After this time a message is sent again from another address. */
const OTHER_ADDRESS_WAIT_MS = 2 * SECOND;
const MAX_PROBLEMS = 100;

interface Choice {
  entry: EgressEntry;
  isProbe: boolean;
}

export type Egress = ReturnType<typeof createEgress>;

/**
 * Which source address sends a message: the one that the connection slot prefers, unless it cannot be used, the provider
 * refuses it, or its limit of the day is used up; then the next one of the pool. The limit of a warm-up is never exceeded
 * except by transactional mail that no other address can take (`delivery.warmup.transactionalFactor`).
 *
 * A ticket belongs to one attempt. Its owner ends it exactly once: with `release` if no server was contacted, else
 * with `settle`, and calls `record` of the settlement in the unit of work that records the outcome. Memory is updated
 * immediately; `record` writes the same.
 *
 * Reads the refused addresses from the database now, the counts of an entry at its first use on a day, and the steps of
 * warm-ups at each use, as commands of other processes change them. Starts no timer: `refresh` evaluates complaints.
 * `onRefused` is called in the unit of work that records that an address is refused.
 */
export function createEgress(
  context: Pick<Context, 'config' | 'clock' | 'monotonic' | 'log' | 'tables' | 'writer'>,
  { pools, proxies, onRefused }: EgressCollaborators,
) {
  const { config, clock, log, tables } = context;
  const usage = createEgressUsage(context);
  const faults = createAddressFaults(context.monotonic);
  const health = createAddressHealth(clock, tables.egressHealth.all());
  const warmup = createWarmup(context, { pools, usage });
  const ramp = createRamp(context);

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
    const { transactional, marketing, inFlight } = usage.of(entry.name, countedAs);
    const used = transactional + marketing + inFlight;
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
    const text = `waits for ${what} of ${address} at ${countedAs} (${used} of ${cap} used${kept})`;
    return { kind: 'warmup', until, text };
  }

  function unusable(entry: EgressEntry): EgressObstacle | null {
    const waitMs = proxies.isResolved(entry) ? faults.waitMs(entry) : UNRESOLVED_WAIT_MS;
    if (waitMs === 0) return null;
    const text = `waits for the source address ${addressOf(entry)}, which cannot be used now`;
    return { kind: 'unusable', until: clock.now() + Math.ceil(waitMs), text };
  }

  /** What mail waits for that only a blocked address can send; null: the address is not blocked. */
  function blockOf(entry: EgressEntry, receiver: string | null): EgressObstacle | null {
    const row = health.blockOf(entry, receiver);
    if (row === null) return null;
    const text = `waits until ${row.provider} accepts mail from ${addressOf(entry)} again`;
    return { kind: 'blocked', block: presentBlock(config, row), until: health.probeAt(row), text };
  }

  /** Whether an entry other than `entry` could send the message, now or when its quota allows it. */
  function hasAlternative({ entry, pool, mail, receiver }: EgressTicket): boolean {
    return reachingEntries(pools.entries(pool), mail.hosts).some(
      (other) => other !== entry && faults.waitMs(other) === 0 && !health.isRefused(other, receiver),
    );
  }

  /** The first usable entry from `first` on, else the obstacle that ends first. */
  function choose(entries: readonly EgressEntry[], first: number, mail: EgressMail): Choice | EgressObstacle {
    const receiver = receiverOf(mail);
    const ordered = [...entries.slice(first), ...entries.slice(0, first)];
    const areAllRefused = ordered.every((entry) => health.isRefused(entry, receiver));
    const obstacles: EgressObstacle[] = [];
    const usable = ordered.filter((entry) => {
      const found = unusable(entry);
      if (found !== null) obstacles.push(found);
      return found === null;
    });
    // When a provider refuses all addresses, those that it does not block are used.
    const isAvoided = (entry: EgressEntry) =>
      areAllRefused ? health.blockOf(entry, receiver) !== null : health.isRefused(entry, receiver);
    const accepted = usable.filter((entry) => !isAvoided(entry));
    const avoided = usable.filter(isAvoided);
    obstacles.push(...avoided.flatMap((entry) => blockOf(entry, receiver) ?? []));
    const probe = avoided.find(
      (entry) => health.mayProbe(entry, receiver) && quotaOf(entry, mail, 1) === null,
    );
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
    const receiver = receiverOf(mail);
    return entries.every(
      (entry) =>
        entry.warmup === undefined &&
        !health.isRefused(entry, receiver) &&
        faults.waitMs(entry) === 0 &&
        proxies.isResolved(entry),
    );
  }

  /** Why the message cannot be sent now from an address of the pool; null: it can. */
  function obstacle(pool: string, mail: EgressMail): EgressObstacle | null {
    const ofSender = ramp.obstacle(mail.sender, mail.priority);
    if (ofSender !== null) return ofSender;
    const entries = reachingEntries(pools.entries(pool), mail.hosts);
    if (isUnrestricted(entries, mail)) return null;
    const choice = choose(entries, 0, mail);
    return 'isProbe' in choice ? null : choice;
  }

  /** An address for one attempt; null: none can send the message now. */
  function take(site: { key: string; pool: string }, slot: number, mail: EgressMail): EgressTicket | null {
    const { pool } = site;
    if (ramp.obstacle(mail.sender, mail.priority) !== null) return null;
    const entries = reachingEntries(pools.entries(pool), mail.hosts);
    // Sites begin with different entries, so that each entry is the first one of some.
    const first = entries.length === 1 ? 0 : (hash(site.key) + slot) % entries.length;
    const preferred = entries[first];
    const choice =
      preferred !== undefined && isUnrestricted(entries, mail)
        ? { entry: preferred, isProbe: false }
        : choose(entries, first, mail);
    if (!('isProbe' in choice)) return null;
    const { entry, isProbe } = choice;
    const countedAs = mail.provider === null ? '' : usage.countedAs(entry, mail.provider);
    const ticket = {
      entry,
      countedAs,
      day: usage.today(),
      pool,
      mail,
      receiver: receiverOf(mail),
      isProbe,
      ramp: ramp.begin(mail.sender, mail.priority),
    };
    const counts = countsOf(ticket);
    if (counts !== null) counts.inFlight++;
    faults.begun(entry);
    setProbing(ticket, true);
    return ticket;
  }

  /** Null: the ticket counts nowhere, or its day (UTC) is over. */
  function countsOf({ entry, mail, countedAs, day }: EgressTicket) {
    if (entry.name === null || mail.provider === null || day !== usage.today()) return null;
    return usage.of(entry.name, countedAs);
  }

  function setProbing({ isProbe, entry, receiver }: EgressTicket, isProbing: boolean): void {
    if (isProbe && receiver !== null) health.setProbing(entry, receiver, isProbing);
  }

  /** `counted`: whether a server saw the message. */
  function end(ticket: EgressTicket, counted: boolean): void {
    ramp.end(ticket.ramp, ticket.mail.priority, counted);
    const counts = countsOf(ticket);
    // Counts that were read from the database again have no messages in flight.
    if (counts !== null && counts.inFlight > 0) counts.inFlight--;
    setProbing(ticket, false);
  }

  function release(ticket: EgressTicket): void {
    end(ticket, false);
    faults.released(ticket.entry);
  }

  function settle(ticket: EgressTicket, result: AttemptResult, report: SettledReport): Settlement {
    end(ticket, isCounted(result, report));
    const { entry, countedAs, day, mail } = ticket;
    const waitMs = judgeUse(ticket, report);
    const used = entry.name === null ? undefined : { egress: entry.name, provider: countedAs };
    if (mail.provider === null || !isCounted(result, report))
      return { ...withoutRecord(deferForAddress(ticket, result, waitMs)), used };
    const added: Partial<EgressCounts> = {
      [mail.priority === TRANSACTIONAL_PRIORITY ? 'transactional' : 'marketing']: 1,
      ...outcomeOf(result),
    };
    const counts = countsOf(ticket);
    if (counts !== null) for (const [name, n] of entriesOf(added)) counts[name] += n;
    const change = judge(ticket, result, report);
    return {
      result: { ...deferForAddress(ticket, result, 0), address: effectOf(ticket, result, report, change) },
      record: (tx) => {
        if (entry.name !== null) tx.egressCounts.add({ day, entry: entry.name, provider: countedAs }, added);
        if (change?.kind === 'put') {
          tx.egressHealth.put(change.row);
          if (change.isNew) onRefused?.(tx, presentBlock(config, change.row));
        }
        if (change?.kind === 'remove') tx.egressHealth.remove(change.entry, change.provider);
        if (counts !== null) warmup.evaluate(tx, entry, countedAs);
      },
      used,
    };
  }

  /** What the attempt shows about whether the address can be used from this machine. Returns the new wait, ms. */
  function judgeUse({ entry }: EgressTicket, report: SettledReport): number {
    const { sessions, conclusion } = report;
    const fault = conclusion === 'egress-failed' ? (sessions.at(-1)?.error ?? 'unknown') : null;
    // Where IPv6 alone fails, only mail to hosts without IPv4 waits: one account can have many such destinations.
    const isOnlyIpv6 =
      fault !== null && entry.address !== undefined && sessions.every(({ address }) => isIPv6(address));
    // Without a session nothing is known about the address: no host was contacted, or the worker was lost.
    const isKnown = sessions.length > 0 && !isOnlyIpv6;
    const waitMs = isKnown ? faults.ended(entry, fault) : 0;
    if (!isKnown) faults.released(entry);
    if (sessions.length > 0 && fault !== null)
      log.warn(
        { entry: entry.name, address: addressOf(entry), error: fault, waitMs: Math.round(waitMs) },
        'source address cannot be used',
      );
    return waitMs;
  }

  /** What the attempt shows about whether the receiver accepts the address. */
  function judge(ticket: EgressTicket, result: AttemptResult, report: SettledReport): HealthChange | null {
    const { entry, receiver } = ticket;
    if (receiver === null) return null;
    if (result.classification.action === 'deliver') {
      const change = health.accepted(entry, receiver);
      if (change?.kind === 'remove')
        log.info(
          { entry: change.entry, provider: receiver },
          'source address accepted by the provider again',
        );
      return change;
    }
    if (!isRefusal(result)) return null;
    const { reply } = result;
    const isNamed = namesAddress(reply.text, entry, report);
    const isBlock = report.phase !== undefined && PHASES_ABOUT_ADDRESS.has(report.phase);
    const change = health.refused(entry, receiver, { reply, isNamed, isBlock });
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
    const isUnusable = result.failure === 'egress-failed';
    const isAvoided = health.isRefused(ticket.entry, ticket.receiver);
    if (!isUnusable && !(isAvoided && isRefusal(result))) return result;
    const canChange = hasAlternative(ticket);
    if (!canChange && waitMs === 0) return result;
    const retryAfterMs = canChange ? OTHER_ADDRESS_WAIT_MS : waitMs;
    const { classification } = result;
    return {
      ...result,
      classification: { ...classification, action: 'defer', suppress: 'never', retryAfterMs },
    };
  }

  /** What the attempt means for the address, beyond the message. */
  function effectOf(
    ticket: EgressTicket,
    result: AttemptResult,
    report: SettledReport,
    change: HealthChange | null,
  ): AttemptResult['address'] {
    const { entry, receiver } = ticket;
    const { bounceClass, scope } = result.classification;
    if (scope === 'sender' && bounceClass === 'rate-limited')
      return namesAddress(result.reply.text, entry, report) ? 'throttled' : undefined;
    if (change?.kind === 'remove') return change.wasBlocked ? 'recovered' : undefined;
    if (!isRefusal(result)) return undefined;
    const isLeft = health.isRefused(entry, receiver) && hasAlternative(ticket);
    return isLeft || health.blockOf(entry, receiver) !== null ? 'refused' : undefined;
  }

  /** Addresses that cannot be used, or that a provider refuses: at most 100. */
  function problems(): EgressProblem[] {
    const refused = health.all().map(({ entry, provider, reply }) => ({ entry, provider, reason: reply }));
    return [...faults.list(), ...refused].slice(0, MAX_PROBLEMS);
  }

  /** The blocked addresses, for which mail waits: at most 100. */
  function blocks(): (AddressBlock & { entry: string })[] {
    const blocked = health.all().filter((row) => row.blocked === 1);
    return blocked.slice(0, MAX_PROBLEMS).map((row) => ({ entry: row.entry, ...presentBlock(config, row) }));
  }

  /** When mail is due that waits for an address, epoch ms, unless it expires before. */
  function waitEnds(): number[] {
    const starts = pools.all().flatMap(({ warmup: setting }) => setting?.started ?? []);
    const probes = health.all().flatMap((row) => (row.blocked === 1 ? [row.probe_at] : []));
    return [usage.today() + DAY, ...starts.map((date) => Date.parse(date)), ...probes];
  }

  /** Lets one message probe each refused address now. Returns when the mail is due that waited for it. */
  function probeNow(): number[] {
    const ends = waitEnds();
    health.probeNow();
    return ends;
  }

  return {
    obstacle,
    take,
    release,
    settle,
    /** Evaluates complaints. Call about once per second. */
    refresh: warmup.refresh,
    noticeChange: warmup.noticeChange,
    waitEnds,
    problems,
    blocks,
    probeNow,
    warmupUse: warmup.use,
    /** How many marketing messages of a new account or domain may still leave today. */
    marketingLeft: ramp.marketingLeft,
  };
}

interface EgressCollaborators {
  pools: EgressPools;
  proxies: Pick<EgressProxies, 'isResolved'>;
  onRefused?: (tables: Tables, block: AddressBlock) => void;
}

/** The settlement of an attempt that counts nowhere. */
export function withoutRecord(result: AttemptResult): Settlement {
  return { result, record: () => {}, used: undefined };
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

/** Consecutive faults after which the address is not used: a proxy reports some failures of a destination as its own. */
const MAX_FAULTS = 2;
const FIRST_WAIT_MS = 30 * SECOND;
const MAX_WAIT_MS = 10 * MINUTE;
/** How long a message waits while another one probes the address. */
const PROBE_WAIT_MS = 5 * SECOND;

interface AddressFault {
  failures: number;
  until: number;
  error: string;
  /** Attempts in flight that began after the wait. */
  probes: number;
}

/**
 * Source addresses that cannot be used from this machine: a proxy that does not work, an address that no interface has.
 * Such an address is not used for a while, longer each time; then one message probes it. In memory only: the fault is
 * found again within one message. Entries without a name are always usable: they have no alternative. `clock`: monotonic.
 */
function createAddressFaults(clock: Clock) {
  const faults = new Map<string, AddressFault>();
  const faultOf = ({ name }: EgressEntry) =>
    faults.size === 0 || name === null ? undefined : faults.get(name);
  const mayProbe = (fault: AddressFault) => fault.until <= clock.now();

  /** Milliseconds until the entry is probed; 0: it can be used. */
  function waitMs(entry: EgressEntry): number {
    const fault = faultOf(entry);
    if (fault === undefined || fault.failures < MAX_FAULTS) return 0;
    if (!mayProbe(fault)) return fault.until - clock.now();
    return fault.probes === 0 ? 0 : PROBE_WAIT_MS;
  }

  /** An attempt began. `ended` or `released` follows. */
  function begun(entry: EgressEntry): void {
    const fault = faultOf(entry);
    if (fault !== undefined) fault.probes++;
  }

  /** An attempt ended. `error`: why the address could not be used; null: it was used. Returns the new wait, ms. */
  function ended({ name }: EgressEntry, error: string | null): number {
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
  }

  /** An attempt ended, and nothing is known about the address. */
  function released(entry: EgressEntry): void {
    const fault = faultOf(entry);
    if (fault !== undefined && fault.probes > 0) fault.probes--;
  }

  const list = () => Array.from(faults, ([entry, { error }]) => ({ entry, provider: null, reason: error }));
  return { waitMs, begun, ended, released, list };
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193) >>> 0;
  return value;
}
