import { type Clock, HOUR, iso } from '../../core/clock.ts';
import type { SuspensionMemory } from '../scheduling/suspension.ts';
import type { LimiterMemory } from './limiter.ts';

/** The limits of a site in force, for metrics and explanations. */
export interface SiteLimits {
  connections: number;
  /** Messages per second; null: no limit. */
  perSecond: number | null;
  /** Steps below the configured limits; 0: none. */
  level: number;
  /** When the site first asked to send less, epoch ms; null: the limits are the configured ones. */
  since: number | null;
  limitedMs: number;
  suspendedMs: number;
  /** Accounts with limits of their own. */
  accounts: number;
  /** Messages in progress. */
  inFlight: number;
}

/** What survives a restart. */
export interface SiteMemory {
  limits: LimiterMemory | null;
  suspension: SuspensionMemory | null;
  /** The wait after which the site accepted greylisted mail, ms; null: not known. */
  greylistMs: number | null;
  /** Limits of accounts at the site, by account id. */
  accounts: ReadonlyMap<string, LimiterMemory>;
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
