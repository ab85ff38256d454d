import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/*
 * The kind of network of an address, by the IANA special-purpose address registries (RFC 6890) and the IPv6 address
 * space registry. A name or literal from an account may lead anywhere, such as to the operator's own network or the
 * credential service of a cloud machine.
 */

type Address = ReturnType<typeof ipaddr.process>;

/**
 * public: globally reachable unicast. private: any other address a connection could be made to, loopback included.
 * forbidden: never connected to, regardless of the configuration.
 */
export type AddressKind = 'public' | 'private' | 'forbidden';

/** The address in the text form of RFC 5952, so that two forms of an IPv6 address are equal. Throws when it is invalid. */
export function normalizeAddress(address: string): string {
  return ipaddr.parse(address).toString();
}

/** The IP address of the host of a parsed URL, in any notation; null: the host is a name. */
export function literalAddress(hostname: string): string | null {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return isIP(bare) === 0 ? null : bare;
}

/** A globally reachable unicast address. */
export function isPublic(address: string): boolean {
  return addressKind(address) === 'public';
}

/**
 * Link-local, cloud metadata, multicast and broadcast addresses, and invalid ones. An IPv6 address that embeds one of
 * them (mapped, NAT64, 6to4, Teredo) counts as the embedded address.
 */
export function isForbidden(address: string): boolean {
  return addressKind(address) === 'forbidden';
}

/** An address of this machine's loopback interface (RFC 1122 §3.2.1.3, RFC 4291 §2.5.3); false for an invalid one. */
export function isLoopback(address: string): boolean {
  return isIP(address) !== 0 && ipaddr.process(address).range() === 'loopback';
}

/** Accepts only standard notation: `127.1` and `0x7f.0.0.1` are invalid, and therefore forbidden. */
export function addressKind(address: string): AddressKind {
  const [bare = ''] = address.split('%', 1);
  return isIP(bare) === 0 ? 'forbidden' : kindOf(parse(bare));
}

/** ipaddr.js parses `::10.0.0.1` as an IPv4-mapped address; the URL parser interprets it as the system does. */
function parse(address: string): Address {
  return ipaddr.parse(address.includes(':') ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address);
}

/** The most restrictive kind of the address's own block and of its embedded IPv4 addresses. */
function kindOf(ip: Address): AddressKind {
  if (isMetadata(ip)) return 'forbidden';
  const block = BLOCKS.find(({ network: [base, bits] }) => base.kind() === ip.kind() && ip.match(base, bits));
  const own = block?.kind ?? (ip.kind() === 'ipv4' ? 'public' : 'private');
  const embedded = block?.embedded?.(ip.toByteArray()) ?? [];
  return embedded
    .map((bytes) => kindOf(ipaddr.fromByteArray(bytes)))
    .reduce((worst, kind) => (RANK[kind] > RANK[worst] ? kind : worst), own);
}

const RANK: Record<AddressKind, number> = { public: 0, private: 1, forbidden: 2 };

interface Block {
  network: readonly [Address, number];
  kind: AddressKind;
  /** The IPv4 addresses embedded in an IPv6 address of the block. */
  embedded?: (bytes: number[]) => number[][];
}

const lastFour = (bytes: number[]) => [bytes.slice(12)];

/** RFC 6052 §2.2: the position of the IPv4 address depends on the length of the translator's prefix. */
const translated = (bytes: number[]) => {
  const pick = (...at: number[]) => at.map((index) => bytes[index] ?? 0);
  return [pick(6, 7, 9, 10), pick(7, 9, 10, 11), pick(9, 10, 11, 12), pick(12, 13, 14, 15)];
};

