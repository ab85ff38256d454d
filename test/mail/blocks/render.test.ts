import { describe, expect, it } from 'vitest';
import type { Block, BlockOf, Design } from '../../../src/mail/blocks/design.ts';
import { renderDesign } from '../../../src/mail/blocks/render.ts';
import { hidingVariable, missingCompliance } from '../../../src/mail/compliance.ts';
import { textFromHtml } from '../../../src/mail/html/text-part.ts';
import { parseTemplate, renderTemplate } from '../../../src/mail/template.ts';
import { DESIGN } from './designs.ts';

const withBlocks = (...blocks: Block[]): Design => ({ ...DESIGN, blocks });
const paragraph = (text: string): BlockOf<'text'> => ({
  id: 'a',
  type: 'text',
  content: { type: 'doc', content: [{ type: 'paragraph', content: [{ type: 'text', text }] }] },
});
/** The HTML as clients other than Outlook for Windows read it. */
const withoutComments = (html: string) => html.replaceAll(/<!--[\s\S]*?-->/g, '');
/** The HTML as Outlook for Windows reads it. */
const inOutlook = (html: string) =>
  html
    .replaceAll(/<!--\[if !mso\]><!-->[\s\S]*?<!--<!\[endif\]-->/g, '')
    .replaceAll(/<!--\[if mso\]>([\s\S]*?)<!\[endif\]-->/g, '$1');

