import { setMaxListeners } from 'node:events';
import { normalizeAddress } from '../dns/address-kinds.ts';
import { DnsError } from '../dns/dns-error.ts';
import { addressesOf, createDnsView } from '../dns/dns-view.ts';
import type { DnsAnswer, LookupOptions, Resolver } from '../dns/resolver.ts';
import { createFileFetcher } from '../domains/platform/brand-files.ts';
import { sourceAddresses } from '../domains/platform/egress-addresses.ts';
import { createHttpsProbe } from '../domains/platform/https-probe.ts';
import { platformOf } from '../domains/platform/platform.ts';
import { runChecks } from '../domains/verification/checks.ts';
import { NO_ACCOUNT } from '../store/readers/reads.ts';
import type { DoctorContext, DoctorDeps, DoctorOptions, ExaminedDomain } from './context.ts';
import { doctorState } from './state.ts';

/** DNS lookups of one run. */
const MAX_LOOKUPS = 5000;
/** Source addresses that are examined. */
const MAX_SOURCES = 16;
/** Domains whose records are looked up at the same time. */
const DOMAIN_BATCH = 4;

/** The context of one run. `close` ends what is still in progress. */
export function createContext(
  deps: DoctorDeps,
  options: DoctorOptions,
  signal: AbortSignal,
): { context: DoctorContext; close(): void } {
  const ended = new AbortController();
  // Every lookup in progress adds a listener: that is not a leak.
  setMaxListeners(0, ended.signal);
  signal.addEventListener('abort', () => ended.abort(signal.reason), { once: true, signal: ended.signal });
  const resolver = limitLookups(deps.resolver, MAX_LOOKUPS, ended.signal);
  const view = createDnsView(resolver, { fresh: true });
  const platform = platformOf(deps.config);

  const state = once(async () => {
    if (deps.database.kind === 'closed') throw new Error('the database is not open');
    const { reader } = deps.database;
    return reader.query(NO_ACCOUNT, doctorState, options.domain, options.maxDomains);
  });
  const sources = once(async () => {
    const host = await addressesOf(view, platform.hostname);
    const known = sourceAddresses(platform, host.kind === 'records' ? host.records : []);
    return known
      .slice(0, MAX_SOURCES)
      .map(({ address, name }) => ({ address: normalizeAddress(address), name }));
  });
  const domains = once(async (): Promise<ExaminedDomain[]> => {
    if (deps.database.kind === 'closed') throw new Error('the database is not open');
    const { tables } = deps.database;
    const answersHttps = createHttpsProbe(platform.publicUrl, deps.machine.authorities);
    const fetchFile = createFileFetcher({ resolver, trusted: deps.machine.authorities });
    const files = { fetch: (url: URL) => fetchFile(url, ended.signal), now: deps.clock.now() };
    const rows = (await state()).domains;
    const examined: ExaminedDomain[] = [];
    for (let at = 0; at < rows.length && !ended.signal.aborted; at += DOMAIN_BATCH) {
      const batch = rows.slice(at, at + DOMAIN_BATCH).map(async (row) => {
        const keys = tables.dkimKeys.of(row.domain_id);
        const results = await runChecks({ view, platform, domain: row, keys, answersHttps, files });
        return { row, keys, results };
      });
      examined.push(...(await Promise.all(batch)));
    }
    return examined;
  });
  return {
    context: {
      ...deps,
      ...options,
      resolver,
      signal,
      view,
      platform,
      state,
      sources,
      domains,
      daemon: once(() => deps.daemon(ended.signal)),
    },
    close: () => ended.abort(new DOMException('the run has ended', 'AbortError')),
  };
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | null = null;
  return () => (result ??= work());
}

/** A resolver that answers at most `max` lookups, and none after `signal` is aborted. */
export function limitLookups(resolver: Resolver, max: number, signal: AbortSignal): Resolver {
  let left = max;
  const limited =
    <T>(lookup: (name: string, options?: LookupOptions) => Promise<DnsAnswer<T>>) =>
    async (name: string, options: LookupOptions = {}): Promise<DnsAnswer<T>> => {
      if (signal.aborted || left === 0)
        throw new DnsError('ECANCELLED', name, `the limit of ${max} lookups is reached`);
      left--;
      return lookup(name, { signal, ...options });
    };
  return {
    ...resolver,
    a: limited(resolver.a),
    aaaa: limited(resolver.aaaa),
    mx: limited(resolver.mx),
    txt: limited(resolver.txt),
    cname: limited(resolver.cname),
    ptr: limited(resolver.ptr),
    ns: limited(resolver.ns),
    soa: limited(resolver.soa),
    tlsa: limited(resolver.tlsa),
  };
}
