import { createReadStream } from 'node:fs';
import { Command, Option } from 'commander';
import { createStatusFollower } from '../../audience/standing.ts';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { createRecorder } from '../../events/record.ts';
import { recipientIdentifier } from '../../mail/identifier.ts';
import {
  SUPPRESSION_REASONS,
  SUPPRESSION_STREAMS,
  type SuppressionReason,
  type SuppressionStream,
} from '../../store/suppressions.ts';
import { importSuppressions, SUPPRESSION_FORMATS, type SuppressionFormat } from '../../suppression/import.ts';
import { createSuppressionList, presentSuppression, type SuppressionList } from '../../suppression/list.ts';
import type { CliContext } from '../context.ts';
import { requireReadable } from '../input-files.ts';
import { noteMore, ROWS, rowLimit } from '../output/row-limit.ts';

/** `postrider suppression list|add|import|remove`. */
export function suppressionCommand(context: CliContext): Command {
  const command = new Command('suppression')
    .alias('suppressions')
    .description('Manage suppressions: addresses that an account must not send to')
    .addHelpText(
      'after',
      `
Streams: tx (transactional), mk (marketing), all.

Examples:
  postrider suppression list --account acct_8f3k2m9x0q1z --reason hard_bounce
  postrider suppression add ada@example.net --account acct_8f3k2m9x0q1z --stream mk
  postrider suppression remove ada@example.net --account acct_8f3k2m9x0q1z`,
    );
  command
    .command('list')
    .description('List the suppressions of an account, newest first')
    .requiredOption('--account <id>', 'the account')
    .option('--email <address>', 'only this address (or its identifier, email_<md5>)')
    .addOption(streamOption('only this stream'))
    .addOption(reasonOption('only this reason'))
    .option('--limit <n>', 'maximum number of rows', rowLimit, ROWS)
    .option('--json', 'print JSON')
    .action((options: ListOptions) => list(context, options));
  command
    .command('add <email>')
    .description('Add a suppression of an address (or of its identifier, email_<md5>)')
    .requiredOption('--account <id>', 'the account')
    .addOption(streamOption('stream to which it applies').default('all'))
    .addOption(reasonOption('reason').default('manual'))
    .option('--json', 'print JSON')
    .action((email: string, options: AddOptions) => add(context, email, options));
  command
    .command('import <file>')
    .description('Import suppressions from the CSV of another service, or from a list of addresses')
    .requiredOption('--account <id>', 'the account')
    .addOption(
      new Option('--format <format>', 'format of the file').choices(SUPPRESSION_FORMATS).default('auto'),
    )
    .option('--json', 'print JSON')
    .action((file: string, options: ImportOptions) => importFile(context, file, options));
  command
    .command('remove <email>')
    .description('Remove the suppressions of an address (or of its identifier, email_<md5>)')
    .requiredOption('--account <id>', 'the account')
    .addOption(streamOption('only those of exactly this stream'))
    .addOption(reasonOption('only those for this reason'))
    .option('--note <text>', 'why, for the history of the address')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Also removes opt-outs and complaints, unless --reason is given: do this only at the request of the recipient.`,
    )
    .action((email: string, options: RemoveOptions) => remove(context, email, options));
  return command;
}

const streamOption = (text: string) => new Option('--stream <stream>', text).choices(SUPPRESSION_STREAMS);
const reasonOption = (text: string) => new Option('--reason <reason>', text).choices(SUPPRESSION_REASONS);

interface AddOptions {
  account: string;
  stream: SuppressionStream;
  reason: SuppressionReason;
  json?: boolean;
}

interface RemoveOptions {
  account: string;
  note?: string;
  stream?: SuppressionStream;
  reason?: SuppressionReason;
  json?: boolean;
}

interface ListOptions extends Omit<RemoveOptions, 'note'> {
  email?: string;
  limit: number;
}

async function list(context: CliContext, options: ListOptions): Promise<void> {
  await withList(context, options.account, async (suppressions) => {
    const { account, email, stream, reason, limit } = options;
    const { rows, more } = await suppressions.list({
      accountId: account,
      beforeSeq: null,
      limit,
      ...(email === undefined ? {} : { recipientHash: recipientIdentifier(email) }),
      ...(stream === undefined ? {} : { stream }),
      ...(reason === undefined ? {} : { reason }),
    });
    context.printRows(
      rows.map((row) => ({ ...presentSuppression(row) })),
      {
        json: options.json === true,
        empty: 'No suppression matches',
      },
    );
    if (more) noteMore(context, limit);
    return null;
  });
}

/** Who changes the list, for the consent history and the removals. */
const BY = 'command line';

async function add(context: CliContext, email: string, options: AddOptions): Promise<void> {
  await withList(context, options.account, async (suppressions) => {
    const { account, stream, reason } = options;
    const added = await suppressions.add(account, { email, stream, reason }, BY);
    if (isRefusal(added)) return added;
    const shown = presentSuppression(added.row);
    if (options.json === true) context.printJson(shown);
    else
      context.print(
        `${shown.email} ${added.created ? 'is' : 'was already'} suppressed: ${shown.stream}, ${shown.reason}`,
      );
    return null;
  });
}

interface ImportOptions {
  account: string;
  format: SuppressionFormat;
  json?: boolean;
}

async function importFile(context: CliContext, file: string, options: ImportOptions): Promise<void> {
  await requireReadable(null, file);
  await withList(context, options.account, async (suppressions) => {
    const bytes = createReadStream(file);
    const done = await importSuppressions(suppressions, options.account, bytes, options.format, BY);
    if (isRefusal(done)) return done;
    if (options.json === true) context.printJson(done);
    else
      context.print(
        [
          `${file} (${done.format}): ${done.rows} rows, ${done.created} created, ${done.unchanged} unchanged, ${done.rejected} rejected`,
          ...done.rejectedRows.map(({ line, reason }) => `  line ${line}: ${reason}`),
        ].join('\n'),
      );
    if (done.rejected > 0) context.partial();
    return null;
  });
}

async function remove(context: CliContext, email: string, options: RemoveOptions): Promise<void> {
  await withList(context, options.account, async (suppressions) => {
    const { account, stream, reason } = options;
    const removed = await suppressions.remove(
      account,
      {
        email,
        ...(stream === undefined ? {} : { stream }),
        ...(reason === undefined ? {} : { reason }),
      },
      { by: BY, note: options.note ?? null },
    );
    if (isRefusal(removed)) return removed;
    if (options.json === true) context.printJson(removed.map(presentSuppression));
    else context.print(removed.map((row) => `Removed for ${email}: ${row.stream}, ${row.reason}`).join('\n'));
    return null;
  });
}

/** Runs `work` with the suppression list of an account, and reports the refusal that it returns. */
async function withList(
  context: CliContext,
  accountId: string,
  work: (suppressions: SuppressionList) => Promise<Refusal | null> | Refusal | null,
): Promise<void> {
  const { tables, writer, clock, ids } = await context.open();
  if (tables.accounts.get(accountId) === null) return context.fail(`There is no account ${accountId}`);
  const onSuppressionChange = createStatusFollower(clock);
  const recorder = createRecorder({ clock, ids, onSuppressionChange });
  const refusal = await work(createSuppressionList({ tables, writer, clock, recorder, onSuppressionChange }));
  if (refusal !== null) context.refused(refusal);
}
