import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** A spam rate that a provider states about a domain or a server, on one day (UTC). */
export interface SpamRateRow {
  account_id: string;
  /** A known mailbox provider. */
  provider: string;
  /** A domain, or an IP address. */
  about: string;
  /** Epoch ms at which the day begins. */
  day: number;
  /** A share, from 0 to 1. */
  rate: number;
  recorded_at: number;
}

export const SPAM_RATE_POLICY = {
  table: 'spam_rates',
  personal: [],
  retention: {
    kind: 'spamRates',
    rows: 'timed',
    period: 'events',
    key: 'account_id, day, provider, about',
    time: 'day',
  },
} as const satisfies DataPolicy;

/** `spam_rates`: one row for each account, provider, day, and domain or address. */
export function spamRateTable(db: Database) {
  const sql = statements(db);
  const one = sql.get<[Pick<SpamRateRow, 'account_id' | 'provider' | 'about' | 'day'>], SpamRateRow>(`
    SELECT * FROM spam_rates
    WHERE account_id = @account_id AND day = @day AND provider = @provider AND about = @about`);
  const put = sql.run<[SpamRateRow]>(`
    INSERT INTO ${sql.row('spam_rates')}
    ON CONFLICT DO UPDATE SET rate = excluded.rate, recorded_at = excluded.recorded_at`);
  return {
    /** Null: there is none. */
    get: (key: Pick<SpamRateRow, 'account_id' | 'provider' | 'about' | 'day'>): SpamRateRow | null =>
      one(key),
    /** Inserts a rate, or replaces that of the same provider, day, and domain or address. */
    put: (row: SpamRateRow): void => put(row),
    /** Counts those of an account up to `limit`. */
    count: sql.count<[accountId: string, limit: number]>(
      'SELECT count(*) FROM (SELECT 1 FROM spam_rates WHERE account_id = ? LIMIT +?)',
    ),
    /** Of days from `from` on and before `to`, oldest first. */
    ofPeriod: sql.all<[accountId: string, from: number, to: number, limit: number], SpamRateRow>(`
      SELECT * FROM spam_rates WHERE account_id = ? AND day >= ? AND day < ?
      ORDER BY day, provider, about LIMIT +?`),
  };
}
