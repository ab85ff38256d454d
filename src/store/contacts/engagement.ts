import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** When a contact last received marketing mail, opened and clicked, epoch ms; null: never. */
export interface EngagementRow {
  contact_seq: number;
  received_at: number | null;
  opened_at: number | null;
  clicked_at: number | null;
}

export const ENGAGEMENT_POLICIES = [
  {
    table: 'contact_engagement',
    personal: ['received_at', 'opened_at', 'clicked_at'],
    erasure: ['contact'],
    retention: { until: 'the contact is deleted' },
  },
  {
    table: 'campaign_contacts',
    personal: ['bits'],
    erasure: ['contact'],
    retention: { until: 'the contact or the campaign is deleted' },
  },
] as const satisfies DataPolicy[];

/**
 * `contact_engagement`, a row for each contact that received marketing mail, and `campaign_contacts`, a row for each contact
 * that received a campaign. Both remain when messages are deleted by retention.
 */
export function engagementTable(db: Database) {
  const sql = statements(db);
  return {
    insert: sql.run<[row: EngagementRow]>(`INSERT INTO ${sql.row('contact_engagement')}`),
    get: sql.get<[contactSeq: number], EngagementRow>(
      'SELECT * FROM contact_engagement WHERE contact_seq = ?',
    ),
    /** What a contact did with a campaign (`ENGAGEMENT_BITS`); null: it did not receive it. */
    ofCampaign: sql.value<[campaignId: string, contactSeq: number], number>(`
      SELECT bits FROM campaign_contacts
      WHERE campaign_seq = (SELECT seq FROM campaigns WHERE campaign_id = ?) AND contact_seq = ?`),
    addOfCampaign: sql.run<[campaignSeq: number, contactSeq: number, bits: number]>(`
      INSERT INTO campaign_contacts (campaign_seq, contact_seq, bits) VALUES (?, ?, ?)
      ON CONFLICT (campaign_seq, contact_seq) DO UPDATE SET bits = bits | excluded.bits`),
  };
}
