import { setFlagsFromString } from 'node:v8';
import type { Command } from 'commander';
import { CONFIG_FILES, configFrom, readSources, rereadSources } from '../config/load.ts';
import type { ConfigChanges } from '../config/reload.ts';
import type { Config } from '../config/schema.ts';
import { secretWarnings } from '../config/warnings.ts';
import { monotonicClock, SECOND, systemClock } from '../core/clock.ts';
import { abortAfter } from '../core/concurrency/abort.ts';
import { createAddressHasher, createLog, type Log } from '../core/log.ts';
import { createLogOutput, type LogOutput } from '../core/log-output.ts';
import { openFilesLimit, requireOpenFiles } from '../core/open-files.ts';
import { systemRandom } from '../core/random.ts';
import type { Daemon } from '../daemon.ts';
import { createDnsView } from '../dns/dns-view.ts';
import { createResolver } from '../dns/resolver.ts';
import { checkHostConfig, checkHostDns, type HostWarning } from '../domains/platform/host-checks.ts';
import type { Superseded } from '../store/database/failure.ts';
import { createServiceReports } from '../supervision/service.ts';
import { createCommand, option } from './command.ts';
import { type CliContext, FAILED, refuseMovedData, SUPERSEDED } from './context.ts';
import { stopSignal } from './signals.ts';

/** How long the last log records, and then the process, wait for readers of the output. */
const FLUSH_TIMEOUT_MS = SECOND;
const EXIT_TIMEOUT_MS = 5 * SECOND;

/** Timeout of the checks of the host that need DNS. */
const MAX_CHECK_MS = 15 * SECOND;
/** Time for a stop after an unexpected error, whose cause may also prevent the stop. Deliveries in progress have 30 s. */
const MAX_STOP_MS = 90 * SECOND;

/**
 * V8 lets a heap grow to several times its live objects before it collects the old generation, and keeps the memory: under
 * load that would be 80 MiB more, for the same CPU time. This limits it to 1.5 times, in all threads. It is set after
 * the start, whose heap mostly grows: collecting it as often would be a seventh of the CPU time of the start. Until then the
 * package sets 100 (.packaging/postrider.sh).
 */
const HEAP_GROWTH = '--heap-growing-percent=50';

/** `postrider serve`: runs the daemon until a signal ends it. */
export function serveCommand(context: CliContext, configFile: () => string | undefined): Command {
  return createCommand(context, {
    usage: 'serve',
    description: 'Run the daemon: API, delivery, background work',
    options: [
      option(
        '--force-new-generation',
        'take over from daemons with newer copies of the database (standby.peers)',
      ),
      option(
        '--check',
        'examine what a start needs (configuration, database, master key, certificates, ports), start nothing, and exit',
      ),
    ],
    help: `
Signals:
  SIGTERM, SIGINT   stop accepting work, finish deliveries in progress (up to 30 s), exit 0;
                    exit 1 if results of deliveries could not be recorded
  SIGHUP            reload the configuration and log what needs a restart
  SIGUSR1, SIGUSR2  ignored

After an unexpected error inside the daemon it stops in the same way and exits 1.

Exit status 4: another daemon has taken over this database or a restored copy of it (see docs/backup.md).

--check accepts, writes and sends nothing: it binds each port for a moment, unless the daemon runs. Each obstacle is a line
on stderr; exits 0 without obstacles, else 1.

Examples:
  postrider serve
  postrider serve --check
  postrider --config /etc/postrider/postrider.toml serve
  POSTRIDER_API__LISTEN=127.0.0.1:9090 postrider serve`,
    run: async ({ forceNewGeneration, check }) => {
      if (check !== true) return serve(configFile(), forceNewGeneration === true);
      const { checkStart } = await import('./serve-check.ts');
      await checkStart(context);
    },
  });
}

async function serve(file: string | undefined, takeOver: boolean): Promise<void> {
  const output = createLogOutput();
  try {
    await runDaemon(file, takeOver, output);
  } finally {
    await output.flush(FLUSH_TIMEOUT_MS);
    // What nobody reads, also from standard error, does not keep the process.
    setTimeout(() => process.exit(), EXIT_TIMEOUT_MS).unref();
  }
}

