import { createReadStream } from 'node:fs';
import type { Command } from 'commander';
import { createStatusFollower } from '../../audience/standing.ts';
import { createRecorder } from '../../events/record.ts';
import { definedFields } from '../../http/api/fields.ts';
import { recipientIdentifier } from '../../mail/identifier.ts';
import { SUPPRESSION_REASONS, SUPPRESSION_STREAMS } from '../../store/suppressions.ts';
import type { MayAdd } from '../../store/tables.ts';
import { importSuppressions, SUPPRESSION_FORMATS } from '../../suppression/import.ts';
import { createSuppressionList, presentSuppression, type SuppressionList } from '../../suppression/list.ts';
import { asJson, createCommand, createGroup, noteMore, ofAccount, option, rowLimit } from '../command.ts';
import type { CliContext } from '../context.ts';
import { requireReadable } from '../input-files.ts';

/** Who changes the list, for the consent history and the removals. */
const BY = 'command line';

/** `postrider suppression list|add|import|remove`. */
export function suppressionCommand(context: CliContext): Command {
  return createGroup('suppression', 'Manage suppressions: addresses that an account must not send to', {
    help: `
Streams: tx (transactional), mk (marketing), all.

Examples:
  postrider suppression list --account acct_8f3k2m9x0q1z --reason hard_bounce
  postrider suppression add ada@example.net --account acct_8f3k2m9x0q1z --stream mk
  postrider suppression remove ada@example.net --account acct_8f3k2m9x0q1z`,
    commands: [
      createCommand(context, {
        usage: 'list',
        description: 'List the suppressions of an account, newest first',
        options: [
          ofAccount,
          option('--email <address>', 'only this address (or its identifier, email_<md5>)'),
          option('--stream <stream>', 'only this stream', { choices: SUPPRESSION_STREAMS }),
          option('--reason <reason>', 'only this reason', { choices: SUPPRESSION_REASONS }),
          rowLimit,
          asJson,
        ],
        run: async ({ account, email, stream, reason, limit }) => {
          const suppressions = await openSuppressions(context, account);
          const recipientHash = email === undefined ? undefined : recipientIdentifier(email);
          const { rows, more } = await suppressions.list({
            accountId: account,
            beforeSeq: null,
            limit,
            ...definedFields({ recipientHash, stream, reason }),
          });
          context.printRows(rows.map(presentSuppression), 'No suppression matches');
          if (more) noteMore(context, limit);
        },
      }),
      createCommand(context, {
        usage: 'add <email>',
        description: 'Add a suppression of an address (or of its identifier, email_<md5>)',
        options: [
          ofAccount,
          option('--stream <stream>', 'stream to which it applies', {
            choices: SUPPRESSION_STREAMS,
            default: 'all',
          }),
          option('--reason <reason>', 'reason', { choices: SUPPRESSION_REASONS, default: 'manual' }),
          asJson,
        ],
        run: async (email, { account, stream, reason }) => {
          const suppressions = await openSuppressions(context, account);
          const added = context.accepted(await suppressions.add(account, { email, stream, reason }, BY));
          const shown = presentSuppression(added.row);
          context.show(
            shown,
            () =>
              `${shown.email} ${added.created ? 'is' : 'was already'} suppressed: ${shown.stream}, ${shown.reason}`,
          );
        },
      }),
      createCommand(context, {
        usage: 'import <file>',
        description: 'Import suppressions from the CSV of another service, or from a list of addresses',
        options: [
          ofAccount,
          option('--format <format>', 'format of the file', {
            choices: SUPPRESSION_FORMATS,
            default: 'auto',
          }),
          asJson,
        ],
        run: async (file, { account, format }) => {
          await requireReadable(null, file);
          const suppressions = await openSuppressions(context, account);
          const done = context.accepted(
            await importSuppressions(suppressions, account, createReadStream(file), format, BY),
          );
          context.show(done, () => [
            `${file} (${done.format}): ${done.rows} rows, ${done.created} created, ${done.unchanged} unchanged, ${done.rejected} rejected`,
            ...done.rejectedRows.map(({ line, reason }) => `  line ${line}: ${reason}`),
          ]);
          if (done.rejected > 0) context.partial();
        },
      }),
      createCommand(context, {
        usage: 'remove <email>',
        description: 'Remove the suppressions of an address (or of its identifier, email_<md5>)',
        options: [
          ofAccount,
          option('--stream <stream>', 'only those of exactly this stream', { choices: SUPPRESSION_STREAMS }),
          option('--reason <reason>', 'only those for this reason', { choices: SUPPRESSION_REASONS }),
          option('--note <text>', 'why, for the history of the address'),
          asJson,
        ],
        help: `
Also removes opt-outs and complaints, unless --reason is given: do this only at the request of the recipient.`,
        run: async (email, { account, stream, reason, note = null }) => {
          const suppressions = await openSuppressions(context, account);
          const which = { email, ...definedFields({ stream, reason }) };
          const removed = context.accepted(await suppressions.remove(account, which, { by: BY, note }));
          context.show(removed.map(presentSuppression), () =>
            removed.map((row) => `Removed for ${email}: ${row.stream}, ${row.reason}`),
          );
        },
      }),
    ],
  }).alias('suppressions');
}

/** The suppressions of the command's database. `mayAdd`: the limit on their number; default: none, for the operator. */
export async function openSuppressions(
  context: CliContext,
  account: string,
  mayAdd?: MayAdd,
): Promise<SuppressionList> {
  const deps = await context.open({ account });
  const { clock, ids } = deps;
  const onSuppressionChange = createStatusFollower(clock);
  const recorder = createRecorder({ clock, ids }, { onSuppressionChange });
  return createSuppressionList(deps, { recorder, onSuppressionChange, ...definedFields({ mayAdd }) });
}
