import type { AccountRow } from './accounts.ts';
import { cachedLookup } from './cached-rows.ts';
import type { DataPolicy } from './data-policy.ts';
import type { Database } from './database/database.ts';
import { statements } from './database/statements.ts';
import { type Page, pageOf } from './rows/page.ts';

/** An API key, found by the SHA-256 of its secret. The secret itself is stored only for keys that sign requests. */
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
  /** 1: a test key, whose mail is simulated. */
  simulates: 0 | 1;
  /** The secret, sealed; null: the key does not sign requests, or is revoked. */
  signing_secret: Buffer | null;
  created_at: number;
  revoked_at: number | null;
}

/** A key as it is listed. */
export type ListedApiKeyRow = ApiKeyRow & {
  /** Epoch ms, at most a minute too old; null: not used yet. */
  used_at: number | null;
};

/** Selects a page of the keys of an account, oldest first. */
export interface ApiKeyFilter {
  accountId: string;
  /** Only keys after this one; null: from the oldest on. */
  afterId: string | null;
  /** Whether keys with the scope `operator`, which belong to the installation, are listed. */
  withOperators: boolean;
  limit: number;
}

export type ApiKeyWithAccount = ApiKeyRow & {
  account_status: AccountRow['status'];
  account_moved_at: AccountRow['moved_at'];
};

export const API_KEY_POLICY = {
  table: 'api_keys',
  personal: [],
  retention: { kind: 'revokedKeys', rows: 'timed', period: 'events', key: 'key_id', time: 'revoked_at' },
} as const satisfies DataPolicy;

/**
 * `api_keys` and `api_key_uses`. `byHash` and `bySigner` cache known keys until a write to keys or accounts; uses are in a
 * separate table so that recording them does not empty the cache.
 */
export function apiKeyTable(db: Database) {
  const sql = statements(db);
  const WITH_ACCOUNT =
    'SELECT k.*, a.status AS account_status, a.moved_at AS account_moved_at FROM api_keys k JOIN accounts a USING (account_id)';
  const byHash = db.prepare<[Buffer], ApiKeyWithAccount>(`${WITH_ACCOUNT} WHERE k.hash = ?`);
  const bySigner = db.prepare<[string], ApiKeyWithAccount>(
    `${WITH_ACCOUNT} WHERE k.key_id = ? AND k.signing_secret IS NOT NULL`,
  );
  // Unknown keys are not cached: anyone can send them.
  const found = cachedLookup(db, (hash: string) => byHash.get(Buffer.from(hash, 'hex')));
  const signer = cachedLookup(db, (keyId: string) => bySigner.get(keyId));
  const LISTED = 'SELECT k.*, u.used_at FROM api_keys k LEFT JOIN api_key_uses u USING (key_id)';
  const get = sql.get<[string], ListedApiKeyRow>(`${LISTED} WHERE k.key_id = ?`);
  const list = sql.all<[], ListedApiKeyRow>(`${LISTED} ORDER BY k.created_at, k.key_id`);
  const listOf = sql.all<[string], ListedApiKeyRow>(
    `${LISTED} WHERE k.account_id = ? ORDER BY k.created_at, k.key_id`,
  );
  const page = sql.all<
    [{ accountId: string; at: number; id: string; operators: 0 | 1; limit: number }],
    ListedApiKeyRow
  >(`
    ${LISTED}
    WHERE k.account_id = @accountId AND (k.created_at, k.key_id) > (@at, @id)
      AND (@operators = 1 OR instr(k.scopes, '"operator"') = 0)
    ORDER BY k.created_at, k.key_id LIMIT +@limit`);
  const revoke = sql.changed<[number, string]>(
    'UPDATE api_keys SET revoked_at = ?, signing_secret = NULL WHERE key_id = ? AND revoked_at IS NULL',
  );
  return {
    insert: sql.run<[row: ApiKeyRow]>(`INSERT INTO ${sql.row('api_keys')}`),
    /** The key, revoked or not, with the status of its account. */
    byHash: (hash: Buffer): ApiKeyWithAccount | null => found(hash.toString('hex')) ?? null,
    /** The key with this id if it signs requests, with the status of its account. */
    bySigner: (keyId: string): ApiKeyWithAccount | null => signer(keyId) ?? null,
    get: (keyId: string): ListedApiKeyRow | null => get(keyId),
    /** The keys of an account, or with null of all accounts, oldest first. */
    list: (accountId: string | null): ListedApiKeyRow[] => (accountId === null ? list() : listOf(accountId)),
    /** A page of the keys of an account; null: it has no key `afterId`. */
    page: ({ accountId, afterId, withOperators, limit }: ApiKeyFilter): Page<ListedApiKeyRow> | null => {
      const after = afterId === null ? null : get(afterId);
      if (afterId !== null && after?.account_id !== accountId) return null;
      const { created_at: at, key_id: id } = after ?? { created_at: -1, key_id: '' };
      return pageOf(page({ accountId, at, id, operators: withOperators ? 1 : 0, limit: limit + 1 }), limit);
    },
    /** The number of keys of an account that are not revoked. */
    countValid: sql.count<[accountId: string]>(
      'SELECT count(*) FROM api_keys WHERE account_id = ? AND revoked_at IS NULL',
    ),
    /** The number of keys of an account, with revoked ones. */
    count: sql.count<[accountId: string]>('SELECT count(*) FROM api_keys WHERE account_id = ?'),
    /** Records the time of the last use of a key, unless a later one is recorded. */
    use: sql.run<[keyId: string, at: number]>(`
      INSERT INTO api_key_uses (key_id, used_at) VALUES (?, ?)
      ON CONFLICT (key_id) DO UPDATE SET used_at = max(used_at, excluded.used_at)`),
    /** Returns false when the key is revoked already or does not exist. */
    revoke: (keyId: string, at: number): boolean => revoke(at, keyId),
  };
}
