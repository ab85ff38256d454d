import { ENDED_BY_THE_NEXT, VOID_ELEMENTS } from './walk.ts';

/**
 * Tracks, while HTML is walked, what a reader sees of its text: the only definition of it, for the compliance checks and for
 * the derived text part. Inline styles and attributes are read, style sheets are not. Elements end by the relevant rules of the
 * HTML Standard (§13.2.6.4.7): an unclosed preheader hides what follows, as in mail clients.
 *
 * `font-size: 0`, `visibility: hidden` and a color equal to the background are inherited and can be reverted in inner elements:
 * layout cells commonly set a font size of 0 around content that sets another. `mso-hide: all` is ignored: it hides from
 * Outlook alone, often a button that a conditional comment renders for Outlook.
 */
export interface Visibility {
  /** Returns whether the style of the element makes it a block. Void elements have no content to track. */
  open(name: string, attributes: ReadonlyMap<string, string>): boolean;
  /** Returns whether an element ended that its style made a block. */
  close(name: string): boolean;
  isTextShown(): boolean;
  /** Also true inside a font size of 0, and in any color. */
  areImagesShown(): boolean;
  /** Whether nothing in the current element can be displayed. */
  isRemoved(): boolean;
  /**
   * The colors `#rrggbb` of the text and behind it that inline styles and attributes declare; null: unknown. After a style sheet
   * only those declared behind it are known.
   */
  colors(): { readonly color: string | null; readonly background: string | null };
}

/** The attributes that `open` reads. */
export const VISIBILITY_ATTRIBUTES: ReadonlySet<string> = new Set([
  'style',
  'hidden',
  'color',
  'bgcolor',
  'background',
]);

const REMOVED = 1;
const INVISIBLE = 2;
const TINY = 4;
const SAME_COLOR = 8;

const splitWords = (text: string): ReadonlySet<string> => new Set(text.split(' '));
/** Elements whose content is not displayed, or only after an action of the reader. */
const NOT_SHOWN = splitWords('canvas datalist dialog select');
/** An end tag does not end elements outside of these. */
const SCOPES = splitWords('applet caption html marquee object select table td template th');
/** The end tag of any other element has no effect while one of these is open inside it. */
const BLOCKS = splitWords(
  'address article aside blockquote body button center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p pre search section summary tbody tfoot thead tr ul',
);
/** Elements whose end tag is limited only by their table, and ends cells in it. */
const CELLS = splitWords('table tbody td tfoot th thead tr');
/** Open elements that are searched for the one that an end tag ends: bounds the time for hostile HTML. */
const MAX_STEPS = 64;

/** Elements of one name. */
function createKind(name: string) {
  return {
    isVoid: VOID_ELEMENTS.has(name),
    endedByNext: ENDED_BY_THE_NEXT.has(name),
    isNotShown: NOT_SHOWN.has(name),
    setsColors: name === 'style',
    isTable: name === 'table',
    isScope: SCOPES.has(name),
    isBlock: BLOCKS.has(name),
    isCell: CELLS.has(name),
    /** How many of them are open. */
    open: 0,
  };
}

type ElementKind = ReturnType<typeof createKind>;

/** What applies outside an element that changed it. */
interface Change {
  /** The index of the element. */
  at: number;
  flags: number;
  paint: Paint;
  /** The style of the element made it a block. */
  isBlock: boolean;
}

