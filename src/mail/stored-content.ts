import { promisify } from 'node:util';
import { deflateRaw, deflateRawSync, inflateRawSync } from 'node:zlib';
import type { Work } from '../core/concurrency/slices.ts';
import { decodeUtf8 } from '../core/utf8.ts';

/**
 * The encoding of message contents in the database. A short content is JSON as text, or the same JSON in UTF-8 as raw deflate
 * (RFC 1951). A long one is a document, as it is or as raw deflate: `DOCUMENT`, the texts and files of the content as bytes,
 * then JSON of the rest, and the length of that. So no string of a whole message is written or read. Contents are written on
 * the main thread and decoded in the delivery workers.
 */
export type ContentEncoding = 'json' | 'deflate' | 'document';

/** The first byte of a document. Neither JSON nor raw deflate begins with it (RFC 1951 §3.2.3: 3 is no type of a block). */
const DOCUMENT = 0xff;

/** A content to be written. */
export interface PackedContent {
  /** A string is JSON. A buffer is deflated, or a document. */
  body: string | Buffer;
  /** Bytes of the JSON in UTF-8, or of the document. */
  size: number;
  /** The JSON of a content that was compressed on the calling thread. */
  json?: string;
  /** The row of `shared_contents` with the rest; undefined: the content is complete. */
  sharedId?: number;
}

/** A content that is too long to be compressed on the calling thread. */
export interface LongContent {
  document: Buffer;
  /** Whether it is compressed. */
  isDeflated: boolean;
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
  /** Bytes of the JSON in UTF-8, or of the document: the maximum that decoding returns. */
  size: number;
}

/** Characters of JSON below which a content is stored uncompressed: deflate would save less than it costs. */
const MIN_DEFLATED = 512;
/** Characters of JSON that are deflated on the calling thread: at most 0.7 ms, whatever the content. */
export const MAX_DEFLATED_INLINE = 32 * 1024;
/**
 * Measured with a newsletter of 11 KB: level 1 leaves 2.93 KB in 0.030 ms, level 3 2.89 KB in 0.031 ms, level 6 2.82 KB
 * in 0.045 ms. A lower level saves no time, as most of it is the cost of a call and of reading the input.
 */
const LEVEL = 3;
/** 96 KB of memory instead of 256 KB, which the allocator would map and unmap for every content. */
const INLINE = { level: LEVEL, windowBits: 13, memLevel: 7 };
/** Bytes of UTF-8 for a UTF-16 code unit, at most. */
const MAX_UTF8_BYTES = 3;
/** Maximum number of bytes that decoding allocates at a time: longer contents are joined. */
const MAX_CHUNK = 4 * 1024 * 1024;

/**
 * The input of deflate on the calling thread: allocating a buffer for each content would cost half as much as deflating
 * it.
 */
const scratch = Buffer.allocUnsafeSlow(MAX_UTF8_BYTES * MAX_DEFLATED_INLINE);

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

/** Characters from which a text is written outside the JSON of a document. */
const MIN_DETACHED = 64;
/** Maximum characters that are written in one step. */
const PIECE_CHARACTERS = 64 * 1024;
/** Bytes of the length at the end of a document. */
const LENGTH_BYTES = 4;

/** In the JSON of a document: the place of a text. Contents have no other object of this form. */
interface Detached {
  /** Index into the lengths. */
  detached: number;
  /** A file, whose bytes are stored; its text is base64. */
  isBase64?: true;
}

/**
 * Writes the document of a content, in steps. In contents only the members `content` are base64 (mail/content.ts). Half a
 * surrogate pair in a text becomes U+FFFD, as when a message is composed.
 */
export function* writeDocumentInSteps(content: object): Work<Buffer> {
  const texts: { text: string; isBase64: boolean }[] = [];
  const rest = JSON.stringify(content, (name, member: unknown): unknown => {
    if (typeof member !== 'string' || member.length < MIN_DETACHED) return member;
    const isBase64 = name === 'content';
    const detached = texts.push({ text: member, isBase64 }) - 1;
    return (isBase64 ? { detached, isBase64 } : { detached }) satisfies Detached;
  });
  yield;
  const writer = byteWriter(texts.reduce((sum, { text }) => sum + text.length, rest.length));
  const lengths: number[] = [];
  for (const { text, isBase64 } of texts) {
    const start = writer.length();
    for (let at = 0; at < text.length; ) {
      const end = pieceEnd(text, at + PIECE_CHARACTERS);
      writer.write(text.slice(at, end), isBase64 ? 'base64' : 'utf8');
      at = end;
      yield;
    }
    lengths.push(writer.length() - start);
  }
  return writer.end(`${JSON.stringify(lengths)}\n${rest}`);
}

