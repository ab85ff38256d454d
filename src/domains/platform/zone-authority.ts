import { isIPv6 } from 'node:net';
import { isWithin } from '../../dns/names.ts';
import type { ZoneRecord } from '../../dns/zone-record.ts';
import { ownAddresses } from './egress-addresses.ts';
import type { NameServerSetting, Platform } from './platform.ts';

/*
 * SOA and NS of the platform's zone, for its own name server and its secondaries, and the delegation that the parent zone
 * needs.
 */

/** Seconds. */
export const ZONE_TTL = 3600;
/** Seconds; also the TTL of negative answers (RFC 2308 §5), so that the record of a new domain is visible soon. */
const NEGATIVE_TTL = 60;
/** Secondaries are notified of changes; after a lost notification they query this often, in seconds. */
const REFRESH = 3600;
const RETRY = 600;
/** Seconds for which secondaries answer without the primary: two weeks (RIPE-203 recommends more than one). */
const EXPIRE = 1_209_600;

/** The records of the apex and of the name servers in the zone; [] without a name server. */
export function authorityRecords(platform: Platform, serial: number): ZoneRecord[] {
  const { hostname, nameServer } = platform;
  if (nameServer === null) return [];
  const servers = nameServersOf(platform);
  const [primary] = servers;
  const rname = mailboxName(nameServer.contact ?? `postmaster@${hostname}`);
  const times = [serial, REFRESH, RETRY, EXPIRE, NEGATIVE_TTL].join(' ');
  return [
    { name: hostname, type: 'SOA', value: `${primary?.name ?? hostname} ${rname} ${times}`, ttl: ZONE_TTL },
    ...servers.map(({ name }): ZoneRecord => ({ name: hostname, type: 'NS', value: name, ttl: ZONE_TTL })),
    ...glueRecords(platform),
  ];
}

/** The records for the parent zone: NS, and the addresses of name servers inside the zone (glue, RFC 1034 §4.2.1). */
export function delegationRecords(platform: Platform): ZoneRecord[] {
  if (platform.nameServer === null) return [];
  const names = nameServersOf(platform).map(
    ({ name }): ZoneRecord => ({ name: platform.hostname, type: 'NS', value: name, ttl: ZONE_TTL }),
  );
  return [...names, ...glueRecords(platform)];
}

function glueRecords(platform: Platform): ZoneRecord[] {
  return nameServersOf(platform).flatMap(({ name, addresses }) =>
    // The host name has its addresses among the records of the platform.
    isWithin(name, platform.hostname) && name !== platform.hostname
      ? addresses.map((address) => addressRecord(name, address))
      : [],
  );
}

/** The configured name servers, else `ns1` of the zone alone. */
export function nameServersOf(platform: Platform): { name: string; addresses: readonly string[] }[] {
  const { hostname, nameServer } = platform;
  if (nameServer === null) return [];
  if (nameServer.nameServers.length > 0) return [...nameServer.nameServers];
  return [{ name: `ns1.${hostname}`, addresses: servedAddresses(platform, nameServer) }];
}

/** The addresses of the host name that our name server serves. DNS is not queried: it has only what this server serves. */
export function servedAddresses(
  platform: Pick<Platform, 'hostname' | 'egress'>,
  { addresses }: NameServerSetting,
): readonly string[] {
  return addresses.length > 0 ? addresses : ownAddresses(platform);
}

/** An AAAA record for an IPv6 address, else an A record, with `ZONE_TTL`. */
export function addressRecord(name: string, address: string): ZoneRecord {
  return { name, type: isIPv6(address) ? 'AAAA' : 'A', value: address, ttl: ZONE_TTL };
}

/** A mail address in the form of an SOA record (RFC 1035 §8). The setting excludes dots before the `@`. */
function mailboxName(address: string): string {
  return address.replace('@', '.');
}