describe('the HTML of a design', () => {
  it('is the same each time', () => {
    expect(renderDesign(DESIGN)).toBe(renderDesign(structuredClone(DESIGN)));
  });

  it.each([
    ['with a footer', DESIGN],
    ['without a footer', withBlocks(paragraph('Hello'))],
    ['with a footer alone', withBlocks({ id: 'a', type: 'footer' })],
    ['with a footer first', withBlocks({ id: 'f', type: 'footer' }, paragraph('Hello'))],
    ['with a dark footer', withBlocks({ id: 'a', type: 'footer', background: '#111111' })],
    [
      'with a footer of the color of its text',
      withBlocks({ id: 'a', type: 'footer', background: '#595959' }),
    ],
  ])('shows the address and the link to unsubscribe %s', (_, design) => {
    const html = renderDesign(design);
    expect(missingCompliance(html)).toEqual([]);
    expect(hidingVariable(parseTemplate(html))).toBeNull();
    expect(html.match(/\{\{company_address_html\}\}/g)).toHaveLength(1);
  });

  it('has its variables, with their defaults, and nothing else in braces', () => {
    const { names, leftovers, foreign } = parseTemplate(renderDesign(DESIGN));
    expect([leftovers, foreign]).toEqual([[], []]);
    expect(names).toEqual([
      'firstName',
      'plan',
      'accountUrl',
      'company_address_html',
      'unsubscribe_email_html',
      'report_abuse_email_html',
    ]);
  });

  it('shows texts as they are', () => {
    const html = renderDesign(withBlocks(paragraph('1 < 2 & "x" \'y\' &amp; {{name|A & B}}')));
    expect(html).toContain('1 &lt; 2 &amp; &quot;x&quot; &#39;y&#39; &amp;amp; {{name|A & B}}</p>');
    const rendered = renderTemplate(
      parseTemplate(html),
      'html',
      { name: '<b>' },
      {
        company_address_html: 'c',
        unsubscribe_email_html: 'u',
      },
    );
    expect(rendered).toContain('&amp;amp; &lt;b&gt;</p>');
  });

  it('does not join braces and backslashes of texts with variables', () => {
    const html = renderDesign(
      withBlocks({
        id: 'a',
        type: 'heading',
        level: 1,
        content: [
          { type: 'text', text: 'a{' },
          { type: 'variable', attrs: { name: 'name' } },
          { type: 'text', text: '}b\\' },
          { type: 'variable', attrs: { name: 'name' } },
        ],
      }),
    );
    const { slots } = parseTemplate(html);
    expect(slots.filter(({ name }) => name === 'name').map(({ raw }) => raw)).toEqual([false, false]);
    const shown = renderTemplate(
      parseTemplate(html),
      'html',
      { name: '<i>' },
      {
        company_address_html: 'c',
        unsubscribe_email_html: 'u',
      },
    );
    expect(shown).toContain('a&#123;&lt;i&gt;}b&#92;&lt;i&gt;</h1>');
  });

  it('has a table of a fixed width for Outlook, and a fluid one for others', () => {
    const html = renderDesign({ ...DESIGN, theme: { ...DESIGN.theme, width: 640 } });
    expect(inOutlook(html)).toContain('cellspacing="0" width="640"');
    expect(withoutComments(html)).toContain('width:100%;max-width:640px');
    expect(withoutComments(html)).not.toContain('width="640"');
  });

  it('has columns that Outlook shows as cells, and narrow screens one below the other', () => {
    const html = renderDesign(DESIGN);
    expect(inOutlook(html).match(/<td width="280" valign="top">/g)).toHaveLength(2);
    expect(html).toMatch(/<div class="col" style="display:inline-block;width:100%;max-width:280px/);
    expect(html).toMatch(/@media only screen and \(max-width:599px\)\{\.col\{display:block!important/);
  });

  it.each<[2 | 3, '1:2' | '2:1' | undefined, number[]]>([
    [2, undefined, [280, 280]],
    [2, '1:2', [186, 374]],
    [2, '2:1', [374, 186]],
    [3, undefined, [186, 186, 186]],
  ])('divides %d columns by %s', (count, split, widths) => {
    const html = renderDesign(
      withBlocks({
        id: 'a',
        type: 'columns',
        ...(split === undefined ? {} : { split }),
        columns: Array.from({ length: count }, () => ({ blocks: [] })),
      }),
    );
    expect([...html.matchAll(/<td width="(\d+)" valign/g)].map(([, width]) => Number(width))).toEqual(widths);
  });

  it('has buttons in VML for Outlook, as links for others, with the same address and text', () => {
    const html = renderDesign(
      withBlocks({ id: 'a', type: 'button', text: 'Pay & go', href: 'https://a.example/?a=1&b=2' }),
    );
    expect(inOutlook(html)).toMatch(
      /<v:roundrect [^>]*href="https:\/\/a\.example\/\?a=1&amp;b=2"[^>]*width:\d+px[^>]*fillcolor="#2f5fd0">.*Pay &amp; go.*<\/v:roundrect>/,
    );
    expect(inOutlook(html)).not.toContain('class="btn"');
    expect(withoutComments(html)).toMatch(
      /<a href="https:\/\/a\.example\/\?a=1&amp;b=2" class="co\d+" [^>]*>Pay &amp; go<\/a>/,
    );
    expect(withoutComments(html)).not.toContain('roundrect');
  });

  it('has columns that stay next to each other where the design says so', () => {
    const html = renderDesign(
      withBlocks({
        id: 'a',
        type: 'columns',
        stack: false,
        split: '2:1',
        columns: [{ blocks: [paragraph('Item')] }, { blocks: [{ id: 'b', type: 'divider' }] }],
      }),
    );
    expect(withoutComments(html)).not.toContain('class="col"');
    expect([...html.matchAll(/<td width="(\d+)%" valign="top"/g)].map(([, share]) => share)).toEqual([
      '67',
      '33',
    ]);
  });

  it('scales images to the space that there is', () => {
    const image: Block = {
      id: 'a',
      type: 'image',
      src: 'https://a.example/a.png',
      alt: 'A',
      width: 1072,
      height: 400,
    };
    expect(renderDesign(withBlocks(image))).toContain('alt="A" width="536" height="200"');
    expect(renderDesign(withBlocks({ ...image, width: 100, height: 50 }))).toContain(
      'width="100" height="50"',
    );
  });

  it('has the direction of its language', () => {
    const html = renderDesign({ ...withBlocks(paragraph('مرحبا')), language: 'ar' });
    expect(html).toContain('<html lang="ar" dir="rtl"');
    expect(html).toMatch(/<p [^>]*text-align:right/);
    expect(inOutlook(html)).toContain('<table role="presentation" dir="rtl" align="center"');
  });

  it('hides its preheader', () => {
    const html = renderDesign(DESIGN);
    expect(html).toMatch(
      /<div style="display:none;[^"]*mso-hide:all"><span>What is new, \{\{firstName\|there\}\}/,
    );
    expect(textFromHtml(html)).not.toContain('What is new');
  });

  it('has readable colors in dark mode, for each class that it uses', () => {
    const html = renderDesign(DESIGN);
    const dark = /@media \(prefers-color-scheme:dark\)\{(.*?)\}<\/style>/.exec(html)?.[1] ?? '';
    const used = new Set(
      [...html.matchAll(/class="([^"]+)"/g)].flatMap(([, names = '']) => names.split(' ')),
    );
    const colors = [...used].filter((name) => /^(?:co|ba|bo)\d+$/.test(name));
    expect(colors.length).toBeGreaterThan(5);
    for (const name of colors) expect(dark).toContain(`.${name}{`);
    for (const name of colors) expect(html).toMatch(new RegExp(`\\[data-ogs[cb]\\] \\.${name}\\{`));
  });

  it('becomes a text with its headings, lists, links and the footer', () => {
    expect(textFromHtml(renderDesign(DESIGN))).toBe(
      [
        'Welcome, {{firstName|there}}',
        '',
        'Tom & Jerry know that 1 < 2, "quoted" bold',
        'a link <https://shop.example/?a=1&b={{plan|free}}> in color',
        '',
        '- First',
        '  3. Inside',
        '',
        'Open your account <{{accountUrl|https://shop.example/}}>',
        '',
        'A photo of "the shop" <https://shop.example/>',
        '',
        'Left',
        '',
        'Read <https://shop.example/left>',
        '',
        'Right',
        '',
        'Instagram <https://instagram.com/shop> · Write to us <shop@shop.example>',
        '',
        'You receive this because you have an account.',
        '',
        '{{company_address_html}} {{unsubscribe_email_html}} {{report_abuse_email_html}}',
      ].join('\n'),
    );
  });

  it('has no CSS on which the layout depends and which clients lack', () => {
    const html = renderDesign(DESIGN);
    // Facts of caniemail.com: Outlook for Windows and Gmail lack these.
    for (const property of [
      'display:flex',
      'display:grid',
      'position:',
      'float:',
      'calc(',
      'var(--',
      'url(',
      '@import',
    ])
      expect(html).not.toContain(property);
    // Without cellspacing and a role, Outlook adds gaps and screen readers read the tables.
    for (const [tag] of html.matchAll(/<table\b[^>]*>/g))
      expect(tag).toMatch(/^<table role="presentation".* border="0" cellpadding="0" cellspacing="0"/);
    for (const [tag] of html.matchAll(/<img\b[^>]*>/g))
      expect(tag).toMatch(/ alt="[^"]*" width="\d+" height="\d+"/);
    // Outlook reads a background of a cell from the attribute.
    for (const [tag] of html.matchAll(/<t[dr]\b[^>]*background-color[^>]*>/g))
      expect(tag).toContain('bgcolor="#');
    // Outlook adds its own line height without the rule.
    for (const [, style = ''] of html.matchAll(
      /<(?:p|h[1-3]|ul|ol|td)\b[^>]*style="([^"]*line-height[^"]*)"/g,
    ))
      expect(style).toContain('mso-line-height-rule:exactly');
    // Gmail ignores a style sheet of more than 8192 characters.
    for (const [sheet] of html.matchAll(/<style>[\s\S]*?<\/style>/g)) expect(sheet.length).toBeLessThan(8192);
  });

  it('has balanced comments of conditions, as all of a mail would be hidden otherwise', () => {
    const html = renderDesign(DESIGN);
    expect(html.match(/<!--\[if mso\]>/g)?.length).toBe(html.match(/(?<!-)<!\[endif\]-->/g)?.length);
    expect(withoutComments(html)).not.toMatch(/<!\[|-->/);
    for (const read of [withoutComments(html), inOutlook(html)])
      for (const tag of ['table', 'tr', 'td', 'div', 'a'])
        expect([tag, read.match(new RegExp(`<${tag}\\b`, 'g'))?.length]).toEqual([
          tag,
          read.match(new RegExp(`</${tag}>`, 'g'))?.length,
        ]);
  });
});
