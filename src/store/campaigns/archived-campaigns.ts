import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** A campaign in the archive of a group. */
export interface ArchivedCampaign {
  campaign_seq: number;
  campaign_id: string;
  /** When sending began, epoch ms. */
  sent_at: number;
}

/** A position in an archive; campaigns before it are older. */
type ArchivePosition = Pick<ArchivedCampaign, 'sent_at' | 'campaign_seq'>;

/** What the subject of a campaign is rendered from. */
export interface ArchivedSubject {
  campaign_seq: number;
  subject: string;
  /** JSON. */
  variables: string;
  /** JSON of the partials of Liquid; null: the simple syntax. */
  liquid: string | null;
}

const NEWEST: ArchivePosition = { sent_at: Number.MAX_SAFE_INTEGER, campaign_seq: 0 };

/** `archived_campaigns`, which triggers fill when a campaign is sent. Cancelled campaigns are not returned. */
export function archivedCampaignTable(db: Database) {
  const sql = statements(db);
  const select = `SELECT a.campaign_seq, c.campaign_id, a.sent_at
    FROM archived_campaigns a JOIN campaigns c ON c.seq = a.campaign_seq`;
  const page = sql.all<
    [{ accountId: string; groupId: string; sentAt: number; seq: number; limit: number }],
    ArchivedCampaign
  >(`${select} WHERE a.group_id = @groupId AND (a.sent_at, a.campaign_seq) < (@sentAt, @seq)
      AND c.account_id = @accountId AND c.status = 'sent'
    ORDER BY a.sent_at DESC, a.campaign_seq DESC LIMIT +@limit`);
  const find = sql.get<[string, string, string], ArchivedCampaign>(`
    ${select} WHERE c.account_id = ? AND c.campaign_id = ? AND a.group_id = ? AND c.status = 'sent'`);
  const subjects = sql.all<[seqs: string], ArchivedSubject>(`
    SELECT campaign_seq, mail ->> (wording || '.subject') AS subject, coalesce(mail -> '$.variables', '{}') AS variables,
      mail -> (wording || '.liquid') AS liquid
    FROM (SELECT campaign_seq, mail, CASE coalesce(decision ->> '$.variant', 0) WHEN 0 THEN '$.wording'
        ELSE '$.others[' || (decision ->> '$.variant' - 1) || '].wording' END AS wording
      FROM campaign_mails JOIN campaign_sends USING (campaign_seq)
      WHERE campaign_seq IN (SELECT value FROM json_each(?)))`);
  return {
    /** Newest first. `before` null: from the newest one on. */
    page: (
      accountId: string,
      groupId: string,
      before: ArchivePosition | null,
      limit: number,
    ): ArchivedCampaign[] => {
      const { sent_at: sentAt, campaign_seq: seq } = before ?? NEWEST;
      return page({ accountId, groupId, sentAt, seq, limit });
    },
    get: (accountId: string, groupId: string, campaignId: string): ArchivedCampaign | null =>
      find(accountId, campaignId, groupId),
    /** Subjects of campaigns, with their variables in braces; of an A/B test, that of its winner. */
    subjects: (seqs: readonly number[]): ArchivedSubject[] => subjects(JSON.stringify(seqs)),
  };
}
