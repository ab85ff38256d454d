import {
  createHash,
  createPublicKey,
  generateKeyPair,
  generateKeyPairSync,
  hash,
  type KeyObject,
  sign,
} from 'node:crypto';
import { promisify } from 'node:util';
import { type Work, withoutPause } from '../core/concurrency/slices.ts';

/*
 * Generates DKIM keys and signs messages (RFC 6376): rsa-sha256 and ed25519-sha256 (RFC 8463), relaxed/relaxed, no `l=`.
 * The caller stores the keys and selects those that sign.
 */

const generate = promisify(generateKeyPair);

/** RFC 8301 §3.2: fewer than 1024 bits are rejected, and verifiers need not support more than 4096. */
const KEY_BITS = 2048;

/** Generates an RSA private key in libuv's thread pool, in about 100 ms. */
export async function generateDkimKey(): Promise<KeyObject> {
  const { privateKey } = await generate('rsa', { modulusLength: KEY_BITS });
  return privateKey;
}

/** Generates an Ed25519 private key, in less than a millisecond. */
export function generateEd25519Key(): KeyObject {
  return generateKeyPairSync('ed25519').privateKey;
}

/** The tags `k=` and `p=` of a key's record (RFC 6376 §3.6.1, RFC 8463 §4). */
export interface PublicKeyTags {
  k: 'rsa' | 'ed25519';
  p: string;
}

/** The tags of the key record that belongs to a private or public key. */
export function publicKeyTags(key: KeyObject): PublicKeyTags {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  const der = publicKey.export({ type: 'spki', format: 'der' });
  // RFC 8463 §4.2: the 32 bytes of the key alone, which end its SubjectPublicKeyInfo (RFC 8410 §4).
  if (isEd25519(key)) return { k: 'ed25519', p: der.subarray(-ED25519_BYTES).toString('base64') };
  return { k: 'rsa', p: der.toString('base64') };
}

/** The TXT value `v=DKIM1; k=rsa; p=…` of a private or public key, not split into strings. */
export function publicKeyRecordValue(key: KeyObject): string {
  const { k, p } = publicKeyTags(key);
  return `v=DKIM1; k=${k}; p=${p}`;
}

/** The TXT value of a key that must not be used any more (RFC 6376 §3.6.1: an empty `p=`). */
export function revokedKeyRecordValue(key: KeyObject): string {
  return `v=DKIM1; k=${publicKeyTags(key).k}; p=`;
}

const ED25519_BYTES = 32;

function isEd25519(key: KeyObject): boolean {
  return key.asymmetricKeyType === 'ed25519';
}

/** Listed once more than they occur, so that an added field breaks the signature, too (§5.4.2, §8.15). */
const OVERSIGNED_FIELDS = [
  'From',
  'To',
  'Subject',
  'Date',
  'Message-ID',
  'Reply-To',
  'Cc',
  'List-Unsubscribe',
  'List-Unsubscribe-Post',
  'Feedback-ID',
  'MIME-Version',
  'Content-Type',
  'CFBL-Address',
];

/** Signed where they occur. */
const SIGNED_FIELDS = ['In-Reply-To', 'References', 'List-Id', 'Precedence', 'Content-Transfer-Encoding'];

export interface DkimSigner {
  /** `d=`, as A-labels. */
  domain: string;
  /** `s=` */
  selector: string;
  /** RSA or Ed25519 private key, parsed once; a KeyObject is passed to another thread without a copy. */
  key: KeyObject;
}

/** A message as `compose` returns it: complete fields without the final line end, and a body with CRLF line ends. */
export interface SignableMessage {
  header: readonly string[];
  body: Buffer;
}

/**
 * Returns the DKIM-Signature fields of all signers in their order, folded, without the final line end. They precede the
 * fields of the message. `now` is epoch ms.
 */
export function signDkim(message: SignableMessage, signers: readonly DkimSigner[], now: number): string[] {
  return withoutPause(signDkimInSteps(message, signers, now));
}

