import { rootCertificates } from 'node:tls';
import { Counter, type Registry } from 'prom-client';
import { gaugesOf } from '../core/metrics.ts';
import { isForbidden, isPublic } from '../dns/address-kinds.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { GenerateKey } from '../domains/key-queue.ts';
import type { Context } from '../store/context.ts';
import type { DirectMail } from './direct-mail.ts';
import { createStsPolicies, type StsFetchFailure } from './mta-sts.ts';
import { configuredAuthorities, createTlsPolicies } from './tls-policies.ts';
import { createTlsReports } from './tls-reports.ts';
import type { HostPolicy, SessionRecord, TargetHost } from './worker/protocol.ts';

export type TlsSystem = ReturnType<typeof createTlsSystem>;

/**
 * TLS policies that others publish (MTA-STS, DANE), and the reports about them (RFC 8460). Throws an `OperatorFault` when
 * `delivery.tls.caFile` cannot be read.
 */
export function createTlsSystem(
  context: Omit<Context, 'expiry' | 'reader' | 'random' | 'ids'>,
  options: {
    resolver: Resolver;
    /** Sends reports. */
    mail: DirectMail;
    /** For the key that signs reports. */
    generateKey: GenerateKey;
    userAgent: string;
    /** How often due reports are searched, ms. */
    reportIntervalMs?: number;
  },
) {
  const { config, tables, registry } = context;
  const { resolver, mail, generateKey, userAgent, reportIntervalMs: intervalMs } = options;
  const { delivery } = config;
  const authorities = configuredAuthorities(config);
  const { observeSessions, observeFetch, observeReport } = registerTlsMetrics(
    registry,
    tables.stsPolicies.count,
  );
  const https = {
    resolver,
    mayConnect: (address: string) =>
      !isForbidden(address) && (delivery.allowPrivateNetworks || isPublic(address)),
    trusted: authorities.length > 0 ? [...rootCertificates, ...authorities] : undefined,
    userAgent,
  };
  const sts = createStsPolicies(context, { ...https, observe: observeFetch });
  const reports = createTlsReports(context, {
    ...https,
    mail,
    generateKey,
    observe: observeReport,
    intervalMs,
  });
  return {
    policies: createTlsPolicies(context, { resolver, sts }),
    reports: { count: reports.count },
    observeSessions,
    /** PEM certificates that are trusted in addition to the built-in ones. */
    authorities,
    start: (): void => {
      sts.start();
      reports.start();
    },
    stop: async (): Promise<void> => {
      await Promise.all([reports.stop(), sts.stop()]);
    },
  };
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
function registerTlsMetrics(registry: Registry, storedPolicies: () => number) {
  const registers = [registry];
  const sessions = new Counter({
    name: 'postrider_tls_sessions_total',
    help: 'New sessions with mail servers in which TLS was negotiated, refused or required, by the published policy that applied (dane, mta-sts, mta-sts-testing, none) and result (success, or the failure type of RFC 8460).',
    labelNames: ['policy', 'result'],
    registers,
  });
  const fetches = new Counter({
    name: 'postrider_mta_sts_fetches_total',
    help: 'Fetches of MTA-STS policies by result.',
    labelNames: ['result'],
    registers,
  });
  for (const result of FETCH_RESULTS) fetches.inc({ result }, 0);
  const reports = new Counter({
    name: 'postrider_tls_reports_total',
    help: 'TLS reports by result (sent, failed); a failed one is tried again for a day.',
    labelNames: ['result'],
    registers,
  });
  for (const result of ['sent', 'failed']) reports.inc({ result }, 0);
  gaugesOf(registry)(
    'postrider_mta_sts_policies',
    'Stored MTA-STS policies of recipient domains.',
    storedPolicies,
  );
  return {
    /** Counts the sessions of an attempt in which TLS was negotiated, refused or required. */
    observeSessions: (hosts: readonly TargetHost[], all: readonly SessionRecord[]): void => {
      for (const { host, tlsResult } of all) {
        if (tlsResult === undefined) continue;
        const policy = policyLabel(hosts.find(({ name }) => name === host)?.policy);
        sessions.inc({ policy, result: tlsResult.failure ?? 'success' });
      }
    },
    observeFetch: (result: 'fetched' | StsFetchFailure): void => fetches.inc({ result }),
    observeReport: (result: 'sent' | 'failed'): void => reports.inc({ result }),
  };
}

function policyLabel(policy: HostPolicy | undefined): string {
  if (policy === undefined) return 'none';
  if (policy.kind === 'dane') return 'dane';
  return policy.mode === 'testing' ? 'mta-sts-testing' : 'mta-sts';
}
