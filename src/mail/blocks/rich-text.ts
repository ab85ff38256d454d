import { escapeHtml } from '../html/escape.ts';
import type { Inline, Mark, RichText } from './design.ts';
import { VARIABLE } from './variable.ts';

/*
 * Texts of a design as HTML. Everything is escaped except variables, whose names and defaults the schema restricts to characters
 * that are safe wherever they are inserted.
 */

/** Escapes a text for elements and quoted attributes; its variables stay. */
export function textHtml(text: string): string {
  let out = '';
  let at = 0;
  for (const match of text.matchAll(VARIABLE)) {
    // A backslash before the braces makes them text.
    if (text[match.index - 1] === '\\') continue;
    out += literal(text.slice(at, match.index)) + match[0];
    at = match.index + match[0].length;
  }
  return out + literal(text.slice(at));
}

/** A brace or backslash at an end must not join those of a variable next to it. */
function literal(text: string): string {
  return (
    escapeHtml(text)
      // Not linear: a text has at most 5000 characters.
      .replace(/^\{+/, (braces) => '&#123;'.repeat(braces.length))
      .replace(/(?<!\{)\{+$/, (braces) => '&#123;'.repeat(braces.length))
      .replace(/\\$/, '&#92;')
  );
}

export interface InlineStyle {
  /** Attributes of a link. */
  link: string;
  /** Attributes of a text of a color. */
  colored(color: string): string;
}

/** Outermost first: a link contains its text with all other marks. */
const ORDER: readonly Mark['type'][] = ['link', 'color', 'bold', 'italic', 'underline', 'strikethrough'];

/** Paragraph content as HTML. Adjacent parts of one link are one link. */
export function inlineHtml(nodes: readonly Inline[], style: InlineStyle): string {
  let out = '';
  let linked: string | null = null;
  for (const node of nodes) {
    const marks = node.marks ?? [];
    const href = marks.find((mark) => mark.type === 'link')?.attrs.href ?? null;
    if (href !== linked) {
      if (linked !== null) out += '</a>';
      if (href !== null) out += `<a href="${textHtml(href)}" ${style.link}>`;
      linked = href;
    }
    out += marked(node, marks, style);
  }
  return linked === null ? out : `${out}</a>`;
}

function marked(node: Inline, marks: readonly Mark[], style: InlineStyle): string {
  if (node.type === 'hardBreak') return '<br>';
  let html = node.type === 'text' ? textHtml(node.text) : variable(node.attrs);
  for (const type of ORDER.toReversed()) {
    const mark = marks.find((one) => one.type === type);
    if (mark === undefined || mark.type === 'link') continue;
    if (mark.type === 'color') html = `<span ${style.colored(mark.attrs.color)}>${html}</span>`;
    else html = `<${TAGS[mark.type]}>${html}</${TAGS[mark.type]}>`;
  }
  return html;
}

const TAGS = { bold: 'strong', italic: 'em', underline: 'u', strikethrough: 's' } as const;

function variable({ name, default: value }: { name: string; default?: string | null | undefined }): string {
  return value ? `{{${name}|${value}}}` : `{{${name}}}`;
}

/** The text without marks and variables, for a title. */
export function plainText(nodes: readonly Inline[]): string {
  return nodes
    .map((node) =>
      node.type === 'text' ? node.text : node.type === 'variable' ? (node.attrs.default ?? '') : ' ',
    )
    .join('')
    .trim();
}

type Part = RichText['content'][number];

/** Attributes of the elements of a rich text. */
export interface TextStyle extends InlineStyle {
  /** Of a paragraph or list; `isLast`: without a margin below. */
  block(margin: { below: number; isList?: boolean }): string;
  item: string;
}

export function richTextHtml({ content }: RichText, style: TextStyle): string {
  return content.map((part, index) => partHtml(part, style, index === content.length - 1 ? 0 : 16)).join('');
}

function partHtml(part: Part, style: TextStyle, below: number): string {
  if (part.type === 'paragraph') {
    const html = inlineHtml(part.content ?? [], style);
    return `<p ${style.block({ below })}>${html === '' ? '&nbsp;' : html}</p>`;
  }
  const tag = part.type === 'bulletList' ? 'ul' : 'ol';
  const start =
    part.type === 'orderedList' && part.attrs?.start !== undefined ? ` start="${part.attrs.start}"` : '';
  const items = part.content
    .map(({ content }) => `<li ${style.item}>${itemHtml(content, style)}</li>`)
    .join('');
  return `<${tag}${start} ${style.block({ below, isList: true })}>${items}</${tag}>`;
}

/** A first paragraph stands next to the bullet, in the item itself. */
function itemHtml(content: readonly Part[], style: TextStyle): string {
  return content
    .map((part, index) =>
      part.type === 'paragraph' && index === 0
        ? inlineHtml(part.content ?? [], style)
        : partHtml(part, style, 0),
    )
    .join('');
}
