import { walkHtml } from '../html/walk.ts';
import { decodeWords, type Fields, linesOf, NO_FIELDS, readHeaderFields } from './fields.ts';
import type { IncomingLimits } from './limits.ts';
import { contentOf, leavesOf, type Part, readHeader, readMail, textOf } from './mime.ts';
import { WORDING } from './wording.ts';

/**
 * Sorts the parts of a returned mail: the notice for people, the machine-readable fields, and what remains of the
 * returned message. It does not interpret them.
 */
export interface ReturnedMail {
  /** The lines of the notice: all text before the returned message. */
  lines: string[];
  /** Texts of all delivery-status parts (RFC 3464 §2). */
  statusTexts: string[];
  /** Texts of all feedback-report parts (RFC 5965 §3). */
  feedbackTexts: string[];
  /** Lines below the notice in the same part: the returned message, or a forwarded report. */
  below: string[];
  /** Header fields of the returned message; empty when there is none. */
  original: Fields;
}

/**
 * If the mail has no delivery-status part, those of an embedded `multipart/report` are used, with the notice of the
 * outer mail. HTML is read only while no text was found before it. `limits` bounds all texts together.
 */
export function sortParts(mail: Part, limits: IncomingLimits): ReturnedMail {
  const sorted = sortLeaves(mail, limits);
  if (sorted.statusTexts.length > 0) return sorted;
  // A gateway's notice around another server's report: the embedded report has the details.
  const inner = embeddedReport(mail, limits);
  return inner ? { ...sortLeaves(inner, limits), lines: [...sorted.lines] } : sorted;
}

function embeddedReport(mail: Part, limits: IncomingLimits): Part | null {
  for (const part of leavesOf(mail)) {
    if (part.type !== 'message/rfc822') continue;
    const inner = readMail(contentOf(part, limits.mailBytes), limits);
    if (inner.type === 'multipart/report' && inner.children.some(({ type }) => STATUS_TYPES.has(type)))
      return inner;
  }
  return null;
}

function sortLeaves(mail: Part, limits: IncomingLimits): ReturnedMail {
  const sorted: ReturnedMail = {
    lines: [],
    statusTexts: [],
    feedbackTexts: [],
    below: [],
    original: NO_FIELDS,
  };
  let left = limits.textBytes;
  const take = (part: Part): string => {
    const text = textOf(part, Math.max(left, 0));
    left -= text.length;
    return text;
  };
  for (const part of leavesOf(mail)) {
    if (STATUS_TYPES.has(part.type)) sorted.statusTexts.push(take(part));
    else if (part.type === 'message/feedback-report') sorted.feedbackTexts.push(take(part));
    else if (RETURNED_TYPES.has(part.type)) takeOriginal(sorted, readReturned(part, limits));
    else if (part.type === 'text/html') {
      if (sorted.lines.length === 0) takeText(sorted, htmlToLines(take(part)), limits);
    } else if (isReadable(part)) takeText(sorted, take(part), limits);
  }
  return sorted;
}

/** Plain text of any subtype; also a multipart without parts. */
function isReadable(part: Part): boolean {
  return part.type.startsWith('multipart/') || (part.type.startsWith('text/') && part.type !== 'text/html');
}

const STATUS_TYPES = new Set(['message/delivery-status', 'message/global-delivery-status']);

const RETURNED_TYPES = new Set([
  'message/rfc822',
  'message/global',
  'message/partial',
  'text/rfc822-headers',
  'text/rfc822',
  'message/rfc822-headers',
  'message/global-headers',
]);

function takeOriginal(sorted: ReturnedMail, found: Fields): void {
  if (sorted.original.names().length === 0) sorted.original = found;
}

function readReturned(part: Part, limits: IncomingLimits): Fields {
  const bytes = contentOf(part, limits.headerBytes);
  let from = 0;
  while (bytes[from] === 0x0a || bytes[from] === 0x0d || bytes[from] === 0x20) from++;
  return readHeader(bytes.subarray(from), limits).fields;
}

/** A text part may contain the notice and, below a line that announces it, the returned message. */
function takeText(sorted: ReturnedMail, text: string, limits: IncomingLimits): void {
  const lines = linesOf(text).slice(0, limits.noticeLines - sorted.lines.length);
  const cut = sorted.lines.length > 0 && beginsWithHeader(lines) ? 0 : returnedMessageStart(lines);
  sorted.lines.push(...lines.slice(0, cut).map(decodeWords));
  if (cut >= lines.length) return;
  sorted.below = sorted.below.concat(lines.slice(cut)).slice(0, limits.noticeLines);
  const from = lines.findIndex((line, i) => i >= cut && isHeaderLine(line));
  if (from >= 0) takeOriginal(sorted, readHeaderFields(headerBlock(lines, from), limits));
}

const ANNOUNCEMENTS: ReadonlySet<string> = new Set(WORDING.announcements);

function announcesOriginal(line: string): boolean {
  if (line.length > 200) return false;
  const words = line
    .toLowerCase()
    .replaceAll(/[\s>*=_#-]+/g, ' ')
    .trim();
  // Not linear: the line has at most 200 characters.
  if (ANNOUNCEMENTS.has(words.replace(/[\s.:]+$/, ''))) return true;
  return WORDING.announcementPrefixes.some((prefix) => words.startsWith(prefix));
}

/** The index of the first line of the returned message; the number of lines when there is none. */
function returnedMessageStart(lines: readonly string[]): number {
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? '';
    if (announcesOriginal(line)) return i + 1;
    if (/^(?:received|return-path|x-apparently-to|delivered-to): ?\S/i.test(line) && isHeaderBlock(lines, i))
      return i;
  }
  return lines.length;
}

/** Whether the text is an attached file of header fields. */
function beginsWithHeader(lines: readonly string[]): boolean {
  const first = lines.findIndex((line) => line !== '');
  return first >= 0 && isHeaderLine(lines[first] ?? '') && isHeaderBlock(lines, first);
}

/** Whether the next four lines, or the last three, are fields or their continuation. */
function isHeaderBlock(lines: readonly string[], from: number): boolean {
  const block = lines.slice(from, from + 4);
  return (
    block.length >= 3 && block.every((line) => isHeaderLine(line) || /^[ \t]+\S/.test(line) || line === '')
  );
}

function isHeaderLine(line: string): boolean {
  return /^[a-z][a-z0-9-]{1,60}:(?: |\t|$|<)/i.test(line);
}

/** The lines from `from` up to the next empty one. */
function headerBlock(lines: readonly string[], from: number): string {
  const end = lines.indexOf('', from);
  return lines.slice(from, end < 0 ? undefined : end).join('\n');
}

/** Elements that start a new line. */
const LINE_ELEMENTS: ReadonlySet<string> = new Set(
  'blockquote br div h1 h2 h3 h4 hr li p pre table td tr'.split(' '),
);

/**
 * The text of a notice in HTML as lines, for finding addresses and replies in it, not for display. An address in
 * unescaped angle brackets is text, although HTML reads it as a tag.
 */
function htmlToLines(html: string): string {
  const out: string[] = [];
  walkHtml(html, {
    open: (name, _attributes, _spans, start) => {
      if (LINE_ELEMENTS.has(name)) out.push('\n');
      else if (name.includes('@')) out.push(`<${html.slice(start + 1, start + 1 + name.length)}>`);
    },
    close: (name) => {
      if (LINE_ELEMENTS.has(name)) out.push('\n');
    },
    text: (piece) => {
      out.push(piece.replaceAll(/\s+/g, ' '));
    },
  });
  return out.join('');
}
