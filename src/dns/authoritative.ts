import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  type DecodedPacket,
  decode,
  encode,
  type PacketOpt,
  type Question as PacketQuestion,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import { fromWire, isWithin, parentOf } from './names.ts';
import { optRecord, RCODE, UDP_SIZE } from './wire.ts';
import type { Zone } from './zone.ts';
import { toAnswer, type ZoneRecord } from './zone-record.ts';

/*
 * The responses of an authoritative server: bytes in, bytes out, no sockets. Only for its origins, without recursion and
 * referrals, so that there is little to amplify: over UDP a response has at most 1232 bytes, and the response to a message
 * that is not a query is a header only, or none. Zone transfers are in server/transfer.ts.
 */

export interface AuthoritativeData {
  zone: Zone;
  /** Canonical names of the zones. */
  origins: readonly string[];
}

/** The sections of a response, before truncation. */
export interface ResponseSections {
  rcode: number;
  authoritative: boolean;
  answers: Answer[];
  authorities: Answer[];
}

const HEADER_BYTES = 12;
/** Without EDNS (RFC 1035 §4.2.1). */
const PLAIN_UDP_SIZE = 512;
const TCP_SIZE = 65_535;
const MAX_CHAIN = 8;
/** RFC 8482 §4.2. */
const ANY_TTL = 3600;

/** The sections of the response to a query. Throws for a malformed record. */
export function sectionsOf(query: Query, data: AuthoritativeData): ResponseSections {
  return query.badVersion ? errorSections(RCODE.BADVERS) : find(query.question, data);
}

/** The sections of an error response: none. */
export function errorSections(rcode: number): ResponseSections {
  return { rcode, authoritative: false, answers: [], authorities: [] };
}

export interface Query {
  packet: DecodedPacket;
  question: PacketQuestion;
  edns: { size: number; dnssecOk: boolean } | null;
  /** An unsupported EDNS version (RFC 6891 §6.1.3). */
  badVersion: boolean;
}

/**
 * The query in `bytes`; a buffer: the error response to a malformed query; null: no response, because it is no query (two
 * servers must not respond to each other's responses).
 */
export function readDnsQuery(bytes: Buffer): Query | Buffer | null {
  if (bytes.length < HEADER_BYTES) return null;
  const flags = bytes.readUInt16BE(2);
  if ((flags & 0x8000) !== 0) return null;
  if ((flags & 0x7800) !== 0) return headerOnly(bytes, RCODE.NOTIMP);
  // One question, no records except EDNS and a signature, and the SOA of an IXFR (RFC 1995 §3); checked before the
  // decoder allocates memory for more.
  const [questions, answers, authorities, additionals] = [4, 6, 8, 10].map((at) => bytes.readUInt16BE(at));
  if (questions !== 1 || answers !== 0 || (authorities ?? 0) > 1 || (additionals ?? 0) > 2) {
    return headerOnly(bytes, RCODE.FORMERR);
  }
  if (hasDotInLabel(bytes)) return headerOnly(bytes, RCODE.FORMERR);
  try {
    const packet = decode(bytes);
    const [question] = packet.questions ?? [];
    if (!question || fromWire(question.name) === null) return headerOnly(bytes, RCODE.FORMERR);
    if (authorities === 1 && question.type !== 'IXFR') return headerOnly(bytes, RCODE.FORMERR);
    const opts = (packet.additionals ?? []).filter((record) => record.type === 'OPT');
    const [opt] = opts;
    // RFC 6891 §6.1.1: at most one OPT, at the root.
    if (opts.length > 1 || (opt !== undefined && opt.name !== '.')) return headerOnly(bytes, RCODE.FORMERR);
    const edns = opt ? { size: opt.udpPayloadSize, dnssecOk: opt.flag_do } : null;
    return { packet, question, edns, badVersion: (opt?.ednsVersion ?? 0) > 0 };
  } catch {
    return headerOnly(bytes, RCODE.FORMERR); // the decoder throws errors of any type for malformed bytes
  }
}

/** Whether a label of the question contains a dot: the decoder would read another name from it. */
function hasDotInLabel(query: Buffer): boolean {
  for (let at = HEADER_BYTES; at < query.length; ) {
    const length = query[at] ?? 0;
    // The end of the name, or a pointer, which the first name of a message cannot have.
    if (length === 0 || length > 63) return false;
    if (query.subarray(at + 1, at + 1 + length).includes(0x2e)) return true;
    at += 1 + length;
  }
  return false;
}

