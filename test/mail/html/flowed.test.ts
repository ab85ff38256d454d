import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { flowText } from '../../../src/mail/html/flowed.ts';

/** What a client reads (RFC 3676 §4.2 and §4.4, without quotes). */
function unflowed(text: string): string {
  let read = '';
  for (const line of text.split('\n')) {
    const bare = line.startsWith(' ') ? line.slice(1) : line;
    read += bare.endsWith(' ') && bare !== '-- ' ? bare : `${bare}\n`;
  }
  return read.slice(0, -1);
}

const URL = `https://shop.example/${'a'.repeat(200)}`;

describe('flowed text', () => {
  it('breaks long paragraphs only, at spaces', () => {
    const words = 'abcdefgh '.repeat(20).trim();
    expect(flowText(`Short line\n\n${words}\n- ${words}`).split('\n')).toEqual([
      'Short line',
      '',
      'abcdefgh '.repeat(8),
      'abcdefgh '.repeat(8),
      'abcdefgh abcdefgh abcdefgh abcdefgh',
      `- ${'abcdefgh '.repeat(7)}`,
      'abcdefgh '.repeat(8),
      'abcdefgh abcdefgh abcdefgh abcdefgh abcdefgh',
    ]);
  });

  it.each([
    [`Shop now [${URL}] before it is too late`, ['Shop now ', `[${URL}] `, 'before it is too late']],
    [URL, [URL]],
    [`- ${URL} now`, [`- ${URL} `, 'now']],
    [`    12. ${URL}`, [`     12. ${URL}`]],
    [`-- ${URL}`, [`-- ${URL}`]],
  ])('never breaks a URL: %s', (text, lines) => {
    expect(flowText(text).split('\n')).toEqual(lines);
  });

  it('space-stuffs lines that would be read as quotes, as a separator or as a fixed paragraph', () => {
    expect(flowText('>a\nFrom b\n  - c\nd  \nFromage')).toBe(' >a\n From b\n   - c\nd\nFromage');
  });

  it('is unflowed to the same text, and has lines of at most 72 characters except for longer words', () => {
    const piece = fc.oneof(
      fc.constantFrom(' ', '\n', '-', '--', '>', 'From ', '1.', 'ü', '日本'),
      fc.string({ unit: fc.constantFrom('a', 'b', '.'), maxLength: 100 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const text = pieces.join('');
        const flowed = flowText(text);
        expect(unflowed(flowed)).toBe(text.replace(/\s+$/gm, (end) => end.replace(/ /g, '')));
        for (const line of flowed.split('\n')) {
          const words = line.trim().replace(/^(?:-|--|\d+\.) /, '');
          if (line.length > 73) expect(words).not.toContain(' ');
        }
      }),
    );
  });

  it('takes linear time', () => {
    for (const piece of ['a', ' ', 'a ', '\n', `${'a'.repeat(100)} `, `${'a'.repeat(100)}\n`, '-- ', '> ']) {
      const text = piece.repeat(200_000 / piece.length);
      expect(flowText(text).length).toBeLessThanOrEqual(2 * text.length);
    }
  });
});
