import type { Database } from '../database/database.ts';

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
  const get = db.prepare<[string], CertificateRow>('SELECT * FROM certificates WHERE host = ?');
  const put = db.prepare<CertificateRow>(`
    INSERT INTO certificates (host, private_key, chain, not_after, due_at, tried_at, failures, last_error)
    VALUES (@host, @private_key, @chain, @not_after, @due_at, @tried_at, @failures, @last_error)
    ON CONFLICT (host) DO UPDATE SET private_key = excluded.private_key, chain = excluded.chain,
      not_after = excluded.not_after, due_at = excluded.due_at, tried_at = excluded.tried_at,
      failures = excluded.failures, last_error = excluded.last_error`);
  const due = db
    .prepare<[number, number], string>(
      'SELECT host FROM certificates WHERE chain IS NOT NULL AND due_at <= ? ORDER BY due_at LIMIT +?',
    )
    .pluck();
  const soonest = db.prepare<[number], CertificateState>(`
    SELECT host, not_after, due_at, failures, last_error FROM certificates WHERE chain IS NOT NULL
    ORDER BY due_at LIMIT +?`);
  const unissued = db.prepare<[number], CertificateState>(`
    SELECT host, not_after, due_at, failures, last_error FROM
      (SELECT host, not_after, due_at, failures, last_error, chain IS NULL AS is_unissued FROM certificates
      ORDER BY tried_at DESC LIMIT ${MAX_SCANNED_TRIES})
    WHERE is_unissued LIMIT +?`);
  const triedSince = db
    .prepare<[number], number>('SELECT count(*) FROM certificates WHERE tried_at > ?')
    .pluck();
  const hostsTriedSince = db
    .prepare<[number], string>('SELECT host FROM certificates WHERE tried_at > ?')
    .pluck();
  const triedBelow = db
    .prepare<[number, string, string], number>(
      "SELECT count(*) FROM certificates WHERE tried_at > ? AND (host = ? OR host LIKE '%.' || ?)",
    )
    .pluck();
  const remove = db.prepare<[string]>('DELETE FROM certificates WHERE host = ?');
  return {
    get: (host: string): CertificateRow | null => get.get(host) ?? null,
    /** Inserts or replaces the row of a host. */
    put: (row: CertificateRow): void => {
      put.run(row);
    },
    /** Hosts whose certificate is due for renewal, the longest due first. */
    due: (now: number, limit: number): string[] => due.all(now, limit),
    /** Certificates by the time of their next order, the earliest first. */
    soonestDue: (limit: number): CertificateState[] => soonest.all(limit),
    /** Hosts of the latest attempts that have no certificate yet, the last tried first. */
    unissued: (limit: number): CertificateState[] => unissued.all(limit),
    /** Number of hosts with an attempt after `at`. */
    triedSince: (at: number): number => triedSince.get(at) ?? 0,
    /** Hosts with an attempt after `at`: few, as the attempts of an hour are limited. */
    hostsTriedSince: (at: number): string[] => hostsTriedSince.all(at),
    /** Number of hosts at or below a domain with an attempt after `at`. */
    triedBelow: (domain: string, at: number): number => triedBelow.get(at, domain, domain) ?? 0,
    remove: (host: string): void => {
      remove.run(host);
    },
  };
}
