import { LRUCache } from 'lru-cache';
import type { Config } from '../config/schema.ts';
import { covers } from '../config/shaping.ts';
import { type Clock, HOUR, MINUTE, SECOND } from '../core/clock.ts';
import type { SmtpReply } from '../mail/reply.ts';
import type { EgressHealthRow } from '../store/egress/egress-health.ts';
import { addressOf, type EgressEntry } from './egress-pools.ts';

/*
 * Which source addresses a provider refuses. A refused address is avoided while another one of its pool can send to the
 * provider. After several refusals in phases in which a server knows nothing but the address it is blocked: mail that only
 * it can send waits. After a wait that doubles with each refusal one message probes the address; after several consecutive
 * accepted probes it has recovered.
 */

interface AddressRefusal {
  reply: SmtpReply;
  /** The reply names the address. */
  isNamed: boolean;
  /** The reply came in a phase in which the server knows the address alone. */
  isBlock: boolean;
}

/** What to store. */
export type HealthChange =
  /** `isNew`: the address was not refused before. */
  | { kind: 'put'; row: EgressHealthRow; isNew: boolean }
  /** `wasBlocked`: mail waited for the address. */
  | { kind: 'remove'; entry: string; provider: string; wasBlocked: boolean };

/** The first wait for a probe and the longest, of addresses that are avoided, and of those for which mail waits. */
const PROBE_WAITS = {
  avoided: { first: 15 * MINUTE, longest: 12 * HOUR },
  blocked: { first: 30 * MINUTE, longest: 4 * HOUR },
};
/** How long mail waits while another message probes the address. */
const PROBE_IN_FLIGHT_MS = 5 * SECOND;
/** Consecutive accepted probes after which the address has recovered. */
const PROBES_TO_RECOVER = 3;
/** Consecutive refusals after which the address counts as refused if none names it, and as blocked. */
const REFUSALS = 3;
/** Addresses and providers that are remembered; further refusals have no effect. */
const MAX_REFUSED = 500;
const MAX_REPLY_LENGTH = 300;

/** The name of the entry in the table `egress_health`. */
export function healthName({ name }: Pick<EgressEntry, 'name'>): string {
  return name ?? '';
}

/**
 * Begins with the rows `stored`; the caller writes the changes. Remembers at most 500 refusals of an address by a provider,
 * and for 2000 pairs how often the address was refused in a row, which is lost with a restart. `receiver` null: mail whose
 * addresses are not judged.
 */
export function createAddressHealth(clock: Clock, stored: readonly EgressHealthRow[]) {
  const keyOf = (entry: EgressEntry, receiver: string) => `${healthName(entry)} ${receiver}`;
  const rows = new Map(stored.slice(0, MAX_REFUSED).map((row) => [`${row.entry} ${row.provider}`, row]));
  const probing = new Set<string>();
  const refusals = new LRUCache<string, number>({ max: 2000 });

  /** Milliseconds until the address may be probed. A longer wait than any comes from a clock that was set back: it is over. */
  function waitMs(row: EgressHealthRow): number {
    const ms = row.probe_at - clock.now();
    return ms > 0 && ms <= PROBE_WAITS.avoided.longest ? ms : 0;
  }

  function isRefused(entry: EgressEntry, receiver: string | null): boolean {
    return receiver !== null && rows.size > 0 && rows.has(keyOf(entry, receiver));
  }

  /** The refusal of an address without which mail that only it can send waits; null: the address is not blocked. */
  function blockOf(entry: EgressEntry, receiver: string | null): EgressHealthRow | null {
    const row = receiver === null ? undefined : rows.get(keyOf(entry, receiver));
    return row?.blocked === 1 ? row : null;
  }

  /** Whether a message may be sent from a refused address now; at most one at a time. */
  function mayProbe(entry: EgressEntry, receiver: string | null): boolean {
    if (receiver === null) return false;
    const key = keyOf(entry, receiver);
    const row = rows.get(key);
    return row !== undefined && waitMs(row) === 0 && !probing.has(key);
  }

  /** When the next message may be sent from a refused address, epoch ms; while a probe is in flight, soon. */
  function probeAt(row: EgressHealthRow): number {
    return clock.now() + Math.max(waitMs(row), PROBE_IN_FLIGHT_MS);
  }

  /** Lets one message probe each refused address now. */
  function probeNow(): void {
    const now = clock.now();
    for (const [key, row] of rows) if (row.probe_at > now) rows.set(key, { ...row, probe_at: now });
  }

  /** A probe is in flight, or has ended. */
  function setProbing(entry: EgressEntry, receiver: string, isProbing: boolean): void {
    if (isProbing) probing.add(keyOf(entry, receiver));
    else probing.delete(keyOf(entry, receiver));
  }

  /** The provider refused the address. Null: too few replies to conclude that, or nothing changes. */
  function refused(
    entry: EgressEntry,
    provider: string,
    { reply, isNamed, isBlock }: AddressRefusal,
  ): HealthChange | null {
    const key = keyOf(entry, provider);
    const known = rows.get(key);
    if (known === undefined && rows.size >= MAX_REFUSED) return null;
    const count = Math.min((refusals.get(key) ?? 0) + 1, REFUSALS);
    refusals.set(key, count);
    if (known === undefined && !isNamed && count < REFUSALS) return null;
    const isWaiting = known !== undefined && known.passed === 0 && waitMs(known) > 0;
    const isBlocked =
      known?.blocked === 1 || (isBlock && (count >= REFUSALS || (known !== undefined && !isWaiting)));
    // Several messages that were in flight together are one refusal, but may show that the address is blocked.
    if (isWaiting && (known.blocked === 1 || !isBlocked)) return null;
    const failures = (known?.failures ?? 0) + (isWaiting ? 0 : 1);
    const { first, longest } = isBlocked ? PROBE_WAITS.blocked : PROBE_WAITS.avoided;
    const now = clock.now();
    const row: EgressHealthRow = {
      entry: healthName(entry),
      provider,
      since: known?.since ?? now,
      probe_at: now + Math.min(first * 2 ** Math.min(failures - 1, 16), longest),
      failures,
      passed: 0,
      blocked: isBlocked ? 1 : 0,
      reply: replyText(reply),
    };
    rows.set(key, row);
    return { kind: 'put', row, isNew: known === undefined };
  }

  /** The provider accepted a message from the address. Null: nothing changes. */
  function accepted(entry: EgressEntry, provider: string): HealthChange | null {
    const key = keyOf(entry, provider);
    if (refusals.size > 0) refusals.delete(key);
    const known = rows.size === 0 ? undefined : rows.get(key);
    // A message that was sent before the refusal proves nothing about the time after it.
    if (known === undefined || waitMs(known) > 0) return null;
    const passed = known.passed + 1;
    if (passed >= PROBES_TO_RECOVER) {
      rows.delete(key);
      return { kind: 'remove', entry: known.entry, provider, wasBlocked: known.blocked === 1 };
    }
    const row = { ...known, passed };
    rows.set(key, row);
    return { kind: 'put', row, isNew: false };
  }

  return {
    isRefused,
    blockOf,
    mayProbe,
    probeAt,
    probeNow,
    setProbing,
    refused,
    accepted,
    all: (): readonly EgressHealthRow[] => [...rows.values()],
  };
}

