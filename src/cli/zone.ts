import { Command } from 'commander';
import { toZoneFile } from '../dns/zone-file.ts';
import { createDnsView } from '../domains/dns-view.ts';
import { platformOf } from '../domains/platform.ts';
import { platformZone } from '../domains/platform-zone.ts';
import type { CliContext } from './context.ts';
import { withResolver } from './domain-service.ts';

/** `postrider zone`: the platform's own records, ready to publish. */
export function zoneCommand(context: CliContext): Command {
  return new Command('zone')
    .description("the platform's own DNS records, on which all customers' records rely")
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Prints records with full names, in the form of a zone file: hosts, mail exchanger, SPF, tracking host, leave
for DMARC reports, and one DKIM key for the secondary lane of every domain. Print and publish them again after domains were added.

Examples:
  postrider zone > postrider.zone
  postrider zone --json`,
    )
    .action((options: { json?: boolean }) => printZone(context, options.json === true));
}

async function printZone(context: CliContext, json: boolean): Promise<void> {
  const house = await context.open();
  await withResolver(house, async (resolver) => {
    const keys = house.tables.dkimKeys.secondaryPublicKeys();
    const records = await platformZone(createDnsView(resolver), platformOf(house.config), keys);
    if (json) context.printJson(records);
    else context.print(toZoneFile(records).trimEnd());
  });
}
