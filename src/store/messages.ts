import type { Database } from './database.ts';
import type { UseCase } from './domains.ts';

/** Messages, one recipient each, and the contents they share. */
export const MESSAGE_STATUSES = [
  'queued',
  'sending',
  'delivered',
  'deferred',
  'bounced',
  'failed',
  'complained',
  'cancelled',
] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];
export type Role = 'to' | 'cc' | 'bcc';

export interface MessageRow {
  seq: number;
  message_id: string;
  account_id: string;
  content_id: number;
  use_case: UseCase;
  domain_id: string;
  job_id: string | null;
  campaign_id: string | null;
  subscription_group_id: string | null;
  from_address: string;
  recipient: string;
  recipient_hash: string;
  role: Role;
  subject: string;
  status: MessageStatus;
  attempts: number;
  simulated: 0 | 1;
  track_clicks: 0 | 1;
  track_opens: 0 | 1;
  /** Sent whatever the recipient's transactional opt-out says. */
  essential: 0 | 1;
  created_at: number;
  updated_at: number;
  expires_at: number;
  sent_at: number | null;
  final_at: number | null;
}

export type NewMessage = Omit<
  MessageRow,
  'seq' | 'status' | 'attempts' | 'updated_at' | 'sent_at' | 'final_at'
>;

/** A message with when it is tried next, null when it is not in the queue. */
export type ListedMessage = MessageRow & { due_at: number | null };

/** A content to be stored: JSON as a string, or as octets in an encoding of their own (mail/stored-content.ts). */
export interface NewContent {
  body: string | Uint8Array;
  /** Octets of the JSON in UTF-8. */
  size: number;
}

/** A content in memory of its own, which can be transferred to another thread. */
export interface ContentRow {
  octets: Uint8Array<ArrayBuffer>;
  encoding: 'json' | 'deflate';
  /** Octets of the JSON in UTF-8. */
  size: number;
}

export function messageTable(db: Database) {
  const insertContent = db.prepare<[string | Uint8Array, number, number]>(
    'INSERT INTO contents (body, size, created_at) VALUES (?, ?, ?)',
  );
  // Rows of older programs have no size, and are JSON.
  const content = db.prepare<[number], Omit<ContentRow, 'octets'> & { octets: Buffer }>(`
    SELECT CAST(body AS BLOB) AS octets, iif(typeof(body) = 'blob', 'deflate', 'json') AS encoding,
      coalesce(size, octet_length(body)) AS size
    FROM contents WHERE content_id = ?`);
  const insert = db.prepare<NewMessage>(`
    INSERT INTO messages (message_id, account_id, content_id, use_case, domain_id, job_id, campaign_id, subscription_group_id,
      from_address, recipient, recipient_hash, role, subject, status, simulated, track_clicks, track_opens, essential,
      created_at, updated_at, expires_at)
    VALUES (@message_id, @account_id, @content_id, @use_case, @domain_id, @job_id, @campaign_id, @subscription_group_id,
      @from_address, @recipient, @recipient_hash, @role, @subject, 'queued', @simulated, @track_clicks, @track_opens, @essential,
      @created_at, @created_at, @expires_at)`);
  const bySeq = db.prepare<[number], MessageRow>('SELECT * FROM messages WHERE seq = ?');
  const byId = db.prepare<[string], ListedMessage>(
    'SELECT m.*, q.due_at FROM messages m LEFT JOIN queue q USING (seq) WHERE message_id = ?',
  );
  const setState = db.prepare<[MessageStatus, number, number | null, number | null, number]>(
    'UPDATE messages SET status = ?, updated_at = ?, sent_at = coalesce(sent_at, ?), final_at = coalesce(final_at, ?) WHERE seq = ?',
  );
  const lastDelivery = db.prepare<[string, string], { final_at: number | null }>(`
    SELECT final_at FROM messages INDEXED BY messages_by_recipient
    WHERE account_id = ? AND recipient_hash = ? AND status IN ('delivered', 'complained') AND simulated = 0
    ORDER BY seq DESC LIMIT 1`);
  const countAttempt = db.prepare<[number], { attempts: number }>(
    'UPDATE messages SET attempts = attempts + 1 WHERE seq = ? RETURNING attempts',
  );
  const insertAttempt = db.prepare<AttemptRow>(
    'INSERT INTO attempts (message_seq, attempt, at, lane, report) VALUES (@message_seq, @attempt, @at, @lane, @report)',
  );
  const attemptsOf = db.prepare<[number], AttemptRow>(
    'SELECT * FROM attempts WHERE message_seq = ? ORDER BY attempt',
  );

  return {
    insertContent: ({ body, size }: NewContent, at: number): number =>
      Number(insertContent.run(body, size, at).lastInsertRowid),
    /** Null when it was purged. */
    content: (contentId: number): ContentRow | null => {
      const row = content.get(contentId);
      return row === undefined ? null : { ...row, octets: ownMemory(row.octets) };
    },
    /** Returns its seq. */
    insert: (row: NewMessage): number => Number(insert.run(row).lastInsertRowid),
    bySeq: (seq: number): MessageRow | null => bySeq.get(seq) ?? null,
    /** Whatever account it is in: compare `account_id` before answering a caller. */
    byId: (messageId: string): ListedMessage | null => byId.get(messageId) ?? null,
    /** `sentAt` and `finalAt` are kept once set. */
    setState: (
      seq: number,
      status: MessageStatus,
      at: number,
      sentAt: number | null,
      finalAt: number | null,
    ): void => {
      setState.run(status, at, sentAt, finalAt, seq);
    },
    /** When the newest message that reached this recipient was delivered, and did not come back; null: none. */
    lastDelivery: (accountId: string, recipientHash: string): number | null =>
      lastDelivery.get(accountId, recipientHash)?.final_at ?? null,
    /** One more attempt; returns how many there are now. */
    countAttempt: (seq: number): number => countAttempt.get(seq)?.attempts ?? 0,
    insertAttempt: (row: AttemptRow): void => {
      insertAttempt.run(row);
    },
    attemptsOf: (seq: number): AttemptRow[] => attemptsOf.all(seq),
  };
}

/** A view of a whole ArrayBuffer: only such a one can be transferred without taking other data with it. */
function ownMemory(octets: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer, byteLength } = octets;
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
    ? new Uint8Array(buffer)
    : new Uint8Array(octets);
}

export interface AttemptRow {
  message_seq: number;
  attempt: number;
  at: number;
  lane: 'primary' | 'secondary' | 'simulator';
  /** JSON. */
  report: string;
}
