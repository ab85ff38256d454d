import * as fc from 'fast-check';
import { simpleParser } from 'mailparser';
import { describe, expect, it } from 'vitest';
import {
  addressField,
  encodedWords,
  isUrlList,
  parameterField,
  textField,
  urlListField,
  wordsField,
} from '../../src/mail/headers.ts';
import { runPython } from '../support/python.ts';
import { requirePrograms } from '../support/required-programs.ts';

const parse = (field: string) => simpleParser(`${field}\r\n\r\n`);

/** The properties of every field, whatever its value. */
function expectValid(field: string): void {
  const lines = field.split('\r\n');
  for (const [index, line] of lines.entries()) {
    expect(line).toMatch(/^[ -~]*$/);
    expect(line.length).toBeLessThanOrEqual(998);
    // Folded lines begin with a space and contain text: a line of spaces alone would end the header for some parsers.
    expect(line).toMatch(index === 0 ? /^[A-Za-z-]+:(?: |$)/ : /^ +[^ ]/);
  }
}

describe('textField', () => {
  it.each([
    ['Hello world', 'X: Hello world'],
    ['', 'X:'],
    ['  blanks   inside and around  ', 'X: blanks   inside and around'],
    ['Grüße', 'X: =?utf-8?b?R3LDvMOfZQ==?='],
    ['Your order from Zürich is here', 'X: Your order from =?utf-8?q?Z=C3=BCrich?= is here'],
    ['é, é', 'X: =?utf-8?b?w6ksIMOp?='],
    ['Привет мир', 'X: =?utf-8?b?0J/RgNC40LLQtdGCINC80LjRgA==?='],
    ['=?utf-8?q?no?=', 'X: =?utf-8?b?PT91dGYtOD9xP25vPz0=?='],
    ['a\r\nBcc: b\u0000', 'X: a  Bcc: b'],
    ['a\tb', 'X: a b'],
    [`${'word '.repeat(20)}end`, `X: ${'word '.repeat(13)}word\r\n${' word'.repeat(6)} end`],
    [`a ${'b'.repeat(100)} c`, `X: a\r\n ${'b'.repeat(100)}\r\n c`],
  ])('formats %j', (value, expected) => {
    expect(textField('X', value)).toBe(expected);
  });

  it('begins an encoded value on the line of the name', () => {
    const [first = '', ...rest] = textField('Subject', 'é'.repeat(100)).split('\r\n');
    expect(first).toMatch(/^Subject: =\?utf-8\?/);
    expect(first.length).toBeGreaterThan(60);
    expect(rest.length).toBeGreaterThan(1);
    for (const line of [first, ...rest]) expect(line.length).toBeLessThanOrEqual(76);
  });

  const value = fc
    .array(
      fc.oneof(
        fc.string({ unit: 'grapheme' }),
        fc.string({ unit: 'grapheme-ascii' }),
        fc.constantFrom(' ', '  ', '=?', '?=', '\r\n', 'é', '👩‍👩‍👧', 'שלום', '_', ',', '"', '\u0000'),
        fc.nat({ max: 1100 }).map((length) => 'x'.repeat(length)),
        fc.nat({ max: 1100 }).map((length) => ' '.repeat(length)),
      ),
      { maxLength: 12 },
    )
    .map((pieces) => pieces.join(''));

  it('is valid whatever the value', () => {
    fc.assert(
      fc.property(value, (text) => {
        expectValid(textField('Subject', text));
        expectValid(textField(`X-${'Long'.repeat(20)}`, text));
      }),
    );
  });

  it('is parsed back as the value, with control characters as spaces', async () => {
    await fc.assert(
      fc.asyncProperty(value, async (text) => {
        const { subject = '' } = await parse(textField('Subject', text));
        // The parser used here collapses runs of spaces, so they are compared as one.
        const flat = (words: string) => words.replace(/[\p{Cc}\s]+/gu, ' ').trim();
        expect(flat(subject)).toBe(flat(text));
      }),
    );
  });
});

describe('encodedWords', () => {
  it.each([
    ['é', ['=?utf-8?b?w6k=?=']],
    ['one_two? three four é', ['=?utf-8?q?one=5Ftwo=3F_three_four_=C3=A9?=']],
    ['漢字', ['=?utf-8?b?5ryi5a2X?=']],
    [
      '👍'.repeat(12),
      [`=?utf-8?b?${Buffer.from('👍'.repeat(11)).toString('base64')}?=`, '=?utf-8?b?8J+RjQ==?='],
    ],
    ['', []],
    ['\ud800', ['=?utf-8?b?77+9?=']],
  ])('of %j', (text, words) => {
    expect(encodedWords(text)).toEqual(words);
  });

  it('have at most 75 characters, the first at most the requested length, and contain whole characters', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', minLength: 1 }),
        fc.integer({ min: 30, max: 75 }),
        (text, first) => {
          const words = encodedWords(text, first);
          expect(words[0]?.length).toBeLessThanOrEqual(first);
          let decoded = '';
          for (const word of words) {
            expect(word.length).toBeLessThanOrEqual(75);
            const [, kind, content = ''] = /^=\?utf-8\?([qb])\?([!-~]+)\?=$/.exec(word) ?? [];
            const bytes =
              kind === 'b'
                ? Buffer.from(content, 'base64')
                : Buffer.from(
                    content
                      .replace(/_/g, ' ')
                      .replace(/=(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
                    'latin1',
                  );
            // Fatal: throws for a character that is cut in two.
            decoded += new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
          }
          expect(decoded).toBe(text);
        },
      ),
    );
  });
});

