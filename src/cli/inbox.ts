import { Command, Option } from 'commander';
import { iso } from '../core/clock.ts';
import { BOXES, type Box, type KeptMailHead } from '../store/kept-mail.ts';
import type { CliContext } from './context.ts';
import { noteMore, ROWS, rowLimit } from './output/row-limit.ts';

/** `postrider inbox list|show`: mail to people, and mail that could not be processed. */
export function inboxCommand(context: CliContext): Command {
  const command = new Command('inbox').description('Read received mail').addHelpText(
    'after',
    `
Mail to postmaster@ and abuse@, automatic replies, and mail that could not be parsed or matched to a message.
Each box stores the newest 1000 messages, at most 100 of them from one network (IPv4 /24, IPv6 /48), and the
first 256 KiB of each. When a box is full, the oldest message of the network with the most messages is dropped.
A message to several spellings of one mailbox is stored once.

Examples:
  postrider inbox list --box postmaster
  postrider inbox show 17
  postrider inbox show 17 --raw > mail.eml`,
  );
  command
    .command('list')
    .description('List received mail, newest first')
    .addOption(new Option('--box <name>', 'only this box').choices(BOXES))
    .option('--limit <n>', 'maximum number of rows', rowLimit, ROWS)
    .option('--json', 'print JSON')
    .action((options: { box?: Box; limit: number; json?: boolean }) => list(context, options));
  command
    .command('show <number>')
    .description('Show a received message')
    .option('--raw', 'print the original bytes')
    .action((number: string, options: { raw?: boolean }) => show(context, number, options.raw === true));
  return command;
}

async function list(
  context: CliContext,
  { box, limit, json }: { box?: Box; limit: number; json?: boolean },
): Promise<void> {
  const { tables } = await context.open();
  const found = tables.keptMail.list(box ?? null, limit + 1);
  if (found.length > limit) noteMore(context, limit);
  const rows = found.slice(0, limit).map((row) => ({
    ...shown(row),
    message: row.message_seq === null ? null : (tables.messages.bySeq(row.message_seq)?.message_id ?? null),
  }));
  context.printRows(rows, { json: json === true, empty: 'There is no received mail' });
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

/** Replaced unless `--raw` is given: a terminal would interpret control sequences in received mail. */
const CONTROLS = /[\p{Cc}\p{Cf}]/gu;

async function show(context: CliContext, number: string, raw: boolean): Promise<void> {
  const { tables } = await context.open();
  const mail = /^\d{1,15}$/.test(number) ? tables.keptMail.get(Number(number)) : null;
  if (mail === null) return context.fail(`There is no message ${number}`);
  if (raw) return void process.stdout.write(mail.raw);
  const text = mail.raw.toString('utf8').replaceAll('\r\n', '\n');
  context.print(text.replaceAll(CONTROLS, (char) => (char === '\n' || char === '\t' ? char : '\u2423')));
}
