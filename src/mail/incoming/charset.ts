/**
 * Bytes of any charset to text. Never throws: an unknown label, or bytes that are not what the label says,
 * are read as UTF-8 where they are valid, else as Windows-1252, in which every byte is a character.
 */

/** `label` as the mail names it, null when it names none. ISO-2022-JP and the other labels of WHATWG. */
export function decodeText(bytes: Uint8Array, label: string | null): string {
  const decoder = label ? decoderFor(label) : null;
  if (decoder) return decoder.decode(bytes);
  if (label === null && looksLikeIso2022Jp(bytes)) return new TextDecoder('iso-2022-jp').decode(bytes);
  return decodeGuessed(bytes);
}

/** Header lines whose charset is not named; an invalid byte in one line has no effect on the others. */
export function decodeLines(bytes: Buffer): string {
  try {
    if (!looksLikeIso2022Jp(bytes)) return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // Not valid UTF-8 as a whole: each line is decoded for itself.
  }
  let text = '';
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(0x0a, from);
    const next = end < 0 ? bytes.length : end + 1;
    text += decodeText(bytes.subarray(from, next), null);
    from = next;
  }
  return text;
}

function decoderFor(label: string): { decode(bytes: Uint8Array): string } | null {
  const name = label
    .trim()
    .toLowerCase()
    .replace(/^x-/, '')
    .replace(/^(?:cp|ms)-?(\d{3,4})$/, 'windows-$1');
  // Often a lie of older software; reading them as a guess costs nothing when they are true.
  if (name === '' || name === 'us-ascii' || name === 'ascii' || name === 'utf-8' || name === 'utf8')
    return null;
  try {
    return new TextDecoder(name);
  } catch {
    // A label nobody knows: the guess is better than nothing.
    return null;
  }
}

function decodeGuessed(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

/** ESC $ B, ESC $ @ or ESC ( J within the first kilobyte: Japanese mail that forgot to say so. */
function looksLikeIso2022Jp(bytes: Uint8Array): boolean {
  const end = Math.min(bytes.length, 1024) - 2;
  for (let i = 0; i < end; i++) {
    if (bytes[i] !== 0x1b) continue;
    const [a, b] = [bytes[i + 1], bytes[i + 2]];
    if ((a === 0x24 && (b === 0x42 || b === 0x40)) || (a === 0x28 && b === 0x4a)) return true;
  }
  return false;
}
