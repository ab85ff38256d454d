import { DnsError } from './dns-error.ts';
import { forMailauth } from './mailauth.ts';
import { type DnsAnswer, type Lookup, type LookupOptions, mapLookups, type Resolver } from './resolver.ts';

/** The result of a lookup as a value, for callers that treat "no record" and "no answer" as regular results. */
export type LookupResult<T> =
  | { kind: 'records'; records: T[] }
  /** An authoritative negative answer; `nameExists`: the name has records of other types, or names below it. */
  | { kind: 'absent'; nameExists: boolean }
  /** No usable answer; `reason` is a phrase for people. */
  | { kind: 'unknown'; reason: string };

export type DnsView = ReturnType<typeof createDnsView>;

/**
 * Characters of one TXT record, and of all at a name. Evaluating an SPF or DMARC record takes time of the event loop in
 * proportion to its length, for each of its includes again; the longest in use have about 2,000 characters.
 */
const MAX_TXT_RECORD = 4096;
const MAX_TXT_RECORDS = 16_384;

/** An answer with longer records is unknown. */
async function withoutExcess(
  name: string,
  answer: Promise<DnsAnswer<string[]>>,
): Promise<DnsAnswer<string[]>> {
  const { records } = await answer;
  const lengths = records.map((strings) => strings.reduce((sum, text) => sum + text.length, 0));
  const total = lengths.reduce((sum, length) => sum + length, 0);
  if (total <= MAX_TXT_RECORDS && lengths.every((length) => length <= MAX_TXT_RECORD)) return answer;
  const limits = `more than ${MAX_TXT_RECORD} characters in a record or ${MAX_TXT_RECORDS} in all`;
  throw new DnsError('EBADRESP', `TXT ${name}`, limits);
}

/**
 * DNS during one piece of work, such as the verification of a domain. Each query is sent once, however many callers
 * need its answer, so that all of them see the same state of the zone. `fresh` bypasses our caches; after `signal` is
 * aborted, further results are unknown.
 */
export function createDnsView(resolver: Resolver, options: LookupOptions = {}) {
  const once = mapLookups(resolver, (lookup) => memoized((name) => lookup(name, options)));
  once.txt = memoized((name) => withoutExcess(name, resolver.txt(name, options)));
  const view =
    <T>(lookup: Lookup<T>) =>
    (name: string): Promise<LookupResult<T>> =>
      toResult(lookup(name).then(({ records }) => records));
  return {
    /** Each record as one text, its strings joined (RFC 7208 §3.3, RFC 6376 §3.6.2.2). */
    txt: (name: string): Promise<LookupResult<string>> =>
      toResult(once.txt(name).then(({ records }) => records.map((strings) => strings.join('')))),
    mx: view(once.mx),
    /** The CNAME at the name itself. */
    cname: view(once.cname),
    ns: view(once.ns),
    a: view(once.a),
    aaaa: view(once.aaaa),
    ptr: view(once.ptr),
    /** Answers lookups of mailauth. */
    resolve: forMailauth(once),
  };
}

/** The IPv4 and IPv6 addresses of a name; unknown when neither lookup found any and one of them is unknown. */
export async function addressesOf(
  view: Pick<DnsView, 'a' | 'aaaa'>,
  name: string,
): Promise<LookupResult<string>> {
  const answers = await Promise.all([view.a(name), view.aaaa(name)]);
  const records = answers.flatMap((answer) => (answer.kind === 'records' ? answer.records : []));
  if (records.length > 0) return { kind: 'records', records };
  const unknown = answers.find((answer) => answer.kind === 'unknown');
  return (
    unknown ?? {
      kind: 'absent',
      nameExists: answers.some((answer) => answer.kind === 'absent' && answer.nameExists),
    }
  );
}

function memoized<T>(lookup: (name: string) => Promise<DnsAnswer<T>>): Lookup<T> {
  const answers = new Map<string, Promise<DnsAnswer<T>>>();
  return (name) => {
    const key = name.toLowerCase();
    const answer = answers.get(key) ?? lookup(key);
    answers.set(key, answer);
    return answer;
  };
}

async function toResult<T>(records: Promise<T[]>): Promise<LookupResult<T>> {
  try {
    return { kind: 'records', records: await records };
  } catch (error) {
    // An invalid name, such as one of more than 253 characters, has no records.
    if (error instanceof DnsError && error.code === 'EBADNAME') return { kind: 'absent', nameExists: false };
    if (error instanceof DnsError && error.absent)
      return { kind: 'absent', nameExists: error.code === 'ENODATA' };
    if (error instanceof DnsError) return { kind: 'unknown', reason: reasonOf(error) };
    if (error instanceof DOMException) return { kind: 'unknown', reason: 'the check timed out' };
    throw error;
  }
}

const REASONS: Partial<Record<DnsError['code'], string>> = {
  ETIMEOUT: 'the DNS server did not answer (timeout)',
  ESERVFAIL: 'the DNS server answered SERVFAIL: it could not resolve the name',
  EREFUSED: 'the DNS server refused to answer',
  ECANCELLED: 'the lookup was cancelled',
};

/** A reason for accounts, which must not see the addresses of our resolvers in the error's own message. */
function reasonOf(error: DnsError): string {
  return REASONS[error.code] ?? 'the DNS server sent an answer that cannot be used';
}
