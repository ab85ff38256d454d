import { isUtf8 } from 'node:buffer';
import { getServers } from 'node:dns';
import { StringDecoder } from 'node:string_decoder';
import type { Answer } from 'dns-packet';
import { type Clock, SECOND } from '../core/clock.ts';
import { unlessAborted } from '../core/concurrency/abort.ts';
import { createExpiringCache } from '../core/lru.ts';
import type { Random } from '../core/random.ts';
import { isLoopback } from './address-kinds.ts';
import { DnsError } from './dns-error.ts';
import { createExchange } from './exchange.ts';
import { canonicalName, fromWire } from './names.ts';
import { MAX_HOPS, type QueryResult, TOO_MANY_HOPS } from './query-result.ts';
import { parseServer, type ServerAddress } from './transport.ts';
import type { Question, QuestionType } from './wire.ts';

/** A resolver whose servers can be changed. */
export type ConfigurableResolver = ReturnType<typeof createResolver>;
export type Resolver = Omit<ConfigurableResolver, 'configure'>;

export type Lookup<T> = (name: string, options?: LookupOptions) => Promise<DnsAnswer<T>>;

export interface LookupOptions {
  /** Bypasses the cache; the answer is cached. */
  fresh?: boolean;
  /** Rejects this lookup with the signal's reason; others with the same query continue. */
  signal?: AbortSignal | undefined;
  /**
   * Who causes the lookup: an account, or a client. Owners share the concurrent queries, so that names whose servers never
   * answer delay only lookups of the same owner. Default: this daemon.
   */
  owner?: string;
}

export interface DnsAnswer<T> {
  /** At least one. Names are in lower case without trailing dot. */
  records: T[];
  /** Remaining seconds of the answer. */
  ttl: number;
  /** Whether every answer of the lookup has the AD bit and is from a server that is trusted to validate. */
  authenticated: boolean;
  /** The name of the records, at the end of the CNAMEs. */
  name: string;
}

export interface MxRecord {
  preference: number;
  /** '' for the null MX (RFC 7505). */
  exchange: string;
}

export interface TlsaRecord {
  usage: number;
  selector: number;
  matchingType: number;
  certificate: Buffer;
}

export interface ResolverOptions {
  /** `ip`, `ip:port` or `[v6]:port`; empty: the system's. */
  resolvers: readonly string[];
  /** For one query, over all servers, from its first transmission; a chain of CNAMEs may need several queries. */
  timeoutMs: number;
  /** The servers whose AD bit counts. Default: those on loopback addresses. */
  trustAd?: AdTrust;
  /** For the lifetime of cached answers: setting the system clock must not extend it. */
  monotonic: Clock;
  random: Random;
  /** Cached answers of at most 1 KiB; a larger one takes the place of several. Default: 20,000. */
  cacheSize?: number;
}

/** Seconds. */
const MIN_TTL = 60;
const MAX_TTL = 3600;
const MAX_NEGATIVE_TTL = 300;
const FAILURE_TTL = 5;
/** Bytes of an answer that one place of the cache holds; most answers are smaller. */
const PLACE_BYTES = 1024;

/**
 * The resolver for all lookups of the daemon: a caching stub resolver (RFC 1034 §5.3.1) that queries the configured
 * recursive resolvers, and distinguishes negative answers from failures. It reads no hosts file, has no search list and
 * does not validate DNSSEC: `authenticated` is the AD bit of a server that is trusted to validate (`trustAd`).
 *
 * Cached: records for their TTL, at least 60 s and at most 1 h; negative answers for the time of their SOA (RFC 2308 §5),
 * at most 5 min; failures for 5 s, so that a thousand messages to a broken domain cause one query (RFC 9520 §3.2).
 *
 * Throws for an invalid address in `resolvers`. Lookups reject only with a `DnsError` or the signal's reason.
 */
