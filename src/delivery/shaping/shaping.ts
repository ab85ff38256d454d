import { setImmediate as nextIteration } from 'node:timers/promises';
import { Gauge, type Registry } from 'prom-client';
import { type Clock, HOUR, iso, SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { createClassifier } from '../../mail/classify/classifier.ts';
import {
  createUnclassifiedReplies,
  type UnclassifiedReplies,
  type UnclassifiedReply,
} from '../../mail/classify/unclassified.ts';
import type { Context } from '../../store/context.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { SiteLimitRow } from '../../store/delivery/site-limits.ts';
import type { Site } from '../scheduling/site.ts';
import { createSites, type Sites } from '../scheduling/sites.ts';
import { createOpenConnections } from '../scheduling/slots.ts';
import { createFeedback } from './feedback.ts';
import type { LimiterMemory, SiteLimits, SiteMemory } from './limiter.ts';
import { createHostAnswers } from './profiles.ts';

const MAX_FIRST_SUSPENSION_MS = 60 * SECOND;

/**
 * The sites with their limits, and what replies change about them. Reads the stored limits of sites now. Starts no timer:
 * changed limits and replies without known wording are stored by `write` only. `isPaused`: whether the operator has paused
 * a site. `idleConnections`: what the workers keep.
 */
export function createShaping(
  context: Pick<Context, 'config' | 'clock' | 'monotonic' | 'log' | 'tables' | 'writer'>,
  {
    isPaused = () => false,
    idleConnections,
  }: { isPaused?: (site: { key: string; pool: string }) => boolean; idleConnections: number },
) {
  const { clock, monotonic, log, writer } = context;
  const { delivery } = context.config;
  const hostAnswers = createHostAnswers();
  const sites: Sites = createSites({
    clock: monotonic,
    wallClock: clock,
    memoryOf: (key) => store.memoryOf(key),
    get shaping() {
      return delivery.shaping;
    },
    get firstSuspensionMs() {
      return Math.min(MAX_FIRST_SUSPENSION_MS, delivery.retry.first);
    },
    isPaused,
    openConnections: createOpenConnections({ limit: idleConnections, clock: monotonic }),
    hostAnswers,
  });
  const store = createSiteStore(context, sites.all);
  const unclassified = createUnclassifiedReplies(clock.now);
  return {
    sites,
    /** Classifies replies, with the rules of the configuration. */
    classify: createClassifier({
      get rules() {
        return delivery.replies;
      },
    }),
    feedback: createFeedback(context, {
      hostAnswers,
      onUnclassified: ({ phase, reply }, host) => {
        if (reply !== null) unclassified.add(phase, reply, host);
      },
    }),
    /** Stores what has changed. Call about once per second. Never rejects. */
    write: async (): Promise<void> => {
      await store.write();
      await storeUnclassified(unclassified, writer, log);
    },
    /** The limits in force at the sites in memory. */
    limits: (): LimitedSite[] => Array.from(sites.all(), (site) => ({ site: site.key, ...site.limits() })),
    /** Sites that asked to send less and have had one connection for hours, at most 20. */
    slow: (): SlowSite[] => slowSites(sites.all(), clock),
  };
}

/** A site that has been slow for hours, for the operator. */
export interface SlowSite {
  site: string;
  /** ISO 8601. */
  since: string;
  connections: number;
}

const SLOW_AFTER_MS = 2 * HOUR;
const MAX_SLOW_SITES = 20;

/** The sites that asked to send less and have had one connection for hours, at most 20: usually the sender's reputation. */
export function slowSites(sites: Iterable<{ key: string; limits(): SiteLimits }>, clock: Clock): SlowSite[] {
  const slow: SlowSite[] = [];
  for (const site of sites) {
    if (slow.length >= MAX_SLOW_SITES) break;
    const { since, connections } = site.limits();
    if (since !== null && connections === 1 && clock.now() - since >= SLOW_AFTER_MS)
      slow.push({ site: site.key, since: iso(since), connections });
  }
  return slow;
}

/** Rows in the table and in memory. Above it, rows of sites without mail are deleted, the oldest first. */
const MAX_ROWS = 10_000;
/** Rows that one unit of work writes. */
const WRITE_BATCH_SIZE = 50;
/** Sites that are compared in one iteration of the event loop. */
const COMPARE_BATCH_SIZE = 200;

/** The columns of a row that are compared. */
type State = Omit<SiteLimitRow, 'site' | 'account' | 'updated_at'>;
interface Change {
  site: string;
  account: string;
  /** Null: the state is the configured one again. */
  state: State | null;
}

/**
 * Stores what sites asked for, and returns it after a restart. `write` compares the state of the sites with what is
 * stored and writes the differences in portions: a message causes no write. A crash loses at most the changes since the
 * last run. Reads the newest 10,000 rows now; `memoryOf` returns them from memory, and no row is read again.
 */
export function createSiteStore(
  { clock, log, tables, writer }: Pick<Context, 'clock' | 'log' | 'tables' | 'writer'>,
  sites: () => Iterable<Site>,
) {
  /** What is stored, by site and account. */
  const stored = new Map<string, Map<string, State>>();
  let count = 0;
  let isFailing = false;
  // In this order they are deleted.
  for (const { site, account, updated_at: _, ...state } of tables.siteLimits.newest(MAX_ROWS).toReversed())
    remember(site, account, state);

  function remember(site: string, account: string, state: State | null): void {
    const rows = stored.get(site) ?? new Map<string, State>();
    if (rows.has(account)) count--;
    if (state === null) rows.delete(account);
    else {
      rows.set(account, state);
      count++;
    }
    if (rows.size > 0) stored.set(site, rows);
    else stored.delete(site);
  }

  function changesOf(site: Site): Change[] {
    const { limits, suspension, greylistMs, accounts } = site.memory();
    const known = stored.get(site.key);
    const hasState = limits !== null || suspension !== null || greylistMs !== null;
    // Almost all sites.
    if (known === undefined && !hasState && accounts.size === 0) return [];
    const now = new Map<string, State>();
    if (hasState)
      now.set('', { ...limitColumns(limits), ...suspensionColumns(suspension), greylist_ms: greylistMs });
    for (const [account, memory] of accounts)
      now.set(account, { ...limitColumns(memory), ...suspensionColumns(null), greylist_ms: null });
    const changes: Change[] = [];
    for (const account of new Set([...now.keys(), ...(known?.keys() ?? [])])) {
      const state = now.get(account) ?? null;
      const before = known?.get(account) ?? null;
      if (!isSame(state, before)) changes.push({ site: site.key, account, state });
    }
    return changes;
  }

  /** What has changed of all sites. */
  async function allChanges(): Promise<Change[]> {
    const changes: Change[] = [];
    let compared = 0;
    for (const site of sites()) {
      if (++compared % COMPARE_BATCH_SIZE === 0) await nextIteration();
      changes.push(...changesOf(site));
    }
    return changes;
  }

  /** The changes, with deletions that keep the number of rows within the bound; without new rows if that is not enough. */
  function withinBound(changes: Change[]): Change[] {
    const isNew = ({ site, account, state }: Change) =>
      state !== null && stored.get(site)?.has(account) !== true;
    let over = count + changes.filter(isNew).length - MAX_ROWS;
    if (over <= 0) return changes;
    const used = new Set(Array.from(sites(), ({ key }) => key));
    const deleted: Change[] = [];
    for (const [site, rows] of stored) {
      if (over <= 0) break;
      if (used.has(site)) continue;
      for (const account of rows.keys()) deleted.push({ site, account, state: null });
      over -= rows.size;
    }
    return [...deleted, ...(over > 0 ? changes.filter((change) => !isNew(change)) : changes)];
  }

  async function writeBatch(changes: readonly Change[]): Promise<void> {
    await writer.run(({ siteLimits }) => {
      const updated_at = clock.now();
      for (const { site, account, state } of changes) {
        if (state === null) siteLimits.remove(site, account);
        else siteLimits.put({ site, account, ...state, updated_at });
      }
    });
    for (const { site, account, state } of changes) remember(site, account, state);
  }

  function memoryOf(site: string): SiteMemory | null {
    const rows = stored.get(site);
    if (rows === undefined) return null;
    const own = rows.get('');
    const accounts = new Map<string, LimiterMemory>();
    for (const [account, state] of rows) {
      const memory = account === '' ? null : limiterMemory(state);
      if (memory !== null) accounts.set(account, memory);
    }
    const {
      suspensions = 0,
      suspended_until: suspendedUntil = 0,
      greylist_ms: greylistMs = null,
    } = own ?? {};
    return {
      limits: own === undefined ? null : limiterMemory(own),
      suspension: suspensions === 0 ? null : { suspensions, suspendedUntil },
      greylistMs,
      accounts,
    };
  }

  /**
   * Writes what has changed. Call about once per second. Never rejects: a failure is logged once, until one succeeds; the
   * next call writes the same changes.
   */
  async function write(): Promise<void> {
    try {
      const changes = withinBound(await allChanges());
      for (let at = 0; at < changes.length; at += WRITE_BATCH_SIZE)
        await writeBatch(changes.slice(at, at + WRITE_BATCH_SIZE));
      isFailing = false;
    } catch (error) {
      // The state in memory remains; the next run writes it.
      if (!isFailing) log.error({ err: error }, 'limits of sites could not be stored; trying again');
      isFailing = true;
    }
  }

  return { memoryOf, write };
}

function limitColumns(memory: LimiterMemory | null) {
  return {
    level: memory?.level ?? 0,
    pace: memory?.pace ?? 0,
    paused_until: Math.round(memory?.limitedUntil ?? 0),
    since: Math.round(memory?.since ?? 0),
    stepped_at: Math.round(memory?.steppedAt ?? 0),
  };
}

function suspensionColumns(memory: SiteMemory['suspension']) {
  return {
    suspensions: memory?.suspensions ?? 0,
    suspended_until: Math.round(memory?.suspendedUntil ?? 0),
  };
}

function limiterMemory(state: State): LimiterMemory | null {
  if (state.level === 0) return null;
  const { level, pace, paused_until: limitedUntil, since, stepped_at: steppedAt } = state;
  return { level, pace, limitedUntil, since, steppedAt };
}

function isSame(a: State | null, b: State | null): boolean {
  if (a === null || b === null) return a === b;
  return COMPARED.every((column) => a[column] === b[column]);
}

const COMPARED = [
  'level',
  'pace',
  'paused_until',
  'since',
  'stepped_at',
  'suspensions',
  'suspended_until',
  'greylist_ms',
] as const satisfies readonly (keyof State)[];

/**
 * Stores the replies that were counted since the last call, in portions. Replies that cannot be stored are counted again.
 * Never rejects.
 */
export async function storeUnclassified(
  replies: UnclassifiedReplies,
  writer: Writer,
  log: Log,
): Promise<void> {
  for (;;) {
    const batch = replies.take(WRITE_BATCH_SIZE);
    if (batch.length === 0) return;
    try {
      await writer.run((tables) => tables.unclassifiedReplies.add(batch.map(toRow)));
    } catch (error) {
      replies.giveBack(batch);
      log.warn({ err: error }, 'unclassified replies could not be stored; trying again later');
      return;
    }
  }
}

function toRow({ firstAt, lastAt, ...reply }: UnclassifiedReply) {
  return { ...reply, first_at: firstAt, last_at: lastAt };
}

/** A site with its limits in force. */
export type LimitedSite = SiteLimits & { site: string };

/** Sites with series of their own. */
const MAX_SITES = 50;
/** How long the gauges of a scrape share the sites that they show. */
const SHARED_MS = 500;
/** Characters of a site in a label; the names of many MX hosts are longer. */
const MAX_SITE_LENGTH = 120;

/** The site as a label. */
export function siteLabel(site: string): string {
  return site.length <= MAX_SITE_LENGTH ? site : `${site.slice(0, MAX_SITE_LENGTH - 1)}…`;
}

/** Registers the gauges of the limits in force. `sites`: all sites in memory. */
export function registerSiteMetrics(registry: Registry, sites: () => LimitedSite[]): void {
  let shown: { sites: LimitedSite[]; at: number } | null = null;
  const shownSites = () => {
    const now = performance.now();
    if (shown === null || now - shown.at > SHARED_MS) shown = { sites: topSites(sites()), at: now };
    return shown.sites;
  };
  const scope = `the ${MAX_SITES} sites that are slowed most, then those with the most messages in progress`;
  const gauge = (name: string, help: string, value: (site: LimitedSite) => number | null) => {
    const metric = new Gauge({
      name,
      help: `${help}: ${scope}.`,
      labelNames: ['site'],
      registers: [],
      collect() {
        this.reset();
        for (const site of shownSites()) {
          const current = value(site);
          if (current !== null) this.set({ site: siteLabel(site.site) }, current);
        }
      },
    });
    registry.registerMetric(metric);
  };
  gauge(
    'postrider_site_connections_limit',
    'Connections that a site may have now',
    ({ connections }) => connections,
  );
  gauge(
    'postrider_site_messages_per_second_limit',
    'Messages per second that may be sent to a site now, where that is limited',
    ({ perSecond }) => perSecond,
  );
  gauge(
    'postrider_site_backoff_steps',
    'Steps by which a site is slower than configured because it asked to send less; each halves connections and rate',
    ({ level }) => level,
  );
  gauge(
    'postrider_site_limited_seconds',
    'Time until mail is sent again to a site that asked to send less',
    ({ limitedMs }) => limitedMs / 1000,
  );
  gauge(
    'postrider_site_limited_accounts',
    'Accounts that are slowed at a site because it asked to send less of their mail',
    ({ accounts }) => accounts,
  );
}

/** The sites that are slowed most, then the busiest. */
function topSites(sites: readonly LimitedSite[]): LimitedSite[] {
  return sites
    .filter(({ level, inFlight, accounts }) => level > 0 || inFlight > 0 || accounts > 0)
    .toSorted((a, b) => b.level - a.level || b.accounts - a.accounts || b.inFlight - a.inFlight)
    .slice(0, MAX_SITES);
}
