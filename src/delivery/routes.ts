import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import type { Config } from '../config/schema.ts';
import { type DeliveryRoute, parseListen } from '../config/setting-types.ts';
import { type Random, shuffled } from '../core/random.ts';
import { isPublic, normalizeAddress } from '../dns/address-kinds.ts';
import { DnsError } from '../dns/dns-error.ts';
import { type DnsAnswer, lookupsOf, type MxRecord, type Resolver } from '../dns/resolver.ts';
import type { LocalFailure } from '../mail/classify/classify.ts';
import type { Context } from '../store/context.ts';
import type { Ipv6Use } from './egress-pools.ts';
import { NO_POLICY, type StsLookup } from './mta-sts.ts';
import {
  type DaneHost,
  type DestinationTls,
  permittedHosts,
  publishedTls,
  type TlsPolicies,
} from './tls-policies.ts';
import type { TargetHost } from './worker/protocol.ts';

/**
 * Where a destination's mail goes (RFC 5321 §5.1, RFC 7505). A configured route precedes MX records. A timeout or a
 * SERVFAIL proves nothing about the domain: mail is deferred, never bounced.
 */
export type RouteResult = HostsRoute | RouteFailure;

interface HostsRoute {
  kind: 'hosts';
  hosts: TargetHost[];
  /** The configured next hop; null: the hosts of the destination. */
  route: DeliveryRoute | null;
  /** Seconds. */
  ttl: number;
  tls?: DestinationTls;
}

/** A destination has no route, or none is known now. */
export interface RouteFailure {
  kind: 'failure';
  failure: LocalFailure;
  /** The next hop that cannot be used; null: the MX hosts of the destination. */
  route: DeliveryRoute | null;
  /** Seconds for which the failure is cached. */
  ttl: number;
}

export function failure(name: LocalFailure, ttl: number, route: DeliveryRoute | null = null): RouteFailure {
  return { kind: 'failure', failure: name, route, ttl };
}

/** For which a failed lookup is cached. */
const FAILURE_TTL_SECONDS = 60;
const MAX_HOSTS = 5;
/** MX hosts whose addresses are looked up. */
const MAX_NAMES = 25;
const MAX_ADDRESSES = 2;

export type FindRoute = ReturnType<typeof createRouteFinder>;

/**
 * Caches nothing: each call queries the resolver for at most 25 MX hosts, and returns at most 5 hosts with 2 addresses
 * each. The guard does not apply to configured routes. Rejects only with an internal error. `tlsPolicies`: of destinations
 * without a configured route; default: none apply.
 */
export function createRouteFinder(
  { config, random }: Pick<Context, 'config' | 'random'>,
  { resolver: shared, tlsPolicies }: { resolver: Resolver; tlsPolicies?: TlsPolicies | undefined },
) {
  const judge = createGuard(config);

  /**
   * `via`: a next hop that precedes the configured routes; null: none. `accountId`: the account whose mail it is; its lookups
   * delay only its own. Default: this daemon.
   */
  return async function find(
    destination: string,
    ipv6: Ipv6Use,
    via: DeliveryRoute | null = null,
    accountId = '',
  ): Promise<RouteResult> {
    const resolver = lookupsOf(shared, accountId);
    const addresses = (name: string) => addressesOf(resolver, random, name, ipv6);
    const route = via ?? routeFor(config.delivery.routes, destination);
    if (route !== null) {
      // It may lead to a private network: the guard does not apply.
      const { found, ttl } = await addresses(route.host);
      if (found.length === 0) return failure('dns-trouble', FAILURE_TTL_SECONDS, route);
      const hosts = [{ name: route.host, addresses: found.slice(0, MAX_ADDRESSES) }];
      return { kind: 'hosts', hosts, route, ttl };
    }
    const [mx, sts] = await Promise.all([
      mailExchangers(resolver, destination, random),
      tlsPolicies?.ofDestination(destination, accountId) ?? NO_POLICY,
    ]);
    if (mx.kind === 'failure') return mx;
    const ownNames = ownNamesOf(config);
    const usable = preferredTo(mx.exchangers, (name) => ownNames.has(name));
    if (usable.length === 0) return failure('routing-loop', mx.ttl);
    // With secure MX records TLSA records may apply, which precede the MTA-STS policy (RFC 8461 §2).
    const permitted = mx.secure ? usable : permittedHosts(usable, sts.policy);
    const resolved = await firstAddresses(permitted, addresses, judge);
    const own = await ownAddresses(config, shared, resolved.flatMap(allAddresses));
    if (own === 'unknown') return failure('dns-trouble', FAILURE_TTL_SECONDS);
    // An MX record may name this server by another name.
    const isSelf = (address: string) => own.has(address) || judge(address) === 'own-address';
    const selves = new Set(
      resolved.filter((host) => allAddresses(host).some(isSelf)).map(({ name }) => name),
    );
    const preferred = preferredTo(mx.exchangers, (name) => selves.has(name));
    const others = selves.size === 0 ? resolved : resolved.filter(({ name }) => preferred.includes(name));
    if (others.length === 0 && resolved.length > 0) return failure('own-address', mx.ttl);
    const chosen = choose(others, mx, judge);
    if (chosen.kind === 'failure' || tlsPolicies === undefined) return chosen;
    return withPolicies(tlsPolicies, { destination, accountId }, mx, sts, resolved, chosen);
  };
}

