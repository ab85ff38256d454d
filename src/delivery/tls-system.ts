import { rootCertificates } from 'node:tls';
import { Counter, type Registry } from 'prom-client';
import type { Config } from '../config/schema.ts';
import type { Clock } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { gaugesOf } from '../core/metrics.ts';
import type { Seal } from '../core/seal.ts';
import { isForbidden, isPublic } from '../dns/address-kinds.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { GenerateKey } from '../domains/key-queue.ts';
import { reportSigner } from '../domains/platform/report-key.ts';
import type { DkimSigner } from '../mail/dkim.ts';
import type { Writer } from '../store/database/writer.ts';
import type { Tables } from '../store/tables.ts';
import type { DirectMail } from './direct-mail.ts';
import { createStsFetcher, createStsPolicies, type StsPoliciesDeps } from './mta-sts.ts';
import { configuredAuthorities, createTlsPolicies, type TlsPolicies } from './tls-policies.ts';
import {
  createReportSender,
  createReportTargets,
  createTlsCounting,
  type TlsCounting,
} from './tls-reports.ts';
import type { HostPolicy, SessionRecord, TargetHost } from './worker/protocol.ts';

/** TLS policies that others publish (MTA-STS, DANE), and the reports about them (RFC 8460). */
export interface TlsSystem {
  policies: TlsPolicies;
  counting: Pick<TlsCounting, 'count'>;
  observeSessions: TlsMetrics['observeSessions'];
  /** PEM certificates that are trusted in addition to the built-in ones. */
  authorities: readonly string[];
  start(): void;
  stop(): Promise<void>;
}

export interface TlsSystemDeps {
  config: Config;
  clock: Clock;
  monotonic: Clock;
  log: Log;
  resolver: Resolver;
  tables: Tables;
  writer: Writer;
  registry: Registry;
  seal: Seal;
  /** Sends reports. */
  mail: DirectMail;
  /** For the key that signs reports. */
  generateKey: GenerateKey;
  userAgent: string;
  /** Port of the hosts of policies. Default: 443. */
  policyPort?: number;
  /** How often due reports are searched, ms. */
  reportIntervalMs?: number;
}

/** Throws an `OperatorFault` when `delivery.tls.caFile` cannot be read. */
export function createTlsSystem(deps: TlsSystemDeps): TlsSystem {
  const { config, clock, log, resolver, tables, writer, userAgent } = deps;
  const { delivery, tlsReports, hostname } = config;
  const authorities = configuredAuthorities(config);
  const metrics = registerTlsMetrics(deps.registry, tables.stsPolicies.count);
  const https = {
    resolver,
    mayConnect: (address: string) =>
      !isForbidden(address) && (delivery.allowPrivateNetworks || isPublic(address)),
    trusted: authorities.length > 0 ? [...rootCertificates, ...authorities] : undefined,
    userAgent,
  };
  const sts = createStsPolicies({
    clock,
    monotonic: deps.monotonic,
    log,
    resolver,
    tables,
    writer,
    fetcher: createStsFetcher({
      ...https,
      ...(deps.policyPort === undefined ? {} : { port: deps.policyPort }),
    }),
    observe: metrics.observeFetch,
  });
  const counting = createTlsCounting({
    clock,
    monotonic: deps.monotonic,
    log,
    resolver,
    get isOn() {
      return tlsReports.send;
    },
  });
  const submitter = {
    domain: hostname,
    get organization() {
      return tlsReports.organization ?? hostname;
    },
    get contact() {
      return tlsReports.contact ?? `postmaster@${hostname}`;
    },
  };
  const stopping = new AbortController();
  let signer: Promise<DkimSigner> | null = null;
  const openSigner = () => {
    signer ??= reportSigner({ ...deps, hostname, signal: stopping.signal }).catch((error: unknown) => {
      signer = null;
      throw error;
    });
    return signer;
  };
  const targets = createReportTargets({
    ...https,
    clock,
    mail: deps.mail,
    submitter,
    signer: openSigner,
  });
  const sender = createReportSender({
    clock,
    log,
    tables,
    writer,
    counting,
    get isOn() {
      return tlsReports.send;
    },
    submitter,
    deliver: targets.deliver,
    observe: metrics.observeReport,
    ...(deps.reportIntervalMs === undefined ? {} : { intervalMs: deps.reportIntervalMs }),
  });
  return {
    policies: createTlsPolicies({
      resolver,
      sts,
      get mtaSts() {
        return delivery.tls.mtaSts;
      },
      get dane() {
        return delivery.tls.dane;
      },
      get port() {
        return delivery.port;
      },
    }),
    counting,
    observeSessions: metrics.observeSessions,
    authorities,
    start: () => {
      sts.start();
      sender.start();
      if (!tlsReports.send) return;
      // The operator publishes the record of the key before the first report.
      openSigner().catch((error: unknown) => {
        if (error !== stopping.signal.reason)
          log.error({ err: error }, 'key of TLS reports could not be created');
      });
    },
    stop: async () => {
      stopping.abort();
      await targets.close();
      await Promise.all([sender.stop(), sts.stop()]);
    },
  };
}

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
