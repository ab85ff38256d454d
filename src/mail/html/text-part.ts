import { type Work, withoutPause } from '../../core/concurrency/slices.ts';
import { trackVisibility, VISIBILITY_ATTRIBUTES, voidElementStyle } from './visibility.ts';
import { walkHtmlInSteps } from './walk.ts';

/*
 * Derives the text part from HTML if the caller sent none: the displayed text with paragraphs, and links as `text <url>`, where clients that make URLs clickable find
 * their end (RFC 3986 appendix C).
 * One pass without a tree, linear in the length of the HTML however deep or broken it is. Marks (content.ts) stay
 * unchanged. Each paragraph is one line: flowed.ts wraps them.
 */

const PARAGRAPH = 1;
const LINE = 2;
const CELL = 4;
/** Has its own case in `openOther`. */
const OTHER = 8;
const ELEMENTS: readonly [number, string][] = [
  [
    PARAGRAPH,
    'address article aside blockquote dl figure footer form h1 h2 h3 h4 h5 h6 header hr main nav ol p pre section table ul',
  ],
  [LINE, 'caption center dd div dt fieldset figcaption legend li option tr'],
  [CELL, 'td th'],
  [OTHER, 'a hr img li ol pre ul'],
];
/** What applies to an element, by name. */
const KINDS = new Map<string, number>();
for (const [kind, names] of ELEMENTS)
  for (const name of names.split(' ')) KINDS.set(name, (KINDS.get(name) ?? 0) | kind);
const REQUESTED_ATTRIBUTES = new Set(['href', 'alt', 'start', 'reversed', 'value', ...VISIBILITY_ATTRIBUTES]);

