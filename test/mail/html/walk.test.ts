import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../../src/core/slices.ts';
import { type HtmlVisitor, walkHtml, walkingHtml } from '../../../src/mail/html/walk.ts';

/** What a visitor is called with; runs of text joined, as they may come in pieces. */
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

describe('html that is walked in steps', () => {
  it('is seen as when it is walked at once, wherever a step ends', () => {
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
    // A step ends behind 16 Ki characters: the parts lie around that place.
    const html = fc
      .tuple(fc.integer({ min: 0, max: 30 }), fc.array(parts, { maxLength: 20 }))
      .map(([short, some]) => `${'x'.repeat(16 * 1024 - short)}${some.join('')}${'y'.repeat(16 * 1024)}<i>z`);
    const wanted = new Set(['href', 'title', 'hidden']);
    fc.assert(
      fc.property(html, (source) => {
        const atOnce = recorder();
        const inSteps = recorder();
        walkHtml(source, atOnce.visitor, wanted);
        withoutPause(walkingHtml(source, inSteps.visitor, wanted));
        expect(inSteps.calls()).toEqual(atOnce.calls());
      }),
      { numRuns: 500 },
    );
  });

  it('gives a run of text as one piece', () => {
    const pieces: string[] = [];
    walkHtml('<<<< a<b>&lt;<<', { text: (piece) => pieces.push(piece) });
    expect(pieces).toEqual(['<<<< a', '<', '<<']);
  });
});
