import { tokenize } from './html-tokenizer.ts';
import {
  createTag,
  lowerCased,
  RAW_ELEMENTS,
  type Span,
  type StartTag,
  type TokenHandler,
} from './tokens.ts';

const TAB = 9;
const LF = 10;
const FF = 12;
const CR = 13;
const SPACE = 32;
const DOUBLE_QUOTE = 34;
const SINGLE_QUOTE = 39;
const SLASH = 47;
const LESS_THAN = 60;
const EQUALS = 61;
const GREATER_THAN = 62;

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
export function createTagScanner(
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

export type TagScanner = ReturnType<typeof createTagScanner>;

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
