import { QuoteType, Tokenizer } from 'htmlparser2';
import type { Work } from '../../core/concurrency/slices.ts';
import {
  CHARACTERS_PER_STEP,
  createTag,
  lowerCased,
  RAW_ELEMENTS,
  type Span,
  type TokenHandler,
} from './tokens.ts';

/* htmlparser2's tokenizer, for the parts of HTML that scan.ts leaves to it. */

const MAX_CACHED_ENTITIES = 500;

/** Code points of entities, and null for those that are not exactly one; bounded by `MAX_CACHED_ENTITIES`. */
const entities = new Map<string, number | null>();

/** The code point of a reference with its `&` and `;`; null if it has none, several, or one and more text. */
export function codePointOf(entity: string): number | null {
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
 * Returns a function that reads what begins at `base` with the tokenizer, to the end of the first tag, comment or
 * declaration, and raw elements to their end; it returns the offset after it.
 */
export function createTokenizing(
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
