import { HOSTNAME, PUBLIC_ADDRESS } from '../../support/daemon.ts';
import type { DnsServer } from '../../support/dns-server.ts';

/** What fails during the soak test, and when. */
export type FaultName =
  /** A healthy provider closes all sessions with 421. */
  | 'outage'
  | 'stall'
  | 'deferral'
  | 'reset'
  | 'servfail'
  | 'silent DNS'
  /** 5xx for each recipient, the whole time. */
  | 'rejection'
  | 'webhook errors'
  | 'webhook down';

export type PeerKind = 'healthy' | 'outages' | 'stalls' | 'defers' | 'resets' | 'unresolvable' | 'rejects';

/** One MX host of each kind, with its domains. */
export const PEERS: readonly { kind: PeerKind; host: string; domains: readonly string[] }[] = [
  { kind: 'healthy', host: '127.0.1.1', domains: named('h', 15) },
  { kind: 'outages', host: '127.0.1.2', domains: named('o', 5) },
  { kind: 'stalls', host: '127.0.1.3', domains: named('s', 1) },
  { kind: 'defers', host: '127.0.1.4', domains: named('d', 1) },
  { kind: 'resets', host: '127.0.1.5', domains: named('r', 1) },
  // Many, so that lookups happen during each fault, although routes are cached for longer.
  { kind: 'unresolvable', host: '127.0.1.6', domains: named('u', 40) },
  { kind: 'rejects', host: '127.0.1.7', domains: named('x', 1) },
];

/** The kind of each of 40 messages: 26 go to healthy domains, 9 to those with outages, and one to each other kind. */
const KINDS: readonly PeerKind[] = [
  ...Array.from({ length: 26 }, () => 'healthy' as const),
  ...Array.from({ length: 9 }, () => 'outages' as const),
  'stalls',
  'defers',
  'resets',
  'unresolvable',
  'rejects',
];
/** Domains by recipient number. */
export const SOAK_DOMAINS: readonly string[] = Array.from({ length: 40 * KINDS.length }, (_, n) => {
  const domains = domainsOf(KINDS[n % KINDS.length] ?? 'healthy');
  const turn = Math.floor(n / KINDS.length) + n;
  return domains[turn % domains.length] ?? '';
});
export const REJECTED_DOMAINS: ReadonlySet<string> = new Set(domainsOf('rejects'));
export const UNRESOLVABLE: readonly string[] = domainsOf('unresolvable');
/** A bounce comes in for every n-th recipient whose message was accepted. */
export const REPORTED_EVERY = 50;

/** Parts of a cycle in which each fault is active, from 0 to 1. */
const WINDOWS: readonly { fault: FaultName; from: number; to: number }[] = [
  { fault: 'stall', from: 0, to: 0.5 },
  { fault: 'deferral', from: 0.1, to: 0.45 },
  { fault: 'webhook errors', from: 0.15, to: 0.3 },
  { fault: 'reset', from: 0.2, to: 0.6 },
  { fault: 'webhook down', from: 0.3, to: 0.5 },
  { fault: 'servfail', from: 0.35, to: 0.55 },
  { fault: 'silent DNS', from: 0.55, to: 0.7 },
  { fault: 'outage', from: 0.65, to: 0.75 },
];

/** The faults that are active at a position of the cycle, from 0 to 1. */
export function faultsAt(position: number): FaultName[] {
  return WINDOWS.filter(({ from, to }) => position >= from && position < to).map(({ fault }) => fault);
}

/** Publishes the destinations and the host of the daemon. */
export function publishPeers(dns: DnsServer): void {
  dns.set(HOSTNAME, 'A', [PUBLIC_ADDRESS]);
  for (const { kind, host, domains } of PEERS) {
    dns.set(mailHost(kind), 'A', { values: [host], ttl: RECORD_TTL });
    for (const domain of domains)
      dns.set(domain, 'MX', { values: [`10 ${mailHost(kind)}`], ttl: RECORD_TTL });
  }
}

/** Makes lookups of `unresolvable` domains fail according to the active faults. */
export function applyDnsFaults(dns: DnsServer, active: readonly FaultName[]): void {
  for (const domain of UNRESOLVABLE) {
    if (active.includes('servfail')) dns.set(domain, 'MX', 'SERVFAIL');
    else if (active.includes('silent DNS')) dns.set(domain, 'MX', 'silent');
    else dns.set(domain, 'MX', { values: [`10 ${mailHost('unresolvable')}`], ttl: RECORD_TTL });
  }
}

/** In seconds; shorter than a fault, so that lookups happen during it. */
const RECORD_TTL = 2;

function mailHost(kind: PeerKind): string {
  return `mx.${kind}.provider.example`;
}

function domainsOf(wanted: PeerKind): readonly string[] {
  return PEERS.find(({ kind }) => kind === wanted)?.domains ?? [];
}

function named(letter: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${letter}${String(n).padStart(2, '0')}.example`);
}
