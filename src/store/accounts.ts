import { cachedLookup } from './cached-rows.ts';
import type { Database } from './database.ts';

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
}

export function accountTable(db: Database) {
  const insert = db.prepare<AccountRow>(`
    INSERT INTO accounts (account_id, name, status, company_name, company_address, abuse_email, logo_url, created_at, updated_at)
    VALUES (@account_id, @name, @status, @company_name, @company_address, @abuse_email, @logo_url, @created_at, @updated_at)`);
  const update = db.prepare<AccountRow>(`
    UPDATE accounts SET name = @name, status = @status, company_name = @company_name, company_address = @company_address,
      abuse_email = @abuse_email, logo_url = @logo_url, updated_at = @updated_at
    WHERE account_id = @account_id`);
  const get = db.prepare<[string], AccountRow>('SELECT * FROM accounts WHERE account_id = ?');
  const list = db.prepare<[], AccountRow>('SELECT * FROM accounts ORDER BY created_at, account_id');
  const byId = cachedLookup(db, (accountId: string) => get.get(accountId) ?? null);
  return {
    insert: (row: AccountRow): void => {
      insert.run(row);
    },
    /** Writes every column except the id and the creation time. */
    update: (row: AccountRow): void => {
      update.run(row);
    },
    get: (accountId: string): AccountRow | null => byId(accountId),
    list: (): AccountRow[] => list.all(),
  };
}
