import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';

/** A person who uses the console: an operator, or a member of accounts. */
export interface PersonRow {
  person_id: string;
  email: string;
  /** The address in lower case. */
  email_key: string;
  name: string;
  operator: 0 | 1;
  /** Operator because of a group of the OIDC provider. */
  operator_by_group: 0 | 1;
  status: 'active' | 'disabled';
  language: string | null;
  /** scrypt with its parameters; null: none. */
  password: string | null;
  /** The secret, sealed; null: none. */
  totp: Buffer | null;
  /** The newest time step whose code was accepted. */
  totp_used: number;
  created_at: number;
  updated_at: number;
  signed_in_at: number | null;
  /** Whether keyboard shortcuts of one key are on. */
  shortcuts: 0 | 1;
  /** Whether the person wants mail about failures of the accounts that they own. */
  failure_mail: 0 | 1;
}

export type MemberRole = 'owner' | 'author' | 'sender' | 'developer' | 'viewer';

export interface MembershipRow {
  person_id: string;
  account_id: string;
  role: MemberRole;
  source: 'invitation' | 'group';
  created_at: number;
}

const STAYS = { stays: 'people who use the console are neither recipients nor contacts' } as const;
const UNTIL_DELETED = { until: 'the person is deleted' } as const;

export const PEOPLE_POLICY = {
  table: 'people',
  personal: ['person_id', 'email', 'email_key', 'name'],
  erasure: STAYS,
  retention: UNTIL_DELETED,
} as const satisfies DataPolicy;

export const MEMBERSHIP_POLICY = {
  table: 'memberships',
  personal: ['person_id'],
  erasure: STAYS,
  retention: UNTIL_DELETED,
} as const satisfies DataPolicy;

/** `people`. The address is unique in lower case (`email_key`): inserting or updating to one that is taken throws. */
export function peopleTable(db: Database) {
  const insert = db.prepare<PersonRow>(`
    INSERT INTO people (person_id, email, email_key, name, operator, operator_by_group, status, language, password, totp, totp_used,
      created_at, updated_at, signed_in_at, shortcuts, failure_mail)
    VALUES (@person_id, @email, @email_key, @name, @operator, @operator_by_group, @status, @language, @password, @totp, @totp_used,
      @created_at, @updated_at, @signed_in_at, @shortcuts, @failure_mail)`);
  const update = db.prepare<PersonRow>(`
    UPDATE people SET email = @email, email_key = @email_key, name = @name, operator = @operator,
      operator_by_group = @operator_by_group, status = @status,
      language = @language, password = @password, totp = @totp, totp_used = @totp_used, updated_at = @updated_at,
      signed_in_at = @signed_in_at, shortcuts = @shortcuts, failure_mail = @failure_mail
    WHERE person_id = @person_id`);
  const get = db.prepare<[string], PersonRow>('SELECT * FROM people WHERE person_id = ?');
  const byEmail = db.prepare<[string], PersonRow>('SELECT * FROM people WHERE email_key = ?');
  const list = db.prepare<[number], PersonRow>('SELECT * FROM people ORDER BY person_id LIMIT +?');
  const count = db.prepare<[], number>('SELECT count(*) FROM people').pluck();
  const operators = db
    .prepare<[], number>("SELECT count(*) FROM people WHERE operator = 1 AND status = 'active'")
    .pluck();
  const remove = db.prepare<[string]>('DELETE FROM people WHERE person_id = ?');
  return {
    insert: (row: PersonRow): void => {
      insert.run(row);
    },
    /** Writes every column except the id and the creation time. */
    update: (row: PersonRow): void => {
      update.run(row);
    },
    get: (personId: string): PersonRow | null => get.get(personId) ?? null,
    /** `emailKey`: in lower case. */
    byEmail: (emailKey: string): PersonRow | null => byEmail.get(emailKey) ?? null,
    /** All people, oldest first. */
    list: (limit: number): PersonRow[] => list.all(limit),
    count: (): number => count.get() ?? 0,
    activeOperators: (): number => operators.get() ?? 0,
    /** Deletes the person with memberships, credentials, links and sessions; false: there is none. */
    remove: (personId: string): boolean => remove.run(personId).changes === 1,
  };
}

/**
 * `memberships`, one for each person and account, deleted with either. `put` leaves `created_at` of an existing one
 * unchanged. Members are read by the index `memberships_by_account`.
 */
export function membershipTable(db: Database) {
  const put = db.prepare<MembershipRow>(`
    INSERT INTO memberships (person_id, account_id, role, source, created_at)
    VALUES (@person_id, @account_id, @role, @source, @created_at)
    ON CONFLICT (person_id, account_id) DO UPDATE SET role = @role, source = @source`);
  const get = db.prepare<[string, string], MembershipRow>(
    'SELECT * FROM memberships WHERE person_id = ? AND account_id = ?',
  );
  const ofPerson = db.prepare<[string, number], MembershipRow & { account_name: string }>(`
    SELECT m.*, a.name AS account_name FROM memberships m JOIN accounts a USING (account_id)
    WHERE m.person_id = ? ORDER BY m.account_id LIMIT +?`);
  const ofAccount = db.prepare<[string, number], PersonRow & { role: MemberRole }>(`
    SELECT p.*, m.role FROM memberships m INDEXED BY memberships_by_account JOIN people p USING (person_id)
    WHERE m.account_id = ? ORDER BY m.person_id LIMIT +?`);
  const countOf = db
    .prepare<[string], number>('SELECT count(*) FROM memberships WHERE account_id = ?')
    .pluck();
  const owners = db
    .prepare<[string], number>(`
      SELECT count(*) FROM memberships m INDEXED BY memberships_by_account JOIN people p USING (person_id)
      WHERE m.account_id = ? AND m.role = 'owner' AND p.status = 'active'`)
    .pluck();
  const remove = db.prepare<[string, string]>(
    'DELETE FROM memberships WHERE person_id = ? AND account_id = ?',
  );
  return {
    put: (row: MembershipRow): void => {
      put.run(row);
    },
    get: (personId: string, accountId: string): MembershipRow | null => get.get(personId, accountId) ?? null,
    ofPerson: (personId: string, limit: number): (MembershipRow & { account_name: string })[] =>
      ofPerson.all(personId, limit),
    /** The members of an account, oldest first. */
    ofAccount: (accountId: string, limit: number): (PersonRow & { role: MemberRole })[] =>
      ofAccount.all(accountId, limit),
    countOf: (accountId: string): number => countOf.get(accountId) ?? 0,
    activeOwners: (accountId: string): number => owners.get(accountId) ?? 0,
    remove: (personId: string, accountId: string): boolean => remove.run(personId, accountId).changes === 1,
  };
}
