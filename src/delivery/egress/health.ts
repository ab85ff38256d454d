import { LRUCache } from 'lru-cache';
import { HOUR, MINUTE } from '../../core/clock.ts';
import type { SmtpReply } from '../../mail/reply.ts';
import type { EgressHealthRow } from '../../store/egress/egress-standings.ts';

/**
 * Which source addresses a provider refuses. A refused address is avoided while another one of its pool can send to the
 * provider. After a wait that doubles with each refusal one message probes it; after several consecutive accepted probes
 * the address has recovered. The rows are durable: the caller writes what the functions return.
 */
export interface EgressHealth {
  isRefused(entry: string, provider: string): boolean;
  /** Null: it is not refused. */
  get(entry: string, provider: string): EgressHealthRow | null;
  /** Whether a message may be sent from a refused address now; at most one at a time. */
  mayProbe(entry: string, provider: string, now: number): boolean;
  /** A probe is in flight, or has ended. */
  setProbing(entry: string, provider: string, isProbing: boolean): void;
  /** The provider refused the address. `isNamed`: the reply names it. Null: too few replies to conclude that. */
  refused(refusal: AddressRefusal, now: number): HealthChange | null;
  /** The provider accepted a message from the address. Null: nothing changes. */
  accepted(entry: string, provider: string, now: number): HealthChange | null;
  all(): readonly EgressHealthRow[];
  load(rows: readonly EgressHealthRow[]): void;
}

export interface AddressRefusal {
  entry: string;
  provider: string;
  reply: SmtpReply;
  isNamed: boolean;
}

/** What to store. */
export type HealthChange =
  | { kind: 'put'; row: EgressHealthRow }
  | { kind: 'remove'; entry: string; provider: string };

const FIRST_PROBE_MS = 15 * MINUTE;
const MAX_PROBE_MS = 12 * HOUR;
/** Consecutive accepted probes after which the address has recovered. */
export const PROBES_TO_RECOVER = 3;
/** Consecutive replies that do not name the address, after which it counts as refused. */
const UNNAMED_REFUSALS = 3;
/** Addresses and providers that are remembered; further refusals have no effect. */
const MAX_REFUSED = 500;
const MAX_REPLY_LENGTH = 300;

/**
 * Empty until `load`. Remembers at most 500 refusals of an address by a provider, and for 2000 other pairs the replies
 * that do not name the address; those are lost with a restart.
 */
export function createEgressHealth(): EgressHealth {
  const rows = new Map<string, EgressHealthRow>();
  const probing = new Set<string>();
  const unnamed = new LRUCache<string, number>({ max: 2000 });
  const keyOf = (entry: string, provider: string) => `${entry} ${provider}`;

  return {
    isRefused: (entry, provider) => rows.size > 0 && rows.has(keyOf(entry, provider)),
    get: (entry, provider) => rows.get(keyOf(entry, provider)) ?? null,
    mayProbe: (entry, provider, now) => {
      const key = keyOf(entry, provider);
      const row = rows.get(key);
      return row !== undefined && row.probe_at <= now && !probing.has(key);
    },
    setProbing: (entry, provider, isProbing) => {
      const key = keyOf(entry, provider);
      if (isProbing) probing.add(key);
      else probing.delete(key);
    },
    refused: ({ entry, provider, reply, isNamed }, now) => {
      const key = keyOf(entry, provider);
      const known = rows.get(key);
      if (known === undefined) {
        const count = (unnamed.get(key) ?? 0) + 1;
        if (!isNamed && count < UNNAMED_REFUSALS) {
          unnamed.set(key, count);
          return null;
        }
        if (rows.size >= MAX_REFUSED) return null;
      }
      unnamed.delete(key);
      // Several messages that were in flight together are one refusal.
      if (known !== undefined && known.passed === 0 && known.probe_at > now) return null;
      const failures = (known?.failures ?? 0) + 1;
      const row = {
        entry,
        provider,
        since: known?.since ?? now,
        probe_at: now + Math.min(FIRST_PROBE_MS * 2 ** Math.min(failures - 1, 16), MAX_PROBE_MS),
        failures,
        passed: 0,
        reply: replyText(reply),
      };
      rows.set(key, row);
      return { kind: 'put', row };
    },
    accepted: (entry, provider, now) => {
      const key = keyOf(entry, provider);
      if (unnamed.size > 0) unnamed.delete(key);
      const known = rows.size === 0 ? undefined : rows.get(key);
      // A message that was sent before the refusal proves nothing about the time after it.
      if (known === undefined || known.probe_at > now) return null;
      const passed = known.passed + 1;
      if (passed >= PROBES_TO_RECOVER) {
        rows.delete(key);
        return { kind: 'remove', entry, provider };
      }
      const row = { ...known, passed };
      rows.set(key, row);
      return { kind: 'put', row };
    },
    all: () => [...rows.values()],
    load: (loaded) => {
      for (const row of loaded.slice(0, MAX_REFUSED)) rows.set(keyOf(row.entry, row.provider), row);
    },
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
