import {
  type Answer,
  AUTHENTIC_DATA,
  type DecodedPacket,
  DNSSEC_OK,
  decode,
  encode,
  type PacketOpt,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import { decodedSize } from './message-size.ts';
import { fromWire } from './names.ts';

/* Encodes our queries and decodes the responses; dns-packet has the record formats. */

export type QuestionType = 'A' | 'AAAA' | 'MX' | 'TXT' | 'CNAME' | 'PTR' | 'NS' | 'SOA' | 'TLSA';

export interface Question {
  /** Canonical, see names.ts. */
  name: string;
  type: QuestionType;
}

export interface DnsResponse {
  /** RFC 1035 §4.1.1, with the upper bits of EDNS (RFC 6891 §6.1.3). */
  rcode: number;
  truncated: boolean;
  /** The AA bit: the server is authoritative for the name. */
  authoritative: boolean;
  /** The RA bit: the server offers recursion. */
  recursive: boolean;
  /** The AD bit: the resolver validated the answer (RFC 4035 §3.2.3). As trustworthy as the path to the resolver. */
  authenticated: boolean;
  answers: Answer[];
  authorities: Answer[];
  /** Approximate memory of the records, bytes. */
  size: number;
}

export const RCODE = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  BADVERS: 16,
} as const;

/** Largest UDP message that no network fragments (DNS flag day 2020); also the limit of our server. */
export const UDP_SIZE = 1232;

const TRUNCATED: DnsResponse = {
  rcode: RCODE.NOERROR,
  truncated: true,
  authoritative: false,
  recursive: false,
  authenticated: false,
  answers: [],
  authorities: [],
  size: 0,
};

const RCODE_BITS = 0x0f;
const OPCODE_BITS = 0x7800;

/** The EDNS record of our queries and answers (RFC 6891 §6.1.2). */
export function optRecord(dnssecOk: boolean, extendedRcode = 0, options: PacketOpt[] = []): Answer {
  return {
    type: 'OPT',
    name: '.',
    udpPayloadSize: UDP_SIZE,
    extendedRcode,
    ednsVersion: 0,
    flags: dnssecOk ? DNSSEC_OK : 0,
    flag_do: dnssecOk,
    options,
  };
}

/** With EDNS the DO and AD bits request the validation status (RFC 6840 §5.7). */
export function encodeQuery(question: Question, id: number, edns: boolean): Buffer {
  return encode({
    type: 'query',
    id,
    flags: edns ? RECURSION_DESIRED | AUTHENTIC_DATA : RECURSION_DESIRED,
    questions: [{ name: question.name, type: question.type }],
    additionals: edns ? [optRecord(true)] : [],
  });
}

/**
 * The response to `question` as sent with `id`. 'unrelated': the response to another query (late or forged), to be
 * ignored. 'malformed': a response of the server that cannot be decoded, or is too large.
 */
export function readResponse(
  bytes: Buffer,
  question: Question,
  id: number,
): DnsResponse | 'unrelated' | 'malformed' {
  if (bytes.length < 12 || bytes.readUInt16BE(0) !== id) return 'unrelated';
  const size = decodedSize(bytes);
  const packet = size === null ? null : decoded(bytes);
  // Some servers truncate in the middle of a record; the TC bit is sufficient.
  if (size === null || packet === null)
    return (bytes.readUInt16BE(2) & TRUNCATED_RESPONSE) !== 0 ? TRUNCATED : 'malformed';
  if (!packet.flag_qr || ((packet.flags ?? 0) & OPCODE_BITS) !== 0) return 'unrelated';
  const rcode = rcodeOf(packet);
  if (!repeats(packet, question, rcode)) return 'unrelated';
  return {
    rcode,
    truncated: packet.flag_tc,
    authoritative: packet.flag_aa,
    recursive: packet.flag_ra,
    authenticated: packet.flag_ad,
    answers: packet.answers ?? [],
    authorities: packet.authorities ?? [],
    size,
  };
}

function decoded(bytes: Buffer): DecodedPacket | null {
  try {
    return decode(bytes);
  } catch {
    return null; // dns-packet throws errors of any type for malformed bytes
  }
}

function rcodeOf(packet: DecodedPacket): number {
  const opt = packet.additionals?.find((record) => record.type === 'OPT');
  return ((opt?.extendedRcode ?? 0) << 4) | ((packet.flags ?? 0) & RCODE_BITS);
}

/** A response repeats the question (RFC 5452 §4.2); only a server that could not decode it may omit it. */
function repeats(packet: DecodedPacket, question: Question, rcode: number): boolean {
  const [repeated, ...more] = packet.questions ?? [];
  if (!repeated) return rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP || rcode === RCODE.REFUSED;
  return (
    more.length === 0 &&
    repeated.type === question.type &&
    repeated.class === 'IN' &&
    fromWire(repeated.name) === question.name
  );
}
