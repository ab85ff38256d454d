import { decodeWords, type Fields, linesOf, NO_FIELDS, readFields } from './fields.ts';
import { htmlToLines } from './html-text.ts';
import type { IncomingLimits } from './limits.ts';
import { contentOf, leavesOf, type Part, readHeader, readMail, textOf } from './mime.ts';

/**
 * Sorts the parts of a returned mail: the words meant for people, the fields meant for machines, and what is
 * left of the message that came back. Decides nothing.
 */
export interface ReturnedMail {
  /** The notice itself: everything readable before the returned message, one line each. */
  lines: string[];
  /** Texts of all delivery-status parts (RFC 3464 §2). */
  statusTexts: string[];
  /** Texts of all feedback-report parts (RFC 5965 §3). */
  feedbackTexts: string[];
  /** What stands below the notice in the same text: the returned message, or a whole report someone forwarded. */
  below: string[];
  /** Header fields of the message that came back; empty when it did not. */
  original: Fields;
}

export function sortParts(mail: Part, limits: IncomingLimits): ReturnedMail {
  const sorted = sortLeaves(mail, limits);
  if (sorted.statusTexts.length > 0) return sorted;
  // A gateway's note around someone else's report: the report inside says more.
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

/** Plain text of any name; also a multipart in which no parts were found. */
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

/** A text part may hold the notice and, below a line that says so, the returned message. */
function takeText(sorted: ReturnedMail, text: string, limits: IncomingLimits): void {
  const lines = linesOf(text).slice(0, limits.noticeLines - sorted.lines.length);
  const cut = sorted.lines.length > 0 && beginsWithHeader(lines) ? 0 : returnedFrom(lines);
  sorted.lines.push(...lines.slice(0, cut).map(decodeWords));
  if (cut >= lines.length) return;
  sorted.below = sorted.below.concat(lines.slice(cut)).slice(0, limits.noticeLines);
  const from = lines.findIndex((line, i) => i >= cut && isHeaderLine(line));
  if (from >= 0) takeOriginal(sorted, readFields(headerBlock(lines, from), limits));
}

/** Lines that say that the sender's own message follows, without their rules and stars; lower case. */
const ANNOUNCEMENTS = new Set([
  'original message',
  'original message follows',
  'the original message follows',
  'original message header',
  'original message headers',
  'original headers',
  'unsent message follows',
  'unsent message below',
  'returned message',
  'returned message follows',
  'undelivered message',
  'message follows',
  'message headers follow',
  'message header follows',
  'original mail',
  'your original message',
]);

const ANNOUNCING = [
  'below this line is',
  'below is a copy',
  'this is a copy of',
  'here is a copy of',
  'enclosed is a copy',
  'enclosed is the original',
  'included is a copy',
  'the following is a copy',
  'following is a copy',
  'a copy of the original message',
  'a copy of your message',
  'copy of the original message',
  'the header of the original',
  'the headers of the original',
  'header of the original message',
  'headers of the original message',
  'start of returned message',
  'start of the original',
  'text of your message',
  'text of the original message',
  'your original message follows',
  'message text follows',
];

function announcesOriginal(line: string): boolean {
  if (line.length > 200) return false;
  const words = line
    .toLowerCase()
    .replaceAll(/[\s>*=_#-]+/g, ' ')
    .trim();
  if (ANNOUNCEMENTS.has(words.replace(/[\s.:]+$/, ''))) return true;
  return ANNOUNCING.some((beginning) => words.startsWith(beginning));
}

function returnedFrom(lines: readonly string[]): number {
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? '';
    if (announcesOriginal(line)) return i + 1;
    if (/^(?:received|return-path|x-apparently-to|delivered-to): ?\S/i.test(line) && isHeaderBlock(lines, i))
      return i;
  }
  return lines.length;
}

/** An attached file of header fields. */
function beginsWithHeader(lines: readonly string[]): boolean {
  const first = lines.findIndex((line) => line !== '');
  return first >= 0 && isHeaderLine(lines[first] ?? '') && isHeaderBlock(lines, first);
}

/** At least three of the next lines are fields or their continuation. */
function isHeaderBlock(lines: readonly string[], from: number): boolean {
  const block = lines.slice(from, from + 4);
  return (
    block.length >= 3 && block.every((line) => isHeaderLine(line) || /^[ \t]+\S/.test(line) || line === '')
  );
}

function isHeaderLine(line: string): boolean {
  return /^[a-z][a-z0-9-]{1,60}:(?: |\t|$|<)/i.test(line);
}

/** Up to the first empty line after the block has begun. */
function headerBlock(lines: readonly string[], from: number): string {
  const end = lines.indexOf('', from);
  return lines.slice(from, end < 0 ? undefined : end).join('\n');
}
