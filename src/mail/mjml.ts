/*
 * MJML sources: what is checked before they are compiled. The compiler (templates/thread/mjml-compiler.ts) ignores unknown elements,
 * and names no position for one that is not closed.
 */

/** Why a source cannot be compiled. */
export interface MjmlFault {
  /** From 1; 0: unknown. */
  line: number;
  /** The element, without brackets; null: none. */
  element: string | null;
  /** The rest of a sentence about the element, or about the source. */
  message: string;
}

/** The HTML of a source. */
export type Compiled = { html: string } | { faults: MjmlFault[] };

/** Characters of a source. */
export const MAX_MJML_SOURCE = 512 * 1024;
/** Elements of MJML in a source: each becomes up to a kilobyte. */
const MAX_ELEMENTS = 5000;
const MAX_DEPTH = 24;
const MAX_FAULTS = 20;

const CONTENT =
  'mj-text mj-image mj-button mj-divider mj-spacer mj-table mj-social mj-navbar mj-accordion mj-carousel mj-raw';
const ATTRIBUTED =
  'mj-all mj-class mj-body mj-section mj-column mj-group mj-wrapper mj-hero mj-text mj-image mj-button mj-divider mj-spacer mj-table mj-social mj-social-element mj-navbar mj-navbar-link mj-accordion mj-accordion-element mj-accordion-title mj-accordion-text mj-carousel mj-carousel-image';

/** What an element may contain; null: HTML. */
const CHILDREN = new Map<string, ReadonlySet<string> | null>([
  ['', words('mjml')],
  ['mjml', words('mj-head mj-body')],
  ['mj-head', words('mj-attributes mj-breakpoint mj-font mj-preview mj-style mj-title mj-raw')],
  ['mj-attributes', words(ATTRIBUTED)],
  ['mj-body', words('mj-section mj-wrapper mj-hero mj-raw')],
  ['mj-wrapper', words('mj-section mj-hero mj-raw')],
  ['mj-section', words('mj-column mj-group mj-raw')],
  ['mj-group', words('mj-column mj-raw')],
  ['mj-column', words(CONTENT)],
  ['mj-hero', words(CONTENT)],
  ['mj-social', words('mj-social-element mj-raw')],
  ['mj-navbar', words('mj-navbar-link mj-raw')],
  ['mj-accordion', words('mj-accordion-element mj-raw')],
  ['mj-accordion-element', words('mj-accordion-title mj-accordion-text mj-raw')],
  ['mj-carousel', words('mj-carousel-image')],
  ...[...words('mj-breakpoint mj-font mj-image mj-divider mj-spacer mj-carousel-image mj-class mj-all')].map(
    (name): [string, ReadonlySet<string>] => [name, new Set()],
  ),
  ...[
    ...words(
      'mj-text mj-button mj-table mj-raw mj-preview mj-title mj-style mj-social-element mj-navbar-link mj-accordion-title mj-accordion-text',
    ),
  ].map((name): [string, null] => [name, null]),
]);

function words(list: string): ReadonlySet<string> {
  return new Set(list.split(' '));
}

/** Sticky: a tag of MJML, or the begin of a comment. */
const TAG = /<(?:(!--)|(\/?)(mjml|mj-[A-Za-z0-9-]{1,40})(?=[\s/>]))/y;

