import { isIP } from 'node:net';
import { DAY } from '../../core/clock.ts';
import { returnPathDomain } from '../../domains/names.ts';
import type { AggregateReport } from '../../mail/incoming/reports/aggregate-report.ts';
import type { TlsReport } from '../../mail/incoming/reports/tls-report.ts';
import type { DmarcSourceRow } from '../../store/domains/dmarc-reports.ts';
import type { TlsFailureRow } from '../../store/domains/tls-reports.ts';
import type { Tables } from '../../store/tables.ts';

/**
 * Stores reports of other servers on our domains. Anyone may send such a report, so reports are displayed and have no
 * other effect. Only reports on our names are stored, a bounded number of rows of each report, and a bounded number of
 * reports of each sender (store/domains/report-shares.ts).
 *
 * Reports on a domain are addressed to `return-a.` of the domain, which needs no authorization (RFC 9990 §4), or to our
 * own host name, whose DNS authorizes it.
 */
export interface ReportContext {
  tables: Tables;
  hostname: string;
  /** Epoch ms. */
  now: number;
  /** Network that the report came from. */
  network: string;
  /** Organization whose DKIM signature verified, '' for none. */
  signer: string;
}

/** known: it was stored before. foreign: it is about none of our names. */
export type StoreResult = 'stored' | 'known' | 'foreign';

/** Rows stored of one report, those with the most messages first. */
const MAX_ROWS = 200;
/** Maximum of a count in a row, so that sums stay exact integers. */
const MAX_COUNT = 1e12;

/** Stores a DMARC report. `domain`: whose address it was sent to, null for the platform's. In a unit of work. */
export function storeAggregate(
  context: ReportContext,
  report: AggregateReport,
  domain: string | null,
): StoreResult {
  const { tables, now, network, signer } = context;
  const subject = subjectOf(context, report.domain, domain);
  if (subject === null) return 'foreign';
  const { begin, end } = period(report, now);
  const isNew = tables.dmarcReports.insert(
    {
      domain: subject,
      policy_domain: report.domain,
      organization: report.organization || report.email,
      report_id: report.reportId,
      begin_at: begin,
      end_at: end,
      policy: JSON.stringify(report.policy),
      truncated: report.isTruncated || report.records.length > MAX_ROWS ? 1 : 0,
      received_at: now,
      network,
      signer,
    },
    sourceRows(report),
  );
  return isNew ? 'stored' : 'known';
}

/** Stores a TLS report without policies on other hosts. In a unit of work. */
export function storeTls(context: ReportContext, report: TlsReport): StoreResult {
  const { tables, now, hostname, network, signer } = context;
  const { begin, end } = period(report, now);
  const isOurs = (host: string) => {
    const domain = returnPathDomain(host);
    return host === hostname || (domain !== null && tables.domains.isRegistered(domain));
  };
  const policies = report.policies.filter(({ domain }) => isOurs(domain));
  const added = policies.filter((policy) => {
    const head = {
      host: policy.domain,
      policy_type: policy.type,
      organization: report.organization || report.contact,
      report_id: report.reportId,
      begin_at: begin,
      end_at: end,
      successful: Math.min(policy.successful, MAX_COUNT),
      failed: Math.min(policy.failed, MAX_COUNT),
      received_at: now,
      network,
      signer,
    };
    const failures = policy.failures.slice(0, MAX_ROWS).map(
      ({ type, receivingHost, reason, count }): TlsFailureRow => ({
        type,
        receiving_host: receivingHost,
        reason,
        sessions: Math.min(count, MAX_COUNT),
      }),
    );
    return tables.tlsReports.insert(head, failures);
  });
  if (policies.length === 0) return 'foreign';
  return added.length > 0 ? 'stored' : 'known';
}

/**
 * The domain that a report is about; null: none of ours. The policy domain may be a parent (inherited policy) or a child of
 * the domain that collects the reports.
 */
function subjectOf(
  { tables, hostname }: ReportContext,
  policyDomain: string,
  domain: string | null,
): string | null {
  if (domain === null)
    return policyDomain === hostname || tables.domains.isRegistered(policyDomain) ? policyDomain : null;
  const isRelated =
    policyDomain === domain || domain.endsWith(`.${policyDomain}`) || policyDomain.endsWith(`.${domain}`);
  return isRelated ? domain : null;
}

/** The reported period, limited to the past; an impossible one becomes the last day. */
function period({ begin, end }: { begin: number; end: number }, now: number): { begin: number; end: number } {
  const last = end === 0 || end > now ? now : end;
  return { begin: begin === 0 || begin > last ? last - DAY : begin, end: last };
}

/** Sums records that differ only in fields that are not stored. */
function sourceRows(report: AggregateReport): DmarcSourceRow[] {
  const rows = new Map<string, DmarcSourceRow>();
  for (const { sourceIp, headerFrom, disposition, dkim, spf, count } of report.records) {
    const row: DmarcSourceRow = {
      source_ip: isIP(sourceIp) === 0 ? 'unknown' : sourceIp,
      header_from: headerFrom,
      disposition,
      dkim,
      spf,
      messages: Math.min(count, MAX_COUNT),
    };
    const key = JSON.stringify([row.source_ip, headerFrom, disposition, dkim, spf]);
    const same = rows.get(key);
    if (same === undefined) rows.set(key, row);
    else same.messages = Math.min(same.messages + count, MAX_COUNT);
  }
  return [...rows.values()].sort((a, b) => b.messages - a.messages).slice(0, MAX_ROWS);
}
