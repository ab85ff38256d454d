import type { ContactRow } from '../contacts/contacts.ts';
import type { Database } from '../database/database.ts';
import { columnsSet, columnValues, statements } from '../database/statements.ts';
import { HELD, MARKETING_PRIORITY, type QueueKey } from '../messages/queue.ts';
import { idNumbers, type StoredId } from '../rows/id-numbers.ts';
import type { RateSignal } from '../sending-limits.ts';
import type { CampaignStatus } from './campaigns.ts';

/**
 * Campaigns that are or were sent to a group: their content, their progress and their messages in the queue. The status is
 * in the row of the campaign.
 */
export interface CampaignSendRow {
  campaign_seq: number;
  account_id: string;
  job_id: string;
  subscription_group_id: string;
  /** Epoch ms, as all times here; null: immediately. */
  scheduled_at: number | null;
  /** Maximum number of messages per hour; null: as fast as messages are delivered. */
  per_hour: number | null;
  /** Active members when sending began, and those who returned to the group in time; null: it has not begun. */
  members: number | null;
  /** The last contact that is included: later ones joined after sending began. Null: it has not begun. */
  last_seq: number | null;
  /** The last contact that was processed. */
  at_seq: number;
  /** Members with a message; the next three columns: members without one, by reason. */
  queued: number;
  without_email: number;
  not_eligible: number;
  not_renderable: number;
  /** No message is queued before this time. */
  next_at: number;
  /** 1: sent with a test key: all its messages are simulated. */
  simulated: 0 | 1;
  /** 1: the send is not complete. */
  open: 0 | 1;
  /** Why the service paused it; null: the service did not. */
  paused_reason: string | null;
  /** JSON: the rate because of which it was stopped automatically; null: it was not. */
  paused_figures: string | null;
  /** JSON: the counts that a person has seen, which stop it no more; null: none. */
  seen_counts: string | null;
  started_at: number | null;
  /** When it was sent completely or cancelled. */
  finished_at: number | null;
  created_at: number;
  /** JSON of the audience beyond one group (campaigns/audience.ts); null: the group only. */
  audience: string | null;
  /** JSON of the A/B test (campaigns/variants.ts); null: the campaign has one content. */
  test: string | null;
  /** When the winner of the test is decided; null: not known yet, or there is no winner. */
  decide_at: number | null;
  /** JSON of the decision; null: there is none yet. */
  decision: string | null;
  /** 1: the rest of the audience is processed, which is not in the test. */
  in_rest: 0 | 1;
}

/** A row with the id and the status of its campaign. */
export type CampaignSend = CampaignSendRow & { campaign_id: string; status: CampaignStatus };

/** A campaign that is paused. `remaining`: members and queued messages that wait for it. */
export type PausedSend = Pick<CampaignSend, 'campaign_id' | 'paused_reason'> & {
  name: string;
  updated_at: number;
  remaining: number;
};

/** SQL: campaigns that were stopped automatically. */
export const STOPPED_SENDS_SQL = `FROM campaign_sends s JOIN campaigns c ON c.seq = s.campaign_seq
  WHERE s.open = 1 AND s.paused_figures IS NOT NULL AND c.status = 'paused'`;

/** A campaign that was stopped automatically. */
export interface StoppedSend {
  account_id: string;
  campaign_id: string;
  name: string;
  /** When it was stopped. */
  updated_at: number;
  paused_reason: RateSignal;
  /** JSON. */
  paused_figures: string;
}

/** The columns of a member that its message needs. */
export type CampaignMember = Pick<
  ContactRow,
  | 'seq'
  | 'email'
  | 'email_hash'
  | 'phone'
  | 'first_name'
  | 'last_name'
  | 'custom_fields'
  | 'consent_n'
  | 'paused_until'
  | 'language'
>;

const MEMBER_COLUMNS =
  'c.seq, c.email, c.email_hash, c.phone, c.first_name, c.last_name, c.custom_fields, c.consent_n, c.paused_until, c.language';

export interface MemberRange {
  groupSeq: number;
  /** Contacts with `after` < seq <= `upTo`. */
  after: number;
  upTo: number;
  limit: number;
}

/**
 * `campaign_sends` and `campaign_mails`, one row for each campaign that was sent to a group. Members are read by
 * `subscriptions_by_activity`, queued messages by `queue_by_campaign`.
 */
