import { VOID_ELEMENTS } from './walk.ts';

/**
 * Tracks, while HTML is walked, what inline styles and the `hidden` attribute keep from the reader, for the text
 * part. Style sheets are not read. Where broken HTML leaves it open whether a hidden element has ended, it has:
 * a preheader too many in the text is better than a lost paragraph. (Compliance checks need the opposite: see
 * display.ts.)
 *
 * `font-size: 0` and `visibility: hidden` are inherited and can be reverted further in: layout cells commonly have
 * a font size of 0 around content with a size of its own. `mso-hide: all` hides from Outlook alone, often the very
 * button that a conditional comment draws for Outlook a second time, and therefore hides nothing here.
 */
export interface Visibility {
  /** Returns whether the element is shown as a block because of its style. Void elements have no content to track. */
  open(name: string, attributes: ReadonlyMap<string, string>): boolean;
  /** Returns whether an element ended that was shown as a block because of its style. */
  close(name: string): boolean;
  isTextShown(): boolean;
  /** Also true where text has a font size of 0. */
  areImagesShown(): boolean;
  /** Nothing in the current element can be shown. */
  isRemoved(): boolean;
}

/** The attributes that `open` needs. */
export const VISIBILITY_ATTRIBUTES: readonly string[] = ['style', 'hidden'];

const REMOVED = 1;
const INVISIBLE = 2;
const TINY = 4;

/** An element whose style changes what is shown, or that is a block because of its style. */
interface Frame {
  name: string;
  /** Flags outside it. */
  outer: number;
  isBlock: boolean;
  /** Elements opened in it, but in no inner frame, and not yet closed. */
  inside: Map<string, number>;
  count: number;
}

/** Cheap test for styles that may matter while everything is shown. */
const CANDIDATE =
  /display\s*:\s*(?:none|block)|visibility\s*:\s*[hc]|opacity\s*:\s*[+.]?0|max-height\s*:\s*[+.]?0|font-size\s*:\s*[+.]?0|font\s*:/i;
/** Their end tags may be left out before the next one of the same name. */
const ENDED_BY_THE_NEXT = new Set(['dd', 'dt', 'li', 'option', 'p', 'td', 'th', 'tr']);

export function trackVisibility(): Visibility {
  const frames: Frame[] = [];
  let flags = 0;

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
      const { flags: own, isBlock } = styled(attributes, flags);
      if (own !== flags || isBlock) {
        frames.push({ name, outer: flags, isBlock, inside: new Map(), count: 0 });
        flags = own;
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
      // The end of an element around all of them, or a stray end tag.
      return frames.length > 0 && truncate(0);
    },
    isTextShown: () => flags === 0,
    areImagesShown: () => (flags & (REMOVED | INVISIBLE)) === 0,
    isRemoved: () => (flags & REMOVED) !== 0,
  };
}

/** Whether the attributes of a void element, such as an image, keep it from the reader or make it a block. */
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

/** `100%` or `2em` of nothing is nothing. */
const ABSOLUTE_SIZE =
  /^(?:[+\d.]+(?:px|pt|pc|in|cm|mm|q|rem|vw|vh|vmin|vmax)|(?:xx?-)?small|medium|(?:x{1,3}-)?large)$/;
const SIZE_IN_SHORTHAND =
  /(?:^|\s)((?:\+?0*\.?0+|[+\d.]+(?:px|pt|pc|in|cm|mm|q|rem|vw|vh|vmin|vmax|em|ex|ch|%)))(?=[\s/]|$)/;
const IMPORTANT = /\s*!\s*important$/;
const READ = /(?:^|;)\s*(display|visibility|opacity|max-height|overflow|font-size|font)\s*:\s*([^;]*)/gi;

/** The last value of every property that is read, `!important` first; in lower case. */
function declarations(style: string): Map<string, string> {
  const values = new Map<string, string>();
  let important: Set<string> | null = null;
  for (const [, name = '', given = ''] of style.toLowerCase().matchAll(READ)) {
    const written = given.trim();
    const value = written.replace(IMPORTANT, '');
    const property = name === 'font' ? 'font-size' : name;
    if (value !== written) (important ??= new Set()).add(property);
    else if (important?.has(property)) continue;
    const shown = name === 'font' ? SIZE_IN_SHORTHAND.exec(value)?.[1] : value;
    if (shown !== undefined) values.set(property, shown);
  }
  return values;
}

function isZero(value: string | undefined): boolean {
  return value !== undefined && /^[+-]?(?:0+\.?0*|\.0+)(?:[a-z]+|%)?$/.test(value);
}
