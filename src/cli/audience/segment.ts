import type { Command } from 'commander';
import * as z from 'zod';
import { segmentFilter } from '../../audience/segments/filter.ts';
import { presentSegment } from '../../http/api/contacts/segments.ts';
import { resourceName } from '../../http/api/fields.ts';
import { parseInput } from '../../http/validation/parse.ts';
import { asJson, createCommand, createGroup, noteMore, ofAccount, option, rowLimit } from '../command.ts';
import { type CliContext, FAILED, USAGE } from '../context.ts';
import { readTextFile } from '../input-files.ts';
import { fieldLines } from '../output/table.ts';
import { openAudience } from './open-audience.ts';

const inputSchema = z.object({ name: resourceName, filter: segmentFilter });

/** `postrider segment create|list|show|delete`: saved filters over contacts. */
export function segmentCommand(context: CliContext): Command {
  return createGroup('segment', 'Manage segments: saved filters over contacts', {
    help: `
Examples:
  postrider segment create gold.json --name Gold --account acct_8f3k2m9x0q1z
  postrider segment list --account acct_8f3k2m9x0q1z
  postrider segment show segment_1769860800000_8r2t4y6u1i3o --account acct_8f3k2m9x0q1z`,
    commands: [
      createCommand(context, {
        usage: 'create <file>',
        description: 'Create a segment from a file with its filter as JSON',
        options: [ofAccount, option('--name <name>', 'unique in the account', { required: true }), asJson],
        help: `
For example { "field": "customFields.plan", "op": "is", "value": "gold" }; docs/segments.md lists the conditions.`,
        run: async (file, { account, name }) => {
          const filter = parseFilter(context, file);
          const input = context.accepted(parseInput(inputSchema, { name, filter }, 'segment'), USAGE);
          const { segments } = await openAudience(context, account);
          context.printRecord(presentSegment(context.accepted(await segments.create(account, input))));
        },
      }),
      createCommand(context, {
        usage: 'list',
        description: 'List the segments of an account, newest first',
        options: [ofAccount, rowLimit, asJson],
        run: async ({ account, limit }) => {
          const { segments } = await openAudience(context, account);
          const { rows, more } = await segments.list({ accountId: account, beforeSeq: null, limit }, true);
          if (more) noteMore(context, limit);
          context.printRows(rows.map(presentSegment), 'There are no segments in this account', [
            'segmentId',
            'name',
            'count',
            'updatedAt',
          ]);
        },
      }),
      createCommand(context, {
        usage: 'show <id>',
        description: 'Show a segment: its filter and the number of its contacts',
        options: [ofAccount, asJson],
        run: async (id, { account }) => {
          const { segments } = await openAudience(context, account);
          const segment = presentSegment(context.accepted(await segments.get(account, id), FAILED));
          const { filter, ...fields } = segment;
          context.show(segment, () => [
            ...fieldLines(fields),
            '',
            'filter:',
            JSON.stringify(filter, null, 2),
          ]);
        },
      }),
      createCommand(context, {
        usage: 'delete <id>',
        description: 'Delete a segment; its contacts remain',
        options: [ofAccount, asJson],
        run: async (id, { account }) => {
          const { segments } = await openAudience(context, account);
          const { segment_id: segmentId, name } = context.accepted(
            await segments.remove(account, id),
            FAILED,
          );
          context.show({ segmentId, name }, () => `Segment ${name} is deleted`);
        },
      }),
    ],
  }).alias('segments');
}

function parseFilter(context: CliContext, file: string): unknown {
  try {
    return JSON.parse(readTextFile(null, file));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return context.usage(`${file} is not JSON: ${error.message}`);
  }
}
