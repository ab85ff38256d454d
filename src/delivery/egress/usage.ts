import { type Clock, DAY } from '../../core/clock.ts';
import { KNOWN_PROVIDERS } from '../../mail/providers.ts';
import { type EgressCounts, emptyCounts } from '../../store/egress/egress-counts.ts';
import { OTHER_PROVIDER } from '../../store/messages/hourly-counts.ts';
import type { Tables } from '../../store/tables.ts';
import type { EgressEntry } from '../routing/egress.ts';
import { dayOf } from './warmup.ts';

/** What an address has sent to a provider on a day, and what is in flight. */
export interface Usage extends EgressCounts {
  inFlight: number;
}

/**
 * The counts of today in memory, which the table `egress_counts` stores with the outcomes: after a crash only messages
 * that were in flight are missing. The owner adds to a `Usage` what it records.
 */
export interface EgressUsage {
  /** Epoch ms at which the current day begins. Reads the counts of a new day. */
  today(): number;
  /** The provider that a message counts to: the shared one when the entry has too many others. */
  countedAs(entry: EgressEntry, provider: string): string;
  /** `provider`: as `countedAs` returns it. */
  of(entry: string, provider: string): Usage;
  /** Usage of an entry by provider. */
  all(entry: string): ReadonlyMap<string, Usage>;
  /** Transactional messages of the day before. */
  transactionalBefore(entry: string, provider: string): number;
}

/** Providers of an entry and day with counts of their own: recipients' domains are chosen by callers. */
export const MAX_PROVIDERS = 1000;

interface EntryUsage {
  today: Map<string, Usage>;
  /** Transactional messages. */
  yesterday: Map<string, number>;
}

/**
 * Reads the counts of an entry from the database at its first use on a day (UTC), with those of the day before, and
 * drops all of them when the day changes. `countedAs` bounds the providers in memory.
 */
export function createEgressUsage({
  clock,
  tables,
}: {
  clock: Clock;
  tables: Pick<Tables, 'egressCounts'>;
}): EgressUsage {
  let day = Number.NaN;
  const entries = new Map<string, EntryUsage>();

  function today(): number {
    const now = dayOf(clock.now());
    if (now !== day) {
      day = now;
      entries.clear();
    }
    return day;
  }

  function load(entry: string): EntryUsage {
    const at = today();
    const known = entries.get(entry);
    if (known !== undefined) return known;
    const rows = tables.egressCounts.ofDay(at, entry, MAX_PROVIDERS + 1);
    const yesterday = tables.egressCounts.ofDay(at - DAY, entry, MAX_PROVIDERS + 1);
    const loaded = {
      today: new Map(rows.map(({ provider, ...counts }) => [provider, { ...counts, inFlight: 0 }])),
      yesterday: new Map(yesterday.map(({ provider, transactional }) => [provider, transactional])),
    };
    entries.set(entry, loaded);
    return loaded;
  }

  return {
    today,
    countedAs: (entry, provider) => {
      if (entry.name === null) return provider;
      // Without a warm-up no decision depends on the counts of small providers.
      if (entry.warmup === undefined) return KNOWN_PROVIDERS.has(provider) ? provider : OTHER_PROVIDER;
      const known = load(entry.name).today;
      return known.has(provider) || known.size < MAX_PROVIDERS ? provider : OTHER_PROVIDER;
    },
    of: (entry, provider) => {
      const known = load(entry).today;
      let usage = known.get(provider);
      if (usage === undefined) {
        usage = { ...emptyCounts(), inFlight: 0 };
        known.set(provider, usage);
      }
      return usage;
    },
    all: (entry) => load(entry).today,
    transactionalBefore: (entry, provider) => load(entry).yesterday.get(provider) ?? 0,
  };
}
