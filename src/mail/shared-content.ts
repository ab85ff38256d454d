import type { Work } from '../core/concurrency/slices.ts';
import type { CopyParts } from './compose.ts';
import {
  type CopyDetails,
  type Mailbox,
  type MailingList,
  type MessageContent,
  personalize,
  type ReplyTo,
  type Tracking,
} from './content.ts';
import { encodeLines, lineEnd, type TextLines, textLines } from './encode.ts';
import { escapeHtml } from './html/escape.ts';
import { openTrackingPixel, trackAddressesInSteps, trackedAddresses } from './html/links.ts';
import { deriveTextInSteps } from './html/text-part.ts';
import { trackVisibility, VISIBILITY_ATTRIBUTES } from './html/visibility.ts';
import { type HtmlVisitor, walkHtmlInSteps } from './html/walk.ts';

/*
 * Content that messages share, stored once, and the content of each message: of the copies of a campaign, and of messages
 * that an account sends with the same template. stored-content.ts encodes both; `mergeContent` returns the
 * MessageContent of a message. `preparePartsInSteps` does once for all of them what does not depend on the recipient.
 * sending/render/render-shared.ts renders them.
 */

/** A text with placeholders for the values of a recipient. */
export interface SharedText {
  /** Texts around the placeholders: one more than there are placeholders. */
  texts: string[];
  /** The index of the value of each placeholder. The name of the field is stored in the database. */
  holes: number[];
}

/** The rendered texts of a template. The values of each part follow those of the part before it. */
export interface SharedTexts {
  /** Null for a message of text only. */
  html: SharedPart | null;
  /** Null: derived from the HTML. */
  text: SharedPart | null;
}

/** What the copies of a campaign share. */
export interface SharedContent extends SharedTexts {
  from: Mailbox;
  /** Domain of the Message-ID. */
  fromDomain: string;
  replyTo: ReplyTo | null;
  list: MailingList;
  /** Its values precede those of the HTML. */
  subject: SharedPart;
}

export interface SharedPart extends SharedText {
  /** Index of its first value. */
  first: number;
}

/** What belongs to one copy of a campaign. */
export interface OwnContent {
  /** Display name of the recipient, '' for none. */
  name: string;
  /** The values of the placeholders, escaped for their part. */
  values: string[];
}

/** What belongs to one message that shares only the texts of its template. */
export interface TemplatedContent {
  /** The values of the placeholders, escaped for their part. */
  values: string[];
  fields: Omit<MessageContent, 'html' | 'text'>;
}

/** The properties of a copy's message that are not part of its content. */
export interface CopyIdentity {
  messageId: string;
  /** Epoch ms of acceptance. */
  date: number;
}

/** Returns the content of one message. `shared`: a SharedContent for an OwnContent. */
export function mergeContent(
  shared: SharedTexts,
  own: OwnContent | TemplatedContent,
  { messageId, date }: CopyIdentity,
  recipient: string,
): MessageContent {
  const rendered = (part: SharedPart) => joinShared(part, own.values, part.first);
  const texts = {
    html: shared.html === null ? '' : rendered(shared.html),
    text: shared.text === null ? null : rendered(shared.text),
  };
  if ('fields' in own) return { ...own.fields, ...texts };
  // Sound: only copies of campaigns have an OwnContent, which refers to the shared content of its campaign.
  const { from, fromDomain, replyTo, list, subject } = shared as SharedContent;
  return {
    subject: rendered(subject),
    ...texts,
    from,
    to: [{ name: own.name, address: recipient }],
    cc: [],
    replyTo,
    headers: [],
    attachments: [],
    list,
    messageId: `${messageId}@${fromDomain}`,
    date,
  };
}

/**
 * The rendered text. `first`: the index of the text's first value among `values`. Concatenated instead of joined: V8 copies
 * the texts only when the result is read, and composed copies of a campaign do not need it.
 */
export function joinShared({ texts, holes }: SharedText, values: readonly string[], first = 0): string {
  let out = texts[0] ?? '';
  for (const [index, hole] of holes.entries()) out += (values[first + hole] ?? '') + (texts[index + 1] ?? '');
  return out;
}

/**
 * The parts of messages with shared texts (the copies of a campaign, or messages with the same template) that do not depend on
 * the recipient, prepared once for all of them: the text that is derived from the HTML, the addresses of tracked links, and the
 * encoded lines without a recipient's values. `partsOf` adds the values of one message. The result equals what compose.ts
 * computes from the merged content, byte for byte; where values could change the structure of the HTML, it is null, and
 * compose.ts does the work.
 */