/** A response header without a question. `query` has at least 12 bytes. */
export function headerOnly(query: Buffer, rcode: number): Buffer {
  const response = Buffer.alloc(HEADER_BYTES);
  query.copy(response, 0, 0, 4);
  response.writeUInt16BE(0x8000 | (query.readUInt16BE(2) & (0x7800 | RECURSION_DESIRED)) | rcode, 2);
  return response;
}

/** The response as bytes; over UDP a response that is too large is truncated to its question, with TC, as with `truncate`. */
export function encodeResponse(
  { packet, question, edns }: Query,
  via: 'udp' | 'tcp',
  found: ResponseSections,
  { truncate = false, options = [] }: { truncate?: boolean; options?: PacketOpt[] } = {},
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
      additionals: edns ? [optRecord(edns.dnssecOk, found.rcode >> 4, options)] : [],
    });
  const whole = message(truncate);
  return whole.length <= (via === 'udp' ? offered : TCP_SIZE) ? whole : message(true);
}

/** The records that answer the question. Names in it keep the letter case of the question (RFC 4343 §4.1). */
export function find(question: PacketQuestion, { zone, origins }: AuthoritativeData): ResponseSections {
  let name = fromWire(question.name) ?? '';
  if (question.class !== 'IN' || TRANSFERS.includes(question.type)) return errorSections(RCODE.REFUSED);
  if (originOf(name, origins) === undefined) return errorSections(RCODE.REFUSED);

  const queried = name;
  const inQuestionCase = (answer: Answer): Answer =>
    answer.name === queried ? { ...answer, name: question.name } : answer;
  const answers: Answer[] = [];
  const respond = (rcode: number, authorities: Answer[] = []) => ({
    rcode,
    authoritative: true,
    answers,
    authorities,
  });
  for (let hops = 0; hops <= MAX_CHAIN; hops++) {
    const origin = originOf(name, origins);
    if (origin === undefined) return respond(RCODE.NOERROR);
    const records = recordsAt(name, origin, zone);
    if (!records) return respond(RCODE.NXDOMAIN, negative(origin, zone));
    const matches = matching(question.type, name, records);
    if (matches.length > 0) {
      answers.push(...matches.map(inQuestionCase));
      return respond(RCODE.NOERROR);
    }
    const alias = records.find((record) => record.type === 'CNAME');
    if (!alias) return respond(RCODE.NOERROR, negative(origin, zone));
    const answer = toAnswer({ ...alias, name });
    answers.push(inQuestionCase(answer));
    if (answer.type === 'CNAME') name = answer.data;
  }
  return errorSections(RCODE.SERVFAIL); // a loop of CNAMEs
}

/**
 * The records of the name: its own, else those of the wildcard of its closest encloser (RFC 4592 §3.3.1). Undefined: the
 * name does not exist.
 */
function recordsAt(name: string, origin: string, zone: Zone): readonly ZoneRecord[] | undefined {
  const own = zone.find(name);
  if (own !== undefined) return own;
  if (name === origin) return [];
  for (let encloser = parentOf(name); ; encloser = parentOf(encloser)) {
    if (encloser !== origin && zone.find(encloser) === undefined) continue;
    return zone.find(encloser === '.' ? '*' : `*.${encloser}`);
  }
}

/** The SOA of a negative answer: its TTL is that of the answer (RFC 2308 §3). */
function negative(origin: string, zone: Zone): Answer[] {
  const soa = soaOf(origin, zone);
  if (soa?.type !== 'SOA') return [];
  return [{ ...soa, ttl: Math.min(soa.ttl ?? 0, soa.data.minimum ?? 0) }];
}

export const TRANSFERS: readonly string[] = ['AXFR', 'IXFR'];

function matching(type: string, name: string, records: readonly ZoneRecord[]): Answer[] {
  if (type === 'ANY') return [{ type: 'HINFO', name, ttl: ANY_TTL, data: { cpu: 'RFC8482', os: '' } }];
  return records.filter((record) => record.type === type).map((record) => toAnswer({ ...record, name }));
}

/** The closest origin at or above the name. */
export function originOf(name: string, origins: readonly string[]): string | undefined {
  return origins
    .filter((origin) => isWithin(name, origin))
    .reduce<string | undefined>(
      (best, origin) => (best && best.length >= origin.length ? best : origin),
      undefined,
    );
}

/** The SOA record of the zone; undefined: it has none. Throws for a malformed record. */
export function soaOf(origin: string, zone: Zone): Answer | undefined {
  const own = zone.find(origin)?.find((record) => record.type === 'SOA');
  return own === undefined ? undefined : toAnswer(own);
}
