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
 * Answers of an authoritative server: bytes in, bytes out, no sockets. Only for its origins, without recursion,
 * referrals or zone transfers, so that there is nothing to amplify: over UDP an answer has at most 1232 bytes, and a
 * message that is not a query is answered with a header only, or not at all.
 */
export interface AuthoritativeData {
  zone: Zone;
  /** Canonical names of the zones. */
  origins: readonly string[];
  /** For the SOA of an origin without an SOA record. */
  serial: number;
}

/** The sections of an answer, before truncation. */
export interface AnswerSections {
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
/** Seconds; also the negative TTL, so that an added record is visible soon. */
const SOA_TTL = 60;
/** RFC 8482 §4.2. */
const ANY_TTL = 3600;

/** Null: not a query, no answer (two servers must not answer each other's answers). Throws for a malformed record. */
export function respondTo(query: Buffer, via: 'udp' | 'tcp', data: AuthoritativeData): Buffer | null {
  const parsed = readDnsQuery(query);
  if (parsed === null || Buffer.isBuffer(parsed)) return parsed;
  return encodeAnswer(parsed, via, parsed.badVersion ? BAD_VERSION : find(parsed.question, data));
}

export interface Query {
  packet: DecodedPacket;
  question: PacketQuestion;
  edns: { size: number; dnssecOk: boolean } | null;
  /** An unsupported EDNS version (RFC 6891 §6.1.3). */
  badVersion: boolean;
}

/** The query in `bytes`; a buffer: the error response to a malformed one; null: no response. */
export function readDnsQuery(bytes: Buffer): Query | Buffer | null {
  if (bytes.length < HEADER) return null;
  const flags = bytes.readUInt16BE(2);
  if ((flags & 0x8000) !== 0) return null;
  if ((flags & 0x7800) !== 0) return headerOnly(bytes, RCODE.NOTIMP);
  // One question, no records except EDNS and a signature; checked before the decoder allocates memory for more.
  const [questions, answers, authorities, additionals] = [4, 6, 8, 10].map((at) => bytes.readUInt16BE(at));
  if (questions !== 1 || answers !== 0 || authorities !== 0 || (additionals ?? 0) > 2) {
    return headerOnly(bytes, RCODE.FORMERR);
  }
  try {
    const packet = decode(bytes);
    const [question] = packet.questions ?? [];
    if (!question || fromWire(question.name) === null) return headerOnly(bytes, RCODE.FORMERR);
    const opt = packet.additionals?.find((record) => record.type === 'OPT');
    const edns = opt ? { size: opt.udpPayloadSize, dnssecOk: opt.flag_do } : null;
    return { packet, question, edns, badVersion: (opt?.ednsVersion ?? 0) > 0 };
  } catch {
    return headerOnly(bytes, RCODE.FORMERR); // the decoder throws errors of any type for malformed bytes
  }
}

/** A response header without a question. `query` has at least 12 bytes. */
export function headerOnly(query: Buffer, rcode: number): Buffer {
  const answer = Buffer.alloc(HEADER);
  query.copy(answer, 0, 0, 4);
  answer.writeUInt16BE(0x8000 | (query.readUInt16BE(2) & (0x7800 | RECURSION_DESIRED)) | rcode, 2);
  return answer;
}

const BAD_VERSION: AnswerSections = {
  rcode: RCODE.BADVERS,
  authoritative: false,
  answers: [],
  authorities: [],
};

/** The answer as bytes; over UDP an answer that is too large is truncated to its question, with TC. */
export function encodeAnswer(
  { packet, question, edns }: Query,
  via: 'udp' | 'tcp',
  found: AnswerSections,
): Buffer {
  const offered = Math.min(Math.max(edns?.size ?? PLAIN_UDP_SIZE, PLAIN_UDP_SIZE), UDP_SIZE);
  const message = (truncated: boolean) =>
    encode({
      type: 'response',
      id: packet.id ?? 0,
      flags:
        (found.rcode & 0x0f) |
        (found.authoritative ? AUTHORITATIVE_ANSWER : 0) |
        (packet.flag_rd ? RECURSION_DESIRED : 0) |
        (truncated ? TRUNCATED_RESPONSE : 0),
      questions: [question],
      answers: truncated ? [] : found.answers,
      authorities: truncated ? [] : found.authorities,
      additionals: edns ? [optRecord(edns.dnssecOk, found.rcode >> 4)] : [],
    });
  const whole = message(false);
  return whole.length <= (via === 'udp' ? offered : TCP_SIZE) ? whole : message(true);
}

function find(question: PacketQuestion, { zone, origins, serial }: AuthoritativeData): AnswerSections {
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
    const matches = matching(question.type, name, records, name === origin ? soa : null);
    if (matches.length > 0) {
      return {
        rcode: RCODE.NOERROR,
        authoritative: true,
        answers: [...answers, ...matches],
        authorities: [],
      };
    }
    const alias = records.find((record) => record.type === 'CNAME');
    if (!alias) return { rcode: RCODE.NOERROR, authoritative: true, answers, authorities: [soa] };
    const answer = toAnswer(alias);
    answers.push(answer);
    if (answer.type === 'CNAME') name = answer.data;
  }
  return { rcode: RCODE.SERVFAIL, authoritative: false, answers: [], authorities: [] }; // a loop of CNAMEs
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
