import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** Contacts that segments test together: those whose numbers have the same quotient. */
export const CHUNK_SIZE = 4096;

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
  const nextCampaign = sql.value<[number], number>(
    'SELECT campaign_seq FROM campaign_contacts WHERE campaign_seq > ? ORDER BY campaign_seq LIMIT 1',
  );
  const campaignExists = sql.exists<[number]>('SELECT 1 FROM campaigns WHERE seq = ?');
  const removeOfCampaign = sql.changes<[number, number, number]>(`
    DELETE FROM campaign_contacts WHERE campaign_seq = ? AND contact_seq IN (
      SELECT contact_seq FROM campaign_contacts WHERE campaign_seq = ? LIMIT +?)`);
  // One text, because a row takes longer to return than to read.
  const inChunk = sql.value<[{ campaignId: string; first: number; last: number }], string>(`
    SELECT json_group_array(contact_seq * 16 + bits) FROM campaign_contacts
    WHERE campaign_seq = (SELECT seq FROM campaigns WHERE campaign_id = @campaignId)
      AND contact_seq BETWEEN @first AND @last`);
  return {
    insert: sql.run<[row: EngagementRow]>(`INSERT INTO ${sql.row('contact_engagement')}`),
    get: sql.get<[contactSeq: number], EngagementRow>(
      'SELECT * FROM contact_engagement WHERE contact_seq = ?',
    ),
    /** What a contact did with a campaign (`ENGAGEMENT_BITS`); null: it did not receive it. */
    ofCampaign: sql.value<[campaignId: string, contactSeq: number], number>(`
      SELECT bits FROM campaign_contacts
      WHERE campaign_seq = (SELECT seq FROM campaigns WHERE campaign_id = ?) AND contact_seq = ?`),
    /** The same for the contacts of a chunk, by their numbers modulo CHUNK_SIZE. */
    ofCampaignInChunk: (campaignId: string, chunk: number): Map<number, number> => {
      const first = chunk * CHUNK_SIZE;
      const text = inChunk({ campaignId, first, last: first + CHUNK_SIZE - 1 });
      // Sound: the statement returns a list of numbers.
      const packed = JSON.parse(text ?? '[]') as number[];
      return new Map(packed.map((one) => [Math.floor(one / 16) % CHUNK_SIZE, one % 16]));
    },
    /** Removes rows of campaigns that do not exist any more, at most `limit`; returns how many. */
    removeOfDeletedCampaigns: (limit: number): number => {
      let seq: number | null = -1;
      while ((seq = nextCampaign(seq)) !== null)
        if (!campaignExists(seq)) return removeOfCampaign(seq, seq, limit);
      return 0;
    },
    addOfCampaign: sql.run<[campaignSeq: number, contactSeq: number, bits: number]>(`
      INSERT INTO campaign_contacts (campaign_seq, contact_seq, bits) VALUES (?, ?, ?)
      ON CONFLICT (campaign_seq, contact_seq) DO UPDATE SET bits = bits | excluded.bits`),
  };
}
