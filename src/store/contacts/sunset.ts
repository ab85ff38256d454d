import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** The sunset rule of an account, with what it did on a day. */
export interface SunsetRow {
  account_id: string;
  enabled: 0 | 1;
  /** Without an opened or clicked message, or another sign of the contact. */
  months: number;
  /** Received since then. */
  messages: number;
  /** Between the finding and the end of marketing mail. */
  notice_days: number;
  /** Contacts that were found before are found again. */
  enabled_at: number;
  /** The day of the next two counts, epoch ms of its begin (UTC). */
  day: number;
  noticed_today: number;
  ended_today: number;
  /** All contacts whose marketing mail the rule has ended. */
  ended: number;
  updated_at: number;
}

/** `sunset_rules`: one row for each account that has stored a rule. */
export function sunsetTable(db: Database) {
  const sql = statements(db);
  return {
    get: sql.get<[accountId: string], SunsetRow>('SELECT * FROM sunset_rules WHERE account_id = ?'),
    put: sql.run<[row: SunsetRow]>(`INSERT OR REPLACE INTO ${sql.row('sunset_rules')}`),
    /** Accounts with a rule that is on; those that are disabled are omitted. */
    enabled: sql.values<[], string>(`
      SELECT account_id FROM sunset_rules r INDEXED BY sunset_rules_enabled JOIN accounts a USING (account_id)
      WHERE r.enabled = 1 AND a.status = 'active'`),
  };
}
