/* The tokens of HTML, and what the modules that read them share. */

/** Receives the tokens of HTML in their order. */
export interface TokenHandler {
  /** A piece of text without entities. Offsets in the source. */
  text(start: number, end: number): void;
  /** A decoded entity of text. `end`: the offset after it. */
  entity(codePoint: number, end: number): void;
  /** A complete start tag. `start`: offset of the `<`. Equal tags may be one object. */
  startTag(tag: StartTag, start: number): void;
  /** An end tag. `name`: in lower case. `start`: offset of the `<`. */
  endTag(name: string, start: number): void;
  /** The content of a comment. */
  comment(start: number, end: number): void;
}

/** A start tag: its name, in lower case, and those of its attributes that were requested. */
export interface StartTag {
  name: string;
  /** Values with entities decoded; of duplicates the first. Empty for an attribute without a value. */
  attributes: ReadonlyMap<string, string>;
  /** The values in the source, without quotes, counted from the `<`; not of attributes without a value. */
  spans: ReadonlyMap<string, Span>;
}

/** Offsets; `end` is exclusive. */
export interface Span {
  start: number;
  end: number;
}

/** Characters that are read between two yields. */
export const CHARACTERS_PER_STEP = 16 * 1024;
/** Elements whose content is not HTML: the tokenizer reads them to their end tag. */
export const RAW_ELEMENTS: ReadonlySet<string> = new Set([
  'iframe',
  'noembed',
  'noframes',
  'plaintext',
  'script',
  'style',
  'textarea',
  'title',
  'xmp',
]);
/** The most frequent names; a lookup costs less than a conversion to lower case. */
const COMMON_NAMES: ReadonlySet<string> = new Set(
  'a b br body center div em font h1 h2 h3 head html i img li p s span strong table tbody td th title tr u ul align alt bgcolor border cellpadding cellspacing class clicktracking color data-no-track dir height href id lang role src style target valign width'.split(
    ' ',
  ),
);

/** A name of an element or attribute in lower case. */
export function lowerCased(name: string): string {
  return COMMON_NAMES.has(name) ? name : name.toLowerCase();
}

const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map();
const NO_SPANS: ReadonlyMap<string, Span> = new Map();

/** Collects the attributes of a tag; of duplicates the first counts. `name`: in lower case. */
export function createTag(name: string) {
  let attributes: Map<string, string> | null = null;
  let spans: Map<string, Span> | null = null;
  return {
    add: (attribute: string, value: string, span: Span | null): void => {
      attributes ??= new Map();
      if (attributes.has(attribute)) return;
      attributes.set(attribute, value);
      if (span !== null) (spans ??= new Map()).set(attribute, span);
    },
    ended: (): StartTag => ({ name, attributes: attributes ?? NO_ATTRIBUTES, spans: spans ?? NO_SPANS }),
  };
}
