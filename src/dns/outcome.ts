import type { Answer, StringAnswer } from 'dns-packet';
import type { DnsErrorCode } from './dns-error.ts';
import { fromWire } from './names.ts';
import { type Question, RCODE, type Reply } from './wire.ts';

/**
 * What one reply says to one question: records, "ask for that name instead", an authoritative no, or nothing
 * of use. The difference between the last two decides over bounces, so it is drawn strictly: only NXDOMAIN,
 * or NOERROR from a server that recurses or stands for the zone, is a no.
 */
export type Outcome =
  | { kind: 'records'; records: Answer[]; ttl: number; authenticated: boolean; hops: number }
  | { kind: 'alias'; target: string; ttl: number; authenticated: boolean; hops: number }
  | { kind: 'absent'; code: 'ENOTFOUND' | 'ENODATA'; ttl: number }
  | { kind: 'failed'; code: Exclude<DnsErrorCode, 'ENOTFOUND' | 'ENODATA' | 'EBADNAME'>; detail: string };

/** CNAMEs followed for one look-up, within answers and over several. */
export const MAX_HOPS = 8;

/** Top bit set means zero (RFC 2181 §8). */
const MAX_TTL = 0x7fff_ffff;

/** `ttl` in seconds as the servers gave it, the least along the chain; 0 for a "no" without SOA (RFC 2308 §5). */
export function outcomeOf(question: Question, reply: Reply): Outcome {
  if (reply.rcode === RCODE.SERVFAIL) return { kind: 'failed', code: 'ESERVFAIL', detail: 'SERVFAIL' };
  if (reply.rcode === RCODE.REFUSED) return { kind: 'failed', code: 'EREFUSED', detail: 'REFUSED' };
  if (reply.rcode !== RCODE.NOERROR && reply.rcode !== RCODE.NXDOMAIN) {
    return { kind: 'failed', code: 'EBADRESP', detail: `response code ${reply.rcode}` };
  }

  let name = question.name;
  let ttl = MAX_TTL;
  for (let hops = 0; hops <= MAX_HOPS; hops++) {
    const here = reply.answers.filter((record) => fromWire(record.name) === name);
    const records = here.filter((record) => record.type === question.type);
    if (records.length > 0) {
      ttl = Math.min(ttl, ...records.map(ttlOf));
      return { kind: 'records', records, ttl, authenticated: reply.authenticated, hops };
    }
    const alias = here.find((record): record is StringAnswer => record.type === 'CNAME');
    if (!alias) return chainEnd(reply, name, ttl, hops);
    const target = fromWire(alias.data);
    if (target === null)
      return { kind: 'failed', code: 'EBADRESP', detail: `CNAME of ${name} names no name` };
    ttl = Math.min(ttl, ttlOf(alias));
    name = target;
  }
  return { kind: 'failed', code: 'EBADRESP', detail: TOO_MANY_HOPS };
}

export const TOO_MANY_HOPS = `more than ${MAX_HOPS} CNAMEs, or a loop of them`;

/** No record of the type at the name where the chain ended; NXDOMAIN is about that last name (RFC 6604 §3). */
function chainEnd(reply: Reply, name: string, ttl: number, hops: number): Outcome {
  const soa = reply.authorities.find((record) => record.type === 'SOA');
  const negativeTtl = soa ? Math.min(ttl, ttlOf(soa), soa.data.minimum ?? 0) : 0;
  if (reply.rcode === RCODE.NXDOMAIN) return { kind: 'absent', code: 'ENOTFOUND', ttl: negativeTtl };
  if (soa) return { kind: 'absent', code: 'ENODATA', ttl: negativeTtl };
  if (hops > 0) return { kind: 'alias', target: name, ttl, authenticated: reply.authenticated, hops };
  if (reply.recursive || reply.authoritative) return { kind: 'absent', code: 'ENODATA', ttl: 0 };
  return { kind: 'failed', code: 'EBADRESP', detail: 'a referral: the server does not resolve for us' };
}

function ttlOf(record: Answer): number {
  const ttl = 'ttl' in record ? (record.ttl ?? 0) : 0;
  return ttl > MAX_TTL ? 0 : ttl;
}