/** The configured route of a destination: one for its name, else one for all. */
export function routeFor(routes: DeliveryRoute[], destination: string): DeliveryRoute | null {
  return (
    routes.find(({ match }) => match.toLowerCase() === destination) ??
    routes.find(({ match }) => match === '*') ??
    null
  );
}

interface MailExchangers {
  kind: 'exchangers';
  exchangers: MxRecord[];
  ttl: number;
  /** There is no MX record. */
  implicit: boolean;
  /** Whether DNSSEC secures the MX records, or there are none. */
  secure: boolean;
  /** The destination, or the name at the end of its CNAMEs. */
  name: string;
}

/** MX hosts by preference, equal ones shuffled; the domain itself if there is no MX record (RFC 5321 §5.1). */
async function mailExchangers(
  resolver: Resolver,
  destination: string,
  random: Random,
): Promise<MailExchangers | RouteFailure> {
  try {
    const { records, ttl, authenticated: secure, name } = await resolver.mx(destination);
    // RFC 7505: a single MX record whose name is the root.
    if (records.every(({ exchange }) => exchange === '')) return failure('null-mx', ttl);
    const exchangers = shuffled(random, records)
      .filter(({ exchange }) => exchange !== '')
      .sort((a, b) => a.preference - b.preference);
    return { kind: 'exchangers', exchangers, ttl, implicit: false, secure, name };
  } catch (error) {
    if (!(error instanceof DnsError)) throw error;
    const ttl = FAILURE_TTL_SECONDS;
    if (error.code === 'ENOTFOUND' || error.code === 'EBADNAME') return failure('no-such-domain', ttl);
    if (!error.absent) return failure('dns-trouble', ttl);
    const exchangers = [{ exchange: destination, preference: 0 }];
    // In a signed zone only a secure answer denies a record, and its addresses must be secure, too.
    return { kind: 'exchangers', exchangers, ttl, implicit: true, secure: true, name: destination };
  }
}

/** Removes this server and the hosts that are not preferred to it, which would return the mail (RFC 5321 §5.1). */
function preferredTo(exchangers: readonly MxRecord[], isSelf: (name: string) => boolean): string[] {
  const own = exchangers.filter(({ exchange }) => isSelf(exchange));
  const limit = Math.min(...own.map(({ preference }) => preference));
  return exchangers.filter(({ preference }) => preference < limit).map(({ exchange }) => exchange);
}

/** The names that identify this server among the MX hosts. */
function ownNamesOf({ hostname, delivery }: Config): ReadonlySet<string> {
  const names = [hostname, ...delivery.egress.flatMap((entry) => entry.hostname ?? [])];
  return new Set(names.map((name) => name.toLowerCase()));
}

interface FoundAddresses extends DaneHost {
  found: string[];
  /** An address family could not be looked up. */
  lookupFailed: boolean;
  /** Addresses for whose family this server has no source address, of a host that has no others. */
  unreachable: string[];
  ttl: number;
}

function allAddresses({ found, unreachable }: FoundAddresses): string[] {
  return [...found, ...unreachable];
}

/** Stands for hosts beyond the limit, so that their domain is never taken for one without usable hosts. */
const NOT_LOOKED_UP: FoundAddresses = {
  name: '',
  found: [],
  lookupFailed: true,
  unreachable: [],
  ttl: FAILURE_TTL_SECONDS,
  canonical: '',
  secure: false,
};

