import type { Command } from 'commander';
import { iso } from '../core/clock.ts';
import { BOXES } from '../store/kept-mail.ts';
import { asJson, createCommand, createGroup, noteMore, option, rowLimit } from './command.ts';
import type { CliContext } from './context.ts';

/** Replaced unless `--raw` is given: a terminal would interpret control sequences in received mail. */
const CONTROLS = /[\p{Cc}\p{Cf}]/gu;

/** `postrider inbox list|show`: mail to people, and mail that could not be processed. */
export function inboxCommand(context: CliContext): Command {
  return createGroup('inbox', 'Read received mail', {
    help: `
Mail to postmaster@ and abuse@, automatic replies, and mail that could not be parsed or matched to a message.
Each box stores the newest 1000 messages, at most 100 of them from one network (IPv4 /24, IPv6 /48), and the
first 256 KiB of each. When a box is full, the oldest message of the network with the most messages is dropped.
A message to several spellings of one mailbox is stored once.

Examples:
  postrider inbox list --box postmaster
  postrider inbox show 17
  postrider inbox show 17 --raw > mail.eml`,
    commands: [
      createCommand(context, {
        usage: 'list',
        description: 'List received mail, newest first',
        options: [option('--box <name>', 'only this box', { choices: BOXES }), rowLimit, asJson],
        run: async ({ box = null, limit }) => {
          const { tables } = await context.open();
          const found = tables.keptMail.list(box, limit + 1);
          if (found.length > limit) noteMore(context, limit);
          const rows = found.slice(0, limit).map((row) => ({
            number: row.seq,
            receivedAt: iso(row.received_at),
            box: row.box,
            kind: row.kind,
            sender: row.sender,
            recipient: row.recipient,
            remoteAddress: row.remote_address,
            size: row.size,
            message:
              row.message_seq === null ? null : (tables.messages.bySeq(row.message_seq)?.message_id ?? null),
          }));
          context.printRows(rows, 'There is no received mail');
        },
      }),
      createCommand(context, {
        usage: 'show <number>',
        description: 'Show a received message',
        options: [option('--raw', 'print the original bytes')],
        run: async (number, { raw }) => {
          const { tables } = await context.open();
          const mail =
            (/^\d{1,15}$/.test(number) ? tables.keptMail.get(Number(number)) : null) ??
            context.fail(`There is no message ${number}`);
          const text = mail.raw.toString('utf8').replaceAll('\r\n', '\n');
          if (raw === true) process.stdout.write(mail.raw);
          else
            context.print(
              text.replaceAll(CONTROLS, (char) => (char === '\n' || char === '\t' ? char : '\u2423')),
            );
        },
      }),
    ],
  });
}
