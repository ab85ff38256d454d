import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { type Page, pageOf } from '../rows/page.ts';

/** What is found about addresses. All are reported; none says that mail to the address must fail. */
export const HYGIENE_KINDS = [
  'syntax',
  'no_mail_service',
  'disposable',
  'typo',
  'role',
  'duplicate',
] as const;
export type HygieneKind = (typeof HYGIENE_KINDS)[number];

/** An examination of the addresses of an account's contacts. */
export interface HygieneRunRow {
  hygiene_id: string;
  account_id: string;
  /** `subscription_group_id`; null: all contacts. */
  group_id: string | null;
  status: 'waiting' | 'running' | 'completed' | 'cancelled';
  /** JSON. */
  counts: string;
  created_at: number;
  /** Null while it waits or runs. */
  finished_at: number | null;
}

export interface HygieneFindingRow {
  hygiene_id: string;
  kind: HygieneKind;
  contact_seq: number;
  detail: string | null;
  /** Of a duplicate: the first contact of the mailbox. */
  first_seq: number | null;
}

/** A finding with the identifiers of its contacts. */
export type ListedFinding = Omit<HygieneFindingRow, 'hygiene_id' | 'first_seq'> & {
  email: string | null;
  identifier: string | null;
  /** The address of the first contact of the mailbox. */
  first_email: string | null;
};

/** A finding with the time of its examination. */
export type FindingOfContact = Pick<HygieneFindingRow, 'hygiene_id' | 'kind' | 'detail'> &
  Pick<HygieneRunRow, 'created_at'>;

/** Where a page of findings ended; kind '' and contact 0: before the first one. */
export interface FindingPosition {
  kind: string;
  contactSeq: number;
}

export const HYGIENE_FINDING_POLICY = {
  table: 'hygiene_findings',
  personal: ['detail'],
  erasure: ['contact'],
  retention: { until: 'two newer examinations of the account, or the contact is deleted' },
} as const satisfies DataPolicy;

/** Examinations of an account that are kept, the newest. */
export const MAX_KEPT_HYGIENE_RUNS = 3;

/**
 * `hygiene_runs` and `hygiene_findings`. Findings of a contact are deleted with it. A run that has ended does not change any
 * more: changes of it return false.
 */
