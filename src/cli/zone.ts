import { Command } from 'commander';
import { createDnsView } from '../dns/dns-view.ts';
import { platformOf } from '../domains/platform/platform.ts';
import { platformNotes, platformZone } from '../domains/platform/platform-zone.ts';
import type { CliContext } from './context.ts';
import { withResolver } from './domain-service.ts';
import {
  type FormatOptions,
  formatOf,
  platformZoneFile,
  platformZoneTable,
  type RecordFormat,
  recordFormat,
} from './record-output.ts';

/** `postrider zone`: the platform's own records, ready to publish. */
export function zoneCommand(context: CliContext): Command {
  return new Command('zone')
    .description("the platform's own DNS records, on which all customers' records rely")
    .option('--format <format>', 'bind (default), json or table', recordFormat)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Prints records with full names: hosts, mail exchanger, SPF, tracking host, permission for DMARC reports, one DKIM
key for the secondary lane of every domain, and reverse DNS (PTR) of the source addresses, which a zone file can
only show as comments. Print and publish them again after adding domains.

Examples:
  postrider zone > postrider.zone
  postrider zone --format table
  postrider zone --json`,
    )
    .action((options: FormatOptions) => printZone(context, formatOf(options, 'bind')));
}

async function printZone(context: CliContext, format: RecordFormat): Promise<void> {
  const house = await context.open();
  await withResolver(house, async (resolver) => {
    const keys = house.tables.dkimKeys.secondaryPublicKeys();
    const platform = platformOf(house.config);
    const records = await platformZone(createDnsView(resolver), platform, keys);
    const notes = platformNotes(platform, records);
    if (format === 'json') context.printJson(records);
    else context.print((format === 'bind' ? platformZoneFile : platformZoneTable)(records, notes));
  });
}
