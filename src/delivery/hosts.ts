import { isIP } from 'node:net';
import type { Route } from '../config/schema.ts';
import { type Random, shuffled } from '../core/random.ts';
import { DnsError } from '../dns/dns-error.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { LocalFailure } from '../mail/classify/classify.ts';
import type { Ipv6Use } from './egress.ts';
import type { Guard } from './guard.ts';
import type { TargetHost } from './worker/protocol.ts';

/**
 * Where a destination's mail goes (RFC 5321 §5.1, RFC 7505). A fixed route comes before MX. A time-out or a
 * SERVFAIL says nothing about the domain: mail waits, it never bounces for it.
 */
export type Whereabouts =
  | { kind: 'hosts'; hosts: TargetHost[]; route: Route | null; ttl: number }
  | { kind: 'failure'; failure: LocalFailure; ttl: number };

export interface HostFinder {
  find(destination: string, ipv6: Ipv6Use): Promise<Whereabouts>;
}

export interface HostSettings {
  resolver: Resolver;
  random: Random;
  guard: Guard;
  routes: Route[];
  port: number;
  /** Names of this server: an MX that is one of them is a loop. */
  ownNames: string[];
}

const MAX_HOSTS = 5;
const MAX_ADDRESSES = 2;
/** Seconds that a failure is remembered. */
const FAILURE_TTL = 60;

export function createHostFinder(settings: HostSettings): HostFinder {
  const { resolver, random, guard, routes, port } = settings;
  const ownNames = new Set(settings.ownNames.map((name) => name.toLowerCase()));

  async function find(destination: string, ipv6: Ipv6Use): Promise<Whereabouts> {
    const route = routeFor(routes, destination);
    if (route !== null) return viaRoute(route, ipv6);
    const mx = await mailExchangers(resolver, destination, random);
    if (mx.kind === 'failure') return mx;
    const usable = withoutOurselves(mx.exchangers, (name) => ownNames.has(name));
    if (usable.length === 0) return failure('routing-loop', mx.ttl);
    const looked = await Promise.all(usable.slice(0, MAX_HOSTS).map((name) => addresses(name, ipv6)));
    return choose(looked, mx.ttl, mx.implicit);
  }

  /** The operator's own word: not judged by the private-network guard. */
  async function viaRoute(route: Route, ipv6: Ipv6Use): Promise<Whereabouts> {
    const found = await addresses(route.host, ipv6);
    if (found.found.length === 0) return failure('dns-trouble', FAILURE_TTL);
    return {
      kind: 'hosts',
      hosts: [{ name: route.host, addresses: found.found.slice(0, MAX_ADDRESSES) }],
      route,
      ttl: found.ttl,
    };
  }

  /** Addresses of a host, IPv6 and IPv4 in turn; `trouble` when a family could not be looked up. */
  async function addresses(name: string, ipv6: Ipv6Use): Promise<FoundAddresses> {
    if (isIP(name) !== 0) return { name, found: [name], trouble: false, outOfReach: false, ttl: 3600 };
    const families = await Promise.all([
      ...(ipv6 === 'always' ? [lookUp(() => resolver.aaaa(name))] : []),
      lookUp(() => resolver.a(name)),
    ]);
    const none = families.every(({ records, trouble }) => records.length === 0 && !trouble);
    if (none && ipv6 !== 'always') {
      const { records, trouble, ttl } = await lookUp(() => resolver.aaaa(name));
      const found = ipv6 === 'never' ? [] : shuffled(random, records);
      return { name, found, trouble, outOfReach: records.length > found.length, ttl };
    }
    const lists = families.map((family) => shuffled(random, family.records));
    const longest = Math.max(...lists.map((list) => list.length));
    const found = Array.from({ length: longest }, (_, n) => lists.flatMap((list) => list[n] ?? [])).flat();
    return {
      name,
      found,
      trouble: families.some((family) => family.trouble),
      outOfReach: false,
      ttl: Math.min(...families.map((family) => family.ttl)),
    };
  }

  function choose(looked: FoundAddresses[], mxTtl: number, implicit: boolean): Whereabouts {
    const hosts: TargetHost[] = [];
    const refused = new Set<LocalFailure>();
    for (const host of looked) {
      const allowed = host.found.filter((address) => {
        const verdict = guard.judge(address, port);
        if (verdict !== 'allowed') refused.add(verdict);
        return verdict === 'allowed';
      });
      if (allowed.length > 0) hosts.push({ name: host.name, addresses: allowed.slice(0, MAX_ADDRESSES) });
    }
    const ttl = Math.min(mxTtl, ...looked.map((host) => host.ttl));
    if (hosts.length > 0) return { kind: 'hosts', hosts, route: null, ttl };
    // What is not known may yet turn out well; only when all is known is it a failure for good.
    if (looked.some((host) => host.trouble)) return failure('dns-trouble', FAILURE_TTL);
    if (looked.some((host) => host.outOfReach)) return failure('ipv6-only', ttl);
    if (refused.has('own-address')) return failure('own-address', ttl);
    if (refused.has('private-network')) return failure('private-network', ttl);
    // RFC 5321 §5.1: the name exists, but has neither an MX record nor an address.
    return failure(implicit ? 'no-mail-service' : 'no-mail-host', ttl);
  }

  return { find };
}

