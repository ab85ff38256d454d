import { QuoteType, Tokenizer } from 'htmlparser2';
import type { Work } from '../../core/concurrency/slices.ts';

/* The tokens of HTML, and what the modules that read them share. */

/** Receives the tokens of HTML in their order. */
export interface TokenHandler {
  /** A piece of text without entities. Offsets in the source. */
  text(start: number, end: number): void;
  /** A decoded entity of text. `end`: the offset after it. */
  entity(codePoint: number, end: number): void;
  /** A complete start tag. `start`: offset of the `<`. Equal tags may be one object. */
  startTag(tag: StartTag, start: number): void;
  /** An end tag. `name`: in lower case. `start`: offset of the `<`. */
  endTag(name: string, start: number): void;
  /** The content of a comment. */
  comment(start: number, end: number): void;
}

/** A start tag: its name, in lower case, and those of its attributes that were requested. */
export interface StartTag {
  name: string;
  /** Values with entities decoded; of duplicates the first. Empty for an attribute without a value. */
  attributes: ReadonlyMap<string, string>;
  /** The values in the source, without quotes, counted from the `<`; not of attributes without a value. */
  spans: ReadonlyMap<string, Span>;
}

/** Offsets; `end` is exclusive. */
export interface Span {
  start: number;
  end: number;
}

/** Characters that are read between two yields. */
export const CHARACTERS_PER_STEP = 16 * 1024;
/** Elements whose content is not HTML: the tokenizer reads them to their end tag. */
export const RAW_ELEMENTS: ReadonlySet<string> = new Set([
  'iframe',
  'noembed',
  'noframes',
  'plaintext',
  'script',
  'style',
  'textarea',
  'title',
  'xmp',
]);
/** The most frequent names; a lookup costs less than a conversion to lower case. */
const COMMON_NAMES: ReadonlySet<string> = new Set(
  'a b br body center div em font h1 h2 h3 head html i img li p s span strong table tbody td th title tr u ul align alt bgcolor border cellpadding cellspacing class clicktracking color data-no-track dir height href id lang role src style target valign width'.split(
    ' ',
  ),
);

/** A name of an element or attribute in lower case. */
export function lowerCased(name: string): string {
  return COMMON_NAMES.has(name) ? name : name.toLowerCase();
}

const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map();
const NO_SPANS: ReadonlyMap<string, Span> = new Map();

/** Collects the attributes of a tag; of duplicates the first counts. `name`: in lower case. */
export function createTag(name: string) {
  let attributes: Map<string, string> | null = null;
  let spans: Map<string, Span> | null = null;
  return {
    add: (attribute: string, value: string, span: Span | null): void => {
      attributes ??= new Map();
      if (attributes.has(attribute)) return;
      attributes.set(attribute, value);
      if (span !== null) (spans ??= new Map()).set(attribute, span);
    },
    ended: (): StartTag => ({ name, attributes: attributes ?? NO_ATTRIBUTES, spans: spans ?? NO_SPANS }),
  };
}

const EXCLAMATION_MARK = 33;
const DASH = 45;
const SLASH = 47;
const LESS_THAN = 60;
const GREATER_THAN = 62;

