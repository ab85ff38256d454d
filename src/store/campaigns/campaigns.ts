import type { Database } from '../database/database.ts';
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
  const insert = db.prepare<Omit<CampaignRow, 'seq'>>(`
    INSERT INTO campaigns (campaign_id, account_id, name, description, status, prepared, created_at, updated_at)
    VALUES (@campaign_id, @account_id, @name, @description, @status, @prepared, @created_at, @updated_at)`);
  const update = db.prepare<CampaignRow>(`
    UPDATE campaigns SET name = @name, description = @description, status = @status, prepared = @prepared,
      updated_at = @updated_at
    WHERE seq = @seq`);
  const setStatus = db.prepare<[CampaignStatus, number, number]>(
    'UPDATE campaigns SET status = ?, updated_at = ? WHERE seq = ?',
  );
  const get = db.prepare<[string, string], CampaignRow>(
    'SELECT * FROM campaigns WHERE account_id = ? AND campaign_id = ?',
  );
  const list = db.prepare<[string, number, number], CampaignRow>(
    'SELECT * FROM campaigns WHERE account_id = ? AND seq < ? ORDER BY seq DESC LIMIT +?',
  );
  const remove = db.prepare<[number]>('DELETE FROM campaigns WHERE seq = ?');
  return {
    /** Returns its seq. */
    insert: (row: Omit<CampaignRow, 'seq'>): number => Number(insert.run(row).lastInsertRowid),
    update: (row: CampaignRow): void => {
      update.run(row);
    },
    setStatus: (seq: number, status: CampaignStatus, at: number): void => {
      setStatus.run(status, at, seq);
    },
    get: (accountId: string, campaignId: string): CampaignRow | null =>
      get.get(accountId, campaignId) ?? null,
    /** Newest first. */
    list: ({ accountId, beforeSeq, limit }: PageFilter): Page<CampaignRow> =>
      pageOf(list.all(accountId, beforeSeq ?? Number.MAX_SAFE_INTEGER, limit + 1), limit),
    /** Deletes the send, the counts and the links of the campaign, too. */
    remove: (seq: number): void => {
      remove.run(seq);
    },
  };
}
