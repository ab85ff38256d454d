import type { Database } from '../database/database.ts';
import { columnsSet, statements } from '../database/statements.ts';
import { type Page, type PageFilter, pageOf } from '../rows/page.ts';

/* Campaigns. Their messages refer to them, and remain when a campaign is deleted. */

export const CAMPAIGN_STATUSES = ['draft', 'scheduled', 'sending', 'paused', 'sent', 'cancelled'] as const;
export type CampaignStatus = (typeof CAMPAIGN_STATUSES)[number];

export interface CampaignRow {
  /** The page key. */
  seq: number;
  campaign_id: string;
  account_id: string;
  name: string;
  description: string | null;
  status: CampaignStatus;
  /** JSON; null: nothing is prepared. */
  prepared: string | null;
  created_at: number;
  updated_at: number;
}

/**
 * `campaigns`; pages follow the index `campaigns_by_account`. Only `get` and `list` compare the account: the others
 * take the `seq` of a row that was read with it.
 */
export function campaignTable(db: Database) {
  const sql = statements(db);
  const setStatus = sql.run<[CampaignStatus, number, number]>(
    'UPDATE campaigns SET status = ?, updated_at = ? WHERE seq = ?',
  );
  const list = sql.all<[string, number, number], CampaignRow>(
    'SELECT * FROM campaigns WHERE account_id = ? AND seq < ? ORDER BY seq DESC LIMIT +?',
  );
  return {
    /** Returns its seq. */
    insert: sql.insert<[row: Omit<CampaignRow, 'seq'>]>(`INSERT INTO ${sql.row('campaigns')}`),
    update: sql.run<[row: CampaignRow]>(`
      UPDATE campaigns SET ${columnsSet('name, description, status, prepared, updated_at')}
      WHERE seq = @seq`),
    setStatus: (seq: number, status: CampaignStatus, at: number): void => setStatus(status, at, seq),
    get: sql.get<[accountId: string, campaignId: string], CampaignRow>(
      'SELECT * FROM campaigns WHERE account_id = ? AND campaign_id = ?',
    ),
    /** Newest first. */
    list: ({ accountId, beforeSeq, limit }: PageFilter): Page<CampaignRow> =>
      pageOf(list(accountId, beforeSeq ?? Number.MAX_SAFE_INTEGER, limit + 1), limit),
    /** Deletes the send, the counts and the links of the campaign, too. */
    remove: sql.run<[seq: number]>('DELETE FROM campaigns WHERE seq = ?'),
  };
}
