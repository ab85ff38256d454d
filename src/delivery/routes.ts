import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import type { Config } from '../config/schema.ts';
import { type DeliveryRoute, parseListen } from '../config/setting-types.ts';
import { type Random, shuffled } from '../core/random.ts';
import { isPublic, normalizeAddress } from '../dns/address-kinds.ts';
import { DnsError } from '../dns/dns-error.ts';
import { type DnsAnswer, lookupsOf, type Resolver } from '../dns/resolver.ts';
import type { LocalFailure } from '../mail/classify/classify.ts';
import type { Ipv6Use } from './egress-pools.ts';
import type { StsLookup } from './mta-sts.ts';
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
export type RouteResult =
  | { kind: 'hosts'; hosts: TargetHost[]; route: DeliveryRoute | null; ttl: number; tls?: DestinationTls }
  | RouteFailure;

export interface RouteFinder {
  /**
   * `via`: a next hop that precedes the configured routes; null: none. `accountId`: the account whose mail it is; its lookups
   * delay only its own. Default: this daemon.
   */
  find(
    destination: string,
    ipv6: Ipv6Use,
    via?: DeliveryRoute | null,
    accountId?: string,
  ): Promise<RouteResult>;
}

export interface RouteFinderDeps {
  resolver: Resolver;
  random: Random;
  guard: Guard;
  /** Addresses of this server in addition to those of its listeners. Default: none. */
  ownAddresses?: OwnAddresses;
  /** TLS policies of destinations without a configured route. Default: none. */
  tlsPolicies?: TlsPolicies;
  /** Read at each lookup, because a reload changes it. */
  readonly routes: DeliveryRoute[];
  /** Read at each lookup, because a reload changes it. */
  readonly port: number;
  /** Names of this server, which identify it among the MX hosts. Read at each lookup, because a reload changes them. */
  readonly ownNames: string[];
}

/** For which a failed lookup is cached. */
const FAILURE_TTL_SECONDS = 60;
const MAX_HOSTS = 5;
/** MX hosts whose addresses are looked up. */
const MAX_NAMES = 25;
const MAX_ADDRESSES = 2;

/**
 * Caches nothing: each `find` queries the resolver for at most 25 MX hosts, and returns at most 5 hosts with 2
 * addresses each. The guard does not apply to configured routes. Rejects only with an internal error.
 */
