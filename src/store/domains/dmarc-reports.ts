import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { reportShares } from './report-shares.ts';

/** DMARC aggregate reports (RFC 9990) about domains, and their sums by source address. */
export interface DmarcReportRow {
  seq: number;
  domain: string;
  policy_domain: string;
  organization: string;
  report_id: string;
  begin_at: number;
  end_at: number;
  /** JSON. */
  policy: string;
  truncated: 0 | 1;
  received_at: number;
  /** Network of the server that sent the report. */
  network: string;
  /** Organization whose DKIM signature verified; '': none. */
  signer: string;
  /** Whether the signer is the reporting organization. */
  verified: 0 | 1;
}

export interface DmarcSourceRow {
  source_ip: string;
  header_from: string;
  disposition: string;
  dkim: string;
  spf: string;
  messages: number;
}

/** Sums over the reports of a period for one source address. */
export interface DmarcSourceSum {
  source_ip: string;
  messages: number;
  passed: number;
  dkim_passed: number;
  spf_passed: number;
  quarantined: number;
  rejected: number;
}

/** Sums over the reports that ended on one day. */
export interface DmarcDaySum {
  /** YYYY-MM-DD, in UTC. */
  day: string;
  messages: number;
  passed: number;
  dkim_passed: number;
  spf_passed: number;
}

/** Of the verified reports; epoch ms, null: there is none. */
export interface DmarcReportHistory {
  /** Start of the first report. */
  firstAt: number | null;
  /** End of the last report. */
  lastAt: number | null;
  /** End of the last report with mail that failed both DKIM and SPF. */
  lastFailureAt: number | null;
  /** Number of reports that do not count: their reporting organization did not sign them. */
  unverified: number;
}

/** Selects reports that end in this period, epoch ms. */
export interface ReportPeriod {
  from: number;
  to: number;
  limit: number;
  /** Only reports that the reporting organization has signed, or only others; undefined: all. */
  verified?: boolean | undefined;
}

/** A period as parameters of a statement. */
export type BoundPeriod = Omit<ReportPeriod, 'verified'> & { verified: 0 | 1 | null };

/** The condition for reports in a `BoundPeriod`. */
export const IN_PERIOD = 'end_at >= @from AND end_at < @to AND (@verified IS NULL OR verified = @verified)';

/** The parameters of a statement for a period. */
export function boundPeriod({ verified, ...period }: ReportPeriod): BoundPeriod {
  return { ...period, verified: verified === undefined ? null : verified ? 1 : 0 };
}

export const DMARC_REPORT_POLICY = {
  table: 'dmarc_reports',
  personal: [],
  retention: { kind: 'dmarcReports', rows: 'aged', period: 'events', number: 'seq', time: 'received_at' },
} as const satisfies DataPolicy;

/**
 * `dmarc_reports` with their `dmarc_sources`; periods are read by the index `dmarc_reports_by_end`. Inserting a report
 * may delete others on the domain (`reportShares`).
 */