interface FoundAddresses {
  name: string;
  found: string[];
  trouble: boolean;
  /** It has addresses, and we have none that could talk to them. */
  outOfReach: boolean;
  ttl: number;
}

interface Exchanger {
  name: string;
  preference: number;
}

type MailExchangers =
  | { kind: 'exchangers'; exchangers: Exchanger[]; ttl: number; implicit: boolean }
  | { kind: 'failure'; failure: LocalFailure; ttl: number };

/** MX hosts by preference, equal ones shuffled; the name itself where there is no MX (RFC 5321 §5.1). */
async function mailExchangers(
  resolver: Resolver,
  destination: string,
  random: Random,
): Promise<MailExchangers> {
  try {
    const { records, ttl } = await resolver.mx(destination);
    // RFC 7505: a single MX with the root as its name.
    if (records.every(({ exchange }) => exchange === '')) return failure('null-mx', ttl);
    const exchangers = shuffled(random, records)
      .filter(({ exchange }) => exchange !== '')
      .map(({ exchange, preference }) => ({ name: exchange, preference }))
      .sort((a, b) => a.preference - b.preference);
    return { kind: 'exchangers', exchangers, ttl, implicit: false };
  } catch (error) {
    if (!(error instanceof DnsError)) throw error;
    if (error.code === 'ENOTFOUND' || error.code === 'EBADNAME')
      return failure('no-such-domain', FAILURE_TTL);
    if (!error.absent) return failure('dns-trouble', FAILURE_TTL);
    return {
      kind: 'exchangers',
      exchangers: [{ name: destination, preference: 0 }],
      ttl: FAILURE_TTL,
      implicit: true,
    };
  }
}

/** Drops ourselves and every host that is not preferred to us: they would only send it back (RFC 5321 §5.1). */
function withoutOurselves(exchangers: Exchanger[], isOurs: (name: string) => boolean): string[] {
  const limit = Math.min(
    ...exchangers.filter(({ name }) => isOurs(name)).map(({ preference }) => preference),
  );
  return exchangers.filter(({ preference }) => preference < limit).map(({ name }) => name);
}

function routeFor(routes: Route[], destination: string): Route | null {
  return (
    routes.find(({ match }) => match.toLowerCase() === destination) ??
    routes.find(({ match }) => match === '*') ??
    null
  );
}

async function lookUp(
  ask: () => Promise<{ records: string[]; ttl: number }>,
): Promise<{ records: string[]; ttl: number; trouble: boolean }> {
  try {
    return { ...(await ask()), trouble: false };
  } catch (error) {
    if (!(error instanceof DnsError)) throw error;
    return { records: [], ttl: FAILURE_TTL, trouble: !error.absent && error.code !== 'EBADNAME' };
  }
}

function failure(name: LocalFailure, ttl: number): { kind: 'failure'; failure: LocalFailure; ttl: number } {
  return { kind: 'failure', failure: name, ttl };
}
