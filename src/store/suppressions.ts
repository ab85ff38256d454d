import type { Database } from './database.ts';

/** Whom an account may not write to, and the strikes that lead there. */
export type SuppressionStream = 'all' | 'tx' | 'mk';
export type SuppressionReason = 'hard_bounce' | 'soft_bounces' | 'complaint' | 'unsubscribe' | 'manual';

export interface SuppressionRow {
  account_id: string;
  recipient_hash: string;
  stream: SuppressionStream;
  reason: SuppressionReason;
  /** Null after the person was erased. */
  email: string | null;
  message_seq: number | null;
  created_at: number;
}

export type StrikeKind = 'soft' | 'unproven';

export function suppressionTable(db: Database) {
  const add = db.prepare<SuppressionRow>(`
    INSERT INTO suppressions (account_id, recipient_hash, stream, reason, email, message_seq, created_at)
    VALUES (@account_id, @recipient_hash, @stream, @reason, @email, @message_seq, @created_at)
    ON CONFLICT DO NOTHING`);
  const of = db.prepare<[string, string], SuppressionRow>(
    'SELECT * FROM suppressions WHERE account_id = ? AND recipient_hash = ? ORDER BY created_at',
  );
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
    /** Keeps the first of equal ones. */
    add: (row: SuppressionRow): void => {
      add.run(row);
    },
    of: (accountId: string, recipientHash: string): SuppressionRow[] => of.all(accountId, recipientHash),
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
