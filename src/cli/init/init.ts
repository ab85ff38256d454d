import { existsSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { installationAt } from '../../config/installations.ts';
import { CONFIG_FILES, loadConfig } from '../../config/load.ts';
import { listenersOf } from '../../config/warnings.ts';
import { monotonicClock, SECOND } from '../../core/clock.ts';
import { abortAfter } from '../../core/concurrency/abort.ts';
import { OperatorFault } from '../../core/operator-fault.ts';
import { systemRandom } from '../../core/random.ts';
import { createDnsView } from '../../dns/dns-view.ts';
import { createResolver } from '../../dns/resolver.ts';
import { platformOf } from '../../domains/platform/platform.ts';
import { allZoneKeys, platformNotes, platformZone } from '../../domains/platform/platform-zone.ts';
import { createCommand, type OptionValues, option } from '../command.ts';
import { type CliContext, createContext } from '../context.ts';
import {
  domainRecordTable,
  domainZoneFile,
  platformZoneFile,
  platformZoneTable,
} from '../domains/record-output.ts';
import { programName } from '../program-name.ts';
import { type Created, createInstallation, refuseExisting } from './create.ts';
import { detectHost } from './detect.ts';
import { mxNote, nextSteps } from './next-steps.ts';
import { type InitOptions, InvalidOption, initOptions, planInit } from './plan.ts';
import { Interrupted, silentPrompt, terminalPrompt } from './prompt.ts';
import { isPackaged, userOf } from './service-user.ts';

/** Runs another command with a configuration file; resolves with false when this version does not have it. */
export type RunCommand = (name: string, file: string) => Promise<boolean>;

const ownOptions = [
  option('--format <format>', 'format of the DNS records: bind or table', {
    parse: zoneFormat,
    default: 'bind',
  }),
  option('--no-doctor', 'do not check the installation afterwards'),
  option('-y, --yes', 'accept the defaults instead of asking'),
  option('--json', 'print JSON; implies --yes and --no-doctor'),
] as const;

type InitCommandOptions = InitOptions & OptionValues<typeof ownOptions>;

/** `postrider init` */
export function initCommand(
  context: CliContext,
  configFile: () => string | undefined,
  runCommand: RunCommand,
): Command {
  return createCommand(context, {
    usage: 'init',
    description: 'Set up this machine: configuration, data directory, first account, first domain',
    options: [...initOptions, ...ownOptions],
    help: `
Asks for values that no option provides. Never overwrites a file or a data directory; after a failure or Ctrl-C everything
is removed again. The keys of the account are printed once. As root, on a machine with the package, it writes
/etc/postrider/postrider.toml and /var/lib/postrider for the user postrider. A container has the same paths.
With --instance NAME before the command it sets up one of several daemons: /etc/postrider-NAME and /var/lib/postrider-NAME for the
user postrider-NAME, which it creates, with ports that no other daemon is configured to use.
Detection uses the interfaces of this machine and DNS only.

Examples:
  postrider init
  postrider init --yes --hostname mail.example.net --account Shop --domain example.com
  postrider init --yes --tls acme --agree-to-terms --acme-email postmaster@example.net
  postrider --instance shop init --hostname shop.example.net --source-address 192.0.2.11`,
    run: (options) => init(context, options, configFile(), runCommand),
  });
}

function zoneFormat(text: string): 'bind' | 'table' {
  if (text !== 'bind' && text !== 'table') throw new InvalidArgumentError('Must be bind or table');
  return text;
}

/** Timeout of all lookups of the detection together. */
const DETECTION_MS = 10 * SECOND;

async function init(
  context: CliContext,
  options: InitCommandOptions,
  named: string | undefined,
  runCommand: RunCommand,
): Promise<void> {
  const { json } = context;
  const packaged = isPackaged();
  const output =
    options.output ??
    named ??
    (process.env['POSTRIDER_CONFIG'] || undefined) ??
    (packaged ? CONFIG_FILES[1] : CONFIG_FILES[0]);
  const configFile = resolve(output);
  const installation = installationAt(configFile);
  const isInstance = installation !== null && installation.instance !== null;
  if (isInstance && !packaged)
    return context.fail(`Only root can set up ${configFile}, on a machine with the package or the tarball`);
  const defaultDataDir = installation?.dataDir ?? 'data';
  refuseExisting(configFile, resolve(options.data ?? defaultDataDir));

  const silent = json || options.yes === true || !process.stdin.isTTY;
  const unattended = silentPrompt(json || options.yes === true);
  const prompt = silent ? unattended : terminalPrompt(process.stdin, process.stderr);
  const abort = new AbortController();
  const stop = () => abort.abort();
  try {
    const plan = await withDetection(async (view, detected) =>
      planInit(options, {
        prompt,
        view,
        detected,
        defaultDataDir,
        isInstance,
        taken: packaged ? otherListeners(configFile) : [],
      }),
    );
    const missing = unattended.missing();
    if (missing.length > 0) return context.usage(missingText(missing, options.yes === true || json));
    prompt.close();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);
    const user = packaged && installation !== null ? userOf(installation) : null;
    const created = await createInstallation(plan, {
      configFile,
      owner: user?.owner ?? null,
      signal: abort.signal,
    }).catch((error: unknown) => {
      user?.remove();
      throw error;
    });
    await report(context, created, options, runCommand);
  } catch (error) {
    if (error instanceof Interrupted) return context.fail('Interrupted: nothing was created');
    if (error instanceof InvalidOption) return context.usage(error.message);
    throw error;
  } finally {
    prompt.close();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, stop);
  }
}