describe('addressField', () => {
  const box = (name: string, address = 'a@example.com') => ({ name, address });

  it.each([
    [[box('')], 'To: a@example.com'],
    [[box('Ann Cole')], 'To: Ann Cole <a@example.com>'],
    [[box('Cole, Ann')], 'To: "Cole, Ann" <a@example.com>'],
    [[box('Ann "the" \\')], 'To: "Ann \\"the\\" \\\\" <a@example.com>'],
    [[box('two  blanks')], 'To: "two  blanks" <a@example.com>'],
    [[box('Jörg')], 'To: =?utf-8?b?SsO2cmc=?= <a@example.com>'],
    [[box('=?utf-8?q?x?=')], 'To: =?utf-8?b?PT91dGYtOD9xP3g/PQ==?= <a@example.com>'],
    [[box(''), box('B', 'b@example.com')], 'To: a@example.com, B <b@example.com>'],
    [[box('', 'jörg@example.com')], 'To: jörg@example.com'],
  ])('formats %j', (boxes, expected) => {
    expect(addressField('To', boxes)).toBe(expected);
  });

  it('folds between addresses, with lines of at most 76 characters', () => {
    const field = addressField(
      'To',
      Array.from({ length: 50 }, (_, index) => box(`Person ${index}`, `person-${index}@example.com`)),
    );
    expectValid(field);
    for (const line of field.split('\r\n')) expect(line.length).toBeLessThanOrEqual(76);
  });

  it('is parsed back, whatever the names', async () => {
    const name = fc
      .string({
        unit: fc.oneof(
          fc.constantFrom(...Array.from('",.<>()@:;\\=? é漢👍')),
          fc.string({ unit: 'grapheme', maxLength: 1 }),
        ),
      })
      .map((text) => text.replace(/[\p{Cc}\s]+/gu, ' ').trim());
    await fc.assert(
      fc.asyncProperty(fc.array(name, { minLength: 1, maxLength: 6 }), async (names) => {
        const boxes = names.map((name, index) => box(name, `a${index}@example.com`));
        const field = addressField('To', boxes);
        expectValid(field);
        const { to } = await parse(field);
        expect(
          (Array.isArray(to) ? to : [to]).flatMap((list) => list?.value.map(({ address }) => address)),
        ).toEqual(boxes.map(({ address }) => address));
      }),
    );
  });
});

const python = requirePrograms('python3');
const READ_FILE_NAME =
  'import email, json, sys; print(json.dumps(email.message_from_file(sys.stdin).get_filename()))';

describe('parameterField', () => {
  it.each([
    ['report.pdf', 'X: attachment; filename="report.pdf"'],
    ['my "best" \\ file.pdf', 'X: attachment; filename="my \\"best\\" \\\\ file.pdf"'],
    ['Größe.pdf', "X: attachment; filename*=utf-8''Gr%C3%B6%C3%9Fe.pdf"],
    ['漢字 👍.txt', "X: attachment; filename*=utf-8''%E6%BC%A2%E5%AD%97%20%F0%9F%91%8D.txt"],
    ['=?utf-8?q?x?=.txt', "X: attachment; filename*=utf-8''%3D%3Futf-8%3Fq%3Fx%3F%3D.txt"],
    ['a\r\nb', "X: attachment; filename*=utf-8''a%0D%0Ab"],
  ])('formats the file name %j', (filename, expected) => {
    expect(parameterField('X', 'attachment', { filename })).toBe(expected);
  });

  it.skipIf(python.missing)(
    `is read by Python's email package as the name that it was${python.reason}`,
    () => {
      for (const filename of ['Prüfbericht №3.pdf', '漢字 👍.txt', `${'ü'.repeat(100)}.pdf`]) {
        const field = parameterField('Content-Disposition', 'attachment', { filename });
        const read = runPython(READ_FILE_NAME, [], `${field}\r\n\r\n`);
        expect(JSON.parse(read)).toBe(filename);
      }
    },
  );

  it('splits long names into numbered sections (RFC 2231 §3)', () => {
    const field = parameterField('X', 'attachment', { filename: '漢'.repeat(20) });
    expectValid(field);
    expect(field).toContain(`filename*0*=utf-8''%E6%BC%A2`);
    expect(field).toContain(`filename*3*=%E6%BC%A2`);
  });

  it('is valid whatever the name', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 255 }), (filename) => {
        expectValid(parameterField('Content-Disposition', 'attachment', { filename }));
      }),
    );
  });
});

describe('wordsField', () => {
  it('removes line breaks', () => {
    expect(wordsField('X', ['a\r\nBcc: b', '\u0000c'])).toBe('X: aBcc: b c');
  });
});

describe('a list of URLs', () => {
  const long = `<https://x.example/${'u'.repeat(880)}>`;

  it('is folded between URLs and never encoded', () => {
    const value = `${long},<https://x.example/?a=?b> , <mailto:a@x.example,b@x.example>`;
    expect(urlListField('L', value)).toBe(
      `L: ${long},\r\n <https://x.example/?a=?b>, <mailto:a@x.example,b@x.example>`,
    );
  });

  it.each([
    ['<https://x.example/u>', true],
    [` ${long}, <mailto:u@x.example> `, true],
    ['<https://bücher.example/u>', false],
    [`<https://x.example/${'u'.repeat(900)}>`, false],
    ['<https://x.example/u v>', false],
    ['https://x.example/u', false],
    ['<https://x.example/u> <mailto:u@x.example>', false],
    ['', false],
  ])('%s: %s', (value, expected) => {
    expect(isUrlList(value)).toBe(expected);
  });
});
