import { createHash } from 'node:crypto';
import { isIP, isIPv6 } from 'node:net';
import { SECOND } from '../../core/clock.ts';
import { addressesOf, type DnsView } from '../../dns/dns-view.ts';
import { isWithin, reverseName } from '../../dns/names.ts';
import { serialDistance } from '../../dns/server/transfer.ts';
import { toZoneFile } from '../../dns/zone-file.ts';
import type { ZoneRecord } from '../../dns/zone-record.ts';
import type { Context } from '../../store/context.ts';
import type { ZoneKeyRow } from '../../store/domains/domains.ts';
import type { PlatformKeyRow } from '../../store/domains/platform-keys.ts';
import type { Tables } from '../../store/tables.ts';
import { slotHost } from '../key-slots.ts';
import { keyRecordName, keyRecordValue, revokedRecordValue } from '../keys.ts';
import { configuredAddresses, ownAddresses, sourceAddresses } from './egress-addresses.ts';
import {
  type NameServerSetting,
  type Platform,
  publicHost,
  spfHost,
  stsRecordHost,
  trackHost,
} from './platform.ts';
import { reportKeyRecord } from './report-key.ts';

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
 * NS: `authorityRecords`.
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

/*
 * SOA and NS of the platform's zone, for its own name server and its secondaries, and the delegation that the parent zone
 * needs.
 */

/** Seconds. */
const ZONE_TTL = 3600;
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
function servedAddresses(
  platform: Pick<Platform, 'hostname' | 'egress'>,
  { addresses }: NameServerSetting,
): readonly string[] {
  return addresses.length > 0 ? addresses : ownAddresses(platform);
}

/** An AAAA record for an IPv6 address, else an A record, with `ZONE_TTL`. */
function addressRecord(name: string, address: string): ZoneRecord {
  return { name, type: isIPv6(address) ? 'AAAA' : 'A', value: address, ttl: ZONE_TTL };
}

/** A mail address in the form of an SOA record (RFC 1035 §8). The setting excludes dots before the `@`. */
function mailboxName(address: string): string {
  return address.replace('@', '.');
}

/** DKIM keys in the platform's zone: those of domains, and those of the platform's own signature. */
export type ZoneKey =
  | Pick<ZoneKeyRow, 'alt_domain_id' | 'slot' | 'state' | 'public_key'>
  | Pick<PlatformKeyRow, 'selector' | 'state' | 'public_key'>;

/** Seconds; short, because keys are added, replaced and revoked. */
const KEY_TTL = 300;

/** The record of a key; that of a revoked key is empty (RFC 6376 §3.6.1). */
export function zoneKeyRecord(platform: Pick<Platform, 'hostname'>, key: ZoneKey): ZoneRecord {
  const name =
    'slot' in key
      ? slotHost(platform, key.alt_domain_id, key.slot)
      : keyRecordName({ domain: platform.hostname, selector: key.selector });
  const value = key.state === 'revoked' ? revokedRecordValue(key.public_key) : keyRecordValue(key.public_key);
  return { name, type: 'TXT', value, ttl: KEY_TTL };
}

/** All keys of the zone: for commands, not for the daemon. */
export function allZoneKeys(tables: Pick<Tables, 'dkimKeys' | 'platformKeys'>): ZoneKey[] {
  return [...tables.platformKeys.list(), ...tables.dkimKeys.zoneKeys()];
}

/*
 * The serial number of the platform's zone: the time in seconds of its last change, or one more than the number before.
 * It is on disk before it is served, so that it never decreases, also after a restart or a restore. The setting
 * `zone-serial` has the number and a SHA-256 hash of the content.
 */

interface StoredSerial {
  serial: number;
  content: string;
}

const SETTING = 'zone-serial';

/**
 * The serial number of the zone; a new one, when it is on disk, if `described`, a text with all of its content, has
 * changed.
 */
export async function zoneSerial(
  { tables, writer, clock }: Pick<Context, 'tables' | 'writer' | 'clock'>,
  described: string,
): Promise<number> {
  const content = createHash('sha256').update(described).digest('base64');
  const known = storedSerial(tables);
  if (known?.content === content) return known.serial;
  return writer.run((tx) => {
    const serial = nextSerial(storedSerial(tx)?.serial ?? null, clock.now());
    tx.settings.put(SETTING, JSON.stringify({ serial, content } satisfies StoredSerial));
    return serial;
  });
}

/** The serial number that `postrider zone` prints. */
function printedSerial(tables: Pick<Tables, 'settings'>, now: number): number {
  return storedSerial(tables)?.serial ?? nextSerial(null, now);
}

/** Larger than `before` in serial number arithmetic (RFC 1982). */
function nextSerial(before: number | null, now: number): number {
  const time = Math.floor(now / SECOND) >>> 0;
  if (before === null || serialDistance(time, before) > 0) return time;
  // Some servers do not accept zero.
  return (before + 1) >>> 0 || 1;
}

function storedSerial(tables: Pick<Tables, 'settings'>): StoredSerial | null {
  const value = tables.settings.get(SETTING);
  return value === null ? null : (JSON.parse(value) as StoredSerial); // only written above
}
