import { type Clock, HOUR, MINUTE, SECOND } from '../../core/clock.ts';
import { abortAfter } from '../../core/concurrency/abort.ts';
import { createGate, type Gate } from '../../core/concurrency/gate.ts';
import { createLru } from '../../core/lru.ts';
import { createTokenBuckets, type Rate } from '../../core/token-bucket.ts';
import { addressesOf, createDnsView, type LookupResult } from '../../dns/dns-view.ts';
import type { Resolver } from '../../dns/resolver.ts';
import { normalizeDomain, organizationalDomain } from '../../mail/address.ts';
import type { Context } from '../../store/context.ts';
import type { Tables } from '../../store/tables.ts';
import { linkHostDomain, stsPolicyDomain } from '../names.ts';
import { type Platform, type PlatformOptions, platformOf, publicHost, trackHost } from './platform.ts';

/**
 * own: a host of the platform itself. proven: a link host of a domain whose DKIM key was found in DNS, so its owner
 * registered it here. registered: a link host of a domain that anyone may have registered.
 */
export type LinkHostStatus = 'own' | 'proven' | 'registered';

/**
 * The standing of a host name that may lead to the public pages: the platform's own hosts, and of each registered domain
 * the default and the custom link host and the host of its MTA-STS policy. Null for any other name. Does not use DNS.
 */
export function linkHostStatus(
  tables: Tables,
  platform: Pick<Platform, 'hostname' | 'publicUrl'>,
  text: string,
): LinkHostStatus | null {
  const host = normalizeDomain(text);
  if (host === null) return null;
  if (host === trackHost(platform) || host === new URL(platform.publicUrl).hostname) return 'own';
  return tables.domains.linkHostStatus(host, domainOfHost(host));
}

/** The domain that has this default link host or host of an MTA-STS policy; '': none. */
function domainOfHost(host: string): string {
  return linkHostDomain(host) ?? stsPolicyDomain(host) ?? '';
}

export type LinkHosts = ReturnType<typeof createLinkHosts>;

/**
 * Looks nothing up until `leadsHere`, which uses DNS through a locator with caches and limits (`createHostLocator`).
 * `statusOf` and `ownerOf` read the database at each call.
 */
export function createLinkHosts(
  { config, tables, monotonic }: Pick<Context, 'tables' | 'monotonic'> & { config: PlatformOptions },
  resolver: Resolver,
) {
  const platform = platformOf(config);
  const locator = createHostLocator(monotonic, resolver, platform);
  const statusOf = (host: string) => linkHostStatus(tables, platform, host);
  return {
    /** The host of `public.url`; null when it is not a name that can have a certificate. */
    publicHost: publicHost(platform),
    statusOf,
    /** The account whose domain has this link host; null: none. */
    ownerOf: (text: string): string | null => {
      const host = normalizeDomain(text);
      return host === null ? null : tables.domains.linkHostOwner(host, domainOfHost(host));
    },
    /** Whether a link host leads here. `isRenewal`: the host has a certificate. Limits its lookups; never rejects. */
    leadsHere: async (host: string, isRenewal: boolean): Promise<boolean> => {
      const lookup = statusOf(host) === 'registered' ? 'registered' : 'proven';
      return (await locator.locate(host, isRenewal ? 'renewal' : lookup)) === 'here';
    },
    /** Cancels lookups in progress and waiting ones. */
    close: locator.close,
  };
}

/*
 * Determines whether a link host leads to this installation, by its addresses. Its name servers are run by others and may
 * never answer, so lookups are limited in time, in number per registrable domain, and in number per class: the lookups of
 * one class never wait for those of another.
 */

/** unknown: DNS gave no answer. busy: not looked up, because there are or were too many lookups. */
export type HostLocation = 'here' | 'elsewhere' | 'unknown' | 'busy';

/** renewal: the host has a certificate. proven, registered: the standing of the host (LinkHostStatus). */
export type LookupClass = 'renewal' | 'proven' | 'registered';

const LOOKUP_TIMEOUT_MS = 5 * SECOND;
const CONCURRENCY: Record<LookupClass, number> = { renewal: 4, proven: 8, registered: 4 };
const CONCURRENCY_PER_DOMAIN = 1;
/** A visitor or a proxy waits for lookups other than renewals: less than half a minute. */
const MAX_WAITING: Record<LookupClass, number> = { renewal: 200, proven: 40, registered: 20 };
/** How long the result `here` is cached. */
const HERE_MS = MINUTE;
/** How long `elsewhere` is cached at most: short at first, because the owner may be setting up the host. */
const MAX_ELSEWHERE_MS = 10 * MINUTE;
/** Maximum pause of a domain's lookups after its name servers did not answer. */
const MAX_PAUSE_MS = HOUR;
/** Lookups for one registrable domain: 20 a minute. */
const DOMAIN_RATE: Rate = { burst: 20, perSecond: 20 / 60 };
const MAX_CACHED = 5000;