/** The first match applies. IPv4 outside of these blocks is public; IPv6 is not. */
const BLOCKS: readonly Block[] = [
  block('0.0.0.0/8', 'private'), // "this network" (RFC 791 §3.2); 0.0.0.0 reaches this machine
  block('10.0.0.0/8', 'private'), // RFC 1918
  block('100.64.0.0/10', 'private'), // shared address space (RFC 6598)
  block('127.0.0.0/8', 'private'), // loopback (RFC 1122 §3.2.1.3)
  block('169.254.0.0/16', 'forbidden'), // link-local (RFC 3927)
  block('172.16.0.0/12', 'private'), // RFC 1918
  block('192.0.0.0/24', 'private'), // IETF protocol assignments (RFC 6890 §2.1)
  block('192.0.2.0/24', 'private'), // TEST-NET-1 (RFC 5737)
  block('192.31.196.0/24', 'private'), // AS112-v4 (RFC 7535)
  block('192.52.193.0/24', 'private'), // AMT (RFC 7450)
  block('192.88.99.0/24', 'private'), // 6to4 relay anycast, deprecated (RFC 7526)
  block('192.168.0.0/16', 'private'), // RFC 1918
  block('192.175.48.0/24', 'private'), // AS112 direct delegation (RFC 7534)
  block('198.18.0.0/15', 'private'), // benchmarking (RFC 2544)
  block('198.51.100.0/24', 'private'), // TEST-NET-2 (RFC 5737)
  block('203.0.113.0/24', 'private'), // TEST-NET-3 (RFC 5737)
  block('224.0.0.0/4', 'forbidden'), // multicast (RFC 5771)
  block('255.255.255.255/32', 'forbidden'), // limited broadcast (RFC 8190)
  block('240.0.0.0/4', 'private'), // reserved (RFC 1112 §4)

  block('::ffff:0:0/96', 'public', lastFour), // IPv4-mapped (RFC 4291 §2.5.5.2): the system uses IPv4
  block('::ffff:0:0:0/96', 'private', lastFour), // IPv4-translated (RFC 2765 §2.1)
  block('::/96', 'private', lastFour), // unspecified, loopback, IPv4-compatible (RFC 4291 §2.5.5.1)
  block('64:ff9b::/96', 'public', lastFour), // NAT64, the prefix of DNS64 (RFC 6052 §2.1)
  block('64:ff9b:1::/48', 'private', translated), // local-use NAT64 (RFC 8215)
  // Teredo (RFC 4380 §4): server, and the client with its bits inverted.
  block('2001::/32', 'private', (bytes) => [bytes.slice(4, 8), bytes.slice(12).map((byte) => byte ^ 0xff)]),
  block('2001::/23', 'private'), // IETF protocol assignments (RFC 2928): ORCHID, benchmarking, AMT, AS112
  block('2001:db8::/32', 'private'), // documentation (RFC 3849)
  block('2002::/16', 'private', (bytes) => [bytes.slice(2, 6)]), // 6to4 (RFC 3056 §2)
  block('2620:4f:8000::/48', 'private'), // AS112 direct delegation (RFC 7534)
  block('3fff::/20', 'private'), // documentation (RFC 9637)
  block('fe80::/10', 'forbidden'), // link-local (RFC 4291 §2.5.6)
  block('ff00::/8', 'forbidden'), // multicast (RFC 4291 §2.7)
  // The only block of global unicast addresses. Outside of it: 100::/64 (discard-only), 5f00::/16 (segment routing),
  // fc00::/7 (unique local), fec0::/10 (site-local), and unallocated blocks.
  block('2000::/3', 'public'),
];

function block(cidr: string, kind: AddressKind, embedded?: Block['embedded']): Block {
  return { network: ipaddr.parseCIDR(cidr), kind, ...(embedded === undefined ? {} : { embedded }) };
}

/** Metadata and credential services at addresses that are not link-local, from the clouds' documentation. */
const METADATA: readonly Address[] = [
  'fd00:ec2::254', // AWS
  'fd00:ec2::23', // AWS, credentials of EKS pods
  'fd20:ce::254', // Google Cloud
  'fd00:42::42', // Scaleway
  '100.100.100.200', // Alibaba Cloud
  '192.0.0.192', // Oracle Cloud
  '168.63.129.16', // Azure, in the middle of public space
].map(parse);

function isMetadata(ip: Address): boolean {
  return METADATA.some((known) => known.kind() === ip.kind() && known.toString() === ip.toString());
}
