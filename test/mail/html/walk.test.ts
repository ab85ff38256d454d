import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../../src/core/concurrency/slices.ts';
import { type HtmlVisitor, walkHtml, walkHtmlInSteps } from '../../../src/mail/html/walk.ts';

/** Records the calls of a visitor; pieces of a run of text are joined. */
function recorder() {
  const calls: unknown[] = [];
  let text = '';
  const add = (...call: unknown[]) => {
    if (text !== '') calls.push(['text', text]);
    text = '';
    calls.push(call);
  };
  const visitor: HtmlVisitor = {
    open: (name, attributes, spans) => add('open', name, [...attributes], [...spans]),
    close: (name, start) => add('close', name, start),
    comment: (span) => add('comment', span),
    text: (piece) => {
      text += piece;
    },
  };
  return { visitor, calls: () => [...calls, text] };
}

describe('HTML that is walked in steps', () => {
  it('results in the same calls as in one step, wherever a step ends', () => {
    const parts = fc.constantFrom(
      '<a href="x&amp;y">',
      '</a>',
      "<p title='",
      "'>",
      '<!--',
      '-->',
      '<!--[if mso]>',
      '<style>',
      '</style>',
      '&amp;',
      '&#65;',
      '&notit;',
      '&',
      '<',
      '>',
      '<title>',
      '</title>',
      '<plaintext>',
      '<b hidden>',
      ' ',
      'é€𝄞',
      'text',
    );
    // A step ends after 16 Ki characters: the parts are around that position.
    const html = fc
      .tuple(fc.integer({ min: 0, max: 30 }), fc.array(parts, { maxLength: 20 }))
      .map(([short, some]) => `${'x'.repeat(16 * 1024 - short)}${some.join('')}yy<i>z`);
    const requested = new Set(['href', 'title', 'hidden']);
    fc.assert(
      fc.property(html, (source) => {
        const inOneStep = recorder();
        const inSteps = recorder();
        walkHtml(source, inOneStep.visitor, requested);
        withoutPause(walkHtmlInSteps(source, inSteps.visitor, requested));
        expect(inSteps.calls()).toEqual(inOneStep.calls());
      }),
      { numRuns: 300 },
    );
  });

  it('passes a run of text as one piece', () => {
    const pieces: string[] = [];
    walkHtml('<<<< a<b>&lt;<<', { text: (piece) => pieces.push(piece) });
    expect(pieces).toEqual(['<<<< a', '<', '<<']);
  });

  it('passes a long run of text in pieces, and cuts neither line ends nor characters', () => {
    const run = 'x🚀\r\n'.repeat(100_000);
    for (const start of ['', 'y', 'yy', 'yyy', 'yyyy']) {
      const pieces: string[] = [];
      walkHtml(`${start}${run}`, { text: (piece) => pieces.push(piece) });
      expect(pieces.join('') === `${start}${run}`).toBe(true);
      expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(64 * 1024);
      expect(pieces.filter((piece) => !piece.isWellFormed() || piece.startsWith('\n'))).toEqual([]);
    }
  });
});
