import type { Command } from 'commander';
import type { Refusal } from '../../core/refusal.ts';
import { definedFields } from '../../http/api/fields.ts';
import { partialInput } from '../../http/api/partials.ts';
import { parseInput } from '../../http/validation/parse.ts';
import type { PartialRow } from '../../store/partials.ts';
import { createPartials, type Partials, presentPartial } from '../../templates/partials.ts';
import { createTemplateThreads } from '../../templates/thread/threads.ts';
import { asJson, createCommand, createGroup, noteMore, ofAccount, option, rowLimit } from '../command.ts';
import { type CliContext, FAILED, USAGE } from '../context.ts';
import { readTextFile } from '../input-files.ts';

const contentOptions = [
  ofAccount,
  asJson,
  option('--name <name>', 'what templates refer to: letters, digits, "-" and "_"'),
  option('--html <file>', 'file with the HTML, in Liquid'),
] as const;

/** `postrider partial list|show|create|update|delete`. */
export function partialCommand(context: CliContext): Command {
  return createGroup('partial', 'Manage partials: html that templates in Liquid share', {
    help: `
Examples:
  postrider partial create --account acct_8f3k2m9x0q1z --name header --html header.html
  postrider partial update partial_1769860800000_4k2m9x7q1zab --account acct_8f3k2m9x0q1z --html header.html`,
    commands: [
      createCommand(context, {
        usage: 'list',
        description: 'List the partials of an account, newest first',
        options: [ofAccount, asJson, rowLimit],
        run: async ({ account, limit }) => {
          const partials = await openPartials(context, account);
          const page = await partials.list({ accountId: account, beforeSeq: null, limit });
          if (page.more) noteMore(context, limit);
          context.printRows(
            page.rows.map(presentPartial),
            'There are no partials in this account',
            ({ partialId, name, bytes, updatedAt }) => ({ partial: partialId, name, bytes, updatedAt }),
          );
        },
      }),
      createCommand(context, {
        usage: 'show <id>',
        description: 'Show a partial with its html',
        options: [ofAccount, asJson],
        run: (id, { account }) => print(context, account, async (partials) => partials.get(account, id)),
      }),
      createCommand(context, {
        usage: 'create',
        description: 'Create a partial; --name and --html are required',
        options: contentOptions,
        run: async ({ account, name, html }) => {
          if (name === undefined || html === undefined) context.usage('--name and --html are required');
          const fields = { name, html: readTextFile('--html', html) };
          const input = context.accepted(parseInput(partialInput, fields, 'partial'), USAGE);
          await print(context, account, (partials) => partials.create(account, input));
        },
      }),
      createCommand(context, {
        usage: 'update <id>',
        description: 'Update the given fields of a partial',
        options: contentOptions,
        run: async (id, { account, name, html }) => {
          const fields = definedFields({
            name,
            html: html === undefined ? undefined : readTextFile('--html', html),
          });
          if (Object.keys(fields).length === 0)
            context.usage('Nothing to change: specify at least one option');
          const input = context.accepted(parseInput(partialInput.partial(), fields, 'partial'), USAGE);
          await print(context, account, (partials) => partials.update(account, id, definedFields(input)));
        },
      }),
      createCommand(context, {
        usage: 'delete <id>',
        description: 'Delete a partial that nothing uses',
        options: [ofAccount, asJson],
        run: (id, { account }) => print(context, account, (partials) => partials.remove(account, id)),
      }),
    ],
  });
}

async function openPartials(context: CliContext, account: string): Promise<Partials> {
  const deps = await context.open({ account });
  return createPartials(deps, createTemplateThreads(deps.log));
}

async function print(
  context: CliContext,
  account: string,
  work: (partials: Partials) => Promise<PartialRow | Refusal>,
): Promise<void> {
  const row = context.accepted(await work(await openPartials(context, account)), FAILED);
  context.printRecord({ ...presentPartial(row), html: row.html });
}
