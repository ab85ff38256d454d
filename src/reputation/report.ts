import { isIP } from 'node:net';
import { DAY } from '../core/clock.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import { normalizeDomain } from '../mail/address.ts';
import type { DmarcDaySum } from '../store/domains/dmarc-reports.ts';
import type { DomainRow } from '../store/domains/domains.ts';
import { readQuery } from '../store/readers/reads.ts';
import {
  emptyReputationCounts,
  type ReputationCounts,
  type ReputationRow,
} from '../store/reputation/reputation-counts.ts';
import type { SpamRateRow } from '../store/reputation/spam-rates.ts';
import type { Tables } from '../store/tables.ts';
import { CHANGE_WINDOW_DAYS, type DailyCounts, type ProviderChange, providerChanges } from './changes.ts';
import { addCounts, attemptsOf, countsOf } from './rates.ts';

/*
 * The reputation of an account: what mailbox providers do with its mail, by provider and day, for each domain and source
 * address, from counts that are kept with each event.
 */

export interface ReputationQuery {
  accountId: string;
  /** Epoch ms, the present. */
  now: number;
  /** Days (UTC) up to today, which is included. */
  days: number;
  /** The ids of the domains; undefined: all. */
  domainIds?: string[] | undefined;
  /** Name of an entry of `delivery.egress`; undefined: all. */
  source?: string | undefined;
}

export interface Reputation {
  /** Epoch ms, whole days. */
  from: number;
  to: number;
  total: ReputationCounts;
  /** Days with counts, oldest first. */
  days: DayCounts[];
  /** The provider with the most attempts first. */
  providers: { provider: string; counts: ReputationCounts; days: DayCounts[] }[];
  /** Most attempts first, at most MAX_LISTED. `name` null: the domain was deleted. */
  domains: { domainId: string; name: string | null; counts: ReputationCounts }[];
  sources: { name: string; counts: ReputationCounts }[];
  dmarc: { messages: number; passed: number; days: { day: number; messages: number; passed: number }[] };
  changes: ProviderChange[];
  spamRates: SpamRateRow[];
}

export interface DayCounts {
  day: number;
  counts: ReputationCounts;
}

export const MAX_REPUTATION_DAYS = 90;
/** Domains and source addresses that are listed. */
const MAX_LISTED = 100;
/** Domains whose DMARC reports are read, those with the most mail first: a year of one has thousands of rows. */
const MAX_DMARC_DOMAINS = 50;
export const MAX_SHOWN_SPAM_RATES = 5000;

/** Reads the reputation; runs in reader threads. Its time depends on the days and on at most 2,000 combinations of each. */
export const reputationReport = readQuery(
  'reputationReport',
  (tables: Tables, { accountId, now, days, domainIds, source }: ReputationQuery): Reputation => {
    const today = now - (now % DAY);
    const from = today - (days - 1) * DAY;
    const to = today + DAY;
    const named = domainsOf(tables, accountId);
    const chosen = domainIds === undefined ? null : new Set(domainIds);
    const sums = createSums();
    const compared: DailyCounts[] = [];
    const firstCompared = today - CHANGE_WINDOW_DAYS * DAY;
    for (let day = Math.min(from, firstCompared); day < to; day += DAY)
      for (const row of tables.reputationCounts.ofDay(day, accountId)) {
        if (chosen !== null && !chosen.has(row.domainId)) continue;
        if (source !== undefined && row.source !== source) continue;
        const name = named.get(row.domainId)?.name;
        if (day >= firstCompared && name !== undefined)
          compared.push({ domain: name, provider: row.provider, day, counts: row });
        if (day >= from) sums.add(row);
      }
    const domains = byAttempts(sums.domains);
    return {
      from,
      to,
      ...sums.ofProviders(),
      domains: domains.slice(0, MAX_LISTED).map(([domainId, counts]) => ({
        domainId,
        name: named.get(domainId)?.name ?? null,
        counts,
      })),
      sources: byAttempts(sums.sources)
        .slice(0, MAX_LISTED)
        .map(([name, counts]) => ({ name, counts })),
      dmarc: dmarcOf(tables, dmarcNames(named, chosen, domains), from, to),
      changes: providerChanges(compared, today),
      spamRates: tables.spamRates
        .ofPeriod(accountId, from, to, MAX_SHOWN_SPAM_RATES)
        .filter((row) => chosen === null || isAbout(row, chosen, named)),
    };
  },
);

/** The ids of a domain that is named by id or by name, which several domains may have; undefined: all. */
export function domainIdsOf(
  tables: Tables,
  accountId: string,
  named: string | undefined,
): string[] | Refusal | undefined {
  if (named === undefined) return undefined;
  const name = normalizeDomain(named);
  const ids = tables.domains
    .list(accountId)
    .filter((row) => row.domain_id === named || row.name === name)
    .map((row) => row.domain_id);
  return ids.length === 0 ? refuse('DOMAIN_NOT_FOUND', `The account has no domain ${named}`) : ids;
}

