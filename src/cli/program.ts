import { Command, InvalidArgumentError, Option } from 'commander';
import { installationOf, isInstanceName } from '../config/installations.ts';
import { type CliContext, createContext, formatError, USAGE } from './context.ts';
import { HELP } from './help.ts';

type CreateCommand = (context: CliContext, configFile: () => string | undefined) => Promise<Command>;

/**
 * All commands, by the heading under which the help lists them. The file of a command is loaded only when the command is
 * called or help is requested.
 */
const GROUPS: Record<string, Record<string, CreateCommand>> = {
  'Set up and run': {
    init: async (context, configFile) =>
      (await import('./init/init.ts')).initCommand(context, configFile, runWithConfig),
    config: async (context, configFile) => (await import('./config.ts')).configCommand(context, configFile),
    serve: async (context, configFile) => (await import('./serve.ts')).serveCommand(context, configFile),
    account: async (context) => (await import('./account.ts')).accountCommand(context),
    key: async (context) => (await import('./key.ts')).keyCommand(context),
    operator: async (context) => (await import('./operator.ts')).operatorCommand(context),
    domain: async (context) => (await import('./domains/domain.ts')).domainCommand(context),
    zone: async (context) => (await import('./domains/zone.ts')).zoneCommand(context),
    demo: async (context) => (await import('./demo/demo.ts')).demoCommand(context),
  },
  Sending: {
    partial: async (context) => (await import('./sending/partial.ts')).partialCommand(context),
    template: async (context) => (await import('./sending/template.ts')).templateCommand(context),
    campaign: async (context) => (await import('./sending/campaign.ts')).campaignCommand(context),
    sequences: async (context) => (await import('./sending/sequences.ts')).sequencesCommand(context),
    message: async (context) => (await import('./sending/message.ts')).messageCommand(context),
    webhook: async (context) => (await import('./sending/webhook.ts')).webhookCommand(context),
  },
  Recipients: {
    group: async (context) => (await import('./audience/group.ts')).groupCommand(context),
    segment: async (context) => (await import('./audience/segment.ts')).segmentCommand(context),
    contacts: async (context) => (await import('./audience/contacts.ts')).contactsCommand(context),
    suppression: async (context) => (await import('./audience/suppression.ts')).suppressionCommand(context),
  },
  'Inbound mail': {
    inbound: async (context) => (await import('./inbound/inbound.ts')).inboundCommand(context),
    'inbound-routes': async (context) =>
      (await import('./inbound/inbound-routes.ts')).inboundRoutesCommand(context),
  },
  'Queue and delivery': {
    queue: async (context) => (await import('./queue/queue.ts')).queueCommand(context),
    egress: async (context) => (await import('./egress/egress.ts')).egressCommand(context),
    warmup: async (context) => (await import('./egress/warmup.ts')).warmupCommand(context),
    reputation: async (context) => (await import('./reputation.ts')).reputationCommand(context),
    'sending-limits': async (context) =>
      (await import('./sending/sending-limits.ts')).sendingLimitsCommand(context),
    replies: async (context) => (await import('./sending/replies.ts')).repliesCommand(context),
    bounce: async (context) => (await import('./bounce.ts')).bounceCommand(context),
  },
  Diagnosis: {
    health: async (context) => (await import('./health.ts')).healthCommand(context),
    doctor: async (context) => (await import('./doctor/doctor.ts')).doctorCommand(context),
    stats: async (context) => (await import('./stats.ts')).statsCommand(context),
    top: async (context) => (await import('./top/top.ts')).topCommand(context),
    inbox: async (context) => (await import('./inbox.ts')).inboxCommand(context),
    log: async (context) => (await import('./log.ts')).logCommand(context),
  },
  Data: {
    backup: async (context) => (await import('./backup.ts')).backupCommand(context),
    restore: async (context) => (await import('./restore.ts')).restoreCommand(context),
    migrate: async (context) => (await import('./migrate.ts')).migrateCommand(context),
    'import-from': async (context) =>
      (await import('./import-from/import-from.ts')).importFromCommand(context),
  },
};
const COMMANDS: Record<string, CreateCommand> = Object.assign({}, ...Object.values(GROUPS));

