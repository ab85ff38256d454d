import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Registry } from 'prom-client';
import { type Clock, HOUR, iso, SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { addSeries } from '../../core/metrics.ts';
import { createClassifier } from '../../mail/classify/classifier.ts';
import {
  createUnclassifiedReplies,
  type UnclassifiedReplies,
  type UnclassifiedReply,
} from '../../mail/classify/unclassified.ts';
import type { Context } from '../../store/context.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { SiteLimitRow } from '../../store/delivery/site-limits.ts';
import type { Tables } from '../../store/tables.ts';
import type { Site } from '../scheduling/site.ts';
import { createSites, type Sites } from '../scheduling/sites.ts';
import { createOpenConnections } from '../scheduling/slots.ts';
import { createFeedback } from './feedback.ts';
import type { LimiterMemory, SiteLimits, SiteMemory } from './limiter.ts';
import { createHostAnswers } from './profiles.ts';

const MAX_FIRST_SUSPENSION_MS = 60 * SECOND;

export type Shaping = ReturnType<typeof createShaping>;

/**
 * The sites with their limits, and what replies change about them. Reads the stored limits of a site when it is created.
 * Starts no timer: changed limits and replies without known wording are stored by `write` only. `isPaused`: whether the
 * operator has paused a site. `idleConnections`: what the workers keep.
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

/**
 * Rows in the table. Above it, those that changed first are deleted: of sites that are not in memory, and above the second
 * number of all.
 */
const MAX_ROWS = 10_000;
const MAX_ALL_ROWS = 2 * MAX_ROWS;
/** Rows that one unit of work writes. */
const WRITE_BATCH_SIZE = 50;
/** Sites that are compared in one iteration of the event loop. */
const COMPARE_BATCH_SIZE = 200;

const NOTHING: SiteMemory = { limits: null, suspension: null, greylistMs: null, accounts: new Map() };

/** The row of a site or an account; `state` null: it is deleted, because the state is the configured one again. */
interface Change {
  site: string;
  account: string;
  state: SiteMemory | null;
}

/**
 * Stores what sites asked for, and returns it after a restart. `write` compares the state of the sites with what is
 * stored and writes the differences in portions: a message causes no write. A crash loses at most the changes since the
 * last run.
 */
export function createSiteStore(
  { clock, log, tables, writer }: Pick<Context, 'clock' | 'log' | 'tables' | 'writer'>,
  sites: () => Iterable<Site>,
) {
  /** What is stored of the sites in memory. Its parts are the objects of the site while they do not change. */
  const stored = new Map<string, SiteMemory>();
  let isFailing = false;

  /** The stored state of a site that is created; null: none. */
  function memoryOf(site: string): SiteMemory | null {
    const rows = tables.siteLimits.ofSite(site);
    if (rows.length === 0) return null;
    const own = rows.find(({ account }) => account === '');
    const memory = {
      limits: own === undefined ? null : limiterMemory(own),
      suspension:
        own === undefined || own.suspensions === 0
          ? null
          : { suspensions: own.suspensions, suspendedUntil: own.suspended_until },
      greylistMs: own?.greylist_ms ?? null,
      accounts: new Map(
        rows.flatMap((row): [string, LimiterMemory][] => {
          const limits = row.account === '' ? null : limiterMemory(row);
          return limits === null ? [] : [[row.account, limits]];
        }),
      ),
    };
    stored.set(site, memory);
    return memory;
  }

  function changesOf(site: string, now: SiteMemory): Change[] {
    const before = stored.get(site) ?? NOTHING;
    const { limits, suspension, greylistMs, accounts } = now;
    const changes: Change[] = [];
    if (limits !== before.limits || suspension !== before.suspension || greylistMs !== before.greylistMs) {
      const isEmpty = limits === null && suspension === null && greylistMs === null;
      changes.push({ site, account: '', state: isEmpty ? null : now });
    }
    // Almost no site.
    if (accounts.size + before.accounts.size === 0) return changes;
    for (const account of new Set([...accounts.keys(), ...before.accounts.keys()])) {
      const own = accounts.get(account);
      if (own === before.accounts.get(account)) continue;
      changes.push({ site, account, state: own === undefined ? null : { ...NOTHING, limits: own } });
    }
    return changes;
  }

  /** What has changed of all sites, with their new states. Sites that are not in memory any more are forgotten. */
  async function allChanges(): Promise<{ changes: Change[]; states: Map<string, SiteMemory> }> {
    const changes: Change[] = [];
    const states = new Map<string, SiteMemory>();
    const gone = new Set(stored.keys());
    let compared = 0;
    for (const site of sites()) {
      if (++compared % COMPARE_BATCH_SIZE === 0) await nextIteration();
      gone.delete(site.key);
      const memory = site.memory();
      const changed = changesOf(site.key, memory);
      if (changed.length > 0) states.set(site.key, memory);
      changes.push(...changed);
    }
    for (const site of gone) stored.delete(site);
    return { changes, states };
  }

  /**
   * Writes what has changed. Call about once per second. Never rejects: a failure is logged once, until one succeeds; the
   * next call writes the same changes.
   */
  async function write(): Promise<void> {
    try {
      const { changes, states } = await allChanges();
      for (let at = 0; at < changes.length; at += WRITE_BATCH_SIZE) {
        const batch = changes.slice(at, at + WRITE_BATCH_SIZE);
        await writer.run(({ siteLimits }) => {
          for (const { site, account, state } of batch) {
            if (state === null) siteLimits.remove(site, account);
            else siteLimits.put({ site, account, ...columnsOf(state), updated_at: clock.now() });
          }
          removeOldest(siteLimits);
        });
      }
      for (const [site, memory] of states) stored.set(site, memory);
      isFailing = false;
    } catch (error) {
      // The state in memory remains; the next run writes it.
      if (!isFailing) log.error({ err: error }, 'limits of sites could not be stored; trying again');
      isFailing = true;
    }
  }

  function removeOldest({ count, oldest, remove }: Tables['siteLimits']): void {
    const excess = count() - MAX_ROWS;
    if (excess <= 0) return;
    const known = new Set(Array.from(sites(), ({ key }) => key));
    const rows = oldest();
    const left = Math.max(0, rows.length - MAX_ALL_ROWS);
    const unknown = rows.slice(left).filter(({ site }) => !known.has(site));
    for (const { site, account } of [...rows.slice(0, left), ...unknown].slice(0, excess))
      remove(site, account);
  }

  return { memoryOf, write };
}

function columnsOf({ limits, suspension, greylistMs }: SiteMemory) {
  return {
    level: limits?.level ?? 0,
    pace: limits?.pace ?? 0,
    paused_until: Math.round(limits?.limitedUntil ?? 0),
    since: Math.round(limits?.since ?? 0),
    stepped_at: Math.round(limits?.steppedAt ?? 0),
    suspensions: suspension?.suspensions ?? 0,
    suspended_until: Math.round(suspension?.suspendedUntil ?? 0),
    greylist_ms: greylistMs,
  };
}

function limiterMemory(row: SiteLimitRow): LimiterMemory | null {
  if (row.level === 0) return null;
  const { level, pace, paused_until: limitedUntil, since, stepped_at: steppedAt } = row;
  return { level, pace, limitedUntil, since, steppedAt };
}

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
  const gauge = (name: string, help: string, value: (site: LimitedSite) => number | null) =>
    addSeries(registry, [name, `${help}: ${scope}.`], ['site'], () =>
      shownSites().flatMap((site) => {
        const current = value(site);
        return current === null ? [] : [[{ site: siteLabel(site.site) }, current] as const];
      }),
    );
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
