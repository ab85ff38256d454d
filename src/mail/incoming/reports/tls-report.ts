import { memberOf, parseUntrustedJson, stringMember } from '../../../core/untrusted-json.ts';
import type { IncomingLimits } from '../limits.ts';
import { createSums, MAX_COUNT } from './sums.ts';

/**
 * Parses SMTP TLS reports (RFC 8460 §4): how often senders could and could not establish TLS with our hosts. The JSON is
 * untrusted: a field of the wrong type is empty. Only what is stored is returned, so that little is copied between threads.
 */
export interface TlsReport {
  organization: string;
  contact: string;
  reportId: string;
  /** Epoch ms; 0 when not given. */
  begin: number;
  end: number;
  policies: TlsReportPolicy[];
  /** Number of policies that were omitted because of the limit. */
  omittedPolicies: number;
}

export interface TlsReportPolicy {
  /** tlsa, sts, no-policy-found. */
  type: string;
  domain: string;
  successful: number;
  failed: number;
  /** Summed, those with the most sessions first. */
  failures: TlsFailure[];
}

export interface TlsFailure {
  /** `certificate-expired`, `starttls-not-supported`, ... (RFC 8460 §4.3). */
  type: string;
  count: number;
  receivingHost: string;
  reason: string;
}

/** Null when the text is not a TLS report. */
export function readTlsReport(json: string, limits: IncomingLimits): TlsReport | null {
  if (json.length > limits.jsonChars || isNestedBeyond(json, limits.jsonDepth)) return null;
  const report = parseUntrustedJson(json);
  const policies = memberOf(report, 'policies');
  const reportId = idOf(report);
  if (!Array.isArray(policies) || reportId === '') return null;
  const range = memberOf(report, 'date-range');
  return {
    organization: text(report, 'organization-name'),
    contact: text(report, 'contact-info'),
    reportId,
    begin: time(text(range, 'start-datetime')),
    end: time(text(range, 'end-datetime')),
    policies: readPolicies(policies, limits),
    omittedPolicies: Math.max(0, policies.length - limits.policies),
  };
}

/** All policies together have at most `reportRows` failures. */
function readPolicies(
  entries: readonly unknown[],
  { policies, reportRows }: IncomingLimits,
): TlsReportPolicy[] {
  let left = reportRows;
  return entries.slice(0, policies).map((entry) => {
    const policy = readPolicy(entry, left);
    left -= policy.failures.length;
    return policy;
  });
}

function readPolicy(entry: unknown, maxFailures: number): TlsReportPolicy {
  const policy = memberOf(entry, 'policy');
  const summary = memberOf(entry, 'summary');
  const details = memberOf(entry, 'failure-details');
  return {
    type: text(policy, 'policy-type'),
    domain: text(policy, 'policy-domain').toLowerCase(),
    successful: count(memberOf(summary, 'total-successful-session-count')),
    failed: count(memberOf(summary, 'total-failure-session-count')),
    failures: Array.isArray(details) ? readFailures(details, maxFailures) : [],
  };
}

const MAX_FAILURES = 1000;
const MAX_TEXT_LENGTH = 500;

function readFailures(details: readonly unknown[], most: number): TlsFailure[] {
  const sums = createSums<TlsFailure>();
  for (const detail of details.slice(0, MAX_FAILURES)) sums.add(readFailure(detail));
  return sums.highest(most);
}

function readFailure(detail: unknown): TlsFailure {
  return {
    type: text(detail, 'result-type'),
    count: count(memberOf(detail, 'failed-session-count')),
    receivingHost: text(detail, 'receiving-mx-hostname'),
    reason: text(detail, 'failure-reason-code') || text(detail, 'failure-error-code'),
  };
}

/** Checked before parsing, whose cost grows with every level of nesting. */
function isNestedBeyond(json: string, levels: number): boolean {
  let level = 0;
  let isText = false;
  for (let at = 0; at < json.length; at++) {
    const char = json[at];
    if (isText && char === '\\') at++;
    else if (char === '"') isText = !isText;
    else if (isText) continue;
    else if (char === ']' || char === '}') level--;
    else if ((char === '[' || char === '{') && ++level > levels) return true;
  }
  return false;
}

/** A string (RFC 8460 §4.4); some report generators write a number. */
function idOf(report: unknown): string {
  const id = memberOf(report, 'report-id');
  return typeof id === 'number' ? String(id) : text(report, 'report-id');
}

function text(value: unknown, name: string): string {
  return stringMember(value, name, MAX_TEXT_LENGTH);
}

/** Some report generators quote their numbers. */
function count(value: unknown): number {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0
    ? Math.min(number, MAX_COUNT)
    : 0;
}

function time(text: string): number {
  const at = Date.parse(text);
  return Number.isNaN(at) ? 0 : at;
}
