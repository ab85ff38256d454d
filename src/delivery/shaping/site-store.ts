import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { SiteLimitRow } from '../../store/delivery/site-limits.ts';
import type { Tables } from '../../store/tables.ts';
import type { Site } from '../scheduling/site.ts';
import type { LimiterMemory } from './limiter.ts';
import type { SiteMemory } from './site-limits.ts';

/**
 * Stores what sites asked for, and returns it after a restart. `write` compares the state of the sites with what is
 * stored and writes the differences in portions: a message causes no write. A crash loses at most the changes since the
 * last run.
 */
export interface SiteStore {
  memoryOf(site: string): SiteMemory | null;
  /** Writes what has changed. Call about once per second. Never rejects. */
  write(): Promise<void>;
}

export interface SiteStoreDeps {
  clock: Clock;
  log: Log;
  tables: Tables;
  writer: Writer;
  sites(): Iterable<Site>;
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
 * Reads the newest 10,000 rows now; `memoryOf` returns them from memory, and no row is read again. A failure of `write`
 * is logged once, until one succeeds; the next call writes the same changes.
 */
export function createSiteStore({ clock, log, tables, writer, sites }: SiteStoreDeps): SiteStore {
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

  return {
    memoryOf: (site) => {
      const rows = stored.get(site);
      if (rows === undefined) return null;
      const own = rows.get('');
      const accounts = new Map<string, LimiterMemory>();
      for (const [account, state] of rows) {
        const memory = account === '' ? null : limiterMemory(state);
        if (memory !== null) accounts.set(account, memory);
      }
      return {
        limits: own === undefined ? null : limiterMemory(own),
        suspension:
          own === undefined || own.suspensions === 0
            ? null
            : { suspensions: own.suspensions, suspendedUntil: own.suspended_until },
        greylistMs: own?.greylist_ms ?? null,
        accounts,
      };
    },
    write: async () => {
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
    },
  };
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
  return (
    a.level === b.level &&
    a.pace === b.pace &&
    a.paused_until === b.paused_until &&
    a.since === b.since &&
    a.stepped_at === b.stepped_at &&
    a.suspensions === b.suspensions &&
    a.suspended_until === b.suspended_until &&
    a.greylist_ms === b.greylist_ms
  );
}