/** `signDkim` in steps: hashing a body of 25 MB takes a tenth of a second. */
export function* signDkimInSteps(
  message: SignableMessage,
  signers: readonly DkimSigner[],
  now: number,
): Work<string[]> {
  if (signers.length === 0) return [];
  const bodyHash = yield* hashBodyInSteps(message.body);
  const { names, canonical } = signedHeader(message.header);
  const seconds = Math.floor(now / 1000);
  return signers.map(({ domain, selector, key }) => {
    const field =
      `DKIM-Signature: v=1; a=${isEd25519(key) ? 'ed25519' : 'rsa'}-sha256; c=relaxed/relaxed; t=${seconds};\r\n` +
      ` d=${domain}; s=${selector};\r\n h=${foldNames(names)};\r\n bh=${bodyHash};\r\n b=`;
    // RFC 6376 §3.7: the DKIM-Signature field is last, with an empty b= and without line end.
    const signature = signatureOf(Buffer.from(canonical + relaxedField(field)), key).toString('base64');
    return field + (signature.match(/.{1,70}/g) ?? []).join('\r\n ');
  });
}

/** The value of `bh=`. */
function* hashBodyInSteps(body: Buffer): Work<string> {
  const digest = createHash('sha256');
  let isFirst = true;
  for (const lines of relaxedBody(body)) {
    digest.update(lines);
    // A short body is one step with what follows. The lines are hashed before other bodies use their memory.
    if (!isFirst) yield;
    isFirst = false;
  }
  return digest.digest('base64');
}

/** RFC 8463 §3: Ed25519 signs the SHA-256 hash of the data. */
function signatureOf(data: Buffer, key: KeyObject): Buffer {
  if (isEd25519(key)) return sign(null, hash('sha256', data, 'buffer'), key);
  return sign('sha256', data, key);
}

/** RFC 6376 §5.4: the names for `h=`, and the canonicalized fields in the same order. */
function signedHeader(header: readonly string[]): { names: string[]; canonical: string } {
  const occurrences = new Map<string, string[]>();
  for (const field of header) {
    const name = field.slice(0, field.indexOf(':')).trimEnd().toLowerCase();
    const same = occurrences.get(name);
    if (same) same.push(field);
    else occurrences.set(name, [field]);
  }
  const names: string[] = [];
  let canonical = '';
  const signOccurrences = (name: string) => {
    // §5.4.2: from the last occurrence to the first.
    for (const field of (occurrences.get(name.toLowerCase()) ?? []).toReversed()) {
      names.push(name);
      canonical += `${relaxedField(field)}\r\n`;
    }
  };
  for (const name of OVERSIGNED_FIELDS) {
    signOccurrences(name);
    // One more name than there are fields signs the absence of another one.
    names.push(name);
  }
  for (const name of SIGNED_FIELDS) signOccurrences(name);
  return { names, canonical };
}

/** RFC 6376 §3.4.2. */
function relaxedField(field: string): string {
  const colon = field.indexOf(':');
  const name = field.slice(0, colon).trimEnd().toLowerCase();
  const value = field.slice(colon + 1).replace(/[ \t\r\n]+/g, ' ');
  return `${name}:${value.replace(/^ | $/g, '')}`;
}

/** Folds the list of `h=` after colons, where RFC 6376 §3.5 allows white space. */
function foldNames(names: readonly string[]): string {
  let list = '';
  let column = ' h='.length;
  for (const [index, name] of names.entries()) {
    const item = index < names.length - 1 ? `${name}:` : name;
    if (column + item.length > 76) {
      list += '\r\n ';
      column = 1;
    }
    list += item;
    column += item.length;
  }
  return list;
}

const TAB = 9;
const LF = 10;
const CR = 13;
const SPACE = 32;

/**
 * Bytes that are canonicalized together, unless a line is longer, in memory that all signatures of the thread share:
 * allocating it costs as much as filling it.
 */
const SHARED_BYTES = 256 * 1024;
let shared: Buffer | null = null;
const LINE_END = Buffer.from('\r\n');
/** The empty lines that are hashed together. */
const EMPTY_LINES = Buffer.from('\r\n'.repeat(1024));
/** Bytes that are read one by one from a line that is not canonical on: the next such line is often near. */
const MIN_READ_BYTES = 512;

/**
 * RFC 6376 §3.4.4: removes white space at line ends and empty lines at the end, and collapses other white space. A body
 * that is not empty ends with CRLF. Returns consecutive lines; each result is valid until the next one.
 */
