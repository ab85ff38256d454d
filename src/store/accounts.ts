import { cachedLookup } from './cached-rows.ts';
import type { Database } from './database/database.ts';
import { statements } from './database/statements.ts';
import { type Page, pageOf } from './rows/page.ts';

/** The address of an account's company, for the compliance footer. */
export interface PostalAddress {
  line1: string;
  line2?: string;
  city: string;
  region?: string;
  postalCode: string;
  country: string;
}

export interface AccountRow {
  account_id: string;
  name: string;
  status: 'active' | 'disabled';
  company_name: string | null;
  /** PostalAddress as JSON. */
  company_address: string | null;
  abuse_email: string | null;
  logo_url: string | null;
  created_at: number;
  updated_at: number;
  /** When it was exported to another installation, and disabled; what is in its queue is sent here. Null: it is at home here. */
  moved_at: number | null;
}

/** Selects a page of the accounts, oldest first. */
export interface AccountFilter {
  /** Part of the name or id, in any ASCII case; null: all. */
  search: string | null;
  /** Only accounts after this one; null: from the oldest on. */
  afterId: string | null;
  limit: number;
}

/** A page of a bounded scan: with a search it may be short, even empty, and not be the last one. */
export interface AccountPage {
  rows: AccountRow[];
  /** The account after which the next page begins; null: nothing follows. */
  nextId: string | null;
}

/** Maximum number of accounts that one page of a search examines. */
const MAX_SEARCHED = 5000;

/**
 * `accounts`; `get` is cached until a write. Pages follow the index `accounts_by_creation`; one of a search examines at
 * most MAX_SEARCHED accounts. There is no deletion.
 */
export function accountTable(db: Database) {
  const sql = statements(db);
  const get = sql.get<[string], AccountRow>('SELECT * FROM accounts WHERE account_id = ?');
  const page = sql.all<[{ at: number; id: string; limit: number }], AccountRow>(`
    SELECT * FROM accounts WHERE (created_at, account_id) > (@at, @id)
    ORDER BY created_at, account_id LIMIT +@limit`);
  const searched = sql.all<
    [{ at: number; id: string; search: string; examined: number; limit: number }],
    AccountRow
  >(`
    SELECT * FROM (
      SELECT * FROM accounts WHERE (created_at, account_id) > (@at, @id)
      ORDER BY created_at, account_id LIMIT +@examined)
    WHERE instr(lower(name), lower(@search)) > 0 OR instr(lower(account_id), lower(@search)) > 0
    ORDER BY created_at, account_id LIMIT +@limit`);
  const afterExamined = db
    .prepare<{ at: number; id: string; examined: number }, string>(`
      SELECT account_id FROM accounts WHERE (created_at, account_id) > (@at, @id)
      ORDER BY created_at, account_id LIMIT 1 OFFSET +@examined`)
    .pluck();
  const byId = cachedLookup(db, (accountId: string) => get(accountId));
  return {
    insert: sql.run<[row: AccountRow]>(`INSERT INTO ${sql.row('accounts')}`),
    /** Writes every column except the id and the creation time. */
    update: sql.run<[row: AccountRow]>(`
      UPDATE accounts SET ${sql.rowExcept('accounts', ['account_id', 'created_at'])}
      WHERE account_id = @account_id`),
    get: (accountId: string): AccountRow | null => byId(accountId),
    list: sql.all<[], AccountRow>('SELECT * FROM accounts ORDER BY created_at, account_id'),
    /** A page of the accounts; null: there is no account `afterId`. */
    page: ({ search, afterId, limit }: AccountFilter): AccountPage | null => {
      const after = afterId === null ? null : get(afterId);
      if (afterId !== null && after === null) return null;
      const start = { at: after?.created_at ?? -1, id: after?.account_id ?? '' };
      const { rows, more }: Page<AccountRow> = pageOf(
        search === null
          ? page({ ...start, limit: limit + 1 })
          : searched({ ...start, search, examined: MAX_SEARCHED, limit: limit + 1 }),
        limit,
      );
      if (more) return { rows, nextId: rows.at(-1)?.account_id ?? null };
      // The last account that was examined, if others follow.
      const last = search === null ? null : afterExamined.get({ ...start, examined: MAX_SEARCHED - 1 });
      return { rows, nextId: last ?? null };
    },
  };
}