/** Creates a tracker for one walk. */
export function trackVisibility(): Visibility {
  /** By name: one lookup for each tag, however many properties are examined. */
  const kinds = new Map<string, ElementKind>();
  /** The open elements, outermost first. */
  const elements: ElementKind[] = [];
  const changes: Change[] = [];
  let flags = 0;
  let paint: Paint = WHITE_PAGE;
  let hasStyleSheet = false;

  const kindOf = (name: string): ElementKind => {
    const known = kinds.get(name);
    if (known !== undefined) return known;
    const kind = createKind(name);
    kinds.set(name, kind);
    return kind;
  };
  const paragraph = kindOf('p');

  const find = (kind: ElementKind): number => {
    if (kind.open === 0) return -1;
    const lowest = Math.max(0, elements.length - MAX_STEPS);
    for (let at = elements.length - 1; at >= lowest; at--) {
      const open = elements[at];
      if (open === undefined) return -1;
      if (open === kind) return at;
      if (kind.isCell ? open.isTable : open.isScope) return -1;
      if (!kind.isBlock && !kind.isCell && open.isBlock) return -1;
    }
    return -1;
  };
  const end = (kind: ElementKind): boolean => {
    const at = find(kind);
    if (at === -1) return false;
    for (let index = elements.length - 1; index >= at; index--) {
      const closed = elements.pop();
      if (closed !== undefined) closed.open--;
    }
    let endedBlock = false;
    for (let last = changes.at(-1); last !== undefined && last.at >= at; last = changes.at(-1)) {
      flags = last.flags;
      paint = last.paint;
      endedBlock ||= last.isBlock;
      changes.pop();
    }
    return endedBlock;
  };

  return {
    open: (name, attributes) => {
      const kind = kindOf(name);
      if (kind.isVoid) return false;
      if (kind.endedByNext) end(kind);
      else if (kind.isBlock) end(paragraph);
      elements.push(kind);
      kind.open++;
      // A style sheet may set any color.
      if (kind.setsColors && !hasStyleSheet) {
        hasStyleSheet = true;
        paint = UNKNOWN_PAINT;
        for (const change of changes) change.paint = UNKNOWN_PAINT;
      }
      if ((attributes.size === 0 && !kind.isNotShown) || (flags & REMOVED) !== 0) return false;
      const style = readStyle(attributes);
      const outer = { at: elements.length - 1, flags, paint, isBlock: style.isBlock };
      if (kind.isNotShown) flags |= REMOVED;
      paint = paintOf(name, style, attributes, paint);
      const isHidden = !hasStyleSheet && hidesByColor(paint);
      flags = flagsInside(style, isHidden ? flags | SAME_COLOR : flags & ~SAME_COLOR);
      if (flags !== outer.flags || paint !== outer.paint || style.isBlock) changes.push(outer);
      return style.isBlock && (flags & REMOVED) === 0;
    },
    close: (name) => end(kindOf(name)),
    isTextShown: () => flags === 0,
    areImagesShown: () => (flags & (REMOVED | INVISIBLE)) === 0,
    isRemoved: () => (flags & REMOVED) !== 0,
    colors: () => ({ color: opaque(paint.color), background: opaque(paint.background) }),
  };
}

/** Whether the attributes of a void element, such as an image, hide it or make it a block. */
export function voidElementStyle(attributes: ReadonlyMap<string, string>): {
  isHidden: boolean;
  isBlock: boolean;
} {
  const style = readStyle(attributes);
  return { isHidden: (flagsInside(style, 0) & (REMOVED | INVISIBLE)) !== 0, isBlock: style.isBlock };
}

function flagsInside({ isRemoved, isInvisible, isTiny }: Style, flags: number): number {
  let inside = isRemoved ? flags | REMOVED : flags;
  if (isInvisible !== null) inside = isInvisible ? inside | INVISIBLE : inside & ~INVISIBLE;
  if (isTiny !== null) inside = isTiny ? inside | TINY : inside & ~TINY;
  return inside;
}

/** What an inline style and the attribute `hidden` change. */
interface Style extends DeclaredColors {
  isRemoved: boolean;
  isBlock: boolean;
  /** Null: as outside. */
  isInvisible: boolean | null;
  isTiny: boolean | null;
}

const UNSTYLED: Style = {
  isRemoved: false,
  isBlock: false,
  isInvisible: null,
  isTiny: null,
  color: undefined,
  background: undefined,
};
const HIDDEN: Style = { ...UNSTYLED, isRemoved: true };

/** Fast test for styles that may change something. */
const CANDIDATE =
  /display|visibility|opacity|(?:max-)?(?:height|width)\s*:\s*[+.]?0|font|color|background|position|indent|margin[^:]{0,10}:\s*-|clip|transform/i;

/** Mail repeats a few styles: those that were read last, by their text. */
const styles = new Map<string, Style>();
const MAX_STYLES = 500;
const MAX_CACHED_LENGTH = 500;

function readStyle(attributes: ReadonlyMap<string, string>): Style {
  if (attributes.has('hidden')) return HIDDEN;
  const source = attributes.get('style');
  if (source === undefined) return UNSTYLED;
  const known = styles.get(source);
  if (known !== undefined) return known;
  const style = CANDIDATE.test(source) ? parseStyle(source) : UNSTYLED;
  if (source.length > MAX_CACHED_LENGTH) return style;
  if (styles.size >= MAX_STYLES) styles.clear();
  styles.set(source, style);
  return style;
}

