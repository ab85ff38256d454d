import { Command } from 'commander';
import { createAddressHasher, LOG_KEY_PURPOSE } from '../core/log.ts';
import { parseMailbox } from '../mail/address.ts';
import type { CliContext } from './context.ts';

/** `postrider log hash`. */
export function logCommand(context: CliContext): Command {
  const command = new Command('log')
    .description('Print the hash of an address as the log contains it')
    .addHelpText(
      'after',
      `
Examples:
  journalctl -u postrider | grep "$(postrider log hash ada@example.net)"`,
    );
  command
    .command('hash <address>')
    .description('Print the hash that stands for an address in the log')
    .option('--json', 'print JSON')
    .action((address: string, options: { json?: boolean }) =>
      printHash(context, address, options.json === true),
    );
  return command;
}

async function printHash(context: CliContext, text: string, json: boolean): Promise<void> {
  const mailbox = parseMailbox(text);
  if (typeof mailbox === 'string') return context.usage(`${text}: ${mailbox}`);
  const { config, seal } = await context.open();
  const hasher = createAddressHasher();
  hasher.useKey((await seal()).derive(LOG_KEY_PURPOSE));
  const hash = hasher.hash(mailbox.address);
  if (json) context.printJson({ address: mailbox.address, hash });
  else context.print(hash);
  if (!config.log.hashAddresses || ['debug', 'trace'].includes(config.log.level))
    context.note('Addresses are not hashed in the log with log.hashAddresses = false or at level debug');
}
