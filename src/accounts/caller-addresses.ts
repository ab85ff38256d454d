import ipaddr from 'ipaddr.js';

/*
 * Addresses of callers: their canonical form, the networks of an allow-list, and the block that counts as one caller.
 * Headers and proxies are handled by the listeners.
 */

type Address = ipaddr.IPv4 | ipaddr.IPv6;

export interface Network {
  /** Canonical form: `192.0.2.0/24`. */
  text: string;
  contains(address: string): boolean;
  /** Whether it contains a whole network, given as for `parseNetwork`. */
  covers(network: string): boolean;
}

/**
 * The canonical form of an address, IPv4-mapped IPv6 as IPv4, without a zone; null when the text is not an address. Only
 * dotted-decimal IPv4 is accepted, not `127.1` or `0x7f.0.0.1`, which parsers interpret differently.
 */
export function canonicalAddress(text: string): string | null {
  return parseAddress(text)?.toString() ?? null;
}

function parseAddress(text: string): Address | null {
  const bare = text.split('%', 1)[0] ?? '';
  if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return ipaddr.IPv4.parse(bare);
  return ipaddr.IPv6.isValid(bare) ? ipaddr.process(bare) : null;
}

/** `192.0.2.7`, `192.0.2.0/24`, `2001:db8::/32`; null when it is neither an address nor a network. */
export function parseNetwork(text: string): Network | null {
  const match = /^([0-9a-fA-F:.]+)(?:\/(\d{1,3}))?$/.exec(text.trim());
  const base = parseAddress(match?.[1] ?? '');
  if (base === null) return null;
  const width = base.kind() === 'ipv4' ? 32 : 128;
  const bits = match?.[2] === undefined ? width : Number(match[2]);
  if (bits > width) return null;
  const contains = (address: string) => {
    const other = parseAddress(address);
    return other !== null && other.kind() === base.kind() && other.match(base, bits);
  };
  return {
    text: bits === width ? base.toString() : `${base.toString()}/${bits}`,
    contains,
    covers: (network) => {
      const other = parseNetwork(network);
      const [address = '', otherBits] = other?.text.split('/') ?? [];
      return contains(address) && (otherBits === undefined || Number(otherBits) >= bits);
    },
  };
}

/**
 * The block that one caller controls: an IPv4 address, or the /64 of an IPv6 one, because a single host may use
 * every address of its /64.
 */
export function callerBlock(address: string): string {
  const parsed = parseAddress(address);
  if (parsed === null || parsed.kind() === 'ipv4') return parsed?.toString() ?? address;
  return Buffer.from(parsed.toByteArray().slice(0, 8)).toString('hex');
}

/** A network of a caller, and how many times the connections of a single caller it may have. */
export interface CallerNetwork {
  network: string;
  share: number;
}

/**
 * The networks of a caller from the block that it controls to the largest one that it can plausibly obtain: /64, /56 and /48
 * of an IPv6 address, an IPv4 address and its /24. Many callers can share a /24 of a provider that translates addresses.
 */
export function callerNetworks(address: string): readonly CallerNetwork[] {
  const block = callerBlock(address);
  if (!/^[0-9a-f]{16}$/.test(block))
    return [
      { network: block, share: 1 },
      { network: callerNetwork(address), share: 8 },
    ];
  return [16, 14, 12].map((digits, index) => ({
    network: `${block.slice(0, digits)}/${4 * digits}`,
    share: 2 ** index,
  }));
}

/**
 * The network that one caller can plausibly obtain as a whole: the /24 of an IPv4 address, the /48 of an IPv6
 * one. Limits that must hold against a caller with many addresses count by it.
 */
export function callerNetwork(address: string): string {
  const parsed = parseAddress(address);
  if (parsed === null) return address;
  const prefix = parsed.kind() === 'ipv4' ? 3 : 6;
  const bytes = parsed.toByteArray().map((byte, index) => (index < prefix ? byte : 0));
  return `${ipaddr.fromByteArray(bytes).toString()}/${8 * prefix}`;
}
