import { DOMParser as ProseParser } from 'prosemirror-model';
import { describe, expect, it } from 'vitest';
import { reduceHtml } from '../../../src/console/parts/block-editor/rich-text/paste.ts';
import {
  LINE_CODEC,
  RICH,
  RICH_CODEC,
  splitVariables,
} from '../../../src/console/parts/block-editor/rich-text/schema.ts';
import { safeAddress } from '../../../src/console/parts/block-editor/safe-address.ts';

describe('pasted HTML', () => {
  it('keeps paragraphs, lists, links and marks of a page', () => {
    expect(
      reduceHtml(
        '<h2>Title</h2><p class="x">One <b>bold</b> and <i>italic</i>,<br>two</p><ul><li>a</li><li><p>b</p></li></ul><a href="https://example.com/?a=1&amp;b=2">link</a>',
      ),
    ).toBe(
      '<p>Title</p><p>One <strong>bold</strong> and <em>italic</em>,<br>two</p><ul><li><p>a</p></li><li><p>b</p></li></ul><p><a href="https://example.com/?a=1&amp;b=2">link</a></p>',
    );
  });

  it('reads the styles of Google Docs, whose outer element is not bold', () => {
    expect(
      reduceHtml(
        '<meta charset="utf-8"><b style="font-weight:normal;" id="docs-internal-guid-1"><p dir="ltr" style="line-height:1.38"><span style="font-size:11pt;font-weight:700">Bold</span><span style="font-weight:400;font-style:italic"> italic</span></p><ul style="margin:0"><li dir="ltr"><p><span style="text-decoration:underline">Item</span></p></li></ul></b>',
      ),
    ).toBe('<p><strong>Bold</strong><em> italic</em></p><ul><li><p><u>Item</u></p></li></ul>');
  });

  it('makes lists of the paragraphs of Word, without its bullets', () => {
    const item = (list: string, bullet: string, text: string) =>
      `<p class=MsoListParagraph style='margin-left:36pt;mso-list:${list} level1 lfo1'><![if !supportLists]><span style='mso-list:Ignore'>${bullet}<span style='font:7.0pt "Times New Roman"'>&nbsp;&nbsp; </span></span><![endif]>${text}<o:p></o:p></p>`;
    expect(
      reduceHtml(
        `<html xmlns:o="urn:schemas-microsoft-com:office:office"><head><style>p.MsoNormal {margin:0}</style></head><body><!--StartFragment--><p class=MsoNormal><b style='mso-bidi-font-weight:normal'>Hello</b></p>${item('l0', '·', 'One')}${item('l0', '·', 'Two')}${item('l1', '1.', 'First')}<!--EndFragment--></body></html>`,
      ),
    ).toBe(
      '<p><strong>Hello</strong></p><ul><li><p>One</p></li><li><p>Two</p></li></ul><ol><li><p>First</p></li></ol>',
    );
  });

  it('drops scripts, images, styles and hidden text', () => {
    expect(
      reduceHtml(
        '<script>alert(1)</script><style>p{}</style><p onclick="alert(1)" style="color:red">Text<img src=x onerror="alert(1)"><span style="display:none">hidden</span></p><object data="a.swf">object</object>',
      ),
    ).toBe('<p>Text</p>');
    expect(reduceHtml('&lt;img src=x onerror=alert(1)&gt;')).toBe(
      '<p>&lt;img src=x onerror=alert(1)&gt;</p>',
    );
  });

  it('has no link to a script', () => {
    const root = document.createElement('div');
    root.innerHTML = reduceHtml(
      '<p><a href="javascript:alert(1)">a</a> <a href="https://example.com">b</a></p>',
    );
    const doc = ProseParser.fromSchema(RICH).parse(root);
    expect(RICH_CODEC.write(doc)).toEqual({
      type: 'doc',
      content: [
        {
          type: 'paragraph',
          content: [
            { type: 'text', text: 'a ' },
            { type: 'text', text: 'b', marks: [{ type: 'link', attrs: { href: 'https://example.com' } }] },
          ],
        },
      ],
    });
  });
});

describe('the text of a block', () => {
  it('is the same after it was shown', () => {
    const text = {
      type: 'doc' as const,
      content: [
        {
          type: 'paragraph' as const,
          content: [
            { type: 'text' as const, text: 'Hello ', marks: [{ type: 'bold' as const }] },
            { type: 'variable' as const, attrs: { name: 'firstName', default: 'there' } },
            { type: 'hardBreak' as const },
          ],
        },
        {
          type: 'bulletList' as const,
          content: [{ type: 'listItem' as const, content: [{ type: 'paragraph' as const }] }],
        },
      ],
    };
    expect(RICH_CODEC.write(RICH_CODEC.read(text))).toEqual(text);
    expect(LINE_CODEC.write(LINE_CODEC.read('Hi {{firstName|there}}!'))).toBe('Hi {{firstName|there}}!');
  });

  it('has lists in two levels at most, as the format', () => {
    const list = (inner: unknown): unknown => ({
      type: 'bulletList',
      content: [{ type: 'listItem', content: [{ type: 'paragraph' }, ...(inner === null ? [] : [inner])] }],
    });
    const doc = RICH.nodeFromJSON({ type: 'doc', content: [list(list(list(null)))] });
    expect(RICH_CODEC.write(doc).content).toEqual([
      {
        type: 'bulletList',
        content: [
          {
            type: 'listItem',
            content: [
              { type: 'paragraph' },
              {
                type: 'bulletList',
                content: [{ type: 'listItem', content: [{ type: 'paragraph' }, { type: 'paragraph' }] }],
              },
            ],
          },
        ],
      },
    ]);
  });

  it('has variables with defaults that the format accepts', () => {
    expect(splitVariables('a {{ b.c | "d" }} {{no good}}')).toEqual([
      'a ',
      { name: 'b.c', fallback: 'd' },
      ' {{no good}}',
    ]);
  });
});

it.each([
  ['https://example.com/a?b=c#d', 'https://example.com/a?b=c#d'],
  [' example.com/a ', 'https://example.com/a'],
  ['ann@example.com', 'mailto:ann@example.com'],
  ['{{unsubscribe_url}}', '{{unsubscribe_url}}'],
  ['https://example.com/{{id|1}}', 'https://example.com/{{id|1}}'],
  ['javascript:alert(1)', null],
  ['data:text/html,x', null],
  ['https://exa mple.com', null],
  ['https://example.com/"onclick=', null],
  ['word', null],
  ['', null],
])('the address %j is %j', (entered, address) => {
  expect(safeAddress(entered)).toBe(address);
});
