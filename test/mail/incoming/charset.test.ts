import { describe, expect, it } from 'vitest';
import { decodeLines, decodeText, isKnownCharset } from '../../../src/mail/incoming/charset.ts';
import { runPython } from '../../support/python.ts';
import { requirePrograms } from '../../support/required-programs.ts';

const python = requirePrograms('python3');

/** Labels in mail, with Python's codec of the same characters where the label itself is none of Python's. */
const ONE_BYTE: readonly (readonly [label: string, codec?: string])[] = [
  ...[2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16].map((part) => [`iso-8859-${part}`] as const),
  ...[1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258].map((page) => [`windows-${page}`] as const),
  ...[437, 737, 775, 850, 852, 855, 857, 858, 860, 861, 862, 863, 864, 865, 866, 869].map(
    (page) => [`cp${page}`] as const,
  ),
  ['iso-8859-1', 'cp1252'],
  ['latin1', 'cp1252'],
  ['iso-8859-9', 'cp1254'],
  ['tis-620', 'cp874'],
  ['windows-874', 'cp874'],
  ['iso-8859-8-i', 'iso-8859-8'],
  ['ibm850', 'cp850'],
  ['dos-866', 'cp866'],
  ['x-cp1250', 'cp1250'],
  ['x-iso-8859-15', 'iso-8859-15'],
  ['koi8-r'],
  ['koi8-u'],
  ['macintosh', 'mac_roman'],
  ['x-mac-roman', 'mac_roman'],
  ['x-mac-cyrillic', 'mac_cyrillic'],
  ['x-mac-greek', 'mac_greek'],
  ['x-mac-turkish', 'mac_turkish'],
  ['x-mac-iceland', 'mac_iceland'],
  ['hp-roman8'],
  ['rk1048'],
];

const TWO_BYTES: readonly (readonly [label: string, codec?: string])[] = [
  ['cp932'],
  ['ms932', 'cp932'],
  ['windows-31j', 'cp932'],
  ['cp936', 'gbk'],
  ['gbk'],
  ['gb18030'],
  ['cp949'],
  ['uhc', 'cp949'],
  ['euc-kr', 'cp949'],
  ['ks_c_5601-1987', 'cp949'],
  ['cp950'],
  ['big5', 'big5hkscs'],
  ['x-x-big5', 'big5hkscs'],
  ['euc-jp'],
];

/** Prints, for each codec, the characters of each sequence of bytes, null where the codec has none. */
const DECODE = `
import json, sys
request = json.load(sys.stdin)
def decode(codec, data):
  try: return bytes.fromhex(data).decode(codec)
  except UnicodeDecodeError: return None
json.dump([[decode(codec, data) for data in request['bytes']] for codec in request['codecs']], sys.stdout)`;

function pythonDecodes(codecs: readonly string[], bytes: readonly string[]): (string | null)[][] {
  return JSON.parse(runPython(DECODE, [], JSON.stringify({ codecs, bytes })));
}

/** What is decoded other than by Python, except bytes that stand for no character there. */
function differences(
  charsets: readonly (readonly [label: string, codec?: string])[],
  bytes: readonly string[],
  expected: readonly (readonly (string | null)[])[],
): string[] {
  return charsets.flatMap(([label], n) =>
    bytes.flatMap((hex, at) => {
      const right = expected[n]?.[at] ?? null;
      const text = decodeText(Buffer.from(hex, 'hex'), label);
      if (right === null || PRIVATE_USE.test(right) || unified(text) === unified(right)) return [];
      return label.endsWith('950') && USER_DEFINED.test(hex)
        ? []
        : [`${label} ${hex}: ${text}, not ${right}`];
    }),
  );
}

/** Characters of vendors that have no standard one. */
const PRIVATE_USE = /[\ue000-\uf8ff]/;
/** The range of Big5 that Microsoft leaves to users, and Python fills with the characters of one vendor. */
const USER_DEFINED = /^c[678]/;

