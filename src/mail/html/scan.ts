import { QuoteType, Tokenizer } from 'htmlparser2';
import type { Work } from '../../core/slices.ts';

/**
 * Splits HTML into tokens. htmlparser2's tokenizer defines them; it examines each character in a state machine. Text, tags
 * with quoted attributes and comments, which most HTML consists of, are found here with searches for the character that ends
 * them, in a fifth of the time; everything else (raw text such as style sheets, unquoted values, unusual entities, broken
 * HTML) is left to the tokenizer, up to the end of the next token. Both give the same tokens (`test/mail/html/scan.test.ts`
 * compares them).
 */
export interface TokenHandler {
  /** A piece of text without entities. Offsets in the source. */
  text(start: number, end: number): void;
  /** A decoded entity of text. `end`: the offset after it. */
  entity(codePoint: number, end: number): void;
  /** The name of a start tag; its attributes and `tagEnd` follow. */
  tagName(start: number, end: number): void;
  /** An attribute that was requested. `name`: in lower case. `value`: decoded. `span`: null for an attribute without a value. */
  attribute(name: string, value: string, span: Span | null): void;
  tagEnd(): void;
  /** The name of an end tag. */
  closeTag(start: number, end: number): void;
  /** The content of a comment. */
  comment(start: number, end: number): void;
}

/** Offsets in the source; `end` is exclusive. */
export interface Span {
  start: number;
  end: number;
}

const TAB = 9;
const LF = 10;
const FF = 12;
const CR = 13;
const SPACE = 32;
const EXCLAMATION_MARK = 33;
const DOUBLE_QUOTE = 34;
const SINGLE_QUOTE = 39;
const DASH = 45;
const SLASH = 47;
const LESS_THAN = 60;
const EQUALS = 61;
const GREATER_THAN = 62;

