import { accessSync, constants } from 'node:fs';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import { exampleToml } from '../config/example.ts';
import { effectiveSettings, lineOf, type Origin, settingLines } from '../config/inspect.ts';
import {
  ConfigFault,
  type ConfigIssue,
  type ConfigSources,
  configFrom,
  readSources,
} from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { configWarnings, listenerConflicts } from '../config/warnings.ts';
import { errorText } from '../core/errors.ts';
import { isPresent, OperatorFault, thisUser } from '../core/operator-fault.ts';
import { checkHostConfig } from '../domains/platform/host-checks.ts';
import { namedParts } from '../reload.ts';
import { verifyMasterKeyFile } from '../store/master-key.ts';
import { asJson, createCommand, createGroup, option } from './command.ts';
import { type CliContext, FAILED } from './context.ts';
import { counted } from './output/table.ts';

/** `postrider config check|show|example`. */
export function configCommand(context: CliContext, configFile: () => string | undefined): Command {
  const sourcesOf = (file: string | undefined) => {
    const named = file ?? configFile();
    return readSources(named === undefined ? {} : { file: named });
  };
  return createGroup('config', 'Check and show the configuration', {
    commands: [
      createCommand(context, {
        usage: 'check [file]',
        description: 'Check a configuration file (default: the one that serve would use)',
        options: [asJson],
        help: `
Reads the file and the POSTRIDER_ environment variables like "serve", and the files that they name, as this user. Errors
prevent the start: unknown keys, invalid values, files that cannot be used (a certificate and a key that do not belong
together), listeners with the same address. Warnings concern settings that are probably mistakes: secrets that others can
read, the API without TLS on a public address. Uses neither DNS nor the network; "postrider doctor" does.
Exits 0 if the configuration is valid, even with warnings; 1 if a start would fail.

Examples:
  postrider config check
  postrider config check new.toml && mv new.toml /etc/postrider/postrider.toml && systemctl reload postrider`,
        run: (file) => check(context, () => sourcesOf(file)),
      }),
      createCommand(context, {
        usage: 'show',
        description: 'Show the effective settings and their sources',
        options: [option('--defaults', 'include settings with their default values'), asJson],
        help: `
Secrets are masked. "reload" means that SIGHUP (systemctl reload postrider) applies a change, "restart" that the daemon
must be restarted.

Examples:
  postrider config show
  postrider config show --defaults --json | jq '.[] | select(.name == "api.listen")'`,
        run: ({ defaults }) => show(context, sourcesOf(undefined), defaults === true),
      }),
      createCommand(context, {
        usage: 'example',
        description: 'Print a configuration file with every setting, its default and a description',
        run: () => context.print(exampleToml().trimEnd()),
      }),
    ],
  });
}

/** A line of the report. */
interface Finding extends Omit<ConfigIssue, 'line'> {
  level: 'error' | 'warning';
  /** Line in the file; null: unknown, or the finding does not concern the file. */
  line: number | null;
}

async function check(context: CliContext, read: () => ConfigSources): Promise<void> {
  const { file, findings } = await examine(read);
  const count = findings.filter(({ level }) => level === 'error').length;
  const source = file ?? 'the default configuration';
  context.show({ file, valid: count === 0, findings }, () => [
    ...findings.map(({ level, key, message, line }) => {
      const place = [file, line].filter((part) => part !== null).join(':');
      return `${place === '' ? '' : `${place}: `}${level}: ${key === '' ? '' : `${key}: `}${message}`;
    }),
    count === 0 ? `${source} is valid` : `${source} is invalid: ${counted(count, 'error')}`,
  ]);
  if (count > 0) process.exitCode = FAILED;
}

async function examine(read: () => ConfigSources): Promise<{ file: string | null; findings: Finding[] }> {
  let sources: ConfigSources | null = null;
  try {
    sources = read();
    const { file, text } = sources;
    const config = configFrom(sources);
    const lines = settingLines(text);
    const finding =
      (level: Finding['level']) =>
      ({ key, message }: ConfigIssue): Finding => ({ level, key, message, line: lineOf(key, lines) });
    const errors = await startFaults(config);
    const warnings = [...configWarnings(sources, config), ...checkHostConfig(config)].filter(
      ({ key }) => !errors.some((error) => error.key === key),
    );
    return { file, findings: [...errors.map(finding('error')), ...warnings.map(finding('warning'))] };
  } catch (error) {
    if (!(error instanceof ConfigFault)) throw error;
    const lines = settingLines(sources?.text ?? '');
    const findings = error.issues.map(({ key, message, line }): Finding => {
      const isVariable = key.startsWith('POSTRIDER_');
      return { level: 'error', key, message, line: line ?? (isVariable ? null : lineOf(key, lines)) };
    });
    return { file: error.source, findings };
  }
}

/** What would stop a start with a valid file: files that cannot be used, and listeners with the same address. */
async function startFaults(config: Config): Promise<ConfigIssue[]> {
  const { masterKeyFile } = config.data;
  const parts = [
    ...namedParts(config),
    {
      key: 'data.masterKeyFile',
      verify: () => verifyMasterKeyFile(masterKeyFile, process.env['CREDENTIALS_DIRECTORY']),
    },
    { key: 'data.dir', verify: () => verifyDataDir(config.data.dir) },
  ];
  const issues = listenerConflicts(config);
  for (const { key, verify } of parts) {
    try {
      await verify();
    } catch (error) {
      if (!(error instanceof OperatorFault)) throw error;
      // Faults of files begin with the setting that names them.
      const [, setting = key, message = error.message] = /^([a-z][\w.]+): (.*)$/s.exec(error.message) ?? [];
      issues.push({ key: setting, message });
    }
  }
  return issues;
}

/** Throws an OperatorFault when this user cannot write to the directory, or cannot create it. */
function verifyDataDir(dir: string): void {
  let existing = dir;
  while (!isPresent(existing, 'Run the command as the user of the daemon') && existing !== dirname(existing))
    existing = dirname(existing);
  try {
    accessSync(existing, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new OperatorFault(`data.dir: ${thisUser()} cannot write to ${existing}: ${errorText(error)}`, {
      cause: error,
    });
  }
}

function show(context: CliContext, sources: ConfigSources, defaults: boolean): void {
  const settings = effectiveSettings(sources, configFrom(sources));
  const shown = settings.filter(
    ({ origin }) => defaults || (origin.from !== 'default' && origin.from !== 'program'),
  );
  if (context.json) return context.printJson(shown);
  // One complete line for each setting: grep finds it, and long values are not shortened.
  for (const { name, value, origin, appliedBy } of shown)
    context.print(
      `${name} = ${value === null ? '(not set)' : JSON.stringify(value)}  # ${originText(origin)}; change: ${appliedBy}`,
    );
  if (!defaults)
    context.note(
      `${counted(settings.length - shown.length, 'setting has its default value', 'settings have their default values')}: show them with --defaults`,
    );
}

function originText(origin: Origin): string {
  if (origin.from === 'default') return 'default';
  if (origin.from === 'program') return `${origin.file} (part of the program)`;
  if (origin.from === 'environment') return origin.variable;
  return origin.line === null ? origin.file : `${origin.file}:${origin.line}`;
}
