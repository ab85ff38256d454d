import { type Clock, iso } from '../core/clock.ts';
import { shortened } from '../core/refusal.ts';
import type { Writer } from '../store/database/writer.ts';
import type { AuditFilter, AuditRow } from '../store/people/audit.ts';
import type { Tables } from '../store/tables.ts';

/** The audit log: changes that people made with the console, and denied requests. It has no bodies of requests. */
export type AuditRecord = ReturnType<typeof presentRecord>;
export type AuditInput = Omit<AuditRecord, 'seq' | 'at'>;

export interface AuditPage {
  records: AuditRecord[];
  /** `before` of the next page; null: this is the last one. */
  next: number | null;
}

const MAX_DETAIL = 500;
const MAX_TARGET_VALUE = 200;

/**
 * Stateless: `record` is one unit of work and rejects when it fails. Values of `target` are shortened to 200
 * characters, `detail` to 500.
 */
export function createAudit({ tables, writer, clock }: { tables: Tables; writer: Writer; clock: Clock }) {
  return {
    record: (input: AuditInput): Promise<void> =>
      writer.run((tx) => tx.auditRecords.insert(rowOf(input, clock.now()))),
    /** Newest first. */
    list: (filter: AuditFilter, limit: number): AuditPage => {
      const { rows, next } = tables.auditRecords.list(filter, limit);
      return { records: rows.map(presentRecord), next };
    },
  };
}

export type Audit = ReturnType<typeof createAudit>;

function rowOf(input: AuditInput, at: number): Omit<AuditRow, 'seq'> {
  const target = Object.fromEntries(
    Object.entries(input.target).map(([name, value]) => [name, shortened(value, MAX_TARGET_VALUE)]),
  );
  return {
    recorded_at: at,
    person_id: input.personId,
    person_email: input.email,
    account_id: input.accountId,
    operation: input.operation,
    target: JSON.stringify(target),
    outcome: input.outcome,
    detail: shortened(input.detail, MAX_DETAIL),
    remote_address: input.address,
  };
}

function presentRecord(row: AuditRow) {
  return {
    seq: row.seq,
    at: iso(row.recorded_at),
    personId: row.person_id,
    email: row.person_email,
    // Null: the installation.
    accountId: row.account_id,
    // Id of an operation of the API, or one of the console such as `console.signIn`.
    operation: row.operation,
    // Ids in the path. Sound: `rowOf` wrote it.
    target: JSON.parse(row.target) as Record<string, string>,
    outcome: row.outcome,
    detail: row.detail,
    address: row.remote_address,
  };
}
