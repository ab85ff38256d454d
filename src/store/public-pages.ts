import type { Database } from './database/database.ts';
import { statements } from './database/statements.ts';

/** What an account changes on its public pages; an account without a row changes nothing. */
export interface PublicPagesRow {
  account_id: string;
  /** JSON of PublicPages (accounts/public-pages). */
  settings: string;
  updated_at: number;
}

/** `public_pages`, by account. */
export function publicPagesTable(db: Database) {
  const sql = statements(db);
  return {
    get: sql.get<[accountId: string], PublicPagesRow>('SELECT * FROM public_pages WHERE account_id = ?'),
    put: sql.run<[row: PublicPagesRow]>(`INSERT OR REPLACE INTO ${sql.row('public_pages')}`),
  };
}