/** The domains of an account by id. */
function domainsOf(tables: Tables, accountId: string): Map<string, DomainRow> {
  return new Map(tables.domains.list(accountId).map((row) => [row.domain_id, row]));
}

/** Sums of rows. Each row is added to three of them; the others are sums of these. */
function createSums() {
  const byProvider = new Map<string, Map<number, ReputationCounts>>();
  const domains = new Map<string, ReputationCounts>();
  const sources = new Map<string, ReputationCounts>();
  return {
    domains,
    sources,
    add: (row: ReputationRow): void => {
      const { day, provider, domainId, source } = row;
      const ofProvider = byProvider.get(provider) ?? new Map<number, ReputationCounts>();
      byProvider.set(provider, ofProvider);
      addCounts(countsOf(ofProvider, day), row);
      addCounts(countsOf(domains, domainId), row);
      // Without a name: a message that was not sent yet, or the address that the system chooses.
      if (source !== '') addCounts(countsOf(sources, source), row);
    },
    /** In total, by day and by provider. */
    ofProviders: () => {
      const total = emptyReputationCounts();
      const days = new Map<number, ReputationCounts>();
      const providers = new Map<string, ReputationCounts>();
      for (const [provider, ofProvider] of byProvider)
        for (const [day, counts] of ofProvider)
          for (const sum of [total, countsOf(days, day), countsOf(providers, provider)])
            addCounts(sum, counts);
      return {
        total,
        days: inOrder(days),
        providers: byAttempts(providers).map(([provider, counts]) => ({
          provider,
          counts,
          days: inOrder(byProvider.get(provider) ?? new Map()),
        })),
      };
    },
  };
}

function byAttempts(sums: ReadonlyMap<string, ReputationCounts>): [string, ReputationCounts][] {
  const volume = (counts: ReputationCounts) => attemptsOf(counts) || counts.volume;
  return [...sums].toSorted(([one, a], [two, b]) => volume(b) - volume(a) || one.localeCompare(two));
}

function inOrder(days: ReadonlyMap<number, ReputationCounts>): DayCounts[] {
  return [...days].toSorted(([a], [b]) => a - b).map(([day, counts]) => ({ day, counts }));
}

/**
 * Names of domains whose reports the account may see: those with a verified DKIM record, because several accounts may
 * register a name. The domains with the most mail first.
 */
function dmarcNames(
  named: ReadonlyMap<string, DomainRow>,
  chosen: ReadonlySet<string> | null,
  byMail: readonly [domainId: string, counts: ReputationCounts][],
): string[] {
  const ids = new Set([...byMail.map(([domainId]) => domainId), ...named.keys()]);
  const names = [...ids].flatMap((domainId) => {
    const domain = named.get(domainId);
    const isShown = domain?.dkim_enabled === 1 && (chosen === null || chosen.has(domainId));
    return isShown ? [domain.name] : [];
  });
  return [...new Set(names)].slice(0, MAX_DMARC_DOMAINS);
}

function dmarcOf(
  { dmarcReports }: Tables,
  names: readonly string[],
  from: number,
  to: number,
): Reputation['dmarc'] {
  const days = new Map<number, { messages: number; passed: number }>();
  const total = { messages: 0, passed: 0 };
  // A report may end at the first moment of the day after the one that it is about.
  const period = { from: from + 1, to: to + 1, limit: MAX_REPUTATION_DAYS + 1 };
  for (const name of names)
    for (const { day: date, messages, passed } of dmarcReports.days(name, period)) {
      const at = startOf(date);
      const sum = days.get(at) ?? { messages: 0, passed: 0 };
      days.set(at, sum);
      for (const each of [sum, total]) {
        each.messages += messages;
        each.passed += passed;
      }
    }
  return {
    ...total,
    days: [...days].toSorted(([a], [b]) => a - b).map(([day, sum]) => ({ day, ...sum })),
  };
}

function startOf(date: DmarcDaySum['day']): number {
  return Date.parse(`${date}T00:00:00Z`);
}

/** Whether a spam rate is about one of the domains, or a domain above it. Those of addresses are about all mail. */
function isAbout(
  { about }: SpamRateRow,
  chosen: ReadonlySet<string>,
  named: ReadonlyMap<string, DomainRow>,
): boolean {
  return [...chosen].some((domainId) => {
    const name = named.get(domainId)?.name;
    return name === undefined || isIP(about) !== 0 || name === about || name.endsWith(`.${about}`);
  });
}
