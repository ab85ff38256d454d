import type { Answer, StringAnswer } from 'dns-packet';
import type { DnsErrorCode } from './dns-error.ts';
import { fromWire } from './names.ts';
import { type DnsResponse, type Question, RCODE } from './wire.ts';

/**
 * The meaning of one response: records, an alias to query next, an authoritative negative answer, or a failure. The
 * difference between the last two determines bounces, so it is strict: only NXDOMAIN, or NOERROR from a recursive or
 * authoritative server, is a negative answer. `name`: of the records, at the end of the CNAMEs.
 */
export type QueryResult =
  | {
      kind: 'records';
      name: string;
      records: Answer[];
      ttl: number;
      authenticated: boolean;
      hops: number;
      /** Approximate memory, bytes. */
      size: number;
    }
  | { kind: 'alias'; target: string; ttl: number; authenticated: boolean; hops: number }
  | { kind: 'absent'; code: 'ENOTFOUND' | 'ENODATA'; ttl: number }
  | {
      kind: 'failed';
      code: Exclude<DnsErrorCode, 'ENOTFOUND' | 'ENODATA' | 'EBADNAME'>;
      detail: string;
      /** The query was not sent: nothing is known about the name. */
      isUnsent?: boolean;
    };

/** Maximum number of CNAMEs followed for one lookup, over all of its responses. */
export const MAX_HOPS = 8;

/** Seconds. A larger value means zero (RFC 2181 §8). */
const MAX_TTL = 0x7fff_ffff;

/** `ttl` in seconds: the least one of the chain; 0 for a negative answer without SOA (RFC 2308 §5). */
export function queryResultOf(question: Question, response: DnsResponse): QueryResult {
  if (response.rcode === RCODE.SERVFAIL) return { kind: 'failed', code: 'ESERVFAIL', detail: 'SERVFAIL' };
  if (response.rcode === RCODE.REFUSED) return { kind: 'failed', code: 'EREFUSED', detail: 'REFUSED' };
  if (response.rcode !== RCODE.NOERROR && response.rcode !== RCODE.NXDOMAIN) {
    return { kind: 'failed', code: 'EBADRESP', detail: `response code ${response.rcode}` };
  }

  let name = question.name;
  let ttl = MAX_TTL;
  for (let hops = 0; hops <= MAX_HOPS; hops++) {
    const here = response.answers.filter((record) => fromWire(record.name) === name);
    const records = here.filter((record) => record.type === question.type);
    if (records.length > 0) {
      ttl = Math.min(ttl, ...records.map(ttlOf));
      const { authenticated, size } = response;
      return { kind: 'records', name, records, ttl, authenticated, hops, size };
    }
    const alias = here.find((record): record is StringAnswer => record.type === 'CNAME');
    if (!alias) return chainEnd(response, name, ttl, hops);
    const target = fromWire(alias.data);
    if (target === null)
      return { kind: 'failed', code: 'EBADRESP', detail: `CNAME of ${name} has an invalid target` };
    ttl = Math.min(ttl, ttlOf(alias));
    name = target;
  }
  return { kind: 'failed', code: 'EBADRESP', detail: TOO_MANY_HOPS };
}

export const TOO_MANY_HOPS = `more than ${MAX_HOPS} CNAMEs, or a loop of them`;

/** There is no record of the type at the end of the chain; NXDOMAIN applies to that last name (RFC 6604 §3). */
function chainEnd(response: DnsResponse, name: string, ttl: number, hops: number): QueryResult {
  const soa = response.authorities.find((record) => record.type === 'SOA');
  const negativeTtl = soa ? Math.min(ttl, ttlOf(soa), soa.data.minimum ?? 0) : 0;
  if (response.rcode === RCODE.NXDOMAIN) return { kind: 'absent', code: 'ENOTFOUND', ttl: negativeTtl };
  if (soa) return { kind: 'absent', code: 'ENODATA', ttl: negativeTtl };
  if (hops > 0) return { kind: 'alias', target: name, ttl, authenticated: response.authenticated, hops };
  if (response.recursive || response.authoritative) return { kind: 'absent', code: 'ENODATA', ttl: 0 };
  return { kind: 'failed', code: 'EBADRESP', detail: 'a referral: the server is not recursive' };
}

function ttlOf(record: Answer): number {
  const ttl = 'ttl' in record ? (record.ttl ?? 0) : 0;
  return ttl > MAX_TTL ? 0 : ttl;
}
