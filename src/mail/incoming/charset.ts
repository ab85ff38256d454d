/**
 * Decodes bytes of any charset. Never throws: bytes with an unknown label are decoded as UTF-8 if they are valid, else
 * as Windows-1252, in which every byte is a character.
 */

/** `label`: the charset that the mail declares (a label of the WHATWG Encoding Standard), null for none. */
export function decodeText(bytes: Uint8Array, label: string | null): string {
  const decoder = label ? decoderFor(label) : null;
  if (decoder) return decoder.decode(bytes);
  if (label === null && looksLikeIso2022Jp(bytes)) return new TextDecoder('iso-2022-jp').decode(bytes);
  return decodeDetected(bytes);
}

/** Decodes header lines without a declared charset; an invalid byte in one line does not affect the others. */
export function decodeLines(bytes: Buffer): string {
  try {
    if (!looksLikeIso2022Jp(bytes)) return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // Not valid UTF-8 as a whole: each line is decoded separately.
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
  // Older software declares these for any charset; detection reads correctly declared text the same.
  if (name === '' || name === 'us-ascii' || name === 'ascii' || name === 'utf-8' || name === 'utf8')
    return null;
  try {
    return new TextDecoder(name);
  } catch {
    // Unknown label: the caller detects the charset.
    return null;
  }
}

function decodeDetected(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

/** ESC $ B, ESC $ @ or ESC ( J within the first kilobyte: Japanese mail without a declared charset. */
function looksLikeIso2022Jp(bytes: Uint8Array): boolean {
  const end = Math.min(bytes.length, 1024) - 2;
  for (let i = 0; i < end; i++) {
    if (bytes[i] !== 0x1b) continue;
    const [a, b] = [bytes[i + 1], bytes[i + 2]];
    if ((a === 0x24 && (b === 0x42 || b === 0x40)) || (a === 0x28 && b === 0x4a)) return true;
  }
  return false;
}
