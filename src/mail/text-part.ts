import { VOID_ELEMENTS, walkHtml } from './html-walk.ts';

/**
 * Derives the text part from html when the caller sent none: what a reader would see, paragraphs kept, links as
 * `text [url]`. One pass without a tree, linear in the html's length however deep or broken it is. Marks
 * (content.ts) pass through unchanged.
 */
const PARAGRAPHS = new Set(
  'address article aside blockquote dl figure footer form h1 h2 h3 h4 h5 h6 header hr main nav ol p pre section table ul'.split(
    ' ',
  ),
);
const LINES = new Set('caption center dd div dt fieldset figcaption legend li option tr'.split(' '));
const CELLS = new Set(['td', 'th']);
const WANTED = new Set(['href', 'alt', 'style', 'hidden']);

/** As html collapses it; a no-break space is only layout by the time it is text. */
const BLANKS = /[ \t\r\n\f\u00a0]+/g;
const ONLY_BLANKS = /^[ \t\r\n\f\u00a0]*$/;
/** Fillers that preview lines are padded with: soft hyphen, grapheme joiner, zero-width space, no-break. */
const FILLERS = /\u00ad|\u034f|\u200b|\ufeff/g;
const NOT_DISPLAYED = /(?:^|;)\s*display\s*:\s*none/i;
const MAX_INDENT = 8;
/** A link's text is compared with its address; longer ones never are one. */
const MAX_COMPARED = 2_000;

interface OpenList {
  /** Next number; null in a bulleted one. */
  next: number | null;
}

export function textFromHtml(html: string): string {
  let out = '';
  /** Line ends owed before the next word, at most two. */
  let breaks = 0;
  /** A blank is owed before the next word on the same line. */
  let blank = false;
  let preformatted = 0;
  /** `- ` or `1. ` owed before the next word. */
  let bullet = '';
  const lists: OpenList[] = [];
  let link: { href: string; text: string } | null = null;
  /** The last thing written is a link's address. */
  let linked = false;
  /** Inside an element that is not displayed: the elements opened in it and not yet closed. */
  let notDisplayed: Map<string, number> | null = null;

  const write = (words: string) => {
    const started = out !== '';
    if (breaks > 0 && started) out += '\n'.repeat(breaks);
    else if (blank && started) out += ' ';
    if (breaks > 0 || !started) out += indent();
    out += bullet + words;
    if (link && link.text.length < MAX_COMPARED) link.text += blank && link.text !== '' ? ` ${words}` : words;
    breaks = 0;
    blank = false;
    bullet = '';
    linked = false;
  };
  const indent = () => '  '.repeat(Math.min(Math.max(lists.length - (bullet === '' ? 0 : 1), 0), MAX_INDENT));
  const breakLine = (count: number) => {
    breaks = Math.min(2, Math.max(breaks, count));
  };

  const endLink = () => {
    if (!link) return;
    const { href, text } = link;
    link = null;
    if (text === '') return write(href);
    if (href.replace(/^https?:\/\//i, '').replace(/\/$/, '') === text.replace(/\/$/, '') || href === text)
      return;
    const owed = breaks;
    breaks = 0;
    blank = true;
    write(`[${href}]`);
    breaks = owed;
    linked = true;
  };

  const text = (piece: string) => {
    if (notDisplayed) return;
    if (preformatted > 0) {
      const lines = piece.replace(/\r\n?/g, '\n');
      if (lines !== '') write(lines);
      return;
    }
    // Between the tags of an ordinary mail there is mostly nothing but line ends.
    if (ONLY_BLANKS.test(piece)) {
      blank ||= piece !== '';
      return;
    }
    const words = piece.replace(FILLERS, '').replace(BLANKS, ' ');
    if (words.startsWith(' ')) blank = true;
    const bare = words.replace(/^ | $/g, '');
    if (bare === '') return;
    write(bare);
    blank = words.endsWith(' ');
  };

  const open = (name: string, attributes: ReadonlyMap<string, string>) => {
    if (notDisplayed) {
      if (!VOID_ELEMENTS.has(name)) notDisplayed.set(name, (notDisplayed.get(name) ?? 0) + 1);
      return;
    }
    if (attributes.has('hidden') || NOT_DISPLAYED.test(attributes.get('style') ?? '')) {
      if (!VOID_ELEMENTS.has(name)) notDisplayed = new Map();
      return;
    }
    if (name === 'br') {
      breaks = Math.min(2, breaks + 1);
      return;
    }
    if (PARAGRAPHS.has(name)) breakLine(lists.length > 0 ? 1 : 2);
    else if (LINES.has(name)) breakLine(1);
    else if (CELLS.has(name)) blank = true;
    if (name === 'ul' || name === 'ol') lists.push({ next: name === 'ol' ? 1 : null });
    if (name === 'li') {
      const list = lists.at(-1);
      bullet = list?.next ? `${list.next++}. ` : '- ';
    }
    if (name === 'pre') preformatted++;
    if (name === 'img') text(attributes.get('alt') ?? '');
    if (name === 'hr') {
      write('---');
      breakLine(2);
    }
    if (name === 'a') {
      endLink();
      blank ||= linked;
      const href = shownAddress(attributes.get('href') ?? '');
      link = href === '' ? null : { href, text: '' };
    }
  };

  const close = (name: string) => {
    if (notDisplayed) {
      const inside = notDisplayed.get(name) ?? 0;
      // Its own end, or that of an element around it, which ends it too.
      if (inside === 0) notDisplayed = null;
      else notDisplayed.set(name, inside - 1);
      return;
    }
    if (name === 'a') endLink();
    if (name === 'ul' || name === 'ol') lists.pop();
    if (name === 'pre') preformatted = Math.max(0, preformatted - 1);
    if (PARAGRAPHS.has(name)) breakLine(lists.length > 0 ? 1 : 2);
    else if (LINES.has(name)) breakLine(1);
    else if (CELLS.has(name)) blank = true;
  };

  walkHtml(html, { open, close, text }, WANTED);
  endLink();
  return out.trimEnd();
}

/** What a link shows as its address; '' when that would tell a reader of plain text nothing. */
function shownAddress(href: string): string {
  const address = href.trim();
  if (address.startsWith('#') || /^(?:javascript|data|cid):/i.test(address)) return '';
  return address.replace(/^(?:mailto|tel):/i, '');
}