/** Checks which elements a source has and where; the faults, at most MAX_FAULTS. Linear. */
export function checkMjml(source: string): MjmlFault[] {
  if (source.length > MAX_MJML_SOURCE)
    return [{ line: 0, element: null, message: `must have at most ${MAX_MJML_SOURCE} characters` }];
  const faults: MjmlFault[] = [];
  const lineOf = lineCounter(source);
  const fault = (at: number, element: string | null, message: string) =>
    faults.push({ line: lineOf(at), element, message });
  const open: { name: string; at: number }[] = [];
  let elements = 0;
  let at = source.indexOf('<');
  for (; at >= 0 && faults.length < MAX_FAULTS; at = source.indexOf('<', at + 1)) {
    TAG.lastIndex = at;
    const match = TAG.exec(source);
    if (match === null) continue;
    const [, comment, slash, name = ''] = match;
    if (comment !== undefined) {
      const end = source.indexOf('-->', at + 4);
      if (end < 0) {
        fault(at, null, 'a comment is not closed');
        return faults;
      }
      at = end;
      continue;
    }
    const parent = open.at(-1)?.name ?? '';
    if (slash === '/') {
      if (parent === name) open.pop();
      else if (parent === '') fault(at, name, 'is closed, but was not opened');
      else {
        fault(open.at(-1)?.at ?? at, parent, `is not closed before </${name}> in line ${lineOf(at)}`);
        return faults;
      }
      continue;
    }
    if (++elements > MAX_ELEMENTS) {
      fault(at, null, `must have at most ${MAX_ELEMENTS} elements of MJML`);
      return faults;
    }
    const children = CHILDREN.get(parent);
    if (name === 'mj-include') fault(at, name, 'is not supported: the source must contain everything');
    else if (!CHILDREN.has(name)) fault(at, name, 'is not an element of MJML');
    else if (children === null) fault(at, name, `cannot be in ${parent}, which contains HTML`);
    else if (parent === '' && name !== 'mjml') fault(at, name, 'must be in mjml');
    else if (children !== undefined && !children.has(name)) fault(at, name, `cannot be in ${parent}`);
    const end = endOfTag(source, at + 1 + name.length);
    if (end === null) {
      fault(at, name, 'has a tag that is not closed');
      return faults;
    }
    if (source[end - 1] !== '/') open.push({ name, at });
    if (open.length > MAX_DEPTH) {
      fault(at, name, `is nested more than ${MAX_DEPTH} levels deep`);
      return faults;
    }
    at = end;
  }
  const last = open.at(-1);
  if (last !== undefined && faults.length < MAX_FAULTS) fault(last.at, last.name, 'is not closed');
  if (elements === 0) faults.push({ line: 1, element: null, message: 'must have an element mjml' });
  return faults;
}

/** The position of the `>` that ends a tag, outside of quotes; null: there is none. */
function endOfTag(source: string, from: number): number | null {
  for (let at = from; at < source.length; at++) {
    const char = source[at];
    if (char === '>') return at;
    if (char !== '"' && char !== "'") continue;
    at = source.indexOf(char, at + 1);
    if (at < 0) return null;
  }
  return null;
}

/** Counts lines from 1 at rising or falling positions. */
function lineCounter(source: string): (at: number) => number {
  let counted = 0;
  let line = 1;
  return (at) => {
    if (at < counted) {
      counted = 0;
      line = 1;
    }
    for (
      let next = source.indexOf('\n', counted);
      next >= 0 && next < at;
      next = source.indexOf('\n', counted)
    ) {
      line++;
      counted = next + 1;
    }
    return line;
  };
}

const CLOSING: Readonly<Record<string, string>> = { '{{': '}}', '{%': '%}' };

/** Braces of a template in a source. */
interface Protected {
  source: string;
  /** Puts the braces back into what was compiled. */
  restore(html: string): string;
}

/**
 * Replaces text in double braces and tags of Liquid by words: their quotes, ampersands and angle brackets are none of XML.
 * `word`: begins the words, and does not occur in the source.
 */
export function protectBraces(source: string, word: string): Protected {
  const texts: string[] = [];
  const pieces: string[] = [];
  let from = 0;
  /** Ends that do not occur any more: they are not searched again. */
  const absent = new Set<string>();
  let at = source.indexOf('{');
  while (at >= 0) {
    const closing = CLOSING[source.slice(at, at + 2)];
    const end = closing === undefined || absent.has(closing) ? -1 : source.indexOf(closing, at + 2);
    if (end < 0) {
      if (closing !== undefined) absent.add(closing);
      at = source.indexOf('{', at + 1);
      continue;
    }
    const after = end + 2 + (source.startsWith('{{{', at) && source[end + 2] === '}' ? 1 : 0);
    pieces.push(source.slice(from, at), `${word}${texts.length}z`);
    texts.push(source.slice(at, after));
    from = after;
    at = source.indexOf('{', after);
  }
  pieces.push(source.slice(from));
  const pattern = new RegExp(`${word}(\\d{1,7})z`, 'g');
  return {
    source: pieces.join(''),
    restore: (html) => html.replaceAll(pattern, (all, index: string) => texts[Number(index)] ?? all),
  };
}
