import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

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
  const sql = statements(db);
  return {
    insert: sql.run<[row: PersonRow]>(`INSERT INTO ${sql.row('people')}`),
    /** Writes every column except the id and the creation time. */
    update: sql.run<[row: PersonRow]>(`
      UPDATE people SET ${sql.rowExcept('people', ['person_id', 'created_at'])}
      WHERE person_id = @person_id`),
    get: sql.get<[personId: string], PersonRow>('SELECT * FROM people WHERE person_id = ?'),
    /** `emailKey`: in lower case. */
    byEmail: sql.get<[emailKey: string], PersonRow>('SELECT * FROM people WHERE email_key = ?'),
    /** All people, oldest first. */
    list: sql.all<[limit: number], PersonRow>('SELECT * FROM people ORDER BY person_id LIMIT +?'),
    count: sql.count('SELECT count(*) FROM people'),
    activeOperators: sql.count("SELECT count(*) FROM people WHERE operator = 1 AND status = 'active'"),
    /** Deletes the person with memberships, credentials, links and sessions; false: there is none. */
    remove: sql.changed<[personId: string]>('DELETE FROM people WHERE person_id = ?'),
  };
}

/**
 * `memberships`, one for each person and account, deleted with either. `put` leaves `created_at` of an existing one
 * unchanged. Members are read by the index `memberships_by_account`.
 */
export function membershipTable(db: Database) {
  const sql = statements(db);
  return {
    put: sql.run<[row: MembershipRow]>(`
      INSERT INTO ${sql.row('memberships')}
      ON CONFLICT (person_id, account_id) DO UPDATE SET role = @role, source = @source`),
    get: sql.get<[personId: string, accountId: string], MembershipRow>(
      'SELECT * FROM memberships WHERE person_id = ? AND account_id = ?',
    ),
    ofPerson: sql.all<[personId: string, limit: number], MembershipRow & { account_name: string }>(`
      SELECT m.*, a.name AS account_name FROM memberships m JOIN accounts a USING (account_id)
      WHERE m.person_id = ? ORDER BY m.account_id LIMIT +?`),
    /** The members of an account, oldest first. */
    ofAccount: sql.all<[accountId: string, limit: number], PersonRow & { role: MemberRole }>(`
      SELECT p.*, m.role FROM memberships m INDEXED BY memberships_by_account JOIN people p USING (person_id)
      WHERE m.account_id = ? ORDER BY m.person_id LIMIT +?`),
    countOf: sql.count<[accountId: string]>('SELECT count(*) FROM memberships WHERE account_id = ?'),
    activeOwners: sql.count<[accountId: string]>(`
      SELECT count(*) FROM memberships m INDEXED BY memberships_by_account JOIN people p USING (person_id)
      WHERE m.account_id = ? AND m.role = 'owner' AND p.status = 'active'`),
    remove: sql.changed<[personId: string, accountId: string]>(
      'DELETE FROM memberships WHERE person_id = ? AND account_id = ?',
    ),
  };
}