export function campaignSendTable(db: Database) {
  const sql = statements(db);
  const select =
    'SELECT s.*, c.campaign_id, c.status FROM campaign_sends s JOIN campaigns c ON c.seq = s.campaign_seq';
  const insert = sql.run<[CampaignSendRow]>(`
    INSERT INTO campaign_sends ${columnValues(`campaign_seq, account_id, job_id, subscription_group_id,
      scheduled_at, per_hour, members, last_seq, at_seq, queued, without_email, not_eligible, not_renderable,
      next_at, open, paused_reason, paused_figures, seen_counts, started_at, finished_at, created_at,
      audience, test, decide_at, decision, in_rest, simulated`)}`);
  const insertMail = sql.run<[number, string]>(
    'INSERT INTO campaign_mails (campaign_seq, mail) VALUES (?, ?)',
  );
  const mail = db.prepare<[number], string>('SELECT mail FROM campaign_mails WHERE campaign_seq = ?').pluck();
  const PAUSED = `FROM campaign_sends s JOIN campaigns c ON c.seq = s.campaign_seq
    WHERE s.open = 1 AND s.account_id = @accountId AND c.status = 'paused'`;
  const paused = sql.all<[{ accountId: string; limit: number; maxRemaining: number }], PausedSend>(`
    SELECT c.campaign_id, c.name, c.updated_at, s.paused_reason,
      min(@maxRemaining,
        max(0, coalesce(s.members, 0) - s.queued - s.without_email - s.not_eligible - s.not_renderable)
          + (SELECT count(*) FROM (SELECT 1 FROM queue WHERE campaign_seq = s.campaign_seq LIMIT +@maxRemaining)))
        AS remaining
    ${PAUSED} ORDER BY s.campaign_seq DESC LIMIT +@limit`);
  const countPaused = sql.count<[{ accountId: string }]>(`SELECT count(*) ${PAUSED}`);
  const portionEnd = sql.value<
    [{ accountId: string; after: number; contacts: number; bytes: number }],
    number
  >(`
    SELECT max(seq) FROM (
      SELECT seq, sum(bytes) OVER (ORDER BY seq) - bytes AS bytes_before FROM (
        SELECT seq, octet_length(custom_fields) AS bytes FROM contacts
        WHERE account_id = @accountId AND seq > @after ORDER BY seq LIMIT +@contacts))
    WHERE bytes_before < @bytes`);
  const fieldsAmong = sql.values<[string, number, number, string], string>(`
    SELECT DISTINCT field.key FROM contacts, json_each(custom_fields) field
    WHERE account_id = ? AND seq > ? AND seq <= ? AND field.key IN (SELECT value FROM json_each(?))`);
  const anyInQueue = sql.exists<[number, number]>(
    'SELECT 1 FROM queue WHERE campaign_seq = ? AND ready >= ? LIMIT 1',
  );
  const { account } = idNumbers(db);
  const release = sql.all<[number, number, number], { seq: number; account: StoredId; destination: string }>(`
    UPDATE queue SET due_at = ?, ready = 1 WHERE seq IN (
      SELECT seq FROM queue WHERE campaign_seq = ? AND ready = 0 AND due_at = ${HELD} LIMIT +?)
    RETURNING seq, account, destination`);
  const extend = sql.run<[number, number]>(
    'UPDATE messages SET expires_at = max(expires_at, ?) WHERE seq = ?',
  );

  return {
    /** The newest paused campaigns of an account; `remaining` is at most `maxRemaining`. */
    paused: (accountId: string, limit: number, maxRemaining: number): PausedSend[] =>
      paused({ accountId, limit, maxRemaining }),
    countPaused: (accountId: string): number => countPaused({ accountId }),
    /** Those of all accounts that were stopped automatically, the newest first. */
    stopped: sql.all<[limit: number], StoppedSend>(`
      SELECT s.account_id, c.campaign_id, c.name, c.updated_at, s.paused_reason, s.paused_figures
      ${STOPPED_SENDS_SQL} ORDER BY s.campaign_seq DESC LIMIT +?`),
    countStopped: sql.count(`SELECT count(*) ${STOPPED_SENDS_SQL}`),
    /** `mail`: JSON of the content. */
    insert: (row: CampaignSendRow, mail: string): void => {
      insert(row);
      insertMail(row.campaign_seq, mail);
    },
    mail: (campaignSeq: number): string => {
      const found = mail.get(campaignSeq);
      if (found === undefined) throw new Error(`campaign ${campaignSeq} has no mail`);
      return found;
    },
    /** The subject, with its variables in braces; null: the campaign was not sent to a group. */
    subject: sql.value<[campaignSeq: number], string>(
      "SELECT json_extract(mail, '$.wording.subject') FROM campaign_mails WHERE campaign_seq = ?",
    ),
    /** Writes the columns that change while it is sent. */
    update: sql.run<[row: CampaignSendRow]>(`
      UPDATE campaign_sends SET ${columnsSet(`subscription_group_id, members, last_seq, at_seq, queued, without_email, not_eligible,
        not_renderable, next_at, open, paused_reason, paused_figures, seen_counts, started_at, finished_at, decide_at, decision, in_rest`)}
      WHERE campaign_seq = @campaign_seq`),
    get: sql.get<[campaignSeq: number], CampaignSend>(`${select} WHERE s.campaign_seq = ?`),
    /** Sends that are not complete, the oldest first. */
    open: sql.values<[], number>(
      'SELECT campaign_seq FROM campaign_sends WHERE open = 1 ORDER BY campaign_seq',
    ),
    /** Null: the job does not belong to a campaign. */
    statusOfJob: sql.value<[jobId: string], CampaignStatus>(
      'SELECT c.status FROM campaign_sends s JOIN campaigns c ON c.seq = s.campaign_seq WHERE s.job_id = ?',
    ),
    /** Campaigns of the account that are not completely sent, and whose audience refers to the segment. */
    usersOfSegment: sql.all<[accountId: string, segmentId: string], { campaign_id: string; name: string }>(`
      SELECT c.campaign_id, c.name FROM campaign_sends s JOIN campaigns c ON c.seq = s.campaign_seq
      WHERE s.open = 1 AND s.account_id = ? AND instr(s.audience, json_quote(?)) > 0
      ORDER BY s.campaign_seq LIMIT 20`),
    /** The seq of the newest contact in a group; 0: the group is empty. */
    newestMember: sql.count<[groupSeq: number]>(
      'SELECT max(contact_seq) FROM subscriptions WHERE group_seq = ?',
    ),
    /** Active members in the order of their contacts. */
    members: sql.all<[range: MemberRange], CampaignMember>(`
      SELECT ${MEMBER_COLUMNS} FROM subscriptions s INDEXED BY subscriptions_by_activity JOIN contacts c ON c.seq = s.contact_seq
      WHERE s.group_seq = @groupSeq AND s.is_active = 1 AND s.contact_seq > @after AND s.contact_seq <= @upTo
      ORDER BY s.contact_seq LIMIT +@limit`),
    /** The contacts of `members` alone: reads the index. */
    memberSeqs: sql.values<[range: MemberRange], number>(`
      SELECT contact_seq FROM subscriptions INDEXED BY subscriptions_by_activity
      WHERE group_seq = @groupSeq AND is_active = 1 AND contact_seq > @after AND contact_seq <= @upTo
      ORDER BY contact_seq LIMIT +@limit`),
    /** Those of these contacts that are active members, in their order. `seqs`: JSON. */
    membersAmong: sql.all<[seqs: string, groupSeq: number], CampaignMember>(`
      SELECT ${MEMBER_COLUMNS} FROM json_each(?) chosen
        CROSS JOIN subscriptions s ON s.group_seq = ? AND s.contact_seq = chosen.value AND s.is_active = 1
        CROSS JOIN contacts c ON c.seq = s.contact_seq`),
    /** The last of the next contacts of an account, up to the one that exceeds `bytes`; null: there are no more. */
    portionEnd: (accountId: string, after: number, max: { contacts: number; bytes: number }): number | null =>
      portionEnd({ accountId, after, ...max }),
    /** The names that any of these contacts has as a custom field. Reads each contact once. */
    fieldsAmong: (accountId: string, after: number, upTo: number, names: readonly string[]): string[] =>
      fieldsAmong(accountId, after, upTo, JSON.stringify(names)),
    /** Number of ready messages of the campaign that became due after `since`, counted up to `limit`. */
    dueSince: sql.count<[campaignSeq: number, since: number, limit: number]>(`
      SELECT count(*) FROM (
        SELECT 1 FROM queue WHERE campaign_seq = ? AND ready = 1 AND due_at > ? LIMIT +?)`),
    /** Whether any message of the campaign is in the queue; with `due`, only messages that are due. */
    anyInQueue: (campaignSeq: number, { due }: { due: boolean }): boolean =>
      anyInQueue(campaignSeq, due ? 1 : 0),
    /** Whether any message of the campaign is held. */
    anyHeld: sql.exists<[campaignSeq: number]>(
      `SELECT 1 FROM queue WHERE campaign_seq = ? AND ready = 0 AND due_at = ${HELD} LIMIT 1`,
    ),
    /** Messages of the campaign in the queue without a lease, at most `limit`. */
    waiting: sql.values<[campaignSeq: number, limit: number], number>(
      'SELECT seq FROM queue WHERE campaign_seq = ? AND lease IS NULL LIMIT +?',
    ),
    /**
     * Makes at most `limit` held messages due at `at`, and extends their expiry to at least `expiresAt`. Returns the
     * queue key of each message.
     */
    release: (campaignSeq: number, at: number, expiresAt: number, limit: number): QueueKey[] => {
      const released = release(at, campaignSeq, limit);
      for (const { seq } of released) extend(expiresAt, seq);
      return released.map((row) => ({
        priority: MARKETING_PRIORITY,
        account_id: account.id(row.account),
        destination: row.destination,
      }));
    },
  };
}