/** Addresses of the first hosts, and of further ones while none can be used. */
async function firstAddresses(
  names: readonly string[],
  addresses: (name: string) => Promise<FoundAddresses>,
  judge: Guard,
): Promise<FoundAddresses[]> {
  const resolved: FoundAddresses[] = [];
  for (let start = 0; start < names.length; start += MAX_HOSTS) {
    // Hosts beyond the limit may have addresses.
    if (start >= MAX_NAMES) return [...resolved, NOT_LOOKED_UP];
    resolved.push(...(await Promise.all(names.slice(start, start + MAX_HOSTS).map(addresses))));
    if (resolved.some(({ found }) => found.some((address) => judge(address) === 'allowed'))) break;
  }
  return resolved;
}

/** Addresses of a host, IPv6 and IPv4 alternating. */
async function addressesOf(
  resolver: Resolver,
  random: Random,
  name: string,
  ipv6: Ipv6Use,
): Promise<FoundAddresses> {
  if (isIP(name) !== 0)
    return { ...NOT_LOOKED_UP, name, canonical: name, found: [name], lookupFailed: false, ttl: 3600 };
  let answers = await Promise.all([
    ...(ipv6 === 'always' ? [lookUp(() => resolver.aaaa(name))] : []),
    lookUp(() => resolver.a(name)),
  ]);
  const hasNoIpv4 = answers.every(({ records, lookupFailed }) => records.length === 0 && !lookupFailed);
  const isIpv6Alone = hasNoIpv4 && ipv6 !== 'always';
  if (isIpv6Alone) answers = [await lookUp(() => resolver.aaaa(name))];
  const lists = answers.map(({ records }) => shuffled(random, records));
  const longest = Math.max(...lists.map((list) => list.length));
  const found = Array.from({ length: longest }, (_, n) => lists.flatMap((list) => list[n] ?? [])).flat();
  const isReachable = !isIpv6Alone || ipv6 === 'fallback';
  const positive = answers.filter(({ records }) => records.length > 0);
  return {
    name,
    canonical: positive[0]?.name ?? name,
    // Whether DNSSEC secures all addresses that were found.
    secure: positive.length > 0 && positive.every(({ authenticated }) => authenticated),
    found: isReachable ? found : [],
    unreachable: isReachable ? [] : found,
    lookupFailed: answers.some(({ lookupFailed }) => lookupFailed),
    ttl: Math.min(...answers.map(({ ttl }) => ttl)),
  };
}

async function lookUp(
  query: () => Promise<DnsAnswer<string>>,
): Promise<DnsAnswer<string> & { lookupFailed: boolean }> {
  try {
    return { ...(await query()), lookupFailed: false };
  } catch (error) {
    if (!(error instanceof DnsError)) throw error;
    const lookupFailed = !error.absent && error.code !== 'EBADNAME';
    return { records: [], authenticated: false, name: '', ttl: FAILURE_TTL_SECONDS, lookupFailed };
  }
}

function choose(
  resolved: readonly FoundAddresses[],
  { ttl: mxTtl, implicit }: MailExchangers,
  judge: Guard,
): HostsRoute | RouteFailure {
  const hosts: TargetHost[] = [];
  const refused = new Set<LocalFailure>();
  const accept = (address: string) => {
    const verdict = judge(address);
    if (verdict !== 'allowed') refused.add(verdict);
    return verdict === 'allowed';
  };
  let isUnreachable = false;
  for (const host of resolved) {
    const allowed = host.found.filter(accept);
    // A private address is refused permanently, whether or not this server has a source address of its family.
    if (host.unreachable.filter(accept).length > 0) isUnreachable = true;
    if (allowed.length > 0) hosts.push({ name: host.name, addresses: allowed.slice(0, MAX_ADDRESSES) });
  }
  const ttl = Math.min(mxTtl, ...resolved.map((host) => host.ttl));
  if (hosts.length > 0) return { kind: 'hosts', hosts, route: null, ttl };
  // A lookup that failed may succeed later; a failure is permanent only when all lookups succeeded.
  if (resolved.some((host) => host.lookupFailed)) return failure('dns-trouble', FAILURE_TTL_SECONDS);
  if (isUnreachable) return failure('ipv6-only', ttl);
  if (refused.has('private-network')) return failure('private-network', ttl);
  // RFC 5321 §5.1: the name exists, but has neither an MX record nor an address.
  return failure(implicit ? 'no-mail-service' : 'no-mail-host', ttl);
}

