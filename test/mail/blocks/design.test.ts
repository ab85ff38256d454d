import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { isRefusal } from '../../../src/core/refusal.ts';
import { parseInput } from '../../../src/http/validation/parse.ts';
import { type Block, type Design, designSchema } from '../../../src/mail/blocks/design.ts';
import { DESIGN } from './designs.ts';

const body = z.object({ design: designSchema });

/** The paths that the refusal of a design names; none: it is accepted. */
function faults(design: unknown): string[] {
  const result = parseInput(body, { design }, 'body');
  return isRefusal(result) ? (result.extras.details ?? []).map(({ field }) => field) : [];
}

/** The design with other values at a path. */
function changed(change: (design: Design & { theme: object }) => void): unknown {
  const copy = structuredClone(DESIGN);
  change(copy);
  return copy;
}

const withBlock = (block: unknown) => ({ ...DESIGN, blocks: [block] });
const button = (fields: object) =>
  withBlock({ id: 'a', type: 'button', text: 'Go', href: 'https://a.example/', ...fields });
const text = (nodes: unknown) =>
  withBlock({
    id: 'a',
    type: 'text',
    content: { type: 'doc', content: [{ type: 'paragraph', content: nodes }] },
  });

describe('a design', () => {
  it('with all kinds of blocks is accepted unchanged', () => {
    expect(faults(DESIGN)).toEqual([]);
    expect(designSchema.parse(DESIGN)).toEqual(DESIGN);
  });

  it.each([
    'https://shop.example/a?b=c&d=e#f',
    'HTTP://shop.example',
    'mailto:ann@shop.example?subject=Hello',
    '{{unsubscribe_url}}',
    '{{ customFields.url | https://shop.example/ }}',
    'https://shop.example/orders/{{order.number}}?plan={{plan|free}}',
  ])('may link to %s', (href) => {
    expect(faults(button({ href }))).toEqual([]);
  });

  it.each([
    'javascript:alert(1)',
    ' javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java\nscript:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'vbscript:x',
    'file:///etc/passwd',
    '//evil.example/',
    '/relative',
    'https://',
    'https:///x',
    'https://a.example/"onmouseover="x',
    'https://a.example/<b>',
    'https://a.example/ b',
    '{{{url}}}',
    '{{url|javascript:alert(1)}}',
    '{{url}}javascript:alert(1)',
    'https://a.example/{{x|" onclick="y}}',
    `https://a.example/${'x'.repeat(2000)}`,
    '',
  ])('may not link to %s', (href) => {
    expect(faults(button({ href }))).toEqual(['design.blocks[0].href']);
    expect(faults(text([{ type: 'text', text: 'a', marks: [{ type: 'link', attrs: { href } }] }]))).toEqual([
      'design.blocks[0].content.content[0].content[0].marks[0].attrs.href',
    ]);
  });

  it.each([
    '<script>alert(1)</script>',
    'a <b>bold</b> word',
    '<img src=x onerror=alert(1)>',
    '</td></table>',
    '<!-- hidden',
    '<br/>',
    'raw {{{html}}}',
    '{{name|<b>}}',
    '{{name|"}}',
    '{{name|upper}}',
    'line\nbreak',
    'nul \u0000',
    'half \ud800',
    'x'.repeat(5001),
  ])('may not contain the text %j', (content) => {
    expect(faults(text([{ type: 'text', text: content }]))).toEqual([
      'design.blocks[0].content.content[0].content[0].text',
    ]);
    if (content.length < 100) expect(faults(button({ text: content }))).toEqual(['design.blocks[0].text']);
  });

  it.each(['1 < 2 & 3 > 2', 'Ann <ann@shop.example>', "it's {{name|Ann's}}", '{braces}', '日本語 🎁'])(
    'may contain the text %j',
    (content) => {
      expect(faults(button({ text: content }))).toEqual([]);
    },
  );

  it.each<[string, string, (design: Design & { theme: object }) => void]>([
    ['another version', 'design.version', (d) => Object.assign(d, { version: 2 })],
    ['an unknown field', 'design.script', (d) => Object.assign(d, { script: 'x' })],
    ['a color by name', 'design.theme.accent', (d) => Object.assign(d.theme, { accent: 'red' })],
    ['a style in a color', 'design.theme.text', (d) => Object.assign(d.theme, { text: '#000000;x:y' })],
    ['a wide container', 'design.theme.width', (d) => Object.assign(d.theme, { width: 701 })],
    ['a narrow container', 'design.theme.width', (d) => Object.assign(d.theme, { width: 479 })],
    ['a font of its own', 'design.theme.font', (d) => Object.assign(d.theme, { font: 'x;y' })],
    ['no blocks', 'design.blocks', (d) => Object.assign(d, { blocks: [] })],
    ['a language with markup', 'design.language', (d) => Object.assign(d, { language: 'en" x="' })],
    ['a preheader with markup', 'design.preheader', (d) => Object.assign(d, { preheader: '</div>' })],
  ])('with %s is refused', (_, field, change) => {
    expect(faults(changed(change))).toEqual([field]);
  });

  it.each<[string, string, unknown]>([
    ['of an unknown type', 'design.blocks[0].type', { id: 'a', type: 'html', html: '<b>' }],
    ['without an id', 'design.blocks[0].id', { type: 'spacer', height: 10 }],
    ['with markup in its id', 'design.blocks[0].id', { id: '"><b>', type: 'spacer', height: 10 }],
    ['that is too high', 'design.blocks[0].height', { id: 'a', type: 'spacer', height: 121 }],
    ['of a part of a pixel', 'design.blocks[0].height', { id: 'a', type: 'spacer', height: 10.5 }],
    [
      'with the key __proto__',
      'design.blocks[0].__proto__',
      JSON.parse('{"id":"a","type":"spacer","height":10,"__proto__":{"x":1}}'),
    ],
    [
      'with the key constructor',
      'design.blocks[0].constructor',
      { id: 'a', type: 'spacer', height: 10, constructor: 1 },
    ],
    [
      'with a style',
      'design.blocks[0].style',
      { id: 'a', type: 'button', text: 'a', href: 'https://a.example', style: 'x' },
    ],
    [
      'with columns in columns',
      'design.blocks[0].columns[0].blocks[0].type',
      {
        id: 'a',
        type: 'columns',
        columns: [{ blocks: [{ id: 'b', type: 'columns', columns: [] }] }, { blocks: [] }],
      },
    ],
    ['with one column', 'design.blocks[0].columns', { id: 'a', type: 'columns', columns: [{ blocks: [] }] }],
    [
      'with the color of a variable',
      'design.blocks[0].background',
      { id: 'a', type: 'divider', background: '{{c}}' },
    ],
    [
      'with a variable that is no name',
      'design.blocks[0].content[0].attrs.name',
      { id: 'a', type: 'heading', level: 1, content: [{ type: 'variable', attrs: { name: 'a}}<b>' } }] },
    ],
    [
      'with a default that ends the variable',
      'design.blocks[0].content[0].attrs.default',
      {
        id: 'a',
        type: 'heading',
        level: 1,
        content: [{ type: 'variable', attrs: { name: 'a', default: '}}<b>' } }],
      },
    ],
    [
      'with an image in the text',
      'design.blocks[0].content[0].type',
      { id: 'a', type: 'heading', level: 1, content: [{ type: 'image', attrs: { src: 'x' } }] },
    ],
  ])('with a block %s is refused', (_, field, block) => {
    expect(faults(withBlock(block))).toEqual([field]);
  });

  it('has lists of two levels at most', () => {
    let content: object = { type: 'paragraph' };
    for (let level = 0; level < 60; level++)
      content = { type: 'bulletList', content: [{ type: 'listItem', content: [content] }] };
    const design = withBlock({ id: 'a', type: 'text', content: { type: 'doc', content: [content] } });
    expect(faults(design)[0]).toMatch(/^design\.blocks\[0\]\.content\.content\[0\]/);
  });

  it('has no two blocks with one id, also in columns', () => {
    const [spacer, other]: Block[] = [
      { id: 'a', type: 'spacer', height: 10 },
      {
        id: 'b',
        type: 'columns',
        columns: [{ blocks: [] }, { blocks: [{ id: 'a', type: 'spacer', height: 10 }] }],
      },
    ];
    expect(faults({ ...DESIGN, blocks: [spacer, spacer] })).toEqual(['design.blocks[1].id']);
    expect(faults({ ...DESIGN, blocks: [spacer, other] })).toEqual([
      'design.blocks[1].columns[1].blocks[0].id',
    ]);
  });

  it('has one footer', () => {
    const footers = ['a', 'b'].map((id) => ({ id, type: 'footer' }));
    expect(faults({ ...DESIGN, blocks: footers })).toEqual(['design.blocks[1]']);
  });

  it('has a limited number of blocks, with those in columns, and of characters', () => {
    const spacers = (count: number, prefix: string) =>
      Array.from({ length: count }, (_, n) => ({ id: `${prefix}${n}`, type: 'spacer', height: 10 }));
    expect(faults({ ...DESIGN, blocks: spacers(150, 'a') })).toEqual([]);
    expect(faults({ ...DESIGN, blocks: spacers(151, 'a') })).toEqual(['design.blocks']);
    const columns = Array.from({ length: 10 }, (_, n) => ({
      id: `c${n}`,
      type: 'columns',
      columns: [{ blocks: spacers(10, `l${n}-`) }, { blocks: spacers(10, `r${n}-`) }],
    }));
    expect(faults({ ...DESIGN, blocks: columns })).toEqual(['design.blocks']);
    const long: Design['blocks'] = Array.from({ length: 21 }, (_, n) => ({
      id: `t${n}`,
      type: 'heading',
      level: 2,
      content: [{ type: 'text', text: 'x'.repeat(5000) }],
    }));
    expect(faults({ ...DESIGN, blocks: long })).toEqual(['design.blocks']);
  });

  it.each([null, 1, 'design', [], { blocks: {} }])('that is %j is refused', (design) => {
    expect(faults(design)[0]).toMatch(/^design/);
  });
});
