import type { AccountRow } from './accounts.ts';
import { cachedLookup } from './cached-rows.ts';
import type { Database } from './database.ts';

/** An API key, found by the SHA-256 of its secret; the secret itself is not stored. */
export interface ApiKeyRow {
  key_id: string;
  account_id: string;
  name: string;
  hash: Buffer;
  /** JSON arrays. */
  scopes: string;
  allow_ips: string;
  allow_from: string;
  allow_essential: 0 | 1;
  strict_compliance: 0 | 1;
  created_at: number;
  revoked_at: number | null;
}

export type ApiKeyWithAccount = ApiKeyRow & { account_status: AccountRow['status'] };

export function apiKeyTable(db: Database) {
  const insert = db.prepare<ApiKeyRow>(`
    INSERT INTO api_keys (key_id, account_id, name, hash, scopes, allow_ips, allow_from, allow_essential,
      strict_compliance, created_at, revoked_at)
    VALUES (@key_id, @account_id, @name, @hash, @scopes, @allow_ips, @allow_from, @allow_essential,
      @strict_compliance, @created_at, @revoked_at)`);
  const byHash = db.prepare<[Buffer], ApiKeyWithAccount>(`
    SELECT k.*, a.status AS account_status FROM api_keys k JOIN accounts a USING (account_id) WHERE k.hash = ?`);
  // Unknown keys are not cached: anyone can send them.
  const found = cachedLookup(db, (hash: string) => byHash.get(Buffer.from(hash, 'hex')));
  const get = db.prepare<[string], ApiKeyRow>('SELECT * FROM api_keys WHERE key_id = ?');
  const list = db.prepare<[], ApiKeyRow>('SELECT * FROM api_keys ORDER BY created_at, key_id');
  const listOf = db.prepare<[string], ApiKeyRow>(
    'SELECT * FROM api_keys WHERE account_id = ? ORDER BY created_at, key_id',
  );
  const revoke = db.prepare<[number, string]>(
    'UPDATE api_keys SET revoked_at = ? WHERE key_id = ? AND revoked_at IS NULL',
  );
  return {
    insert: (row: ApiKeyRow): void => {
      insert.run(row);
    },
    /** The key, revoked or not, with the status of its account. */
    byHash: (hash: Buffer): ApiKeyWithAccount | null => found(hash.toString('hex')) ?? null,
    get: (keyId: string): ApiKeyRow | null => get.get(keyId) ?? null,
    /** The keys of an account, or with null of all accounts, oldest first. */
    list: (accountId: string | null): ApiKeyRow[] =>
      accountId === null ? list.all() : listOf.all(accountId),
    /** Returns false when the key is revoked already or does not exist. */
    revoke: (keyId: string, at: number): boolean => revoke.run(at, keyId).changes === 1,
  };
}
