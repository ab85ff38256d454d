import { createServer } from 'node:net';
import { networkInterfaces, hostname as systemHostname } from 'node:os';
import { formatListen } from '../../config/setting-types.ts';
import { isSameListener } from '../../config/warnings.ts';
import { errorCode } from '../../core/errors.ts';
import { addressKind } from '../../dns/address-kinds.ts';
import { addressesOf, type DnsView } from '../../dns/dns-view.ts';
import { reverseName } from '../../dns/names.ts';

/** Values from the system, its interfaces and DNS; no other service is queried. */
export interface Detected {
  /** The fully qualified host name, from the system or from reverse DNS; null: neither has one. */
  hostname: string | null;
  /** Addresses of the interfaces that the internet can reach, IPv4 first. */
  publicAddresses: string[];
}

/** `timeoutMs` of the resolver bounds the lookups of `view`. */
export async function detectHost(view: DnsView): Promise<Detected> {
  const publicAddresses = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .map(({ address }) => address)
    .filter((address) => addressKind(address) === 'public')
    .toSorted((a, b) => Number(a.includes(':')) - Number(b.includes(':')));
  const own = systemHostname().toLowerCase();
  if (isQualified(own)) return { hostname: own, publicAddresses };
  for (const address of publicAddresses) {
    const pointers = await view.ptr(reverseName(address));
    const name = pointers.kind === 'records' ? pointers.records.find(isQualified) : undefined;
    if (name !== undefined) return { hostname: name, publicAddresses };
  }
  return { hostname: null, publicAddresses };
}

function isQualified(name: string): boolean {
  return /^[^.]+\.[^.].*[a-z]/.test(name) && !name.endsWith('.localdomain') && !name.endsWith('.local');
}

/**
 * The public IPv4 address of a host behind NAT or on this machine: that of its name in DNS, else that of an interface;
 * null when neither has one.
 */
export async function publicAddressOf(
  view: DnsView,
  hostname: string,
  { publicAddresses }: Detected,
): Promise<string | null> {
  const found = await addressesOf(view, hostname);
  const inDns = found.kind === 'records' ? found.records : [];
  const candidates = [...inDns, ...publicAddresses].filter((address) => addressKind(address) === 'public');
  return candidates.find((address) => !address.includes(':')) ?? candidates[0] ?? null;
}

/**
 * The host of listeners that others reach: `[::]`, which accepts IPv4 connections, too, when the host name has an IPv6 address
 * in DNS or the public address is one, and this system can bind it; else `0.0.0.0`.
 */
export async function everyAddress(
  view: Pick<DnsView, 'a' | 'aaaa'>,
  hostname: string,
  publicAddress: string,
): Promise<string> {
  const found = hostname === '' ? null : await addressesOf(view, hostname);
  const inDns = found?.kind === 'records' ? found.records : [];
  const isReachable = [...inDns, publicAddress].some((address) => address.includes(':'));
  return isReachable && (await portState('::', 0)) === 'free' ? '[::]' : '0.0.0.0';
}

/** free: a listener can be bound; used: another program uses the port; denied: this user may not bind it. */
export type PortState = 'free' | 'used' | 'denied';

/**
 * Binds the port briefly. Other errors, such as for an address that this machine does not have, count as used, and so do the
 * listeners of `taken`, whose daemons need not run.
 */
export async function portState(
  host: string,
  port: number,
  taken: readonly string[] = [],
): Promise<PortState> {
  const listen = formatListen({ host, port });
  if (taken.some((other) => isSameListener(other, listen))) return 'used';
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(errorCode(error) === 'EACCES' ? 'denied' : 'used'));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve('free')));
  });
}

const MAX_TRIED_PORTS = 200;

/** The first free port of the MAX_TRIED_PORTS from `first` on; `first` when none is free. */
export async function freePortFrom(host: string, first: number, taken: readonly string[]): Promise<number> {
  for (let port = first; port < first + MAX_TRIED_PORTS; port++)
    if ((await portState(host, port, taken)) === 'free') return port;
  return first;
}
