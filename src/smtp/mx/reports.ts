import { DAY } from '../../core/clock.ts';
import { returnPathDomain, returnPathHost } from '../../domains/names.ts';
import type { ParsedIncoming } from '../../mail/incoming/parse.ts';
import type { AggregateReport } from '../../mail/incoming/reports/aggregate-report.ts';
import { isFromNamedOrganization } from '../../mail/incoming/reports/reporting-organization.ts';
import type { TlsReport } from '../../mail/incoming/reports/tls-report.ts';
import type { AuthenticatedAuthor } from '../../mail/incoming/signatures.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { Tables } from '../../store/tables.ts';

/**
 * Stores reports of other servers on our domains. Anyone may send such a report: all are displayed, and only those that the
 * reporting organization has signed (`verified`) count for the next step of the DMARC policy. Only reports on our names are
 * stored, a bounded number of rows of each report (mail/incoming/limits.ts), and a bounded number of reports of each sender
 * (store/domains/report-shares.ts).
 *
 * Reports on a domain are addressed to `return-a.` of the domain, which needs no authorization (RFC 9990 §4), or to our
 * own host name, whose DNS authorizes it. TLS reports are about `return-a.` of the domain, or about the domain itself if
 * its TLSRPT record names our address.
 */
export interface ReportSource {
  /** Our own host name. */
  hostname: string;
  /** Epoch ms. */
  now: number;
  /** Network that the report came from. */
  network: string;
  /** Null: no DKIM signature verified. */
  signer: AuthenticatedAuthor | null;
}

/** known: it was stored before. foreign: it is about none of our names. */
type StoreResult = 'stored' | 'known' | 'foreign';

/** Units of work that store reports take turns with others under this name, see `Writer.run`. */
const SHARE = 'reports';

/**
 * Stores the report of a mail once for each domain that it was sent to (DMARC), or each host that it is about (TLS).
 * `domains`: of the addresses, null for the platform's. Each domain or host is a separate unit of work, because one mail
 * may have a hundred; a report that is sent again after a failure completes those that are missing.
 */
export async function storeReports(
  writer: Writer,
  origin: ReportSource,
  { aggregate, tls }: Pick<ParsedIncoming, 'aggregate' | 'tls'>,
  domains: readonly (string | null)[],
): Promise<ReadonlyMap<string | null, StoreResult>> {
  const distinct = [...new Set(domains)];
  if (aggregate !== null) {
    const stored = distinct.map((domain) =>
      writer.run((tables) => storeAggregate(tables, origin, aggregate, domain), SHARE),
    );
    const results = await Promise.all(stored);
    return new Map(distinct.map((domain, n) => [domain, results[n] ?? 'foreign']));
  }
  if (tls === null || distinct.length === 0) return new Map();
  const hosts = new Set(tls.policies.map(({ domain }) => domain));
  const results = await Promise.all(
    [...hosts].map((host) =>
      writer.run((tables) => storeTls(tables, origin, tls, { host, domains: distinct }), SHARE),
    ),
  );
  const result = (['stored', 'known'] as const).find((each) => results.includes(each)) ?? 'foreign';
  return new Map(distinct.map((domain) => [domain, result]));
}

/** Stores a DMARC report. `domain`: whose address it was sent to, null for the platform's. In a unit of work. */
function storeAggregate(
  tables: Tables,
  origin: ReportSource,
  report: AggregateReport,
  domain: string | null,
): StoreResult {
  const { now, network, signer } = origin;
  const { organization, email: contact } = report;
  const subject = subjectOf(tables, origin, report.domain, domain);
  if (subject === null) return 'foreign';
  const { begin, end } = period(report, now);
  const isNew = tables.dmarcReports.insert(
    {
      domain: subject,
      policy_domain: report.domain,
      organization: organization || contact,
      report_id: report.reportId,
      begin_at: begin,
      end_at: end,
      policy: JSON.stringify(report.policy),
      truncated: report.isTruncated ? 1 : 0,
      received_at: now,
      network,
      ...signedBy(signer, { organization, contact }),
    },
    report.sources.map(({ sourceIp, headerFrom, disposition, dkim, spf, count }) => ({
      source_ip: sourceIp,
      header_from: headerFrom,
      disposition,
      dkim,
      spf,
      messages: count,
    })),
  );
  return isNew ? 'stored' : 'known';
}

/** Stores the policies on one host of a TLS report. `domains`: of the addresses that it was sent to. In a unit of work. */
function storeTls(
  tables: Tables,
  origin: ReportSource,
  report: TlsReport,
  { host, domains }: { host: string; domains: readonly (string | null)[] },
): StoreResult {
  const { now, network, signer } = origin;
  const { organization, contact } = report;
  const ours = ownHost(tables, origin, host, domains);
  if (ours === null) return 'foreign';
  const { begin, end } = period(report, now);
  const policies = report.policies.filter((policy) => policy.domain === host);
  const isNew = tables.tlsReports.insert(
    {
      host: ours,
      organization: organization || contact,
      report_id: report.reportId,
      begin_at: begin,
      end_at: end,
      received_at: now,
      network,
      ...signedBy(signer, { organization, contact }),
    },
    policies.map(({ type, successful, failed, failures }) => ({
      policy_type: type,
      successful,
      failed,
      failures: failures.map(({ type: failure, receivingHost, reason, count }) => ({
        type: failure,
        receiving_host: receivingHost,
        reason,
        sessions: count,
      })),
    })),
  );
  return isNew ? 'stored' : 'known';
}

function signedBy(
  signer: AuthenticatedAuthor | null,
  report: { organization: string; contact: string },
): { signer: string; verified: 0 | 1 } {
  if (signer === null) return { signer: '', verified: 0 };
  return { signer: signer.organization, verified: isFromNamedOrganization(signer, report) ? 1 : 0 };
}

/** The host under which a TLS report is stored: ours, or that of the domain that collects reports; null: none of ours. */
function ownHost(
  tables: Tables,
  { hostname }: ReportSource,
  host: string,
  domains: readonly (string | null)[],
): string | null {
  if (host === hostname) return host;
  const domain = returnPathDomain(host);
  if (domain !== null && tables.domains.isRegistered(domain)) return host;
  const isCollected = domains.includes(host) || (domains.includes(null) && tables.domains.isRegistered(host));
  return isCollected ? returnPathHost(host) : null;
}

/**
 * The domain that a report is about; null: none of ours. The policy domain may be a parent (inherited policy) or a child of
 * the domain that collects the reports.
 */
function subjectOf(
  tables: Tables,
  { hostname }: ReportSource,
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
