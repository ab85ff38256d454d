import iconv from 'iconv-lite';

/*
 * Decodes bytes of any charset. iconv-lite has its own tables: those of Node's TextDecoder depend on its version (Node 20
 * decodes 0x80 to 0x9F of Windows-1252 as control characters) and lack many labels of mail. The charsets with shift states,
 * which iconv-lite lacks, are read here and their characters decoded by its tables.
 */

type Decode = (bytes: Uint8Array) => string;

/**
 * Never throws. `label`: the charset that the mail declares, null for none. Bytes with an unknown label are decoded as UTF-8
 * if they are valid, else as Windows-1252, in which every byte is a character; see `isKnownCharset`.
 */
export function decodeText(bytes: Uint8Array, label: string | null): string {
  const decode = label === null ? null : decoderFor(label);
  if (decode) return decode(bytes);
  if (label === null && looksLikeIso2022Jp(bytes)) return decodeShifted(bytes);
  return decodeDetected(bytes);
}

/** Whether text with this label is decoded without guessing. */
export function isKnownCharset(label: string): boolean {
  return isUnicodeOrAscii(label) || decoderFor(label) !== null;
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

/** Older software declares these for any charset; detection reads correctly declared text the same. */
const UNICODE_OR_ASCII =
  /^(?:x-)?(?:unicode-1-1-)?(?:utf-?8(?:-?sig|mb[34])?|(?:us-?)?ascii|ansi_x3\.4-19(?:68|86)|iso-?646-us|646)$/;

function isUnicodeOrAscii(label: string): boolean {
  return UNICODE_OR_ASCII.test(normalized(label));
}

function normalized(label: string): string {
  return label.trim().toLowerCase().replaceAll('_', '-').replace('ansi-x', 'ansi_x');
}

/** Labels that need another table than iconv-lite's of that name, or that it lacks. */
const TABLES: ReadonlyMap<string, string> = new Map([
  // Mail with these labels contains the characters of Windows, as in the WHATWG Encoding Standard.
  ...['iso88591', 'iso885911987', 'isoir100', 'latin1', 'l1', 'cp819', 'ibm819', 'csisolatin1'].map(
    (name) => [name, 'windows-1252'] as const,
  ),
  ...['iso88599', 'iso885991989', 'isoir148', 'latin5', 'l5', 'csisolatin5'].map(
    (name) => [name, 'windows-1254'] as const,
  ),
  ...['iso885911', 'tis620', 'tis6200', 'tis62025291'].map((name) => [name, 'windows-874'] as const),
  ['iso88598i', 'iso-8859-8'],
  ['iso88598e', 'iso-8859-8'],
  ['iso88596i', 'iso-8859-6'],
  ['iso88596e', 'iso-8859-6'],
  ['uhc', 'cp949'],
  ['big5eten', 'big5'],
  ['macroman', 'macroman'],
  ['macintosh', 'macroman'],
  ['mac', 'macroman'],
  ['macukrainian', 'maccyrillic'],
  ['kz1048', 'rk1048'],
  ['strk10482002', 'rk1048'],
]);

/** Encodings of iconv-lite that are no charsets of mail. */
const NO_CHARSETS: ReadonlySet<string> = new Set(['base64', 'hex', 'binary', 'utf7imap', 'internal']);

/** Characters in which the tables of iconv-lite for Macintosh differ from those since Mac OS 8.5, which have the euro. */
const CORRECTIONS: ReadonlyMap<string, readonly (readonly [from: string, to: string])[]> = new Map([
  [
    'macroman',
    [
      ['\u2126', '\u03a9'],
      ['\u00a4', '\u20ac'],
      ['\ufffd', '\uf8ff'],
    ],
  ],
  [
    'maciceland',
    [
      ['\u2126', '\u03a9'],
      ['\u00a4', '\u20ac'],
      ['\ufffd', '\uf8ff'],
    ],
  ],
  ['macturkish', [['\u2126', '\u03a9']]],
  [
    'maccyrillic',
    [
      ['\u00a2', '\u0490'],
      ['\u2202', '\u0491'],
      ['\u00a4', '\u20ac'],
    ],
  ],
  [
    'macgreek',
    [
      ['\u00ad', '\u20ac'],
      ['\ufffd', '\u00ad'],
      ['\u0387', '\u00b7'],
    ],
  ],
]);

/** Labels whose bytes are read by `decodeShifted` (RFC 1468, 1554, 1557, 1922) and `decodeHz` (RFC 1843). */
const SHIFTED = /^(?:iso-2022-(?:jp(?:-(?:1|2|3|ext))?|kr|cn)|csiso2022(?:jp|kr)|cp5022[01]|x-cp5022[01])$/;
const HZ = /^(?:hz|hz-gb|hz-gb-?2312)$/;

/** The label as it is, else without the prefixes that programs add. Null: unknown, or a label for any charset. */
function decoderFor(label: string): Decode | null {
  const name = normalized(label);
  if (name === '' || name.length > MAX_LABEL || isUnicodeOrAscii(name)) return null;
  if (SHIFTED.test(name)) return decodeShifted;
  if (HZ.test(name)) return decodeHz;
  const bare = name.replace(/^(?:x-){1,2}/, '');
  const candidates = [name, bare, bare.replace(/^(?:cp|ms|ibm|dos|win(?:dows)?)-?(?=\d+$)/, 'cp')];
  for (const candidate of candidates) {
    const key = candidate.replaceAll(/[^a-z0-9]/g, '');
    // The library also finds what every object has, such as `constructor`.
    if (NO_CHARSETS.has(key) || key in Object.prototype) return null;
    const table = TABLES.get(key) ?? key;
    if (iconv.encodingExists(table)) return (bytes) => decodeByTable(bytes, table);
  }
  return null;
}

const MAX_LABEL = 40;

function decodeByTable(bytes: Uint8Array, table: string): string {
  const text = iconv.decode(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), table);
  const corrections = CORRECTIONS.get(table) ?? [];
  return corrections.reduce((corrected, [from, to]) => corrected.replaceAll(from, to), text);
}

