import type { Command } from 'commander';
import { createDnsView } from '../../dns/dns-view.ts';
import { platformOf } from '../../domains/platform/platform.ts';
import { platformNotes, printedZone } from '../../domains/platform/platform-zone.ts';
import { asJson, createCommand, option } from '../command.ts';
import type { CliContext } from '../context.ts';
import { platformZoneFile, platformZoneTable, recordFormat } from './record-output.ts';

/** `postrider zone`: the DNS records of the platform. */
export function zoneCommand(context: CliContext): Command {
  return createCommand(context, {
    usage: 'zone',
    description: 'Print the DNS records of the platform, which the records of all sending domains refer to',
    options: [option('--format <format>', 'bind (default), json or table', { parse: recordFormat }), asJson],
    help: `
Prints records with full names: hosts, mail exchanger, SPF, tracking host, permission for DMARC reports, DKIM keys of
the platform and of the secondary lane of every domain, and reverse DNS (PTR) of the source addresses, which are
comments in a zone file because they belong to other zones. Publish the records again after adding domains.

With dns.server.listen, the daemon serves these records itself: publish only the delegation, which is printed first.

Examples:
  postrider zone > postrider.zone
  postrider zone --format table
  postrider zone --json`,
    run: async ({ format = context.json ? 'json' : 'bind' }) => {
      const { config, tables, clock, createResolver } = await context.open();
      const platform = platformOf(config);
      const records = await printedZone(createDnsView(createResolver()), platform, tables, clock.now());
      const notes = platformNotes(platform, records);
      if (format === 'json') context.printJson(records);
      else context.print((format === 'bind' ? platformZoneFile : platformZoneTable)(records, notes));
    },
  });
}
