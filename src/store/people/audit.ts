import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** What a person did with the console. */
export interface AuditRow {
  seq: number;
  recorded_at: number;
  /** Null: nobody was signed in. */
  person_id: string | null;
  person_email: string;
  /** Null: the installation. */
  account_id: string | null;
  operation: string;
  /** JSON object: ids in the path. */
  target: string;
  outcome: 'done' | 'denied' | 'refused' | 'failed';
  detail: string;
  remote_address: string;
}

export interface AuditFilter {
  /** Records of this account only. */
  accountId?: string | undefined;
  personId?: string | undefined;
  /** Records before this number. */
  before?: number | undefined;
}

export const AUDIT_POLICY = {
  table: 'audit_records',
  personal: ['person_id', 'person_email', 'remote_address'],
  erasure: { stays: 'people who use the console are neither recipients nor contacts' },
  retention: { kind: 'auditRecords', rows: 'aged', period: 'events', number: 'seq', time: 'recorded_at' },
} as const satisfies DataPolicy;

/** `audit_records`, append-only. Lists follow the indexes `audit_records_by_account` and `audit_records_by_person`. */
export function auditTable(db: Database) {
  const sql = statements(db);
  const all = sql.all<[number, number], AuditRow>(
    'SELECT * FROM audit_records WHERE seq < ? ORDER BY seq DESC LIMIT +?',
  );
  const ofAccount = sql.all<[string, number, number], AuditRow>(`
    SELECT * FROM audit_records INDEXED BY audit_records_by_account WHERE account_id = ? AND seq < ?
    ORDER BY seq DESC LIMIT +?`);
  const ofPerson = sql.all<[string, number, number], AuditRow>(`
    SELECT * FROM audit_records INDEXED BY audit_records_by_person WHERE person_id = ? AND seq < ?
    ORDER BY seq DESC LIMIT +?`);
  return {
    insert: sql.run<[row: Omit<AuditRow, 'seq'>]>(`INSERT INTO ${sql.row('audit_records')}`),
    /** Newest first. Examines at most `limit` rows: with both filters, rows of other people are left out. */
    list: ({ accountId, personId, before = Number.MAX_SAFE_INTEGER }: AuditFilter, limit: number) => {
      if (accountId !== undefined) {
        const rows = ofAccount(accountId, before, limit);
        return {
          rows: personId === undefined ? rows : rows.filter((row) => row.person_id === personId),
          next: rows.length < limit ? null : (rows.at(-1)?.seq ?? null),
        };
      }
      const rows = personId === undefined ? all(before, limit) : ofPerson(personId, before, limit);
      return { rows, next: rows.length < limit ? null : (rows.at(-1)?.seq ?? null) };
    },
  };
}
