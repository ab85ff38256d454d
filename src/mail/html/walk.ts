import { QuoteType, Tokenizer } from 'htmlparser2';
import type { Work } from '../../core/slices.ts';

/**
 * Walks HTML as the parser of a mail client tokenizes it: tags, their attributes, and text that can be rendered.
 * Comments (conditional ones too) and elements that are never rendered produce no text. No tree is built, so
 * time and memory are linear however deep or broken the HTML is.
 */
export interface HtmlVisitor {
  /**
   * A start tag. `name`: in lower case. `attributes`: the requested ones, entities decoded; of duplicates the first.
   * `spans`: their values in the source, without quotes. `start`: offset of the `<`.
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

/** Offsets in the source; `end` is exclusive. */
export interface Span {
  start: number;
  end: number;
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

/** The characters between an attribute's name and its value. */
const BEFORE_VALUE = /[ \t\n\f\r]*=[ \t\n\f\r]*["']?/y;

/** Calls the visitor in document order. `requested`: names of the attributes that it needs, in lower case. */
export function walkHtml(html: string, visitor: HtmlVisitor, requested?: ReadonlySet<string>): void {
  const tokenizer = createTokenizer(html, visitor, requested);
  tokenizer.write(html);
  tokenizer.end();
}

/** Characters that are read between two yields. */
const CHARACTERS_PER_STEP = 16 * 1024;

/** `walkHtml` in steps; a run of text may arrive in more pieces. */
export function* walkingHtml(
  html: string,
  visitor: HtmlVisitor,
  requested?: ReadonlySet<string>,
): Work<void> {
  const tokenizer = createTokenizer(html, visitor, requested);
  for (let at = 0; at < html.length; at += CHARACTERS_PER_STEP) {
    tokenizer.write(html.slice(at, at + CHARACTERS_PER_STEP));
    yield;
  }
  tokenizer.end();
}

function createTokenizer(
  html: string,
  visitor: HtmlVisitor,
  requested: ReadonlySet<string> = new Set(),
): Tokenizer {
  let attributes = new Map<string, string>();
  let spans = new Map<string, Span>();
  let tag = '';
  let tagStart = 0;
  /** The attribute being read, '' when it is not requested. */
  let attribute = '';
  let value = '';
  let nameEnd = 0;
  /** The outermost open element of UNRENDERED, '' for none. */
  let unrendered = '';
  let unrenderedDepth = 0;
  /** Text that was read but not yet passed on: the tokenizer emits `<<<<` one character at a time. */
  let textStart = 0;
  let textEnd = 0;

  const endText = () => {
    if (textEnd > textStart) visitor.text?.(html.slice(textStart, textEnd), textStart);
    textStart = textEnd;
  };
  const opened = () => {
    if (unrendered === '') {
      visitor.open?.(tag, attributes, spans, tagStart);
      if (UNRENDERED.has(tag)) [unrendered, unrenderedDepth] = [tag, 1];
    } else if (tag === unrendered) {
      unrenderedDepth++;
    }
    if (attributes.size > 0) [attributes, spans] = [new Map(), new Map()];
  };
  const valueSpan = (quote: QuoteType, endIndex: number): Span => {
    BEFORE_VALUE.lastIndex = nameEnd;
    const start = nameEnd + (BEFORE_VALUE.exec(html)?.[0].length ?? 0);
    return { start, end: quote >= QuoteType.Single ? endIndex - 1 : endIndex };
  };
  const ignore = () => undefined;

  return new Tokenizer(
    {},
    {
      onopentagname: (start, end) => {
        endText();
        tag = html.slice(start, end).toLowerCase();
        tagStart = start - 1;
      },
      onattribname: (start, end) => {
        const name = requested.size > 0 ? html.slice(start, end).toLowerCase() : '';
        attribute = requested.has(name) ? name : '';
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
        if (attribute === '' || attributes.has(attribute)) return;
        attributes.set(attribute, value);
        if (quote !== QuoteType.NoValue) spans.set(attribute, valueSpan(quote, endIndex));
      },
      onopentagend: opened,
      onselfclosingtag: opened,
      onclosetag: (start, end) => {
        endText();
        const name = html.slice(start, end).toLowerCase();
        if (unrendered === '') visitor.close?.(name, start - 2);
        else if (name === unrendered && --unrenderedDepth === 0) unrendered = '';
      },
      ontext: (start, end) => {
        if (unrendered !== '') return;
        if (start !== textEnd) {
          endText();
          textStart = start;
        }
        textEnd = end;
      },
      ontextentity: (codePoint, end) => {
        endText();
        if (unrendered === '') visitor.text?.(String.fromCodePoint(codePoint), end);
      },
      oncdata: ignore,
      oncomment: (start, end, endOffset) => {
        endText();
        if (unrendered === '') visitor.comment?.({ start, end: end - endOffset });
      },
      ondeclaration: ignore,
      onprocessinginstruction: ignore,
      onend: endText,
    },
  );
}