function decodeDetected(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return decodeByTable(bytes, 'windows-1252');
  }
}

/** ESC $ B, ESC $ @ or ESC ( J within the first kilobyte: Japanese mail without a declared charset. */
function looksLikeIso2022Jp(bytes: Uint8Array): boolean {
  const end = Math.min(bytes.length, 1024) - 2;
  for (let i = 0; i < end; i++) {
    if (bytes[i] !== ESC) continue;
    const [a, b] = [bytes[i + 1], bytes[i + 2]];
    if ((a === 0x24 && (b === 0x42 || b === 0x40)) || (a === 0x28 && b === 0x4a)) return true;
  }
  return false;
}

const ESC = 0x1b;
const SHIFT_OUT = 0x0e;
const SHIFT_IN = 0x0f;
const LF = 0x0a;
const TILDE = 0x7e;

/** A character set of ISO/IEC 2022: the table that has its characters with the highest bit set, after `prefix`. */
interface CodedSet {
  table: string;
  prefix?: number;
  width: 1 | 2;
}

/** By the bytes after ESC that designate the set. Those with `)` and `*` are used after a shift; ASCII is absent. */
const CODED_SETS: Readonly<Record<string, CodedSet | null>> = {
  '(B': null,
  '(J': null,
  '(I': { table: 'euc-jp', prefix: 0x8e, width: 1 },
  $B: { table: 'euc-jp', width: 2 },
  '$@': { table: 'euc-jp', width: 2 },
  '$(B': { table: 'euc-jp', width: 2 },
  '$(D': { table: 'euc-jp', prefix: 0x8f, width: 2 },
  $A: { table: 'gbk', width: 2 },
  '$(C': { table: 'cp949', width: 2 },
};
const SHIFTED_SETS: Readonly<Record<string, CodedSet>> = {
  '$)C': { table: 'cp949', width: 2 },
  '$)A': { table: 'gbk', width: 2 },
};

/** ISO-2022-JP, -KR and -CN. Unknown escape sequences are skipped. */
function decodeShifted(bytes: Uint8Array): string {
  let text = '';
  let set: CodedSet | null = null;
  let shiftedSet: CodedSet | null = SHIFTED_SETS['$)C'] ?? null;
  let isShifted = false;
  let from = 0;
  const flush = (to: number) => {
    text += decodeRun(bytes.subarray(from, to), isShifted ? shiftedSet : set);
  };
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte !== ESC && byte !== SHIFT_OUT && byte !== SHIFT_IN) continue;
    flush(at);
    if (byte === ESC) {
      const code = escapeCode(bytes, at + 1);
      if (code in CODED_SETS) set = CODED_SETS[code] ?? null;
      else shiftedSet = SHIFTED_SETS[code] ?? shiftedSet;
      at += code.length;
    } else isShifted = byte === SHIFT_OUT;
    from = at + 1;
  }
  flush(bytes.length);
  return text;
}

/** Intermediate bytes, then a final one (ECMA-35 §13.2.1); '' for none. */
function escapeCode(bytes: Uint8Array, from: number): string {
  let at = from;
  while (at < bytes.length && at - from < 3 && isBetween(bytes[at], 0x20, 0x2f)) at++;
  return isBetween(bytes[at], 0x30, 0x7e) ? String.fromCharCode(...bytes.subarray(from, at + 1)) : '';
}

function isBetween(byte: number | undefined, low: number, high: number): boolean {
  return byte !== undefined && byte >= low && byte <= high;
}

/** HZ: GB 2312 between `~{` and `~}`; `~~` is a tilde, and one before a line end is removed. */
function decodeHz(bytes: Uint8Array): string {
  let text = '';
  let isChinese = false;
  let from = 0;
  const flush = (to: number) => {
    text += decodeRun(bytes.subarray(from, to), isChinese ? { table: 'gbk', width: 2 } : null);
  };
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === LF && isChinese) {
      // A line ends in ASCII.
      flush(at);
      from = at;
      isChinese = false;
    }
    if (bytes[at] !== TILDE) {
      // The second byte of a character is no tilde.
      if (isChinese && isBetween(bytes[at], 0x21, 0x7d)) at++;
      continue;
    }
    flush(at);
    const next = String.fromCharCode(bytes[at + 1] ?? 0);
    if (next === '~') text += '~';
    if (next === '{' || next === '}') isChinese = next === '{';
    if ('~{}\n'.includes(next)) at++;
    from = at + 1;
  }
  flush(bytes.length);
  return text;
}

/** `bytes` are of one set, null: ASCII. Control characters, line ends among them, are themselves in every set. */
function decodeRun(bytes: Uint8Array, set: CodedSet | null): string {
  if (set === null) return decodeDetected(bytes);
  const { table, prefix, width } = set;
  const raised = Buffer.alloc(2 * bytes.length + 1);
  let length = 0;
  for (let at = 0; at < bytes.length; ) {
    const byte = bytes[at] ?? 0;
    if (byte <= 0x20 || byte === 0x7f) {
      raised[length++] = byte;
      at++;
      continue;
    }
    if (prefix !== undefined) raised[length++] = prefix;
    for (const each of bytes.subarray(at, at + width)) raised[length++] = each | 0x80;
    at += width;
  }
  return iconv.decode(raised.subarray(0, length), table);
}