export interface SharedParts {
  /** The text derived from the HTML; null: each copy has to derive it. */
  text: SharedText | null;
  /** Null: each copy has to encode its HTML. */
  html: SharedHtml | null;
  /** The values for which `text` is valid, and the tracked links of `html`. */
  isSimple(value: string): boolean;
}

interface SharedHtml {
  /** What was tracked when the links were found. */
  variant: string;
  /** Whether values could move or change a tracked link. */
  hasLinks: boolean;
  addresses: string[];
  /** Encoded lines, or consecutive lines with marks. */
  pieces: (TextLines | string)[];
}

/**
 * Represents the value of a placeholder while the HTML is read. No caller can write NUL. It begins and ends with a letter like
 * a simple value.
 */
const placeholder = (index: number, letter = LATIN): string => `${letter}\u0000${index}\u0000${letter}`;
const PLACEHOLDER = /[xس]\0(\d+)\0[xس]/g;
/** A letter after which a joiner has no meaning, and one after which it may change the form of the letters. */
const LATIN = 'x';
const ARABIC = 'س';
/** Represents a tracked address, and the pixel. */
const addressMark = (index: number): string => `\u0000a${index}\u0000`;
const PIXEL_MARK = '\u0000i\u0000';
/** All of these marks in the HTML. */
const OWN_MARK = /x\0(\d+)\0x|\0a(\d+)\0|\0i\0/g;

