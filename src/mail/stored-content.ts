import { promisify } from 'node:util';
import { deflateRaw, deflateRawSync, inflateRawSync } from 'node:zlib';
import { decodeUtf8, encodeUtf8 } from '../core/utf8.ts';

/**
 * The encoding of message contents in the database: JSON as text, or the same JSON in UTF-8 as raw deflate (RFC 1951).
 * Contents are written on the main thread and decoded in the delivery workers.
 */
export type ContentEncoding = 'json' | 'deflate';

/** A content to be written. */
export interface PackedContent {
  /** A string is JSON, a buffer is deflated JSON. */
  body: string | Buffer;
  /** Bytes of the JSON in UTF-8. */
  size: number;
  /** The JSON of a content that was compressed on the calling thread. */
  json?: string;
  /** The row of `shared_contents` with the rest; undefined: the content is complete. */
  sharedId?: number;
}

/** A content that is too long to be compressed on the calling thread: JSON in UTF-8, outside the heap. */
export interface LongContent {
  bytes: Buffer;
}

/** A content as a worker gets it: a short one that was not read from the database is not compressed. */
export type JobContent = (EncodedContent | { encoding: 'text'; text: string; size: number }) & {
  /** As in `PackedContent`. */
  sharedId?: number;
};

/** A content as read from the database. */
export interface EncodedContent<Memory extends ArrayBufferLike = ArrayBuffer> {
  bytes: Uint8Array<Memory>;
  encoding: ContentEncoding;
  /** Bytes of the JSON in UTF-8: the maximum that decoding returns. */
  size: number;
}

/** Characters of JSON below which a content is stored uncompressed: deflate would save less than it costs. */
const MIN_DEFLATED = 512;
/** Characters that are deflated on the calling thread: at most 0.7 ms, whatever the content. */
const MAX_DEFLATED_INLINE = 32 * 1024;
/**
 * Measured with a newsletter of 11 KB: level 1 leaves 2.93 KB in 0.030 ms, level 3 2.89 KB in 0.031 ms, level 6 2.82 KB
 * in 0.045 ms. A lower level saves no time, as most of it is the cost of a call and of reading the input.
 */
const LEVEL = 3;
/** 96 KB of memory instead of 256 KB, which the allocator would map and unmap for every content. */
const INLINE = { level: LEVEL, windowBits: 13, memLevel: 7 };
/** Bytes of UTF-8 for a UTF-16 code unit, at most. */
const MAX_UTF8_BYTES = 3;
/** Maximum number of bytes that decoding allocates at a time. */
const MAX_CHUNK = 1024 * 1024;

/**
 * The input of deflate on the calling thread: allocating a buffer for each content would cost half as much as deflating
 * it.
 */
const scratch = Buffer.allocUnsafeSlow(MAX_UTF8_BYTES * MAX_DEFLATED_INLINE);

const EMPTY = Buffer.alloc(0);
const deflateInPool = promisify(deflateRaw);
/** 128 KB of memory, for the same reason as `INLINE`. */
const IN_POOL = { level: LEVEL, windowBits: 14, memLevel: 7 };

/** A content stored uncompressed. */
export function plainContent(json: string): PackedContent {
  return { body: json, size: Buffer.byteLength(json) };
}

/** Compresses a content on the calling thread. A long one stays JSON. */
export function packContent(json: string): PackedContent {
  if (json.length < MIN_DEFLATED || json.length > MAX_DEFLATED_INLINE) return plainContent(json);
  const size = scratch.write(json);
  // Node would allocate 16 KB by default, for an output of about 1 KB.
  const chunkSize = Math.max(1024, size >> 2);
  const deflated = deflateRawSync(scratch.subarray(0, size), { chunkSize, ...INLINE });
  return { body: deflated.length < size ? deflated : json, size, json };
}

/** Writes a content as JSON in pieces, so that the event loop is not blocked in between. */
export interface ContentWriter {
  write(piece: string): void;
  end(): PackedContent | LongContent;
}

/** Maximum characters of a piece of a string. V8 maps and unmaps memory for each string that is longer than twice as much. */
const PIECE_CHARACTERS = 64 * 1024;
/** Bytes of JSON for a character of most HTML. */
const USUAL_BYTES = 1.1;

