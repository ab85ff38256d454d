import { Command } from 'commander';
import { type CliContext, formatError, USAGE } from './context.ts';

/**
 * The list of commands, and nothing else: what each does stands in its own file, which is loaded only when the
 * command is called (or help is asked for).
 */
const COMMANDS: Record<
  string,
  (context: CliContext, configFile: () => string | undefined) => Promise<Command>
> = {
  account: async (context) => (await import('./account.ts')).accountCommand(context),
  key: async (context) => (await import('./key.ts')).keyCommand(context),
  domain: async (context) => (await import('./domain.ts')).domainCommand(context),
  zone: async (context) => (await import('./zone.ts')).zoneCommand(context),
  serve: async (_, configFile) => (await import('./serve.ts')).serveCommand(configFile),
  migrate: async (context) => (await import('./migrate.ts')).migrateCommand(context),
  demo: async (context) => (await import('./demo/demo.ts')).demoCommand((text) => context.print(text)),
  group: async (context) => (await import('./group.ts')).groupCommand(context),
  template: async (context) => (await import('./template.ts')).templateCommand(context),
  message: async (context) => (await import('./message.ts')).messageCommand(context),
  bounce: async () => (await import('./bounce.ts')).bounceCommand(),
  contacts: async (context) => (await import('./contacts.ts')).contactsCommand(context),
  log: async (context) => (await import('./log.ts')).logCommand(context),
  queue: async (context) => (await import('./queue.ts')).queueCommand(context),
  webhook: async (context) => (await import('./webhook.ts')).webhookCommand(context),
  suppression: async (context) => (await import('./suppression.ts')).suppressionCommand(context),
  inbox: async (context) => (await import('./inbox.ts')).inboxCommand(context),
  campaign: async (context) => (await import('./campaign.ts')).campaignCommand(context),
};

/** The program with the commands that `args` calls for: one, or all when that is not clear. */
export async function buildProgram(
  context: CliContext,
  version: string,
  args: readonly string[],
): Promise<Command> {
  const program = new Command('postrider')
    .description(
      'A self-hosted mail platform: verified domains, consent, signed delivery to the recipients’ own servers.',
    )
    .version(version)
    .option(
      '--config <file>',
      'configuration file (default: $POSTRIDER_CONFIG, else ./config/postrider.toml, else /etc/postrider/postrider.toml)',
    )
    .showSuggestionAfterError()
    .exitOverride();
  const configFile = () => program.opts<{ config?: string }>().config;
  // The first that is a command: what comes after it may be anybody's name.
  const called = args.find((arg) => Object.hasOwn(COMMANDS, arg));
  const wanted = called === undefined || args[0] === 'help' ? Object.keys(COMMANDS) : [called];
  for (const name of wanted) {
    const make = COMMANDS[name];
    if (make) program.addCommand(withExit(await make(context, configFile), args.includes('--json')));
  }
  return program;
}

/** Sets on every command what Commander does not inherit: bad usage throws, and is written as JSON if asked. */
function withExit(command: Command, json: boolean): Command {
  command.exitOverride().showSuggestionAfterError();
  if (json) {
    command.configureOutput({
      outputError: (text, write) =>
        write(`${formatError(text.replace(/^error: /, '').trim(), USAGE, true)}\n`),
    });
  }
  for (const inner of command.commands) withExit(inner, json);
  return command;
}
