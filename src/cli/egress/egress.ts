import type { Command } from 'commander';
import { egressOverview } from '../../delivery/egress-overview.ts';
import { asJson, createCommand, createGroup } from '../command.ts';
import type { CliContext } from '../context.ts';

/** `postrider egress list`: the source addresses. */
export function egressCommand(context: CliContext): Command {
  const list = createCommand(context, {
    usage: 'list',
    description: 'List the source addresses with warm-up, health and counts of today',
    options: [asJson],
    run: async () => {
      const { config, tables, clock } = await context.open();
      const { entries } = egressOverview({ config, tables }, clock.now());
      const empty = 'delivery.egress is empty: the system chooses the source address';
      context.printRows(entries, empty, ({ entry, address, proxy, pools, warmup, today, refusedBy }) => ({
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
      if (context.json) return;
      for (const { address, refusedBy } of entries)
        for (const { provider, since, nextProbeAt, reply } of refusedBy)
          context.print(
            `${provider} refuses ${address} since ${since}; next probe at ${nextProbeAt}: ${reply}`,
          );
    },
  });
  return createGroup('egress', 'Show the source addresses of mail', {
    help: `
The addresses are the entries of delivery.egress. Counts are those of today (UTC): attempts that a server of the provider
answered. "refused by" lists the providers that refuse the address: other addresses of its pools send to them, until the
provider accepts mail from the address again.

Examples:
  postrider egress list
  postrider egress list --json`,
    commands: [list],
  });
}
