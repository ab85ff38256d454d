import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { canonicalAddress, type Network, parseNetwork } from '../accounts/caller-addresses.ts';
import { ConfigFault } from '../config/load.ts';
import { memoized } from '../core/memoized.ts';
import { isLoopback } from '../dns/address-kinds.ts';
import type { CallerAddress } from './route.ts';

/**
 * The address of the client of a request. X-Forwarded-For is read from the right: the first address that is not one of
 * the operator's trusted proxies is the client. The client may have written anything further left.
 */
export type CallerAddressOf = (req: Pick<IncomingMessage, 'headers' | 'socket'>) => CallerAddress;

/** Header fields that a proxy adds. */
const FORWARDING = [
  'x-forwarded-for',
  'forwarded',
  'x-real-ip',
  'x-forwarded-host',
  'x-forwarded-proto',
  'via',
];
/** Entries of X-Forwarded-For that are read. */
const MAX_HOPS = 20;

/** `setting` names the list in errors. Throws ConfigFault when an entry is neither an address nor a network. */
export function parseTrust(trustedProxies: readonly string[], setting: string): Network[] {
  return trustedProxies.map((text): Network => {
    const network = parseNetwork(text);
    if (network === null) {
      throw new ConfigFault('the configuration', [
        { key: setting, message: `"${text}" is not an address or a network` },
      ]);
    }
    return network;
  });
}

/**
 * Returns whether an address is a trusted proxy. The list is read at each use: a reload replaces it. Throws as
 * `parseTrust` does.
 */
export function createTrust(
  trustedProxies: () => readonly string[],
  setting: string,
): (address: string) => boolean {
  const trusted = memoized(trustedProxies, (list) => parseTrust(list, setting));
  trusted();
  return (address) => trusted().some((network) => network.contains(address));
}

/** Throws as `createTrust` does. */
export function createCallerAddresses(
  trustedProxies: () => readonly string[],
  setting: string,
): CallerAddressOf {
  const isTrusted = createTrust(trustedProxies, setting);
  return (req) => {
    const peer = plain(req.socket.remoteAddress ?? '');
    if (!isForwarded(req.headers)) return { address: peer, forwarded: false };
    let address = peer;
    const hops = forwardedFor(req.headers);
    while (isTrusted(address)) {
      const hop = hops.pop();
      const next = hop === undefined ? null : canonicalAddress(withoutPort(hop));
      // No further entry, or not an address: the last known hop counts as the client.
      if (next === null) break;
      address = next;
    }
    return { address, forwarded: true };
  };
}

/** Whether the client is on this machine; a request forwarded by a proxy on this machine is not. */
export function isLocal(from: CallerAddress): boolean {
  return !from.forwarded && isLoopback(from.address);
}

/** Whether a proxy states that it forwarded the request. */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  return FORWARDING.some((name) => headers[name] !== undefined);
}

function forwardedFor(headers: IncomingHttpHeaders): string[] {
  const value = headers['x-forwarded-for'];
  const text = Array.isArray(value) ? value.join(',') : (value ?? '');
  return text
    .split(',')
    .slice(-MAX_HOPS)
    .map((hop) => hop.trim());
}

/** Some proxies write `192.0.2.1:4711` and `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(hop)?.[1] ?? hop;
}

/** The address of the socket; dual-stack listeners report IPv4 clients as ::ffff:a.b.c.d. */
function plain(remote: string): string {
  return remote.includes(':') ? (canonicalAddress(remote) ?? remote) : remote;
}
