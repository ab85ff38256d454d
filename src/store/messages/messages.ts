import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { type BoundId, idNumbers } from '../rows/id-numbers.ts';
import { keyOfRecipient, STATUS_CODES, type StoredKey } from '../rows/row-keys.ts';
import {
  type AttemptRow,
  FINAL_AT,
  IS_FINAL,
  MESSAGE_COLUMNS,
  type MessageRow,
  type MessageStatus,
  messageIdOf,
  messageKey,
  messageRows,
  type NewAttempt,
  type NewMessage,
  type NewStoredMessage,
  type StoredAttempt,
  type StoredMessage,
  toAttempt,
  toStoredAttempt,
} from './message-rows.ts';
import { HOLD_REASON_SQL, type HoldReason, IS_SCHEDULED_SQL } from './queue.ts';

export type { AttemptRow, MessageRow, MessageStatus, NewMessage, Role, ShownStatus } from './message-rows.ts';
export { MESSAGE_STATUSES, SHOWN_STATUSES } from './message-rows.ts';

/** A message with the time of its next attempt, null when it is not in the queue. */
export type ListedMessage = MessageRow & ListedColumns;

/** What a list adds to a message from its queue row; null: it is not in the queue, or not held. */
export interface ListedColumns {
  due_at: number | null;
  hold_reason: HoldReason | null;
  /** When it is due, of a message that waits for the time which its sender chose; null: it does not. */
  scheduled_at: number | null;
}

/** The columns of ListedColumns, of a queue row `q`. */
export const LISTED_COLUMNS = `q.due_at, ${HOLD_REASON_SQL}, iif(${IS_SCHEDULED_SQL}, q.due_at, NULL)`;

/** A row of MESSAGE_COLUMNS and LISTED_COLUMNS. */
export type StoredListed = [
  ...StoredMessage,
  dueAt: number | null,
  holdReason: HoldReason | null,
  scheduledAt: number | null,
];

/** `message`: decoded from the same row. */
export function toListed(message: MessageRow, stored: StoredListed): ListedMessage {
  return { ...message, due_at: stored[26], hold_reason: stored[27], scheduled_at: stored[28] };
}

/** A content to be stored: JSON as a string, or bytes that mail/stored-content.ts has encoded. */
export interface NewContent {
  body: string | Uint8Array;
  /** Bytes when decoded; with `sharedId`, of both parts together. */
  size: number;
  /** The row of `shared_contents` with the part that copies have in common; undefined: the content is complete. */
  sharedId?: number;
}

/** A content in a separate ArrayBuffer, which can be transferred to another thread. */
export interface ContentRow {
  bytes: Uint8Array<ArrayBuffer>;
  encoding: 'json' | 'deflate' | 'document';
  /** Bytes when decoded; with `shared_id`, of both parts together. */
  size: number;
  shared_id: number | null;
}

/** See mail/stored-content.ts: a document begins with a byte that deflated bytes do not begin with. */
const ENCODING =
  "CASE WHEN typeof(body) = 'text' THEN 'json' WHEN substr(body, 1, 1) = x'ff' THEN 'document' ELSE 'deflate' END";

export const CONTENT_POLICY = {
  table: 'contents',
  personal: ['body'],
  erasure: ['messages'],
  retention: { kind: 'bodies', rows: 'contents', period: 'bodies' },
} as const satisfies DataPolicy;

export const MESSAGE_POLICY = {
  table: 'messages',
  // `recipient_key` stays: it identifies the person in later requests and reports.
  personal: ['recipient', 'recipient_key', 'subject', 'labels'],
  erasure: ['messages'],
  retention: {
    kind: 'messages',
    rows: 'aged',
    period: 'events',
    number: 'seq',
    time: 'created_at',
    only: IS_FINAL,
    children: { table: 'attempts', number: 'message_seq' },
  },
} as const satisfies DataPolicy;

export const MESSAGE_TAG_POLICY = {
  table: 'message_tags',
  personal: ['tag'],
  erasure: ['messages'],
  retention: { until: 'the message is deleted' },
} as const satisfies DataPolicy;

export const ATTEMPT_POLICY = {
  table: 'attempts',
  personal: ['report'],
  erasure: ['messages'],
  retention: { until: 'the message is deleted' },
} as const satisfies DataPolicy;

