import { type Work, withoutPause } from '../../core/concurrency/slices.ts';
import { escapeHtml } from './escape.ts';
import { type HtmlVisitor, type Span, walkHtml, walkingHtml } from './walk.ts';

/*
 * Replaces the URLs of the links in HTML, and inserts HTML at the end of the body. All other bytes stay unchanged, however
 * broken the HTML is.
 *
 * A link is the `href` of `<a>` or `<area>`, also inside a conditional comment, which Outlook displays. A link with
 * `data-no-track` or `clicktracking="off"` is not changed.
 */

/** What to change in the HTML. */
export interface LinkChanges {
  /**
   * Returns the new URL of a link; null leaves it unchanged. `href`: its value, entities decoded. `text`: the start of its
   * text.
   */
  address(href: string, text: string): string | null;
  /** HTML to insert before the end of the body; '' for none. */
  atEnd: string;
}

const LINKS = new Set(['a', 'area']);
const REQUESTED_ATTRIBUTES = new Set(['href', 'data-no-track', 'clicktracking']);
/** `[if mso]>` and the other forms of the condition. */
const CONDITIONAL = /^\[if[\s(!][^\]]*\]>/i;

/** Conditional comments that are walked, each as separate HTML. */
const MAX_CONDITIONAL_COMMENTS = 1000;
/** A longer conditional comment is not changed, as each is walked in one step. */
const MAX_CONDITIONAL_LENGTH = 64 * 1024;
/** Links whose address is replaced between two yields. */
const LINKS_PER_STEP = 64;

/** Characters of a link's text that are collected. */
const MAX_TEXT_LENGTH = 300;

interface Splice extends Span {
  text: string;
}

interface Link extends Span {
  href: string;
  text: string;
}

/** Returns the HTML with the changes. */
export function changeLinks(html: string, changes: LinkChanges): string {
  return withoutPause(changingLinks(html, changes));
}

/** `changeLinks` in steps. */
export function* changingLinks(html: string, { address, atEnd }: LinkChanges): Work<string> {
  const splices: Splice[] = [];
  let conditional = 0;
  let bodyEnd = -1;
  let htmlEnd = -1;

  const links: Link[] = [];
  /** The open `<a>`. */
  let current: Link | null = null;

  const visitor = (source: string, offset: number): HtmlVisitor => ({
    open: (name, attributes, spans, tagStart) => {
      if (!LINKS.has(name)) return;
      // The start tag of an anchor ends an open anchor (HTML Standard §13.2.6.4.7).
      if (name === 'a') current = null;
      const span = spans.get('href');
      if (span === undefined || isTrackingDisabled(attributes)) return;
      const link = {
        start: offset + tagStart + span.start,
        end: offset + tagStart + span.end,
        href: attributes.get('href') ?? '',
        text: '',
      };
      links.push(link);
      if (name === 'a') current = link;
    },
    text: (piece) => {
      if (current !== null && current.text.length < MAX_TEXT_LENGTH)
        current.text += piece.slice(0, MAX_TEXT_LENGTH);
    },
    close: (name, start) => {
      if (name === 'a') current = null;
      else if (name === 'body') bodyEnd = offset + start;
      else if (name === 'html') htmlEnd = offset + start;
    },
    comment: ({ start, end }) => {
      const opening = CONDITIONAL.exec(source.slice(start, end))?.[0];
      if (
        opening === undefined ||
        end - start > MAX_CONDITIONAL_LENGTH ||
        ++conditional > MAX_CONDITIONAL_COMMENTS
      )
        return;
      const { open, text } = visitor('', offset + start + opening.length);
      const close = (name: string) => {
        if (name === 'a') current = null;
      };
      if (open && text)
        walkHtml(source.slice(start + opening.length, end), { open, text, close }, REQUESTED_ATTRIBUTES);
    },
  });
  yield* walkingHtml(html, visitor(html, 0), REQUESTED_ATTRIBUTES);

  for (const [n, { start, end, href, text }] of links.entries()) {
    if (n % LINKS_PER_STEP === LINKS_PER_STEP - 1) yield;
    const changed = address(href, text);
    if (changed !== null) splices.push({ start, end, text: escapeHtml(changed) });
  }

  if (atEnd !== '') {
    const insertAt = bodyEnd >= 0 ? bodyEnd : htmlEnd >= 0 ? htmlEnd : html.length;
    splices.push({ start: insertAt, end: insertAt, text: atEnd });
    // In invalid HTML links may follow the end of the body.
    splices.sort((a, b) => a.start - b.start);
  }
  return applySplices(html, splices);
}

function isTrackingDisabled(attributes: ReadonlyMap<string, string>): boolean {
  return attributes.has('data-no-track') || attributes.get('clicktracking')?.trim().toLowerCase() === 'off';
}

function applySplices(html: string, splices: readonly Splice[]): string {
  let out = '';
  let at = 0;
  for (const { start, end, text } of splices) {
    out += html.slice(at, start) + text;
    at = end;
  }
  return out + html.slice(at);
}