/** Letters and digits, in words with one space, hyphen or full stop between them: never read as HTML, and never collapsed. */
const SIMPLE = /^[\p{L}\p{N}]+(?:[ .-][\p{L}\p{N}]+)*$/u;
const SIMPLE_LATIN = /^[A-Za-z0-9\u00c0-\u02ff]+(?:[ .-][A-Za-z0-9\u00c0-\u02ff]+)*$/;
/** Joiners, and entities that may be some: the text part keeps them after letters of joining scripts only. */
const MAY_HAVE_JOINERS = /[\u200c\u200d]|&(?:zw|#)/i;
/** A value after it could become part of an entity. */
const OPEN_ENTITY = /&[#\w]*$/;

/** Prepares the parts, in steps, for copies with this tracking. */
export function* preparePartsInSteps(
  { html, text }: Pick<SharedContent, 'html' | 'text'>,
  tracking: Tracking | undefined,
): Work<SharedParts> {
  if (html === null) return { text: null, html: null, isSimple: () => false };
  const source = withPlaceholders(html);
  yield;
  const areInText = html.holes.length === 0 || (yield* arePlaceholdersInText(html, source));
  const derived = text === null && areInText ? splitAtPlaceholders(yield* deriveTextInSteps(source)) : null;
  const simple =
    derived === null || (yield* isSameForAllLetters(html, source, derived)) ? SIMPLE : SIMPLE_LATIN;
  return {
    text: derived,
    html: yield* prepareHtmlInSteps(source, areInText, tracking),
    isSimple: (value) => simple.test(value),
  };
}

/** The prepared parts of one copy. `values`: those of the content (`OwnContent`). */
export function partsOf(
  { text, html, isSimple }: SharedParts,
  shared: Pick<SharedContent, 'html'>,
  values: readonly string[],
  copy: CopyDetails,
): CopyParts {
  const part = shared.html;
  if (part === null) return { text: null, html: null };
  const areSimple = part.holes.every((hole) => isSimple(values[part.first + hole] ?? ''));
  const isKnown = html !== null && html.variant === variantOf(copy.tracking) && (areSimple || !html.hasLinks);
  return {
    text: text !== null && areSimple ? joinShared(text, values, part.first) : null,
    html: isKnown ? encodeCopy(html, part, values, copy) : null,
  };
}

/** Whether parts that were prepared for other copies can be used for these. */
export function isPreparedFor({ html }: SharedParts, tracking: Tracking | undefined): boolean {
  return html === null || html.variant === variantOf(tracking);
}

/** Copies of one variant have the same tracked links. */
function variantOf(tracking: Tracking | undefined): string {
  if (tracking === undefined) return '';
  const { linkPrefix, clickSigner, pixelUrl } = tracking;
  return `${clickSigner === null ? '' : 'clicks'} ${pixelUrl === null ? '' : 'opens'} ${linkPrefix}`;
}

function withPlaceholders({ texts, holes }: SharedPart, letter?: string): string {
  return holes.reduce(
    (out, hole, index) => out + placeholder(hole, letter) + (texts[index + 1] ?? ''),
    texts[0] ?? '',
  );
}

/** Whether the derived text is the same for values of any letters: it depends on the letter before a joiner. */
function* isSameForAllLetters(html: SharedPart, source: string, { texts }: SharedText): Work<boolean> {
  if (html.holes.length === 0 || !MAY_HAVE_JOINERS.test(source)) return true;
  const other = splitAtPlaceholders(yield* deriveTextInSteps(withPlaceholders(html, ARABIC)));
  return other.texts.every((text, index) => text === texts[index]);
}

function splitAtPlaceholders(text: string): SharedText {
  const texts: string[] = [];
  const holes: number[] = [];
  let at = 0;
  for (const match of text.matchAll(PLACEHOLDER)) {
    texts.push(text.slice(at, match.index));
    holes.push(Number(match[1]));
    at = match.index + match[0].length;
  }
  texts.push(text.slice(at));
  return { texts, holes };
}

/**
 * Whether all placeholders are in text, and not in that of a link: there a value changes neither the structure of the HTML nor
 * what is compared with a URL.
 */
function* arePlaceholdersInText({ texts, holes }: SharedPart, source: string): Work<boolean> {
  if (texts.some((text, index) => index < holes.length && OPEN_ENTITY.test(text))) return false;
  const visibility = trackVisibility();
  let isInLink = false;
  let found = 0;
  // Links begin and end as in text-part.ts.
  const visitor: HtmlVisitor = {
    open: (name, attributes) => {
      visibility.open(name, attributes);
      if (name === 'a' && !visibility.isRemoved()) isInLink = true;
    },
    close: (name) => {
      if (name === 'a' && !visibility.isRemoved()) isInLink = false;
      visibility.close(name);
    },
    text: (piece) => {
      if (!isInLink) found += piece.match(PLACEHOLDER)?.length ?? 0;
    },
  };
  yield* walkHtmlInSteps(source, visitor, VISIBILITY_ATTRIBUTES);
  return found === holes.length;
}

/** Null: what is tracked depends on the values of a recipient. */
function* prepareHtmlInSteps(
  source: string,
  areInText: boolean,
  tracking: Tracking | undefined,
): Work<SharedHtml | null> {
  const variant = variantOf(tracking);
  if (tracking === undefined)
    return { variant, hasLinks: false, addresses: [], pieces: yield* splitLinesInSteps(source) };
  if (!areInText) return null;
  const addresses: string[] = [];
  const tracked = yield* trackAddressesInSteps(source, tracking, {
    address: (address) => addressMark(addresses.push(address) - 1),
    pixel: PIXEL_MARK,
  });
  if (tracked === null) return null;
  return { variant, hasLinks: true, addresses, pieces: yield* splitLinesInSteps(tracked) };
}

/** Characters of lines that are encoded between two yields. */
const LINES_PER_STEP = 64 * 1024;

/** Splits HTML at line feeds: encodes runs of lines without a mark, and keeps runs of lines with marks as text. */
function* splitLinesInSteps(html: string): Work<(TextLines | string)[]> {
  const pieces: (TextLines | string)[] = [];
  let at = 0;
  while (at < html.length) {
    const mark = html.indexOf('\u0000', at);
    let end = mark === -1 ? html.length : html.lastIndexOf('\n', mark) + 1;
    if (end > at) {
      if (end - at > LINES_PER_STEP) end = Math.min(lineEnd(html, at + LINES_PER_STEP), end);
      pieces.push(textLines(html.slice(at, end)));
      at = end;
      yield;
      continue;
    }
    end = lineEnd(html, mark);
    pieces.push(html.slice(at, end));
    at = end;
  }
  return pieces;
}

function encodeCopy(
  { addresses, pieces }: SharedHtml,
  { first }: SharedPart,
  values: readonly string[],
  copy: CopyDetails,
) {
  const { tracking } = copy;
  const addressOf = tracking === undefined ? null : trackedAddresses(tracking);
  const fill = (lines: string) =>
    lines.replace(OWN_MARK, (_, hole?: string, address?: string) => {
      if (hole !== undefined) return values[first + Number(hole)] ?? '';
      if (address !== undefined) return escapeHtml(addressOf?.(addresses[Number(address)] ?? '') ?? '');
      return openTrackingPixel(tracking?.pixelUrl ?? null);
    });
  return encodeLines(
    pieces.map((piece) =>
      typeof piece === 'string' ? textLines(personalize(fill(piece), copy, 'html')) : piece,
    ),
  );
}
