import { Command } from 'commander';
import { egressOverview } from '../../delivery/egress-overview.ts';
import type { CliContext } from '../context.ts';

/** `postrider egress list`: the source addresses. */
export function egressCommand(context: CliContext): Command {
  const command = new Command('egress').description('Show the source addresses of mail').addHelpText(
    'after',
    `
The addresses are the entries of delivery.egress. Counts are those of today (UTC): attempts that a server of the provider
answered. "refused by" lists the providers that refuse the address: other addresses of its pools send to them, until the
provider accepts mail from the address again.

Examples:
  postrider egress list
  postrider egress list --json`,
  );
  command
    .command('list')
    .description('List the source addresses with warm-up, health and counts of today')
    .option('--json', 'print JSON')
    .action((options: { json?: boolean }) => list(context, options.json === true));
  return command;
}

async function list(context: CliContext, json: boolean): Promise<void> {
  const { config, tables, clock } = await context.open();
  const { entries } = egressOverview({ config, tables, now: clock.now() });
  const empty = 'delivery.egress is empty: the system chooses the source address';
  if (json)
    return context.printRows(
      entries.map((entry) => ({ ...entry })),
      { json, empty },
    );
  const rows = entries.map(({ entry, address, proxy, pools, warmup, today, refusedBy }) => ({
    entry,
    address,
    via: proxy ?? '',
    pools: pools.join(', '),
    warmup: warmup ?? '',
    sent: today.sent,
    delivered: today.delivered,
    throttled: today.throttled,
    refused: today.refused,
    complaints: today.complained,
    'refused by': refusedBy.map(({ provider }) => provider).join(', '),
  }));
  context.printRows(rows, { json, empty });
  for (const { address, refusedBy } of entries)
    for (const { provider, since, nextProbeAt, reply } of refusedBy)
      context.print(`${provider} refuses ${address} since ${since}; next probe at ${nextProbeAt}: ${reply}`);
}