/** Characters of JIS X 0208 and others of which Python's standard tables have another one than those of Windows. */
const VARIANTS: Readonly<Record<string, string>> = {
  '\uff5e': '\u301c',
  '\u223c': '\u301c',
  '\u2225': '\u2016',
  '\uff0d': '\u2212',
  '\uffe0': '\u00a2',
  '\uffe1': '\u00a3',
  '\uffe2': '\u00ac',
  '\uff3c': '\\',
  '\uffe3': '\u203e',
  '\uffe5': '\u00a5',
  '\u00af': '\u203e',
  '\u2295': '\u2641',
  '\u2299': '\u2609',
};
const unified = (text: string) =>
  Array.from(text)
    .map((char) => VARIANTS[char] ?? char)
    .join('');

describe('decodeText', () => {
  it.skipIf(python.missing)(`decodes every byte as Python does${python.reason}`, () => {
    const bytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
    const expected = pythonDecodes(
      ONE_BYTE.map(([label, codec = label]) => codec),
      bytes,
    );
    expect(ONE_BYTE.filter(([label]) => !isKnownCharset(label))).toEqual([]);
    expect(differences(ONE_BYTE, bytes, expected)).toEqual([]);
  });

  it.skipIf(python.missing)(`decodes pairs of bytes as Python does${python.reason}`, () => {
    const bytes: string[] = [];
    for (let lead = 0xa1; lead <= 0xf9; lead++)
      for (let trail = 0xa1; trail <= 0xfe; trail++) bytes.push(((lead << 8) | trail).toString(16));
    const expected = pythonDecodes(
      TWO_BYTES.map(([label, codec = label]) => codec),
      bytes,
    );
    expect(differences(TWO_BYTES, bytes, expected)).toEqual([]);
  });

  it.skipIf(python.missing).each([
    ['iso-2022-jp', 'iso2022_jp_ext', 'Grüße'.replaceAll(/[üß]/g, 'x') + 'こんにちは、ｶﾀｶﾅ 漢字\n二行目'],
    ['iso-2022-jp', 'iso2022_jp_1', '漢字 丂'],
    ['iso-2022-jp-2', 'iso2022_jp_2', '漢字 한국 中国'],
    ['iso-2022-kr', 'iso2022_kr', '안녕하세요 hello\n두 번째 줄'],
    ['hz-gb-2312', 'hz', '你好 ~tilde~ 世界\n第二行'],
    ['utf-7', 'utf-7', 'Grüße + こんにちは'],
    ['utf-16', 'utf-16', 'Grüße こんにちは'],
    ['utf-16be', 'utf-16-be', 'Grüße'],
    ['gb18030', 'gb18030', 'Grüße 你好 👍'],
  ])(`decodes %s as Python encodes it in %s${python.reason}`, (label, codec, text) => {
    const encoded = runPython('import sys; print(sys.argv[2].encode(sys.argv[1]).hex())', [codec, text]);
    expect(decodeText(Buffer.from(encoded.trim(), 'hex'), label)).toBe(text);
  });

  it.each([
    'x-unknown',
    'unknown-8bit',
    'johab',
    'hex',
    'base64',
    'binary',
    'constructor',
    '__proto__',
    'utf-9',
    'a'.repeat(1000),
  ])('detects the charset of text with the unknown label %s', (label) => {
    expect(isKnownCharset(label)).toBe(false);
    expect(decodeText(Buffer.from('Grüße'), label)).toBe('Grüße');
    expect(decodeText(Buffer.from([0x47, 0x72, 0xfc, 0x80]), label)).toBe('Grü€');
  });

  it.each(['utf-8', 'UTF8', 'utf8mb4', 'us-ascii', 'ANSI_X3.4-1968', '646', 'unicode-1-1-utf-8'])(
    'knows %s',
    (label) => {
      expect(isKnownCharset(label)).toBe(true);
      expect(decodeText(Buffer.from('Grüße'), label)).toBe('Grüße');
    },
  );

  it('skips escape sequences that it does not know', () => {
    expect(decodeText(Buffer.from('a\x1b(Zb\x1b', 'latin1'), 'iso-2022-jp')).toBe('ab');
  });
});

describe('decodeLines', () => {
  it('detects the charset of each line', () => {
    const lines = Buffer.concat([Buffer.from('A: Grüße\n'), Buffer.from('B: \x93x\x94\n', 'latin1')]);
    expect(decodeLines(lines)).toBe('A: Grüße\nB: “x”\n');
  });
});