function parseStyle(source: string): Style {
  const declared = declarations(source);
  const value = (name: string) => declared.get(name);
  const display = value('display');
  const visibility = value('visibility');
  const size = value('font-size');
  const isRemoved =
    display === 'none' || isZero(value('opacity')) || isCollapsed(declared) || isOutside(declared);
  return {
    isRemoved,
    isBlock: display === 'block',
    isInvisible: visibility === undefined ? null : (INVISIBLE_VALUES.get(visibility) ?? null),
    isTiny:
      size === undefined
        ? null
        : isZero(size) || TINY_SIZE.test(size)
          ? true
          : ABSOLUTE_SIZE.test(size)
            ? false
            : null,
    color: value('color'),
    background: value('background'),
  };
}

const INVISIBLE_VALUES: ReadonlyMap<string, boolean> = new Map([
  ['hidden', true],
  ['collapse', true],
  ['visible', false],
]);

/** Whether a box without height or width cuts off its content. */
function isCollapsed(declared: ReadonlyMap<string, string>): boolean {
  if (!/^(?:hidden|clip)/.test(declared.get('overflow') ?? '')) return false;
  return ['max-height', 'height', 'max-width', 'width'].some((name) => isZero(declared.get(name)));
}

/** Farther than this from its place, text is outside of what a reader can scroll to. Pixels, or points, or characters. */
const FAR = 400;

