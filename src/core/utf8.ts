import { isAscii } from 'node:buffer';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Decodes UTF-8 (RFC 3629); a byte order mark is kept, and U+FFFD replaces what is not UTF-8. ASCII, as most HTML is, is
 * copied instead, which takes a tenth of the time.
 */
export function decodeUtf8(bytes: Uint8Array): string {
  if (!isAscii(bytes)) return decoder.decode(bytes);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}

/** Bytes of the longest character in UTF-8. */
const MAX_CHARACTER_BYTES = 4;

/** Encodes as UTF-8. Of ASCII the length is known: counting it takes three times as long as writing it. */
export function encodeUtf8(text: string): Buffer {
  // With other characters it has more bytes than characters, as many of which are written as there is space for.
  const bytes = Buffer.allocUnsafe(text.length + MAX_CHARACTER_BYTES);
  const written = bytes.write(text);
  return written === text.length ? bytes.subarray(0, written) : Buffer.from(text);
}
