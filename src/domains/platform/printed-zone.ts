import type { DnsView } from '../../dns/dns-view.ts';
import type { ZoneRecord } from '../../dns/zone-record.ts';
import type { Tables } from '../../store/tables.ts';
import { printedSerial } from '../name-server/serial.ts';
import type { Platform } from './platform.ts';
import { platformZone } from './platform-zone.ts';
import { reportKeyRecord } from './report-key.ts';
import { authorityRecords } from './zone-authority.ts';
import { allZoneKeys } from './zone-keys.ts';

/** The whole zone, as `postrider zone` prints it and the name server answers: SOA and NS, hosts, keys, PTR. */
export async function printedZone(
  view: DnsView,
  platform: Platform,
  tables: Pick<Tables, 'settings' | 'dkimKeys' | 'platformKeys'>,
  now: number,
): Promise<ZoneRecord[]> {
  return [
    ...authorityRecords(platform, printedSerial(tables, now)),
    ...(await platformZone(view, platform, allZoneKeys(tables), reportKeyRecord(tables, platform.hostname))),
  ];
}
