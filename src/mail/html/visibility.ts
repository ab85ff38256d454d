import { ENDED_BY_THE_NEXT, VOID_ELEMENTS } from './walk.ts';

/**
 * Tracks, while HTML is walked, what inline styles and the `hidden` attribute hide, for the text part. Style sheets are
 * not read. Where broken HTML is ambiguous, a hidden element counts as ended: a preheader in the text is better than a
 * lost paragraph. (Compliance checks need the opposite, see display.ts.)
 *
 * `font-size: 0` and `visibility: hidden` are inherited and can be reverted in inner elements: layout cells commonly set a
 * font size of 0 around content that sets another. `mso-hide: all` is ignored: it hides from Outlook alone, often a button
 * that a conditional comment renders for Outlook.
 */
export interface Visibility {
  /** Returns whether the style of the element makes it a block. Void elements have no content to track. */
  open(name: string, attributes: ReadonlyMap<string, string>): boolean;
  /** Returns whether an element ended that its style made a block. */
  close(name: string): boolean;
  isTextShown(): boolean;
  /** Also true inside a font size of 0. */
  areImagesShown(): boolean;
  /** Whether nothing in the current element can be displayed. */
  isRemoved(): boolean;
}

/** The attributes that `open` reads. */
export const VISIBILITY_ATTRIBUTES: readonly string[] = ['style', 'hidden'];

const REMOVED = 1;
const INVISIBLE = 2;
const TINY = 4;

/** An element whose style changes visibility or makes it a block. */
interface Frame {
  name: string;
  /** The flags outside the element. */
  outer: number;
  isBlock: boolean;
  /** The open elements in this frame that are in no inner frame, by name. */
  inside: Map<string, number>;
  count: number;
}

/** Fast test for styles that may change visibility while everything is displayed. */
const CANDIDATE =
  /display\s*:\s*(?:none|block)|visibility\s*:\s*[hc]|opacity\s*:\s*[+.]?0|max-height\s*:\s*[+.]?0|font-size\s*:\s*[+.]?0|font\s*:/i;

const MAX_PLAIN_STYLES = 8;
const UNCHANGED: Styled = { flags: 0, isBlock: false };

/** Creates a tracker for one walk. */
export function trackVisibility(): Visibility {
  const frames: Frame[] = [];
  let flags = 0;
  /** The styles that were found last to change nothing where everything is displayed: most elements repeat a few. */
  const plainStyles: string[] = [];
  const styleOf = (attributes: ReadonlyMap<string, string>): Styled => {
    if (flags !== 0) return styled(attributes, flags);
    const style = attributes.get('style') ?? '';
    if (plainStyles.includes(style) && !attributes.has('hidden')) return UNCHANGED;
    const found = styled(attributes, 0);
    if (found.flags === 0 && !found.isBlock) {
      if (plainStyles.length === MAX_PLAIN_STYLES) plainStyles.shift();
      plainStyles.push(style);
    }
    return found;
  };

  const truncate = (length: number): boolean => {
    let endedBlock = false;
    for (let at = frames.length - 1; at >= length; at--) {
      const frame = frames[at];
      if (frame === undefined) continue;
      flags = frame.outer;
      endedBlock ||= frame.isBlock;
    }
    frames.length = length;
    return endedBlock;
  };

  return {
    open: (name, attributes) => {
      if ((attributes.size === 0 && frames.length === 0) || VOID_ELEMENTS.has(name)) return false;
      let top = frames.at(-1);
      if (top !== undefined && top.name === name && top.count === 0 && ENDED_BY_THE_NEXT.has(name)) {
        truncate(frames.length - 1);
        top = frames.at(-1);
      }
      const { flags: inner, isBlock } = styleOf(attributes);
      if (inner !== flags || isBlock) {
        frames.push({ name, outer: flags, isBlock, inside: new Map(), count: 0 });
        flags = inner;
      } else if (top !== undefined) {
        top.inside.set(name, (top.inside.get(name) ?? 0) + 1);
        top.count++;
      }
      return isBlock;
    },
    close: (name) => {
      for (let at = frames.length - 1; at >= 0; at--) {
        const frame = frames[at];
        const inside = frame?.inside.get(name) ?? 0;
        if (frame !== undefined && inside > 0) {
          frame.inside.set(name, inside - 1);
          frame.count--;
          return truncate(at + 1);
        }
        if (frame?.name === name) return truncate(at);
      }
      // The end of an element around all frames, or a stray end tag.
      return frames.length > 0 && truncate(0);
    },
    isTextShown: () => flags === 0,
    areImagesShown: () => (flags & (REMOVED | INVISIBLE)) === 0,
    isRemoved: () => (flags & REMOVED) !== 0,
  };
}

