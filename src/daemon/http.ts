import { fileURLToPath } from 'node:url';
import { Counter, collectDefaultMetrics, type Registry } from 'prom-client';
import type { Accounts } from '../accounts/accounts.ts';
import type { AccountLimits } from '../accounts/limits.ts';
import type { Audience } from '../audience/service.ts';
import { formatListen, isAnyAddress, type ListenAddress } from '../config/setting-types.ts';
import { programVersion } from '../config/version.ts';
import { builtProgram } from '../core/built-program.ts';
import { SECOND } from '../core/clock.ts';
import { measureEventLoopDelay } from '../core/event-loop-delay.ts';
import type { Log } from '../core/log.ts';
import { isPortInUse } from '../core/operator-fault.ts';
import { registerDeliveryGauges } from '../delivery/metrics.ts';
import { createDescribeCopy } from '../delivery/prepare.ts';
import type { Resolver } from '../dns/resolver.ts';
import { firstValues } from '../doctor/daemon-report.ts';
import { installationAttention } from '../doctor/installation-attention.ts';
import { thisMachine } from '../doctor/machine.ts';
import { createDoctor } from '../doctor/service.ts';
import type { Domains } from '../domains/service.ts';
import { apiRoutes } from '../http/api/routes.ts';
import { tlsCheckRoute } from '../http/api/tls-check.ts';
import { compatProviders } from '../http/compat/compat.ts';
import { type ConsoleServices, createConsole, type Console as WebConsole } from '../http/console/console.ts';
import { createProbe, instanceRoute, readiness, readinessChecks, registerReadiness } from '../http/health.ts';
import { createOperatorSocket } from '../http/operator-socket.ts';
import { pageKeysOf } from '../http/page-keys.ts';
import { createHttpServer } from '../http/server.ts';
import type { Inbound } from '../inbound/inbound.ts';
import { createQueuedMail } from '../sending/queued-mail.ts';
import { registerListenerCertificates } from '../smtp/certificate.ts';
import type { SmtpListener } from '../smtp/listener.ts';
import { createRawMail } from '../smtp/submission/raw-mail.ts';
import { createLinkChecks } from '../templates/checks/link-checks.ts';
import { createSpamFilters } from '../templates/checks/spam-filters.ts';
import type { DaemonBackups } from './backups.ts';
import { GRACE_MS, logListener } from './context.ts';
import type { DaemonDelivery } from './delivery.ts';
import type { DaemonEvents } from './events.ts';
import type { DaemonPublicPages } from './public-pages.ts';
import type { DaemonAuthentication } from './receiving.ts';
import type { DaemonSending } from './sending.ts';
import type { DaemonBase } from './storage.ts';

/** For requests of the console, which people can repeat. */
const CONSOLE_GRACE_MS = 5 * SECOND;

/** Registers the metrics of the process, the queue and the certificates. */
export function registerMetrics(base: DaemonBase, { delivery, holds }: DaemonDelivery): void {
  const { config, env, registry, setOnSchedule, onStop } = base;
  registerLogCounter(registry, env.droppedLogRecords ?? (() => 0));
  collectDefaultMetrics({ register: registry });
  onStop(measureEventLoopDelay(registry));
  registerDeliveryGauges(registry, delivery, holds);
  setOnSchedule(delivery.waits.keysInWarmup);
  registerListenerCertificates(registry, config);
}

function registerLogCounter(registry: Registry, dropped: () => number): void {
  const counter = new Counter({
    name: 'postrider_log_records_dropped_total',
    help: 'Log records that were dropped because standard output was not read, or its disk was full.',
    registers: [],
    collect() {
      this.reset();
      this.inc(dropped());
    },
  });
  registry.registerMetric(counter);
}

/** The parts of the daemon that the API shows and changes. */
interface HttpParts
  extends DaemonEvents,
    DaemonPublicPages,
    DaemonDelivery,
    DaemonSending,
    DaemonAuthentication {
  resolver: Resolver;
  limits: AccountLimits;
  backups: DaemonBackups;
  accounts: Accounts;
  domains: Domains;
  audience: Audience;
  inbound: Inbound;
  mx: SmtpListener | null;
  submission: SmtpListener | null;
}

