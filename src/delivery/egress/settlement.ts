import { isIP, isIPv6 } from 'node:net';
import type { Config } from '../../config/schema.ts';
import { type Clock, SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { normalizeAddress } from '../../dns/address-kinds.ts';
import { PHASES_ABOUT_ADDRESS } from '../../mail/classify/classify.ts';
import type { EgressCounts } from '../../store/egress/egress-counts.ts';
import { TRANSACTIONAL_PRIORITY } from '../../store/messages/queue.ts';
import type { Tables } from '../../store/tables.ts';
import type { AttemptResult } from '../attempt-result.ts';
import { addressOf, type EgressEntry } from '../routing/egress.ts';
import { presentBlock } from './delisting.ts';
import type { EgressFaults } from './faults.ts';
import type { EgressHealth, HealthChange } from './health.ts';
import {
  type AddressBlock,
  type EgressTicket,
  healthName,
  receiverOf,
  type SettledReport,
} from './ticket.ts';
import type { EgressUsage } from './usage.ts';
import type { EgressWarmup } from './warmup-state.ts';

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
