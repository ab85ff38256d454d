import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';

/** A reply that no rule of the classifier matches, and how often it was received. */
export interface UnclassifiedReplyRow {
  code: number;
  /** '': none. */
  enhanced: string;
  phase: string;
  /** Normalized: without addresses and numbers. */
  text: string;
  /** MX host that sent the last one; '': not known. */
  host: string;
  /** Number of replies. */
  replies: number;
  /** Epoch ms, like `last_at`. */
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

/** Maximum number of different replies; above it, those that were received least recently are deleted. */
const MAX_ROWS = 1000;

/**
 * `unclassified_replies`, by code, phase and text. `maxRows`: different replies that stay after an `add`, the latest
 * ones by the index `unclassified_replies_by_age`.
 */
export function unclassifiedReplyTable(db: Database, maxRows = MAX_ROWS) {
  const add = db.prepare<[UnclassifiedReplyRow]>(
    `INSERT INTO unclassified_replies VALUES (@code, @enhanced, @phase, @text, @host, @replies, @first_at, @last_at)
     ON CONFLICT DO UPDATE SET replies = replies + excluded.replies, host = excluded.host, last_at = excluded.last_at`,
  );
  const count = db.prepare<[], number>('SELECT count(*) FROM unclassified_replies').pluck();
  const removeOldest = db.prepare<[number]>(
    `DELETE FROM unclassified_replies WHERE (code, enhanced, phase, text) IN (
       SELECT code, enhanced, phase, text FROM unclassified_replies ORDER BY last_at LIMIT +?)`,
  );
  const frequent = db.prepare<[number], UnclassifiedReplyRow>(
    'SELECT * FROM unclassified_replies ORDER BY replies DESC, last_at DESC LIMIT +?',
  );
  return {
    /** Adds the numbers of `rows`, whose length the caller bounds, to the stored ones. */
    add: (rows: readonly UnclassifiedReplyRow[]): void => {
      for (const row of rows) add.run(row);
      const excess = (count.get() ?? 0) - maxRows;
      if (excess > 0) removeOldest.run(excess);
    },
    /** The most frequent first. */
    frequent: (limit: number): UnclassifiedReplyRow[] => frequent.all(limit),
  };
}