/** A numeric or named reference as it is usually written. */
const ENTITY = /&(?:#\d{1,6}|#x[\da-f]{1,5}|[a-z][a-z\d]{1,30});/iy;
const STARTS_AN_ENTITY = /[a-z#]/i;
const DOCTYPE = /<!doctype\s[^>]*>/iy;
/** The length of text that is read in one step. */
const MAX_SCANNED_TEXT = 16 * 1024;
/** The length of a comment that is read in one step. */
const MAX_SCANNED_COMMENT = 64 * 1024;

/**
 * Splits HTML into tokens, in steps. `requested`: names of attributes, in lower case.
 *
 * htmlparser2's tokenizer defines the tokens; it examines each character in a state machine. Text, tags with quoted
 * attributes and comments, which most HTML consists of, are found here with searches for the character that ends them, in a
 * fraction of the time; everything else (raw text such as style sheets, unquoted values, unusual entities, broken HTML) is
 * left to the tokenizer, up to the end of the next token. Both give the same tokens (`test/mail/html/tokens.test.ts` compares
 * them).
 */
export function* scanHtmlInSteps(
  html: string,
  handler: TokenHandler,
  requested: ReadonlySet<string>,
): Work<void> {
  const tags = createTagScanner(html, handler, requested);
  const scanText = createTextScanner(html, handler);
  /** Each returns the offset after what it read; `~offset`: the tokenizer has to read what begins there. */
  const scanToken = (offset: number): number => {
    if (html.charCodeAt(offset) !== LESS_THAN) return scanText(offset);
    const code = html.charCodeAt(offset + 1);
    if (code === SLASH) return tags.scanEnd(offset);
    if (code === EXCLAMATION_MARK) return scanComment(html, offset, handler);
    return tags.scanStart(offset);
  };
  let tokenizing: ((base: number) => Work<number>) | null = null;
  let at = 0;
  let yieldAt = CHARACTERS_PER_STEP;
  while (at < html.length) {
    const next = scanToken(at);
    if (next >= 0) {
      at = next;
    } else {
      tokenizing ??= createTokenizing(html, handler, requested);
      at = yield* tokenizing(~next);
    }
    if (at >= yieldAt) {
      yield;
      yieldAt = at + CHARACTERS_PER_STEP;
    }
  }
}

/** Returns a function that reads the text before the next tag. The handler has received what precedes a returned `~offset`. */
function createTextScanner(html: string, handler: TokenHandler): (at: number) => number {
  /** The first ampersand from the last offset on, so that each character is searched once. */
  let ampersand = -1;
  return (at) => {
    const tag = html.indexOf('<', at);
    const end = Math.min(tag === -1 ? html.length : tag, at + MAX_SCANNED_TEXT);
    let from = at;
    for (;;) {
      if (ampersand < from) ampersand = positionOf(html, '&', from);
      if (ampersand >= end) break;
      if (ampersand > from) handler.text(from, ampersand);
      from = ampersand + 1;
      if (!STARTS_AN_ENTITY.test(html.charAt(from))) {
        handler.text(ampersand, from);
        continue;
      }
      ENTITY.lastIndex = ampersand;
      const [entity = ''] = ENTITY.exec(html) ?? [];
      const codePoint = entity === '' ? null : codePointOf(entity);
      if (codePoint === null) return ~ampersand;
      from = ampersand + entity.length;
      handler.entity(codePoint, from);
      // The entity may end after the piece.
      if (from >= end) return from;
    }
    if (end > from) handler.text(from, end);
    return end;
  };
}

/** The first position from `from` on; the length when there is none. */
function positionOf(html: string, character: string, from: number): number {
  const at = html.indexOf(character, from);
  return at === -1 ? html.length : at;
}

function scanComment(html: string, at: number, handler: TokenHandler): number {
  if (html.charCodeAt(at + 2) !== DASH || html.charCodeAt(at + 3) !== DASH) {
    DOCTYPE.lastIndex = at;
    return DOCTYPE.test(html) ? DOCTYPE.lastIndex : ~at;
  }
  const start = at + 4;
  // Complete comments are `<!-->` and `<!--->`, too, and others may end with `--!>`.
  if (html.charCodeAt(start) === GREATER_THAN || html.startsWith('->', start)) return ~at;
  // What is left is a long comment of dashes, or without an end: it is read in steps.
  const limit = start + MAX_SCANNED_COMMENT;
  for (let end = html.indexOf('--', start); end !== -1 && end < limit; end = html.indexOf('--', end + 1)) {
    const code = html.charCodeAt(end + 2);
    if (code === EXCLAMATION_MARK) return ~at;
    if (code !== GREATER_THAN) continue;
    handler.comment(start, end);
    return end + 3;
  }
  return ~at;
}

const MAX_CACHED_ENTITIES = 500;

/** Code points of entities, and null for those that are not exactly one; bounded by `MAX_CACHED_ENTITIES`. */
const entities = new Map<string, number | null>();

/** The code point of a reference with its `&` and `;`; null if it has none, several, or one and more text. */
function codePointOf(entity: string): number | null {
  const cached = entities.get(entity);
  if (cached !== undefined) return cached;
  const codePoints: number[] = [];
  let hasText = false;
  tokenize(entity, {
    ontextentity: (codePoint) => codePoints.push(codePoint),
    ontext: () => {
      hasText = true;
    },
  });
  const [codePoint, ...more] = codePoints;
  const result = codePoint === undefined || more.length > 0 || hasText ? null : codePoint;
  if (entities.size < MAX_CACHED_ENTITIES) entities.set(entity, result);
  return result;
}

interface PartialCallbacks {
  onattribdata?(start: number, end: number, source: string): void;
  onattribentity?(codePoint: number): void;
  ontextentity?(codePoint: number): void;
  ontext?(): void;
}

/** Tokenizes a short source. */
export function tokenize(source: string, callbacks: PartialCallbacks): void {
  const tokenizer = new Tokenizer(
    {},
    {
      ...IGNORED,
      onattribdata: (start, end) => callbacks.onattribdata?.(start, end, source),
      onattribentity: (codePoint) => callbacks.onattribentity?.(codePoint),
      ontextentity: (codePoint) => callbacks.ontextentity?.(codePoint),
      ontext: () => callbacks.ontext?.(),
    },
  );
  tokenizer.write(source);
  tokenizer.end();
}

const ignore = () => undefined;
const IGNORED = {
  onattribdata: ignore,
  onattribend: ignore,
  onattribentity: ignore,
  onattribname: ignore,
  oncdata: ignore,
  onclosetag: ignore,
  oncomment: ignore,
  ondeclaration: ignore,
  onend: ignore,
  onopentagend: ignore,
  onopentagname: ignore,
  onprocessinginstruction: ignore,
  onselfclosingtag: ignore,
  ontext: ignore,
  ontextentity: ignore,
};

/** The characters between an attribute's name and its value. */
const BEFORE_VALUE = /[ \t\n\f\r]*=[ \t\n\f\r]*["']?/y;

/**
 * htmlparser2's tokenizer, for the HTML that `scanHtmlInSteps` leaves to it. Returns a function that reads what begins at
 * `base`, to the end of the first tag, comment or declaration, and raw elements to their end; it returns the offset after it.
 */
function createTokenizing(
  html: string,
  handler: TokenHandler,
  requested: ReadonlySet<string>,
): (base: number) => Work<number> {
  let base = 0;
  let next = -1;
  let isRaw = false;
  let tag = createTag('');
  let tagStart = 0;
  /** The attribute being read, '' when it is not requested. */
  let attribute = '';
  let value = '';
  let nameEnd = 0;
  const stopAt = (offset: number) => {
    next = offset;
    tokenizer.pause();
  };
  const tagEnd = (end: number) => {
    handler.startTag(tag.ended(), tagStart);
    if (!isRaw) stopAt(base + end + 1);
  };
  const valueSpan = (quote: QuoteType, endIndex: number): Span | null => {
    if (quote === QuoteType.NoValue) return null;
    BEFORE_VALUE.lastIndex = nameEnd;
    const start = nameEnd + (BEFORE_VALUE.exec(html)?.[0].length ?? 0);
    const end = base + (quote >= QuoteType.Single ? endIndex - 1 : endIndex);
    return { start: start - tagStart, end: end - tagStart };
  };
  const tokenizer = new Tokenizer(
    {},
    {
      ...IGNORED,
      onopentagname: (start, end) => {
        const name = lowerCased(html.slice(base + start, base + end));
        isRaw = RAW_ELEMENTS.has(name);
        tag = createTag(name);
        tagStart = base + start - 1;
      },
      onattribname: (start, end) => {
        const name = requested.size > 0 ? lowerCased(html.slice(base + start, base + end)) : '';
        attribute = requested.has(name) ? name : '';
        value = '';
        nameEnd = base + end;
      },
      onattribdata: (start, end) => {
        if (attribute !== '') value += html.slice(base + start, base + end);
      },
      onattribentity: (codePoint) => {
        if (attribute !== '') value += String.fromCodePoint(codePoint);
      },
      onattribend: (quote, endIndex) => {
        if (attribute !== '') tag.add(attribute, value, valueSpan(quote, endIndex));
      },
      onopentagend: tagEnd,
      onselfclosingtag: tagEnd,
      onclosetag: (start, end) => {
        handler.endTag(lowerCased(html.slice(base + start, base + end)), base + start - 2);
        const tagEndsAt = html.indexOf('>', base + end);
        stopAt(tagEndsAt === -1 ? html.length : tagEndsAt + 1);
      },
      ontext: (start, end) => {
        // At the end of the HTML an unfinished tag is reported as text from -1. It is not text (HTML Standard §13.2.5.6).
        if (start >= 0) handler.text(base + start, base + end);
      },
      ontextentity: (codePoint, end) => handler.entity(codePoint, base + end),
      oncomment: (start, end, endOffset) => {
        handler.comment(base + start, base + end - endOffset);
        stopAt(base + end + 1);
      },
      ondeclaration: (_, end) => stopAt(base + end + 1),
    },
  );
  return function* tokenizing(from) {
    base = from;
    next = -1;
    isRaw = false;
    tokenizer.reset();
    for (let at = base; at < html.length; at += CHARACTERS_PER_STEP) {
      tokenizer.write(html.slice(at, at + CHARACTERS_PER_STEP));
      if (next !== -1) return next;
      yield;
    }
    tokenizer.end();
    return html.length;
  };
}

const TAB = 9;
const LF = 10;
const FF = 12;
const CR = 13;
const SPACE = 32;
const DOUBLE_QUOTE = 34;
const SINGLE_QUOTE = 39;
const EQUALS = 61;

const TAG_NAME = /[a-z][a-z0-9]*(?=[\s/>])/iy;
const END_TAG = /<\/([a-z][a-z0-9]*)[ \t\r\n\f]*>/iy;

/** Mail repeats a few tags with long styles in each row. Limits of the cache of one text: tags, and characters of a tag. */
const MAX_KNOWN_TAGS = 256;
const MAX_KNOWN_LENGTH = 512;

/**
 * Scans the tags of one text. `scanStart` and `scanEnd` return the offset after the tag, or `~at` when the tokenizer has to
 * read it. Calls `handler` for each tag that they read, with the attributes in `requested` (lower case), whose spans are
 * relative to the tag. Caches the first 256 different tags of up to 512 characters.
 */
function createTagScanner(
  html: string,
  handler: Pick<TokenHandler, 'startTag' | 'endTag'>,
  requested: ReadonlySet<string>,
) {
  const startTags = createKnownTags<StartTag>(html);
  const endTags = createKnownTags<string>(html);

  function scanStart(at: number): number {
    const known = startTags.find(at);
    if (known !== null) {
      handler.startTag(known.tag, at);
      return at + known.source.length;
    }
    const read = readStartTag(html, at, requested);
    if (read === null) return ~at;
    startTags.add(at, read.end, read.tag);
    handler.startTag(read.tag, at);
    return read.end;
  }

  function scanEnd(at: number): number {
    const known = endTags.find(at);
    if (known !== null) {
      handler.endTag(known.tag, at);
      return at + known.source.length;
    }
    END_TAG.lastIndex = at;
    const written = END_TAG.exec(html)?.[1];
    if (written === undefined) return ~at;
    const name = lowerCased(written);
    const end = END_TAG.lastIndex;
    endTags.add(at, end, name);
    handler.endTag(name, at);
    return end;
  }

  return { scanStart, scanEnd };
}

interface KnownTag<Tag> {
  /** The whole tag, which alone determines how it is read. Its only `>` is the last character. */
  source: string;
  tag: Tag;
  /** The known tag that followed it last. */
  next: KnownTag<Tag> | null;
}

/**
 * Finds tags that were read before. The rows of a mail have the same tags in the same order: the one that followed last time is
 * compared first, because a map has to hash the source.
 */
function createKnownTags<Tag>(html: string) {
  const all = new Map<string, KnownTag<Tag>>();
  let last: KnownTag<Tag> | null = null;

  function follow(known: KnownTag<Tag>): KnownTag<Tag> {
    if (last !== null) last.next = known;
    last = known;
    return known;
  }

  return {
    find: (at: number): KnownTag<Tag> | null => {
      const next = last?.next ?? null;
      // Not startsWith, which V8 compiles to a loop over single characters: five times as long.
      if (next !== null && html.substring(at, at + next.source.length) === next.source) {
        last = next;
        return next;
      }
      const end = html.indexOf('>', at) + 1;
      if (end === 0 || end - at > MAX_KNOWN_LENGTH) return null;
      const known = all.get(html.slice(at, end));
      return known === undefined ? null : follow(known);
    },
    /** Not for a tag with a `>` in a quoted value. */
    add: (at: number, end: number, tag: Tag): void => {
      if (all.size >= MAX_KNOWN_TAGS || end - at > MAX_KNOWN_LENGTH || html.indexOf('>', at) + 1 !== end)
        return;
      const source = html.slice(at, end);
      all.set(source, follow({ source, tag, next: null }));
    },
  };
}

/** Reads a start tag with quoted attributes; null when the tokenizer has to read it. `end`: the offset after it. */
function readStartTag(
  html: string,
  at: number,
  requested: ReadonlySet<string>,
): { tag: StartTag; end: number } | null {
  TAG_NAME.lastIndex = at + 1;
  if (!TAG_NAME.test(html)) return null;
  const nameEnd = TAG_NAME.lastIndex;
  const name = lowerCased(html.slice(at + 1, nameEnd));
  if (RAW_ELEMENTS.has(name)) return null;
  const tag = createTag(name);
  let position = nameEnd;
  for (;;) {
    const code = html.charCodeAt(position);
    if (code === GREATER_THAN) return { tag: tag.ended(), end: position + 1 };
    if (isBlank(code) || code === SLASH) {
      position++;
      continue;
    }
    if (code === EQUALS || code === DOUBLE_QUOTE || code === SINGLE_QUOTE || code === LESS_THAN) return null;
    const start = position;
    position = endOfAttributeName(html, position);
    const attribute = requested.size === 0 ? '' : lowerCased(html.slice(start, position));
    while (isBlank(html.charCodeAt(position))) position++;
    let span: Span | null = null;
    if (html.charCodeAt(position) === EQUALS) {
      position++;
      while (isBlank(html.charCodeAt(position))) position++;
      const quote = html.charCodeAt(position);
      if (quote !== DOUBLE_QUOTE && quote !== SINGLE_QUOTE) return null;
      const valueEnd = html.indexOf(quote === DOUBLE_QUOTE ? '"' : "'", position + 1);
      if (valueEnd === -1) return null;
      span = { start: position + 1, end: valueEnd };
      position = valueEnd + 1;
    } else if (position >= html.length) {
      return null;
    }
    if (!requested.has(attribute)) continue;
    if (span === null) tag.add(attribute, '', null);
    else tag.add(attribute, attributeValue(html, span), { start: span.start - at, end: span.end - at });
  }
}

function isBlank(code: number): boolean {
  return code === SPACE || code === LF || code === TAB || code === CR || code === FF;
}

function endOfAttributeName(html: string, at: number): number {
  let position = at + 1;
  for (;;) {
    const code = html.charCodeAt(position);
    if (code === EQUALS || code === GREATER_THAN || code === SLASH || isBlank(code) || Number.isNaN(code))
      return position;
    position++;
  }
}

function attributeValue(html: string, { start, end }: Span): string {
  const value = html.slice(start, end);
  if (!value.includes('&')) return value;
  let decoded = '';
  const quote = html.charAt(end);
  tokenize(`<a a=${quote}${value}${quote}>`, {
    onattribdata: (from, to, source) => {
      decoded += source.slice(from, to);
    },
    onattribentity: (codePoint) => {
      decoded += String.fromCodePoint(codePoint);
    },
  });
  return decoded;
}
