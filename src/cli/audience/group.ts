import { Command } from 'commander';
import * as z from 'zod';
import { presentGroup } from '../../audience/present.ts';
import { isRefusal } from '../../core/refusal.ts';
import { line, lines } from '../../http/api/fields.ts';
import { parseInput } from '../../http/validation/parse.ts';
import type { CliContext } from '../context.ts';
import { noteMore, ROWS, rowLimit } from '../output/row-limit.ts';
import { withAudience } from './with-audience.ts';

/** `postrider group create|list`: subscription groups. */
export function groupCommand(context: CliContext): Command {
  const command = new Command('group').description('Manage subscription groups').addHelpText(
    'after',
    `
Examples:
  postrider group create --name Newsletter --account acct_8f3k2m9x0q1z
  postrider group list --account acct_8f3k2m9x0q1z`,
  );
  command
    .command('create')
    .description('Create a subscription group')
    .requiredOption('--account <id>', 'the account')
    .requiredOption('--name <name>', 'name, as recipients see it in List-Id')
    .option('--description <text>', 'for display')
    .option('--json', 'print JSON')
    .action((options: CreateOptions) => create(context, options));
  command
    .command('list')
    .description('List the subscription groups of an account, newest first')
    .requiredOption('--account <id>', 'the account')
    .option('--limit <n>', 'maximum number of rows', rowLimit, ROWS)
    .option('--json', 'print JSON')
    .action((options: ListOptions) => list(context, options));
  return command;
}

interface Options {
  account: string;
  json?: boolean;
}

interface CreateOptions extends Options {
  name: string;
  description?: string;
}

interface ListOptions extends Options {
  limit: number;
}

const inputSchema = z.object({ name: line(200), description: lines(2000).optional() });

async function create(context: CliContext, options: CreateOptions): Promise<void> {
  const input = parseInput(inputSchema, { name: options.name, description: options.description }, 'group');
  if (isRefusal(input)) return context.usage(input.message);
  await withAudience(context, options.account, async ({ groups }) => {
    const created = await groups.create(options.account, {
      name: input.name,
      description: input.description ?? null,
      isActive: true,
      tags: [],
      unsubscribeTemplateId: null,
      reportAbuseTemplateId: null,
      companyAddressTemplateId: null,
      signUp: null,
    });
    if (isRefusal(created)) return context.refused(created);
    context.printRecord({ ...presentGroup(created) }, { json: options.json === true });
  });
}

async function list(context: CliContext, { account, limit, json }: ListOptions): Promise<void> {
  await withAudience(context, account, async ({ groups }) => {
    const page = await groups.list({ accountId: account, beforeSeq: null, limit });
    const rows = page.rows.map(presentGroup);
    if (page.more) noteMore(context, limit);
    if (json === true) return context.printJson(rows);
    const columns = rows.map(
      ({ subscriptionGroupId, name, isActive, activeSubscribers, totalSubscribers }) => ({
        group: subscriptionGroupId,
        name,
        active: isActive,
        activeSubscribers,
        totalSubscribers,
      }),
    );
    context.printRows(columns, { json: false, empty: 'There are no subscription groups in this account' });
  });
}
