import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import type { IdempotencyRow } from '../idempotency.ts';
import { dataOf, type StoredData, toStoredData } from '../messages/event-rows.ts';
import type { NewEvent } from '../messages/events.ts';
import {
  FINAL_AT,
  idOrNull,
  MESSAGE_COLUMNS,
  messageRows,
  type StoredAttempt,
  type StoredMessage,
  toStoredAttempt,
} from '../messages/message-rows.ts';
import type { AttemptRow, MessageRow, NewContent } from '../messages/messages.ts';
import { type BoundId, idNumbers, type StoredId } from '../rows/id-numbers.ts';
import { keyOfRecipient, recipientOfKey, type StoredKey } from '../rows/row-keys.ts';
import { closeSignUps, SIGN_UP_LIFETIME_MS } from './closed-sign-ups.ts';

/* Statements that erase a person from tables that are otherwise append-only. Only `audience/erasure` may use them. */

export interface ErasureRow {
  seq: number;
  account_id: string;
  /** JSON: the values to search for. */
  person: string;
  /** Messages and events from these numbers on were stored after the request, and are not erased. */
  before_message: number;
  before_event: number;
  /** The last message that was cleared. */
  at_message: number;
  created_at: number;
}

export const ERASURE_POLICY = {
  table: 'erasures',
  personal: ['person'],
  erasure: { stays: 'until the erasure is complete, which needs it' },
  retention: { until: 'the erasure is complete' },
} as const satisfies DataPolicy;

/** A text with the number of its row. */
export interface StoredText {
  seq: number;
  text: string;
}

export type ErasableResponse = Pick<IdempotencyRow, 'account_id' | 'endpoint' | 'key' | 'body'>;

/**
 * Not erased: mail to the operator, and reports about no message, which concern domains, not people. An account could
 * otherwise delete them by erasing the address that they are sent to, or that of a reporter.
 */
const NOT_TO_OPERATOR =
  "box NOT IN ('postmaster', 'abuse', 'dmarc', 'tlsrpt') AND (box <> 'feedback' OR k.message_seq IS NOT NULL)";

/**
 * `erasures`, and the statements by which erasers find and clear rows of messages, events and mail. `emptyLog` and
 * `rewrite` must not run in a unit of work; all other writes must.
 */
export function erasureTable(db: Database) {
  const sql = statements(db);
  const insert = sql.insert<[Omit<ErasureRow, 'seq' | 'before_message' | 'before_event' | 'at_message'>]>(`
    INSERT INTO erasures (account_id, person, before_message, before_event, at_message, created_at)
    VALUES (@account_id, @person, (SELECT coalesce(max(seq), 0) + 1 FROM messages),
      (SELECT coalesce(max(seq), 0) + 1 FROM events), 0, @created_at)`);
  const closeLinks = sql.run<[number, number]>(
    closeSignUps(`
    SELECT account_id, identifier.value, '', created_at, created_at + ?
    FROM erasures, json_each(person, '$.identifiers') AS identifier WHERE seq = ?`),
  );
  const setAt = sql.run<[number, number]>('UPDATE erasures SET at_message = ? WHERE seq = ?');
  return {
    /** Begins the erasure of what is stored at this moment, and closes the person's sign-up links. Returns its seq. */
    begin: (row: { account_id: string; person: string; created_at: number }): number => {
      const seq = insert(row);
      closeLinks(SIGN_UP_LIFETIME_MS, seq);
      return seq;
    },
    get: sql.get<[seq: number], ErasureRow>('SELECT * FROM erasures WHERE seq = ?'),
    pending: sql.values<[], number>('SELECT seq FROM erasures ORDER BY seq'),
    setAt: (seq: number, messageSeq: number): void => setAt(messageSeq, seq),
    remove: sql.run<[seq: number]>('DELETE FROM erasures WHERE seq = ?'),
    ...rowsOfPerson(db),
    ...rowsOfMessage(db),
    ...databaseFile(db),
  };
}

export interface ErasureRange {
  after: number;
  before: number;
  limit: number;
}

/** A message that refers to a content. */
export type ContentCopy = Pick<MessageRow, 'seq' | 'recipient_hash' | 'final_at' | 'subject' | 'labels'>;

export interface NewestMessage {
  /** When it was accepted. */
  createdAt: number;
  recipient: string;
}

export interface ErasableMail {
  seq: number;
  sender: string;
  raw: Buffer;
  /** The account whose message it is about; null: it is about no known message. */
  account_id: string | null;
}