/** Starts the API, the operator socket and the console. */
export async function startHttp(base: DaemonBase, parts: HttpParts) {
  const { config, clock, monotonic, random, log, ids, registry } = base;
  const { tables, reader, writer, generation, instanceId, tokens, onStop } = base;
  const { delivery, publicPages, linkHosts, limits, backups } = parts;
  const databaseProbe = createProbe({
    name: 'database',
    log,
    run: () => writer.run((tx) => tx.settings.put('ready-check', String(clock.now()))),
  });
  await databaseProbe.start();
  onStop(() => databaseProbe.stop());
  const checks = readinessChecks({
    database: databaseProbe,
    pressure: parts.pressure,
    waits: delivery.waits,
    holds: parts.holds,
    public: publicPages,
    mx: parts.mx,
    submission: parts.submission,
    held: backups.held.counts,
    backups: backups.schedule,
  });
  registerReadiness(registry, checks, log);
  const doctor = createDoctor({
    config,
    clock,
    monotonic,
    random,
    resolver: parts.resolver,
    database: { kind: 'open', tables, reader },
    daemon: async () => ({
      kind: 'running',
      pid: process.pid,
      report: {
        checks: await readiness(checks, true, log),
        metrics: firstValues(await registry.metrics()),
      },
    }),
    machine: thisMachine(config.file),
  });
  const publicUrl = publicPages.url();
  const linkChecks = createLinkChecks({
    resolver: parts.resolver,
    monotonic,
    userAgent: `Postrider/${programVersion()} (link check)`,
    isOwnHost: (host) => linkHosts.statusOf(host) !== null,
  });
  onStop(() => linkChecks.close());
  const spamFilters = createSpamFilters({
    ...base,
    resolver: parts.resolver,
    userAgent: `Postrider/${programVersion()}`,
  });
  onStop(() => spamFilters.close());
  const rawMail = createRawMail(log);
  onStop(() => rawMail.stop());
  const routes = apiRoutes(base, {
    ...parts,
    rawMail,
    doctor,
    linkChecks,
    spamFilters,
    backups: backups.schedule,
    storageRefusal: parts.pressure.storageRefusal,
    firstOutcome: delivery.firstOutcome,
    publicUrl,
    describeCopy: createDescribeCopy({ config, tokens, publicUrl }),
  });
  const concurrencyOf = (accountId: string) => limits.of(accountId).concurrentRequests;
  const pageKeys = pageKeysOf(base.seal);
  const http = createHttpServer({
    config,
    log,
    ids,
    authenticator: parts.authenticator,
    rateLimits: parts.rateLimits,
    concurrencyOf,
    durable: writer.durable,
    pageKeys,
    routes,
    compat: compatProviders(base, {
      ...parts,
      rawMail,
      queuedMail: createQueuedMail(base, {
        recorder: parts.recorder,
        announce: delivery.announce,
        obstacle: delivery.waits.obstacle,
      }),
    }),
    openRoutes: [tlsCheckRoute(base, { linkHosts }), instanceRoute({ instanceId, generation })],
    health: checks,
    registry,
    version: programVersion(),
  });
  await http.listen();
  onStop(() => http.close(GRACE_MS));
  const bound = http.address();
  if (bound === null) throw new Error('the API listener has no address');
  const socket = createOperatorSocket(base, { routes });
  await socket.listen();
  onStop(() => socket.close(SECOND));
  const webConsole = await startConsole(base, bound, {
    resolver: parts.resolver,
    webhooks: parts.webhooks,
    mediaFiles: parts.mediaFiles,
    routes,
    document: http.document,
    concurrencyOf,
    installationAttention: () =>
      installationAttention({ config, clock, tables, reader }, { backups: backups.schedule, delivery }),
  });
  // Added last, so that it runs before the listeners close, which would otherwise wait for a run of the checks.
  onStop(() => doctor.stop());
  logListener(log, 'api', http.address());
  return {
    /** Base URL of the API. */
    apiUrl: `http://${formatListen(bound)}`,
    /** Base URL of the console; null: it is off, or its port is in use. */
    consoleUrl: webConsole === null ? null : webConsole.url(),
    databaseProbe,
    checks,
  };
}

/**
 * Starts the console; null: it is off, or its port is in use. Mail does not wait for the console, which is on by default:
 * after an upgrade another program may have its port. `bound`: the address of the API.
 */
async function startConsole(
  base: DaemonBase,
  bound: ListenAddress,
  services: Omit<ConsoleServices, 'directory' | 'apiUrl'>,
): Promise<WebConsole | null> {
  const { config, log, onStop } = base;
  if (config.console.listen === 'off') return null;
  const webConsole = createConsole(base, {
    ...services,
    directory: fileURLToPath(new URL('console/', builtProgram('main'))),
    apiUrl: `http://${formatListen(isAnyAddress(bound) ? { ...bound, host: config.hostname } : bound)}`,
  });
  if (!(await isBound(webConsole, log))) return null;
  onStop(() => webConsole.close(CONSOLE_GRACE_MS));
  logListener(log, 'console', webConsole.address());
  return webConsole;
}

async function isBound(webConsole: WebConsole, log: Log): Promise<boolean> {
  try {
    await webConsole.listen();
    return true;
  } catch (error) {
    if (!isPortInUse(error)) throw error;
    log.error({ err: error }, 'the console is not available');
    return false;
  }
}
