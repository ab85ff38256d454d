/* Base32 for tokens in addresses, whose letter case servers change. */

/** RFC 4648 §6, in lower case and without padding; the input is always a multiple of five bytes. */
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';
const BASE32_VALUES: ReadonlyMap<string, number> = new Map(
  Array.from(BASE32).flatMap((char, value) => [
    [char, value],
    [char.toUpperCase(), value],
  ]),
);

/** Encodes a multiple of five bytes. */
export function base32(bytes: Buffer): string {
  let text = '';
  let bits = 0;
  let held = 0;
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff;
    bits += 8;
    for (; bits >= 5; bits -= 5) text += BASE32[(held >> (bits - 5)) & 31];
  }
  return text;
}

/** Decodes base32, case-insensitive; null when a character is not in the alphabet. */
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