async function runDaemon(file: string | undefined, takeOver: boolean, output: LogOutput): Promise<void> {
  const options = file === undefined ? {} : { file };
  const sources = readSources(options);
  const config = configFrom(sources);
  refuseMovedData(config);
  requireOpenFiles(openFilesLimit());
  const addresses = createAddressHasher();
  const log = createLog(config.log, output, addresses);
  if (config.file === null) {
    log.warn(
      { searched: CONFIG_FILES },
      'no configuration file found: using built-in defaults and POSTRIDER_ variables. Specify the file with --config',
    );
  }
  for (const { key, message } of secretWarnings(sources)) log.warn({ key }, `${key} ${message}`);
  const service = createServiceReports({ log }, process.env);
  service.starting();
  // Installed before the start: signals that arrive during it are handled afterwards.
  let announce: (daemon: Daemon) => void = () => {};
  const started = new Promise<Daemon>((resolve) => {
    announce = resolve;
  });
  let current = sources;
  const reload = async () => {
    const daemon = await started;
    await reloadConfig(log, async () => {
      const next = await rereadSources(options, current);
      const changes = await daemon.reload(configFrom(next));
      current = next;
      return changes;
    });
  };
  process.on('SIGHUP', () => void service.reload(reload));
  for (const ignored of ['SIGUSR1', 'SIGUSR2'] as const)
    process.on(ignored, () => log.info({ signal: ignored }, 'signal ignored'));
  const failure = unhandledRejection(log);
  const stopped = Promise.race([stopSignal(), failure.occurred]);
  const start = new AbortController();
  void stopped.then(() => start.abort());
  const env = {
    clock: systemClock,
    random: systemRandom,
    log,
    addresses,
    droppedLogRecords: output.dropped,
    startSignal: start.signal,
    takeOver,
    onSuperseded: (error: Superseded) => {
      log.fatal({ err: error }, 'another daemon has taken over; exiting');
      // Without a stop: sessions in progress would continue, and nothing can be recorded any more.
      process.exit(SUPERSEDED);
    },
  };
  const { startDaemon } = await import('../daemon.ts');
  const daemon = await startDaemon(config, env).catch((error: unknown) => {
    void service.close();
    if (start.signal.aborted && error instanceof Error && error.name === 'AbortError') return null;
    throw error;
  });
  if (daemon === null) {
    log.info({ signal: await stopped }, 'stopped during the migration; the next start continues');
    if (failure.has()) process.exitCode = FAILED;
    return;
  }
  setFlagsFromString(HEAP_GROWTH);
  announce(daemon);
  await service.ready(daemon.vitals);
  const cancelReport = reportHost(config, log);
  const signal = await stopped;
  if (failure.has()) setTimeout(() => process.exit(FAILED), MAX_STOP_MS).unref();
  cancelReport();
  void service.stopping();
  // A second signal does not interrupt the stop: deliveries in progress are recorded first.
  for (const again of ['SIGTERM', 'SIGINT'] as const) process.on(again, () => log.info('already stopping'));
  log.info({ signal }, 'stopping');
  const unrecorded = await daemon.stop();
  await service.close();
  log.info({ unrecorded }, 'stopped');
  // The messages are not lost, but some will be sent twice: monitoring must see that.
  if (unrecorded > 0 || failure.has()) process.exitCode = FAILED;
}

/**
 * A promise was rejected and nothing handles it: a defect, after which a part of the daemon may wait without end. The daemon
 * stops, so that results of deliveries are recorded, and exits with an error, so that the service manager starts it again.
 * An uncaught exception ends the process immediately, as Node does by default.
 */
function unhandledRejection(log: Log): { occurred: Promise<string>; has(): boolean } {
  let hasOccurred = false;
  const occurred = new Promise<string>((resolve) => {
    process.on('unhandledRejection', (error) => {
      log.fatal(
        { err: error },
        'unexpected error; stopping, so that the service manager starts the daemon again',
      );
      hasOccurred = true;
      resolve('unhandledRejection');
    });
  });
  return { occurred, has: () => hasOccurred };
}

/**
 * Logs a warning for each problem of the host. Checks that need DNS run in the background; the returned function cancels
 * them.
 */
function reportHost(config: Config, log: Log): () => void {
  const warn = (warnings: HostWarning[]) => {
    for (const { key, message } of warnings) log.warn({ key }, `${key}: ${message}`);
  };
  warn(checkHostConfig(config));
  const cancel = new AbortController();
  const resolver = createResolver({ ...config.dns, monotonic: monotonicClock, random: systemRandom });
  const signal = abortAfter(MAX_CHECK_MS, cancel.signal);
  checkHostDns(createDnsView(resolver, { signal }), config)
    .then(
      (warnings) => {
        if (!cancel.signal.aborted) warn(warnings);
      },
      (error: unknown) => log.error({ err: error }, 'checks of the host failed'),
    )
    .finally(() => resolver.close());
  return () => cancel.abort();
}

/** Reads the configuration again and applies it. An invalid one changes nothing. */
async function reloadConfig(log: Log, apply: () => Promise<ConfigChanges>): Promise<void> {
  try {
    const { applied, needsRestart } = await apply();
    if (needsRestart.length > 0)
      log.warn({ applied, needsRestart }, 'configuration reloaded; some changed settings need a restart');
    else log.info({ applied, needsRestart }, 'configuration reloaded; nothing needs a restart');
  } catch (error) {
    log.error({ err: error }, 'configuration not reloaded: it is invalid; nothing changed');
  }
}