/** Writes the bytes of a document. `characters`: of its texts and its JSON. */
function byteWriter(characters: number) {
  let bytes = Buffer.allocUnsafeSlow(characters + Math.ceil(characters / 16) + 64);
  bytes[0] = DOCUMENT;
  let length = 1;
  const reserve = (count: number) => {
    if (bytes.length - length >= count) return;
    const larger = Buffer.allocUnsafeSlow(2 * bytes.length + count);
    bytes.copy(larger, 0, 0, length);
    bytes = larger;
  };
  const write = (text: string, encoding: 'utf8' | 'base64') => {
    const bytesOf = encoding === 'base64' ? 1 : MAX_UTF8_BYTES;
    // Of ASCII, the number of bytes is that of the characters: counting them takes longer than writing them.
    if (bytes.length - length < bytesOf * text.length) reserve(Buffer.byteLength(text, encoding));
    length += bytes.write(text, length, encoding);
  };
  return {
    length: () => length,
    write,
    end: (json: string): Buffer => {
      const start = length;
      write(json, 'utf8');
      reserve(LENGTH_BYTES);
      bytes.writeUInt32LE(length - start, length);
      return bytes.subarray(0, length + LENGTH_BYTES);
    },
  };
}

/** The end of a piece that ends about at `at`: pairs of surrogates are not split. */
function pieceEnd(text: string, at: number): number {
  return isHighSurrogate(text.charCodeAt(at - 1)) && isLowSurrogate(text.charCodeAt(at)) ? at + 1 : at;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}

/** Throws if the document is damaged. */
function readDocument(document: Uint8Array): unknown {
  const bytes = Buffer.from(document.buffer, document.byteOffset, document.length);
  const end = bytes.length - LENGTH_BYTES;
  const json = bytes.subarray(end - bytes.readUInt32LE(end), end);
  const lengthsEnd = json.indexOf('\n');
  let at = 1;
  // Sound: only `writeDocumentInSteps` writes it.
  const texts = (JSON.parse(json.toString('latin1', 0, lengthsEnd)) as number[]).map((length) => {
    const start = at;
    at += length;
    return bytes.subarray(start, at);
  });
  return JSON.parse(decodeUtf8(json.subarray(lengthsEnd)), (_name, member: unknown): unknown => {
    if (!isDetached(member)) return member;
    const text = texts[member.detached];
    if (text === undefined) throw new Error('the stored content lacks a text');
    return member.isBase64 === true ? text.toString('base64') : decodeUtf8(text);
  });
}

function isDetached(member: unknown): member is Detached {
  return typeof member === 'object' && member !== null && 'detached' in member;
}

/** Compresses a long content on a thread of libuv's pool; returns others unchanged. */
export async function packLongContent(content: PackedContent | LongContent): Promise<PackedContent> {
  if (!('document' in content)) return content;
  const { document, isDeflated } = content;
  const deflated = isDeflated ? await deflateInPool(document, IN_POOL) : document;
  return { body: deflated.length < document.length ? deflated : document, size: document.length };
}

/** The content for a worker. It shares its memory with nothing. */
export function toJobContent({ body, size, json, sharedId }: PackedContent): JobContent {
  const shared = sharedId === undefined ? {} : { sharedId };
  if (typeof body === 'string') return { encoding: 'text', text: body, size, ...shared };
  if (json !== undefined) return { encoding: 'text', text: json, size, ...shared };
  const encoding = body[0] === DOCUMENT ? 'document' : 'deflate';
  return { bytes: new Uint8Array(body), encoding, size, ...shared };
}

/** Returns the content. Throws if the data is damaged, or if inflating returns more than `size` bytes. */
export function readContent(content: EncodedContent<ArrayBufferLike> | JobContent): unknown {
  if (content.encoding === 'text') return JSON.parse(content.text);
  const { bytes, encoding, size } = content;
  const plain = encoding === 'deflate' ? inflate(bytes, Math.max(1, size)) : bytes;
  return plain[0] === DOCUMENT ? readDocument(plain) : JSON.parse(decodeUtf8(plain));
}

function inflate(bytes: Uint8Array, size: number): Buffer {
  const chunkSize = Math.min(MAX_CHUNK, size + 64);
  return inflateRawSync(bytes, { maxOutputLength: size, chunkSize });
}
