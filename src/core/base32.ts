/* Base32 (RFC 4648 §6) without padding: in addresses, whose letter case servers change, and for secrets that people type. */

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';
const BASE32_VALUES: ReadonlyMap<string, number> = new Map(
  Array.from(BASE32).flatMap((char, value) => [
    [char, value],
    [char.toUpperCase(), value],
  ]),
);

/** Encodes in lower case. */
export function base32(bytes: Buffer): string {
  let text = '';
  let bits = 0;
  let held = 0;
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff;
    for (bits += 8; bits >= 5; ) {
      bits -= 5;
      text += BASE32[(held >> bits) & 31];
    }
  }
  return bits === 0 ? text : text + BASE32[(held << (5 - bits)) & 31];
}

/** Decodes base32 of a multiple of five bytes, case-insensitive; null when a character is not in the alphabet. */
export function fromBase32(text: string): Buffer | null {
  const bytes = Buffer.alloc((text.length * 5) / 8);
  let at = 0;
  let bits = 0;
  let held = 0;
  for (const char of text) {
    const value = BASE32_VALUES.get(char);
    if (value === undefined) return null;
    held = ((held << 5) | value) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes[at++] = (held >> bits) & 255;
  }
  return bytes;
}
