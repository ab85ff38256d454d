import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  type DecodedPacket,
  decode,
  encode,
  type Question as PacketQuestion,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import { fromWire, isWithin } from './names.ts';
import { optRecord, RCODE, UDP_SIZE } from './wire.ts';
import type { Zone } from './zone.ts';
import { toAnswer, type ZoneRecord } from './zone-record.ts';

/**
 * What an authoritative server says to a query: bytes in, bytes out, no sockets. Speaks for its origins only
 * and asks nobody (no recursion, no referrals, no zone transfer), so there is nothing to amplify: over UDP no
 * answer exceeds 1232 bytes, and what is not a question is answered with a bare header or not at all.
 */
export interface Authority {
  zone: Zone;
  /** Canonical names of the zones it speaks for. */
  origins: readonly string[];
  /** For the SOA of an origin that has none among its records. */
  serial: number;
}

/** What came of looking a question up, before it is cut to size. */
export interface Finding {
  rcode: number;
  authoritative: boolean;
  answers: Answer[];
  authorities: Answer[];
}

const HEADER = 12;
/** Without EDNS (RFC 1035 §4.2.1). */
const PLAIN_UDP_SIZE = 512;
const TCP_SIZE = 65_535;
const MAX_CHAIN = 8;
/** Seconds; also how long a "no" is remembered, so a record that is added is soon seen. */
const SOA_TTL = 60;
/** RFC 8482 §4.2. */
const ANY_TTL = 3600;

/** Null: not a query, no answer (two servers must not answer each other's answers). Throws at a malformed record. */
export function respondTo(query: Buffer, via: 'udp' | 'tcp', authority: Authority): Buffer | null {
  const asked = readQuery(query);
  if (asked === null || Buffer.isBuffer(asked)) return asked;
  return encodeFinding(asked, via, asked.badVersion ? NOTHING : find(asked.question, authority));
}

export interface Query {
  packet: DecodedPacket;
  question: PacketQuestion;
  edns: { size: number; dnssecOk: boolean } | null;
  /** An EDNS version that we do not know (RFC 6891 §6.1.3). */
  badVersion: boolean;
}

/** The query in `bytes`; or the answer itself where it is no proper query; null where silence is the answer. */
export function readQuery(bytes: Buffer): Query | Buffer | null {
  if (bytes.length < HEADER) return null;
  const flags = bytes.readUInt16BE(2);
  if ((flags & 0x8000) !== 0) return null;
  if ((flags & 0x7800) !== 0) return bareAnswer(bytes, RCODE.NOTIMP);
  // One question, no records but EDNS and a signature; looked at before the decoder makes room for more.
  const [questions, answers, authorities, additionals] = [4, 6, 8, 10].map((at) => bytes.readUInt16BE(at));
  if (questions !== 1 || answers !== 0 || authorities !== 0 || (additionals ?? 0) > 2) {
    return bareAnswer(bytes, RCODE.FORMERR);
  }
  try {
    const packet = decode(bytes);
    const [question] = packet.questions ?? [];
    if (!question || fromWire(question.name) === null) return bareAnswer(bytes, RCODE.FORMERR);
    const opt = packet.additionals?.find((record) => record.type === 'OPT');
    const edns = opt ? { size: opt.udpPayloadSize, dnssecOk: opt.flag_do } : null;
    return { packet, question, edns, badVersion: (opt?.ednsVersion ?? 0) > 0 };
  } catch {
    return bareAnswer(bytes, RCODE.FORMERR); // the decoder throws whatever comes to hand at malformed bytes
  }
}

/** A header without a question, for what cannot be read or must not be looked at. `query` has at least 12 bytes. */
export function bareAnswer(query: Buffer, rcode: number): Buffer {
  const answer = Buffer.alloc(HEADER);
  query.copy(answer, 0, 0, 4);
  answer.writeUInt16BE(0x8000 | (query.readUInt16BE(2) & (0x7800 | RECURSION_DESIRED)) | rcode, 2);
  return answer;
}

const NOTHING: Finding = { rcode: RCODE.BADVERS, authoritative: false, answers: [], authorities: [] };