export function createResolver(deps: ResolverOptions) {
  const { monotonic, random } = deps;
  const exchange = createExchange({ ...exchangeOptions(deps), random });
  const cache = createExpiringCache<QueryResult>(monotonic, deps.cacheSize ?? 20_000, placesOf);
  const inProgress = new Map<string, Promise<TimedResult>>();
  let closed = false;

  /** One query: from the cache, from the same query of the owner in progress, or from the servers. */
  function query(question: Question, fresh: boolean, owner: string): Promise<TimedResult> {
    const key = `${question.type} ${question.name}`;
    const cached = fresh || closed ? undefined : cache.get(key);
    if (cached) return Promise.resolve({ result: cached, ttl: Math.ceil(cache.leftMs(key) / SECOND) });
    // The same query of another owner may be waiting behind many of theirs.
    const ownKey = `${key} ${owner}`;
    const same = inProgress.get(ownKey);
    if (same) return same;
    const answer = exchange.query(question, owner).then((result) => {
      inProgress.delete(ownKey);
      const ttl = lifetime(result);
      // A failed fresh query must not replace a valid answer.
      const isWorse = result.kind === 'failed' && cache.get(key) !== undefined;
      if (ttl > 0 && !isWorse) cache.set(key, result, ttl * SECOND);
      return { result, ttl };
    });
    inProgress.set(ownKey, answer);
    return answer;
  }

  async function lookup<T>(
    type: QuestionType,
    text: string,
    read: (record: Answer) => T | null,
    { fresh = false, signal, owner = '' }: LookupOptions = {},
  ): Promise<DnsAnswer<T>> {
    signal?.throwIfAborted();
    const label = `${type} ${text}`;
    const first = canonicalName(text);
    if (first === null) throw new DnsError('EBADNAME', label, 'not a domain name');
    let name = first;
    let minTtl = MAX_TTL;
    let authenticated = true;
    for (let hops = 0; hops <= MAX_HOPS; ) {
      // The shared query continues: it has a timeout, and others may use its answer.
      const shared = query({ name, type }, fresh, owner);
      const { result, ttl }: TimedResult = await (signal === undefined
        ? shared
        : unlessAborted(shared, signal));
      if (result.kind === 'failed') throw new DnsError(result.code, label, result.detail);
      if (result.kind === 'absent') throw new DnsError(result.code, label, ABSENT[result.code]);
      minTtl = Math.min(minTtl, ttl);
      authenticated &&= result.authenticated;
      if (result.kind === 'records') {
        const records = result.records.map(read).filter((record) => record !== null);
        if (records.length > 0) return { records, ttl: minTtl, authenticated, name: result.name };
        throw new DnsError('EBADRESP', label, 'no valid record');
      }
      name = result.target;
      hops += result.hops;
    }
    throw new DnsError('EBADRESP', label, TOO_MANY_HOPS);
  }

  const lookupOf =
    <T>(type: QuestionType, read: (record: Answer) => T | null): Lookup<T> =>
    (name, options) =>
      lookup(type, name, read, options);
  return {
    a: lookupOf('A', readAddress),
    aaaa: lookupOf('AAAA', readAddress),
    mx: lookupOf('MX', readMx),
    /** Each record as its strings of at most 255 bytes, to be joined without a separator. */
    txt: lookupOf('TXT', readTxt),
    /** The CNAME at the name itself, not followed. */
    cname: lookupOf('CNAME', readTarget),
    ptr: lookupOf('PTR', readTarget),
    ns: lookupOf('NS', readTarget),
    tlsa: lookupOf('TLSA', readTlsa),
    /** Clears the cache. */
    clear: (): void => cache.clear(),
    /** Uses other servers and clears the cache. Lookups in progress continue with the previous servers. */
    configure: (options: Pick<ResolverOptions, 'resolvers' | 'timeoutMs' | 'trustAd'>): void => {
      exchange.configure(exchangeOptions(options));
      cache.clear();
    },
    /** Cancels the lookups in progress; they, and all later ones, reject with ECANCELLED. */
    close: (): void => {
      closed = true;
      exchange.close();
    },
  };
}

