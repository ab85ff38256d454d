import { type Database, preparedByText } from './database.ts';
import type { MessageFilter, MessageRow } from './messages.ts';

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

export interface EventFilter extends Omit<MessageFilter, 'beforeSeq'> {
  /** Only events after this one: the page key. */
  afterSeq: number;
  kind?: string;
  messageId?: string;
}

const SELECT = `
  SELECT e.seq, e.event_id, e.account_id, e.kind, e.at, e.message_seq, coalesce(m.domain_id, e.domain_id) AS domain_id, e.data,
    m.message_id, m.job_id, m.campaign_id, m.subscription_group_id, m.use_case, m.from_address, m.recipient, m.recipient_hash, m.subject,
    m.simulated
  FROM events e LEFT JOIN messages m ON m.seq = e.message_seq`;

export function eventTable(db: Database) {
  const insert = db.prepare<NewEvent>(`
    INSERT INTO events (event_id, account_id, kind, at, message_seq, domain_id, data)
    VALUES (@event_id, @account_id, @kind, @at, @message_seq, @domain_id, @data)`);
  const bySeq = db.prepare<[number], EventRow>(`${SELECT} WHERE e.seq = ?`);
  const bounds = db.prepare<[], { first: number | null; last: number | null }>(
    'SELECT (SELECT min(seq) FROM events) AS first, (SELECT max(seq) FROM events) AS last',
  );
  const from = db.prepare<[number], { seq: number; at: number }>(
    'SELECT seq, at FROM events WHERE seq >= ? ORDER BY seq LIMIT 1',
  );
  const ofMessage = db.prepare<[number], EventRow>(`${SELECT} WHERE e.message_seq = ? ORDER BY e.seq`);
  const last = db.prepare<[], { seq: number }>('SELECT * FROM events ORDER BY seq DESC LIMIT 1');
  const fed = preparedByText<EventFilter, EventRow>(db);
  return {
    /** Returns its seq. */
    insert: (row: NewEvent): number => Number(insert.run(row).lastInsertRowid),
    /** Throws when the newest event cannot be read: then no further one can be written, either. */
    checkReadable: (): void => {
      last.get();
    },
    /** Null when it is past its retention. */
    bySeq: (seq: number): EventRow | null => bySeq.get(seq) ?? null,
    /** The first event at or after a time, by halving: numbers and times rise together. Past the last: one more. */
    firstSeqAt: (at: number): number => {
      const { first, last } = bounds.get() ?? { first: null, last: null };
      let low = first ?? 1;
      let high = (last ?? 0) + 1;
      while (low < high) {
        const middle = from.get(Math.floor((low + high) / 2));
        if (middle === undefined || middle.at >= at) high = Math.floor((low + high) / 2);
        else low = middle.seq + 1;
      }
      return low;
    },
    ofMessage: (messageSeq: number): EventRow[] => ofMessage.all(messageSeq),
    /**
     * Oldest first, from `afterSeq` on: a consumer that keeps the last key misses nothing. An event without a
     * message names the person and the campaign itself; it has no status.
     */
    feed: (filter: EventFilter): EventRow[] => {
      const where = ['e.account_id = @accountId', 'e.seq > @afterSeq'];
      if (filter.recipientHash !== undefined) {
        where.push("coalesce(m.recipient_hash, e.data ->> '$.contactIdentifier') = @recipientHash");
      }
      if (filter.domainId !== undefined) where.push('coalesce(m.domain_id, e.domain_id) = @domainId');
      if (filter.campaignId !== undefined) {
        where.push("coalesce(m.campaign_id, e.data ->> '$.campaignId') = @campaignId");
      }
      if (filter.jobId !== undefined) where.push('m.job_id = @jobId');
      if (filter.status !== undefined) where.push('m.status = @status');
      if (filter.messageId !== undefined) where.push('m.message_id = @messageId');
      if (filter.kind !== undefined) where.push('e.kind = @kind');
      if (filter.from !== undefined) where.push('e.at >= @from');
      if (filter.to !== undefined) where.push('e.at < @to');
      return fed(`${SELECT} WHERE ${where.join(' AND ')} ORDER BY e.seq LIMIT +@limit`).all(filter);
    },
  };
}
