import { type Clock, HOUR, MINUTE, SECOND } from '../../core/clock.ts';
import { abortAfter } from '../../core/concurrency/abort.ts';
import { createGate, type Gate } from '../../core/concurrency/gate.ts';
import { createLru } from '../../core/lru.ts';
import { addressesOf, createDnsView, type LookupResult } from '../../dns/dns-view.ts';
import type { Resolver } from '../../dns/resolver.ts';
import { organizationalDomain } from '../../mail/address.ts';
import { type Platform, publicHost, trackHost } from './platform.ts';

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
/** How long `elsewhere` is cached: short at first, because the owner may be setting up the host; doubled each time. */
const FIRST_ELSEWHERE_MS = MINUTE;
const MAX_ELSEWHERE_MS = 10 * MINUTE;
/** Lookups for one registrable domain in `WINDOW_MS`. */
const MAX_PER_WINDOW = 20;
const WINDOW_MS = MINUTE;
/** Pause of a domain's lookups after its name servers did not answer; doubled with each failure. */
const FIRST_PAUSE_MS = MINUTE;
const MAX_PAUSE_MS = HOUR;
const MAX_CACHED = 5000;

interface CachedLocation {
  location: 'here' | 'elsewhere';
  /** Consecutive results `elsewhere`. */
  times: number;
  until: number;
}

interface DomainState {
  /** Lookups since `since`, epoch ms. */
  since: number;
  count: number;
  /** Consecutive lookups without an answer, and the end of the pause after them, epoch ms. */
  failures: number;
  pausedUntil: number;
}

/**
 * Caches results for 5000 hosts: `here` for a minute, `elsewhere` for up to 10 minutes, others not. A domain has at
 * most 20 lookups a minute and pauses of up to an hour without answers. The platform's own names are read now.
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
  const answers = createLru<CachedLocation>(MAX_CACHED);
  const domains = createLru<DomainState>(MAX_CACHED);
  const inProgress = new Map<string, Promise<HostLocation>>();
  const ownHosts = [trackHost(platform), publicHost(platform)].filter((host) => host !== null);

  function stateOf(domain: string): DomainState {
    const now = clock.now();
    const state = domains.get(domain) ?? { since: now, count: 0, failures: 0, pausedUntil: 0 };
    // A clock that was set back starts a new window.
    if (Math.abs(now - state.since) >= WINDOW_MS) Object.assign(state, { since: now, count: 0 });
    domains.set(domain, state);
    return state;
  }

  async function lookUp(host: string, domain: string): Promise<HostLocation> {
    const state = stateOf(domain);
    if (state.pausedUntil > clock.now()) return 'unknown';
    if (state.count >= MAX_PER_WINDOW) return 'busy';
    state.count++;
    const signal = abortAfter(timeoutMs, closing.signal);
    const ours = createDnsView(resolver, { signal });
    const theirs = createDnsView(resolver, { signal, fresh: true, owner: 'link hosts' });
    const own = Promise.all(ownHosts.map((name) => addressesOf(ours, name)));
    const families = [theirs.a(host), theirs.aaaa(host)];
    if (await leadsToOneOf(families, own)) {
      state.failures = 0;
      return 'here';
    }
    // A name server that answers for only one address family takes as long as one that never answers.
    if ((await Promise.all(families)).some(({ kind }) => kind === 'unknown')) {
      state.failures++;
      const pause = Math.min(FIRST_PAUSE_MS * 2 ** (state.failures - 1), MAX_PAUSE_MS);
      state.pausedUntil = clock.now() + pause;
      return 'unknown';
    }
    state.failures = 0;
    return (await own).some(({ kind }) => kind === 'unknown') ? 'unknown' : 'elsewhere';
  }

  function remember(host: string, location: HostLocation): void {
    if (location === 'here') answers.set(host, { location, times: 0, until: clock.now() + HERE_MS });
    if (location !== 'elsewhere') return;
    const times = (answers.get(host)?.times ?? 0) + 1;
    const wait = Math.min(FIRST_ELSEWHERE_MS * 2 ** (times - 1), MAX_ELSEWHERE_MS);
    answers.set(host, { location, times, until: clock.now() + wait });
  }

  return {
    /** Never rejects. */
    locate: (host: string, lookup: LookupClass): Promise<HostLocation> => {
      const known = answers.get(host);
      if (known !== undefined && known.until > clock.now()) return Promise.resolve(known.location);
      const before = inProgress.get(host);
      if (before !== undefined) return before;
      const domain = organizationalDomain(host);
      const work = gates[lookup]
        .run(domain, () => lookUp(host, domain))
        .then((found) => {
          const location = found ?? 'busy';
          remember(host, location);
          return location;
        })
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
