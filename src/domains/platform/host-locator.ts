import { LRUCache } from 'lru-cache';
import { getDomain } from 'tldts';
import { type Clock, HOUR, MINUTE, SECOND } from '../../core/clock.ts';
import { createGate, type Gate } from '../../core/gate.ts';
import type { Resolver } from '../../dns/resolver.ts';
import { addressesOf, createDnsView, type Seen } from '../verification/dns-view.ts';
import { publicHost } from './link-hosts.ts';
import { type Platform, trackHost } from './platform.ts';

/**
 * Where a link host leads, by its addresses. Its nameservers belong to a customer and may never answer: lookups
 * are bounded in time, in number for each registrable domain, and in number for each class, so that those of one
 * class never wait for another's.
 */
export interface HostLocator {
  /** Never rejects. */
  locate(host: string, lookup: LookupClass): Promise<Location>;
  /** Ends the lookups under way and gives up those that wait. */
  close(): void;
}

/** unknown: DNS gave no answer. busy: not looked up now, because too many lookups wait or were made. */
export type Location = 'here' | 'elsewhere' | 'unknown' | 'busy';

/** renewal: the host has a certificate. proven, registered: its domain's standing (link-hosts.ts). */
export type LookupClass = 'renewal' | 'proven' | 'registered';

export interface HostLocatorDeps {
  resolver: Resolver;
  clock: Clock;
  platform: Pick<Platform, 'hostname' | 'publicUrl'>;
  /** For one host. */
  timeoutMs?: number;
}

const LOOKUP_TIMEOUT_MS = 5 * SECOND;
const CONCURRENCY: Record<LookupClass, number> = { renewal: 4, proven: 8, registered: 4 };
const PER_DOMAIN = 1;
/** A visitor or a proxy waits for the others: for less than half a minute. */
const MAX_WAITING: Record<LookupClass, number> = { renewal: 200, proven: 40, registered: 20 };
/** That a host leads here is used again for this long. */
const HERE_MS = MINUTE;
/** That it leads elsewhere: doubles with each time, since its owner may be setting the host up. */
const FIRST_ELSEWHERE_MS = MINUTE;
const LONGEST_ELSEWHERE_MS = 10 * MINUTE;
/** New lookups for one registrable domain in `WINDOW_MS`. */
const MAX_PER_WINDOW = 20;
const WINDOW_MS = MINUTE;
/** After a domain's nameservers did not answer: doubles with each failure. */
const FIRST_PAUSE_MS = MINUTE;
const LONGEST_PAUSE_MS = HOUR;
const CACHED = 5000;

interface Answer {
  location: 'here' | 'elsewhere';
  /** Times in a row that it led elsewhere. */
  times: number;
  until: number;
}

interface DomainState {
  /** Lookups since `since`, epoch ms. */
  since: number;
  count: number;
  /** Unanswered ones in a row, and until when no other is made. */
  failures: number;
  pausedUntil: number;
}

export function createHostLocator(deps: HostLocatorDeps): HostLocator {
  const { resolver, clock, platform, timeoutMs = LOOKUP_TIMEOUT_MS } = deps;
  const gateOf = (lookup: LookupClass): Gate =>
    createGate({ concurrency: CONCURRENCY[lookup], perKey: PER_DOMAIN, maxWaiting: MAX_WAITING[lookup] });
  const gates: Record<LookupClass, Gate> = {
    renewal: gateOf('renewal'),
    proven: gateOf('proven'),
    registered: gateOf('registered'),
  };
  const closing = new AbortController();
  const answers = new LRUCache<string, Answer>({ max: CACHED });
  const domains = new LRUCache<string, DomainState>({ max: CACHED });
  const underWay = new Map<string, Promise<Location>>();
  const ownHosts = [trackHost(platform), publicHost(platform)].filter((host) => host !== null);

  function stateOf(domain: string): DomainState {
    const now = clock.now();
    const state = domains.get(domain) ?? { since: now, count: 0, failures: 0, pausedUntil: 0 };
    // Also where the clock was set back.
    if (Math.abs(now - state.since) >= WINDOW_MS) Object.assign(state, { since: now, count: 0 });
    domains.set(domain, state);
    return state;
  }

  async function lookUp(host: string, domain: string): Promise<Location> {
    const state = stateOf(domain);
    if (state.pausedUntil > clock.now()) return 'unknown';
    if (state.count >= MAX_PER_WINDOW) return 'busy';
    state.count++;
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(timeoutMs)]);
    const ours = createDnsView(resolver, { signal });
    const theirs = createDnsView(resolver, { signal, fresh: true });
    const own = Promise.all(ownHosts.map((name) => addressesOf(ours, name)));
    const families = [theirs.a(host), theirs.aaaa(host)];
    if (await leadsToOneOf(families, own)) {
      state.failures = 0;
      return 'here';
    }
    // A nameserver that answers for one family alone costs as much time as one that never answers.
    if ((await Promise.all(families)).some(({ kind }) => kind === 'unknown')) {
      state.failures++;
      const pause = Math.min(FIRST_PAUSE_MS * 2 ** (state.failures - 1), LONGEST_PAUSE_MS);
      state.pausedUntil = clock.now() + pause;
      return 'unknown';
    }
    state.failures = 0;
    return (await own).some(({ kind }) => kind === 'unknown') ? 'unknown' : 'elsewhere';
  }

  function remember(host: string, location: Location): void {
    if (location === 'here') answers.set(host, { location, times: 0, until: clock.now() + HERE_MS });
    if (location !== 'elsewhere') return;
    const times = (answers.get(host)?.times ?? 0) + 1;
    const wait = Math.min(FIRST_ELSEWHERE_MS * 2 ** (times - 1), LONGEST_ELSEWHERE_MS);
    answers.set(host, { location, times, until: clock.now() + wait });
  }

  return {
    locate: (host, lookup) => {
      const known = answers.get(host);
      if (known !== undefined && known.until > clock.now()) return Promise.resolve(known.location);
      const before = underWay.get(host);
      if (before !== undefined) return before;
      const domain = registrableDomainOf(host);
      const work = gates[lookup]
        .run(domain, () => lookUp(host, domain))
        .then((found) => {
          const location = found ?? 'busy';
          remember(host, location);
          return location;
        })
        .finally(() => underWay.delete(host));
      underWay.set(host, work);
      return work;
    },
    close: () => {
      closing.abort();
      for (const gate of Object.values(gates)) gate.close();
    },
  };
}

/** Whether a family has one of our addresses, as soon as that is known. */
async function leadsToOneOf(
  families: Promise<Seen<string>>[],
  own: Promise<Seen<string>[]>,
): Promise<boolean> {
  const addresses = new Set((await own).flatMap((seen) => (seen.kind === 'records' ? seen.records : [])));
  const hits = families.map(async (family) => {
    const seen = await family;
    return seen.kind === 'records' && seen.records.some((address) => addresses.has(address));
  });
  return new Promise((resolve, reject) => {
    for (const hit of hits) hit.then((isHit) => isHit && resolve(true), reject);
    Promise.all(hits).then(() => resolve(false), reject);
  });
}

/** The domain that one registrant controls, by the public suffix list with its private part. */
function registrableDomainOf(host: string): string {
  return getDomain(host, { allowPrivateDomains: true }) ?? host;
}
