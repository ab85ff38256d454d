import { Counter, type Registry } from 'prom-client';
import { gaugesOf } from '../../core/metrics.ts';
import type { HostPolicy, SessionRecord, TargetHost } from '../worker/protocol.ts';
import type { StsPoliciesDeps } from './sts-policies.ts';

/** What the daemon counts about TLS policies. */
export interface TlsMetrics {
  /** Counts the sessions of an attempt in which TLS was negotiated, refused or required. */
  observeSessions(hosts: readonly TargetHost[], sessions: readonly SessionRecord[]): void;
  observeFetch: NonNullable<StsPoliciesDeps['observe']>;
  observeReport(result: 'sent' | 'failed'): void;
}

const FETCH_RESULTS = [
  'fetched',
  'sts-policy-fetch-error',
  'sts-policy-invalid',
  'sts-webpki-invalid',
] as const;

/**
 * Registers three counters and one gauge, `postrider_mta_sts_policies`, whose value `storedPolicies` returns at each
 * scrape. Results of fetches and reports have their series from the start.
 */
export function registerTlsMetrics(registry: Registry, storedPolicies: () => number): TlsMetrics {
  const sessions = new Counter({
    name: 'postrider_tls_sessions_total',
    help: 'New sessions with mail servers in which TLS was negotiated, refused or required, by the published policy that applied (dane, mta-sts, mta-sts-testing, none) and result (success, or the failure type of RFC 8460).',
    labelNames: ['policy', 'result'],
    registers: [registry],
  });
  const fetches = new Counter({
    name: 'postrider_mta_sts_fetches_total',
    help: 'Fetches of MTA-STS policies by result.',
    labelNames: ['result'],
    registers: [registry],
  });
  for (const result of FETCH_RESULTS) fetches.inc({ result }, 0);
  const reports = new Counter({
    name: 'postrider_tls_reports_total',
    help: 'TLS reports by result (sent, failed); a failed one is tried again for a day.',
    labelNames: ['result'],
    registers: [registry],
  });
  for (const result of ['sent', 'failed']) reports.inc({ result }, 0);
  gaugesOf(registry)(
    'postrider_mta_sts_policies',
    'Stored MTA-STS policies of recipient domains.',
    storedPolicies,
  );
  return {
    observeSessions: (hosts, all) => {
      for (const { host, tlsResult } of all) {
        if (tlsResult === undefined) continue;
        const policy = policyLabel(hosts.find(({ name }) => name === host)?.policy);
        sessions.inc({ policy, result: tlsResult.failure ?? 'success' });
      }
    },
    observeFetch: (result) => fetches.inc({ result }),
    observeReport: (result) => reports.inc({ result }),
  };
}

function policyLabel(policy: HostPolicy | undefined): string {
  if (policy === undefined) return 'none';
  if (policy.kind === 'dane') return 'dane';
  return policy.mode === 'testing' ? 'mta-sts-testing' : 'mta-sts';
}