export function hygieneTable(db: Database) {
  const sql = statements(db);
  const insertFinding = sql.run<[HygieneFindingRow]>(`
    INSERT INTO hygiene_findings (hygiene_id, kind, contact_seq, detail, first_seq)
    SELECT @hygiene_id, @kind, @contact_seq, @detail, @first_seq WHERE EXISTS (SELECT 1 FROM contacts WHERE seq = @contact_seq)
    ON CONFLICT DO NOTHING`);
  const ofAll = sql.all<[string, number, number], { id: number; email: string }>(`
    SELECT seq AS id, email FROM contacts INDEXED BY contacts_by_account
    WHERE account_id = ? AND seq > ? AND email IS NOT NULL ORDER BY seq LIMIT +?`);
  const ofGroup = sql.all<[number, number, number], { id: number; email: string }>(`
    SELECT c.seq AS id, c.email FROM subscriptions s JOIN contacts c ON c.seq = s.contact_seq
    WHERE s.group_seq = ? AND s.contact_seq > ? AND c.email IS NOT NULL ORDER BY s.contact_seq LIMIT +?`);
  const selectFinding = `
    SELECT f.kind, f.contact_seq, f.detail, c.email, c.email_hash AS identifier, o.email AS first_email
    FROM hygiene_findings f CROSS JOIN contacts c ON c.seq = f.contact_seq LEFT JOIN contacts o ON o.seq = f.first_seq`;
  const ofKind = sql.all<[string, string, number, number], ListedFinding>(`${selectFinding}
    WHERE f.hygiene_id = ? AND f.kind = ? AND f.contact_seq > ? ORDER BY f.contact_seq LIMIT +?`);
  const ofRun = sql.all<[string, string, number, number], ListedFinding>(`${selectFinding}
    WHERE f.hygiene_id = ? AND (f.kind, f.contact_seq) > (?, ?) ORDER BY f.kind, f.contact_seq LIMIT +?`);
  const finish = sql.changed<[HygieneRunRow['status'], number, string]>(
    'UPDATE hygiene_runs SET status = ?, finished_at = ? WHERE hygiene_id = ? AND finished_at IS NULL',
  );
  const outdated = sql.values<[string], string>(`
    SELECT hygiene_id FROM hygiene_runs WHERE account_id = ? AND finished_at IS NOT NULL
    ORDER BY hygiene_id DESC LIMIT -1 OFFSET ${MAX_KEPT_HYGIENE_RUNS - 1}`);
  return {
    add: sql.run<[row: HygieneRunRow]>(`INSERT INTO ${sql.row('hygiene_runs')}`),
    get: sql.get<[accountId: string, hygieneId: string], HygieneRunRow>(
      'SELECT * FROM hygiene_runs WHERE account_id = ? AND hygiene_id = ?',
    ),
    /** Newest first. */
    list: sql.all<[accountId: string], HygieneRunRow>(`
      SELECT * FROM hygiene_runs WHERE account_id = ? ORDER BY hygiene_id DESC LIMIT ${MAX_KEPT_HYGIENE_RUNS + 1}`),
    countUnfinished: sql.count<[accountId: string]>(
      'SELECT count(*) FROM hygiene_runs WHERE account_id = ? AND finished_at IS NULL',
    ),
    /** Findings about a contact, newest examination first. */
    ofContact: sql.all<[contactSeq: number], FindingOfContact>(`
      SELECT f.hygiene_id, f.kind, f.detail, r.created_at
      FROM hygiene_findings f INDEXED BY hygiene_findings_of_contact JOIN hygiene_runs r USING (hygiene_id)
      WHERE f.contact_seq = ? ORDER BY f.hygiene_id DESC, f.kind DESC`),
    /** The oldest unfinished runs of active accounts. */
    unfinished: sql.all<[limit: number], HygieneRunRow>(`
      SELECT r.* FROM hygiene_runs r INDEXED BY hygiene_runs_unfinished JOIN accounts a USING (account_id)
      WHERE r.finished_at IS NULL AND a.status = 'active' ORDER BY r.hygiene_id LIMIT +?`),
    /** Records the counts of a run; false: it has ended. */
    advance: sql.changed<[counts: string, hygieneId: string]>(
      "UPDATE hygiene_runs SET status = 'running', counts = ? WHERE hygiene_id = ? AND finished_at IS NULL",
    ),
    /** Ends a run; false: it has ended before. */
    finish: (hygieneId: string, status: 'completed' | 'cancelled', at: number): boolean =>
      finish(status, at, hygieneId),
    /** Runs of an account that are replaced by newer ones. */
    outdated,
    remove: sql.run<[hygieneId: string]>('DELETE FROM hygiene_runs WHERE hygiene_id = ?'),
    /** Adds a finding, unless the contact was deleted. */
    addFinding: insertFinding,
    /** Removes findings of a run; returns how many, at most `limit`. */
    removeFindings: sql.changes<[hygieneId: string, limit: number]>(`
      DELETE FROM hygiene_findings WHERE (hygiene_id, kind, contact_seq) IN (
        SELECT hygiene_id, kind, contact_seq FROM hygiene_findings WHERE hygiene_id = ? LIMIT +?)`),
    /** Findings in the order of kinds and contacts, after this one. `kind` null: all kinds. */
    findings: (
      hygieneId: string,
      kind: string | null,
      after: FindingPosition,
      limit: number,
    ): Page<ListedFinding> =>
      pageOf(
        kind === null
          ? ofRun(hygieneId, after.kind, after.contactSeq, limit + 1)
          : ofKind(hygieneId, kind, after.contactSeq, limit + 1),
        limit,
      ),
    /** Addresses of contacts in their order, after this one. `groupSeq` null: of all. */
    addresses: (
      accountId: string,
      groupSeq: number | null,
      after: number,
      limit: number,
    ): { id: number; email: string }[] =>
      groupSeq === null ? ofAll(accountId, after, limit) : ofGroup(groupSeq, after, limit),
  };
}