export function createRouteFinder(deps: RouteFinderDeps): RouteFinder {
  const { random, guard } = deps;

  async function find(
    destination: string,
    ipv6: Ipv6Use,
    via: DeliveryRoute | null = null,
    accountId = '',
  ): Promise<RouteResult> {
    const resolver = lookupsOf(deps.resolver, accountId);
    const route = via ?? routeFor(deps.routes, destination);
    if (route !== null) return viaRoute(resolver, route, ipv6);
    const [mx, sts] = await Promise.all([
      mailExchangers(resolver, destination, random),
      deps.tlsPolicies?.ofDestination(destination, accountId) ?? NO_STS,
    ]);
    if (mx.kind === 'failure') return mx;
    const ownNames = new Set(deps.ownNames.map((name) => name.toLowerCase()));
    const usable = withoutSelf(mx.exchangers, (name) => ownNames.has(name));
    if (usable.length === 0) return failure('routing-loop', mx.ttl);
    // With secure MX records TLSA records may apply, which precede the MTA-STS policy (RFC 8461 §2).
    const permitted = mx.secure ? usable : permittedHosts(usable, sts.policy);
    const resolved = await resolve(resolver, permitted, ipv6);
    const own = (await deps.ownAddresses?.among(resolved.flatMap(allAddresses))) ?? NO_ADDRESSES;
    if (own === 'unknown') return failure('dns-trouble', FAILURE_TTL_SECONDS);
    const isOwn = (address: string) => own.has(address) || guard.judge(address, deps.port) === 'own-address';
    const others = preferredToSelf(resolved, mx.exchangers, (host) => allAddresses(host).some(isOwn));
    if (others.length === 0 && resolved.length > 0) return failure('own-address', mx.ttl);
    const chosen = choose(others, mx.ttl, mx.implicit);
    if (chosen.kind === 'failure' || deps.tlsPolicies === undefined) return chosen;
    return withPolicies(deps.tlsPolicies, { destination, accountId }, mx, sts, resolved, chosen);
  }

  /** Addresses of the first hosts, and of further ones while none can be used. */
  async function resolve(
    resolver: Resolver,
    names: readonly string[],
    ipv6: Ipv6Use,
  ): Promise<FoundAddresses[]> {
    const resolved: FoundAddresses[] = [];
    for (let start = 0; start < names.length; start += MAX_HOSTS) {
      // Hosts beyond the limit may have addresses.
      if (start >= MAX_NAMES) return [...resolved, NOT_LOOKED_UP];
      const next = names.slice(start, start + MAX_HOSTS);
      resolved.push(...(await Promise.all(next.map((name) => addresses(resolver, name, ipv6)))));
      if (resolved.some(({ found }) => found.some(isAllowed))) break;
    }
    return resolved;
  }

  const isAllowed = (address: string) => guard.judge(address, deps.port) === 'allowed';

  /** A configured route may lead to a private network: the guard does not apply. */
  async function viaRoute(resolver: Resolver, route: DeliveryRoute, ipv6: Ipv6Use): Promise<RouteResult> {
    const { found, ttl } = await addresses(resolver, route.host, ipv6);
    if (found.length === 0) return failure('dns-trouble', FAILURE_TTL_SECONDS, route);
    return {
      kind: 'hosts',
      hosts: [{ name: route.host, addresses: found.slice(0, MAX_ADDRESSES) }],
      route,
      ttl,
    };
  }

  /** Addresses of a host, IPv6 and IPv4 alternating. */
  async function addresses(resolver: Resolver, name: string, ipv6: Ipv6Use): Promise<FoundAddresses> {
    const ip = { canonical: name, secure: false, lookupFailed: false, unreachable: [], ttl: 3600 };
    if (isIP(name) !== 0) return { ...ip, name, found: [name] };
    const families = await Promise.all([
      ...(ipv6 === 'always' ? [lookUp(() => resolver.aaaa(name))] : []),
      lookUp(() => resolver.a(name)),
    ]);
    const none = families.every(({ records, lookupFailed }) => records.length === 0 && !lookupFailed);
    if (none && ipv6 !== 'always') {
      const answer = await lookUp(() => resolver.aaaa(name));
      const { records, lookupFailed, ttl } = answer;
      const found = ipv6 === 'never' ? [] : shuffled(random, records);
      return {
        name,
        found,
        lookupFailed,
        unreachable: ipv6 === 'never' ? records : [],
        ttl,
        ...securityOf(name, [answer]),
      };
    }
    const lists = families.map((family) => shuffled(random, family.records));
    const longest = Math.max(...lists.map((list) => list.length));
    const found = Array.from({ length: longest }, (_, n) => lists.flatMap((list) => list[n] ?? [])).flat();
    return {
      name,
      found,
      lookupFailed: families.some((family) => family.lookupFailed),
      unreachable: [],
      ttl: Math.min(...families.map((family) => family.ttl)),
      ...securityOf(name, families),
    };
  }

  function choose(resolved: FoundAddresses[], mxTtl: number, implicit: boolean): RouteResult {
    const hosts: TargetHost[] = [];
    const refused = new Set<LocalFailure>();
    const accept = (address: string) => {
      const verdict = guard.judge(address, deps.port);
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

  return { find };
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

const NO_ADDRESSES: ReadonlySet<string> = new Set();
const NO_STS: StsLookup = { policy: null, fault: null };

/** Adds the TLS policies that were published for the destination and its hosts. */
async function withPolicies(
  policies: TlsPolicies,
  { destination, accountId }: { destination: string; accountId: string },
  mx: Extract<MailExchangers, { kind: 'exchangers' }>,
  sts: StsLookup,
  resolved: readonly FoundAddresses[],
  chosen: Extract<RouteResult, { kind: 'hosts' }>,
): Promise<RouteResult> {
  const nextHop = { names: [...new Set([destination, mx.name])], secure: mx.secure };
  const found = await Promise.all(
    chosen.hosts.map(async (host) => {
      const { canonical, secure } = resolved.find(({ name }) => name === host.name) ?? NOT_RESOLVED;
      const exchanger = { name: host.name, canonical, secure };
      const { policy, ttl } = await policies.ofHost(destination, sts.policy, exchanger, {
        ...nextHop,
        accountId,
      });
      return { host: policy === null ? host : { ...host, policy }, ttl };
    }),
  );
  return {
    ...chosen,
    hosts: found.map(({ host }) => host),
    // A policy that could not be obtained may be known soon.
    ttl: Math.min(
      sts.fault === null ? chosen.ttl : FAILURE_TTL_SECONDS,
      chosen.ttl,
      ...found.map(({ ttl }) => ttl),
    ),
    tls: publishedTls(sts),
  };
}

const NOT_RESOLVED = { canonical: '', secure: false };

/** Whether DNSSEC secures all addresses that were found. */
function securityOf(
  name: string,
  answers: readonly { records: string[]; authenticated: boolean; name: string }[],
): Pick<DaneHost, 'canonical' | 'secure'> {
  const positive = answers.filter(({ records }) => records.length > 0);
  return {
    canonical: positive[0]?.name ?? name,
    secure: positive.length > 0 && positive.every(({ authenticated }) => authenticated),
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

async function lookUp(
  query: () => Promise<DnsAnswer<string>>,
): Promise<DnsAnswer<string> & { lookupFailed: boolean }> {
  try {
    return { ...(await query()), lookupFailed: false };
  } catch (error) {
    if (!(error instanceof DnsError)) throw error;
    return {
      records: [],
      authenticated: false,
      name: '',
      ttl: FAILURE_TTL_SECONDS,
      lookupFailed: !error.absent && error.code !== 'EBADNAME',
    };
  }
}

export interface Exchanger {
  name: string;
  preference: number;
}

export type MailExchangers =
  | {
      kind: 'exchangers';
      exchangers: Exchanger[];
      ttl: number;
      implicit: boolean;
      /** Whether DNSSEC secures the MX records, or there are none. */
      secure: boolean;
      /** The destination, or the name at the end of its CNAMEs. */
      name: string;
    }
  | RouteFailure;

/** A destination has no route, or none is known now. */
export interface RouteFailure {
  kind: 'failure';
  failure: LocalFailure;
  /** The next hop that cannot be used; null: the MX hosts of the destination. */
  route: DeliveryRoute | null;
  /** Seconds. */
  ttl: number;
}

/** MX hosts by preference, equal ones shuffled; the domain itself if there is no MX record (RFC 5321 §5.1). */
export async function mailExchangers(
  resolver: Resolver,
  destination: string,
  random: Random,
): Promise<MailExchangers> {
  try {
    const { records, ttl, authenticated: secure, name } = await resolver.mx(destination);
    // RFC 7505: a single MX record whose name is the root.
    if (records.every(({ exchange }) => exchange === '')) return failure('null-mx', ttl);
    const exchangers = shuffled(random, records)
      .filter(({ exchange }) => exchange !== '')
      .map(({ exchange, preference }) => ({ name: exchange, preference }))
      .sort((a, b) => a.preference - b.preference);
    return { kind: 'exchangers', exchangers, ttl, implicit: false, secure, name };
  } catch (error) {
    if (!(error instanceof DnsError)) throw error;
    if (error.code === 'ENOTFOUND' || error.code === 'EBADNAME')
      return failure('no-such-domain', FAILURE_TTL_SECONDS);
    if (!error.absent) return failure('dns-trouble', FAILURE_TTL_SECONDS);
    return {
      kind: 'exchangers',
      exchangers: [{ name: destination, preference: 0 }],
      ttl: FAILURE_TTL_SECONDS,
      implicit: true,
      // In a signed zone only a secure answer denies a record, and its addresses must be secure, too.
      secure: true,
      name: destination,
    };
  }
}

/** Removes this server and the hosts that are not preferred to it, which would return the mail (RFC 5321 §5.1). */
export function withoutSelf(exchangers: readonly Exchanger[], isSelf: (name: string) => boolean): string[] {
  const limit = Math.min(
    ...exchangers.filter(({ name }) => isSelf(name)).map(({ preference }) => preference),
  );
  return exchangers.filter(({ preference }) => preference < limit).map(({ name }) => name);
}

/** Like `withoutSelf`, but finds this server by its addresses: an MX record may name it by another name. */
export function preferredToSelf<Host extends { name: string }>(
  resolved: readonly Host[],
  exchangers: readonly Exchanger[],
  isSelf: (host: Host) => boolean,
): Host[] {
  const selves = new Set(resolved.filter(isSelf).map(({ name }) => name));
  if (selves.size === 0) return [...resolved];
  const preferred = withoutSelf(exchangers, (name) => selves.has(name));
  return resolved.filter(({ name }) => preferred.includes(name));
}

/**
 * `ttl`: seconds for which the failure is cached. `route`: the next hop that cannot be used; null: the hosts of the
 * destination.
 */
export function failure(name: LocalFailure, ttl: number, route: DeliveryRoute | null = null): RouteFailure {
  return { kind: 'failure', failure: name, route, ttl };
}

/*
 * Rejects addresses that mail must not be delivered to: private networks, unless the operator allows them, and the
 * listeners of this daemon. An attacker may publish an MX record that points to 127.0.0.1 or to a metadata service.
 */

/** Whether mail may be delivered to an address; if not, why. */
export type AddressVerdict = 'allowed' | 'private-network' | 'own-address';

export interface GuardOptions {
  /** Read at each use: a reload changes it. */
  readonly allowPrivateNetworks: boolean;
  /** `host:port` of each listener. */
  ownListeners: string[];
}

export interface Guard {
  judge(address: string, port: number): AddressVerdict;
}

/**
 * Ignores texts in `ownListeners` that are not an address and a port. A listener at a wildcard address or a name
 * matches every address of this machine, whose interfaces are read at each call. Does not use DNS.
 */
export function createGuard(options: GuardOptions): Guard {
  const own = options.ownListeners.flatMap((text) => parseListen(text) ?? []);
  return {
    judge: (address, port) => {
      const canonical = canonicalAddress(address);
      const reaches = (host: string) =>
        isSpecific(host) ? canonicalAddress(host) === canonical : isLocal(canonical);
      if (own.some((listener) => listener.port === port && reaches(listener.host))) return 'own-address';
      return options.allowPrivateNetworks || isPublic(address) ? 'allowed' : 'private-network';
    },
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
 * The public addresses behind NAT at which this server receives mail: those of `delivery.egress` to which its own name
 * resolves. Behind the others, and behind all of them without an MX listener, another mail server may listen.
 */
export interface OwnAddresses {
  /** Those of the addresses that are ours; `unknown`: one may be, and our name cannot be looked up now. */
  among(addresses: readonly string[]): Promise<ReadonlySet<string> | 'unknown'>;
}

export interface OwnAddressesDeps {
  resolver: Resolver;
  /** Read at each use, because a reload changes it. */
  readonly hostname: string;
  /** `publicAddress` of the entries; empty without an MX listener. Read at each use, because a reload changes it. */
  readonly publicAddresses: readonly string[];
}

const NONE: ReadonlySet<string> = new Set();

/**
 * Keeps no state. `among` looks up the addresses of `hostname` only if one of the addresses is in `publicAddresses`; it
 * rejects only with an internal error of the resolver.
 */
export function createOwnAddresses(deps: OwnAddressesDeps): OwnAddresses {
  const { resolver } = deps;

  /** The resolver returns addresses in one notation. */
  async function addressesOfHostname(): Promise<readonly string[]> {
    const families = [() => resolver.a(deps.hostname), () => resolver.aaaa(deps.hostname)];
    const found = await Promise.all(families.map(addressesFrom));
    return found.flat();
  }

  return {
    among: async (addresses) => {
      const candidates = addresses.filter((address) => deps.publicAddresses.includes(address));
      if (candidates.length === 0) return NONE;
      try {
        const ours = await addressesOfHostname();
        return new Set(candidates.filter((address) => ours.includes(address)));
      } catch (error) {
        if (error instanceof DnsError) return 'unknown';
        throw error;
      }
    },
  };
}

/** Empty when there is no such record; throws when that is not known. */
async function addressesFrom(query: () => Promise<{ records: string[] }>): Promise<readonly string[]> {
  try {
    return (await query()).records;
  } catch (error) {
    if (error instanceof DnsError && error.absent) return [];
    throw error;
  }
}

export interface ConfiguredRouteFinderDeps {
  config: Config;
  resolver: Resolver;
  random: Random;
  /** Default: TLS policies do not apply. */
  tlsPolicies?: TlsPolicies | undefined;
}

/** The route finder with the settings of the configuration, which it reads at each lookup: a reload changes them. */
export function configuredRouteFinder(deps: ConfiguredRouteFinderDeps): RouteFinder {
  const { config, resolver, random, tlsPolicies } = deps;
  const { delivery } = config;
  const ownListeners = [config.mx.listen, config.submission.listen].filter((listen) => listen !== 'off');
  return createRouteFinder({
    resolver,
    random,
    guard: createGuard({
      get allowPrivateNetworks() {
        return delivery.allowPrivateNetworks;
      },
      ownListeners,
    }),
    ownAddresses: createOwnAddresses({
      resolver,
      get hostname() {
        return config.hostname;
      },
      get publicAddresses() {
        if (config.mx.listen === 'off') return [];
        return delivery.egress.flatMap(({ publicAddress }) =>
          publicAddress === undefined ? [] : [normalizeAddress(publicAddress)],
        );
      },
    }),
    ...(tlsPolicies === undefined ? {} : { tlsPolicies }),
    get routes() {
      return delivery.routes;
    },
    get port() {
      return delivery.port;
    },
    get ownNames() {
      return [config.hostname, ...delivery.egress.flatMap(({ hostname }) => hostname ?? [])];
    },
  });
}