/** The lookbehind makes the time linear: of a run of such characters only the first one begins a search. */
const ADDRESS = /(?<![^\s<>()[\]])[^\s<>()[\]]+@[^\s<>()[\]]+/g;

/** The reply on one line, without the addresses of recipients. */
function replyText({ code, enhanced, text }: SmtpReply): string {
  const line = text.replace(/\s+/g, ' ').replace(ADDRESS, '@');
  const known = enhanced === null || line.includes(enhanced) ? '' : `${enhanced} `;
  return `${code} ${known}${line}`.slice(0, MAX_REPLY_LENGTH);
}

/** Where a source address is blocked, and how to end it. */
export interface AddressBlock {
  /** As receivers see it. */
  address: string;
  /** The shaping profile, MX hosts or provider that refuses it. */
  receiver: string;
  /** Epoch ms, like `nextProbeAt`. */
  since: number;
  nextProbeAt: number;
  /** The last refusal, without mail addresses. */
  reply: string;
  /** How to ask for the removal of the block, a sentence. */
  delisting: string;
}

/** Where the operators of blocklists remove addresses, by a word that replies have. */
const BLOCKLISTS: readonly (readonly [RegExp, string])[] = [
  [/spamhaus|abuseat/i, 'https://check.spamhaus.org'],
  [/spamcop/i, 'https://www.spamcop.net/bl.shtml'],
  [/barracudacentral/i, 'https://www.barracudacentral.org/rbl/removal-request'],
  [/sorbs/i, 'http://www.sorbs.net/lookup.shtml'],
  [/uceprotect/i, 'https://www.uceprotect.net/en/rblcheck.php'],
  [/psbl/i, 'https://psbl.org'],
  [/mailspike/i, 'https://mailspike.io/ip_verify'],
  [/blocklist\.de/i, 'https://www.blocklist.de/en/delist.html'],
  [/cloudmark|\bcsi\b/i, 'https://csi.cloudmark.com/en/reset/'],
  [/proofpoint/i, 'https://ipcheck.proofpoint.com'],
  [/senderscore|validity/i, 'https://www.senderscore.org'],
];
/** The path begins with a letter, so that the addresses in a reply are no link. */
const LINK = /https?:\/\/[^\s<>"')\]]+/i;

/**
 * How to ask for the removal of a block, a sentence: at the blocklist that the reply names, as the shaping profile of the
 * receiver states, at the link in the reply, else by its postmaster. `receiver`: see `AddressBlock`.
 */
function delistingOf({ delivery }: Pick<Config, 'delivery'>, receiver: string, reply: string): string {
  const list = BLOCKLISTS.find(([word]) => word.test(reply));
  if (list !== undefined) return `Request the removal at ${list[1]}.`;
  const [host = receiver] = receiver.split(',');
  const profile = delivery.shaping.find((one) => one.name === receiver || covers(one, host));
  if (profile !== undefined && profile.delisting !== '') return profile.delisting;
  const [link] = LINK.exec(reply) ?? [];
  if (link !== undefined) return `Follow ${withoutPunctuation(link)} in the reply.`;
  return `Ask the postmaster of ${host} to remove the block, and quote the reply.`;
}

/** The link without the punctuation marks of the sentence around it. */
function withoutPunctuation(link: string): string {
  let end = link.length;
  while ('.,;:'.includes(link.charAt(end - 1)) && end > 0) end--;
  return link.slice(0, end);
}

/** The block as events, explanations and the doctor present it. */
export function presentBlock(config: Pick<Config, 'delivery'>, row: EgressHealthRow): AddressBlock {
  const { entry, provider, since, probe_at: nextProbeAt, reply } = row;
  const setting = config.delivery.egress.find(({ name }) => name === entry);
  const address = addressOf(setting ?? { name: entry === '' ? null : entry });
  const delisting = delistingOf(config, provider, reply);
  return { address, receiver: provider, since, nextProbeAt, reply, delisting };
}
