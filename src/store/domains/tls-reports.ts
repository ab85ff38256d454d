import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { type BoundPeriod, boundPeriod, IN_PERIOD, type ReportPeriod } from './dmarc-reports.ts';
import { reportShares } from './report-shares.ts';

/** SMTP TLS reports (RFC 8460) about return hosts, one row per reported policy. */
export interface TlsReportRow {
  seq: number;
  host: string;
  policy_type: string;
  organization: string;
  report_id: string;
  begin_at: number;
  end_at: number;
  successful: number;
  failed: number;
  received_at: number;
  /** Network of the server that sent the report. */
  network: string;
  /** Organization whose DKIM signature verified; '': none. */
  signer: string;
  /** Whether the signer is the reporting organization. */
  verified: 0 | 1;
}

export interface TlsFailureRow {
  type: string;
  receiving_host: string;
  reason: string;
  sessions: number;
}

/** A report on one host, without its policies. */
export type TlsReportHead = Omit<TlsReportRow, 'seq' | 'policy_type' | 'successful' | 'failed'>;

/** One policy of a report. */
export type TlsPolicyRow = Pick<TlsReportRow, 'policy_type' | 'successful' | 'failed'> & {
  failures: readonly TlsFailureRow[];
};

/** Sums over the reports that ended on one day. */
export interface TlsDaySum {
  /** YYYY-MM-DD, in UTC. */
  day: string;
  successful: number;
  failed: number;
}

export const TLS_REPORT_POLICY = {
  table: 'tls_reports',
  personal: [],
  retention: { kind: 'tlsReports', rows: 'aged', period: 'events', number: 'seq', time: 'received_at' },
} as const satisfies DataPolicy;

/**
 * `tls_reports` with their `tls_failures`; periods are read by the index `tls_reports_by_end`. Inserting a report may
 * delete others on the host (`reportShares`).
 */
export function tlsReportTable(db: Database) {
  const sql = statements(db);
  const insert = db.prepare<Omit<TlsReportRow, 'seq'>>(`
    INSERT INTO ${sql.row('tls_reports')}
    ON CONFLICT DO NOTHING`);
  const insertFailure = sql.run<[TlsFailureRow & { report_seq: number }]>(`
    INSERT INTO ${sql.row('tls_failures')}
    ON CONFLICT DO UPDATE SET sessions = sessions + excluded.sessions`);
  const replaceForged = sql.run<
    [Pick<TlsReportRow, 'host' | 'organization' | 'report_id' | 'policy_type' | 'verified'>]
  >(`
    DELETE FROM tls_reports WHERE host = @host AND organization = @organization AND report_id = @report_id AND policy_type = @policy_type
      AND verified = 0 AND (@verified OR signer = '')`);
  const enforceShares = reportShares(db, { table: 'tls_reports', about: 'host' });
  const list = sql.all<[BoundPeriod & { host: string }], TlsReportRow>(`
    SELECT * FROM tls_reports WHERE host = @host AND ${IN_PERIOD} ORDER BY end_at DESC LIMIT +@limit`);
  const failures = db.prepare<BoundPeriod & { host: string }, TlsFailureRow>(`
    SELECT type, receiving_host, reason, sum(sessions) AS sessions
    FROM tls_reports r JOIN tls_failures f ON f.report_seq = r.seq
    WHERE r.host = @host AND ${IN_PERIOD}
    GROUP BY type, receiving_host, reason ORDER BY sessions DESC, type LIMIT +@limit`);
  // A report may end at the first moment of the day after the one that it is about.
  const days = sql.all<[BoundPeriod & { host: string }], TlsDaySum>(`
    SELECT date((end_at - 1) / 1000, 'unixepoch') AS day, sum(successful) AS successful, sum(failed) AS failed
    FROM tls_reports WHERE host = @host AND ${IN_PERIOD}
    GROUP BY day ORDER BY day DESC LIMIT +@limit`);
  const total = db.prepare<BoundPeriod & { host: string }, { successful: number; failed: number }>(`
    SELECT coalesce(sum(successful), 0) AS successful, coalesce(sum(failed), 0) AS failed FROM tls_reports
    WHERE host = @host AND ${IN_PERIOD} AND @limit > 0`);
  function insertPolicy(report: Omit<TlsReportRow, 'seq'>, failures: readonly TlsFailureRow[]): boolean {
    // As for DMARC reports.
    if (report.signer !== '') replaceForged(report);
    const { changes, lastInsertRowid } = insert.run(report);
    if (changes === 0) return false;
    for (const row of failures) insertFailure({ report_seq: Number(lastInsertRowid), ...row });
    return true;
  }

  return {
    /**
     * Inserts a row for each policy. Adds up failures with the same type, host and reason. Returns false when all are stored
     * already.
     */
    insert: (report: TlsReportHead, policies: readonly TlsPolicyRow[]): boolean => {
      let isNew = false;
      for (const { failures, ...policy } of policies)
        if (insertPolicy({ ...report, ...policy }, failures)) isNew = true;
      // Once for all policies: it reads every report on the host.
      if (isNew) enforceShares(report.host, report);
      return isNew;
    },
    /** Newest first. */
    list: (host: string, period: ReportPeriod): TlsReportRow[] => list({ host, ...boundPeriod(period) }),
    /** The failure with the most sessions first. */
    failures: (host: string, period: ReportPeriod): TlsFailureRow[] =>
      failures.all({ host, ...boundPeriod(period) }),
    /** The last day first; days without reports are omitted. */
    days: (host: string, period: ReportPeriod): TlsDaySum[] => days({ host, ...boundPeriod(period) }),
    /** Sums of all reports, also those beyond the limit. With a limit of 0 the caller may see nothing: the sums are 0. */
    total: (host: string, period: ReportPeriod): { successful: number; failed: number } =>
      total.get({ host, ...boundPeriod(period) }) ?? { successful: 0, failed: 0 },
  };
}