function missingText(missing: readonly string[], acceptsDefaults: boolean): string {
  const list = missing.join(', ');
  return acceptsDefaults
    ? `There is no default for ${list}: specify ${missing.length === 1 ? 'it' : 'them'} on the command line`
    : `Standard input is not a terminal: specify ${list}, or --yes to accept defaults`;
}

/** The listeners of the other daemons that are configured on this machine. */
function otherListeners(configFile: string): string[] {
  const files = readdirSync('/etc').map((name) => `/etc/${name}/postrider.toml`);
  return files.flatMap((file) => {
    if (file === configFile || installationAt(file) === null || !existsSync(file)) return [];
    try {
      return listenersOf(loadConfig({ file, env: {} })).map(([, listen]) => listen);
    } catch (error) {
      // A daemon with an invalid configuration does not start, and uses no ports.
      if (error instanceof OperatorFault) return [];
      throw error;
    }
  });
}

/** Uses the resolvers of the environment variables, otherwise those of the system. */
async function withDetection<Result>(
  work: (
    view: ReturnType<typeof createDnsView>,
    detected: Awaited<ReturnType<typeof detectHost>>,
  ) => Promise<Result>,
): Promise<Result> {
  const { dns } = loadConfig({ file: null });
  const resolver = createResolver({ ...dns, monotonic: monotonicClock, random: systemRandom });
  const ended = new AbortController();
  try {
    const view = createDnsView(resolver);
    const limited = createDnsView(resolver, { signal: abortAfter(DETECTION_MS, ended.signal) });
    return await work(view, await detectHost(limited));
  } finally {
    ended.abort();
    resolver.close();
  }
}

async function report(
  context: CliContext,
  created: Created,
  { format, doctor }: InitCommandOptions,
  runCommand: RunCommand,
): Promise<void> {
  const { json } = context;
  const { configFile, dataDir, account, domain } = created;
  const own = createContext(() => configFile);
  try {
    const { config, tables, createResolver: openResolver } = await own.open();
    const platform = platformOf(config);
    const zone = await platformZone(createDnsView(openResolver()), platform, allZoneKeys(tables));
    const zoneNotes = platformNotes(platform, zone);
    const mx = mxNote(created);
    if (json) {
      const next = nextSteps(created, programName()).map(({ command }) => command);
      const { name, domainId, records } = domain ?? { name: null, domainId: null, records: null };
      const details = domain === null ? null : { name, domainId, ...records };
      const notes = mx === null ? zoneNotes : [...zoneNotes, mx];
      return context.printJson({ configFile, dataDir, account, domain: details, zone, notes, next });
    }
    const isBind = format === 'bind';
    context.print(`Created ${configFile} and ${dataDir} (database and master.key: back up both)`);
    if (mx !== null) context.print(`\n${mx}`);
    if (account !== null) {
      context.print('\nAccount and API keys, which are shown only once:');
      context.printJson(account);
    }
    context.print('\nPublish these DNS records of the platform:\n');
    context.print((isBind ? platformZoneFile : platformZoneTable)(zone, zoneNotes));
    if (domain !== null) {
      context.print(`\nPublish these DNS records of ${domain.name} (${domain.domainId}):\n`);
      context.print((isBind ? domainZoneFile : domainRecordTable)(domain.records));
    }
  } finally {
    await own.close();
  }
  if (json) return;
  if (doctor !== false) await runDoctor(context, configFile, runCommand);
  context.print('\nNext:');
  for (const [index, { command, note }] of nextSteps(created, programName()).entries())
    context.print(`  ${index + 1}. ${command}${note === null ? '' : `\n     (${note})`}`);
}

/** Its findings describe the remaining steps: they do not change the exit status of `init`. */
async function runDoctor(context: CliContext, configFile: string, runCommand: RunCommand): Promise<void> {
  const status = process.exitCode;
  context.print('\nChecks (records that are not published yet are reported as missing):\n');
  try {
    await runCommand('doctor', configFile);
  } catch (error) {
    context.note(`The checks failed: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    process.exitCode = status;
  }
}
