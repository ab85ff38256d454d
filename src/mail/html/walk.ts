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

/** Calls the visitor in document order. `requested`: names of the attributes that it needs, in lower case. */
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

/** `walkHtml` in steps. */
export function* walkHtmlInSteps(
  html: string,
  visitor: HtmlVisitor,
  requested: ReadonlySet<string> = NONE,
): Work<void> {
  /** The outermost open element of UNRENDERED, '' for none. */
  let unrendered = '';
  let unrenderedDepth = 0;
  /** Text that was read but not yet passed on: tokens are shorter than the runs of text of `<<<<` or `a & b`. */
  let textStart = 0;
  let textEnd = 0;
  /** The start tag being read. */
  let tagName = '';
  let tagStart = 0;
  let attributes: Map<string, string> | null = null;
  let spans: Map<string, Span> | null = null;
  /** The attribute being read, '' when it is not requested. */
  let attribute = '';
  let value = '';
  let nameEnd = 0;

  const endText = () => {
    if (textEnd > textStart) visitor.text?.(html.slice(textStart, textEnd), textStart);
    textStart = textEnd;
  };
  const endTag = () => {
    endText();
    if (unrendered === '') {
      visitor.open?.(tagName, attributes ?? NO_ATTRIBUTES, spans ?? NO_SPANS, tagStart);
      if (UNRENDERED.has(tagName)) [unrendered, unrenderedDepth] = [tagName, 1];
    } else if (tagName === unrendered) {
      unrenderedDepth++;
    }
  };
  const tokenizer = new Tokenizer(
    {},
    {
      onopentagname: (start, end) => {
        tagName = html.slice(start, end).toLowerCase();
        tagStart = start - 1;
        attributes = spans = null;
      },
      onattribname: (start, end) => {
        const name = requested.size > 0 ? html.slice(start, end).toLowerCase() : '';
        // Of duplicates the first counts (HTML Standard §13.2.5.33).
        attribute = requested.has(name) && attributes?.has(name) !== true ? name : '';
        value = '';
        nameEnd = end;
      },
      onattribdata: (start, end) => {
        if (attribute !== '') value += html.slice(start, end);
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
        const end = quote >= QuoteType.Single ? endIndex - 1 : endIndex;
        (spans ??= new Map()).set(attribute, { start: start - tagStart, end: end - tagStart });
      },
      onopentagend: endTag,
      onselfclosingtag: endTag,
      onclosetag: (start, end) => {
        endText();
        const name = html.slice(start, end).toLowerCase();
        if (unrendered === '') visitor.close?.(name, start - 2);
        else if (name === unrendered && --unrenderedDepth === 0) unrendered = '';
      },
      ontext: (start, end) => {
        // At the end of the HTML an unfinished tag is reported as text from -1. It is not text (HTML Standard §13.2.5.6).
        if (start < 0 || unrendered !== '') return;
        if (start !== textEnd) {
          endText();
          textStart = start;
        }
        textEnd = end;
        if (end - textStart >= MAX_PIECE && !CONTINUES.test(html.charAt(end - 1))) endText();
      },
      ontextentity: (codePoint, end) => {
        endText();
        if (unrendered === '') visitor.text?.(String.fromCodePoint(codePoint), end);
      },
      oncomment: (start, end, endOffset) => {
        endText();
        if (unrendered === '') visitor.comment?.({ start, end: end - endOffset });
      },
      oncdata: ignore,
      ondeclaration: ignore,
      onprocessinginstruction: ignore,
      onend: ignore,
    },
  );
  for (let at = 0; at < html.length; at += CHARACTERS_PER_STEP) {
    tokenizer.write(html.slice(at, at + CHARACTERS_PER_STEP));
    yield;
  }
  tokenizer.end();
  endText();
}
