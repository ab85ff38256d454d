import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { QuoteType, Tokenizer } from 'htmlparser2';
import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../../src/core/concurrency/slices.ts';
import { type Span, scanHtmlInSteps, type TokenHandler } from '../../../src/mail/html/tokens.ts';

const REQUESTED = new Set(['href', 'title', 'hidden', 'style']);

/** The tokens that a handler receives; pieces of a run of text are joined. */
function recorder() {
  const tokens: unknown[] = [];
  let text = '';
  const add = (...token: unknown[]) => {
    if (text !== '') tokens.push(['text', text]);
    text = '';
    tokens.push(token);
  };
  const handler = (html: string): TokenHandler => ({
    text: (start, end) => {
      text += html.slice(start, end);
    },
    entity: (codePoint, end) => {
      add('entity', end);
      text += String.fromCodePoint(codePoint);
    },
    startTag: ({ name, attributes, spans }, start) => add('tag', name, start, [...attributes], [...spans]),
    endTag: (name, start) => add('end', name, start),
    comment: (start, end) => add('comment', start, end),
  });
  return { handler, tokens: () => [...tokens, text] };
}

function scanned(html: string): unknown[] {
  const { handler, tokens } = recorder();
  withoutPause(scanHtmlInSteps(html, handler(html), REQUESTED));
  return tokens();
}

/** The tokens of the tokenizer alone, which reads the HTML in one piece. */
function tokenized(html: string): unknown[] {
  const { handler, tokens } = recorder();
  const to = handler(html);
  let tag = { name: '', start: 0, attributes: new Map<string, string>(), spans: new Map<string, Span>() };
  let name = '';
  let nameEnd = 0;
  let value = '';
  const lowerCased = (start: number, end: number) => html.slice(start, end).toLowerCase();
  const spanOf = (quote: QuoteType, end: number): Span => {
    const [before = ''] = /^[ \t\n\f\r]*=[ \t\n\f\r]*["']?/.exec(html.slice(nameEnd)) ?? [];
    const valueEnd = quote >= QuoteType.Single ? end - 1 : end;
    return { start: nameEnd + before.length - tag.start, end: valueEnd - tag.start };
  };
  const endTag = () => to.startTag(tag, tag.start);
  const ignore = () => undefined;
  const tokenizer = new Tokenizer(
    {},
    {
      onopentagname: (start, end) => {
        tag = { name: lowerCased(start, end), start: start - 1, attributes: new Map(), spans: new Map() };
      },
      onattribname: (start, end) => {
        name = lowerCased(start, end);
        nameEnd = end;
        value = '';
      },
      onattribdata: (start, end) => {
        value += html.slice(start, end);
      },
      onattribentity: (codePoint) => {
        value += String.fromCodePoint(codePoint);
      },
      onattribend: (quote, end) => {
        if (!REQUESTED.has(name) || tag.attributes.has(name)) return;
        tag.attributes.set(name, value);
        if (quote !== QuoteType.NoValue) tag.spans.set(name, spanOf(quote, end));
      },
      onopentagend: endTag,
      onselfclosingtag: endTag,
      onclosetag: (start, end) => to.endTag(lowerCased(start, end), start - 2),
      ontext: (start, end) => {
        // Reported for an unfinished tag at the end of the HTML, which is not text.
        if (start >= 0) to.text(start, end);
      },
      ontextentity: to.entity,
      oncomment: (start, end, endOffset) => to.comment(start, end - endOffset),
      oncdata: ignore,
      ondeclaration: ignore,
      onprocessinginstruction: ignore,
      onend: ignore,
    },
  );
  tokenizer.write(html);
  tokenizer.end();
  return tokens();
}

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

describe('scanned HTML', () => {
  it('has the tokens of the tokenizer, in any sequence of its parts', () => {
    const html = fc.array(fc.constantFrom(...PARTS), { maxLength: 12 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(html, (source) => {
        expect(scanned(source)).toEqual(tokenized(source));
      }),
      { numRuns: 3_000 },
    );
  });

  it('has the tokens of the tokenizer, for any characters', () => {
    const html = fc
      .array(fc.constantFrom(...CHARACTERS), { maxLength: 40 })
      .map((characters) => characters.join(''));
    fc.assert(
      fc.property(html, (source) => {
        expect(scanned(source)).toEqual(tokenized(source));
      }),
      { numRuns: 3_000 },
    );
  });

  it.each(['-', '- ', 'x'])('has the tokens of the tokenizer, for a long comment of %j', (piece) => {
    const comment = `<!--${piece.repeat(70_000)}`;
    for (const source of [comment, `a${comment}--><b>c</b>`])
      expect(scanned(source)).toEqual(tokenized(source));
  });

  it('has the tokens of the tokenizer, for real messages', () => {
    const folders = ['../golden/', '../newsletter/'].map((folder) => new URL(folder, import.meta.url));
    const files = folders.flatMap((folder) =>
      readdirSync(folder)
        .filter((name) => name.endsWith('.html'))
        .map((name) => readFileSync(new URL(name, folder), 'utf8')),
    );
    expect(files.length).toBeGreaterThan(3);
    for (const source of files) expect(scanned(source)).toEqual(tokenized(source));
  });
});
