import { Command } from 'commander';
import { isRefusal } from '../core/refusal.ts';
import { createCampaigns, shownAnalytics, shownCampaign } from '../sending/campaigns.ts';
import { campaignSending, sendCampaignCommand } from './campaign-send.ts';
import type { CliContext } from './context.ts';
import { ROWS, rowLimit } from './row-limit.ts';

/** `postrider campaign list|show|send|pause|resume|cancel`: campaigns, their way, and what became of their mail. */
export function campaignCommand(context: CliContext): Command {
  const command = new Command('campaign')
    .description('look at campaigns, send them to a subscription group, hold them up')
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
    .command('list')
    .description('campaigns of an account, newest first')
    .requiredOption('--account <id>', 'the account')
    .option('--limit <n>', 'rows at most', rowLimit, ROWS)
    .option('--json', 'print JSON')
    .action((options: ListOptions) => list(context, options));
  command
    .command('show <id>')
    .description('one campaign: how far it has come, its totals, its days, its most clicked links')
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

interface ListOptions extends ShowOptions {
  limit: number;
}

async function list(context: CliContext, { account, limit, json }: ListOptions): Promise<void> {
  const house = await context.open();
  if (house.tables.accounts.get(account) === null) return context.fail(`there is no account ${account}`);
  const { rows } = createCampaigns(house).list({ accountId: account, beforeSeq: null, limit });
  context.printRows(
    rows.map((row) => ({ ...shownCampaign(row) })),
    {
      json: json === true,
      empty: 'there are no campaigns in this account',
    },
  );
}

async function show(context: CliContext, id: string, { account, json }: ShowOptions): Promise<void> {
  const house = await context.open();
  const campaigns = createCampaigns(house);
  const campaign = campaigns.get(account, id);
  if (isRefusal(campaign)) return context.fail(campaign.message);
  const counted = campaigns.analytics(account, id, { from: null, to: null, interval: 'day' });
  if (isRefusal(counted)) return context.fail(counted.message);
  const shown = shownCampaign(campaign);
  const { totals, series, links } = shownAnalytics(id, counted);
  const progress = campaignSending(house).progress(campaign);
  if (json === true) {
    return context.printJson({ ...shown, ...(progress === null ? {} : { progress }), totals, series, links });
  }
  const { skipped, ...way } = progress ?? {};
  context.print(
    [
      ...lines(shown),
      ...(skipped === undefined ? [] : ['', ...lines(way), ...lines(skipped)]),
      '',
      ...lines(totals),
      ...(links.length === 0
        ? []
        : ['', ...links.map(({ url, clicks }) => `${String(clicks).padStart(8)}  ${url}`)]),
    ].join('\n'),
  );
}

function lines(record: object): string[] {
  return Object.entries(record).map(([name, value]) => `${name.padEnd(20)} ${value ?? '-'}`);
}
