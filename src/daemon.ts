import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Worker } from 'node:worker_threads';
import { Counter, collectDefaultMetrics, Registry } from 'prom-client';
import { type Accounts, createAccounts } from './accounts/accounts.ts';
import { createAuthenticator } from './accounts/authenticate.ts';
import { createKeyUses } from './accounts/key-uses.ts';
import { createAccountLimits } from './accounts/limits.ts';
import { createFailureLimits, createRateLimits } from './accounts/rate-limits.ts';
import { createBackgroundImports } from './audience/import/background.ts';
import { CONTACT_SEARCH_STEP } from './audience/search-fill.ts';
import { createAudience } from './audience/service.ts';
import { createStatusFollower } from './audience/standing.ts';
import { createHeldExpiry } from './backup/held.ts';
import { createBackupSchedule } from './backup/schedule.ts';
import { createStandby } from './backup/standby.ts';
import { createCampaignSystem } from './campaigns/system.ts';
import { createCertificates } from './certificates/service.ts';
import type { ConfigChanges } from './config/reload.ts';
import type { Config } from './config/schema.ts';
import { formatListen, isAnyAddress, type ListenAddress } from './config/setting-types.ts';
import { programVersion } from './config/version.ts';
import { type Clock, HOUR, monotonicClock, SECOND } from './core/clock.ts';
import { measureEventLoopDelay } from './core/event-loop-delay.ts';
import { createIds } from './core/ids.ts';
import { type AddressHasher, LOG_KEY_PURPOSE, type Log } from './core/log.ts';
import { gaugesOf } from './core/metrics.ts';
import { isPortInUse } from './core/operator-fault.ts';
import type { Random } from './core/random.ts';
import { eventLoopTurns } from './core/slices.ts';
import { createDelivery } from './delivery/delivery.ts';
import { createHolds } from './delivery/holds.ts';
import { createRelayProbe } from './delivery/lanes/relay-probe.ts';
import { registerDeliveryCounters, registerDeliveryGauges } from './delivery/metrics.ts';
import { createDescribeCopy, createPrepare } from './delivery/prepare.ts';
import { simulatorDomain } from './delivery/simulator.ts';
import { createTlsSystem } from './delivery/tls/system.ts';
import { createResolver, type Resolver } from './dns/resolver.ts';
import { parseMetrics } from './doctor/daemon-report.ts';
import { thisMachine } from './doctor/machine.ts';
import { createDoctor } from './doctor/service.ts';
import type { GenerateKey } from './domains/key-queue.ts';
import { registerKeySteps } from './domains/key-rotation/managed-keys.ts';
import { createPlatformNameServer } from './domains/name-server/service.ts';
import { createLinkHosts } from './domains/platform/link-hosts.ts';
import { createDomains, type Domains } from './domains/service.ts';
import { registerMessageCounters } from './events/message-metrics.ts';
import { createRecorder, dropQueued } from './events/record.ts';
import { createRetention } from './events/retention.ts';
import { registerRetentionMetrics } from './events/retention-metrics.ts';
import { apiRoutes } from './http/api/routes.ts';
import { tlsCheckRoute } from './http/api/tls-check.ts';
import { createConsole, type Console as WebConsole } from './http/console/console.ts';
import { createProbe, failedChecks, instanceRoute, readiness, readinessChecks } from './http/health.ts';
import { createOperatorSocket, OPERATOR_SOCKET } from './http/operator-socket.ts';
import { createPublicPages } from './http/public/public.ts';
import { createHttpServer } from './http/server.ts';
import { migrateAtStart } from './http/startup.ts';
import { generateDkimKey } from './mail/dkim.ts';
import { sentMailOf } from './mail/sent-mail.ts';
import { createTokens } from './mail/tokens.ts';
import { createReload, rateLimitsOf } from './reload.ts';
import { type Acceptance, createAcceptance } from './sending/accept.ts';
import { createIdempotencyKeys } from './sending/idempotency.ts';
import { sendingObstacle } from './sending/obstacle.ts';
import { createOneClickNotice } from './sending/one-click.ts';
import { createPressure } from './sending/pressure.ts';
import { createResend } from './sending/resend.ts';
import { registerListenerCertificates } from './smtp/certificate-metrics.ts';
import { createMx } from './smtp/mx/mx.ts';
import { createSubmission } from './smtp/submission/submission.ts';
import type { CopyPrograms } from './store/backup/copy.ts';
import { lockDaemon } from './store/database.ts';
import type { Superseded } from './store/failure.ts';
import { openSeal } from './store/master-key.ts';
import { NO_ACCOUNT } from './store/readers/reads.ts';
import { createStorage } from './store/storage.ts';
import type { Vitals } from './supervision/service.ts';
import { createUnsubscribing } from './suppression/unsubscribe.ts';
import { createTokenAccounts } from './transfer/token-accounts.ts';
import { createWebhookSystem } from './webhooks/system.ts';

