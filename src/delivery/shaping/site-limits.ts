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
  pausedMs: number;
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
  /** By account. */
  accounts: ReadonlyMap<string, LimiterMemory>;
}
