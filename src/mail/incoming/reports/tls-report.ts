import type { IncomingLimits } from '../limits.ts';
import { memberOf, parseUntrustedJson, stringMember } from '../untrusted-json.ts';

/**
 * Parses SMTP TLS reports (RFC 8460 §4): how often senders could and could not establish TLS with our hosts. The JSON is
 * untrusted: a field of the wrong type is empty.
 */
export interface TlsReport {
  organization: string;
  contact: string;
  reportId: string;
  /** Epoch ms; 0 when not given. */
  begin: number;
  end: number;
  policies: TlsReportPolicy[];
}

export interface TlsReportPolicy {
  /** tlsa, sts, no-policy-found. */
  type: string;
  domain: string;
  mxHosts: string[];
  successful: number;
  failed: number;
  failures: TlsFailure[];
}

export interface TlsFailure {
  /** `certificate-expired`, `starttls-not-supported`, ... (RFC 8460 §4.3). */
  type: string;
  count: number;
  sendingIp: string;
  receivingHost: string;
  receivingIp: string;
  reason: string;
}

/** Null when the text is not a TLS report. */
export function readTlsReport(json: string, limits: IncomingLimits): TlsReport | null {
  if (json.length > limits.jsonChars || isNestedBeyond(json, limits.jsonDepth)) return null;
  const report = parseUntrustedJson(json);
  const policies = memberOf(report, 'policies');
  if (!Array.isArray(policies) || text(report, 'report-id') === '') return null;
  const range = memberOf(report, 'date-range');
  return {
    organization: text(report, 'organization-name'),
    contact: text(report, 'contact-info'),
    reportId: text(report, 'report-id'),
    begin: time(text(range, 'start-datetime')),
    end: time(text(range, 'end-datetime')),
    policies: policies.slice(0, limits.records).map(readPolicy),
  };
}

function readPolicy(entry: unknown): TlsReportPolicy {
  const policy = memberOf(entry, 'policy');
  const summary = memberOf(entry, 'summary');
  const details = memberOf(entry, 'failure-details');
  return {
    type: text(policy, 'policy-type'),
    domain: text(policy, 'policy-domain').toLowerCase(),
    mxHosts: texts(memberOf(policy, 'mx-host')),
    successful: count(memberOf(summary, 'total-successful-session-count')),
    failed: count(memberOf(summary, 'total-failure-session-count')),
    failures: Array.isArray(details) ? details.slice(0, MAX_FAILURES).map(readFailure) : [],
  };
}

const MAX_FAILURES = 1000;
const MAX_TEXT_LENGTH = 500;

function readFailure(detail: unknown): TlsFailure {
  return {
    type: text(detail, 'result-type'),
    count: count(memberOf(detail, 'failed-session-count')),
    sendingIp: text(detail, 'sending-mta-ip'),
    receivingHost: text(detail, 'receiving-mx-hostname'),
    receivingIp: text(detail, 'receiving-ip'),
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

function text(value: unknown, name: string): string {
  return stringMember(value, name, MAX_TEXT_LENGTH);
}

/** In the RFC's examples one host is a string, in its schema a list. */
function texts(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list
    .filter((each) => typeof each === 'string')
    .slice(0, 50)
    .map((each) => each.slice(0, 255));
}

/** Some report generators quote their numbers. */
function count(value: unknown): number {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? number : 0;
}

function time(text: string): number {
  const at = Date.parse(text);
  return Number.isNaN(at) ? 0 : at;
}
