import type { Database } from './database.ts';
import { type Page, type PageFilter, pageOf } from './page.ts';

/** Whom an account may not write to, and the strikes that lead there. */
export const SUPPRESSION_STREAMS = ['all', 'tx', 'mk'] as const;
export type SuppressionStream = (typeof SUPPRESSION_STREAMS)[number];

export const SUPPRESSION_REASONS = [
  'hard_bounce',
  'soft_bounces',
  'complaint',
  'unsubscribe',
  'manual',
] as const;
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number];

export interface SuppressionRow {
  /** The page key. */
  seq: number;
  account_id: string;
  recipient_hash: string;
  stream: SuppressionStream;
  reason: SuppressionReason;
  /** Null after the person was erased. */
  email: string | null;
  message_seq: number | null;
  created_at: number;
}

export type NewSuppression = Omit<SuppressionRow, 'seq'>;

export interface SuppressionFilter extends PageFilter {
  recipientHash?: string;
  stream?: SuppressionStream;
  reason?: SuppressionReason;
}

export type StrikeKind = 'soft' | 'unproven';

export function suppressionTable(db: Database) {
  const add = db.prepare<NewSuppression>(`
    INSERT INTO suppressions (account_id, recipient_hash, stream, reason, email, message_seq, created_at)
    VALUES (@account_id, @recipient_hash, @stream, @reason, @email, @message_seq, @created_at)
    ON CONFLICT DO NOTHING`);
  const of = db.prepare<[string, string], SuppressionRow>(
    'SELECT * FROM suppressions WHERE account_id = ? AND recipient_hash = ? ORDER BY +seq',
  );
  const remove = db.prepare<[number]>('DELETE FROM suppressions WHERE seq = ?');
  const addStrike = db.prepare<[string, string, StrikeKind, number]>(
    'INSERT INTO strikes (account_id, recipient_hash, kind, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const strikes = db.prepare<[string, string, StrikeKind, number], { at: number }>(
    'SELECT at FROM strikes WHERE account_id = ? AND recipient_hash = ? AND kind = ? AND at >= ? ORDER BY at',
  );
  const clearStrikes = db.prepare<[string, string]>(
    'DELETE FROM strikes WHERE account_id = ? AND recipient_hash = ?',
  );
  return {
    /** Keeps the first of equal ones; false when there was one. */
    add: (row: NewSuppression): boolean => {
      // Of an erased person a message knows only the identifier, and that is no address.
      const email = row.email === row.recipient_hash ? null : row.email;
      return add.run({ ...row, email }).changes === 1;
    },
    /** Oldest first. */
    of: (accountId: string, recipientHash: string): SuppressionRow[] => of.all(accountId, recipientHash),
    /** Newest first. */
    list: (filter: SuppressionFilter): Page<SuppressionRow> => {
      // One person has few: the plus keeps the planner from walking the whole account in order instead.
      const seq = filter.recipientHash === undefined ? 'seq' : '+seq';
      const where = ['account_id = @accountId'];
      if (filter.beforeSeq !== null) where.push(`${seq} < @beforeSeq`);
      if (filter.recipientHash !== undefined) where.push('recipient_hash = @recipientHash');
      if (filter.stream !== undefined) where.push('stream = @stream');
      if (filter.reason !== undefined) where.push('reason = @reason');
      const rows = db
        .prepare<SuppressionFilter, SuppressionRow>(
          `SELECT * FROM suppressions WHERE ${where.join(' AND ')} ORDER BY ${seq} DESC LIMIT @limit + 1`,
        )
        .all(filter);
      return pageOf(rows, filter.limit);
    },
    remove: (seq: number): void => {
      remove.run(seq);
    },
    addStrike: (accountId: string, recipientHash: string, kind: StrikeKind, at: number): void => {
      addStrike.run(accountId, recipientHash, kind, at);
    },
    /** Times of the strikes since then, oldest first. */
    strikesSince: (accountId: string, recipientHash: string, kind: StrikeKind, since: number): number[] =>
      strikes.all(accountId, recipientHash, kind, since).map((row) => row.at),
    clearStrikes: (accountId: string, recipientHash: string): void => {
      clearStrikes.run(accountId, recipientHash);
    },
  };
}
