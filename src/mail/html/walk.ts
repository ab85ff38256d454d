import { QuoteType, Tokenizer } from 'htmlparser2';
import { type Work, withoutPause } from '../../core/concurrency/slices.ts';

/*
 * Walks HTML as the parser of a mail client tokenizes it: tags, their attributes, and text that can be rendered.
 * Comments (conditional ones too) and elements that are never rendered produce no text. No tree is built, so
 * time and memory are linear however deep or broken the HTML is.
 */

/** Offsets; `end` is exclusive. */
export interface Span {
  start: number;
  end: number;
}

/** Receives the parts of HTML in their order; all callbacks are optional. */
export interface HtmlVisitor {
  /**
   * A start tag. `name`: in lower case. `attributes`: the requested ones, entities decoded; of duplicates the first.
   * `spans`: their values in the source, without quotes, counted from the `<`. `start`: offset of the `<`.
   */
  open?(
    name: string,
    attributes: ReadonlyMap<string, string>,
    spans: ReadonlyMap<string, Span>,
    start: number,
  ): void;
  /** An end tag. `start`: offset of the `<`. */
  close?(name: string, start: number): void;
  /** A piece of text with entities decoded; a run of text may arrive in several pieces. `start`: its offset. */
  text?(piece: string, start: number): void;
  /** The text between `<!--` and `-->`. */
  comment?(span: Span): void;
}

/** Elements whose content is never rendered as part of the page. */
const UNRENDERED = new Set([
  'iframe',
  'noembed',
  'noframes',
  'plaintext',
  'script',
  'style',
  'template',
  'textarea',
  'title',
  'xmp',
]);

/** Elements without content (HTML Standard §13.1.2). */
export const VOID_ELEMENTS: ReadonlySet<string> = new Set([
  'area',
  'base',
  'br',
  'col',
  'embed',
  'hr',
  'img',
  'input',
  'link',
  'meta',
  'source',
  'track',
  'wbr',
]);

/** Elements whose end tag is optional before the next one of the same name. */
export const ENDED_BY_THE_NEXT: ReadonlySet<string> = new Set([
  'dd',
  'dt',
  'li',
  'option',
  'p',
  'td',
  'th',
  'tr',
]);

/**
 * Calls the visitor in document order. `requested`: names of the attributes that it needs, in lower case; a constant, because
 * the tags that were read are kept for each set.
 */
export function walkHtml(html: string, visitor: HtmlVisitor, requested?: ReadonlySet<string>): void {
  withoutPause(walkHtmlInSteps(html, visitor, requested));
}

