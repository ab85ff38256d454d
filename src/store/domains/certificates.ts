import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/**
 * Certificates of the public pages and the attempts to obtain them, one row per host name. The caller seals the private
 * key.
 */
export interface CertificateRow {
  /** A-labels. */
  host: string;
  /** Sealed PEM. Null, as `chain` and `not_after`, until there is a certificate. */
  private_key: Buffer | null;
  /** PEM, the host's own certificate first. */
  chain: string | null;
  not_after: number | null;
  /** When the next order begins: the renewal, or the retry after a failure. */
  due_at: number;
  tried_at: number;
  /** Failed attempts since the last success. */
  failures: number;
  last_error: string | null;
}

export type CertificateState = Pick<
  CertificateRow,
  'host' | 'not_after' | 'due_at' | 'failures' | 'last_error'
>;

/** Attempts among which hosts without a certificate are searched. */
const MAX_SCANNED_TRIES = 200;

/**
 * `certificates`, by host. Renewals are read by the index `certificates_due`; attempts are counted by
 * `certificates_by_try`, so that the limits on orders hold after a restart.
 */
export function certificateTable(db: Database) {
  const sql = statements(db);
  const triedBelow = sql.count<[number, string, string]>(
    "SELECT count(*) FROM certificates WHERE tried_at > ? AND (host = ? OR host LIKE '%.' || ?)",
  );
  return {
    get: sql.get<[host: string], CertificateRow>('SELECT * FROM certificates WHERE host = ?'),
    /** Inserts or replaces the row of a host. */
    put: sql.run<[row: CertificateRow]>(`INSERT OR REPLACE INTO ${sql.row('certificates')}`),
    /** Hosts whose certificate is due for renewal, the longest due first. */
    due: sql.values<[now: number, limit: number], string>(
      'SELECT host FROM certificates WHERE chain IS NOT NULL AND due_at <= ? ORDER BY due_at LIMIT +?',
    ),
    /** Certificates by the time of their next order, the earliest first. */
    soonestDue: sql.all<[limit: number], CertificateState>(`
      SELECT host, not_after, due_at, failures, last_error FROM certificates WHERE chain IS NOT NULL
      ORDER BY due_at LIMIT +?`),
    /** Hosts of the latest attempts that have no certificate yet, the last tried first. */
    unissued: sql.all<[limit: number], CertificateState>(`
      SELECT host, not_after, due_at, failures, last_error FROM
        (SELECT host, not_after, due_at, failures, last_error, chain IS NULL AS is_unissued FROM certificates
        ORDER BY tried_at DESC LIMIT ${MAX_SCANNED_TRIES})
      WHERE is_unissued LIMIT +?`),
    /** Number of hosts with an attempt after `at`. */
    triedSince: sql.count<[at: number]>('SELECT count(*) FROM certificates WHERE tried_at > ?'),
    /** Hosts with an attempt after `at`: few, as the attempts of an hour are limited. */
    hostsTriedSince: sql.values<[at: number], string>('SELECT host FROM certificates WHERE tried_at > ?'),
    /** Number of hosts at or below a domain with an attempt after `at`. */
    triedBelow: (domain: string, at: number): number => triedBelow(at, domain, domain),
    remove: sql.run<[host: string]>('DELETE FROM certificates WHERE host = ?'),
  };
}
