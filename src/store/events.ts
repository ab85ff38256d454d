import type { Database } from './database.ts';
import type { MessageRow } from './messages.ts';

/** The ordered, append-only record of what happened. Only `events/record` inserts into it. */
export interface NewEvent {
  event_id: string;
  account_id: string;
  kind: string;
  at: number;
  message_seq: number | null;
  domain_id: string | null;
  /** JSON of the fields that this kind has besides the common ones. */
  data: string;
}

/** An event with the fields of its message, null where it has none. */
export type EventRow = NewEvent & { seq: number } & {
  [Column in keyof Pick<
    MessageRow,
    | 'message_id'
    | 'job_id'
    | 'campaign_id'
    | 'subscription_group_id'
    | 'use_case'
    | 'from_address'
    | 'recipient'
    | 'recipient_hash'
    | 'subject'
    | 'simulated'
  >]: MessageRow[Column] | null;
};

/** Events with the fields of their messages. CROSS JOIN excludes events without a message. */
export const selectEvent = (events: string, join: 'LEFT JOIN' | 'CROSS JOIN' = 'LEFT JOIN') => `
  SELECT e.seq, e.event_id, e.account_id, e.kind, e.at, e.message_seq, coalesce(m.domain_id, e.domain_id) AS domain_id, e.data,
    m.message_id, m.job_id, m.campaign_id, m.subscription_group_id, m.use_case, m.from_address, m.recipient, m.recipient_hash, m.subject,
    m.simulated
  FROM ${events} ${join} messages m ON m.seq = e.message_seq`;

const SELECT = selectEvent('events e');

export function eventTable(db: Database) {
  const insert = db.prepare<NewEvent>(`
    INSERT INTO events (event_id, account_id, kind, at, message_seq, domain_id, data)
    VALUES (@event_id, @account_id, @kind, @at, @message_seq, @domain_id, @data)`);
  const bySeq = db.prepare<[number], EventRow>(`${SELECT} WHERE e.seq = ?`);
  const ofMessage = db.prepare<[number], EventRow>(`${SELECT} WHERE e.message_seq = ? ORDER BY e.seq`);
  const last = db.prepare<[], { seq: number }>('SELECT * FROM events ORDER BY seq DESC LIMIT 1');
  return {
    /** Returns its seq. */
    insert: (row: NewEvent): number => Number(insert.run(row).lastInsertRowid),
    /** Throws when the newest event cannot be read: then no further one can be written, either. */
    checkReadable: (): void => {
      last.get();
    },
    /** Null when it is past its retention. */
    bySeq: (seq: number): EventRow | null => bySeq.get(seq) ?? null,
    ofMessage: (messageSeq: number): EventRow[] => ofMessage.all(messageSeq),
  };
}
