import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { columnValues, statements } from '../database/statements.ts';

/** Contacts that segments test together: those whose numbers have the same quotient. */
export const CHUNK_SIZE = 4096;

/** Bits of what a contact did with a campaign; 0: a message to it was queued. Higher bits have its variant (`variantBits`). */
export const ENGAGEMENT_BITS = { received: 1, opened: 2, clicked: 4 } as const;

/** No bits of a contact: the bits of its engagement are below it. */
export const NO_BITS = 8;

/** The bits of a contact that received a variant in a test. `variant`: from 0. */
export function variantBits(variant: number): number {
  return (variant + 1) << 4;
}

/** The variant of a contact in a test, from 0; null: it received its message outside of a test. */
export function variantOfBits(bits: number): number | null {
  return bits < variantBits(0) ? null : (bits >> 4) - 1;
}

/** When a contact last received marketing mail, opened and clicked, epoch ms; null: never. */
export interface EngagementTimes {
  contact_seq: number;
  received_at: number | null;
  opened_at: number | null;
  clicked_at: number | null;
}

export interface EngagementRow extends EngagementTimes {
  /** Marketing messages that the contact received since it last did something. */
  unanswered: number;
  /** When it received the first of them. */
  unanswered_since: number | null;
  /** When the sunset rule found the contact; null: it has not, or the contact did something since. */
  sunset_at: number | null;
}

export const ENGAGEMENT_POLICIES = [
  {
    table: 'contact_engagement',
    personal: ['received_at', 'opened_at', 'clicked_at', 'unanswered', 'unanswered_since', 'sunset_at'],
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
  const addOfCampaignId = sql.run<[number, number, string]>(`
    INSERT INTO campaign_contacts (campaign_seq, contact_seq, bits)
    SELECT seq, ?, ? FROM campaigns WHERE campaign_id = ?
    ON CONFLICT (campaign_seq, contact_seq) DO UPDATE SET bits = bits | excluded.bits`);
  // One text, because a row takes longer to return than to read.
  const inChunk = sql.value<[{ campaignId: string; first: number; last: number }], string>(`
    SELECT json_group_array(contact_seq % ${CHUNK_SIZE} * 16 + (bits & 7)) FROM campaign_contacts
    WHERE campaign_seq = (SELECT seq FROM campaigns WHERE campaign_id = @campaignId)
      AND contact_seq BETWEEN @first AND @last`);
  const sentAmong = sql.values<[string, string], number>(`
    SELECT chosen.value FROM json_each(?) chosen WHERE EXISTS (
      SELECT 1 FROM campaign_contacts
      WHERE campaign_seq IN (SELECT seq FROM campaigns WHERE campaign_id IN (SELECT value FROM json_each(?)))
        AND contact_seq = chosen.value)`);
  const setSunset = sql.run<[number, number]>(
    'UPDATE contact_engagement SET sunset_at = ? WHERE contact_seq = ?',
  );
  // Unlike `sql.row`: the number is that of the contact.
  const columns = 'contact_seq, received_at, opened_at, clicked_at, unanswered, unanswered_since, sunset_at';
  const insert = sql.run<[row: EngagementRow]>(`INSERT INTO contact_engagement ${columnValues(columns)}`);
  return {
    insert: (row: EngagementTimes & Partial<EngagementRow>): void =>
      insert({ unanswered: 0, unanswered_since: null, sunset_at: null, ...row }),
    get: sql.get<[contactSeq: number], EngagementRow>(
      'SELECT * FROM contact_engagement WHERE contact_seq = ?',
    ),
    /** What a contact did with a campaign (`ENGAGEMENT_BITS`); null: it did not receive it. */
    ofCampaign: sql.value<[campaignId: string, contactSeq: number], number>(`
      SELECT bits & 7 FROM campaign_contacts
      WHERE campaign_seq = (SELECT seq FROM campaigns WHERE campaign_id = ?) AND contact_seq = ?`),
    /** Those of these contacts that were sent any of the campaigns. */
    sentAmong: (campaignIds: readonly string[], contactSeqs: readonly number[]): number[] =>
      sentAmong(JSON.stringify(contactSeqs), JSON.stringify(campaignIds)),
    /**
     * What contacts of one chunk did with a campaign, from `first` to `last`, by their numbers modulo CHUNK_SIZE; NO_BITS: the
     * contact did not receive it, or is another one.
     */
    ofCampaignInChunk: (campaignId: string, first: number, last: number): Uint8Array => {
      const text = inChunk({ campaignId, first, last });
      // Sound: the statement returns a list of numbers.
      const packed = JSON.parse(text ?? '[]') as number[];
      const bits = new Uint8Array(CHUNK_SIZE).fill(NO_BITS);
      for (const one of packed) bits[Math.floor(one / 16)] = one % 16;
      return bits;
    },
    /**
     * The first of the next `limit` campaigns after one that does not exist any more. `last`: the last campaign that was
     * examined; null: there are no more.
     */
    deletedCampaign: (after: number, limit: number): { deleted: number | null; last: number | null } => {
      let last: number | null = after;
      for (let examined = 0; examined < limit && last !== null; examined++) {
        last = nextCampaign(last);
        if (last !== null && !campaignExists(last)) return { deleted: last, last };
      }
      return { deleted: null, last };
    },
    /** Removes rows of a campaign, at most `limit`; returns how many. */
    removeOfCampaign: (campaignSeq: number, limit: number): number =>
      removeOfCampaign(campaignSeq, campaignSeq, limit),
    /** Sets the times that are not null, and counts a message that was received. */
    record: sql.run<[row: EngagementTimes]>(`
      INSERT INTO contact_engagement (contact_seq, received_at, opened_at, clicked_at, unanswered, unanswered_since)
      VALUES (@contact_seq, @received_at, @opened_at, @clicked_at,
        @received_at IS NOT NULL AND @opened_at IS NULL, iif(@opened_at IS NULL, @received_at, NULL))
      ON CONFLICT (contact_seq) DO UPDATE SET received_at = coalesce(excluded.received_at, received_at),
        opened_at = coalesce(excluded.opened_at, opened_at), clicked_at = coalesce(excluded.clicked_at, clicked_at),
        unanswered = iif(excluded.opened_at IS NULL, unanswered + excluded.unanswered, 0),
        unanswered_since = iif(excluded.opened_at IS NULL, coalesce(unanswered_since, excluded.unanswered_since), NULL),
        sunset_at = iif(excluded.opened_at IS NULL, sunset_at, NULL)`),
    /** Records that a contact did something else than to open or click. */
    answered: sql.run<[contactSeq: number]>(`
      UPDATE contact_engagement SET unanswered = 0, unanswered_since = NULL, sunset_at = NULL
      WHERE contact_seq = ? AND unanswered > 0`),
    setSunset: (contactSeq: number, at: number): void => setSunset(at, contactSeq),
    /** The same as `addOfCampaign` for a campaign that may be deleted. */
    addOfCampaignId: (campaignId: string, contactSeq: number, bits: number): void =>
      addOfCampaignId(contactSeq, bits, campaignId),
    addOfCampaign: sql.run<[campaignSeq: number, contactSeq: number, bits: number]>(`
      INSERT INTO campaign_contacts (campaign_seq, contact_seq, bits) VALUES (?, ?, ?)
      ON CONFLICT (campaign_seq, contact_seq) DO UPDATE SET bits = bits | excluded.bits`),
  };
}