/** White space that HTML collapses, and no-break spaces, which are only layout. */
const BLANKS = /[ \t\r\n\f\u00a0]+/g;
const ONLY_BLANKS = /^[ \t\r\n\f\u00a0]*$/;
/** Fixed-width spaces and zero-width characters, which pad preview lines. */
const SPACERS = /[\u034f\u00ad\u180e\u2000-\u200d\u202f\u205f-\u2064\ufeff]/;
const FIXED_BLANKS = /[\u2000-\u200a\u202f\u205f]+/g;
const FILLERS = /[\u034f\u00ad\u180e\u200b\u2060-\u2064\ufeff]+/g;
/** Joiners after emoji and letters of joining scripts are significant; elsewhere they are fillers. */
const STRAY_JOINERS = /(^|[^\u0300-\u1fff\u2070-\u2fff\u3001-\uffff])[\u200c\u200d]+/g;
/** Characters after which the text of an image needs no space. */
const OPENS = /[([{"'\u00ab\u2018\u201c\u201e/-]$/;
const STARTS_A_WORD = /^[\p{L}\p{N}]/u;
const MAX_INDENT = 8;
/** A longer text of a link is never equal to its URL. */
const MAX_COMPARED = 2_000;

interface OpenList {
  /** The number of the next item; null for a bulleted list. */
  next: number | null;
  step: 1 | -1;
}

interface OpenLink {
  href: string;
  text: string;
  /** Opened in hidden text, and contains no image: there is nothing to click. */
  isEmpty: boolean;
}

/** Returns the text with LF line ends. */
export function textFromHtml(html: string): string {
  return withoutPause(deriveTextInSteps(html));
}

/** `textFromHtml` in steps. */
export function* deriveTextInSteps(html: string): Work<string> {
  let out = '';
  /** Pending line breaks before the next word, at most two. */
  let breaks = 0;
  /** A space is pending before the next word on the line. */
  let blank = false;
  let preformatted = 0;
  /** Pending `- ` or `1. ` before the next word. */
  let bullet = '';
  const lists: OpenList[] = [];
  let link: OpenLink | null = null;
  /** The URL of a link was written last. */
  let afterUrl = false;
  /** The text of an image was written last. */
  let afterImage = false;
  /** The last UTF-16 code unit of `out`. Reading it from `out` would flatten the string each time. */
  let last = '';
  const visibility = trackVisibility();

  const write = (words: string) => {
    const started = out !== '';
    if (breaks > 0 && started) out += breaks === 1 ? '\n' : '\n\n';
    else if (blank && started) out += ' ';
    if (breaks > 0 || !started) out += indent();
    out += bullet + words;
    last = words.charAt(words.length - 1);
    if (link && link.text.length < MAX_COMPARED) link.text += blank && link.text !== '' ? ` ${words}` : words;
    breaks = 0;
    blank = false;
    bullet = '';
    afterUrl = false;
    afterImage = false;
  };
  const indent = () =>
    lists.length === 0
      ? ''
      : '  '.repeat(Math.min(Math.max(lists.length - (bullet === '' ? 0 : 1), 0), MAX_INDENT));
  const breakLine = (count: number) => {
    breaks = Math.min(2, Math.max(breaks, count));
  };

  const endLink = () => {
    if (!link) return;
    const { href, text, isEmpty } = link;
    link = null;
    if (text === '' && isEmpty) return;
    const shown = displayedUrl(href);
    if (text === '') write(shown);
    else if (repeatsUrl(href, shown, text)) return;
    else {
      const pendingBreaks = breaks;
      breaks = 0;
      blank = true;
      write(`<${shown}>`);
      breaks = pendingBreaks;
    }
    afterUrl = true;
  };

  const text = (piece: string) => {
    if (!visibility.isTextShown()) return;
    if (preformatted > 0) {
      const lines = piece.replace(/\r\n?/g, '\n');
      if (lines !== '') write(lines);
      return;
    }
    words(piece);
  };

  const words = (piece: string) => {
    // The common cases: words with single spaces, and line ends between two tags.
    if (isPlain(piece)) {
      writeWords(piece);
      return;
    }
    if (ONLY_BLANKS.test(piece)) {
      blank ||= piece !== '';
      return;
    }
    const visible = SPACERS.test(piece) ? withoutSpacers(piece) : piece;
    const collapsed = visible.replace(BLANKS, ' ');
    if (collapsed.startsWith(' ')) blank = true;
    const bare = collapsed.replace(/^ | $/g, '');
    if (bare === '') return;
    writeWords(bare);
    blank = collapsed.endsWith(' ');
  };

  const writeWords = (bare: string) => {
    if (afterImage && STARTS_A_WORD.test(bare)) blank = true;
    write(bare);
  };

  /** Removes spacers. An entity is a separate piece, so the character before a joiner may already be written. */
  const withoutSpacers = (piece: string): string => {
    const visible = piece.replace(FIXED_BLANKS, ' ').replace(FILLERS, '');
    const code = visible.charCodeAt(0);
    if ((code !== 0x200c && code !== 0x200d) || blank || breaks > 0)
      return visible.replace(STRAY_JOINERS, '$1');
    return (last + visible).replace(STRAY_JOINERS, '$1').slice(last.length);
  };

  const writeImage = (attributes: ReadonlyMap<string, string>) => {
    if (!visibility.areImagesShown()) return;
    const { isHidden, isBlock } = voidElementStyle(attributes);
    if (isHidden) return;
    if (link) link.isEmpty = false;
    const alt = attributes.get('alt') ?? '';
    if (ONLY_BLANKS.test(alt)) return;
    if (isBlock) breakLine(1);
    blank ||= !OPENS.test(last);
    words(alt);
    afterImage = true;
    if (isBlock) breakLine(1);
  };

  const openList = (name: string, attributes: ReadonlyMap<string, string>) => {
    const isReversed = attributes.has('reversed');
    const start = parseInteger(attributes.get('start'));
    // A reversed list begins with the number of its items, which is not known yet.
    const first = start ?? (isReversed ? null : 1);
    lists.push({ next: name === 'ol' ? first : null, step: isReversed ? -1 : 1 });
  };

  const openItem = (attributes: ReadonlyMap<string, string>) => {
    const list = lists.at(-1);
    bullet = '- ';
    if (list === undefined || list.next === null) return;
    list.next = parseInteger(attributes.get('value')) ?? list.next;
    bullet = `${list.next}. `;
    list.next += list.step;
  };

  const open = (name: string, attributes: ReadonlyMap<string, string>) => {
    const isBlock = visibility.open(name, attributes);
    if (visibility.isRemoved()) return;
    if (name === 'br') {
      breaks = Math.min(2, breaks + 1);
      return;
    }
    const kind = KINDS.get(name) ?? 0;
    breakAround(kind, isBlock);
    if ((kind & OTHER) !== 0) openOther(name, attributes);
  };

  const breakAround = (kind: number, isBlock: boolean) => {
    if ((kind & PARAGRAPH) !== 0) breakLine(lists.length > 0 ? 1 : 2);
    else if ((kind & LINE) !== 0 || isBlock) breakLine(1);
    else if ((kind & CELL) !== 0) blank = true;
  };

  const openOther = (name: string, attributes: ReadonlyMap<string, string>) => {
    if (name === 'ul' || name === 'ol') openList(name, attributes);
    else if (name === 'li') openItem(attributes);
    else if (name === 'pre') preformatted++;
    else if (name === 'img') writeImage(attributes);
    else if (name === 'hr') {
      write('---');
      breakLine(2);
    } else if (name === 'a') {
      endLink();
      blank ||= afterUrl;
      const href = (attributes.get('href') ?? '').trim();
      const isShown = href !== '' && !OMITTED_URLS.test(href);
      link = isShown ? { href, text: '', isEmpty: !visibility.isTextShown() } : null;
    }
  };

  const close = (name: string) => {
    const wasRemoved = visibility.isRemoved();
    const endedBlock = visibility.close(name);
    if (wasRemoved) return;
    const kind = KINDS.get(name) ?? 0;
    if ((kind & OTHER) !== 0) {
      if (name === 'a') endLink();
      else if (name === 'ul' || name === 'ol') lists.pop();
      else if (name === 'pre') preformatted = Math.max(0, preformatted - 1);
    }
    breakAround(kind, endedBlock);
  };

  yield* walkHtmlInSteps(html, { open, close, text }, REQUESTED_ATTRIBUTES);
  endLink();
  return out.trimEnd();
}

/** Whether the piece is ASCII words with single spaces between them. */
function isPlain(piece: string): boolean {
  let wasBlank = true;
  for (let at = 0; at < piece.length; at++) {
    const code = piece.charCodeAt(at);
    if (code < 32 || code > 126 || (code === 32 && wasBlank)) return false;
    wasBlank = code === 32;
  }
  return !wasBlank;
}

/** Parses an integer (HTML Standard §2.3.4.1) of up to nine digits. */
function parseInteger(value: string | undefined): number | null {
  const digits = value === undefined ? undefined : /^\s*([+-]?\d{1,9})/.exec(value)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** URLs without a use in plain text. */
const OMITTED_URLS = /^(?:#|javascript:|data:|cid:)/i;

/** The URL of a link as it is displayed. */
function displayedUrl(href: string): string {
  if (/^tel:/i.test(href)) return href.slice(4);
  return /^mailto:/i.test(href) ? href.slice(7).replace(/\?.*$/s, '') : href;
}

/** The minimum number of digits of a telephone number. */
const MIN_DIGITS = 5;

/** Whether the text of a link, or its last word, is already its URL. */
function repeatsUrl(href: string, shown: string, text: string): boolean {
  if (text.length >= MAX_COMPARED) return false;
  if (/^tel:/i.test(href)) return isSameNumber(shown, text);
  const last = text.slice(text.lastIndexOf(' ') + 1);
  if (shown !== href) return shown.toLowerCase() === last.toLowerCase();
  return comparableUrl(href) === comparableUrl(last);
}

/** The URL without scheme and final slash, with the host in lower case. */
function comparableUrl(url: string): string {
  const bare = url.replace(/^https?:\/\//i, '').replace(/\/$/, '');
  const end = bare.search(/[/?#]/);
  return end === -1 ? bare.toLowerCase() : bare.slice(0, end).toLowerCase() + bare.slice(end);
}

/** Whether both are the same number, even if one has a country code and the other the prefix 0 instead. */
function isSameNumber(number: string, text: string): boolean {
  const dialed = number.replace(/[;?].*$/s, '').replace(/\D/g, '');
  const written = text.replace('(0)', '').replace(/\D/g, '').replace(/^00/, '');
  if (dialed.length < MIN_DIGITS || written.length < MIN_DIGITS) return false;
  return written.endsWith(dialed) || dialed.endsWith(written.replace(/^0/, ''));
}
