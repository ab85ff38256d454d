import type { DmarcReportRow, DmarcSourceSum, ReportPeriod } from '../store/domains/dmarc-reports.ts';
import type { TlsFailureRow, TlsReportRow } from '../store/domains/tls-reports.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';
import { returnPathHost } from './names.ts';

/** Reports on a domain in a period, and what they add up to. */
export interface DomainReports {
  dmarc: {
    /** Of all sources, also those beyond the limit. */
    total: { messages: number; passed: number };
    /** Most mail first. */
    sources: DmarcSourceSum[];
    /** Newest first. */
    reports: (DmarcReportRow & { messages: number })[];
  };
  tls: {
    total: { successful: number; failed: number };
    /** Most sessions first. */
    failures: TlsFailureRow[];
    /** Newest first. */
    reports: TlsReportRow[];
  };
}

/** The reports on a domain of this name, as reader threads read them. */
export const domainReports = readQuery(
  'domainReports',
  ({ dmarcReports, tlsReports }: Tables, name: string, period: ReportPeriod): DomainReports => {
    const host = returnPathHost(name);
    return {
      dmarc: {
        total: dmarcReports.total(name, period),
        sources: dmarcReports.sources(name, period),
        reports: dmarcReports.list(name, period),
      },
      tls: {
        total: tlsReports.total(host, period),
        failures: tlsReports.failures(host, period),
        reports: tlsReports.list(host, period),
      },
    };
  },
);
