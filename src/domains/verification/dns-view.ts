import { DnsError } from '../../dns/dns-error.ts';
import { forMailauth } from '../../dns/mailauth.ts';
import type { DnsAnswer, LookupOptions, MxRecord, Resolver } from '../../dns/resolver.ts';

/**
 * What DNS says during one verification. Every question is asked once, however many checks want the answer,
 * so that all checks judge the same state of the zone; and "no" and "not known at present" are values here,
 * because to a check both are findings and neither is a fault.
 */
export type Seen<T> =
  | { kind: 'records'; records: T[] }
  /** An authoritative no; `nameExists` when there are records of other types, or names below. */
  | { kind: 'absent'; nameExists: boolean }
  /** Nobody answered in a way that means anything; `why` is for a person. */
  | { kind: 'unknown'; why: string };

export interface DnsView {
  /** Each record as one text, its strings joined (RFC 7208 §3.3, RFC 6376 §3.6.2.2). */
  txt(name: string): Promise<Seen<string>>;
  mx(name: string): Promise<Seen<MxRecord>>;
  /** The CNAME at the name itself. */
  cname(name: string): Promise<Seen<string>>;
  ns(name: string): Promise<Seen<string>>;
  a(name: string): Promise<Seen<string>>;
  aaaa(name: string): Promise<Seen<string>>;
  ptr(name: string): Promise<Seen<string>>;
  /** The same answers in the form mailauth asks for. */
  resolve: ReturnType<typeof forMailauth>;
}

/** `fresh` asks past our own caches; when `signal` is aborted, what is not known yet stays unknown. */
export function createDnsView(resolver: Resolver, options: LookupOptions = {}): DnsView {
  const once: Resolver = {
    ...resolver,
    a: remembered((name) => resolver.a(name, options)),
    aaaa: remembered((name) => resolver.aaaa(name, options)),
    mx: remembered((name) => resolver.mx(name, options)),
    txt: remembered((name) => resolver.txt(name, options)),
    cname: remembered((name) => resolver.cname(name, options)),
    ns: remembered((name) => resolver.ns(name, options)),
    ptr: remembered((name) => resolver.ptr(name, options)),
  };
  return {
    txt: (name) => seen(once.txt(name).then(({ records }) => records.map((strings) => strings.join('')))),
    mx: (name) => seen(recordsOf(once.mx(name))),
    cname: (name) => seen(recordsOf(once.cname(name))),
    ns: (name) => seen(recordsOf(once.ns(name))),
    a: (name) => seen(recordsOf(once.a(name))),
    aaaa: (name) => seen(recordsOf(once.aaaa(name))),
    ptr: (name) => seen(recordsOf(once.ptr(name))),
    resolve: forMailauth(once),
  };
}

/** IPv4 and IPv6 addresses together; unknown only when neither gave any and one of them is unknown. */
export async function addressesOf(view: DnsView, name: string): Promise<Seen<string>> {
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

function remembered<T>(
  ask: (name: string) => Promise<DnsAnswer<T>>,
): (name: string) => Promise<DnsAnswer<T>> {
  const answers = new Map<string, Promise<DnsAnswer<T>>>();
  return (name) => {
    const key = name.toLowerCase();
    const answer = answers.get(key) ?? ask(key);
    answers.set(key, answer);
    return answer;
  };
}

async function recordsOf<T>(answer: Promise<DnsAnswer<T>>): Promise<T[]> {
  return (await answer).records;
}

async function seen<T>(answer: Promise<T[]>): Promise<Seen<T>> {
  try {
    return { kind: 'records', records: await answer };
  } catch (error) {
    // A name that cannot exist, a record name doubled beyond 253 characters say, has no records.
    if (error instanceof DnsError && error.code === 'EBADNAME') return { kind: 'absent', nameExists: false };
    if (error instanceof DnsError && error.absent)
      return { kind: 'absent', nameExists: error.code === 'ENODATA' };
    if (error instanceof DnsError) return { kind: 'unknown', why: reasonOf(error) };
    if (error instanceof DOMException) return { kind: 'unknown', why: 'the check ran out of time' };
    throw error;
  }
}

const REASONS: Partial<Record<DnsError['code'], string>> = {
  ETIMEOUT: 'the DNS server did not answer (time-out)',
  ESERVFAIL: 'the DNS server answered SERVFAIL: it could not get the answer itself',
  EREFUSED: 'the DNS server refused to answer',
};

/** Accounts read it: the error's own message names our resolvers. */
function reasonOf(error: DnsError): string {
  return REASONS[error.code] ?? 'the DNS server gave an answer that cannot be used';
}
