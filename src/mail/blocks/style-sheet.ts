import { darkBackground, darkLine, type Layer, readableOn } from './colors.ts';

/*
 * The style sheets of a design. All styles that a mail needs are inline; the sheets change them on narrow screens and in dark
 * mode, for clients that support that. Each color that is used has a class, so that dark mode can replace it.
 */

/** Collects the colors of one mail. Classes are numbered by first use: the same design has the same HTML. */
export function createDarkColors() {
  const classes = new Map<string, { name: string; property: string; dark: string }>();

  function classOf(property: 'color' | 'background-color' | 'border-color', color: string, dark: string) {
    const key = `${property} ${color} ${dark}`;
    let known = classes.get(key);
    if (known === undefined) {
      known = { name: `${property.slice(0, 2)}${classes.size}`, property, dark };
      classes.set(key, known);
    }
    return known.name;
  }

  const rules = (prefix: string, properties: readonly string[]) =>
    [...classes.values()]
      .filter(({ property }) => properties.includes(property))
      .map(({ name, property, dark }) => `${prefix}.${name}{${property}:${dark}!important}`)
      .join('');

  return {
    /** The class of a text, on a background of dark mode. */
    text: (color: string, darkSurface: string) => classOf('color', color, readableOn(color, darkSurface)),
    background: (color: string, layer: Layer) =>
      classOf('background-color', color, darkBackground(color, layer)),
    /** The classes of a button, which keeps its colors. */
    button: (color: string) => classOf('background-color', color, color),
    ink: (color: string) => classOf('color', color, color),
    line: (color: string) => classOf('border-color', color, darkLine(color)),
    /** For clients with the media query. */
    mediaRules: () => rules('', ['color', 'background-color', 'border-color']),
    /** For Outlook on the web and its apps, which mark what they recolor: texts with `data-ogsc`, backgrounds with `data-ogsb`. */
    outlookRules: () =>
      rules('[data-ogsc] ', ['color', 'border-color']) + rules('[data-ogsb] ', ['background-color']),
  };
}

export type DarkColors = ReturnType<typeof createDarkColors>;

/** Below this width of the screen columns are stacked. */
const NARROW = 600;

/** The space at the sides on narrow screens. */
export const NARROW_EDGE = 20;

/** The elements `style` of the head. Separate ones: Gmail drops a whole sheet for one rule that it does not read. */
export function styleElements(colors: DarkColors, darkFooter: string): string {
  const responsive = [
    `@media only screen and (max-width:${NARROW - 1}px){`,
    '.col{display:block!important;width:100%!important;max-width:100%!important}',
    `.edge{padding-left:${NARROW_EDGE}px!important;padding-right:${NARROW_EDGE}px!important}`,
    '.page{padding:0!important}',
    '.card{border-radius:0!important}',
    '.h1{font-size:26px!important;line-height:34px!important}',
    '.btn{width:100%!important}.btn a{display:block!important}',
    '.in{padding-left:0!important;padding-right:0!important}',
    '}',
  ].join('');
  const footer = (prefix: string) => `${prefix}.legal span,${prefix}.legal a{color:${darkFooter}!important}`;
  const dark = `:root{color-scheme:light dark;supported-color-schemes:light dark}@media (prefers-color-scheme:dark){${colors.mediaRules()}${footer('')}}`;
  const outlook = colors.outlookRules() + footer('[data-ogsc] ');
  return [responsive, dark, outlook].map((sheet) => `<style>${sheet}</style>`).join('\n');
}
