import { DAY } from '../core/clock.ts';
import type {
  DmarcDaySum,
  DmarcReportHistory,
  DmarcReportRow,
  DmarcSourceSum,
  ReportPeriod,
} from '../store/domains/dmarc-reports.ts';
import type { TlsDaySum, TlsFailureRow, TlsReportRow } from '../store/domains/tls-reports.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';
import { returnPathHost } from './names.ts';

/** The reports on a domain in a period, with their totals. */
export interface DomainReports {
  dmarc: {
    /** Totals of all sources, including those beyond the limit. */
    total: { messages: number; passed: number };
    /** Most mail first. */
    sources: DmarcSourceSum[];
    /** Last day first. */
    days: DmarcDaySum[];
    /** Newest first. */
    reports: (DmarcReportRow & { messages: number })[];
  };
  tls: {
    total: { successful: number; failed: number };
    /** Most sessions first. */
    failures: TlsFailureRow[];
    /** Last day first. */
    days: TlsDaySum[];
    /** Newest first. */
    reports: TlsReportRow[];
  };
}

/** More than a year, and more than the limit of other lists. */
export const MAX_DAYS = 400;

/** The reports on a domain of this name; runs in reader threads. */
export const domainReports = readQuery(
  'domainReports',
  ({ dmarcReports, tlsReports }: Tables, name: string, period: ReportPeriod): DomainReports => {
    const host = returnPathHost(name);
    const daily = { ...period, limit: period.limit === 0 ? 0 : MAX_DAYS };
    const days = dmarcReports.days(name, daily);
    return {
      dmarc: {
        // The days add up to it unless some are beyond their limit: a year has tens of thousands of rows.
        total: days.length < MAX_DAYS ? totalOf(days) : dmarcReports.total(name, period),
        sources: dmarcReports.sources(name, period),
        days,
        reports: dmarcReports.list(name, period),
      },
      tls: {
        total: tlsReports.total(host, period),
        failures: tlsReports.failures(host, period),
        days: tlsReports.days(host, daily),
        reports: tlsReports.list(host, period),
      },
    };
  },
);

function totalOf(days: readonly DmarcDaySum[]): DomainReports['dmarc']['total'] {
  const sum = (field: 'messages' | 'passed') => days.reduce((total, day) => total + day[field], 0);
  return { messages: sum('messages'), passed: sum('passed') };
}

/** When reports about a domain begin, end, and show failures; runs in reader threads. */
export const dmarcHistory = readQuery(
  'dmarcHistory',
  ({ dmarcReports }: Tables, name: string): DmarcReportHistory => dmarcReports.history(name),
);

/** Reports without failures for this time permit a stricter policy. */
const CLEAN_PERIOD_MS = 14 * DAY;

/**
 * When the DMARC policy may be raised, in a sentence: after two weeks of reports without unauthenticated mail from
 * p=none to p=quarantine, and again to p=reject. `isStrictest`: the policy is p=reject.
 */
export function dmarcProgress(history: DmarcReportHistory, now: number, isStrictest = false): string {
  const { firstAt, lastAt, unverified } = history;
  if (firstAt === null)
    return unverified === 0
      ? 'No DMARC reports yet: they arrive a day after the first mail.'
      : `No DMARC report that its organization has signed yet: ${unverified} others do not count, because anyone can send them.`;
  if (isStale(history, now))
    return `No DMARC reports since ${day(lastAt ?? firstAt)}: without them, failures of your own mail are not visible.`;
  const raiseAt = cleanSince(firstAt, history) + CLEAN_PERIOD_MS;
  const since = `DMARC reports show no unauthenticated mail since ${day(cleanSince(firstAt, history))}`;
  if (isStrictest) return `${since}.`;
  return raiseAt <= now
    ? `${since}: a p=none policy may be raised to p=quarantine, and p=quarantine to p=reject.`
    : `${since}: a policy below p=reject may be raised after ${day(raiseAt)} if no such mail arrives before then.`;
}

/** When the policy may be raised if no more failures are reported, epoch ms; null: not known without recent reports. */
export function raiseAt(history: DmarcReportHistory, now: number): number | null {
  const { firstAt } = history;
  return firstAt === null || isStale(history, now) ? null : cleanSince(firstAt, history) + CLEAN_PERIOD_MS;
}

function cleanSince(firstAt: number, { lastFailureAt }: DmarcReportHistory): number {
  return Math.max(firstAt, lastFailureAt ?? firstAt);
}

/** Whether reports no longer arrive. */
function isStale({ lastAt }: DmarcReportHistory, now: number): boolean {
  return lastAt !== null && lastAt < now - CLEAN_PERIOD_MS;
}

function day(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
