import { Command } from 'commander';
import * as z from 'zod';
import { createCampaigns, presentAnalytics, presentCampaign } from '../../campaigns/campaigns.ts';
import { isRefusal } from '../../core/refusal.ts';
import { line, lines } from '../../http/api/fields.ts';
import { parseInput } from '../../http/validation/parse.ts';
import type { CliContext } from '../context.ts';
import { noteMore, ROWS, rowLimit } from '../output/row-limit.ts';
import { fieldLines } from '../output/table.ts';
import { campaignSending, sendCampaignCommand } from './campaign-send.ts';

/** `postrider campaign create|list|show|send|pause|resume|cancel`. */
export function campaignCommand(context: CliContext): Command {
  const command = new Command('campaign')
    .description('Manage campaigns and send them to subscription groups')
    .addHelpText(
      'after',
      `
Examples:
  postrider campaign list --account acct_8f3k2m9x0q1z
  postrider campaign show campaign_1769860800000_9z1x3c5v7b2n --account acct_8f3k2m9x0q1z --json
  postrider campaign send campaign_1769860800000_9z1x3c5v7b2n --account acct_8f3k2m9x0q1z \\
    --group sgroup_1769860800000_5t7y9u1i3o5p --from "Example Shop <news@example.com>" \\
    --subject "Spring is here, {{firstName|dear reader}}" --html spring.html --per-hour 20000`,
    );
  command
    .command('create')
    .description('Create a campaign')
    .requiredOption('--account <id>', 'the account')
    .requiredOption('--name <name>', 'name of the campaign')
    .option('--description <text>', 'for display')
    .option('--json', 'print JSON')
    .action((options: CreateOptions) => create(context, options));
  command
    .command('list')
    .description('List the campaigns of an account, newest first')
    .requiredOption('--account <id>', 'the account')
    .option('--limit <n>', 'maximum number of rows', rowLimit, ROWS)
    .option('--json', 'print JSON')
    .action((options: ListOptions) => list(context, options));
  command
    .command('show <id>')
    .description('Show a campaign: progress, totals, daily counts, most clicked links')
    .requiredOption('--account <id>', 'the account')
    .option('--json', 'print JSON')
    .action((id: string, options: ShowOptions) => show(context, id, options));
  sendCampaignCommand(context, command);
  return command;
}

interface ShowOptions {
  account: string;
  json?: boolean;
}

interface CreateOptions extends ShowOptions {
  name: string;
  description?: string;
}

interface ListOptions extends ShowOptions {
  limit: number;
}

const inputSchema = z.object({ name: line(200), description: lines(2000).optional() });

async function create(context: CliContext, { account, json, ...options }: CreateOptions): Promise<void> {
  const input = parseInput(inputSchema, { name: options.name, description: options.description }, 'campaign');
  if (isRefusal(input)) return context.usage(input.message);
  const deps = await context.open();
  if (deps.tables.accounts.get(account) === null) return context.fail(`There is no account ${account}`);
  const { name, description = null } = input;
  const { campaigns: mayAdd } = deps.limits.mayAdd;
  const created = await createCampaigns({ ...deps, mayAdd }).create(account, { name, description });
  if (isRefusal(created)) return context.refused(created);
  context.printRecord({ ...presentCampaign(created) }, { json: json === true });
}

async function list(context: CliContext, { account, limit, json }: ListOptions): Promise<void> {
  const deps = await context.open();
  if (deps.tables.accounts.get(account) === null) return context.fail(`There is no account ${account}`);
  const { rows, more } = await createCampaigns(deps).list({ accountId: account, beforeSeq: null, limit });
  if (more) noteMore(context, limit);
  context.printRows(
    rows.map((row) => ({ ...presentCampaign(row) })),
    {
      json: json === true,
      empty: 'There are no campaigns in this account',
    },
  );
}

async function show(context: CliContext, id: string, { account, json }: ShowOptions): Promise<void> {
  const deps = await context.open();
  const campaigns = createCampaigns(deps);
  const campaign = campaigns.get(account, id);
  if (isRefusal(campaign)) return context.fail(campaign.message);
  const counted = await campaigns.analytics(account, id, { from: null, to: null, interval: 'day' });
  if (isRefusal(counted)) return context.fail(counted.message);
  const shown = presentCampaign(campaign);
  const { totals, series, links } = presentAnalytics(id, counted);
  const progress = campaignSending(deps).progress(campaign);
  if (json === true) {
    return context.printJson({ ...shown, ...(progress === null ? {} : { progress }), totals, series, links });
  }
  const { skipped, ...counts } = progress ?? {};
  context.print(
    [
      ...fieldLines(shown),
      ...(skipped === undefined ? [] : ['', ...fieldLines(counts), ...fieldLines(skipped)]),
      '',
      ...fieldLines(totals),
      ...(links.length === 0
        ? []
        : ['', ...links.map(({ url, clicks }) => `${String(clicks).padStart(8)}  ${url}`)]),
    ].join('\n'),
  );
}