/** Newest messages to one recipient among which its last delivery is searched: bounds a query of the writer. */
const MAX_RECENT_MESSAGES = 1000;

/**
 * `messages`, `contents` and `attempts`, which retention deletes. Reads by `seq` or id are not limited to an account.
 * Lists of an account are in `message-list.ts`.
 */
export function messageTable(db: Database) {
  const sql = statements(db);
  const { account } = idNumbers(db);
  const { toRow, toStored } = messageRows(db);
  const insertContent = sql.insert<[string | Uint8Array, number, number | null, number, BoundId | null]>(
    'INSERT INTO contents (body, size, shared_id, created_at, account) VALUES (?, ?, ?, ?, ?)',
  );
  const content = db.prepare<[number], Omit<ContentRow, 'bytes'> & { bytes: Buffer }>(`
    SELECT CAST(body AS BLOB) AS bytes, ${ENCODING} AS encoding, size, shared_id
    FROM contents WHERE content_id = ?`);
  const insert = sql.insert<[NewStoredMessage]>(`
    INSERT INTO messages (message_key, account, content_id, use_case_code, domain, job_key, campaign, subscription_group,
      from_address, recipient, recipient_key, role_code, subject, status_code, simulated, track_clicks, track_opens,
      essential, created_at, updated_at, expires_at, sent_time, final_time, labels)
    VALUES (@message_key, @account, @content_id, @use_case_code, @domain, @job_key, @campaign, @subscription_group,
      @from_address, @recipient, @recipient_key, @role_code, @subject, @status_code, @simulated,
      @track_clicks, @track_opens, @essential, @created_at, max(@sent_time, @created_at), @expires_at, @sent_time, -@created_at, @labels)`);
  const insertTags = sql.run<[{ seq: number; labels: string; account: BoundId }]>(`
    INSERT INTO message_tags (account, tag, message_seq)
    SELECT @account, value, @seq FROM json_each(@labels, '$.tags')`);
  const addBytes = sql.run<[{ labels: string; account: BoundId }]>(`
    INSERT INTO stored_bytes VALUES (@account, octet_length(@labels))
    ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes`);
  const bySeq = db
    .prepare<[number], StoredMessage>(`SELECT ${MESSAGE_COLUMNS} FROM messages m WHERE m.seq = ?`)
    .raw();
  const byId = db
    .prepare<[StoredKey], StoredListed>(
      `SELECT ${MESSAGE_COLUMNS}, ${LISTED_COLUMNS} FROM messages m LEFT JOIN queue q USING (seq) WHERE m.message_key = ?`,
    )
    .raw();
  const firstOf = (column: 'content_id' | 'job_key') =>
    db
      .prepare<[number], StoredKey>(`
        SELECT f.message_key FROM messages m JOIN messages f ON f.${column} = m.${column}
        WHERE m.seq = ? AND f.account = m.account AND f.created_at = m.created_at ORDER BY f.seq LIMIT 1`)
      .pluck();
  const firstOfContent = firstOf('content_id');
  const firstOfJob = firstOf('job_key');
  const setState = sql.run<[number, number, number | null, number | null, number | null, number]>(`
    UPDATE messages SET status_code = ?, updated_at = ?, attempts = coalesce(?, attempts),
      sent_time = iif(sent_time < 0, coalesce(?, sent_time), sent_time),
      final_time = iif(final_time < 0, coalesce(?, final_time), final_time)
    WHERE seq = ?`);
  const lastDelivery = db.prepare<[BoundId, StoredKey], { final_at: number | null }>(`
    SELECT ${FINAL_AT} FROM (
      SELECT * FROM messages INDEXED BY messages_by_recipient
      WHERE account = ? AND recipient_key = ? ORDER BY seq DESC LIMIT ${MAX_RECENT_MESSAGES})
    WHERE status_code IN (${STATUS_CODES.sql('delivered')}, ${STATUS_CODES.sql('complained')}) AND simulated = 0
    ORDER BY seq DESC LIMIT 1`);
  const setExpiry = sql.run<[number, number, number]>(
    'UPDATE messages SET expires_at = ?, updated_at = ? WHERE seq = ?',
  );
  const setAttempts = sql.run<[number, number]>('UPDATE messages SET attempts = ? WHERE seq = ?');
  const insertAttempt = sql.run<[StoredAttempt]>(`INSERT INTO ${sql.row('attempts')}`);
  const attemptsOf = sql.all<[number], StoredAttempt>(
    'SELECT * FROM attempts WHERE message_seq = ? ORDER BY attempt',
  );

  return {
    /** Returns its id. Without an account its bytes are not counted. */
    insertContent: ({ body, size, sharedId }: NewContent, at: number, accountId?: string): number => {
      const owner = accountId === undefined ? null : account.assign(accountId);
      return insertContent(body, size, sharedId ?? null, at, owner);
    },
    /** Null when retention has deleted it. */
    content: (contentId: number): ContentRow | null => {
      const row = content.get(contentId);
      if (row === undefined) return null;
      const { bytes, ...rest } = row;
      return { bytes: separateMemory(bytes), ...rest };
    },
    /** Returns its seq. `sentAt`: when it was leased, as part of its acceptance; null, the default: it waits. */
    insert: (row: NewMessage, sentAt: number | null = null): number => {
      const stored = toStored(row, sentAt);
      const seq = insert(stored);
      const { account: owner, labels } = stored;
      if (labels !== null) {
        insertTags({ seq, labels, account: owner });
        addBytes({ labels, account: owner });
      }
      return seq;
    },
    bySeq: (seq: number): MessageRow | null => {
      const found = bySeq.get(seq);
      return found === undefined ? null : toRow(found);
    },
    /**
     * The id of the first message of the send of a message that belongs to no campaign: the messages of a job, or with the same
     * content. Ids of contents can be assigned again, so they are of the same account and time. Null: there is no such message.
     */
    firstOfSend: (seq: number, isJob: boolean): string | null => {
      const key = (isJob ? firstOfJob : firstOfContent).get(seq);
      return key === undefined ? null : messageIdOf(key);
    },
    /** A message of any account: compare `account_id` before returning it to a caller. */
    byId: (messageId: string): ListedMessage | null => {
      const found = byId.get(messageKey(messageId));
      return found === undefined ? null : toListed(toRow(found), found);
    },
    /** `sentAt` and `finalAt` do not change once they are set. `attempts`: their number after an attempt; null: unchanged. */
    setState: (
      seq: number,
      status: MessageStatus,
      at: number,
      sentAt: number | null,
      finalAt: number | null,
      attempts: number | null = null,
    ): void => setState(STATUS_CODES.code(status), at, attempts, sentAt, finalAt, seq),
    /**
     * When the newest message to this recipient that is delivered, and did not bounce later, was delivered; null: there is
     * none among the newest MAX_RECENT_MESSAGES.
     */
    lastDelivery: (accountId: string, recipientHash: string): number | null =>
      lastDelivery.get(account.find(accountId), keyOfRecipient(recipientHash))?.final_at ?? null,
    /** `expiresAt`, `at`: epoch ms. */
    setExpiry: (seq: number, expiresAt: number, at: number): void => setExpiry(expiresAt, at, seq),
    /** Sets the number of attempts of a message whose state does not change. */
    setAttempts: (seq: number, attempts: number): void => setAttempts(attempts, seq),
    insertAttempt: (row: NewAttempt): void => insertAttempt(toStoredAttempt(row)),
    attemptsOf: (seq: number): AttemptRow[] => attemptsOf(seq).map(toAttempt),
  };
}

