/*
 * Text in the color of its background cannot be seen. Only colors that are declared inline, or by attributes, are compared;
 * where the background is not certain, text counts as visible.
 */

/** The colors of the text and behind it; null: unknown. */
export interface Paint {
  readonly color: string | null;
  readonly background: string | null;
}

/** The declared values of these properties, in lower case; undefined: none. */
export interface DeclaredColors {
  color: string | undefined;
  background: string | undefined;
}

export const UNKNOWN_PAINT: Paint = { color: null, background: null };

/** Mail clients show mail on white; the color of text is unknown, and not white. */
export const WHITE_PAGE: Paint = { color: null, background: '#ffffff' };

/** Whether text cannot be distinguished from what is behind it. */
export function hidesByColor({ color, background }: Paint): boolean {
  return color === 'transparent' || (color !== null && color === background);
}

/** The colors inside an element; `outer` itself where they do not change. */
export function paintOf(
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
