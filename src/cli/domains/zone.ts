import { Command } from 'commander';
import { createDnsView } from '../../dns/dns-view.ts';
import { platformOf } from '../../domains/platform/platform.ts';
import { platformNotes } from '../../domains/platform/platform-zone.ts';
import { printedZone } from '../../domains/platform/printed-zone.ts';
import type { CliContext } from '../context.ts';
import {
  type FormatOptions,
  outputFormat,
  platformZoneFile,
  platformZoneTable,
  type RecordFormat,
  recordFormat,
} from './record-output.ts';
import { withResolver } from './with-domains.ts';

/** `postrider zone`: the DNS records of the platform. */
export function zoneCommand(context: CliContext): Command {
  return new Command('zone')
    .description('Print the DNS records of the platform, which the records of all sending domains refer to')
    .option('--format <format>', 'bind (default), json or table', recordFormat)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Prints records with full names: hosts, mail exchanger, SPF, tracking host, permission for DMARC reports, DKIM keys of
the platform and of the secondary lane of every domain, and reverse DNS (PTR) of the source addresses, which are
comments in a zone file because they belong to other zones. Publish the records again after adding domains.

With dns.server.listen, the daemon serves these records itself: publish only the delegation, which is printed first.

Examples:
  postrider zone > postrider.zone
  postrider zone --format table
  postrider zone --json`,
    )
    .action((options: FormatOptions) => printZone(context, outputFormat(options, 'bind')));
}

async function printZone(context: CliContext, format: RecordFormat): Promise<void> {
  const deps = await context.open();
  await withResolver(deps, async (resolver) => {
    const platform = platformOf(deps.config);
    const records = await printedZone(createDnsView(resolver), platform, deps.tables, deps.clock.now());
    const notes = platformNotes(platform, records);
    if (format === 'json') context.printJson(records);
    else context.print((format === 'bind' ? platformZoneFile : platformZoneTable)(records, notes));
  });
}
