import { cachedLookup } from './cached-rows.ts';
import type { Database } from './database/database.ts';
import { statements } from './database/statements.ts';

/** What an account changes on its public pages; an account without a row changes nothing. */
export interface PublicPagesRow {
  account_id: string;
  /** JSON of PublicPages (accounts/public-pages). */
  settings: string;
  updated_at: number;
}

/** What the footer of the account's mail needs of the settings. */
export interface FooterRow {
  language: string | null;
  /** JSON: the texts by language whose keys begin with `footer.`. */
  texts: string;
}

/** `public_pages`, by account. `footer` is cached until a write. */
export function publicPagesTable(db: Database) {
  const sql = statements(db);
  const footer = sql.get<[accountId: string], FooterRow>(`
    SELECT settings ->> '$.language' AS language, coalesce((
      SELECT json_group_object(l.key, json((
        SELECT json_group_object(t.key, t.value) FROM json_each(l.value) t WHERE t.key LIKE 'footer.%')))
      FROM json_each(settings, '$.texts') l), '{}') AS texts
    FROM public_pages WHERE account_id = ?`);
  const footerOf = cachedLookup(db, (accountId: string) => footer(accountId));
  return {
    get: sql.get<[accountId: string], PublicPagesRow>('SELECT * FROM public_pages WHERE account_id = ?'),
    /** Null: the account changes nothing. */
    footer: (accountId: string): FooterRow | null => footerOf(accountId),
    put: sql.run<[row: PublicPagesRow]>(`INSERT OR REPLACE INTO ${sql.row('public_pages')}`),
  };
}
