import { describe, expect, it } from 'vitest';
import {
  csvCutter,
  csvFields,
  delimiterOf,
  lineCutter,
  readRecords,
  type StreamPosition,
} from '../../../src/audience/import/records.ts';

async function* inChunks(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

type Seen = [line: number, fields: string[] | string];

async function readCsv(text: string | Buffer, size = 1 << 20, start?: StreamPosition) {
  const all = Buffer.from(text);
  const seen: Seen[] = [];
  const ends: StreamPosition[] = [];
  const bytes = start === undefined ? all : all.subarray(start.byte);
  for await (const records of readRecords(inChunks(bytes, size), csvCutter(','), start)) {
    for (const { line, text, fault, end } of records) {
      seen.push([line, fault ?? csvFields(text, ',')]);
      ends.push(end);
    }
  }
  return { seen, ends };
}

const NOT_CLOSED = 'a quote is not closed';

describe('CSV records', () => {
  const cases: [what: string, text: string | Buffer, seen: Seen[]][] = [
    ['nothing', '', []],
    [
      'LF and CRLF, with and without an end',
      'a,b\r\nc,d\ne,f',
      [
        [1, ['a', 'b']],
        [2, ['c', 'd']],
        [3, ['e', 'f']],
      ],
    ],
    ['a byte order mark', '\uFEFFa,b\n', [[1, ['a', 'b']]]],
    [
      'blank lines',
      'a\n\r\n  \n\nb\n',
      [
        [1, ['a']],
        [5, ['b']],
      ],
    ],
    [
      'empty fields',
      ',a,\n,,\n',
      [
        [1, ['', 'a', '']],
        [2, ['', '', '']],
      ],
    ],
    ['quotes, commas and doubled quotes', '"a,b","c ""d""",""\n', [[1, ['a,b', 'c "d"', '']]]],
    [
      'line ends inside quotes',
      'a,"b\r\nc"\nd,e\n',
      [
        [1, ['a', 'b\r\nc']],
        [3, ['d', 'e']],
      ],
    ],
    [
      'a quote in the middle of a field',
      '5" disk,b\nc,d\n',
      [
        [1, ['5" disk', 'b']],
        [2, ['c', 'd']],
      ],
    ],
    ['other scripts', 'Ζωή,محمد,😀\n', [[1, ['Ζωή', 'محمد', '😀']]]],
    [
      'a quote that is never closed: one line is lost',
      'a,"b\nc,d\ne,f\n',
      [
        [1, NOT_CLOSED],
        [2, ['c', 'd']],
        [3, ['e', 'f']],
      ],
    ],
    [
      'a quote that the next one closes by chance',
      'a,"b\nc,"d"\ne,f\n',
      [
        [1, NOT_CLOSED],
        [2, ['c', 'd']],
        [3, ['e', 'f']],
      ],
    ],
    [
      'an unclosed quote in the last line',
      'a,b\nc,"d',
      [
        [1, ['a', 'b']],
        [2, NOT_CLOSED],
      ],
    ],
    [
      'bytes that are no UTF-8',
      Buffer.from('a,b\nM\xfcller,d\ne,f\n', 'latin1'),
      [
        [1, ['a', 'b']],
        [2, 'is not valid UTF-8'],
        [3, ['e', 'f']],
      ],
    ],
  ];
  it.each(cases)('%s', async (_, text, seen) => {
    expect((await readCsv(text)).seen).toEqual(seen);
  });

  it.each(cases)('%s, whatever the chunks', async (_, text, seen) => {
    for (const size of [1, 2, 3, 5, 8])
      expect((await readCsv(text, size)).seen, `${size} bytes`).toEqual(seen);
  });

  it('can continue from the end of any record', async () => {
    const text = '\uFEFFa,b\r\n"c\nd",e\r\n\r\nü,"x\ny,z\nf,"g"\nh,i';
    const whole = await readCsv(text);
    for (const [index, end] of whole.ends.entries()) {
      const later = await readCsv(text, 4, end);
      expect(later.seen).toEqual(whole.seen.slice(index + 1));
      expect(later.ends).toEqual(whole.ends.slice(index + 1));
    }
  });

  it('rejects a line that is too long, and no other', async () => {
    const long = 'x'.repeat(300_000);
    for (const size of [1000, 1 << 20]) {
      const { seen, ends } = await readCsv(`a,b\n${long},c\nd,e\n"${long}`, size);
      expect(seen).toEqual([
        [1, ['a', 'b']],
        [2, 'is longer than 262144 bytes; is a quote not closed?'],
        [3, ['d', 'e']],
        [4, expect.stringMatching(/quote/)],
      ]);
      expect(ends[1]).toEqual({ byte: 4 + 300_003, line: 2 });
    }
  });

  it('continue at the next line when an unclosed quote exceeds the length of a record', async () => {
    const lines = Array.from({ length: 30_000 }, (_, n) => `row ${n},x`);
    const { seen } = await readCsv(`a,b\nc,"d\n${lines.join('\n')}\n`, 65_536);
    expect(seen).toHaveLength(30_002);
    expect(seen[1]).toEqual([2, expect.stringMatching(/is a quote not closed/)]);
    expect(seen[2]).toEqual([3, ['row 0', 'x']]);
  });
});

describe('lines of JSON', () => {
  it('are split at line ends, whatever they contain', async () => {
    const text = Buffer.from('{"a":"\\n\\""}\r\n\n{"b":"😀"}');
    const seen: unknown[] = [];
    for await (const records of readRecords(inChunks(text, 3), lineCutter)) {
      for (const { line, text, fault, end } of records) seen.push([line, text, fault, end]);
    }
    expect(seen).toEqual([
      [1, '{"a":"\\n\\""}', null, { byte: 14, line: 1 }],
      [3, '{"b":"😀"}', null, { byte: 27, line: 2 }],
    ]);
  });
});

describe('the delimiter', () => {
  it.each([
    ['email,firstName', ','],
    ['email;firstName;"a,b,c"', ';'],
    ['email\tfirstName', '\t'],
    ['email', ','],
  ])('finds the delimiter of %j: %j', (header, delimiter) => expect(delimiterOf(header)).toBe(delimiter));
});