/** Returns a view of a whole ArrayBuffer: transferring a part of one would transfer other data, too. */
function separateMemory(bytes: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer, byteLength } = bytes;
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
    ? new Uint8Array(buffer)
    : new Uint8Array(bytes);
}

/*
 * The part that the contents of many messages have in common (mail/shared-content.ts), in one row. A row never changes and
 * its id is never assigned again, so that it can be cached by id.
 */

/** Identifies a shared content. */
export interface SharedContentKey {
  /** `TEMPLATED` for messages with the same template. */
  campaignSeq: number;
  /**
   * SHA-256 of the body: a campaign gets another row when the common part of its messages changes while it is sent. For
   * messages with the same template it includes their account.
   */
  digest: Uint8Array;
  /** The account whose bytes are counted; undefined: they are not. */
  accountId?: string;
}

/** No campaign has this number. */
const TEMPLATED = 0;

/**
 * Recipients are in the contents that refer to a shared one. HTML that its sender rendered and sent several times is shared, too:
 * an erasure that removes its last content removes it (`erasures.removeContent`).
 */
export const SHARED_CONTENT_POLICY = {
  table: 'shared_contents',
  personal: [],
  retention: { kind: 'sharedBodies', rows: 'shared contents', period: 'bodies' },
} as const satisfies DataPolicy;

