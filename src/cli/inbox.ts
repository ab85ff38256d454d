import { Command, Option } from 'commander';
import { iso } from '../core/clock.ts';
import { BOXES, type Box, type KeptMailHead } from '../store/kept-mail.ts';
import type { CliContext } from './context.ts';
import { ROWS, rowLimit } from './row-limit.ts';

/** `postrider inbox list|show`: mail that came in for a person to read, or changed nothing. */
export function inboxCommand(context: CliContext): Command {
  const command = new Command('inbox').description('read mail that came in').addHelpText(
    'after',
    `
Mail to postmaster@ and abuse@, automatic replies, and what could not be parsed or matched to a message.
Of each box the newest 1000 mails are kept, at most 100 of them from one network (IPv4 /24, IPv6 /48), and of
each mail the first 256 KiB. When a box is full, the oldest mail of the network with the most is dropped. A
mail to several spellings of one mailbox is kept once.

Examples:
  postrider inbox list --box postmaster
  postrider inbox show 17
  postrider inbox show 17 --raw > mail.eml`,
  );
  command
    .command('list')
    .description('mail that came in, newest first')
    .addOption(new Option('--box <name>', 'only this box').choices(BOXES))
    .option('--limit <n>', 'rows at most', rowLimit, ROWS)
    .option('--json', 'print JSON')
    .action((options: { box?: Box; limit: number; json?: boolean }) => list(context, options));
  command
    .command('show <number>')
    .description('one mail as it came')
    .option('--raw', 'byte for byte, for a file or another program')
    .action((number: string, options: { raw?: boolean }) => show(context, number, options.raw === true));
  return command;
}

async function list(
  context: CliContext,
  { box, limit, json }: { box?: Box; limit: number; json?: boolean },
): Promise<void> {
  const { tables } = await context.open();
  const rows = tables.keptMail.list(box ?? null, limit).map((row) => ({
    ...shown(row),
    message: row.message_seq === null ? null : (tables.messages.bySeq(row.message_seq)?.message_id ?? null),
  }));
  context.printRows(rows, { json: json === true, empty: 'nothing has come in' });
}

function shown(row: KeptMailHead) {
  return {
    number: row.seq,
    receivedAt: iso(row.received_at),
    box: row.box,
    kind: row.kind,
    sender: row.sender,
    recipient: row.recipient,
    remoteAddress: row.remote_address,
    size: row.size,
  };
}

/** Strangers' mail may hold what a terminal obeys: without `--raw` it is only shown. */
const CONTROLS = /[\p{Cc}\p{Cf}]/gu;

async function show(context: CliContext, number: string, raw: boolean): Promise<void> {
  const { tables } = await context.open();
  const mail = /^\d{1,15}$/.test(number) ? tables.keptMail.get(Number(number)) : null;
  if (mail === null) return context.fail(`there is no mail ${number}`);
  if (raw) return void process.stdout.write(mail.raw);
  const text = mail.raw.toString('utf8').replaceAll('\r\n', '\n');
  context.print(text.replaceAll(CONTROLS, (char) => (char === '\n' || char === '\t' ? char : '\u2423')));
}
