import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

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
  const sql = statements(db);
  const add = sql.run<[UnclassifiedReplyRow]>(`INSERT INTO ${sql.row('unclassified_replies')}
    ON CONFLICT DO UPDATE SET replies = replies + excluded.replies, host = excluded.host, last_at = excluded.last_at`);
  const count = sql.count('SELECT count(*) FROM unclassified_replies');
  const removeOldest = sql.run<
    [number]
  >(`DELETE FROM unclassified_replies WHERE (code, enhanced, phase, text) IN (
    SELECT code, enhanced, phase, text FROM unclassified_replies ORDER BY last_at LIMIT +?)`);
  return {
    /** Adds the numbers of `rows`, whose length the caller bounds, to the stored ones. */
    add: (rows: readonly UnclassifiedReplyRow[]): void => {
      for (const row of rows) add(row);
      const excess = count() - maxRows;
      if (excess > 0) removeOldest(excess);
    },
    /** The most frequent first. */
    frequent: sql.all<[limit: number], UnclassifiedReplyRow>(
      'SELECT * FROM unclassified_replies ORDER BY replies DESC, last_at DESC LIMIT +?',
    ),
  };
}