/** Adds the TLS policies that were published for the destination and its hosts. */
async function withPolicies(
  policies: TlsPolicies,
  { destination, accountId }: { destination: string; accountId: string },
  { name: mxName, secure: mxSecure }: MailExchangers,
  sts: StsLookup,
  resolved: readonly FoundAddresses[],
  chosen: HostsRoute,
): Promise<RouteResult> {
  const nextHop = { names: [...new Set([destination, mxName])], secure: mxSecure, accountId };
  const found = await Promise.all(
    chosen.hosts.map(async (host) => {
      const { canonical, secure } = resolved.find(({ name }) => name === host.name) ?? NOT_LOOKED_UP;
      const exchanger = { name: host.name, canonical, secure };
      const { policy, ttl } = await policies.ofHost(destination, sts.policy, exchanger, nextHop);
      return { host: policy === null ? host : { ...host, policy }, ttl };
    }),
  );
  // A policy that could not be obtained may be known soon.
  const ttl = sts.fault === null ? chosen.ttl : Math.min(FAILURE_TTL_SECONDS, chosen.ttl);
  return {
    ...chosen,
    hosts: found.map(({ host }) => host),
    ttl: Math.min(ttl, ...found.map((host) => host.ttl)),
    tls: publishedTls(sts),
  };
}

/** Whether mail may be delivered to an address; if not, why. */
type Guard = (address: string) => 'allowed' | 'private-network' | 'own-address';

/**
 * Rejects addresses that mail must not be delivered to: private networks, unless the operator allows them, and the
 * listeners of this daemon. An attacker may publish an MX record that points to 127.0.0.1 or to a metadata service. A
 * listener at a wildcard address or a name matches every address of this machine, whose interfaces are read at each call.
 */
export function createGuard({
  mx,
  submission,
  delivery,
}: Pick<Config, 'mx' | 'submission' | 'delivery'>): Guard {
  const listeners = [mx.listen, submission.listen].flatMap((text) => parseListen(text) ?? []);
  return (address) => {
    const canonical = canonicalAddress(address);
    const reaches = (host: string) =>
      isSpecific(host) ? canonicalAddress(host) === canonical : isLocal(canonical);
    if (listeners.some(({ host, port }) => port === delivery.port && reaches(host))) return 'own-address';
    return delivery.allowPrivateNetworks || isPublic(address) ? 'allowed' : 'private-network';
  };
}

/** Whether a listener is bound to one address; a wildcard or a name may mean any address of this machine. */
function isSpecific(host: string): boolean {
  return isIP(host) !== 0 && host !== '0.0.0.0' && host !== '::';
}

/** Whether the address is one of this machine; a connection to an unspecified address also reaches it. */
function isLocal(canonical: string): boolean {
  if (['loopback', 'unspecified'].includes(ipaddr.parse(canonical).range())) return true;
  return Object.values(networkInterfaces()).some((list) =>
    list?.some((entry) => canonicalAddress(entry.address) === canonical),
  );
}

/** The canonical form of an address, of an IPv4-mapped one that of the IPv4 address. */
function canonicalAddress(address: string): string {
  return ipaddr.process(address.split('%', 1)[0] ?? '').toString();
}

/**
 * Those of the addresses at which this server receives mail behind NAT: public addresses of `delivery.egress` to which its
 * own name resolves. Behind the others, and behind all of them without an MX listener, another mail server may listen.
 * `unknown`: one may be ours, and our name cannot be looked up now.
 */
async function ownAddresses(
  { mx, hostname, delivery }: Config,
  resolver: Resolver,
  addresses: readonly string[],
): Promise<ReadonlySet<string> | 'unknown'> {
  if (mx.listen === 'off') return new Set();
  const publicAddresses = delivery.egress.flatMap(({ publicAddress }) =>
    publicAddress === undefined ? [] : [normalizeAddress(publicAddress)],
  );
  const candidates = addresses.filter((address) => publicAddresses.includes(address));
  if (candidates.length === 0) return new Set();
  // The resolver returns addresses in one notation.
  const answers = await Promise.all([
    lookUp(() => resolver.a(hostname)),
    lookUp(() => resolver.aaaa(hostname)),
  ]);
  if (answers.some(({ lookupFailed }) => lookupFailed)) return 'unknown';
  const ours = answers.flatMap(({ records }) => records);
  return new Set(candidates.filter((address) => ours.includes(address)));
}