/** Runs a command without arguments on a configuration file; false: there is no such command. */
async function runWithConfig(name: string, file: string): Promise<boolean> {
  const create = COMMANDS[name];
  if (create === undefined) return false;
  const context = createContext(() => file);
  try {
    const command = await create(context, () => file);
    await withExit(command, false).parseAsync([], { from: 'user' });
  } finally {
    await context.close();
  }
  return true;
}

/** The program with the command that `args` calls, or with all commands if that is not clear. */
export async function buildProgram(
  context: CliContext,
  version: string,
  args: readonly string[],
): Promise<Command> {
  const program = new Command('postrider')
    .description(
      'A self-hosted mail platform: verified domains, consent, signed delivery to the recipients’ mail servers.',
    )
    .version(version)
    .option(
      '--config <file>',
      'configuration file (default: $POSTRIDER_CONFIG, else ./config/postrider.toml, else /etc/postrider/postrider.toml)',
    )
    .addOption(
      new Option(
        '--instance <name>',
        'one of several daemons on this machine: /etc/postrider-<name>/postrider.toml',
      )
        .argParser(instanceName)
        .conflicts('config'),
    )
    .showSuggestionAfterError()
    .commandsGroup('Help:')
    .helpCommand('help [command]')
    .exitOverride();
  const json = args.includes('--json');
  writeErrors(program, json);
  const configFile = () => namedConfig(program);
  // The first argument that is a command and not the value of an option of the program; later arguments may be names.
  const called = args.find(
    (arg, at) => Object.hasOwn(COMMANDS, arg) && !['--config', '--instance'].includes(args[at - 1] ?? ''),
  );
  const names = isVersion(args)
    ? []
    : called === undefined || args[0] === 'help'
      ? Object.keys(COMMANDS)
      : [called];
  for (const [heading, commands] of Object.entries(GROUPS)) {
    for (const [name, create] of Object.entries(commands)) {
      if (!names.includes(name)) continue;
      const command = withExit(await create(context, configFile), json);
      program.addCommand(command.helpGroup(`${heading}:`));
    }
  }
  return program;
}

/** The configuration file that the options of the parsed program name; undefined: none. */
export function namedConfig(program: Command): string | undefined {
  const { config, instance } = program.opts<{ config?: string; instance?: string }>();
  return instance === undefined ? config : installationOf(instance).configFile;
}

function instanceName(text: string): string {
  if (!isInstanceName(text))
    throw new InvalidArgumentError(
      'Must be a name of 1 to 20 lowercase letters, digits and hyphens that begins with a letter',
    );
  return text;
}

/** The version is printed without any command. */
function isVersion([first, ...others]: readonly string[]): boolean {
  return (first === '--version' || first === '-V') && others.length === 0;
}

/** Sets what subcommands do not inherit: the help; usage errors throw, and are written as JSON with `--json`. */
function withExit(command: Command, json: boolean): Command {
  command.exitOverride().showSuggestionAfterError().configureHelp(HELP);
  writeErrors(command, json);
  for (const inner of command.commands) withExit(inner, json);
  return command;
}

function writeErrors(command: Command, json: boolean): void {
  command.configureOutput({
    outputError: (text, write) => {
      const message = withoutSameOption(text);
      write(json ? `${formatError(message.replace(/^error: /, '').trim(), USAGE, true)}\n` : message);
    },
  });
}

/** The library suggests an option of the command above under its own name, where the command itself does not have it. */
function withoutSameOption(text: string): string {
  const [, option] = /unknown option '([^']+)'/.exec(text) ?? [];
  return text.replace(`(Did you mean ${option}?)`, 'This command does not have the option: see its --help.');
}
