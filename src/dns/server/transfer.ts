import { type Answer, AUTHORITATIVE_ANSWER, encode, encodingLength } from 'dns-packet';
import type { Query } from '../authoritative.ts';

/*
 * Zone transfers (AXFR, RFC 5936): the SOA, all other records, the SOA again, in as many messages as necessary. A change
 * during a transfer may or may not be part of it; the transfer of the next version contains it in any case. An IXFR
 * is answered with the whole zone (RFC 1995 §4), or with the SOA alone if the client has this version.
 */

/** A message of this many bytes is complete; far below the limit of 65,535, and encoded within milliseconds. */
const MESSAGE_BYTES = 16_384;

/**
 * The messages of the transfer. `others`: all records of the zone but the SOA, in portions. Ends early when the reader
 * returns.
 */
export async function* transferMessages(
  query: Query,
  soa: Answer,
  others: AsyncIterable<readonly Answer[]>,
): AsyncGenerator<Buffer> {
  if (query.question.type === 'IXFR' && isCurrent(query, soa)) {
    yield message(query, [soa], true);
    return;
  }
  let first = true;
  let records: Answer[] = [soa];
  let bytes = 0;
  for await (const portion of others) {
    for (const record of portion) {
      records.push(record);
      bytes += lengthOf(record);
      if (bytes < MESSAGE_BYTES) continue;
      yield message(query, records, first);
      first = false;
      records = [];
      bytes = 0;
    }
  }
  yield message(query, [...records, soa], first);
}

/** The response over UDP: the SOA alone, so that a client with another version continues over TCP (RFC 1995 §2). */
export function udpTransferResponse(query: Query, soa: Answer): Buffer {
  return message(query, [soa], true);
}

/** Whether the client's serial is the zone's, or newer (RFC 1982 §3.2). */
function isCurrent({ packet }: Query, soa: Answer): boolean {
  const [known] = packet.authorities ?? [];
  if (known?.type !== 'SOA' || soa.type !== 'SOA') return false;
  return serialDistance(known.data.serial ?? 0, soa.data.serial ?? 0) >= 0;
}

/** How far `serial` is ahead of `other` in serial number arithmetic; negative: behind. */
export function serialDistance(serial: number, other: number): number {
  return (serial - other) | 0;
}

/** The question is in the first message only (RFC 5936 §2.2.1). */
function message({ packet, question }: Query, answers: Answer[], isFirst: boolean): Buffer {
  return encode({
    type: 'response',
    id: packet.id ?? 0,
    flags: AUTHORITATIVE_ANSWER,
    questions: isFirst ? [question] : [],
    answers,
  });
}

const HEADER_BYTES = 12;

function lengthOf(record: Answer): number {
  return encodingLength({ type: 'response', answers: [record] }) - HEADER_BYTES;
}
