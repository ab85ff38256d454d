import type { Database } from './database/database.ts';
import { statements } from './database/statements.ts';
import type { Stream } from './domains/domains.ts';
import { type NoticePeriod, noticedCause } from './people/notices.ts';

/** Rates that limit sending. */
export const RATE_SIGNALS = ['hard_bounces', 'complaints', 'blocks', 'unsubscribes'] as const;
export type RateSignal = (typeof RATE_SIGNALS)[number];

/** Ascending. `notice`: reported only. */
export const LIMIT_LEVELS = ['notice', 'slow', 'pause'] as const;
export type LimitLevel = (typeof LIMIT_LEVELS)[number];

/** A stream of an account, of one of its domains, or of a domain to one provider, whose rates are or were too high. */
export interface SendingLimitRow {
  limit_id: string;
  account_id: string;
  stream: Stream;
  /** '': all domains of the account. */
  domain_id: string;
  /** '': all providers. */
  provider: string;
  /** Null: not limited; the row has the beginning of the counts. */
  level: LimitLevel | null;
  /** JSON: the rate because of which the level was set. */
  figures: string;
  /** Messages; null: not slowed. */
  per_minute: number | null;
  /** Of the level, epoch ms. */
  since: number;
  /** Epoch ms: what happened before does not count; 0: all of the window counts. */
  counts_from: number;
  /** JSON: counts of the day of `counts_from` before it; null: none. */
  seen_counts: string | null;
}

/** `sending_limits`, by account, stream, domain and provider. */
export function sendingLimitTable(db: Database) {
  const sql = statements(db);
  return {
    put: sql.run<[row: SendingLimitRow]>(`INSERT OR REPLACE INTO ${sql.row('sending_limits')}`),
    get: sql.get<[limitId: string], SendingLimitRow>('SELECT * FROM sending_limits WHERE limit_id = ?'),
    remove: sql.run<[limitId: string]>('DELETE FROM sending_limits WHERE limit_id = ?'),
    ofAccount: sql.all<[accountId: string], SendingLimitRow>(
      'SELECT * FROM sending_limits WHERE account_id = ? ORDER BY since DESC, limit_id',
    ),
    /** Of all accounts, those in force, the newest first. */
    inForce: sql.all<[limit: number], SendingLimitRow>(
      'SELECT * FROM sending_limits WHERE level IS NOT NULL ORDER BY since DESC, limit_id LIMIT +?',
    ),
    /** Of those, the ones that slow or stop mail. */
    applied: sql.all<[limit: number], SendingLimitRow>(
      "SELECT * FROM sending_limits WHERE level IN ('slow', 'pause') ORDER BY since DESC, limit_id LIMIT +?",
    ),
    /** Those that began to slow or stop mail in the period, of which nobody was notified, the oldest first. */
    toNotice: sql.all<[period: NoticePeriod], SendingLimitRow>(`
      SELECT * FROM sending_limits
      WHERE level IN ('slow', 'pause') AND since BETWEEN @from AND @to
        AND NOT EXISTS (${noticedCause('limit', 'sending_limits.account_id', 'limit_id')})
      ORDER BY since LIMIT +@limit`),
    /** How many are in force, by level. */
    countByLevel: sql.all<[], { level: LimitLevel; limits: number }>(
      'SELECT level, count(*) AS limits FROM sending_limits WHERE level IS NOT NULL GROUP BY level',
    ),
    /** The accounts with limits in force. */
    accounts: sql.values<[limit: number], string>(
      'SELECT DISTINCT account_id FROM sending_limits WHERE level IS NOT NULL LIMIT +?',
    ),
  };
}