/**
 * The composition root: the only file that knows all parts. `serve`, `demo` and the tests start a daemon here.
 * `DaemonEnv` has its dependencies: time, randomness, DNS, and the programs of its threads.
 */
export interface DaemonEnv {
  clock: Clock;
  /** Default: the process's own. */
  monotonic?: Clock;
  random: Random;
  log: Log;
  /** Hashes addresses in the log; receives its key from the daemon. */
  addresses?: AddressHasher;
  /** Default: our own resolver over `dns.resolvers`. */
  resolver?: Resolver;
  /** Generates DKIM keys; default: new RSA keys. */
  generateKey?: GenerateKey;
  /** The delivery worker's program; default: the compiled one. */
  workerScript?: URL;
  /** The program of the thread that flushes the write-ahead log; default: the compiled one. */
  flushScript?: URL;
  /** The program of the threads that read the database; default: the compiled one. */
  storeReaderScript?: URL;
  /** The program of the thread that clears unused space of the database; default: the compiled one. */
  slackScript?: URL;
  /** The program of the thread that migrates a large database; default: the compiled one. */
  migrationScript?: URL;
  /** The program of the process that checks the database for damage; default: the compiled one. */
  integrityScript?: URL;
  /** Starts a thread that parses received mail; default: of the compiled program. */
  startParserThread?: () => Worker;
  /** The programs of the threads of a backup; default: the compiled ones. */
  copyPrograms?: CopyPrograms;
  /** The directory with the files of the console; default: of the compiled program. */
  consoleDirectory?: string;
  /** Aborts a migration at the start. */
  startSignal?: AbortSignal;
  /** Whether this daemon takes over from daemons with copies of its database that were restored before. */
  takeOver?: boolean;
  /** Another daemon has taken over: must end the process without delay. Default: an uncaught exception. */
  onSuperseded?(error: Superseded): void;
}

export interface Daemon {
  /** Base URL of the API: `http://127.0.0.1:8080`. */
  apiUrl: string;
  /** Base URL of the public pages: `public.url`, or the bound address if the port is 0. */
  publicUrl: string;
  /** Base URL of the console; null: it is off. */
  consoleUrl: string | null;
  /** Port of the MX listener; null: it is off. */
  mxPort: number | null;
  /** For `demo`, which also performs the steps of an operator. */
  accounts: Accounts;
  domains: Domains;
  /** The state that the service manager shows and judges. */
  vitals(): Promise<Vitals>;
  /**
   * Applies the settings of `next` that a running daemon can change, all or none; returns which these were and which
   * need a restart. Rejects with an OperatorFault, and changes nothing, when a file that `next` names cannot be used.
   * Changes `config`.
   */
  reload(next: Config): Promise<ConfigChanges>;
  /**
   * Completes work in progress (30 s at most) and closes everything. Resolves with the number of delivery outcomes that
   * could not be recorded: those messages will be sent again.
   */
  stop(): Promise<number>;
}

const GRACE_MS = 30 * SECOND;
/** For requests of the console, which people can repeat. */
const CONSOLE_GRACE_MS = 5 * SECOND;

