import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type EncodedBody,
  encodeFile,
  encodeLines,
  encodeText,
  textLines,
  wrapBase64,
} from '../../src/mail/encode.ts';

/** An independent decoder: simple and slow. */
function decode(body: EncodedBody): string {
  return decodeBytes(body).toString();
}

function decodeBytes({ encoding, chunks }: EncodedBody): Buffer {
  const text = bytesOf(chunks);
  if (encoding === '7bit') return Buffer.from(text, 'latin1');
  if (encoding === 'base64') return Buffer.from(text, 'base64');
  const bytes = text
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}

const bytesOf = (chunks: Buffer[]) => Buffer.concat(chunks).toString('latin1');

const crlf = (text: string) => text.replace(/\r\n?|\n/g, '\r\n');

describe('encodeText selects the encoding', () => {
  it.each<[string, string, EncodedBody['encoding']]>([
    ['plain text', 'Hello\nworld\n', '7bit'],
    ['nothing', '', '7bit'],
    ['tabs and trailing blanks', '\ta \nb', '7bit'],
    ['a line of 998 bytes', `${'a'.repeat(998)}\nb`, '7bit'],
    ['a line of 999 bytes', `${'a'.repeat(999)}\nb`, 'quoted-printable'],
    ['a last line of 999 bytes', `b\n${'a'.repeat(999)}`, 'quoted-printable'],
    ['a line that mailboxes would change', 'x\nFrom here on', 'quoted-printable'],
    ['a word like it', 'x\nFrom: here\n From here', '7bit'],
    ['a line like one of our boundaries', 'x\n--=_a_1--\n', 'quoted-printable'],
    ['a control character', 'a\u0007b'.padEnd(50), 'quoted-printable'],
    ['a NUL', 'a\u0000b'.padEnd(50), 'quoted-printable'],
    ['some accents', 'Grüße aus Köln, wie geht es dir?', 'quoted-printable'],
    ['Cyrillic', 'Привет, как дела?', 'base64'],
    ['emoji alone', '👍👍', 'base64'],
  ])('for %s', (_, text, encoding) => {
    const encoded = encodeText(text);
    expect(encoded.encoding).toBe(encoding);
    expect(decode(encoded)).toBe(crlf(text));
  });
});

describe('quoted-printable', () => {
  const quoted = (text: string) => {
    // The long line forces the encoding, whatever the text.
    const { encoding, chunks } = encodeText(`${text}\n${'-'.repeat(999)}`);
    expect(encoding).toBe('quoted-printable');
    return bytesOf(chunks).split(`\r\n${'-'.repeat(75)}=`)[0];
  };

  it.each([
    ['a=b', 'a=3Db'],
    ['é', '=C3=A9'],
    ['a \nb\t\nc d', 'a=20\r\nb=09\r\nc d'],
    ['From a\nNot From b\nFrom', '=46rom a\r\nNot =46rom b\r\nFrom'],
    ['x'.repeat(76), 'x'.repeat(76)],
    ['x'.repeat(77), `${'x'.repeat(75)}=\r\nxx`],
    [`${'x'.repeat(75)}=`, `${'x'.repeat(75)}=\r\n=3D`],
    [`${'x'.repeat(73)}=`, `${'x'.repeat(73)}=3D`],
    [`${'x'.repeat(73)}=y`, `${'x'.repeat(73)}=\r\n=3Dy`],
    [`${'x'.repeat(75)}From y`, `${'x'.repeat(75)}=\r\n=46rom y`],
  ])('encodes %j as %j', (text, expected) => {
    expect(quoted(text)).toBe(expected);
  });
});

describe('wrapBase64', () => {
  it.each([
    ['', ''],
    ['QUJD', 'QUJD'],
    ['A'.repeat(76), 'A'.repeat(76)],
    ['A'.repeat(80), `${'A'.repeat(76)}\r\nAAAA`],
    ['A'.repeat(152), `${'A'.repeat(76)}\r\n${'A'.repeat(76)}`],
  ])('splits %j', (base64, expected) => {
    expect(wrapBase64(base64).toString()).toBe(expected);
  });
});