/** Whether the content is placed outside of the page, cut off, or has no size. */
function isOutside(declared: ReadonlyMap<string, string>): boolean {
  const isPositioned = /^(?:absolute|fixed)/.test(declared.get('position') ?? '');
  if (isPositioned && ['left', 'top', 'right', 'bottom'].some((name) => isFarOut(declared.get(name))))
    return true;
  if (isPositioned && /^rect\((?:[01](?:px)?[\s,]*){4}\)/.test(declared.get('clip') ?? '')) return true;
  if (['text-indent', 'margin-left', 'margin-top'].some((name) => isFarOut(declared.get(name)))) return true;
  if (/^inset\((?:100|[5-9]\d)%\)/.test(declared.get('clip-path') ?? '')) return true;
  const transform = declared.get('transform') ?? '';
  return /^scale[xy]?\(0[,)]/.test(transform) || /^translate[xy]?\(-\d{4}/.test(transform);
}

function isFarOut(value: string | undefined): boolean {
  return value?.startsWith('-') === true && Number.parseFloat(value) <= -FAR;
}

/** Sizes that nobody can read. */
const TINY_SIZE = /^(?:[01](?:\.\d{1,4})?|\.\d{1,4})(?:px|pt)$/;
/** Sizes that revert an inherited size of 0; relative ones such as `100%` or `2em` do not. */
const ABSOLUTE_SIZE =
  /^(?:[+\d.]+(?:px|pt|pc|in|cm|mm|q|rem|vw|vh|vmin|vmax)|(?:xx?-)?small|medium|(?:x{1,3}-)?large)$/;
/** As in `isZero`, no two adjacent parts match the same character: the time is linear in the length of the value. */
const SIZE_IN_SHORTHAND =
  /(?:^|\s)((?:\+?(?:0+(?:\.0+)?|\.0+)|[+\d.]+(?:px|pt|pc|in|cm|mm|q|rem|vw|vh|vmin|vmax|em|ex|ch|%)))(?=[\s/]|$)/;
const RELEVANT_PROPERTIES =
  /(?:^|;)\s*(display|visibility|opacity|max-height|height|max-width|width|overflow|font-size|font|color|background|background-color|background-image|position|left|top|right|bottom|clip|clip-path|text-indent|margin-left|margin-top|transform)\s*:\s*([^;]*)/gi;
/** Properties that are read as another one. */
const LONGHANDS: Readonly<Record<string, string>> = {
  font: 'font-size',
  'background-color': 'background',
  'background-image': 'background',
};

/** The effective value of each relevant property, in lower case: the last one, `!important` before others. */
function declarations(style: string): Map<string, string> {
  const values = new Map<string, string>();
  let important: Set<string> | null = null;
  for (const [, name = '', text = ''] of style.toLowerCase().matchAll(RELEVANT_PROPERTIES)) {
    const declared = text.trim();
    const value = withoutImportant(declared);
    const property = LONGHANDS[name] ?? name;
    if (value !== declared) (important ??= new Set()).add(property);
    else if (important?.has(property)) continue;
    const effective = name === 'font' ? SIZE_IN_SHORTHAND.exec(value)?.[1] : value;
    if (effective === undefined) continue;
    // A background image stays next to a color that is declared after it.
    const before = property === 'background' ? values.get(property) : undefined;
    values.set(
      property,
      before?.includes('(') === true && name !== 'background' ? `${before} ${effective}` : effective,
    );
  }
  return values;
}

/** The value without `!important` at its end. */
function withoutImportant(value: string): string {
  if (!value.endsWith('important')) return value;
  const before = value.slice(0, -'important'.length).trimEnd();
  return before.endsWith('!') ? before.slice(0, -1).trimEnd() : value;
}

function isZero(value: string | undefined): boolean {
  return value !== undefined && /^[+-]?(?:0+(?:\.0*)?|\.0+)(?:[a-z]+|%)?$/.test(value);
}

/** The colors of the text and behind it, as declared inline or by attributes; null: unknown. */
interface Paint {
  readonly color: string | null;
  readonly background: string | null;
}

/** The declared values of these properties, in lower case; undefined: none. */
interface DeclaredColors {
  color: string | undefined;
  background: string | undefined;
}

const UNKNOWN_PAINT: Paint = { color: null, background: null };

/** Mail clients show mail on white; the color of text is unknown, and not white. */
const WHITE_PAGE: Paint = { color: null, background: '#ffffff' };

/** Whether text cannot be distinguished from what is behind it; where the background is not certain, it counts as visible. */
function hidesByColor({ color, background }: Paint): boolean {
  return color === 'transparent' || (color !== null && color === background);
}

/** The colors inside an element; `outer` itself where they do not change. */
function paintOf(
  element: string,
  style: DeclaredColors,
  attributes: ReadonlyMap<string, string>,
  outer: Paint,
): Paint {
  const declared = style.color ?? (element === 'font' ? attributes.get('color') : undefined);
  // The links of a mail have a color of their own unless they declare one.
  const inherited = element === 'a' ? null : outer.color;
  const color = declared === undefined ? inherited : colorOf(declared, outer.color);
  const background = backgroundOf(style.background, attributes, outer.background);
  return color === outer.color && background === outer.background ? outer : { color, background };
}

function opaque(color: string | null): string | null {
  return color === 'transparent' ? null : color;
}

function backgroundOf(
  declared: string | undefined,
  attributes: ReadonlyMap<string, string>,
  outer: string | null,
): string | null {
  // An image, or a gradient.
  if (attributes.has('background') || declared?.includes('(') === true) {
    return declared !== undefined && /^rgb\([^()]*\)$/.test(declared) ? colorOf(declared, outer) : null;
  }
  const value = declared ?? attributes.get('bgcolor');
  return value === undefined || value === 'transparent' ? outer : colorOf(value, outer);
}

const NAMES: ReadonlyMap<string, string> = new Map([
  ['white', '#ffffff'],
  ['black', '#000000'],
  ['red', '#ff0000'],
  ['green', '#008000'],
  ['blue', '#0000ff'],
  ['gray', '#808080'],
  ['silver', '#c0c0c0'],
  ['navy', '#000080'],
  ['whitesmoke', '#f5f5f5'],
]);

/** `#rrggbb` or `transparent`; null for a color that is not recognized. */
function colorOf(value: string, inherited: string | null): string | null {
  const text = value.trim().toLowerCase();
  if (text === 'inherit') return inherited;
  if (text === 'transparent') return text;
  if (/^#?[\da-f]{6}$/.test(text)) return `#${text.slice(-6)}`;
  if (/^#[\da-f]{3}$/.test(text)) return `#${text.slice(1).replaceAll(/./g, '$&$&')}`;
  const rgb = /^rgb\(\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})\s*\)$/.exec(text);
  if (rgb === null) return NAMES.get(text) ?? null;
  return `#${rgb
    .slice(1)
    .map((part) => Math.min(255, Number(part)).toString(16).padStart(2, '0'))
    .join('')}`;
}
