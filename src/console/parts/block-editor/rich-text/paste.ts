/*
 * HTML from the clipboard, reduced to what a text may contain: paragraphs, lists, links, bold, italic, underlined. Word and
 * Google Docs write styles where other programs write elements, and Word writes lists as paragraphs with a style of its own.
 */

/** More than a person pastes; the rest is dropped. */
const MAX_LENGTH = 1_000_000;
/** The policy of the page would refuse and report styles and handlers, also in a document that is never shown. */
const REFUSED_ATTRIBUTE = /(?<=[\s"'/])(style|on[a-z]+)(?=\s*=)/gi;
const TAG = /<[a-z][^<>]{0,20000}>/gi;
const BLOCKS = new Set(
  'address article aside blockquote body center div dd dl dt figure footer form h1 h2 h3 h4 h5 h6 header main p pre section table tbody td tfoot th thead tr'.split(
    ' ',
  ),
);
const DROPPED = new Set(
  'applet audio button canvas embed head iframe img input link math meta noscript object o:p picture script select style svg template textarea title video xml'.split(
    ' ',
  ),
);
const WORD_LIST = /\bmso-list:\s*l\d+\s+level\d/i;
const WORD_BULLET = /mso-list:\s*ignore/i;
const NUMBERED = /^[\s\u00a0]*(?:\d+|[a-z]|[ivx]+)[.)]/i;

type Mark = 'strong' | 'em' | 'u';

interface Line {
  kind: 'p' | 'ul' | 'ol';
  html: string;
}

/** Reduces pasted HTML; the result has only p, ul, ol, li, br, strong, em, u, and a with an address. */
export function reduceHtml(html: string): string {
  const source = html
    .slice(0, MAX_LENGTH)
    .replaceAll(TAG, (tag) => tag.replaceAll(REFUSED_ATTRIBUTE, 'data-$1'));
  const { body } = new DOMParser().parseFromString(source, 'text/html');
  const lines: Line[] = [];
  let line: Line = { kind: 'p', html: '' };
  const end = (kind: Line['kind'] = 'p') => {
    if (line.html.trim() !== '') lines.push({ ...line, html: line.html.trim() });
    line = { kind, html: '' };
  };

  const walk = (node: Node, marks: ReadonlySet<Mark>, list: Line['kind']): void => {
    if (node.nodeType === Node.TEXT_NODE) {
      const text = escaped((node.textContent ?? '').replaceAll(/[\t\n\r ]+/g, ' '));
      if (text.trim() === '' && line.html === '') return;
      line.html += [...marks].reduce((inner, mark) => `<${mark}>${inner}</${mark}>`, text);
      return;
    }
    if (!(node instanceof Element)) return;
    const name = node.localName;
    const style = node.getAttribute('data-style') ?? '';
    if (DROPPED.has(name) || WORD_BULLET.test(style) || /display:\s*none/i.test(style)) return;
    if (name === 'br') {
      if (line.html !== '') line.html += '<br>';
      return;
    }
    const inner = marksOf(node, style, marks);
    if (name === 'a') {
      const before = line.html;
      line.html = '';
      for (const child of node.childNodes) walk(child, inner, list);
      const href = node.getAttribute('href');
      line.html = before + (href === null ? line.html : `<a href="${escaped(href)}">${line.html}</a>`);
      return;
    }
    if (name === 'ul' || name === 'ol') {
      end(list);
      for (const child of node.childNodes) walk(child, inner, name);
      end(list);
      return;
    }
    const isWordList = WORD_LIST.test(style);
    const isItem = name === 'li';
    // The paragraph of an item is the item.
    const isBlock = isItem || isWordList || (BLOCKS.has(name) && !(list !== 'p' && name === 'p'));
    const own = isWordList ? (NUMBERED.test(bulletOf(node)) ? 'ol' : 'ul') : list;
    if (isBlock) end(own);
    for (const child of node.childNodes) walk(child, inner, own);
    if (isBlock) end(list);
  };
  for (const child of body.childNodes) walk(child, new Set(), 'p');
  end();
  return joined(lines);
}

/** Consecutive items are one list. */
function joined(lines: readonly Line[]): string {
  let html = '';
  let open: Line['kind'] = 'p';
  for (const { kind, html: inner } of lines) {
    if (kind !== open) {
      if (open !== 'p') html += `</${open}>`;
      if (kind !== 'p') html += `<${kind}>`;
      open = kind;
    }
    html += kind === 'p' ? `<p>${inner}</p>` : `<li><p>${inner}</p></li>`;
  }
  return open === 'p' ? html : `${html}</${open}>`;
}

/** The marks within an element: those of its name and of its style. Google Docs wraps all in a `b` that is not bold. */
function marksOf(element: Element, style: string, outer: ReadonlySet<Mark>): ReadonlySet<Mark> {
  const marks = new Set(outer);
  const set = (mark: Mark, isOn: boolean) => (isOn ? marks.add(mark) : marks.delete(mark));
  const name = element.localName;
  if (name === 'b' || name === 'strong') marks.add('strong');
  if (name === 'i' || name === 'em') marks.add('em');
  if (name === 'u' || name === 'ins') marks.add('u');
  const weight = /(?<![\w-])font-weight:\s*(\w+)/i.exec(style)?.[1];
  if (weight !== undefined) set('strong', weight === 'bold' || Number(weight) >= 600);
  const slant = /(?<![\w-])font-style:\s*(\w+)/i.exec(style)?.[1];
  if (slant !== undefined) set('em', slant === 'italic' || slant === 'oblique');
  const line = /(?<![\w-])text-decoration(?:-line)?:\s*([^;]*)/i.exec(style)?.[1];
  // Links are underlined anyway.
  if (line !== undefined && name !== 'a' && element.closest('a') === null)
    set('u', line.includes('underline'));
  return marks;
}

/** What Word writes in front of an item: a bullet or a number. */
function bulletOf(paragraph: Element): string {
  for (const span of paragraph.querySelectorAll('[data-style]'))
    if (WORD_BULLET.test(span.getAttribute('data-style') ?? '')) return span.textContent ?? '';
  return '';
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
