import { type Work, withoutPause } from '../../core/slices.ts';
import { escapeHtml } from '../template.ts';
import { type HtmlVisitor, type Span, walkHtml, walkingHtml } from './walk.ts';

/**
 * Puts other addresses into the links of html, and a picture at its end. Owns what counts as a link and where
 * its address stands; every other byte stays as it was, however broken the html is. Knows nothing of tokens.
 *
 * A link is the `href` of `<a>` or `<area>`, also inside a conditional comment: Outlook shows what stands
 * there. One with `data-no-track` or `clicktracking="off"` is left alone.
 */
export interface LinkChanges {
  /**
   * The new address for a link's value, entities decoded; null leaves it as it is, to the byte. `text`: the
   * beginning of what the link shows.
   */
  address(href: string, text: string): string | null;
  /** Html to be put in before the body ends; '' for none. */
  atEnd: string;
}

const LINKS = new Set(['a', 'area']);
const WANTED = new Set(['href', 'data-no-track', 'clicktracking']);
/** `[if mso]>` and what else Microsoft made of it, up to its `<![endif]`. */
const CONDITIONAL = /^\[if[\s(!][^\]]*\]>/i;

/** Conditional comments that are looked into: each is walked like html of its own. */
const MAX_CONDITIONAL = 1000;
/** Of one of them; longer ones are left as they are. They are walked in one step. */
const MAX_CONDITIONAL_LENGTH = 64 * 1024;
/** Links whose address is replaced between two yields. */
const LINKS_PER_STEP = 64;

/** Characters of a link's text that are collected. */
const MAX_TEXT = 300;

interface Splice extends Span {
  text: string;
}

interface Link extends Span {
  href: string;
  text: string;
}

export function changeLinks(html: string, changes: LinkChanges): string {
  return withoutPause(changingLinks(html, changes));
}

/** The same in steps. */
export function* changingLinks(html: string, { address, atEnd }: LinkChanges): Work<string> {
  const splices: Splice[] = [];
  let conditional = 0;
  let bodyEnd = -1;
  let htmlEnd = -1;

  const links: Link[] = [];
  /** The `<a>` whose end has not been reached. */
  let current: Link | null = null;

  const visitor = (source: string, offset: number): HtmlVisitor => ({
    open: (name, attributes, spans) => {
      if (!LINKS.has(name)) return;
      // An anchor ends the one before it (HTML Standard §13.2.6.4.7).
      if (name === 'a') current = null;
      const span = spans.get('href');
      if (span === undefined || isLeftAlone(attributes)) return;
      const link = {
        start: offset + span.start,
        end: offset + span.end,
        href: attributes.get('href') ?? '',
        text: '',
      };
      links.push(link);
      if (name === 'a') current = link;
    },
    text: (piece) => {
      if (current !== null && current.text.length < MAX_TEXT) current.text += piece.slice(0, MAX_TEXT);
    },
    close: (name, start) => {
      if (name === 'a') current = null;
      else if (name === 'body') bodyEnd = offset + start;
      else if (name === 'html') htmlEnd = offset + start;
    },
    comment: ({ start, end }) => {
      const opening = CONDITIONAL.exec(source.slice(start, end))?.[0];
      if (opening === undefined || end - start > MAX_CONDITIONAL_LENGTH || ++conditional > MAX_CONDITIONAL)
        return;
      const { open, text } = visitor('', offset + start + opening.length);
      const close = (name: string) => {
        if (name === 'a') current = null;
      };
      if (open && text) walkHtml(source.slice(start + opening.length, end), { open, text, close }, WANTED);
    },
  });
  yield* walkingHtml(html, visitor(html, 0), WANTED);

  for (const [n, { start, end, href, text }] of links.entries()) {
    if (n % LINKS_PER_STEP === LINKS_PER_STEP - 1) yield;
    const changed = address(href, text);
    if (changed !== null) splices.push({ start, end, text: escapeHtml(changed) });
  }

  if (atEnd !== '') {
    const place = bodyEnd >= 0 ? bodyEnd : htmlEnd >= 0 ? htmlEnd : html.length;
    splices.push({ start: place, end: place, text: atEnd });
    // Links may follow the end of the body in html that nobody checked.
    splices.sort((a, b) => a.start - b.start);
  }
  return spliced(html, splices);
}

function isLeftAlone(attributes: ReadonlyMap<string, string>): boolean {
  return attributes.has('data-no-track') || attributes.get('clicktracking')?.trim().toLowerCase() === 'off';
}

function spliced(html: string, splices: readonly Splice[]): string {
  let out = '';
  let at = 0;
  for (const { start, end, text } of splices) {
    out += html.slice(at, start) + text;
    at = end;
  }
  return out + html.slice(at);
}