export function dmarcReportTable(db: Database) {
  const sql = statements(db);
  const insert = db.prepare<Omit<DmarcReportRow, 'seq'>>(`
    INSERT INTO ${sql.row('dmarc_reports')}
    ON CONFLICT DO NOTHING`);
  const insertSource = sql.run<[DmarcSourceRow & { report_seq: number }]>(`
    INSERT INTO ${sql.row('dmarc_sources')}
    ON CONFLICT DO UPDATE SET messages = messages + excluded.messages`);
  const replaceForged = sql.run<
    [Pick<DmarcReportRow, 'domain' | 'organization' | 'report_id' | 'verified'>]
  >(`
    DELETE FROM dmarc_reports WHERE domain = @domain AND organization = @organization AND report_id = @report_id
      AND verified = 0 AND (@verified OR signer = '')`);
  const enforceShares = reportShares(db, { table: 'dmarc_reports', about: 'domain' });
  const list = sql.all<[BoundPeriod & { domain: string }], DmarcReportRow & { messages: number }>(`
    SELECT r.*, (SELECT coalesce(sum(messages), 0) FROM dmarc_sources s WHERE s.report_seq = r.seq) AS messages
    FROM dmarc_reports r WHERE domain = @domain AND ${IN_PERIOD} ORDER BY end_at DESC LIMIT +@limit`);
  const sources = sql.all<[BoundPeriod & { domain: string }], DmarcSourceSum>(`
    SELECT source_ip, sum(messages) AS messages,
      sum(iif(dkim = 'pass' OR spf = 'pass', messages, 0)) AS passed,
      sum(iif(dkim = 'pass', messages, 0)) AS dkim_passed,
      sum(iif(spf = 'pass', messages, 0)) AS spf_passed,
      sum(iif(disposition = 'quarantine', messages, 0)) AS quarantined,
      sum(iif(disposition = 'reject', messages, 0)) AS rejected
    FROM dmarc_reports r JOIN dmarc_sources s ON s.report_seq = r.seq
    WHERE r.domain = @domain AND ${IN_PERIOD}
    GROUP BY source_ip ORDER BY messages DESC, source_ip LIMIT +@limit`);
  // A report may end at the first moment of the day after the one that it is about. The sums by `end_at` are in the order of
  // the index: only those are sorted.
  const days = sql.all<[BoundPeriod & { domain: string }], DmarcDaySum>(`
    SELECT date((end_at - 1) / 1000, 'unixepoch') AS day, sum(messages) AS messages, sum(passed) AS passed,
      sum(dkim_passed) AS dkim_passed, sum(spf_passed) AS spf_passed
    FROM (
      SELECT r.end_at, sum(messages) AS messages,
        sum(iif(dkim = 'pass' OR spf = 'pass', messages, 0)) AS passed,
        sum(iif(dkim = 'pass', messages, 0)) AS dkim_passed,
        sum(iif(spf = 'pass', messages, 0)) AS spf_passed
      FROM dmarc_reports r JOIN dmarc_sources s ON s.report_seq = r.seq
      WHERE r.domain = @domain AND ${IN_PERIOD} GROUP BY r.end_at)
    GROUP BY day ORDER BY day DESC LIMIT +@limit`);
  const total = db.prepare<BoundPeriod & { domain: string }, { messages: number; passed: number }>(`
    SELECT coalesce(sum(messages), 0) AS messages,
      coalesce(sum(iif(dkim = 'pass' OR spf = 'pass', messages, 0)), 0) AS passed
    FROM dmarc_reports r JOIN dmarc_sources s ON s.report_seq = r.seq
    WHERE r.domain = @domain AND ${IN_PERIOD} AND @limit > 0`);
  const history = db.prepare<[string], DmarcReportHistory>(`
    SELECT min(iif(verified, begin_at, NULL)) AS firstAt, max(iif(verified, end_at, NULL)) AS lastAt,
      max(iif(verified AND EXISTS (
        SELECT 1 FROM dmarc_sources s WHERE s.report_seq = r.seq AND s.dkim <> 'pass' AND s.spf <> 'pass'
      ), end_at, NULL)) AS lastFailureAt,
      coalesce(sum(1 - verified), 0) AS unverified
    FROM dmarc_reports r WHERE domain = ?`);
  return {
    /** Adds up rows with the same source and results. Returns false when the report is stored already. */
    insert: (report: Omit<DmarcReportRow, 'seq'>, rows: readonly DmarcSourceRow[]): boolean => {
      // A signed report replaces an unsigned one with its id, and a verified one any other: they may be forged.
      if (report.signer !== '') replaceForged(report);
      const { changes, lastInsertRowid } = insert.run(report);
      if (changes === 0) return false;
      for (const row of rows) insertSource({ report_seq: Number(lastInsertRowid), ...row });
      enforceShares(report.domain, report);
      return true;
    },
    /** Newest first. */
    list: (domain: string, period: ReportPeriod): (DmarcReportRow & { messages: number })[] =>
      list({ domain, ...boundPeriod(period) }),
    /** The source with the most messages first. */
    sources: (domain: string, period: ReportPeriod): DmarcSourceSum[] =>
      sources({ domain, ...boundPeriod(period) }),
    /** The last day first; days without reports are omitted. */
    days: (domain: string, period: ReportPeriod): DmarcDaySum[] => days({ domain, ...boundPeriod(period) }),
    /** Sums of all sources, also those beyond the limit. With a limit of 0 the caller may see nothing: the sums are 0. */
    total: (domain: string, period: ReportPeriod): { messages: number; passed: number } =>
      total.get({ domain, ...boundPeriod(period) }) ?? { messages: 0, passed: 0 },
    history: (domain: string): DmarcReportHistory =>
      history.get(domain) ?? { firstAt: null, lastAt: null, lastFailureAt: null, unverified: 0 },
  };
}
