import { rootCertificates } from 'node:tls';
import type { Registry } from 'prom-client';
import type { Config } from '../../config/schema.ts';
import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { Seal } from '../../core/seal.ts';
import { isForbidden, isPublic } from '../../dns/address-kinds.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { GenerateKey } from '../../domains/key-queue.ts';
import { reportSigner } from '../../domains/platform/report-key.ts';
import type { DkimSigner } from '../../mail/dkim.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { Tables } from '../../store/tables.ts';
import type { DirectMail } from '../direct-mail.ts';
import { createTlsCounting, type TlsCounting } from '../tls-reports/counting.ts';
import { createReportSender } from '../tls-reports/sender.ts';
import { createReportTargets } from '../tls-reports/targets.ts';
import { configuredAuthorities } from './authorities.ts';
import { createTlsPolicies, type TlsPolicies } from './host-policies.ts';
import { registerTlsMetrics, type TlsMetrics } from './metrics.ts';
import { createStsFetcher } from './sts-fetch.ts';
import { createStsPolicies } from './sts-policies.ts';

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
