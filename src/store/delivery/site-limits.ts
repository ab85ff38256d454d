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

/**
 * `site_limits`, by site and account, from which delivery restores its limits at its start; read by the index
 * `site_limits_by_age`.
 */
export function siteLimitTable(db: Database) {
  const sql = statements(db);
  const put = db.prepare<[SiteLimitRow]>(
    `INSERT OR REPLACE INTO site_limits VALUES (@site, @account, @level, @pace, @paused_until, @since, @stepped_at,
      @suspensions, @suspended_until, @greylist_ms, @updated_at)`,
  );
  const remove = db.prepare<[string, string]>('DELETE FROM site_limits WHERE site = ? AND account = ?');
  return {
    /** The rows that changed most recently, at most `limit`. */
    newest: sql.all<[limit: number], SiteLimitRow>(
      'SELECT * FROM site_limits ORDER BY updated_at DESC LIMIT +?',
    ),
    /** Inserts or replaces a row. */
    put: (row: SiteLimitRow): void => void put.run(row),
    remove: (site: string, account: string): void => void remove.run(site, account),
  };
}
