import type { DataPolicy } from './data-policy.ts';
import type { Database } from './database/database.ts';
import { statements } from './database/statements.ts';
import type { SuppressionReason, SuppressionRow, SuppressionStream } from './suppressions.ts';

/** A suppression that the account removed. */
export interface SuppressionRemovalRow {
  seq: number;
  account_id: string;
  recipient_hash: string;
  stream: SuppressionStream;
  reason: SuppressionReason;
  suppressed_at: number;
  /** Why; null: none was given, or the person was erased. */
  note: string | null;
  /** The API key, the person of the console, or `command line`. */
  removed_by: string;
  removed_at: number;
}

export const SUPPRESSION_REMOVAL_POLICY = {
  table: 'suppression_removals',
  // `recipient_hash` stays, as in suppressions.
  personal: ['recipient_hash', 'note'],
  erasure: ['suppressions'],
  retention: {
    kind: 'suppressionRemovals',
    rows: 'aged',
    period: 'events',
    number: 'seq',
    time: 'removed_at',
  },
} as const satisfies DataPolicy;

/** Removals of an address that are listed, the newest. */
export const MAX_LISTED_REMOVALS = 50;

/**
 * `suppression_removals`, append-only; erasure clears the notes. Read by the index `suppression_removals_of_recipient`.
 */
export function suppressionRemovalTable(db: Database) {
  const sql = statements(db);
  const insert = sql.run<[Omit<SuppressionRemovalRow, 'seq'>]>(
    `INSERT INTO ${sql.row('suppression_removals')}`,
  );
  return {
    /** Records the removal of a suppression. `at`: epoch ms. */
    record: (
      { account_id, recipient_hash, stream, reason, created_at: suppressed_at }: SuppressionRow,
      { note, by: removed_by, at: removed_at }: { note: string | null; by: string; at: number },
    ): void =>
      insert({ account_id, recipient_hash, stream, reason, suppressed_at, note, removed_by, removed_at }),
    /** Newest first, at most MAX_LISTED_REMOVALS. */
    of: sql.all<[accountId: string, recipientHash: string], SuppressionRemovalRow>(`
      SELECT * FROM suppression_removals WHERE account_id = ? AND recipient_hash = ?
      ORDER BY seq DESC LIMIT ${MAX_LISTED_REMOVALS}`),
  };
}
