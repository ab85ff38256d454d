import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import type { Stream } from '../domains/domains.ts';
import { messageIdOf, messageKey } from '../messages/message-rows.ts';
import { type BoundId, idNumbers, type StoredId } from '../rows/id-numbers.ts';
import { keyOfRecipient, recipientOfKey, type StoredKey, USE_CASE_CODES } from '../rows/row-keys.ts';

/**
 * A message that an account sent before it came here from another installation: the fields that the processing of a bounce,
 * a complaint or an opt-out needs.
 */
export interface MovedMessage {
  message_id: string;
  account_id: string;
  /** `email_<md5>`. */
  recipient_hash: string;
  use_case: Stream;
  campaign_id: string | null;
  subscription_group_id: string | null;
  created_at: number;
}

/** 1: a report of this kind was recorded; further ones are copies. */
export interface MovedReports {
  bounced: 0 | 1;
  complained: 0 | 1;
}

/** Values of the columns of a new row. */
interface NewStored {
  message_key: StoredKey;
  account: BoundId;
  recipient_key: StoredKey;
  use_case_code: number;
  campaign: BoundId | null;
  subscription_group: BoundId | null;
  created_at: number;
}

/** A row as it is read. */
export type StoredMoved = Omit<NewStored, 'account' | 'campaign' | 'subscription_group'> & {
  account: StoredId;
  campaign: StoredId | null;
  subscription_group: StoredId | null;
};

export const MOVED_COLUMNS =
  'message_key, account, recipient_key, use_case_code, campaign, subscription_group, created_at';

export const MOVED_MESSAGE_POLICY = {
  table: 'moved_messages',
  personal: ['recipient_key'],
  erasure: { stays: 'the identifier of the person, which later reports suppress' },
  retention: {
    kind: 'movedMessages',
    rows: 'timed',
    period: 'events',
    key: 'message_key',
    time: 'created_at',
  },
} as const satisfies DataPolicy;

/** Returns a function that decodes a row of MOVED_COLUMNS. */
export function movedMessages(db: Database): (stored: StoredMoved) => MovedMessage {
  const { account, campaign, subscription_group: group } = idNumbers(db);
  return (row) => ({
    message_id: messageIdOf(row.message_key),
    account_id: account.id(row.account),
    recipient_hash: recipientOfKey(row.recipient_key),
    use_case: USE_CASE_CODES.value(row.use_case_code),
    campaign_id: row.campaign === null ? null : campaign.id(row.campaign),
    subscription_group_id: row.subscription_group === null ? null : group.id(row.subscription_group),
    created_at: row.created_at,
  });
}

/**
 * `moved_messages`, by message id; a message that is known, or was sent here, is not inserted again. Those of an account are
 * read by the index `moved_messages_by_account`.
 */
export function movedMessageTable(db: Database) {
  const sql = statements(db);
  const numbers = idNumbers(db);
  const toRow = movedMessages(db);
  const sentHere = db.prepare<[StoredKey], number>('SELECT 1 FROM messages WHERE message_key = ?').pluck();
  const insert = sql.run<[NewStored]>(`
    INSERT INTO moved_messages (${MOVED_COLUMNS})
    VALUES (@message_key, @account, @recipient_key, @use_case_code, @campaign, @subscription_group, @created_at)
    ON CONFLICT DO NOTHING`);
  const byId = db.prepare<[StoredKey], StoredMoved & MovedReports>(
    `SELECT ${MOVED_COLUMNS}, bounced, complained FROM moved_messages WHERE message_key = ?`,
  );
  const mark = {
    bounced: db.prepare<[StoredKey]>('UPDATE moved_messages SET bounced = 1 WHERE message_key = ?'),
    complained: db.prepare<[StoredKey]>('UPDATE moved_messages SET complained = 1 WHERE message_key = ?'),
  };
  const removeOf = sql.changes<[BoundId, number]>(`
    DELETE FROM moved_messages WHERE message_key IN (
      SELECT message_key FROM moved_messages WHERE account = ? LIMIT +?)`);
  return {
    insert: (row: MovedMessage): void => {
      const key = messageKey(row.message_id);
      if (sentHere.get(key) !== undefined) return;
      insert({
        message_key: key,
        account: numbers.account.assign(row.account_id),
        recipient_key: keyOfRecipient(row.recipient_hash),
        use_case_code: USE_CASE_CODES.code(row.use_case),
        campaign: row.campaign_id === null ? null : numbers.campaign.assign(row.campaign_id),
        subscription_group:
          row.subscription_group_id === null
            ? null
            : numbers.subscription_group.assign(row.subscription_group_id),
        created_at: row.created_at,
      });
    },
    /** Null when the message is not known, or was sent here. */
    byId: (messageId: string): (MovedMessage & MovedReports) | null => {
      const found = byId.get(messageKey(messageId));
      return found === undefined
        ? null
        : { ...toRow(found), bounced: found.bounced, complained: found.complained };
    },
    /** Records that a report of this kind was received. */
    mark: (messageId: string, report: keyof MovedReports): void => {
      mark[report].run(messageKey(messageId));
    },
    /** Returns how many rows of the account were removed, at most `limit`. */
    removeOf: (accountId: string, limit: number): number => removeOf(numbers.account.find(accountId), limit),
  };
}
