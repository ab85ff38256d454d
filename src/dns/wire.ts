import {
  type Answer,
  AUTHENTIC_DATA,
  type DecodedPacket,
  DNSSEC_OK,
  decode,
  encode,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import { fromWire } from './names.ts';

/**
 * A question of ours as bytes, and bytes as the answer to a question of ours. dns-packet knows the record
 * formats; what makes bytes an answer to what we asked is decided here, and nowhere else.
 */
export type QuestionType = 'A' | 'AAAA' | 'MX' | 'TXT' | 'CNAME' | 'PTR' | 'NS' | 'SOA' | 'TLSA';

export interface Question {
  /** Canonical, see names.ts. */
  name: string;
  type: QuestionType;
}

export interface Reply {
  /** RFC 1035 §4.1.1, with the upper bits of EDNS (RFC 6891 §6.1.3). */
  rcode: number;
  truncated: boolean;
  /** From a server that stands for the zone. */
  authoritative: boolean;
  /** From a server that asks others for us. */
  recursive: boolean;
  /** The AD bit: the resolver has validated the answer (RFC 4035 §3.2.3). Worth what the way to it is worth. */
  authenticated: boolean;
  answers: Answer[];
  authorities: Answer[];
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

/** Largest UDP answer that crosses any network in one piece (DNS flag day 2020); also what our servers send. */
export const UDP_SIZE = 1232;

const CUT: Reply = {
  rcode: RCODE.NOERROR,
  truncated: true,
  authoritative: false,
  recursive: false,
  authenticated: false,
  answers: [],
  authorities: [],
};

const RCODE_BITS = 0x0f;
const OPCODE_BITS = 0x7800;

/** EDNS as we say it, in questions and in answers (RFC 6891 §6.1.2). */
export function optRecord(dnssecOk: boolean, extendedRcode = 0): Answer {
  return {
    type: 'OPT',
    name: '.',
    udpPayloadSize: UDP_SIZE,
    extendedRcode,
    ednsVersion: 0,
    flags: dnssecOk ? DNSSEC_OK : 0,
    flag_do: dnssecOk,
    options: [],
  };
}

/** With EDNS the DO and AD bits ask the resolver to say what it has validated (RFC 6840 §5.7). */
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
 * The answer to `question` as sent with `id`. 'other': not an answer to it (late, forged or lost), to be
 * ignored. 'broken': the server meant to answer, but it cannot be read.
 */
export function readReply(bytes: Buffer, question: Question, id: number): Reply | 'other' | 'broken' {
  if (bytes.length < 12 || bytes.readUInt16BE(0) !== id) return 'other';
  const packet = decoded(bytes);
  // Some servers cut in the middle of a record: that it was cut is all we need to know of it.
  if (!packet) return (bytes.readUInt16BE(2) & TRUNCATED_RESPONSE) !== 0 ? CUT : 'broken';
  if (!packet.flag_qr || ((packet.flags ?? 0) & OPCODE_BITS) !== 0) return 'other';
  const rcode = rcodeOf(packet);
  if (!repeats(packet, question, rcode)) return 'other';
  return {
    rcode,
    truncated: packet.flag_tc,
    authoritative: packet.flag_aa,
    recursive: packet.flag_ra,
    authenticated: packet.flag_ad,
    answers: packet.answers ?? [],
    authorities: packet.authorities ?? [],
  };
}

function decoded(bytes: Buffer): DecodedPacket | null {
  try {
    return decode(bytes);
  } catch {
    return null; // dns-packet throws whatever comes to hand at malformed bytes
  }
}

function rcodeOf(packet: DecodedPacket): number {
  const opt = packet.additionals?.find((record) => record.type === 'OPT');
  return ((opt?.extendedRcode ?? 0) << 4) | ((packet.flags ?? 0) & RCODE_BITS);
}

/** An answer repeats the question (RFC 5452 §4.2); only a server that could not read it may leave it out. */
function repeats(packet: DecodedPacket, question: Question, rcode: number): boolean {
  const [asked, ...more] = packet.questions ?? [];
  if (!asked) return rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP || rcode === RCODE.REFUSED;
  return (
    more.length === 0 &&
    asked.type === question.type &&
    asked.class === 'IN' &&
    fromWire(asked.name) === question.name
  );
}