/**
 * `shared_contents`, unique by campaign and digest. Rows without copies are read by the index `shared_contents_unused`.
 */
export function sharedContentTable(db: Database) {
  const sql = statements(db);
  const find = db
    .prepare<[number, Uint8Array], number>(
      'SELECT shared_id FROM shared_contents WHERE campaign_seq = ? AND digest = ?',
    )
    .pluck();
  const insert = db.prepare<[number, Uint8Array, number, number, string | Uint8Array, BoundId | null]>(`
    INSERT INTO shared_contents (campaign_seq, digest, created_at, copies, size, body, account)
    VALUES (?, ?, ?, 0, ?, ?, ?)`);
  const { account } = idNumbers(db);
  const ownerOf = (accountId: string | undefined) =>
    accountId === undefined ? null : account.assign(accountId);
  const addCopies = sql.run<[number, number]>(
    'UPDATE shared_contents SET copies = copies + ? WHERE shared_id = ?',
  );
  const refer = db
    .prepare<[number, Uint8Array], number>(
      'UPDATE shared_contents SET copies = copies + 1 WHERE campaign_seq = ? AND digest = ? RETURNING shared_id',
    )
    .pluck();
  return {
    /** Returns the id of the row with this key, which is inserted if it does not exist. */
    findOrInsert: (
      { campaignSeq, digest, accountId }: SharedContentKey,
      { body, size }: NewContent,
      at: number,
    ): number =>
      find.get(campaignSeq, digest) ??
      Number(insert.run(campaignSeq, digest, at, size, body, ownerOf(accountId)).lastInsertRowid),
    /** Adds to the number of contents that refer to this row; a trigger subtracts deleted ones. */
    addCopies: (sharedId: number, count: number): void => addCopies(count, sharedId),
    /** Adds a content that refers to the row of a template, which is inserted if it does not exist; returns its id. */
    referToTemplated: (
      { digest, accountId }: Omit<SharedContentKey, 'campaignSeq'>,
      { body, size }: NewContent,
      at: number,
    ): number => {
      const known = refer.get(TEMPLATED, digest);
      if (known !== undefined) return known;
      const { lastInsertRowid } = insert.run(TEMPLATED, digest, at, size, body, ownerOf(accountId));
      addCopies(1, Number(lastInsertRowid));
      return Number(lastInsertRowid);
    },
    get: sql.get<[sharedId: number], Omit<ContentRow, 'bytes' | 'shared_id'> & { bytes: Buffer }>(`
      SELECT CAST(body AS BLOB) AS bytes, ${ENCODING} AS encoding, size
      FROM shared_contents WHERE shared_id = ?`),
    /** Deletes rows that no content refers to; returns how many, at most `limit`. */
    purge: sql.changes<[createdBefore: number, limit: number]>(`
      DELETE FROM shared_contents WHERE shared_id IN (
        SELECT shared_id FROM shared_contents WHERE copies = 0 AND created_at < ? LIMIT +?)`),
  };
}

export const DELAY_NOTICE_POLICY = {
  table: 'delay_notices',
  personal: [],
  retention: {
    kind: 'delayNotices',
    rows: 'timed',
    period: 'events',
    key: 'message_seq, fingerprint',
    time: 'at',
  },
} as const satisfies DataPolicy;

/**
 * Recorded delivery warnings of other servers, so that a repeated one is not recorded again; complaints about messages that are
 * not known have the number 0.
 */
export function delayNoticeTable(db: Database) {
  const sql = statements(db);
  return {
    /** Returns false when this warning is recorded already. */
    add: sql.changed<[messageSeq: number, fingerprint: Buffer, at: number]>(
      'INSERT INTO delay_notices (message_seq, fingerprint, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
    ),
    /** Number of warnings recorded for a message. */
    count: sql.count<[messageSeq: number]>('SELECT count(*) FROM delay_notices WHERE message_seq = ?'),
  };
}
