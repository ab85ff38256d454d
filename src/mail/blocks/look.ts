import { contrast, READABLE, textOn } from './colors.ts';
import type { Block, BlockOf, Network, Theme } from './design.ts';

/* How blocks look: what the HTML of a design and the editor of blocks have in common. */

export const FONT_STACKS: Record<Theme['font'], string> = {
  system: "'Segoe UI',-apple-system,BlinkMacSystemFont,Roboto,'Helvetica Neue',Arial,sans-serif",
  arial: 'Arial,Helvetica,sans-serif',
  verdana: 'Verdana,Geneva,sans-serif',
  tahoma: 'Tahoma,Geneva,sans-serif',
  trebuchet: "'Trebuchet MS',Tahoma,sans-serif",
  georgia: "Georgia,'Times New Roman',serif",
  times: "'Times New Roman',Times,serif",
  courier: "'Courier New',Courier,monospace",
};

/** Of the texts of headings by their level. */
export const HEADINGS = {
  1: { size: 30, line: 38 },
  2: { size: 22, line: 30 },
  3: { size: 18, line: 26 },
} as const;

/** Color of the default texts in the footer (compliance.ts), which are inserted with it. */
export const LEGAL_COLOR = '#595959';

export const NETWORK_NAMES: Record<Network, string> = {
  bluesky: 'Bluesky',
  email: 'Email',
  facebook: 'Facebook',
  github: 'GitHub',
  instagram: 'Instagram',
  linkedin: 'LinkedIn',
  mastodon: 'Mastodon',
  pinterest: 'Pinterest',
  telegram: 'Telegram',
  threads: 'Threads',
  tiktok: 'TikTok',
  website: 'Website',
  whatsapp: 'WhatsApp',
  x: 'X',
  youtube: 'YouTube',
};

/** The space at the sides of the content. */
export const EDGE = 32;
export type Padding = NonNullable<Block['padding']>;

const NO_PADDING: Padding = { top: 0, right: 0, bottom: 0, left: 0 };

/** Space above and below a block. */
const SPACE: Record<Exclude<Block['type'], 'spacer'>, readonly [number, number]> = {
  heading: [20, 4],
  text: [8, 8],
  button: [16, 16],
  image: [12, 12],
  columns: [16, 16],
  divider: [20, 20],
  social: [16, 16],
  footer: [24, 24],
};

/** Where a block is in its list, and whether that is a column. */
export interface Position {
  readonly isFirst: boolean;
  readonly isLast: boolean;
  readonly isColumn: boolean;
}

/** The space around the content of a block. */
export function paddingOf(block: Block, { isFirst, isLast, isColumn }: Position): Padding {
  const { type, padding, background } = block;
  if (padding !== undefined) return padding;
  if (isColumn) return { ...NO_PADDING, top: isFirst ? 0 : 6, bottom: isLast ? 0 : 6 };
  if (type === 'spacer') return NO_PADDING;
  const [above, below] = SPACE[type];
  const isBand = background !== undefined;
  return {
    top: isFirst || isBand ? Math.max(above, EDGE) : above,
    right: EDGE,
    bottom: isLast || isBand ? Math.max(below, EDGE) : below,
    left: EDGE,
  };
}

/** The color of texts on a background: that of the theme where it is readable. */
export function textColorOn(background: string, { text }: Theme): string {
  return contrast(text, background) >= READABLE ? text : textOn(background);
}

/** The color of links on a background: the accent where it is readable. */
export function linkColorOn(background: string, theme: Theme): string {
  return contrast(theme.accent, background) >= READABLE ? theme.accent : textColorOn(background, theme);
}

/** The colors of a button. */
export function buttonColors({ color, textColor }: BlockOf<'button'>, { accent }: Theme) {
  const background = color ?? accent;
  return { background, text: textColor ?? textOn(background) };
}

/** The background of the footer: one on which the default texts are readable. */
export function footerBackground({ background }: BlockOf<'footer'>, outer: string): string {
  const own = background ?? outer;
  return contrast(LEGAL_COLOR, own) >= READABLE ? own : '#ffffff';
}
