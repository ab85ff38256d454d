import { createAccounts } from './accounts/accounts.ts';
import { createAccountLimits } from './accounts/limits.ts';
import type { Config } from './config/schema.ts';
import { startAudience } from './daemon/audience.ts';
import { startBackground } from './daemon/background.ts';
import { createBackups } from './daemon/backups.ts';
import { createContext, type DaemonContext, type DaemonEnv, type StopStep } from './daemon/context.ts';
import { startDelivery } from './daemon/delivery.ts';
import { startDomains } from './daemon/domains.ts';
import { createEvents } from './daemon/events.ts';
import { registerMetrics, startHttp } from './daemon/http.ts';
import { startPublicPages } from './daemon/public-pages.ts';
import {
  listenForMail,
  startAuthentication,
  startInbound,
  startMx,
  startSubmission,
} from './daemon/receiving.ts';
import { startSending } from './daemon/sending.ts';
import { startStorage } from './daemon/storage.ts';
import { type ConfigurableResolver, createResolver, type Resolver } from './dns/resolver.ts';
import { failedChecks } from './http/health.ts';
import { createPeople } from './people/people.ts';
import { createReload } from './reload.ts';
import type { Vitals } from './supervision/service.ts';

/*
 * The composition root: `serve`, `demo` and the tests start a daemon here. `startDaemon` shows the order of the parts;
 * the files in daemon/ create them.
 */

export type Daemon = Awaited<ReturnType<typeof startDaemon>>;

/**
 * Starts a daemon. Parts stop in the reverse of the order in which they are created here: first the background work and
 * the listeners, then delivery, the public pages and the database. If the start fails, what is already started is stopped.
 */
export async function startDaemon(config: Config, env: DaemonEnv) {
  const steps: StopStep[] = [];
  const stop = async () => {
    for (const step of steps.splice(0).toReversed()) await step();
  };
  try {
    const context = createContext(config, env, (step) => void steps.push(step));
    const base = { ...context, ...(await startStorage(context)) };
    const { clock, ids, log, tables, writer } = base;
    const limits = createAccountLimits({ tables, defaults: config.limits.account });
    const { resolver, ownResolver } = startResolver(base);
    const events = createEvents(base, { resolver, limits });
    const { recorder } = events;
    const backups = createBackups(base, recorder);
    const accounts = createAccounts({ tables, writer, clock, ids });
    const domains = await startDomains(base, { resolver, recorder, limits });
    const audience = startAudience(base, { recorder, limits });
    const inbound = startInbound(base, {
      resolver,
      recorder,
      limits,
      publicUrl: () => pages.publicPages.url(),
    });
    // Before the first delivery: links in messages must work.
    const pages = await startPublicPages(base, { ...events, resolver, audience, inbound });
    const publicUrl = pages.publicPages.url();
    const deliveries = startDelivery(base, { resolver, recorder, domains, publicUrl });
    const { delivery } = deliveries;
    const sending = await startSending(base, { resolver, ...events, limits, audience, delivery, publicUrl });
    const { storageRefusal } = sending.pressure;
    pages.setSending({ accept: sending.acceptance.accept, storageRefusal, threads: sending.threads });
    const mx = await startMx(base, { ...pages, ...sending, resolver, recorder, inbound });
    registerMetrics(base, deliveries);
    const authentication = startAuthentication(base);
    const submission = await startSubmission(base, { ...authentication, ...sending });
    const parts = { ...events, ...pages, ...deliveries, ...sending, backups, domains, audience, inbound };
    const http = await startHttp(base, {
      ...parts,
      ...authentication,
      resolver,
      limits,
      accounts,
      mx,
      submission,
    });
    await listenForMail(log, { mx, submission });
    startBackground(base, parts);

    const { apiUrl, consoleUrl, databaseProbe, checks } = http;
    const { generation } = base;
    log.info(
      { apiUrl, dataDir: config.data.dir, generation, queued: tables.queue.count() },
      'postrider started',
    );
    return {
      /** Base URL of the API: `http://127.0.0.1:8080`. */
      apiUrl,
      /** Base URL of the public pages: `public.url`, or the bound address if the port is 0. */
      publicUrl,
      /** Base URL of the console; null: it is off. */
      consoleUrl,
      // For `demo`, which also performs the steps of an operator.
      accounts,
      domains,
      people: createPeople({ tables, writer, clock, ids }),
      /** The state that the service manager shows and judges. */
      vitals: async (): Promise<Vitals> => ({
        queued: sending.pressure.queued(),
        delivered: deliveries.delivered(),
        faults: await failedChecks(checks, log),
        pending: [
          { work: 'a write to the database', ms: databaseProbe.pendingMs() },
          { work: 'the scan of the queue', ms: delivery.unscannedMs() },
        ],
      }),
      /**
       * Applies the settings of the next configuration that a running daemon can change, all or none; returns which these were and
       * which need a restart. Rejects with an OperatorFault, and changes nothing, when a file that it names cannot be used.
       * Changes `config`.
       */
      reload: createReload({
        config,
        log,
        resolver: ownResolver,
        delivery,
        rateLimits: authentication.rateLimits,
      }),
      /**
       * Completes work in progress (30 s at most) and closes everything. Resolves with the number of delivery outcomes that
       * could not be recorded: those messages will be sent again.
       */
      stop: async (): Promise<number> => {
        await stop();
        return deliveries.unrecorded();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** `ownResolver`: the one that the configuration describes; null if the environment has a resolver. */
function startResolver({ config, env, monotonic, random, onStop }: DaemonContext): {
  resolver: Resolver;
  ownResolver: ConfigurableResolver | null;
} {
  if (env.resolver !== undefined) return { resolver: env.resolver, ownResolver: null };
  const ownResolver = createResolver({ ...config.dns, monotonic, random });
  onStop(() => ownResolver.close());
  return { resolver: ownResolver, ownResolver };
}
