import { cachedLookup } from '../cached-rows.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** The key that an account brought from another installation, sealed; see mail/tokens. */
export interface TokenKeyRow {
  /** 10 hexadecimal digits. */
  tag: string;
  account_id: string;
  key: Buffer;
}

/** `token_keys`, by tag; `byTag` is cached until a write. The caller seals and opens the keys. */
export function tokenKeyTable(db: Database) {
  const sql = statements(db);
  const byTag = sql.get<[string], TokenKeyRow>('SELECT * FROM token_keys WHERE tag = ?');
  const withTag = cachedLookup(db, (tag: string) => byTag(tag));
  return {
    insert: sql.run<[row: TokenKeyRow]>(
      'INSERT INTO token_keys (tag, account_id, key) VALUES (@tag, @account_id, @key)',
    ),
    /** Null: no account with this tag came from another installation. */
    byTag: (tag: string): TokenKeyRow | null => withTag(tag),
    /** Null: the account was created here. */
    of: sql.get<[accountId: string], TokenKeyRow>('SELECT * FROM token_keys WHERE account_id = ?'),
  };
}