/** Rows that are found by the person's identifier. */
function rowsOfPerson(db: Database) {
  const sql = statements(db);
  const { account } = idNumbers(db);
  const { toRow } = messageRows(db);
  const messages = db
    .prepare<[BoundId, StoredKey, number, number, number], StoredMessage>(`
      SELECT ${MESSAGE_COLUMNS} FROM messages m INDEXED BY messages_by_recipient
      WHERE account = ? AND recipient_key = ? AND seq > ? AND seq < ? ORDER BY seq LIMIT +?`)
    .raw();
  const seqs = sql.values<[BoundId, StoredKey, number, number, number], number>(`
    SELECT seq FROM messages INDEXED BY messages_by_recipient
    WHERE account = ? AND recipient_key = ? AND seq > ? AND seq < ? ORDER BY seq LIMIT +?`);
  const newestMessage = sql.get<[BoundId, StoredKey, number], NewestMessage>(`
    SELECT created_at AS createdAt, recipient FROM messages INDEXED BY messages_by_recipient
    WHERE account = ? AND recipient_key = ? AND seq < ? ORDER BY seq DESC LIMIT 1`);
  const events = sql.all<[BoundId, string, number, number, number], StoredText>(`
    SELECT seq, data AS text FROM events INDEXED BY events_by_person
    WHERE account = ? AND data ->> '$.contactIdentifier' = ? AND message_seq IS NULL AND seq > ? AND seq < ?
    ORDER BY seq LIMIT +?`);
  const suppressions = sql.run<[string, string]>(
    'UPDATE suppressions SET email = NULL WHERE account_id = ? AND recipient_hash = ?',
  );
  const removals = sql.run<[string, string]>(
    'UPDATE suppression_removals SET note = NULL WHERE account_id = ? AND recipient_hash = ?',
  );
  const responses = sql.all<[string, string, string, number], ErasableResponse>(`
    SELECT account_id, endpoint, key, body FROM idempotency WHERE account_id = ? AND (endpoint, key) > (?, ?)
    ORDER BY endpoint, key LIMIT +?`);
  const kept = sql.all<[number, number], Omit<ErasableMail, 'account_id'> & { account: StoredId | null }>(`
    SELECT k.seq, k.sender, k.raw, m.account FROM kept_mail k LEFT JOIN messages m ON m.seq = k.message_seq
    WHERE k.seq > ? AND ${NOT_TO_OPERATOR} ORDER BY k.seq LIMIT +?`);
  return {
    /** Messages to one recipient, oldest first, `after` < seq < `before`. */
    messagesOf: (accountId: string, recipientHash: string, range: ErasureRange): MessageRow[] =>
      messages
        .all(account.find(accountId), keyOfRecipient(recipientHash), range.after, range.before, range.limit)
        .map(toRow),
    /** The seqs of the same messages. */
    messageSeqsOf: (accountId: string, recipientHash: string, range: ErasureRange): number[] =>
      seqs(account.find(accountId), keyOfRecipient(recipientHash), range.after, range.before, range.limit),
    /** The newest message to the recipient before `before`; null: there is none. */
    newestMessage: (accountId: string, recipientHash: string, before: number): NewestMessage | null =>
      newestMessage(account.find(accountId), keyOfRecipient(recipientHash), before),
    /** Events about a person without a message, oldest first, `after` < seq < `before`. */
    eventsAbout: (accountId: string, recipientHash: string, range: ErasureRange): StoredText[] =>
      events(account.find(accountId), recipientHash, range.after, range.before, range.limit),
    /** Removes an address from its suppressions, and the notes about their removal. */
    clearSuppressedAddress: (accountId: string, recipientHash: string): void => {
      suppressions(accountId, recipientHash);
      removals(accountId, recipientHash);
    },
    /** Responses stored for repeated requests, in the order of their keys. */
    responsesAfter: (
      accountId: string,
      after: { endpoint: string; key: string },
      limit: number,
    ): ErasableResponse[] => responses(accountId, after.endpoint, after.key, limit),
    setResponse: sql.run<[row: ErasableResponse]>(
      'UPDATE idempotency SET body = @body WHERE account_id = @account_id AND endpoint = @endpoint AND key = @key',
    ),
    /** Received mail that is stored, except mail to the operator. */
    keptMailAfter: (seq: number, limit: number): ErasableMail[] =>
      kept(seq, limit).map(({ account: number, ...mail }) => ({
        ...mail,
        account_id: idOrNull(account, number),
      })),
    removeKeptMail: sql.run<[seq: number]>('DELETE FROM kept_mail WHERE seq = ?'),
  };
}

