import { type Work, withoutPause } from '../../core/slices.ts';
import { trackVisibility, VISIBILITY_ATTRIBUTES, voidElementStyle } from './visibility.ts';
import { walkingHtml } from './walk.ts';

/**
 * Derives the text part from HTML when the caller sent none: what a reader would see, paragraphs kept, links as
 * `text [url]`. One pass without a tree, linear in the HTML's length however deep or broken it is. Marks
 * (content.ts) pass through unchanged. Lines are as long as their paragraphs: flowed.ts wraps them.
 */
const PARAGRAPHS = new Set(
  'address article aside blockquote dl figure footer form h1 h2 h3 h4 h5 h6 header hr main nav ol p pre section table ul'.split(
    ' ',
  ),
);
const LINES = new Set('caption center dd div dt fieldset figcaption legend li option tr'.split(' '));
const CELLS = new Set(['td', 'th']);
const WANTED = new Set(['href', 'alt', 'start', 'reversed', 'value', ...VISIBILITY_ATTRIBUTES]);

/** As HTML collapses it; a no-break space is only layout by the time it is text. */
const BLANKS = /[ \t\r\n\f\u00a0]+/g;
const ONLY_BLANKS = /^[ \t\r\n\f\u00a0]*$/;
/** Blanks of a fixed width and characters without a width: preview lines are padded with them. */
const SPACERS = /[\u034f\u00ad\u180e\u2000-\u200d\u202f\u205f-\u2064\ufeff]/;
const FIXED_BLANKS = /[\u2000-\u200a\u202f\u205f]+/g;
const FILLERS = /[\u034f\u00ad\u180e\u200b\u2060-\u2064\ufeff]+/g;
/** Joiners change emoji, and letters of scripts that are joined, in front of them; elsewhere they are fillers. */
const STRAY_JOINERS = /(^|[^\u0300-\u1fff\u2070-\u2fff\u3001-\uffff])[\u200c\u200d]+/g;
/** What a picture's text may follow without a blank. */
const OPENS = /[([{"'\u00ab\u2018\u201c\u201e/-]$/;
const STARTS_A_WORD = /^[\p{L}\p{N}]/u;
const MAX_INDENT = 8;
/** A link's text is compared with its address; longer ones never are one. */
const MAX_COMPARED = 2_000;

interface OpenList {
  /** Next number; null in a bulleted one. */
  next: number | null;
  step: 1 | -1;
}

interface OpenLink {
  href: string;
  text: string;
  /** Opened where text is not shown: without a picture in it there is nothing to click on. */
  isEmpty: boolean;
}

export function textFromHtml(html: string): string {
  return withoutPause(derivingText(html));
}

/** The same in steps. */
export function* derivingText(html: string): Work<string> {
  let out = '';
  /** Line ends owed before the next word, at most two. */
  let breaks = 0;
  /** A blank is owed before the next word on the same line. */
  let blank = false;
  let preformatted = 0;
  /** `- ` or `1. ` owed before the next word. */
  let bullet = '';
  const lists: OpenList[] = [];
  let link: OpenLink | null = null;
  /** The last thing written is a link's address. */
  let linked = false;
  /** The last thing written is the text of a picture. */
  let pictured = false;
  /** The last UTF-16 code unit of `out`, which is not read itself: that would copy it every time. */
  let last = '';
  const visibility = trackVisibility();

  const write = (words: string) => {
    const started = out !== '';
    if (breaks > 0 && started) out += '\n'.repeat(breaks);
    else if (blank && started) out += ' ';
    if (breaks > 0 || !started) out += indent();
    out += bullet + words;
    last = words.charAt(words.length - 1);
    if (link && link.text.length < MAX_COMPARED) link.text += blank && link.text !== '' ? ` ${words}` : words;
    breaks = 0;
    blank = false;
    bullet = '';
    linked = false;
    pictured = false;
  };
  const indent = () => '  '.repeat(Math.min(Math.max(lists.length - (bullet === '' ? 0 : 1), 0), MAX_INDENT));
  const breakLine = (count: number) => {
    breaks = Math.min(2, Math.max(breaks, count));
  };

  const endLink = () => {
    if (!link) return;
    const { href, text, isEmpty } = link;
    link = null;
    if (text === '' && isEmpty) return;
    const shown = shownAddress(href);
    if (text === '') write(shown);
    else if (isSameAddress(href, shown, text)) return;
    else {
      const owed = breaks;
      breaks = 0;
      blank = true;
      write(`[${shown}]`);
      breaks = owed;
    }
    linked = true;
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
    // Between the tags of an ordinary mail there is mostly nothing but line ends.
    if (ONLY_BLANKS.test(piece)) {
      blank ||= piece !== '';
      return;
    }
    const visible = SPACERS.test(piece) ? withoutSpacers(piece) : piece;
    const collapsed = visible.replace(BLANKS, ' ');
    if (collapsed.startsWith(' ')) blank = true;
    const bare = collapsed.replace(/^ | $/g, '');
    if (bare === '') return;
    if (pictured && STARTS_A_WORD.test(bare)) blank = true;
    write(bare);
    blank = collapsed.endsWith(' ');
  };

  /** An entity is a piece of its own, so what precedes a joiner may have been written already. */
  const withoutSpacers = (piece: string): string => {
    const visible = piece.replace(FIXED_BLANKS, ' ').replace(FILLERS, '');
    const code = visible.charCodeAt(0);
    if ((code !== 0x200c && code !== 0x200d) || blank || breaks > 0)
      return visible.replace(STRAY_JOINERS, '$1');
    return (last + visible).replace(STRAY_JOINERS, '$1').slice(last.length);
  };

  const picture = (attributes: ReadonlyMap<string, string>) => {
    if (!visibility.areImagesShown()) return;
    const { isHidden, isBlock } = voidElementStyle(attributes);
    if (isHidden) return;
    if (link) link.isEmpty = false;
    const alt = attributes.get('alt') ?? '';
    if (ONLY_BLANKS.test(alt)) return;
    if (isBlock) breakLine(1);
    blank ||= !OPENS.test(last);
    words(alt);
    pictured = true;
    if (isBlock) breakLine(1);
  };

  const openList = (name: string, attributes: ReadonlyMap<string, string>) => {
    const isReversed = attributes.has('reversed');
    const start = wholeNumber(attributes.get('start'));
    // A countdown begins with the number of its items, which is not known yet.
    const first = start ?? (isReversed ? null : 1);
    lists.push({ next: name === 'ol' ? first : null, step: isReversed ? -1 : 1 });
  };

  const openItem = (attributes: ReadonlyMap<string, string>) => {
    const list = lists.at(-1);
    bullet = '- ';
    if (list === undefined || list.next === null) return;
    list.next = wholeNumber(attributes.get('value')) ?? list.next;
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
    if (PARAGRAPHS.has(name)) breakLine(lists.length > 0 ? 1 : 2);
    else if (LINES.has(name) || isBlock) breakLine(1);
    else if (CELLS.has(name)) blank = true;
    if (name === 'ul' || name === 'ol') openList(name, attributes);
    else if (name === 'li') openItem(attributes);
    else if (name === 'pre') preformatted++;
    else if (name === 'img') picture(attributes);
    else if (name === 'hr') {
      write('---');
      breakLine(2);
    } else if (name === 'a') {
      endLink();
      blank ||= linked;
      const href = (attributes.get('href') ?? '').trim();
      const leads = href !== '' && !LEADS_NOWHERE.test(href);
      link = leads ? { href, text: '', isEmpty: !visibility.isTextShown() } : null;
    }
  };

  const close = (name: string) => {
    const wasRemoved = visibility.isRemoved();
    const endedBlock = visibility.close(name);
    if (wasRemoved) return;
    if (name === 'a') endLink();
    if (name === 'ul' || name === 'ol') lists.pop();
    if (name === 'pre') preformatted = Math.max(0, preformatted - 1);
    if (PARAGRAPHS.has(name)) breakLine(lists.length > 0 ? 1 : 2);
    else if (LINES.has(name) || endedBlock) breakLine(1);
    else if (CELLS.has(name)) blank = true;
  };

  yield* walkingHtml(html, { open, close, text }, WANTED);
  endLink();
  return out.trimEnd();
}

/** HTML Standard §2.3.4.1; longer ones are not believed. */
function wholeNumber(value: string | undefined): number | null {
  const digits = value === undefined ? undefined : /^\s*([+-]?\d{1,9})/.exec(value)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** Addresses that tell a reader of plain text nothing. */
const LEADS_NOWHERE = /^(?:#|javascript:|data:|cid:)/i;

/** What a link shows as its address. */
function shownAddress(href: string): string {
  if (/^tel:/i.test(href)) return href.slice(4);
  return /^mailto:/i.test(href) ? href.slice(7).replace(/\?.*$/s, '') : href;
}

/** Fewer digits are no telephone number. */
const MIN_DIGITS = 5;

/** Whether a link's text, or its last word, already is its address. */
function isSameAddress(href: string, shown: string, text: string): boolean {
  if (text.length >= MAX_COMPARED) return false;
  if (/^tel:/i.test(href)) return isSameNumber(shown, text);
  const last = text.slice(text.lastIndexOf(' ') + 1);
  if (shown !== href) return shown.toLowerCase() === last.toLowerCase();
  return comparableUrl(href) === comparableUrl(last);
}

/** Without scheme and final slash, the host in lower case. */
function comparableUrl(url: string): string {
  const bare = url.replace(/^https?:\/\//i, '').replace(/\/$/, '');
  const end = bare.search(/[/?#]/);
  return end === -1 ? bare.toLowerCase() : bare.slice(0, end).toLowerCase() + bare.slice(end);
}

/** Also when one has a country code and the other the digit 0 in its place. */
function isSameNumber(number: string, text: string): boolean {
  const dialed = number.replace(/[;?].*$/s, '').replace(/\D/g, '');
  const written = text.replace('(0)', '').replace(/\D/g, '').replace(/^00/, '');
  if (dialed.length < MIN_DIGITS || written.length < MIN_DIGITS) return false;
  return written.endsWith(dialed) || dialed.endsWith(written.replace(/^0/, ''));
}
