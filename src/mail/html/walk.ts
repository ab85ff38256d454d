import { QuoteType, Tokenizer } from 'htmlparser2';
import type { Work } from '../../core/slices.ts';

/**
 * Walks html as a mail reader's parser would split it: tags, their attributes, and text that can be seen.
 * Comments (conditional ones too) and elements that are never rendered are passed over. No tree is built, so
 * time and memory stay linear however deep or broken the html is.
 */
export interface HtmlVisitor {
  /** Names in lower case. `attributes` holds the wanted ones, entities decoded; of equal ones the first counts. */
  open?(name: string, attributes: ReadonlyMap<string, string>, spans: ReadonlyMap<string, Span>): void;
  /** `start`: offset of its `<`. */
  close?(name: string, start: number): void;
  /** A piece of text with entities decoded; one run of text may come in several pieces. `start`: its offset. */
  text?(piece: string, start: number): void;
  /** What stands between `<!--` and `-->`. */
  comment?(span: Span): void;
}

/** From one offset up to another, the latter not included. */
export interface Span {
  start: number;
  end: number;
}

/** What their content is, no reader sees as part of the page. */
const UNSEEN = new Set([
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

/** Between an attribute's name and the first character of its value. */
const BEFORE_VALUE = /[ \t\n\f\r]*=[ \t\n\f\r]*["']?/y;

/** Calls the visitor in document order; `wanted` names the attributes it asks for, in lower case. */
export function walkHtml(html: string, visitor: HtmlVisitor, wanted?: ReadonlySet<string>): void {
  const tokenizer = tokenizerFor(html, visitor, wanted);
  tokenizer.write(html);
  tokenizer.end();
}

/** Characters that are read between two yields. */
const CHARACTERS_PER_STEP = 16 * 1024;

/** The same in steps; a run of text may come in more pieces. */
export function* walkingHtml(html: string, visitor: HtmlVisitor, wanted?: ReadonlySet<string>): Work<void> {
  const tokenizer = tokenizerFor(html, visitor, wanted);
  for (let at = 0; at < html.length; at += CHARACTERS_PER_STEP) {
    tokenizer.write(html.slice(at, at + CHARACTERS_PER_STEP));
    yield;
  }
  tokenizer.end();
}

function tokenizerFor(
  html: string,
  visitor: HtmlVisitor,
  wanted: ReadonlySet<string> = new Set(),
): Tokenizer {
  let attributes = new Map<string, string>();
  /** Where the values of those stand in the source, without their quotes. */
  let spans = new Map<string, Span>();
  let tag = '';
  /** The attribute being read, '' when nobody wants it. */
  let attribute = '';
  let value = '';
  let nameEnd = 0;
  let unseen = '';
  let unseenDepth = 0;
  /** Text that was read and not yet passed on: `<<<<` comes a character at a time. */
  let textStart = 0;
  let textEnd = 0;

  const endText = () => {
    if (textEnd > textStart) visitor.text?.(html.slice(textStart, textEnd), textStart);
    textStart = textEnd;
  };
  const opened = () => {
    if (unseen === '') {
      visitor.open?.(tag, attributes, spans);
      if (UNSEEN.has(tag)) [unseen, unseenDepth] = [tag, 1];
    } else if (tag === unseen) {
      unseenDepth++;
    }
    if (attributes.size > 0) [attributes, spans] = [new Map(), new Map()];
  };
  const valueSpan = (quote: QuoteType, endIndex: number): Span => {
    BEFORE_VALUE.lastIndex = nameEnd;
    const start = nameEnd + (BEFORE_VALUE.exec(html)?.[0].length ?? 0);
    return { start, end: quote >= QuoteType.Single ? endIndex - 1 : endIndex };
  };
  const nothing = () => undefined;

  return new Tokenizer(
    {},
    {
      onopentagname: (start, end) => {
        endText();
        tag = html.slice(start, end).toLowerCase();
      },
      onattribname: (start, end) => {
        const name = wanted.size > 0 ? html.slice(start, end).toLowerCase() : '';
        attribute = wanted.has(name) ? name : '';
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
        if (unseen === '') visitor.close?.(name, start - 2);
        else if (name === unseen && --unseenDepth === 0) unseen = '';
      },
      ontext: (start, end) => {
        if (unseen !== '') return;
        if (start !== textEnd) {
          endText();
          textStart = start;
        }
        textEnd = end;
      },
      ontextentity: (codePoint, end) => {
        endText();
        if (unseen === '') visitor.text?.(String.fromCodePoint(codePoint), end);
      },
      oncdata: nothing,
      oncomment: (start, end, endOffset) => {
        endText();
        if (unseen === '') visitor.comment?.({ start, end: end - endOffset });
      },
      ondeclaration: nothing,
      onprocessinginstruction: nothing,
      onend: endText,
    },
  );
}