/** Rows that belong to a message. */
function rowsOfMessage(db: Database) {
  const sql = statements(db);
  const recipientKey = db
    .prepare<[number], StoredKey>('SELECT recipient_key FROM messages WHERE seq = ?')
    .pluck();
  const clear = sql.run<[string, number]>(
    "UPDATE messages SET recipient = ?, subject = '', labels = NULL WHERE seq = ?",
  );
  const copies = sql.all<
    [number, number, number],
    Omit<ContentCopy, 'recipient_hash'> & { recipient_key: StoredKey }
  >(`
    SELECT seq, recipient_key, ${FINAL_AT}, subject, labels FROM messages INDEXED BY messages_by_content
    WHERE content_id = ? AND seq > ? ORDER BY seq LIMIT +?`);
  const clearLabels = sql.run<[number]>('UPDATE messages SET labels = NULL WHERE seq = ?');
  const setSubject = sql.run<[string, number]>('UPDATE messages SET subject = ? WHERE seq = ?');
  const removeContent = sql.value<[number], number>(
    'DELETE FROM contents WHERE content_id = ? RETURNING shared_id',
  );
  const removeShared = sql.run<[number]>(
    'DELETE FROM shared_contents WHERE shared_id = ? AND copies = 0 AND campaign_seq = 0',
  );
  const setContent = sql.run<[string | Uint8Array, number, number]>(
    'UPDATE contents SET body = ?, size = ? WHERE content_id = ?',
  );
  const setReport = sql.run<[StoredAttempt]>(
    'UPDATE attempts SET report = @report WHERE message_seq = @message_seq AND attempt = @attempt',
  );
  const events = sql.all<[number], { seq: number; at: number; data: StoredData }>(
    'SELECT seq, at, data FROM events WHERE message_seq = ?',
  );
  const event = db.prepare<[number], Pick<NewEvent, 'at' | 'message_seq'>>(
    'SELECT at, message_seq FROM events WHERE seq = ?',
  );
  const setEvent = sql.run<[StoredData, number]>('UPDATE events SET data = ? WHERE seq = ?');
  const clearResponses = sql.run<[number, string]>(`
    UPDATE webhook_deliveries SET response_body = NULL, error = NULL
    WHERE event_seq = ? AND webhook IN (SELECT number FROM webhooks WHERE account_id = ?)`);
  return {
    /** Replaces the address with the identifier, empties the subject, and removes tags and metadata. */
    clearMessage: (seq: number): void => {
      const key = recipientKey.get(seq);
      if (key !== undefined) clear(recipientOfKey(key), seq);
    },
    /** The messages of a content after this one, in order: a content of a campaign can have hundreds of thousands. */
    copiesAfter: (contentId: number, seq: number, limit: number): ContentCopy[] =>
      copies(contentId, seq, limit).map(({ recipient_key: key, ...copy }) => ({
        ...copy,
        recipient_hash: recipientOfKey(key),
      })),
    clearLabels: (seq: number): void => clearLabels(seq),
    setSubject: (seq: number, subject: string): void => setSubject(subject, seq),
    /** Also removes the texts of a template that no other content refers to: the sender may have rendered them. */
    removeContent: (contentId: number): void => {
      const sharedId = removeContent(contentId);
      if (sharedId !== null) removeShared(sharedId);
    },
    setContent: (contentId: number, { body, size }: NewContent): void => setContent(body, size, contentId),
    setReport: (row: AttemptRow): void =>
      setReport(toStoredAttempt({ ...row, report: JSON.parse(row.report) })),
    eventsOf: (messageSeq: number): StoredText[] =>
      events(messageSeq).map(({ seq, at, data }) => ({ seq, text: dataOf(data, at) })),
    /** `data`: JSON. */
    setEvent: (seq: number, data: string): void => {
      const row = event.get(seq);
      if (row !== undefined) setEvent(toStoredData(data, row), seq);
    },
    /** Clears the responses of the account's endpoints to an event. */
    clearWebhookResponses: (accountId: string, eventSeq: number): void => clearResponses(eventSeq, accountId),
    linksOf: sql.all<[campaignId: string], { rowid: number; url: string }>(
      'SELECT rowid, url FROM campaign_links WHERE campaign_id = ?',
    ),
    removeLink: sql.run<[rowid: number]>('DELETE FROM campaign_links WHERE rowid = ?'),
  };
}

/** Operations on the database file. They must not be called inside a unit of work. */
function databaseFile(db: Database) {
  const emptyLog = db.prepare<[], { busy: 0 | 1 }>('PRAGMA wal_checkpoint(TRUNCATE)');
  return {
    /** Path of the database. */
    path: (): string => db.name,
    /** Copies all commits into the file and empties the write-ahead log; returns false when a reader prevents it. */
    emptyLog: (): boolean => emptyLog.get()?.busy === 0,
    /**
     * Rewrites the whole file without its free pages. All other reads and writes wait for it. SQLite's temporary copy is
     * a file in the directory that `SQLITE_TMPDIR` named when the first database was opened.
     */
    rewrite: (): void => {
      db.exec('PRAGMA temp_store = FILE');
      // The rewritten file can return free pages (free-space.ts).
      db.exec('PRAGMA auto_vacuum = INCREMENTAL');
      db.exec('VACUUM');
      db.exec('PRAGMA temp_store = MEMORY');
    },
  };
}