/** The same resolver with other lookups. */
export function mapLookups(resolver: Resolver, wrap: <T>(lookup: Lookup<T>) => Lookup<T>): Resolver {
  return {
    ...resolver,
    a: wrap(resolver.a),
    aaaa: wrap(resolver.aaaa),
    mx: wrap(resolver.mx),
    txt: wrap(resolver.txt),
    cname: wrap(resolver.cname),
    ptr: wrap(resolver.ptr),
    ns: wrap(resolver.ns),
    tlsa: wrap(resolver.tlsa),
  };
}

/** The same resolver for one owner: see `LookupOptions.owner`. */
export function lookupsOf(resolver: Resolver, owner: string): Resolver {
  return mapLookups(resolver, (lookup) => (name, options) => lookup(name, { owner, ...options }));
}

/** The servers of the system when none is configured. */
function exchangeOptions({
  resolvers,
  timeoutMs,
  trustAd = 'loopback',
}: Pick<ResolverOptions, 'resolvers' | 'timeoutMs' | 'trustAd'>) {
  const servers = (resolvers.length > 0 ? resolvers : getServers()).map(parseServer);
  return { servers, timeoutMs, trustsAd: (server: ServerAddress) => trustsAd(trustAd, server) };
}

/**
 * The servers whose AD bit counts. Anyone on the path to a server can set the bit (RFC 4035 §4.9.3), so by default only
 * servers on this machine are trusted.
 */
export type AdTrust = 'loopback' | 'always' | 'never';

/** Whether the AD bit of a server counts. */
export function trustsAd(trust: AdTrust, { address }: ServerAddress): boolean {
  return trust === 'always' || (trust === 'loopback' && isLoopback(address));
}

/** One address of a host, IPv4 if it has any. Rejects if there is none. */
export async function oneAddressOf(resolver: Pick<Resolver, 'a' | 'aaaa'>, host: string): Promise<string> {
  const { records } = await resolver.a(host).catch(() => resolver.aaaa(host));
  const [address] = records;
  if (address === undefined) throw new Error(`${host} has no address`);
  return address;
}

interface TimedResult {
  result: QueryResult;
  /** Seconds. */
  ttl: number;
}

/** How many places of the cache an answer takes. */
function placesOf(result: QueryResult): number {
  return result.kind === 'records' ? 1 + Math.floor(result.size / PLACE_BYTES) : 1;
}

const ABSENT = {
  ENOTFOUND: 'the name does not exist (NXDOMAIN)',
  ENODATA: 'the name has no record of this type',
} as const;

/** Seconds in the cache. */
function lifetime(result: QueryResult): number {
  if (result.kind === 'failed') return result.isUnsent === true ? 0 : FAILURE_TTL;
  if (result.kind === 'absent') return Math.min(result.ttl, MAX_NEGATIVE_TTL);
  return Math.min(Math.max(result.ttl, MIN_TTL), MAX_TTL);
}

function readAddress(record: Answer): string | null {
  return record.type === 'A' || record.type === 'AAAA' ? record.data : null;
}

function readTarget(record: Answer): string | null {
  return record.type === 'CNAME' || record.type === 'PTR' || record.type === 'NS'
    ? fromWire(record.data)
    : null;
}

function readMx(record: Answer): MxRecord | null {
  if (record.type !== 'MX') return null;
  const exchange = fromWire(record.data.exchange);
  if (exchange === null) return null;
  return { preference: record.data.preference ?? 0, exchange: exchange === '.' ? '' : exchange };
}

/**
 * Decodes UTF-8 when the whole record is valid, else one character per byte. A character that is split over two strings
 * belongs to the second.
 */
function readTxt(record: Answer): string[] | null {
  if (record.type !== 'TXT') return null;
  const chunks = [record.data]
    .flat()
    .map((chunk) => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk));
  const decoder = new StringDecoder(isUtf8(Buffer.concat(chunks)) ? 'utf8' : 'latin1');
  return chunks.map((chunk) => decoder.write(chunk));
}

function readTlsa(record: Answer): TlsaRecord | null {
  return record.type === 'TLSA' ? record.data : null;
}
