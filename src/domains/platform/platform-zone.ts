import { isIP, isIPv6 } from 'node:net';
import { addressesOf, type DnsView } from '../../dns/dns-view.ts';
import { isWithin, reverseName } from '../../dns/names.ts';
import { toZoneFile } from '../../dns/zone-file.ts';
import type { ZoneRecord } from '../../dns/zone-record.ts';
import type { Tables } from '../../store/tables.ts';
import { configuredAddresses, ownAddresses, sourceAddresses } from './egress-addresses.ts';
import { type Platform, publicHost, spfHost, stsRecordHost, trackHost } from './platform.ts';
import { reportKeyRecord } from './report-key.ts';
import {
  addressRecord,
  authorityRecords,
  delegationRecords,
  nameServersOf,
  servedAddresses,
  ZONE_TTL,
} from './zone-authority.ts';
import { allZoneKeys, type ZoneKey, zoneKeyRecord } from './zone-keys.ts';
import { printedSerial } from './zone-serial.ts';

/* The platform's own records, which the records of all domains refer to; `postrider zone` prints them. */

/** Notes for the operator on what the records alone do not show. */
export function platformNotes(platform: Platform, records: readonly ZoneRecord[]): string[] {
  const { hostname, egress, nameServer } = platform;
  const notes: string[] = [];
  if (nameServer !== null) {
    notes.push(
      `The daemon serves this zone (dns.server). Publish only its delegation, in the zone above ${hostname}:`,
      ...toZoneFile(delegationRecords(platform)).trimEnd().split('\n'),
    );
  }
  if (!records.some(({ name, type }) => name === hostname && (type === 'A' || type === 'AAAA'))) {
    notes.push(
      `The addresses of ${hostname} are not known: DNS has none, and no entry of delivery.egress names one. ${platform.nameServer === null ? 'Publish its A and AAAA records, or set address, address6 or publicAddress there.' : 'Set dns.server.addresses.'}`,
    );
  }
  const pointers = records.filter(({ type }) => type === 'PTR');
  if (pointers.length > 0) {
    notes.push(
      'PTR records belong to the zone of the address, which the hosting provider serves: set them in its control panel.',
    );
  }
  if (egress.some(({ address, publicAddress }) => publicAddress === undefined && address === undefined)) {
    notes.push('Source addresses that the system chooses are not listed: set delivery.egress to name them.');
  }
  return notes;
}

/**
 * The records in order: hosts, SPF, the id of the MTA-STS policy, the keys of domains, the key of TLS reports, PTR. SOA and
 * NS are in zone-authority.ts.
 */
export async function platformZone(
  view: DnsView,
  platform: Platform,
  keys: readonly ZoneKey[],
  reportKey: { name: string; value: string } | null = null,
): Promise<ZoneRecord[]> {
  const { hostname } = platform;
  const addresses = await hostAddresses(view, platform);
  return [
    ...addresses.map((address) => addressRecord(hostname, address)),
    ...trackRecords(platform, addresses),
    ...pagesRecords(platform, addresses),
    { name: hostname, type: 'MX', value: hostname, ttl: ZONE_TTL, priority: 10 },
    // The platform's own return path is the host name itself, whose SPF receivers evaluate.
    txt(hostname, `v=spf1 include:${spfHost(platform)} ~all`),
    txt(spfHost(platform), `v=spf1 ${spfTerms(platform).join(' ')} ~all`),
    // Authorizes reports on domains whose DMARC record has `dmarc@<hostname>` (RFC 9990 §4). Reports to the return path
    // of the domain itself need no authorization.
    txt(`*._report._dmarc.${hostname}`, 'v=DMARC1'),
    ...(platform.stsPolicy === null
      ? []
      : [txt(stsRecordHost(platform), `v=STSv1; id=${platform.stsPolicy.id}`)]),
    ...keys.map((key) => zoneKeyRecord(platform, key)),
    ...(reportKey === null ? [] : [txt(reportKey.name, reportKey.value)]),
    ...egressHostRecords(platform),
    ...pointerRecords(platform, addresses),
  ];
}

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

/** The EHLO names of egress entries, each with its addresses and SPF (RFC 7208 §2.3). */
function egressHostRecords({ hostname, egress }: Platform): ZoneRecord[] {
  return egress.flatMap((entry) => {
    const name = entry.hostname;
    const addresses = configuredAddresses(entry);
    if (name === undefined || name === hostname || addresses.length === 0) return [];
    return [...addresses.map((address) => addressRecord(name, address)), txt(name, 'v=spf1 a -all')];
  });
}

/** Reverse DNS of every source address, to its name in EHLO (RFC 1912 §2.1). */
function pointerRecords(platform: Platform, hostAddresses: readonly string[]): ZoneRecord[] {
  return sourceAddresses(platform, hostAddresses).map(({ address, name }) => ({
    name: reverseName(address),
    type: 'PTR',
    value: name,
    ttl: ZONE_TTL,
  }));
}

/**
 * The addresses of the host name: those that our name server serves; without one those in DNS, because there may be a NAT
 * or a proxy, else the addresses that mail under the host name is sent from.
 */
async function hostAddresses(view: DnsView, platform: Platform): Promise<readonly string[]> {
  const { hostname, nameServer } = platform;
  if (nameServer !== null) return servedAddresses(platform, nameServer);
  const known = await addressesOf(view, hostname);
  return known.kind === 'records' ? known.records : ownAddresses(platform);
}

/**
 * The addresses of the host of `public.url` below the host name. Where our name server serves the zone, no other server
 * can publish them.
 */
function pagesRecords(platform: Platform, addresses: readonly string[]): ZoneRecord[] {
  const { hostname, nameServer } = platform;
  const name = publicHost(platform);
  if (nameServer === null || name === null || !isWithin(name, hostname)) return [];
  const elsewhere = [
    hostname,
    trackHost(platform),
    ...nameServersOf(platform).map((server) => server.name),
    ...egressHostRecords(platform).map((record) => record.name),
  ];
  return elsewhere.includes(name) ? [] : addresses.map((address) => addressRecord(name, address));
}

/** The link host leads to the host of `public.url`, if that is another name; else to the platform itself. */
function trackRecords(platform: Platform, addresses: readonly string[]): ZoneRecord[] {
  const name = trackHost(platform);
  const { hostname } = new URL(platform.publicUrl);
  const elsewhere =
    ![name, platform.hostname, 'localhost'].includes(hostname) &&
    isIP(hostname.replace(/^\[|\]$/g, '')) === 0;
  if (elsewhere) return [{ name, type: 'CNAME', value: hostname, ttl: ZONE_TTL }];
  if (addresses.length === 0) return [{ name, type: 'CNAME', value: platform.hostname, ttl: ZONE_TTL }];
  return addresses.map((address) => addressRecord(name, address));
}

/**
 * The senders: configured addresses, the platform's own name for entries without one, and the include of the secondary
 * lane's relay.
 */
function spfTerms({ hostname, egress, secondary }: Platform): string[] {
  const sets = egress.map(configuredAddresses);
  const addresses = new Set(sets.flat());
  const terms = [...addresses].map((address) => (isIPv6(address) ? `ip6:${address}` : `ip4:${address}`));
  if (sets.length === 0 || sets.some((set) => set.length === 0)) terms.push(`a:${hostname}`);
  if (secondary.type === 'relay' && secondary.spfInclude !== undefined)
    terms.push(`include:${secondary.spfInclude}`);
  return terms;
}

function txt(name: string, value: string): ZoneRecord {
  return { name, type: 'TXT', value, ttl: ZONE_TTL };
}
