import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** The stored state of a site, or of an account at a site. All times are epoch ms. */
export interface SiteLimitRow {
  /** MX hosts or shaping profile, and egress pool. */
  site: string;
  /** Account id; '': the site as a whole. */
  account: string;
  /** Steps below the configured limits; 0: none. */
  level: number;
  /** Messages per second at which the first step halved. */
  pace: number;
  /** 0: not paused. */
  paused_until: number;
  since: number;
  stepped_at: number;
  /** Suspensions in a row because no host could be reached. */
  suspensions: number;
  suspended_until: number;
  /** Wait after which greylisted mail was accepted, ms; null: not known. */
  greylist_ms: number | null;
  updated_at: number;
}

export const SITE_LIMIT_POLICY = {
  table: 'site_limits',
  personal: [],
  retention: {
    kind: 'siteLimits',
    rows: 'timed',
    period: 'events',
    key: 'site, account',
    time: 'updated_at',
  },
} as const satisfies DataPolicy;

/** `site_limits`, by site and account, from which delivery restores the limits of a site. */
export function siteLimitTable(db: Database) {
  const sql = statements(db);
  return {
    /** The rows of a site and of the accounts at it. */
    ofSite: sql.all<[site: string], SiteLimitRow>('SELECT * FROM site_limits WHERE site = ?'),
    /** Inserts or replaces a row. */
    put: sql.run<[SiteLimitRow]>(`INSERT OR REPLACE INTO ${sql.row('site_limits')}`),
    remove: sql.run<[site: string, account: string]>(
      'DELETE FROM site_limits WHERE site = ? AND account = ?',
    ),
    count: sql.count('SELECT count(*) FROM site_limits'),
    /** The keys of all rows, those that changed first before the others. */
    oldest: sql.all<[], Pick<SiteLimitRow, 'site' | 'account'>>(
      'SELECT site, account FROM site_limits ORDER BY updated_at',
    ),
  };
}