/** The answer as bytes; over UDP an answer that does not fit is cut to its question and TC. */
export function encodeFinding({ packet, question, edns }: Query, via: 'udp' | 'tcp', found: Finding): Buffer {
  const offered = Math.min(Math.max(edns?.size ?? PLAIN_UDP_SIZE, PLAIN_UDP_SIZE), UDP_SIZE);
  const message = (cut: boolean) =>
    encode({
      type: 'response',
      id: packet.id ?? 0,
      flags:
        (found.rcode & 0x0f) |
        (found.authoritative ? AUTHORITATIVE_ANSWER : 0) |
        (packet.flag_rd ? RECURSION_DESIRED : 0) |
        (cut ? TRUNCATED_RESPONSE : 0),
      questions: [question],
      answers: cut ? [] : found.answers,
      authorities: cut ? [] : found.authorities,
      additionals: edns ? [optRecord(edns.dnssecOk, found.rcode >> 4)] : [],
    });
  const whole = message(false);
  return whole.length <= (via === 'udp' ? offered : TCP_SIZE) ? whole : message(true);
}

function find(question: PacketQuestion, { zone, origins, serial }: Authority): Finding {
  const refused = { rcode: RCODE.REFUSED, authoritative: false, answers: [], authorities: [] };
  let name = fromWire(question.name) ?? '';
  if (question.class !== 'IN' || TRANSFERS.includes(question.type)) return refused;
  if (originOf(name, origins) === undefined) return refused;

  const answers: Answer[] = [];
  for (let hops = 0; hops <= MAX_CHAIN; hops++) {
    const origin = originOf(name, origins);
    if (origin === undefined) return { rcode: RCODE.NOERROR, authoritative: true, answers, authorities: [] };
    const records = zone.find(name) ?? (name === origin ? [] : undefined);
    const soa = soaOf(origin, zone, serial);
    if (!records) return { rcode: RCODE.NXDOMAIN, authoritative: true, answers, authorities: [soa] };
    const wanted = matching(question.type, name, records, name === origin ? soa : null);
    if (wanted.length > 0) {
      return { rcode: RCODE.NOERROR, authoritative: true, answers: [...answers, ...wanted], authorities: [] };
    }
    const alias = records.find((record) => record.type === 'CNAME');
    if (!alias) return { rcode: RCODE.NOERROR, authoritative: true, answers, authorities: [soa] };
    const answer = toAnswer(alias);
    answers.push(answer);
    if (answer.type === 'CNAME') name = answer.data;
  }
  return { rcode: RCODE.SERVFAIL, authoritative: false, answers: [], authorities: [] }; // CNAMEs in a circle
}

const TRANSFERS: readonly string[] = ['AXFR', 'IXFR'];

function matching(type: string, name: string, records: readonly ZoneRecord[], soa: Answer | null): Answer[] {
  if (type === 'ANY') return [{ type: 'HINFO', name, ttl: ANY_TTL, data: { cpu: 'RFC8482', os: '' } }];
  if (type === 'SOA' && soa) return [soa];
  return records.filter((record) => record.type === type).map(toAnswer);
}

/** The closest origin at or above the name. */
function originOf(name: string, origins: readonly string[]): string | undefined {
  return origins
    .filter((origin) => isWithin(name, origin))
    .reduce<string | undefined>(
      (best, origin) => (best && best.length >= origin.length ? best : origin),
      undefined,
    );
}

function soaOf(origin: string, zone: Zone, serial: number): Answer {
  const apex = zone.find(origin) ?? [];
  const own = apex.find((record) => record.type === 'SOA');
  if (own) return toAnswer(own);
  const primary = apex.find((record) => record.type === 'NS');
  const data = {
    mname: (primary && fromWire(primary.value)) ?? origin,
    rname: origin === '.' ? 'hostmaster' : `hostmaster.${origin}`,
    serial,
    refresh: 3600,
    retry: 600,
    expire: 604_800,
    minimum: SOA_TTL,
  };
  return { type: 'SOA', name: origin, ttl: SOA_TTL, data };
}
