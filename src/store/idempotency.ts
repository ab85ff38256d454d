import type { DataPolicy } from './data-policy.ts';
import type { Database } from './database/database.ts';
import { statements } from './database/statements.ts';

/** Responses to requests with an idempotency key, by account, endpoint and key. */
export interface IdempotencyRow {
  account_id: string;
  endpoint: string;
  key: string;
  /** SHA-256 of the canonical request body. */
  fingerprint: Buffer;
  status: number;
  body: string;
  expires_at: number;
}

export const IDEMPOTENCY_POLICY = {
  table: 'idempotency',
  personal: ['body'],
  erasure: ['stored responses'],
  // A response is valid before `expires_at`, not at that moment.
  retention: {
    kind: 'answers',
    rows: 'timed',
    period: 'expiry',
    key: 'account_id, endpoint, key',
    time: 'expires_at',
  },
} as const satisfies DataPolicy;

/**
 * `idempotency`, by account, endpoint and key. An expired row is not returned, and the next one with its key replaces
 * it.
 */
export function idempotencyTable(db: Database) {
  const sql = statements(db);
  const removeExpired = sql.run<[string, string, string, number]>(
    'DELETE FROM idempotency WHERE account_id = ? AND endpoint = ? AND key = ? AND expires_at <= ?',
  );
  const insert = sql.run<[IdempotencyRow]>(`INSERT INTO ${sql.row('idempotency')}`);
  return {
    get: sql.get<[accountId: string, endpoint: string, key: string, now: number], IdempotencyRow>(
      'SELECT * FROM idempotency WHERE account_id = ? AND endpoint = ? AND key = ? AND expires_at > ?',
    ),
    /** Throws when the key exists: the unit of work that would accept a second message is rolled back. */
    insert: (row: IdempotencyRow, now: number): void => {
      removeExpired(row.account_id, row.endpoint, row.key, now);
      insert(row);
    },
  };
}