/** Compresses a short content on the calling thread. `characters`: about how many there will be. */
export function contentWriter(characters: number): ContentWriter {
  /** The first piece, while it is the only one. */
  let only: string | null = null;
  let bytes = EMPTY;
  let length = 0;
  const append = (piece: string) => {
    const free = bytes.length - length;
    if (free < MAX_UTF8_BYTES * piece.length && free < Buffer.byteLength(piece)) {
      const usual = bytes.length === 0 ? Math.ceil(USUAL_BYTES * characters) : 2 * bytes.length;
      const larger = Buffer.allocUnsafeSlow(usual + length + Buffer.byteLength(piece));
      bytes.copy(larger, 0, 0, length);
      bytes = larger;
    }
    length += bytes.write(piece, length);
  };
  return {
    write: (piece) => {
      if (only === null && length === 0) only = piece;
      else {
        if (only !== null) append(only);
        only = null;
        append(piece);
      }
    },
    end: () => {
      const short = only ?? (length <= MAX_DEFLATED_INLINE ? bytes.toString('utf8', 0, length) : null);
      if (short !== null && short.length <= MAX_DEFLATED_INLINE) return packContent(short);
      return { bytes: short === null ? bytes.subarray(0, length) : encodeUtf8(short) };
    },
  };
}

/** Does not compress. */
export function plainContentWriter(): ContentWriter {
  const pieces: string[] = [];
  return {
    write: (piece) => {
      pieces.push(piece);
    },
    end: () => plainContent(pieces.join('')),
  };
}

/** What `JSON.stringify` returns for an object with long texts, in pieces. Lists in it have no undefined elements. */
export function* jsonPieces(value: object): Generator<string> {
  const isList = Array.isArray(value);
  let separator = isList ? '[' : '{';
  for (const [name, member] of Object.entries(value) as [string, unknown][]) {
    if (member === undefined) continue;
    yield isList ? separator : `${separator}${JSON.stringify(name)}:`;
    separator = ',';
    if (typeof member === 'string') yield* stringPieces(member);
    else if (typeof member === 'object' && member !== null) yield* jsonPieces(member);
    else yield JSON.stringify(member);
  }
  if (separator !== ',') yield separator;
  yield isList ? ']' : '}';
}

function* stringPieces(text: string): Generator<string> {
  if (text.length <= PIECE_CHARACTERS) {
    yield JSON.stringify(text);
    return;
  }
  yield '"';
  for (let at = 0; at < text.length; ) {
    let end = at + PIECE_CHARACTERS;
    // Surrogate pairs are not split: JSON escapes a single surrogate.
    if (isHighSurrogate(text.charCodeAt(end - 1)) && isLowSurrogate(text.charCodeAt(end))) end++;
    yield JSON.stringify(text.slice(at, end)).slice(1, -1);
    at = end;
  }
  yield '"';
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}

/** Compresses a long content on a thread of libuv's pool; returns others unchanged. */
export async function packLongContent(content: PackedContent | LongContent): Promise<PackedContent> {
  if (!('bytes' in content)) return content;
  const { bytes } = content;
  const deflated = await deflateInPool(bytes, IN_POOL);
  return deflated.length < bytes.length
    ? { body: deflated, size: bytes.length }
    : plainContent(bytes.toString());
}

/** The content for a worker. It shares its memory with nothing. */
export function toJobContent({ body, size, json, sharedId }: PackedContent): JobContent {
  const shared = sharedId === undefined ? {} : { sharedId };
  if (typeof body === 'string') return { encoding: 'text', text: body, size, ...shared };
  return json === undefined
    ? { bytes: new Uint8Array(body), encoding: 'deflate', size, ...shared }
    : { encoding: 'text', text: json, size, ...shared };
}

/** Returns the JSON. Throws if the data is damaged, or if the JSON is longer than `size`. */
export function unpackContent(content: EncodedContent<ArrayBufferLike> | JobContent): string {
  if (content.encoding === 'text') return content.text;
  const { bytes, encoding, size } = content;
  return decodeUtf8(encoding === 'json' ? bytes : inflate(bytes, Math.max(1, size)));
}

function inflate(bytes: Uint8Array, size: number): Buffer {
  const chunkSize = Math.min(MAX_CHUNK, size + 64);
  return inflateRawSync(bytes, { maxOutputLength: size, chunkSize });
}
