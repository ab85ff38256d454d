import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database.ts';

/** A reply without known wording, and how often it came. */
export interface UnclassifiedReplyRow {
  code: number;
  /** '': none. */
  enhanced: string;
  phase: string;
  /** Normalized: without addresses and numbers. */
  text: string;
  /** MX host of the last one; '': not known. */
  host: string;
  replies: number;
  /** Epoch ms. */
  first_at: number;
  last_at: number;
}

export const UNCLASSIFIED_REPLY_POLICY = {
  table: 'unclassified_replies',
  personal: ['text'],
  erasure: { stays: 'text of servers, from which addresses and numbers are removed before it is stored' },
  retention: {
    kind: 'unclassifiedReplies',
    rows: 'timed',
    period: 'events',
    key: 'code, enhanced, phase, text',
    time: 'last_at',
  },
} as const satisfies DataPolicy;

/** Different replies that are stored; beyond it, the one that has not come for the longest time is deleted. */
const MAX_ROWS = 1000;

export function unclassifiedReplyTable(db: Database, maxRows = MAX_ROWS) {
  const add = db.prepare<[UnclassifiedReplyRow]>(
    `INSERT INTO unclassified_replies VALUES (@code, @enhanced, @phase, @text, @host, @replies, @first_at, @last_at)
     ON CONFLICT DO UPDATE SET replies = replies + excluded.replies, host = excluded.host, last_at = excluded.last_at`,
  );
  const count = db.prepare<[], number>('SELECT count(*) FROM unclassified_replies').pluck();
  const removeOldest = db.prepare<[number]>(
    `DELETE FROM unclassified_replies WHERE (code, enhanced, phase, text) IN (
       SELECT code, enhanced, phase, text FROM unclassified_replies ORDER BY last_at LIMIT ?)`,
  );
  const frequent = db.prepare<[number], UnclassifiedReplyRow>(
    'SELECT * FROM unclassified_replies ORDER BY replies DESC, last_at DESC LIMIT ?',
  );
  return {
    /** Adds to the counts; `rows` are bounded by the caller. */
    add: (rows: readonly UnclassifiedReplyRow[]): void => {
      for (const row of rows) add.run(row);
      const excess = (count.get() ?? 0) - maxRows;
      if (excess > 0) removeOldest.run(excess);
    },
    /** The most frequent first. */
    frequent: (limit: number): UnclassifiedReplyRow[] => frequent.all(limit),
  };
}
