import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createReplyReader,
  MalformedReply,
  replyOf,
  type WireReply,
} from '../../../src/delivery/worker/reply-reader.ts';

function read(...chunks: string[]): WireReply[] {
  const reader = createReplyReader();
  const replies: WireReply[] = [];
  for (const chunk of chunks) reader.push(chunk, (reply) => replies.push(reply));
  return replies;
}

describe('replies (RFC 5321 §4.2)', () => {
  const CASES: [name: string, wire: string, replies: WireReply[]][] = [
    ['of one line', '250 fine\r\n', [{ code: 250, lines: ['fine'] }]],
    ['without text', '250\r\n', [{ code: 250, lines: [''] }]],
    ['with empty text', '250 \r\n', [{ code: 250, lines: [''] }]],
    ['of several lines', '250-a\r\n250-b\r\n250 c\r\n', [{ code: 250, lines: ['a', 'b', 'c'] }]],
    ['with an empty line inside', '250-\r\n250 c\r\n', [{ code: 250, lines: ['', 'c'] }]],
    ['whose codes differ: the last counts', '250-a\r\n550 b\r\n', [{ code: 550, lines: ['a', 'b'] }]],
    ['with bare LF', '250-a\n250 b\n', [{ code: 250, lines: ['a', 'b'] }]],
    [
      'one behind another',
      '250 a\r\n354 b\r\n',
      [
        { code: 250, lines: ['a'] },
        { code: 354, lines: ['b'] },
      ],
    ],
    [
      'with lines without a code inside, which are ignored',
      '250-sink\r\n8BITMIME\r\n\r\n250 SIZE\r\n',
      [{ code: 250, lines: ['sink', 'SIZE'] }],
    ],
    ['unfinished', '250-a\r\n250 b', []],
  ];
  it.each(CASES)('%s', (_, wire, replies) => {
    expect(read(wire)).toEqual(replies);
  });

  it('are the same for any split of the bytes', () => {
    const wire = CASES.slice(0, -1)
      .map(([, text]) => text)
      .join('');
    const whole = read(wire);
    fc.assert(
      fc.property(fc.array(fc.nat(wire.length)), (cuts) => {
        const ends = [...cuts, wire.length].sort((a, b) => a - b);
        const chunks = ends.map((end, index) => wire.slice(ends[index - 1] ?? 0, end));
        expect(read(...chunks)).toEqual(whole);
      }),
    );
  });

  const NONSENSE = [
    'hello',
    '',
    '25 short',
    '2500 long',
    '150 no such class',
    '650 nor this',
    '250_joined',
    ' 250 shy',
  ];
  it.each(NONSENSE)('are not: "%s"', (line) => {
    expect(() => read(`${line}\r\n`)).toThrow(MalformedReply);
  });

  it('that are complete are returned before malformed data after them is detected', () => {
    const replies: WireReply[] = [];
    expect(() => createReplyReader().push('250 a\r\nnonsense\r\n', (reply) => replies.push(reply))).toThrow(
      'not an SMTP reply: nonsense',
    );
    expect(replies).toEqual([{ code: 250, lines: ['a'] }]);
  });

  it('that are incomplete are dropped by clear', () => {
    const reader = createReplyReader();
    const replies: WireReply[] = [];
    reader.push('250-a\r\n250-b', () => undefined);
    reader.clear();
    reader.push('220 c\r\n', (reply) => replies.push(reply));
    expect(replies).toEqual([{ code: 220, lines: ['c'] }]);
  });
});

describe('bounds', () => {
  const CASES: [name: string, wire: string, fits: boolean][] = [
    ['a line of 8 KiB', `250 ${'x'.repeat(8 * 1024 - 4)}\r\n`, true],
    ['a longer line', `250 ${'x'.repeat(8 * 1024 - 3)}\r\n`, false],
    ['a longer line without an end', 'x'.repeat(9000), false],
    ['128 lines', `${'250-x\r\n'.repeat(127)}250 x\r\n`, true],
    ['more lines', '250-x\r\n'.repeat(129), false],
    ['more lines, without a code', `250-x\r\n${'x\r\n'.repeat(128)}`, false],
    ['more than 64 KiB in all', `250-${'x'.repeat(8000)}\r\n`.repeat(9), false],
  ];
  it.each(CASES)('%s: %3$s', (_, wire, fits) => {
    if (fits) expect(read(wire)).toHaveLength(1);
    else expect(() => read(wire)).toThrow(MalformedReply);
  });

  it('apply to each reply separately', () => {
    expect(read(`${'250-x\r\n'.repeat(127)}250 x\r\n`.repeat(3))).toHaveLength(3);
  });
});

describe('code, enhanced code and text', () => {
  const CASES: [lines: string[], code: number, enhanced: string | null, text: string][] = [
    [['2.0.0 taken'], 250, '2.0.0', 'taken'],
    [['taken'], 250, null, 'taken'],
    [['5.1.1'], 550, '5.1.1', ''],
    [['5.1.1 nobody', '5.1.1 of that name'], 550, '5.1.1', 'nobody of that name'],
    [['no such', '5.1.1 user'], 550, '5.1.1', 'no such user'],
    [['5.7.1 a', '5.7.26 b'], 550, '5.7.1', 'a 5.7.26 b'],
    [['#5.1.0 Address rejected'], 550, '5.1.0', 'Address rejected'],
    [['5.1.1: user unknown'], 550, '5.1.1', 'user unknown'],
    [['5.7.509 third part'], 550, '5.7.509', 'third part'],
    // RFC 2034 §4: the classes must agree; a code of another class is text.
    [['4.2.2 full'], 550, null, '4.2.2 full'],
    [['5.1 half a code'], 550, null, '5.1 half a code'],
    [['5.1.1000 too long'], 550, null, '5.1.1000 too long'],
    [['192.0.2.1 is listed'], 550, null, '192.0.2.1 is listed'],
    [['  blanks  ', '', ' around '], 550, null, 'blanks  around'],
    [['a\tb\u0000c\u001b[31m'], 550, null, 'a b c [31m'],
    [['j\u00c3\u00b6rg'], 550, null, 'jörg'],
    [['j\u00f6rg'], 550, null, 'j\ufffdrg'],
  ];
  it.each(CASES)('%j of a %d', (lines, code, enhanced, text) => {
    expect(replyOf({ code, lines })).toEqual({ code, enhanced, text });
  });

  it('have at most 2,000 characters of text', () => {
    expect(replyOf({ code: 550, lines: ['x'.repeat(1500), 'y'.repeat(1500)] }).text).toHaveLength(2000);
  });
});