/** Characters that are read between two yields. */
const CHARACTERS_PER_STEP = 16 * 1024;
/** A longer run of text arrives in several pieces, so that no step of the walk takes long. */
const MAX_PIECE = 32 * 1024;
/** Characters that belong together with the next one: a carriage return, the first half of a surrogate pair. */
const CONTINUES = /[\r\ud800-\udbff]/;
/** The characters between an attribute's name and its value. */
const BEFORE_VALUE = /[ \t\n\f\r]*=[ \t\n\f\r]*["']?/y;

const NONE: ReadonlySet<string> = new Set();
const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map();
const NO_SPANS: ReadonlyMap<string, Span> = new Map();
const ignore = () => undefined;

/** A tag as the tokenizer read it. */
interface Tag {
  name: string;
  isEnd: boolean;
  attributes: ReadonlyMap<string, string>;
  spans: ReadonlyMap<string, Span>;
}

/**
 * Tags that were read twice, by their source: mail consists of few tags that are repeated, and comparing one takes a tenth of the
 * time of reading it. What the tokenizer reads from a tag that ends at its first `>` depends on nothing before or after it.
 */
interface KnownTags {
  tags: Map<string, KnownTag>;
  /** Hashes of tags that were read once, such as links that no other mail has. */
  seen: Int32Array;
}

interface KnownTag extends Tag, Followed {
  source: string;
}

/** The tags that followed one last: comparing them takes less time than finding them. */
interface Followed {
  next: KnownTag | null;
  other: KnownTag | null;
}

/** By the requested attributes. */
const knownTags = new WeakMap<ReadonlySet<string>, KnownTags>();
const MAX_KNOWN_TAGS = 1000;
/** Tags of one HTML that are kept: one with more has few that are repeated. */
const MAX_NEW_TAGS = 250;
const MAX_KNOWN_LENGTH = 500;
/** A power of two. */
const SEEN_HASHES = 4096;

function knownTagsOf(requested: ReadonlySet<string>): KnownTags {
  const known = knownTags.get(requested) ?? { tags: new Map(), seen: new Int32Array(SEEN_HASHES) };
  knownTags.set(requested, known);
  return known;
}

/** Whether the tag was read before. */
function wasSeen({ seen }: KnownTags, source: string): boolean {
  if (source.length > MAX_KNOWN_LENGTH) return false;
  let hash = 0;
  for (let at = 0; at < source.length; at++) hash = Math.imul(31, hash) + source.charCodeAt(at);
  hash |= 0;
  const slot = hash & (SEEN_HASHES - 1);
  if (seen[slot] === hash) return true;
  seen[slot] = hash;
  return false;
}

/** Not a slice of the HTML, which would keep all of it in memory. */
function remember({ tags }: KnownTags, source: string, tag: Tag): void {
  if (tags.size >= MAX_KNOWN_TAGS) tags.clear();
  const own = ownCopy(source);
  tags.set(own, {
    source: own,
    next: null,
    other: null,
    name: ownCopy(tag.name),
    isEnd: tag.isEnd,
    attributes: new Map(Array.from(tag.attributes, ([name, value]) => [ownCopy(name), ownCopy(value)])),
    spans: new Map(Array.from(tag.spans, ([name, span]) => [ownCopy(name), span])),
  });
}

function ownCopy(text: string): string {
  return String(JSON.parse(JSON.stringify(text)));
}

/** `walkHtml` in steps. */
export function* walkHtmlInSteps(
  html: string,
  visitor: HtmlVisitor,
  requested: ReadonlySet<string> = NONE,
): Work<void> {
  const known = knownTagsOf(requested);
  /** The outermost open element of UNRENDERED, '' for none. */
  let unrendered = '';
  let unrenderedDepth = 0;
  /** Text that was read but not yet passed on: tokens are shorter than the runs of text of `<<<<` or `a & b`. */
  let textStart = 0;
  let textEnd = 0;

  const endText = () => {
    if (textEnd > textStart) visitor.text?.(html.slice(textStart, textEnd), textStart);
    textStart = textEnd;
  };
  const readText = (start: number, end: number) => {
    if (unrendered !== '') return;
    if (start !== textEnd) {
      endText();
      textStart = start;
    }
    textEnd = end;
    if (end - textStart >= MAX_PIECE && !CONTINUES.test(html.charAt(end - 1))) endText();
  };
  const readTag = ({ name, isEnd, attributes, spans }: Tag, start: number) => {
    endText();
    if (unrendered === '') {
      if (isEnd) visitor.close?.(name, start);
      else {
        visitor.open?.(name, attributes, spans, start);
        if (UNRENDERED.has(name)) [unrendered, unrenderedDepth] = [name, 1];
      }
    } else if (name === unrendered) {
      unrenderedDepth += isEnd ? -1 : 1;
      if (unrenderedDepth === 0) unrendered = '';
    }
  };
  const reader = createTokenReader(html, requested, {
    text: readText,
    entity: (codePoint, end) => {
      endText();
      if (unrendered === '') visitor.text?.(String.fromCodePoint(codePoint), end);
    },
    tag: readTag,
    comment: (span) => {
      endText();
      if (unrendered === '') visitor.comment?.(span);
    },
  });

  /** The first ampersand from the last offset on. */
  let ampersand = -1;
  let newTags = 0;
  let previous: Followed = { next: null, other: null };
  let yieldAt = CHARACTERS_PER_STEP;
  for (let at = 0; at < html.length; ) {
    if (at >= yieldAt) {
      yield;
      yieldAt = at + CHARACTERS_PER_STEP;
    }
    const tagStart = positionOf(html, '<', at);
    if (ampersand < at) ampersand = positionOf(html, '&', at);
    if (ampersand < tagStart || tagStart - at > MAX_PIECE) {
      at = yield* reader.read(at);
      continue;
    }
    if (tagStart > at) readText(at, tagStart);
    let tag: KnownTag | null = isAt(html, tagStart, previous.next) ?? isAt(html, tagStart, previous.other);
    if (tag === null) {
      const source = html.slice(tagStart, positionOf(html, '>', tagStart) + 1);
      tag = known.tags.get(source) ?? null;
      if (tag === null) {
        at = yield* reader.read(tagStart);
        const { last } = reader;
        const isWhole = last !== null && last.start === tagStart && at === tagStart + source.length;
        if (isWhole && wasSeen(known, source) && newTags++ < MAX_NEW_TAGS) remember(known, source, last.tag);
        previous = { next: null, other: null };
        continue;
      }
      [previous.next, previous.other] = [tag, previous.next];
    }
    readTag(tag, tagStart);
    at = tagStart + tag.source.length;
    previous = tag;
  }
  reader.end();
  endText();
}

function isAt(html: string, at: number, tag: KnownTag | null): KnownTag | null {
  return tag !== null && html.substring(at, at + tag.source.length) === tag.source ? tag : null;
}

/** The first position from `from` on; the length when there is none. */
function positionOf(html: string, character: string, from: number): number {
  const at = html.indexOf(character, from);
  return at === -1 ? html.length : at;
}

/** Receives the tokens of HTML. Offsets in the HTML. */
interface TokenHandler {
  text(start: number, end: number): void;
  entity(codePoint: number, end: number): void;
  tag(tag: Tag, start: number): void;
  comment(span: Span): void;
}

/** Elements whose content the tokenizer reads to their end tag. */
const RAW = new Set([...UNRENDERED].filter((name) => name !== 'template'));

/** htmlparser2's tokenizer for HTML of which parts are skipped. */
function createTokenReader(html: string, requested: ReadonlySet<string>, handler: TokenHandler) {
  /** Characters that were skipped: offsets of the tokenizer are smaller. */
  let skipped = 0;
  let readTo = 0;
  /** The offset after the last token that the tokenizer has completely read. */
  let endedAt = 0;
  let last: { tag: Tag; start: number } | null = null;
  /** The start tag being read. */
  let name = '';
  let tagStart = 0;
  let attributes: Map<string, string> | null = null;
  let spans: Map<string, Span> | null = null;
  /** The attribute being read, '' when it is not requested. */
  let attribute = '';
  let value = '';
  let nameEnd = 0;

  const passOn = (tag: Tag, start: number) => {
    last = { tag, start };
    handler.tag(tag, start);
  };
  const endTag = (end: number) => {
    if (!RAW.has(name)) endedAt = skipped + end + 1;
    const tag = { name, isEnd: false, attributes: attributes ?? NO_ATTRIBUTES, spans: spans ?? NO_SPANS };
    passOn(tag, tagStart);
  };
  const endDeclaration = (_: number, end: number) => {
    endedAt = skipped + end + 1;
  };
  const tokenizer = new Tokenizer(
    {},
    {
      onopentagname: (start, end) => {
        name = html.slice(skipped + start, skipped + end).toLowerCase();
        tagStart = skipped + start - 1;
        attributes = spans = null;
      },
      onattribname: (start, end) => {
        const found = requested.size > 0 ? html.slice(skipped + start, skipped + end).toLowerCase() : '';
        // Of duplicates the first counts (HTML Standard §13.2.5.33).
        attribute = requested.has(found) && attributes?.has(found) !== true ? found : '';
        value = '';
        nameEnd = skipped + end;
      },
      onattribdata: (start, end) => {
        if (attribute !== '') value += html.slice(skipped + start, skipped + end);
      },
      onattribentity: (codePoint) => {
        if (attribute !== '') value += String.fromCodePoint(codePoint);
      },
      onattribend: (quote, endIndex) => {
        if (attribute === '') return;
        (attributes ??= new Map()).set(attribute, value);
        if (quote === QuoteType.NoValue) return;
        BEFORE_VALUE.lastIndex = nameEnd;
        const start = nameEnd + (BEFORE_VALUE.exec(html)?.[0].length ?? 0);
        const end = skipped + (quote >= QuoteType.Single ? endIndex - 1 : endIndex);
        (spans ??= new Map()).set(attribute, { start: start - tagStart, end: end - tagStart });
      },
      onopentagend: endTag,
      onselfclosingtag: endTag,
      onclosetag: (start, end) => {
        const closed = html.slice(skipped + start, skipped + end).toLowerCase();
        // Whatever follows the name, the first `>` ends the tag (HTML Standard §13.2.5.8).
        endedAt = positionOf(html, '>', skipped + end) + 1;
        const tag = { name: closed, isEnd: true, attributes: NO_ATTRIBUTES, spans: NO_SPANS };
        passOn(tag, skipped + start - 2);
      },
      ontext: (start, end) => {
        // At the end of the HTML an unfinished tag is reported as text from -1. It is not text (HTML Standard §13.2.5.6).
        if (start >= 0) handler.text(skipped + start, skipped + end);
      },
      ontextentity: (codePoint, end) => handler.entity(codePoint, skipped + end),
      oncomment: (start, end, endOffset) => {
        endedAt = skipped + end + 1;
        handler.comment({ start: skipped + start, end: skipped + end - endOffset });
      },
      oncdata: endDeclaration,
      ondeclaration: endDeclaration,
      onprocessinginstruction: ignore,
      onend: ignore,
    },
  );

  return {
    /** The tag that was read last; null: the tokenizer has not read to its end, or not only that. */
    get last() {
      return endedAt === readTo ? last : null;
    },
    /** Reads from `at` to the end of a tag, comment or declaration, outside of raw elements; returns the offset after it. */
    *read(at: number): Work<number> {
      skipped += at - readTo;
      readTo = at;
      // Longer pieces each time: a style sheet may be full of `>`.
      for (let least = 1; ; least = Math.min(2 * least, CHARACTERS_PER_STEP)) {
        const end = Math.min(positionOf(html, '>', readTo + least - 1) + 1, html.length);
        for (; readTo < end; readTo = Math.min(readTo + CHARACTERS_PER_STEP, end)) {
          tokenizer.write(html.slice(readTo, Math.min(readTo + CHARACTERS_PER_STEP, end)));
          if (end - readTo > CHARACTERS_PER_STEP) yield;
        }
        if (endedAt === readTo || readTo === html.length) return readTo;
        if (least === CHARACTERS_PER_STEP) yield;
      }
    },
    end: () => {
      tokenizer.end();
    },
  };
}
