import { type Work, withoutPause } from '../../core/concurrency/slices.ts';
import { type Span, scanHtmlInSteps } from './tokens.ts';

/*
 * Walks HTML as the parser of a mail client tokenizes it: tags, their attributes, and text that can be rendered.
 * Comments (conditional ones too) and elements that are never rendered produce no text. No tree is built, so
 * time and memory are linear however deep or broken the HTML is.
 */

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

export type { Span };

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

const NONE: ReadonlySet<string> = new Set();

/** A longer run of text arrives in several pieces, so that no step of the walk takes long. */
const MAX_PIECE = 32 * 1024;
/** Characters that belong together with the next one: a carriage return, the first half of a surrogate pair. */
const CONTINUES = /[\r\ud800-\udbff]/;

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

  const endText = () => {
    if (textEnd > textStart) visitor.text?.(html.slice(textStart, textEnd), textStart);
    textStart = textEnd;
  };
  yield* scanHtmlInSteps(
    html,
    {
      text: (start, end) => {
        if (unrendered !== '') return;
        if (start !== textEnd) {
          endText();
          textStart = start;
        }
        textEnd = end;
        if (end - textStart >= MAX_PIECE && !CONTINUES.test(html.charAt(end - 1))) endText();
      },
      entity: (codePoint, end) => {
        endText();
        if (unrendered === '') visitor.text?.(String.fromCodePoint(codePoint), end);
      },
      startTag: ({ name, attributes, spans }, start) => {
        endText();
        if (unrendered === '') {
          visitor.open?.(name, attributes, spans, start);
          if (UNRENDERED.has(name)) [unrendered, unrenderedDepth] = [name, 1];
        } else if (name === unrendered) {
          unrenderedDepth++;
        }
      },
      endTag: (name, start) => {
        endText();
        if (unrendered === '') visitor.close?.(name, start);
        else if (name === unrendered && --unrenderedDepth === 0) unrendered = '';
      },
      comment: (start, end) => {
        endText();
        if (unrendered === '') visitor.comment?.({ start, end });
      },
    },
    requested,
  );
  endText();
}