/** A result that applies until then, epoch ms, and how many times in a row it was found. */
interface Found {
  until: number;
  times: number;
}

/**
 * Caches results for 5000 hosts: `here` for a minute, `elsewhere` for up to 10 minutes, others not. A domain has at
 * most 20 lookups a minute, and a pause of up to an hour after each lookup without an answer. The platform's own names are read now.
 */
export function createHostLocator(
  /** For caches and limits. */
  clock: Clock,
  resolver: Resolver,
  platform: Pick<Platform, 'hostname' | 'publicUrl'>,
  timeoutMs = LOOKUP_TIMEOUT_MS,
) {
  const gateOf = (lookup: LookupClass): Gate =>
    createGate({
      concurrency: CONCURRENCY[lookup],
      perKey: CONCURRENCY_PER_DOMAIN,
      maxWaiting: MAX_WAITING[lookup],
    });
  const gates: Record<LookupClass, Gate> = {
    renewal: gateOf('renewal'),
    proven: gateOf('proven'),
    registered: gateOf('registered'),
  };
  const closing = new AbortController();
  /** Hosts that lead here, hosts that lead elsewhere, and domains whose name servers did not answer. */
  const here = createLru<Found>(MAX_CACHED);
  const elsewhere = createLru<Found>(MAX_CACHED);
  const unanswered = createLru<Found>(MAX_CACHED);
  const lookups = createTokenBuckets(clock, DOMAIN_RATE, MAX_CACHED);
  const inProgress = new Map<string, Promise<HostLocation>>();
  const ownHosts = [trackHost(platform), publicHost(platform)].filter((host) => host !== null);

  const isCurrent = (found: Found | undefined) => found !== undefined && found.until > clock.now();

  /** Caches a result for a minute, and for twice as long each time it is found again, up to `maxMs`. */
  function remember(results: typeof here, name: string, maxMs: number): void {
    const times = (results.get(name)?.times ?? 0) + 1;
    results.set(name, { times, until: clock.now() + Math.min(MINUTE * 2 ** (times - 1), maxMs) });
  }

  async function lookUp(host: string, domain: string): Promise<HostLocation> {
    if (isCurrent(unanswered.get(domain))) return 'unknown';
    if (!lookups.of(domain).take().allowed) return 'busy';
    const signal = abortAfter(timeoutMs, closing.signal);
    const ours = createDnsView(resolver, { signal });
    const theirs = createDnsView(resolver, { signal, fresh: true, owner: 'link hosts' });
    const own = Promise.all(ownHosts.map((name) => addressesOf(ours, name)));
    const families = [theirs.a(host), theirs.aaaa(host)];
    const isHere = await leadsToOneOf(families, own);
    // A name server that answers for only one address family takes as long as one that never answers.
    if (!isHere && (await Promise.all(families)).some(({ kind }) => kind === 'unknown')) {
      remember(unanswered, domain, MAX_PAUSE_MS);
      return 'unknown';
    }
    unanswered.delete(domain);
    if (isHere) {
      elsewhere.delete(host);
      remember(here, host, HERE_MS);
      return 'here';
    }
    if ((await own).some(({ kind }) => kind === 'unknown')) return 'unknown';
    remember(elsewhere, host, MAX_ELSEWHERE_MS);
    return 'elsewhere';
  }

  return {
    /** Never rejects. */
    locate: (host: string, lookup: LookupClass): Promise<HostLocation> => {
      if (isCurrent(here.get(host))) return Promise.resolve('here');
      if (isCurrent(elsewhere.get(host))) return Promise.resolve('elsewhere');
      const before = inProgress.get(host);
      if (before !== undefined) return before;
      const domain = organizationalDomain(host);
      const work = gates[lookup]
        .run(domain, () => lookUp(host, domain))
        .then((found) => found ?? 'busy')
        .finally(() => inProgress.delete(host));
      inProgress.set(host, work);
      return work;
    },
    /** Cancels lookups in progress and waiting ones. */
    close: (): void => {
      closing.abort();
      for (const gate of Object.values(gates)) gate.close();
    },
  };
}

/** Whether an address family has one of our addresses; resolves as soon as that is known. */
async function leadsToOneOf(
  families: Promise<LookupResult<string>>[],
  own: Promise<LookupResult<string>[]>,
): Promise<boolean> {
  const addresses = new Set(
    (await own).flatMap((result) => (result.kind === 'records' ? result.records : [])),
  );
  const hits = families.map(async (family) => {
    const result = await family;
    return result.kind === 'records' && result.records.some((address) => addresses.has(address));
  });
  return new Promise((resolve, reject) => {
    for (const hit of hits) hit.then((isHit) => isHit && resolve(true), reject);
    Promise.all(hits).then(() => resolve(false), reject);
  });
}
