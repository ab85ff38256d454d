import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { DAY, iso, SECOND } from '../../core/clock.ts';
import type { Tables } from '../../store/tables.ts';
import type { TlsSessionRow, UnreportedDay } from '../../store/tls/tls-sessions.ts';
import type { PublishedPolicy } from './counting.ts';

/** One TLS report: the sessions of one day with the hosts of one domain (RFC 8460 §4). */
export interface OutgoingTlsReport {
  id: string;
  domain: string;
  /** Name without folder: `submitter!domain!begin!end!id.json.gz` (§5.1). */
  fileName: string;
  /** The JSON document, gzipped (§5.2). */
  gzipped: Buffer;
}

export interface Submitter {
  /** The host name of this server. */
  domain: string;
  organization: string;
  contact: string;
}

const compress = promisify(gzip);

/** Reads and composes the report; null: there is nothing to report. */
export async function composeReport(
  tables: Pick<Tables, 'tlsSessions'>,
  { day, domain }: UnreportedDay,
  submitter: Submitter,
): Promise<OutgoingTlsReport | null> {
  const rows = tables.tlsSessions.ofDay({ day, domain });
  if (rows.length === 0) return null;
  const begin = day * DAY;
  const end = begin + DAY - SECOND;
  // Equal for each delivery of the same report, so that receivers recognize a repeated one.
  const id = `${iso(begin).slice(0, 10)}.${domain}@${submitter.domain}`;
  const report = {
    'organization-name': submitter.organization,
    'date-range': { 'start-datetime': seconds(begin), 'end-datetime': seconds(end) },
    'contact-info': submitter.contact,
    'report-id': id,
    policies: rows.map((row) => policyOf(tables, row)),
  };
  const name = [submitter.domain, domain, begin / SECOND, end / SECOND, day].join('!');
  return {
    id,
    domain,
    fileName: `${name}.json.gz`,
    gzipped: await compress(Buffer.from(JSON.stringify(report))),
  };
}

/** RFC 3339 without fractions of a second. */
function seconds(epochMs: number): string {
  return iso(epochMs).replace('.000Z', 'Z');
}

function policyOf({ tlsSessions }: Pick<Tables, 'tlsSessions'>, row: TlsSessionRow) {
  const { lines, mx }: PublishedPolicy = JSON.parse(row.policy);
  const failures = tlsSessions.failures(row.seq).map((failure) =>
    withoutBlanks({
      'result-type': failure.type,
      'sending-mta-ip': failure.source_ip,
      'receiving-mx-hostname': failure.receiving_host,
      'receiving-ip': failure.receiving_ip,
      'failed-session-count': failure.sessions,
      'failure-reason-code': failure.reason,
    }),
  );
  return {
    policy: {
      'policy-type': row.policy_type,
      ...(lines.length > 0 ? { 'policy-string': lines } : {}),
      'policy-domain': row.policy_domain,
      ...(mx.length > 0 ? { 'mx-host': mx } : {}),
    },
    summary: {
      'total-successful-session-count': row.successful,
      'total-failure-session-count': row.failed,
    },
    ...(failures.length > 0 ? { 'failure-details': failures } : {}),
  };
}

function withoutBlanks(fields: Record<string, string | number>): Record<string, string | number> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
}