describe('any text', () => {
  const piece = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom(
      '\n',
      '\r\n',
      '\r',
      ' \n',
      '\t',
      'From ',
      '\nFrom ',
      '\n--=_',
      '=',
      '.',
      'é',
      '漢字',
      '👍',
      '\u0000',
    ),
    fc.nat({ max: 1200 }).map((length) => 'x'.repeat(length)),
  );
  const text = fc.array(piece).map((pieces) => pieces.join(''));

  it('is decoded to the same text, except for line ends', () => {
    fc.assert(
      fc.property(text, (source) => {
        expect(decode(encodeText(source))).toBe(crlf(source));
      }),
    );
  });

  it('is encoded as ASCII lines with CRLF, none too long, none like a boundary', () => {
    fc.assert(
      fc.property(text, (source) => {
        const { encoding, chunks } = encodeText(source);
        const lines = bytesOf(chunks).split('\r\n');
        const limit = encoding === '7bit' ? 998 : 76;
        for (const line of lines) {
          expect(line).toMatch(/^[\t -~]*$/);
          expect(line.length).toBeLessThanOrEqual(limit);
          expect(line).not.toMatch(/^(?:--=_|From )/);
        }
      }),
    );
  });
});

it('encodes lines separately as it encodes them together', () => {
  const line = fc.constantFrom(
    '',
    'a',
    'From b',
    '--=_c',
    'Grüße',
    'Привет',
    ' ',
    'd\r',
    '='.repeat(80),
    'e'.repeat(999),
  );
  fc.assert(
    fc.property(fc.array(fc.array(line)), fc.boolean(), (groups, endsLine) => {
      const texts = groups.map((lines) => lines.map((each) => `${each}\n`).join(''));
      if (!endsLine) texts.push('end');
      const lines = texts.map(textLines);
      const together = encodeText(texts.join(''));
      // Twice: what was computed for the lines is kept.
      for (let time = 0; time < 2; time++) {
        const separately = encodeLines(lines);
        expect(separately.encoding).toBe(together.encoding);
        expect(bytesOf(separately.chunks)).toBe(bytesOf(together.chunks));
      }
    }),
  );
});

it('finds each byte that is not safe in 7bit, wherever it is in a text', () => {
  const safe = /^[\t\r\n -~]$/;
  for (let byte = 0; byte < 128; byte++) {
    const character = String.fromCharCode(byte);
    for (let before = 0; before < 8; before++) {
      const { encoding } = encodeText(`${'x'.repeat(before)}${character}${'y'.repeat(40)}`);
      expect(encoding === '7bit', `byte ${byte} after ${before}`).toBe(safe.test(character));
    }
  }
});

describe('encodeFile', () => {
  const file = (data: string | Buffer) => encodeFile(Buffer.from(data).toString('base64'));

  it.each<[string, string | Buffer, EncodedBody['encoding']]>([
    ['a CSV with CRLF', 'a,b\r\n1,2\r\n', '7bit'],
    ['a CSV with LF, whose bytes must not change', 'name,price\n1 pound,2 euros\n', 'quoted-printable'],
    ['some accents', 'Größe;Preis;Menge;Lieferdatum\r\n1;2;3;4\r\n', 'quoted-printable'],
    ['a line of 999 bytes', `${'a'.repeat(999)}\r\nb`, 'quoted-printable'],
    ['a line that mailboxes would change', 'x\r\nFrom here on', 'quoted-printable'],
    ['UTF-16', Buffer.from('a,b\r\n1,2\r\n', 'utf16le'), 'base64'],
    ['Cyrillic', 'Привет, как дела?', 'base64'],
    ['nothing', '', '7bit'],
  ])('selects the shortest encoding for %s', (_, data, encoding) => {
    const encoded = file(data);
    expect(encoded.encoding).toBe(encoding);
    expect(decodeBytes(encoded)).toEqual(Buffer.from(data));
  });

  it('is decoded to the same bytes, in ASCII lines, none too long or like a boundary, not longer than base64', () => {
    const pieces = fc.oneof(
      fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
      fc
        .constantFrom('\n', '\r\n', '\r', ' \r\n', '\t', ' ', 'From ', '\r\nFrom ', '\r\n--=_', '=', '.', 'é')
        .map((text) => Buffer.from(text)),
      fc.nat({ max: 1200 }).map((length) => Buffer.alloc(length, 'x')),
    );
    fc.assert(
      fc.property(fc.array(pieces), (parts) => {
        const bytes = Buffer.concat(parts);
        const base64 = bytes.toString('base64');
        const encoded = encodeFile(base64);
        expect(decodeBytes(encoded)).toEqual(bytes);
        const body = bytesOf(encoded.chunks);
        expect(body.length).toBeLessThanOrEqual(wrapBase64(base64).length);
        const limit = encoded.encoding === '7bit' ? 998 : 76;
        for (const line of body.split('\r\n')) {
          expect(line).toMatch(/^[\t -~]*$/);
          expect(line.length).toBeLessThanOrEqual(limit);
          expect(line).not.toMatch(/^(?:--=_|From )/);
        }
      }),
      { numRuns: 300 },
    );
  });
});
