import { isIP } from 'node:net';
import { DAY } from '../../core/clock.ts';
import { returnPathDomain } from '../../domains/names.ts';
import type { AggregateReport } from '../../mail/incoming/reports/aggregate-report.ts';
import type { TlsReport } from '../../mail/incoming/reports/tls-report.ts';
import type { DmarcSourceRow } from '../../store/domains/dmarc-reports.ts';
import type { TlsFailureRow } from '../../store/domains/tls-reports.ts';
import type { Tables } from '../../store/tables.ts';

/**
 * Stores what other servers report on our domains. Anybody may send such a report, so they are shown and never
 * acted on; only reports on names of ours are taken, of each a bounded number of rows, and of each sender a
 * bounded number of reports (store/domains/report-shares.ts).
 *
 * Reports on a domain come to the return path of the domain itself, which needs no authorization (RFC 9990 §4), or
 * to our own name, whose DNS says that it takes them.
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

/** stored; known: it came before; foreign: it is about no name of ours. */
export type Stored = 'stored' | 'known' | 'foreign';

/** Rows kept of one report, those with most mail first. */
const MOST_ROWS = 200;
/** Most that one row is believed: sums of what anybody may write must stay sums. */
const MOST_COUNTED = 1e12;

/** `domain`: the one whose address it came to, null for the platform's. In a unit of work. */
export function storeAggregate(
  context: ReportContext,
  report: AggregateReport,
  domain: string | null,
): Stored {
  const { tables, now, network, signer } = context;
  const about = aboutDomain(context, report.domain, domain);
  if (about === null) return 'foreign';
  const { begin, end } = period(report, now);
  const isNew = tables.dmarcReports.insert(
    {
      domain: about,
      policy_domain: report.domain,
      organization: report.organization || report.email,
      report_id: report.reportId,
      begin_at: begin,
      end_at: end,
      policy: JSON.stringify(report.policy),
      truncated: report.isTruncated || report.records.length > MOST_ROWS ? 1 : 0,
      received_at: now,
      network,
      signer,
    },
    sourceRows(report),
  );
  return isNew ? 'stored' : 'known';
}

/** Policies on hosts that are not ours are left out. In a unit of work. */
export function storeTls(context: ReportContext, report: TlsReport): Stored {
  const { tables, now, hostname, network, signer } = context;
  const { begin, end } = period(report, now);
  const isOurs = (host: string) => {
    const domain = returnPathDomain(host);
    return host === hostname || (domain !== null && tables.domains.isRegistered(domain));
  };
  const policies = report.policies.filter(({ domain }) => isOurs(domain));
  const news = policies.filter((policy) => {
    const head = {
      host: policy.domain,
      policy_type: policy.type,
      organization: report.organization || report.contact,
      report_id: report.reportId,
      begin_at: begin,
      end_at: end,
      successful: Math.min(policy.successful, MOST_COUNTED),
      failed: Math.min(policy.failed, MOST_COUNTED),
      received_at: now,
      network,
      signer,
    };
    const failures = policy.failures.slice(0, MOST_ROWS).map(
      ({ type, receivingHost, reason, count }): TlsFailureRow => ({
        type,
        receiving_host: receivingHost,
        reason,
        sessions: Math.min(count, MOST_COUNTED),
      }),
    );
    return tables.tlsReports.insert(head, failures);
  });
  if (policies.length === 0) return 'foreign';
  return news.length > 0 ? 'stored' : 'known';
}

/** A policy may be inherited from a domain above, or stand below the domain that collects the reports. */
function aboutDomain(
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

/** As reported, within what is possible: no report covers the future, or ends before it begins. */
function period({ begin, end }: { begin: number; end: number }, now: number): { begin: number; end: number } {
  const last = end === 0 || end > now ? now : end;
  return { begin: begin === 0 || begin > last ? last - DAY : begin, end: last };
}

/** Records that differ only in what we do not keep are added up. */
function sourceRows(report: AggregateReport): DmarcSourceRow[] {
  const rows = new Map<string, DmarcSourceRow>();
  for (const { sourceIp, headerFrom, disposition, dkim, spf, count } of report.records) {
    const row: DmarcSourceRow = {
      source_ip: isIP(sourceIp) === 0 ? 'unknown' : sourceIp,
      header_from: headerFrom,
      disposition,
      dkim,
      spf,
      messages: Math.min(count, MOST_COUNTED),
    };
    const key = JSON.stringify([row.source_ip, headerFrom, disposition, dkim, spf]);
    const same = rows.get(key);
    if (same === undefined) rows.set(key, row);
    else same.messages = Math.min(same.messages + count, MOST_COUNTED);
  }
  return [...rows.values()].sort((a, b) => b.messages - a.messages).slice(0, MOST_ROWS);
}