/** Starts a daemon. If that fails, everything already started is stopped. */
export async function startDaemon(config: Config, env: DaemonEnv): Promise<Daemon> {
  const { clock, random, log } = env;
  const undo: (() => Promise<void> | void)[] = [];
  let unrecorded = 0;
  const stop = async () => {
    for (const step of undo.splice(0).toReversed()) await step();
    return unrecorded;
  };
  try {
    const lock = lockDaemon(config.data.dir);
    undo.push(() => lock.release());
    const ids = createIds(clock, random);
    await migrateAtStart({
      dataDir: config.data.dir,
      listen: config.api.listen,
      ids,
      log,
      monotonic: env.monotonic ?? monotonicClock,
      script: env.migrationScript,
      signal: env.startSignal,
    });
    const registry = new Registry();
    const standby = createStandby({ peers: config.standby.peers, log });
    undo.push(() => standby.stop());
    const onSuperseded =
      env.onSuperseded ??
      ((error: Superseded) => {
        setImmediate(() => {
          throw error;
        });
      });
    const storage = await createStorage(
      {
        lock,
        log,
        registry,
        clock,
        onCounted: registerMessageCounters(registry),
        turn: eventLoopTurns.next,
        steps: [CONTACT_SEARCH_STEP],
        onSuperseded,
      },
      {
        minGeneration:
          env.takeOver === true ? Math.max(clock.now(), (await standby.highestGeneration()) + 1) : 0,
        dataDir: config.data.dir,
        readerThreads: config.readers.threads,
        get readBudgetMs() {
          return config.readers.budget;
        },
        readerScript: env.storeReaderScript ?? new URL('./reader.js', import.meta.url),
        logScript: env.flushScript,
      },
    );
    undo.push(() => storage.close());
    const { tables, reader, writer, generation, instanceId } = storage;
    // Before anything is sent.
    await standby.check({ instanceId, generation });
    standby.watch({ instanceId, generation }, onSuperseded);

    const limits = createAccountLimits({ tables, defaults: config.limits.account });
    const seal = await openSeal({
      file: config.data.masterKeyFile,
      random,
      tables,
      writer,
      credentialsDirectory: process.env['CREDENTIALS_DIRECTORY'],
    });
    env.addresses?.useKey(seal.derive(LOG_KEY_PURPOSE));
    const tokens = createTokens(seal, createTokenAccounts({ tables, seal }));
    const ownResolver = env.resolver === undefined ? createResolver({ ...config.dns, clock, random }) : null;
    const resolver = env.resolver ?? ownResolver;
    if (resolver === null) throw new Error('there is no resolver');
    undo.push(() => ownResolver?.close());

    const webhookCalls = new Counter({
      name: 'postrider_webhook_calls_total',
      help: 'Webhook calls by outcome.',
      labelNames: ['outcome'],
      registers: [registry],
    });
    const { webhooks, sender: webhookSender } = createWebhookSystem({
      clock,
      random,
      ids,
      log,
      tables,
      reader,
      writer,
      seal,
      resolver,
      allowPrivateNetworks: () => config.webhooks.allowPrivateNetworks,
      userAgent: `Postrider/${programVersion()}`,
      mayAdd: limits.mayAdd.webhooks,
      observe: (outcome) => webhookCalls.inc({ outcome }),
    });
    undo.push(() => webhookSender.stop());
    const onSuppressionChange = createStatusFollower(clock);
    const recorder = createRecorder({
      clock,
      ids,
      onSuppressionChange,
      onWebhookDue: webhookSender.due,
    });

    const held = createHeldExpiry({ clock, tables, writer, recorder, log });
    const gauge = gaugesOf(registry);
    gauge(
      'postrider_restore_held_messages',
      'Messages held since a restore, counted up to 100,000.',
      () => held.counts().messages,
    );
    gauge(
      'postrider_restore_held_webhook_deliveries',
      'Webhook deliveries held since a restore, counted up to 100,000.',
      () => held.counts().webhookDeliveries,
    );
    const backups =
      config.backup.schedule === undefined
        ? null
        : createBackupSchedule({
            config,
            schedule: config.backup.schedule,
            clock,
            log,
            tables,
            writer,
            registry,
            instanceId,
            programs: env.copyPrograms,
          });
    const accounts = createAccounts({ tables, writer, clock, ids });
    const domains = createDomains({
      config,
      tables,
      writer,
      clock,
      ids,
      log,
      seal,
      resolver,
      recordDomainEvent: (all, { domain, kind, data }) => recorder.domain(all, domain, kind, data),
      mayAdd: limits.mayAdd.domains,
      dropQueued: (all, domainId) => void dropQueued(recorder, all, domainId),
      generateKey: env.generateKey,
      onKeyStep: registerKeySteps(registry),
      probeSecondary: createRelayProbe({
        config,
        resolver,
        clock,
        monotonic: env.monotonic ?? monotonicClock,
      }),
    });
    const nameServer =
      config.dns.server.listen === 'off'
        ? null
        : createPlatformNameServer({ config, tables, writer, resolver, clock, random, log, registry });
    if (nameServer !== null) {
      undo.push(() => nameServer.close());
      await nameServer.listen();
      for (const address of nameServer.addresses()) logListener(log, 'dns', address);
    }

    const audience = createAudience({
      tables,
      reader,
      writer,
      clock,
      ids,
      log,
      recorder,
      mayAdd: limits.mayAdd.contacts,
      responsesKeptMs: config.limits.idempotencyHours * HOUR,
      erasureWaitMs: 5 * SECOND,
      slackScript: env.slackScript ?? new URL('./store/maintenance/slack-thread.js', import.meta.url),
    });
    audience.background.start();
    undo.push(() => audience.background.stop());

    const linkHosts = createLinkHosts({ config, tables, resolver, clock });
    const orders = new Counter({
      name: 'postrider_certificate_orders_total',
      help: 'Certificate orders by outcome.',
      labelNames: ['outcome'],
      registers: [registry],
    });
    const certificates =
      config.public.tls.listen === 'off'
        ? null
        : createCertificates({
            config: config.public.tls,
            tables,
            writer,
            clock,
            seal,
            log,
            resolver,
            userAgent: `Postrider/${programVersion()}`,
            ownHost: linkHosts.publicHost,
            isOurs: (host) => linkHosts.standingOf(host) !== null,
            leadsHere: (host, kind) => linkHosts.leadsHere(host, kind === 'renewal'),
            observe: (outcome) => orders.inc({ outcome }),
          });
    if (certificates !== null) undo.push(() => certificates.stop());
    // Runs before the step above, which would otherwise wait for DNS lookups.
    undo.push(() => linkHosts.close());

    const unsubscribing = createUnsubscribing({ clock, recorder, onSuppressionChange });
    // The send path is created later: until then, forms are not accepted.
    let acceptConfirmation: Acceptance['accept'] | null = null;
    const publicPages = createPublicPages({
      audience,
      accept: () => acceptConfirmation,
      config,
      clock,
      log,
      registry,
      tables,
      writer,
      recorder,
      tokens,
      unsubscribing,
      onSuppressionChange,
      isCustomerHost: (host) => linkHosts.standingOf(host) === 'proven',
      certificates,
    });
    // Before the first delivery: links in messages must work.
    await publicPages.listen();
    undo.push(() => publicPages.close(GRACE_MS));
    logListener(log, 'public', publicPages.address());
    logListener(log, 'public.tls', publicPages.secureAddress());
    certificates?.start();

    const mailIn = new Counter({
      name: 'postrider_mail_in_total',
      help: 'Received mail by purpose and result.',
      labelNames: ['purpose', 'result'],
      registers: [registry],
    });
    const tls = createTlsSystem({
      config,
      clock,
      monotonic: env.monotonic ?? monotonicClock,
      random,
      log,
      resolver,
      tables,
      writer,
      registry,
      seal,
      generateKey: env.generateKey ?? generateDkimKey,
      userAgent: `Postrider/${programVersion()}`,
    });
    undo.push(() => tls.stop());
    let delivered = 0;
    const counters = registerDeliveryCounters(registry);
    const delivery = createDelivery({
      config,
      clock,
      monotonic: env.monotonic ?? monotonicClock,
      random,
      log,
      tables,
      writer,
      recorder,
      resolver,
      prepare: createPrepare({ config, tokens, publicUrl: publicPages.url() }),
      signersOf: (domain, lane) => domains.signingKeys(domain.domain_id, lane),
      sendingObstacle,
      generation,
      observe: (status) => {
        counters.observe(status);
        if (status === 'delivered') delivered++;
      },
      observeAttempt: counters.observeAttempt,
      tls,
      observeFailover: counters.observeFailover,
      workerScript: env.workerScript ?? new URL('./delivery/worker/main.js', import.meta.url),
    });
    undo.push(async () => {
      unrecorded = await delivery.stop();
    });

    const holds = createHolds({
      clock,
      log,
      tables,
      writer,
      countHeld: () => reader.table(NO_ACCOUNT, 'queue', 'countHeld'),
      announce: delivery.announce,
    });
    undo.push(() => holds.stop());

    const pressure = createPressure({
      tables,
      log,
      dir: config.data.dir,
      unrecorded: delivery.unrecorded,
      get queuedMessages() {
        return config.limits.queuedMessages;
      },
      get freeDiskBytes() {
        return config.limits.freeDiskBytes;
      },
    });
    await pressure.start();
    undo.push(() => pressure.stop());
    const backgroundImports = createBackgroundImports({
      tables,
      writer,
      importer: audience.importer,
      clock,
      ids,
      log,
      dataDir: config.data.dir,
      isDiskLow: pressure.isDiskLow,
    });
    backgroundImports.start();
    undo.push(() => backgroundImports.stop());
    const intoQueue = {
      clock,
      ids,
      tables,
      writer,
      recorder,
      pressure,
      limits,
      simulatorDomain: simulatorDomain(config.hostname),
      expire: {
        get tx() {
          return config.delivery.retry.expireTransactional;
        },
        get mk() {
          return config.delivery.retry.expireMarketing;
        },
      },
      announce: delivery.announce,
    };
    const oneClick = createOneClickNotice({ publicUrl: publicPages.url(), log });
    const idempotencyKeys = createIdempotencyKeys({
      tables,
      now: clock.now,
      lifetimeMs: config.limits.idempotencyHours * HOUR,
    });
    const acceptance = createAcceptance({
      ...intoQueue,
      publicUrl: publicPages.url(),
      oneClick,
      take: delivery.takeNew,
      keys: idempotencyKeys,
    });
    acceptConfirmation = acceptance.accept;
    const campaignSystem = createCampaignSystem({ ...intoQueue, reader, log, publicUrl: publicPages.url() });
    undo.push(() => campaignSystem.runner.stop());

    const threads = env.startParserThread === undefined ? {} : { startParserThread: env.startParserThread };
    const mx =
      config.mx.listen === 'off'
        ? null
        : await createMx({
            config,
            clock,
            log,
            tables,
            writer,
            recorder,
            tokens,
            resolver,
            isDiskLow: pressure.isDiskLow,
            observe: (purpose, result) => mailIn.inc({ purpose, result }),
            ...threads,
            optOut: (all, message) => {
              const source = { method: 'mailto', ip: null, userAgent: null } as const;
              unsubscribing.optOut(all, sentMailOf(message), 'list', source);
            },
          });
    if (mx !== null) undo.push(() => mx.close(GRACE_MS));

    collectDefaultMetrics({ register: registry });
    undo.push(measureEventLoopDelay(registry));
    registerDeliveryGauges(registry, delivery, holds);
    storage.setOnSchedule(delivery.waitingForWarmup);
    registerListenerCertificates(registry, config);
    const keyUses = createKeyUses({ writer, clock, log });
    keyUses.start();
    undo.push(() => keyUses.stop());
    const authenticator = createAuthenticator({
      tables,
      failures: createFailureLimits(clock),
      onUse: keyUses.note,
    });
    const rateLimits = createRateLimits(clock, rateLimitsOf(config.limits));
    const submission =
      config.submission.listen === 'off'
        ? null
        : await createSubmission({
            config,
            clock,
            log,
            authenticator,
            rateLimits,
            acceptance,
            account: tables.accounts.get,
            ...threads,
          });
    if (submission !== null) undo.push(() => submission.close(GRACE_MS));
    const databaseProbe = createProbe({
      name: 'database',
      log,
      run: () => writer.run((all) => all.settings.put('ready-check', String(clock.now()))),
    });
    await databaseProbe.start();
    undo.push(() => databaseProbe.stop());
    const checks = readinessChecks({
      database: databaseProbe,
      pressure,
      delivery,
      holds,
      public: publicPages,
      mx,
      submission,
      held: held.counts,
      backups,
    });
    const doctor = createDoctor({
      config,
      clock,
      monotonic: env.monotonic ?? monotonicClock,
      random,
      resolver,
      database: { kind: 'open', tables, reader },
      daemon: async () => ({
        kind: 'running',
        pid: process.pid,
        report: {
          checks: await readiness(checks, true, log),
          metrics: parseMetrics(await registry.metrics()),
        },
      }),
      machine: thisMachine,
      integrityScript: env.integrityScript,
    });
    const routes = apiRoutes({
      config,
      backups,
      log,
      monotonic: env.monotonic ?? monotonicClock,
      clock,
      ids,
      tables,
      reader,
      writer,
      recorder,
      limits,
      accounts,
      domains,
      doctor,
      audience,
      backgroundImports,
      webhooks,
      acceptance,
      resend: createResend({ ...intoQueue, reader, keys: idempotencyKeys }),
      oneClick,
      publicUrl: publicPages.url(),
      describeCopy: createDescribeCopy({ tokens, publicUrl: publicPages.url() }),
      campaignSystem,
      delivery,
      onSuppressionChange,
    });
    const http = createHttpServer({
      config,
      log,
      ids,
      authenticator,
      rateLimits,
      concurrencyOf: (accountId) => limits.of(accountId).concurrentRequests,
      settled: writer.settled,
      routes,
      openRoutes: [tlsCheckRoute({ clock, linkHosts }), instanceRoute({ instanceId, generation })],
      health: checks,
      registry,
      version: programVersion(),
    });
    await http.listen();
    undo.push(() => http.close(GRACE_MS));
    const bound = http.address();
    if (bound === null) throw new Error('the API listener has no address');
    const apiUrl = `http://${formatListen(bound)}`;
    const socket = createOperatorSocket({
      path: join(config.data.dir, OPERATOR_SOCKET),
      log,
      ids,
      routes,
      settled: writer.settled,
    });
    await socket.listen();
    undo.push(() => socket.close(SECOND));
    const webConsole =
      config.console.listen === 'off'
        ? null
        : createConsole({
            config,
            log,
            clock,
            ids,
            tables,
            reader,
            writer,
            random,
            seal,
            routes,
            document: http.document,
            concurrencyOf: (accountId) => limits.of(accountId).concurrentRequests,
            directory: env.consoleDirectory ?? fileURLToPath(new URL('./console/', import.meta.url)),
            version: programVersion(),
            apiUrl: isAnyAddress(bound)
              ? `http://${formatListen({ ...bound, host: config.hostname })}`
              : apiUrl,
          });
    const isConsoleUp = webConsole !== null && (await startConsole(webConsole, log));
    if (isConsoleUp) {
      undo.push(() => webConsole.close(CONSOLE_GRACE_MS));
      logListener(log, 'console', webConsole.address());
    }
    // Runs before the steps above, which would otherwise wait for a run of the checks.
    undo.push(() => doctor.stop());
    logListener(log, 'api', http.address());
    await mx?.listen();
    logListener(log, 'mx', mx?.address());
    await submission?.listen();
    logListener(log, 'submission', submission?.address());

    const retention = createRetention({
      clock,
      log,
      tables,
      writer,
      get bodyDays() {
        return config.limits.bodyDays;
      },
      get eventDays() {
        return config.limits.eventDays;
      },
      mayShrink: () => !audience.erasure.isClearingFile(),
      onPortion: registerRetentionMetrics(registry, () => retention.progress(), tables.freeSpace.pages),
    });
    retention.start();
    undo.push(() => retention.stop());
    held.start();
    undo.push(() => held.stop());
    if (backups !== null) {
      backups.start();
      undo.push(() => backups.stop());
    }
    domains.jobs.start();
    undo.push(() => domains.jobs.stop());
    tls.start();
    delivery.start();
    holds.start();
    campaignSystem.runner.start();
    webhookSender.start();

    log.info(
      { apiUrl, dataDir: config.data.dir, generation, queued: tables.queue.count() },
      'postrider started',
    );
    const mxPort = mx?.address()?.port ?? null;
    const vitals = async () => ({
      queued: pressure.queued(),
      delivered,
      faults: await failedChecks(checks, log),
      pending: [
        { work: 'a write to the database', ms: databaseProbe.pendingMs() },
        { work: 'the scan of the queue', ms: delivery.unscannedMs() },
      ],
    });
    const reload = createReload({ config, log, resolver: ownResolver, delivery, rateLimits });
    const consoleUrl = isConsoleUp ? webConsole.url() : null;
    return {
      apiUrl,
      publicUrl: publicPages.url(),
      consoleUrl,
      mxPort,
      accounts,
      domains,
      vitals,
      reload,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Binds the console; false: its port is in use. Mail does not wait for the console, which is on by default: after an
 * upgrade another program may have its port.
 */
async function startConsole(webConsole: WebConsole, log: Log): Promise<boolean> {
  try {
    await webConsole.listen();
    return true;
  } catch (error) {
    if (!isPortInUse(error)) throw error;
    log.error({ err: error }, 'the console is not available');
    return false;
  }
}

function logListener(log: Log, listener: string, address: ListenAddress | null | undefined): void {
  if (address) log.info({ listener, address: formatListen(address) }, 'listening');
}
