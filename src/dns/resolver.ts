import { isUtf8 } from 'node:buffer';
import { getServers } from 'node:dns';
import { StringDecoder } from 'node:string_decoder';
import type { Answer } from 'dns-packet';
import type { Clock } from '../core/clock.ts';
import type { Random } from '../core/random.ts';
import { createCache } from './cache.ts';
import { DnsError } from './dns-error.ts';
import { createExchange } from './exchange.ts';
import { canonicalName, fromWire } from './names.ts';
import { MAX_HOPS, type Outcome, TOO_MANY_HOPS } from './outcome.ts';
import { parseServer } from './transport.ts';
import type { Question, QuestionType } from './wire.ts';

/**
 * Every look-up the daemon makes: a caching stub resolver (RFC 1034 §5.3.1) that asks the configured recursive
 * resolvers, and tells apart "no" from "not known at present". No hosts file, no search list, no validation of
 * its own: `authenticated` is the resolver's word.
 *
 * Cached: records for their TTL, within 60 s and 1 h; a "no" for its SOA's time (RFC 2308 §5), 5 min at most;
 * a failure for 5 s, so that a thousand messages to one broken domain ask once (RFC 9520 §3.2).
 */
export interface Resolver {
  a(name: string, options?: LookupOptions): Promise<DnsAnswer<string>>;
  aaaa(name: string, options?: LookupOptions): Promise<DnsAnswer<string>>;
  mx(name: string, options?: LookupOptions): Promise<DnsAnswer<MxRecord>>;
  /** Each record as its strings of at most 255 bytes: join them without a separator to read it. */
  txt(name: string, options?: LookupOptions): Promise<DnsAnswer<string[]>>;
  /** The CNAME at the name itself, not followed. */
  cname(name: string, options?: LookupOptions): Promise<DnsAnswer<string>>;
  ptr(name: string, options?: LookupOptions): Promise<DnsAnswer<string>>;
  ns(name: string, options?: LookupOptions): Promise<DnsAnswer<string>>;
  soa(name: string, options?: LookupOptions): Promise<DnsAnswer<SoaRecord>>;
  tlsa(name: string, options?: LookupOptions): Promise<DnsAnswer<TlsaRecord>>;
  /** Forgets everything cached. */
  clear(): void;
  /** Ends what is under way; that, and every later look-up, rejects with ECANCELLED. */
  close(): void;
}

export interface LookupOptions {
  /** Asks the resolvers, whatever is cached; the answer is cached then. */
  fresh?: boolean;
  /** Rejects this caller with the signal's reason; others who asked the same go on waiting. */
  signal?: AbortSignal | undefined;
}

export interface DnsAnswer<T> {
  /** At least one. Names in them are lower case without trailing dot. */
  records: T[];
  /** Seconds that the answer still holds. */
  ttl: number;
  /** The AD bit, of every answer on the way. */
  authenticated: boolean;
}

export interface MxRecord {
  preference: number;
  /** '' for the null MX (RFC 7505). */
  exchange: string;
}

export interface SoaRecord {
  mname: string;
  rname: string;
  serial: number;
  refresh: number;
  retry: number;
  expire: number;
  minimum: number;
}

export interface TlsaRecord {
  usage: number;
  selector: number;
  matchingType: number;
  certificate: Buffer;
}

export interface ResolverSettings {
  /** `ip`, `ip:port` or `[v6]:port`; empty means the system's. */
  resolvers: readonly string[];
  /** Milliseconds for one question, over all servers; a chain of CNAMEs may need several questions. */
  timeoutMs: number;
  clock: Clock;
  random: Random;
  /** Answers kept, 20,000 unless told. */
  cacheSize?: number;
}

const LEAST_TTL = 60;
const MOST_TTL = 3600;
const MOST_NEGATIVE_TTL = 300;
const FAILURE_TTL = 5;