/** Characters that are read between two yields. */
const CHARACTERS_PER_STEP = 16 * 1024;
/** Elements whose content is not HTML: the tokenizer reads them to their end tag. */
const RAW_ELEMENTS: ReadonlySet<string> = new Set([
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

const TAG_NAME = /[a-z][a-z0-9]*(?=[\s/>])/iy;
const END_TAG_NAME = /[a-z][a-z0-9]*(?=[ \t\r\n\f]*>)/iy;
/** A numeric or named reference as it is usually written. */
const ENTITY = /&(?:#\d{1,6}|#x[\da-f]{1,5}|[a-z][a-z\d]{1,30});/iy;
const STARTS_AN_ENTITY = /[a-z#]/i;
const DOCTYPE = /<!doctype\s[^>]*>/iy;
const MAX_CACHED_ENTITIES = 500;

/** Reads the tokens of the HTML in steps. `requested`: names of attributes, in lower case. */
export function* scanningHtml(
  html: string,
  handler: TokenHandler,
  requested: ReadonlySet<string>,
): Work<void> {
  let tokenizing: ((base: number) => Work<number>) | null = null;
  let at = 0;
  let yieldAt = CHARACTERS_PER_STEP;
  while (at < html.length) {
    const next = scanToken(html, at, handler, requested);
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

/**
 * Reads the text before the next tag, or a tag or comment. Returns the offset after it; if the tokenizer has to read what
 * begins at an offset, that offset inverted (`~offset`): the handler has received what precedes it.
 */
function scanToken(html: string, at: number, handler: TokenHandler, requested: ReadonlySet<string>): number {
  if (html.charCodeAt(at) !== LESS_THAN) return scanText(html, at, handler);
  const code = html.charCodeAt(at + 1);
  if (code === SLASH) return scanEndTag(html, at, handler);
  if (code === EXCLAMATION_MARK) return scanComment(html, at, handler);
  return scanTag(html, at, handler, requested);
}

/** The length of text that is read in one step. */
const MAX_SCANNED_TEXT = 16 * 1024;

function scanText(html: string, at: number, handler: TokenHandler): number {
  const tag = html.indexOf('<', at);
  const end = Math.min(tag === -1 ? html.length : tag, at + MAX_SCANNED_TEXT);
  const piece = html.slice(at, end);
  const { length } = piece;
  let from = 0;
  for (;;) {
    const ampersand = piece.indexOf('&', from);
    if (ampersand === -1) break;
    if (ampersand > from) handler.text(at + from, at + ampersand);
    from = ampersand + 1;
    if (!STARTS_AN_ENTITY.test(html.charAt(at + from))) {
      handler.text(at + ampersand, at + from);
      continue;
    }
    ENTITY.lastIndex = at + ampersand;
    const [entity = ''] = ENTITY.exec(html) ?? [];
    const codePoint = entity === '' ? null : codePointOf(entity);
    if (codePoint === null) return ~(at + ampersand);
    from = ampersand + entity.length;
    handler.entity(codePoint, at + from);
    // The entity may end after the piece.
    if (from >= length) return at + from;
  }
  if (length > from) handler.text(at + from, at + length);
  return at + length;
}

function scanEndTag(html: string, at: number, handler: TokenHandler): number {
  END_TAG_NAME.lastIndex = at + 2;
  if (!END_TAG_NAME.test(html)) return ~at;
  const end = END_TAG_NAME.lastIndex;
  handler.closeTag(at + 2, end);
  return html.indexOf('>', end) + 1;
}

function scanComment(html: string, at: number, handler: TokenHandler): number {
  if (html.charCodeAt(at + 2) !== DASH || html.charCodeAt(at + 3) !== DASH) {
    DOCTYPE.lastIndex = at;
    return DOCTYPE.test(html) ? DOCTYPE.lastIndex : ~at;
  }
  const start = at + 4;
  // Complete comments are `<!-->` and `<!--->`, too, and others may end with `--!>`.
  if (html.charCodeAt(start) === GREATER_THAN || html.startsWith('->', start)) return ~at;
  for (let end = html.indexOf('--', start); end !== -1; end = html.indexOf('--', end + 1)) {
    const code = html.charCodeAt(end + 2);
    if (code === EXCLAMATION_MARK) return ~at;
    if (code !== GREATER_THAN) continue;
    handler.comment(start, end);
    return end + 3;
  }
  return ~at;
}

function isBlank(code: number): boolean {
  return code === SPACE || code === LF || code === TAB || code === CR || code === FF;
}

interface ScannedAttribute {
  name: string;
  value: string;
  span: Span | null;
}

function scanTag(html: string, at: number, handler: TokenHandler, requested: ReadonlySet<string>): number {
  TAG_NAME.lastIndex = at + 1;
  if (!TAG_NAME.test(html)) return ~at;
  const nameEnd = TAG_NAME.lastIndex;
  if (RAW_ELEMENTS.has(lowerCased(html.slice(at + 1, nameEnd)))) return ~at;
  let attributes: ScannedAttribute[] | null = null;
  let position = nameEnd;
  for (;;) {
    const code = html.charCodeAt(position);
    if (code === GREATER_THAN) break;
    if (isBlank(code) || code === SLASH) {
      position++;
      continue;
    }
    if (code === EQUALS || code === DOUBLE_QUOTE || code === SINGLE_QUOTE || code === LESS_THAN) return ~at;
    const start = position;
    position = endOfAttributeName(html, position);
    const name = requested.size === 0 ? '' : lowerCased(html.slice(start, position));
    while (isBlank(html.charCodeAt(position))) position++;
    let span: Span | null = null;
    if (html.charCodeAt(position) === EQUALS) {
      position++;
      while (isBlank(html.charCodeAt(position))) position++;
      const quote = html.charCodeAt(position);
      if (quote !== DOUBLE_QUOTE && quote !== SINGLE_QUOTE) return ~at;
      const valueEnd = html.indexOf(quote === DOUBLE_QUOTE ? '"' : "'", position + 1);
      if (valueEnd === -1) return ~at;
      span = { start: position + 1, end: valueEnd };
      position = valueEnd + 1;
    } else if (position >= html.length) {
      return ~at;
    }
    if (requested.has(name))
      (attributes ??= []).push({ name, value: span === null ? '' : attributeValue(html, span), span });
  }
  handler.tagName(at + 1, nameEnd);
  if (attributes !== null)
    for (const { name, value, span } of attributes) handler.attribute(name, value, span);
  handler.tagEnd();
  return position + 1;
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

function tokenize(source: string, callbacks: PartialCallbacks): void {
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
 * Returns a function that reads what begins at `base` with the tokenizer, to the end of the first tag, comment or
 * declaration, and raw elements to their end; it returns the offset after it.
 */
function createTokenizing(
  html: string,
  handler: TokenHandler,
  requested: ReadonlySet<string>,
): (base: number) => Work<number> {
  let base = 0;
  let next = -1;
  let isRaw = false;
  /** The attribute being read, '' when it is not requested. */
  let attribute = '';
  let value = '';
  let nameEnd = 0;
  const stopAt = (offset: number) => {
    next = offset;
    tokenizer.pause();
  };
  const tagEnd = (end: number) => {
    handler.tagEnd();
    if (!isRaw) stopAt(base + end + 1);
  };
  const valueSpan = (quote: QuoteType, endIndex: number): Span | null => {
    if (quote === QuoteType.NoValue) return null;
    BEFORE_VALUE.lastIndex = nameEnd;
    const start = nameEnd + (BEFORE_VALUE.exec(html)?.[0].length ?? 0);
    return { start, end: base + (quote >= QuoteType.Single ? endIndex - 1 : endIndex) };
  };
  const tokenizer = new Tokenizer(
    {},
    {
      ...IGNORED,
      onopentagname: (start, end) => {
        isRaw = RAW_ELEMENTS.has(lowerCased(html.slice(base + start, base + end)));
        handler.tagName(base + start, base + end);
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
        if (attribute !== '') handler.attribute(attribute, value, valueSpan(quote, endIndex));
      },
      onopentagend: tagEnd,
      onselfclosingtag: tagEnd,
      onclosetag: (start, end) => {
        handler.closeTag(base + start, base + end);
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
