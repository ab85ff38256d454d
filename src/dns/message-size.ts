/*
 * What decoding a DNS message costs, read from its bytes before it is decoded: 64 KB of TXT records with empty strings become
 * 65,000 objects, which take seconds of the main thread and megabytes of the cache.
 */

/** Records of all sections, and strings in TXT records. Large domains have some hundred. */
const MAX_RECORDS = 256;
const MAX_STRINGS = 1024;
/** Memory of an object. */
const OBJECT_BYTES = 128;
const TXT = 16;
const HEADER_BYTES = 12;
const QUESTION_BYTES = 4;
/** Type, class, TTL and length. */
const RECORD_BYTES = 10;

/**
 * The approximate memory of a message (RFC 1035 §4.1) when it is decoded, bytes; null: it has too many records or strings, or
 * ends too early.
 */
export function decodedSize(message: Buffer): number | null {
  if (message.length < HEADER_BYTES) return null;
  const questions = message.readUInt16BE(4);
  const records = message.readUInt16BE(6) + message.readUInt16BE(8) + message.readUInt16BE(10);
  if (questions > 1 || records > MAX_RECORDS) return null;
  let at = HEADER_BYTES;
  for (let n = 0; n < questions; n++) at = endOfName(message, at) + QUESTION_BYTES;
  let strings = 0;
  for (let n = 0; n < records; n++) {
    at = endOfName(message, at);
    if (at + RECORD_BYTES > message.length) return null;
    const end = at + RECORD_BYTES + message.readUInt16BE(at + 8);
    if (message.readUInt16BE(at) === TXT) strings += stringsIn(message, at + RECORD_BYTES, end);
    if (strings > MAX_STRINGS) return null;
    at = end;
  }
  if (at > message.length) return null;
  return message.length + OBJECT_BYTES * (records + strings);
}

/** The position after a name, which may end with a pointer (RFC 1035 §4.1.4). */
function endOfName(message: Buffer, start: number): number {
  let at = start;
  for (;;) {
    const length = message[at];
    if (length === undefined) return message.length + 1;
    if (length === 0) return at + 1;
    if (length >= 0xc0) return at + 2;
    at += 1 + length;
  }
}

/** The strings between two positions, one more than the maximum at most. */
function stringsIn(message: Buffer, start: number, end: number): number {
  let count = 0;
  for (let at = start; at < end && count <= MAX_STRINGS; at += 1 + (message[at] ?? 0)) count++;
  return count;
}