/** Throws when an address in `resolvers` is none. Look-ups reject with `DnsError` only (or the signal's reason). */
export function createResolver(settings: ResolverSettings): Resolver {
  const texts = settings.resolvers.length > 0 ? settings.resolvers : getServers();
  const { clock, random, timeoutMs } = settings;
  const exchange = createExchange({ servers: texts.map(parseServer), timeoutMs, random });
  const cache = createCache<Outcome>(clock, settings.cacheSize ?? 20_000);
  const underWay = new Map<string, Promise<Known>>();
  let closed = false;

  /** One question: from the cache, from whoever is asking it just now, or from the servers. */
  function question(asked: Question, fresh: boolean): Promise<Known> {
    const key = `${asked.type} ${asked.name}`;
    const known = fresh || closed ? undefined : cache.get(key);
    if (known) return Promise.resolve({ outcome: known.value, ttl: known.ttl });
    const same = underWay.get(key);
    if (same) return same;
    const answer = exchange.ask(asked).then((outcome) => {
      underWay.delete(key);
      const ttl = lifetime(outcome);
      // A fresh question that failed must not push out an answer that still holds.
      const worse = outcome.kind === 'failed' && cache.get(key) !== undefined;
      if (ttl > 0 && !worse) cache.set(key, outcome, ttl);
      return { outcome, ttl };
    });
    underWay.set(key, answer);
    return answer;
  }

  async function lookup<T>(
    type: QuestionType,
    given: string,
    read: (record: Answer) => T | null,
    { fresh = false, signal }: LookupOptions = {},
  ): Promise<DnsAnswer<T>> {
    signal?.throwIfAborted();
    const what = `${type} ${given}`;
    const first = canonicalName(given);
    if (first === null) throw new DnsError('EBADNAME', what, 'not a domain name');
    let name = first;
    let least = MOST_TTL;
    let authenticated = true;
    for (let hops = 0; hops <= MAX_HOPS; ) {
      const { outcome, ttl }: Known = await unlessAborted(question({ name, type }, fresh), signal);
      if (outcome.kind === 'failed') throw new DnsError(outcome.code, what, outcome.detail);
      if (outcome.kind === 'absent') throw new DnsError(outcome.code, what, ABSENT[outcome.code]);
      least = Math.min(least, ttl);
      authenticated &&= outcome.authenticated;
      if (outcome.kind === 'records') {
        const records = outcome.records.map(read).filter((record) => record !== null);
        if (records.length > 0) return { records, ttl: least, authenticated };
        throw new DnsError('EBADRESP', what, 'no record that makes sense');
      }
      name = outcome.target;
      hops += outcome.hops;
    }
    throw new DnsError('EBADRESP', what, TOO_MANY_HOPS);
  }

  return {
    a: (name, options) => lookup('A', name, readAddress, options),
    aaaa: (name, options) => lookup('AAAA', name, readAddress, options),
    mx: (name, options) => lookup('MX', name, readMx, options),
    txt: (name, options) => lookup('TXT', name, readTxt, options),
    cname: (name, options) => lookup('CNAME', name, readTarget, options),
    ptr: (name, options) => lookup('PTR', name, readTarget, options),
    ns: (name, options) => lookup('NS', name, readTarget, options),
    soa: (name, options) => lookup('SOA', name, readSoa, options),
    tlsa: (name, options) => lookup('TLSA', name, readTlsa, options),
    clear: () => cache.clear(),
    close: () => {
      closed = true;
      exchange.close();
    },
  };
}

interface Known {
  outcome: Outcome;
  ttl: number;
}

const ABSENT = {
  ENOTFOUND: 'the name does not exist (NXDOMAIN)',
  ENODATA: 'the name has no record of this type',
} as const;

function lifetime(outcome: Outcome): number {
  if (outcome.kind === 'failed') return FAILURE_TTL;
  if (outcome.kind === 'absent') return Math.min(outcome.ttl, MOST_NEGATIVE_TTL);
  return Math.min(Math.max(outcome.ttl, LEAST_TTL), MOST_TTL);
}

/** The shared question goes on: it is bounded, and its answer may serve the next who asks. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
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
 * As UTF-8 when the whole record is that, else a character per byte. A character that two strings share goes
 * with the second.
 */
function readTxt(record: Answer): string[] | null {
  if (record.type !== 'TXT') return null;
  const chunks = [record.data]
    .flat()
    .map((chunk) => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk));
  const decoder = new StringDecoder(isUtf8(Buffer.concat(chunks)) ? 'utf8' : 'latin1');
  return chunks.map((chunk) => decoder.write(chunk));
}

function readSoa(record: Answer): SoaRecord | null {
  if (record.type !== 'SOA') return null;
  const { mname, rname, serial = 0, refresh = 0, retry = 0, expire = 0, minimum = 0 } = record.data;
  return { mname: mname.toLowerCase(), rname: rname.toLowerCase(), serial, refresh, retry, expire, minimum };
}

function readTlsa(record: Answer): TlsaRecord | null {
  return record.type === 'TLSA' ? record.data : null;
}
