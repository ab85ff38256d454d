import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { canonicalAddress, isLoopback, type Network, parseNetwork } from '../accounts/caller-addresses.ts';
import { ConfigFault } from '../config/load.ts';
import type { CallerAddress } from './route.ts';

/**
 * Where a request comes from. X-Forwarded-For is believed only as far as proxies that the operator named
 * wrote it: it is read from the right, and the first address that is no such proxy is the caller. Anything
 * further left was written by the caller itself.
 */
export type CallerAddressOf = (req: Pick<IncomingMessage, 'headers' | 'socket'>) => CallerAddress;

/** Fields that show that somebody passed the request on. */
const FORWARDING = [
  'x-forwarded-for',
  'forwarded',
  'x-real-ip',
  'x-forwarded-host',
  'x-forwarded-proto',
  'via',
];
/** A chain longer than this is no chain of proxies. */
const MAX_HOPS = 20;

/**
 * Which addresses are proxies to be believed. `setting` names the list in a complaint. Throws ConfigFault when
 * an entry is neither an address nor a network: a start with a hole in the fence is no start.
 */
export function createTrust(
  trustedProxies: readonly string[],
  setting: string,
): (address: string) => boolean {
  const trusted = trustedProxies.map((text): Network => {
    const network = parseNetwork(text);
    if (network === null) {
      throw new ConfigFault('the configuration', [`${setting}: "${text}" is not an address or a network`]);
    }
    return network;
  });
  return (address) => trusted.some((network) => network.contains(address));
}

/** As `createTrust`, from whose answers the caller's address follows. */
export function createCallerAddresses(trustedProxies: readonly string[], setting: string): CallerAddressOf {
  const isTrusted = createTrust(trustedProxies, setting);
  return (req) => {
    const peer = plain(req.socket.remoteAddress ?? '');
    if (!isForwarded(req.headers)) return { address: peer, forwarded: false };
    let address = peer;
    const hops = forwardedFor(req.headers);
    while (isTrusted(address)) {
      const hop = hops.pop();
      const next = hop === undefined ? null : canonicalAddress(withoutPort(hop));
      // Nothing more, or something that is no address: the nearest known hop stands for the caller.
      if (next === null) break;
      address = next;
    }
    return { address, forwarded: true };
  };
}

/** A caller on this machine itself, not one that a proxy on this machine passed on. */
export function isLocal(from: CallerAddress): boolean {
  return !from.forwarded && isLoopback(from.address);
}

function isForwarded(headers: IncomingHttpHeaders): boolean {
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

/** `192.0.2.1:4711` and `[2001:db8::1]:4711`, which some proxies write. */
function withoutPort(hop: string): string {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(hop)?.[1] ?? hop;
}

/** The socket's address; dual-stack listeners show IPv4 callers as ::ffff:a.b.c.d. */
function plain(remote: string): string {
  return remote.includes(':') ? (canonicalAddress(remote) ?? remote) : remote;
}
