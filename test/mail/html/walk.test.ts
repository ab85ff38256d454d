import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { walkHtml } from '../../../src/mail/html/walk.ts';

/**
 * The calls that a visitor receives; pieces of a run of text are joined. Of the run of `x` before the HTML one is left, and
 * offsets are counted from its end.
 */
function callsFor(before: number, html: string, requested: ReadonlySet<string> = REQUESTED): unknown[] {
  const calls: unknown[] = [];
  let text = '';
  const add = (...call: unknown[]) => {
    calls.push(text.replace(/^xx+/, 'x'), call);
    text = '';
  };
  walkHtml(
    `${'x'.repeat(before)}${html}`,
    {
      open: (name, attributes, spans, start) =>
        add('open', name, start - before, [...attributes], [...spans]),
      close: (name, start) => add('close', name, start - before),
      comment: ({ start, end }) => add('comment', start - before, end - before),
      text: (piece) => {
        text += piece;
      },
    },
    requested,
  );
  add('end');
  return calls;
}

const REQUESTED = new Set(['href', 'title', 'hidden', 'style']);

const PARTS = [
  '<a href="x&amp;y">',
  '<a href=x&amp;y>',
  "<A HREF = 'x' Title>",
  '<a href="1"href="2"/>',
  '<a href>',
  '<a href=>',
  '<a href="',
  '<p =x>',
  '<p "x">',
  '<p a<b>',
  '<br/>',
  '<br / title="t">',
  '<td style="a:b" hidden>',
  '<td style="a>b">',
  '<td style="',
  '<td style=a"b>',
  '<x-y:z href="&notit;&lt">',
  '<1>',
  '</a>',
  '</a href="x">',
  '</a\n>',
  '</ a>',
  '</>',
  '</A',
  '<!--',
  '-->',
  '--!>',
  '<!-->',
  '<!--->',
  '<!-- a -- b --->',
  '<!--[if mso]>',
  '<![endif]-->',
  '<![if !mso]>',
  '<![CDATA[',
  ']]>',
  '<!doctype html>',
  '<!DOCTYPE>',
  '<!d>',
  '<?xml ?>',
  '<style>',
  '<style href="x"/>',
  '</style>',
  '<styles>',
  '<title>',
  '</title>',
  '<script>',
  '</script x>',
  '<plaintext>',
  '&amp;',
  '&AMP',
  '&#65;',
  '&#x41;',
  '&#x80;',
  '&#0;',
  '&#1234567;',
  '&notit;',
  '&NotEqualTilde;',
  '&nbsp',
  '&unknown;',
  '&',
  '& ',
  '&#',
  '&;',
  '<',
  '< ',
  '<<',
  '>',
  '"',
  "'",
  '=',
  ' ',
  '\n',
  'é€𝄞',
  'text',
  '\0',
];

/** Characters at which the state of a tokenizer changes, some more often than others. */
const CHARACTERS = Array.from('<<<>>>&&;#x"\'==//!!--- \nabsthref');

/** HTML of parts, and of single characters. */
const SOURCES = fc.oneof(
  fc.array(fc.constantFrom(...PARTS), { maxLength: 12 }).map((parts) => parts.join('')),
  fc.array(fc.constantFrom(...CHARACTERS), { maxLength: 40 }).map((characters) => characters.join('')),
);

describe('HTML whose tags were read before', () => {
  it('results in the same calls as HTML that is read for the first time', () => {
    fc.assert(
      fc.property(SOURCES, (source) => {
        // What was read is known by the set of the attributes.
        expect(callsFor(0, source)).toEqual(callsFor(0, source, new Set(REQUESTED)));
      }),
      { numRuns: 3_000 },
    );
  });

  it('passes the attributes that each caller requests', () => {
    const html = '<a href="x" title="y"><a href="x" title="y">';
    const opened = (requested: ReadonlySet<string>) =>
      callsFor(0, html, requested).filter((call) => call !== '');
    const [href, title] = [new Set(['href']), new Set(['title'])];
    for (let n = 0; n < 2; n++) {
      expect(opened(href)).toEqual([
        ['open', 'a', 0, [['href', 'x']], [['href', { start: 9, end: 10 }]]],
        ['open', 'a', 22, [['href', 'x']], [['href', { start: 9, end: 10 }]]],
        ['end'],
      ]);
      expect(opened(title)).toEqual([
        ['open', 'a', 0, [['title', 'y']], [['title', { start: 19, end: 20 }]]],
        ['open', 'a', 22, [['title', 'y']], [['title', { start: 19, end: 20 }]]],
        ['end'],
      ]);
    }
  });
});

describe('HTML that is walked in steps', () => {
  it('results in the same calls wherever a step ends', () => {
    // A step ends after 16 Ki characters: the parts are around that position.
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 60 }), SOURCES, (short, source) => {
        expect(callsFor(16 * 1024 - short, `${source}yy<i>z`)).toEqual(callsFor(1, `${source}yy<i>z`));
      }),
      { numRuns: 1_000 },
    );
  });

  it('has the values of attributes at their spans', () => {
    fc.assert(
      fc.property(SOURCES, (source) => {
        walkHtml(
          source,
          {
            open: (_, attributes, spans, start) => {
              for (const [name, span] of spans) {
                const written = source.slice(start + span.start, start + span.end);
                if (!written.includes('&')) expect(written).toBe(attributes.get(name));
              }
            },
          },
          REQUESTED,
        );
      }),
      { numRuns: 3_000 },
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
