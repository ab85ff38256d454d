import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** What `account_changes` notes: the hash of a recipient; the endpoint of a response, a space and its key. */
export const CHANGE_KINDS = ['recipient', 'answer'] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** The last rows that the first file of a move has. */
export interface MoveMarks {
  last_message: number;
  last_content: number;
}

export interface AccountMoveRow {
  account_id: string;
  move_id: string;
  started_at: number;
  /** Null, as `last_content`: the first file is not complete. */
  last_message: number | null;
  last_content: number | null;
}

export const ACCOUNT_CHANGE_POLICY = {
  table: 'account_changes',
  personal: ['key'],
  erasure: { stays: 'the other installation removes the person by it' },
  retention: { kind: 'accountChanges', rows: 'changes of moves' },
} as const satisfies DataPolicy;

/**
 * `account_moves` and `account_changes`: while an account has a row in the first, triggers note in the second what changes.
 * Changes that were noted before the row was replaced do no harm: they are exported as they are then.
 */
export function accountMoveTable(db: Database) {
  const sql = statements(db);
  const removeChanges = sql.changes<[accountId: string, limit: number]>(`
    DELETE FROM account_changes WHERE (account_id, kind, key) IN (
      SELECT account_id, kind, key FROM account_changes WHERE account_id = ? LIMIT +?)`);
  const endBefore = sql.run<[startedBefore: number]>('DELETE FROM account_moves WHERE started_at < ?');
  const nextWithChanges = db
    .prepare<[after: string], string>(
      'SELECT account_id FROM account_changes WHERE account_id > ? ORDER BY account_id LIMIT 1',
    )
    .pluck();
  const get = sql.get<[accountId: string], AccountMoveRow>(
    'SELECT * FROM account_moves WHERE account_id = ?',
  );
  return {
    /** Null: the account does not move. */
    get,
    /** Begins a move, in place of an earlier one. */
    begin: sql.run<[row: AccountMoveRow]>(`
      INSERT INTO ${sql.row('account_moves')}
      ON CONFLICT (account_id) DO UPDATE SET move_id = excluded.move_id, started_at = excluded.started_at,
        last_message = excluded.last_message, last_content = excluded.last_content`),
    /** The first file of the move is complete. */
    setMarks: sql.run<[MoveMarks & Pick<AccountMoveRow, 'account_id' | 'move_id'>]>(`
      UPDATE account_moves SET last_message = @last_message, last_content = @last_content
      WHERE account_id = @account_id AND move_id = @move_id`),
    end: sql.run<[accountId: string]>('DELETE FROM account_moves WHERE account_id = ?'),
    /** Returns how many changes were removed, at most `limit`. */
    removeChanges,
    /** Ends moves that began earlier, and removes changes of those that have ended; returns how many, at most `limit`. */
    purge: (startedBefore: number, limit: number): number => {
      endBefore(startedBefore);
      let removed = 0;
      for (
        let id = nextWithChanges.get('');
        id !== undefined && removed < limit;
        id = nextWithChanges.get(id)
      )
        if (get(id) === null) removed += removeChanges(id, limit - removed);
      return removed;
    },
  };
}
