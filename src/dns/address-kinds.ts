import ipaddr from 'ipaddr.js';

/**
 * What kind of place an address is. A name or a literal that a stranger chose may lead anywhere: into the
 * operator's own network, or to the service that hands out a cloud machine's credentials.
 */
type Address = ReturnType<typeof ipaddr.process>;

/** A globally reachable unicast address; an IPv4 address in IPv6 clothes is judged as what it is. */
export function isPublic(address: string): boolean {
  const ip = parse(address);
  return ip?.range() === 'unicast' && !isMetadata(ip);
}

/**
 * Nobody's peer, whatever the operator allows: link-local and cloud-metadata addresses, multicast and
 * broadcast, and what is no address at all. An address that a translator would turn into one of them (NAT64,
 * 6to4) counts as that.
 */
export function isForbidden(address: string): boolean {
  const ip = parse(address);
  if (ip === null) return true;
  return [ip, translated(ip)].some(
    (candidate) => candidate !== null && (NEVER.has(candidate.range()) || isMetadata(candidate)),
  );
}

const NEVER: ReadonlySet<string> = new Set(['linkLocal', 'multicast', 'broadcast']);

/** Metadata services beside those at link-local addresses, as their clouds document them. */
const METADATA: readonly Address[] = [
  'fd00:ec2::254', // AWS
  'fd20:ce::254', // Google Cloud
  '100.100.100.200', // Alibaba Cloud
  '192.0.0.192', // Oracle Cloud
  '168.63.129.16', // Azure, in the middle of public space
].map((address) => ipaddr.process(address));

function isMetadata(ip: Address): boolean {
  return METADATA.some((known) => known.kind() === ip.kind() && known.toString() === ip.toString());
}

function parse(address: string): Address | null {
  return ipaddr.isValid(address) ? ipaddr.process(address) : null;
}

/** The IPv4 address that a NAT64 (RFC 6052 §2.1) or 6to4 (RFC 3056 §2) address stands for. */
function translated(ip: Address): Address | null {
  const bytes = ip.toByteArray();
  if (ip.range() === 'rfc6052') return ipaddr.fromByteArray(bytes.slice(12));
  if (ip.range() === '6to4') return ipaddr.fromByteArray(bytes.slice(2, 6));
  return null;
}