/** Whether the attributes of a void element, such as an image, hide it or make it a block. */
export function voidElementStyle(attributes: ReadonlyMap<string, string>): {
  isHidden: boolean;
  isBlock: boolean;
} {
  const { flags, isBlock } = styled(attributes, 0);
  return { isHidden: (flags & (REMOVED | INVISIBLE)) !== 0, isBlock };
}

interface Styled {
  flags: number;
  isBlock: boolean;
}

function styled(attributes: ReadonlyMap<string, string>, inherited: number): Styled {
  if (attributes.size === 0 || (inherited & REMOVED) !== 0) return { flags: inherited, isBlock: false };
  if (attributes.has('hidden')) return { flags: inherited | REMOVED, isBlock: false };
  const style = attributes.get('style');
  if (style === undefined || (inherited === 0 && !CANDIDATE.test(style))) {
    return { flags: inherited, isBlock: false };
  }
  const declared = declarations(style);
  const display = declared.get('display');
  const isCollapsed =
    isZero(declared.get('max-height')) && /^(?:hidden|clip)/.test(declared.get('overflow') ?? '');
  if (display === 'none' || isCollapsed || isZero(declared.get('opacity'))) {
    return { flags: inherited | REMOVED, isBlock: false };
  }
  let flags = inherited;
  const visibility = declared.get('visibility');
  if (visibility === 'hidden' || visibility === 'collapse') flags |= INVISIBLE;
  else if (visibility === 'visible') flags &= ~INVISIBLE;
  const size = declared.get('font-size');
  if (isZero(size)) flags |= TINY;
  else if (size !== undefined && ABSOLUTE_SIZE.test(size)) flags &= ~TINY;
  return { flags, isBlock: display === 'block' };
}

/** Sizes that revert an inherited size of 0; relative ones such as `100%` or `2em` do not. */
const ABSOLUTE_SIZE =
  /^(?:[+\d.]+(?:px|pt|pc|in|cm|mm|q|rem|vw|vh|vmin|vmax)|(?:xx?-)?small|medium|(?:x{1,3}-)?large)$/;
/** As in `isZero`, no two adjacent parts match the same character: the time is linear in the length of the value. */
const SIZE_IN_SHORTHAND =
  /(?:^|\s)((?:\+?(?:0+(?:\.0+)?|\.0+)|[+\d.]+(?:px|pt|pc|in|cm|mm|q|rem|vw|vh|vmin|vmax|em|ex|ch|%)))(?=[\s/]|$)/;
const RELEVANT_PROPERTIES =
  /(?:^|;)\s*(display|visibility|opacity|max-height|overflow|font-size|font)\s*:\s*([^;]*)/gi;

/** The effective value of each relevant property, in lower case: the last one, `!important` before others. */
function declarations(style: string): Map<string, string> {
  const values = new Map<string, string>();
  let important: Set<string> | null = null;
  for (const [, name = '', text = ''] of style.toLowerCase().matchAll(RELEVANT_PROPERTIES)) {
    const declared = text.trim();
    const value = withoutImportant(declared);
    const property = name === 'font' ? 'font-size' : name;
    if (value !== declared) (important ??= new Set()).add(property);
    else if (important?.has(property)) continue;
    const effective = name === 'font' ? SIZE_IN_SHORTHAND.exec(value)?.[1] : value;
    if (effective !== undefined) values.set(property, effective);
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