export function* relaxedBody(body: Buffer): Generator<Buffer> {
  /** Empty lines that belong to the body if other lines follow. */
  let emptyLines = 0;
  for (let at = 0; at < body.length; ) {
    const end = endOfLines(body, at);
    const { lines, removed } = canonicalize(body.subarray(at, end));
    if (lines.length > 0) {
      for (let left = emptyLines * LINE_END.length; left > 0; left -= EMPTY_LINES.length)
        yield EMPTY_LINES.subarray(0, left);
      emptyLines = 0;
      yield lines;
    }
    emptyLines += removed;
    at = end;
  }
}

/** The end of the lines from `at` on that are canonicalized together. */
function endOfLines(body: Buffer, at: number): number {
  const maxBytes = SHARED_BYTES - LINE_END.length;
  if (body.length - at <= maxBytes) return body.length;
  const last = body.lastIndexOf(LINE_END, at + maxBytes - LINE_END.length);
  const end = last < at ? body.indexOf(LINE_END, at + maxBytes - 1) : last;
  return end === -1 ? body.length : end + LINE_END.length;
}

/** Whole lines without empty ones at the end, and how many these were. */
function canonicalize(body: Buffer): { lines: Buffer; removed: number } {
  const maxBytes = body.length + LINE_END.length;
  shared ??= Buffer.allocUnsafeSlow(SHARED_BYTES);
  const lines = relaxed(body, maxBytes > SHARED_BYTES ? Buffer.allocUnsafe(maxBytes) : shared);
  let { length } = lines;
  while (length > 0 && endsWithEmptyLine(lines, length)) length -= LINE_END.length;
  return { lines: lines.subarray(0, length), removed: (lines.length - length) / LINE_END.length };
}

/** Most lines are canonical: native searches find the others, and only those are read byte by byte. */
function relaxed(body: Buffer, into: Buffer): Buffer {
  const findBlank = blankFinder(body);
  let length = 0;
  for (let at = 0; at < body.length; ) {
    const blank = findBlank(at);
    if (blank === -1) {
      if (at === 0 && endsLine(body, body.length)) return body;
      length += body.copy(into, length, at);
      break;
    }
    const lineEnd = blank === 0 ? -1 : body.lastIndexOf('\r\n', blank - 1);
    const lineStart = lineEnd < at ? at : lineEnd + 2;
    length += body.copy(into, length, at, lineStart);
    const found = body.indexOf('\r\n', Math.max(blank, lineStart + MIN_READ_BYTES));
    at = found === -1 ? body.length : found + 2;
    length = relaxLines(body, lineStart, at, into, length);
  }
  if (length > 0 && !endsLine(into, length)) {
    into[length++] = CR;
    into[length++] = LF;
  }
  return into.subarray(0, length);
}

/**
 * Returns a function that finds the first white space from `at` on that is not canonical, -1 if there is none. Calls are
 * in ascending order; each search continues where its last one ended.
 */
function blankFinder(body: Buffer): (at: number) => number {
  const searches = ['\t', '  ', ' \r'].map((text) => ({ text, found: -1, ended: false }));
  const { length } = body;
  return (at) => {
    // White space at the end of a body without a final CRLF.
    let first = body[length - 1] === SPACE ? length - 1 : length;
    for (const search of searches) {
      if (search.ended) continue;
      if (search.found < at) search.found = body.indexOf(search.text, at);
      if (search.found === -1) search.ended = true;
      else if (search.found < first) first = search.found;
    }
    return first === length ? -1 : first;
  };
}

/** Writes whole lines and returns the length of `into` after them. */
function relaxLines(body: Buffer, start: number, end: number, into: Buffer, written: number): number {
  let length = written;
  let blank = false;
  for (let at = start; at < end; at++) {
    const byte = body[at] ?? 0;
    if (byte === SPACE || byte === TAB) {
      blank = true;
      continue;
    }
    if (blank && !(byte === CR && body[at + 1] === LF)) into[length++] = SPACE;
    blank = false;
    into[length++] = byte;
  }
  return length;
}

function endsLine(lines: Buffer, length: number): boolean {
  return lines[length - 1] === LF && lines[length - 2] === CR;
}

/** Whether lines that end with CRLF end with an empty line. */
function endsWithEmptyLine(lines: Buffer, length: number): boolean {
  return length === 2 || (lines[length - 3] === LF && lines[length - 4] === CR);
}
