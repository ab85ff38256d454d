import type { Command } from 'commander';
import { createAddressHasher, LOG_KEY_PURPOSE } from '../core/log.ts';
import { parseMailbox } from '../mail/address.ts';
import { asJson, createCommand, createGroup } from './command.ts';
import type { CliContext } from './context.ts';

/** `postrider log hash`. */
export function logCommand(context: CliContext): Command {
  const hash = createCommand(context, {
    usage: 'hash <address>',
    description: 'Print the hash that stands for an address in the log',
    options: [asJson],
    run: async (text) => {
      const mailbox = parseMailbox(text);
      if (typeof mailbox === 'string') context.usage(`${text}: ${mailbox}`);
      const { config, openSeal } = await context.open();
      const { address } = mailbox;
      const hashes = (await openSeal()).deriveEach(LOG_KEY_PURPOSE).map((key) => {
        const hasher = createAddressHasher();
        hasher.useKey(key);
        return hasher.hash(address);
      });
      // After a replacement of the master key one line for each: grep searches them all.
      const [current, ...former] = hashes;
      context.show({ address, hash: current, ...(former.length === 0 ? {} : { former }) }, () => hashes);
      if (!config.log.hashAddresses || ['debug', 'trace'].includes(config.log.level))
        context.note('Addresses are not hashed in the log with log.hashAddresses = false or at level debug');
    },
  });
  return createGroup('log', 'Print the hash of an address as the log contains it', {
    help: `
Examples:
  journalctl -u postrider | grep "$(postrider log hash ada@example.net)"`,
    commands: [hash],
  });
}
