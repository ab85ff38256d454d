/* Colors of an account on the public pages: changed until text in them can be read (WCAG 2.2, 1.4.3). */

/** Backgrounds of the page in both schemes. */
export const CARDS = { light: '#ffffff', dark: '#1d2329' } as const;
/** Contrast of text of normal size. */
const MIN_CONTRAST = 4.5;
/** Share of black or white that is added in one step. */
const STEP = 0.05;

/** The nearest color that text can have on the background of the scheme: darker in light, lighter in dark. */
export function readableColor(color: string, scheme: keyof typeof CARDS): string {
  const toward = scheme === 'light' ? 0 : 255;
  const original = channelsOf(color);
  for (let share = 0; share < 1; share += STEP) {
    const mixed = original.map((value) => Math.round(value + (toward - value) * share));
    if (contrast(mixed, channelsOf(CARDS[scheme])) >= MIN_CONTRAST) return hexOf(mixed);
  }
  return hexOf([toward, toward, toward]);
}

function channelsOf(color: string): number[] {
  return [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
}

function hexOf(channels: readonly number[]): string {
  return `#${channels.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}

function contrast(one: readonly number[], two: readonly number[]): number {
  const [low = 0, high = 0] = [luminance(one), luminance(two)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** Relative luminance (WCAG 2.2). */
function luminance(channels: readonly number[]): number {
  const [red = 0, green = 0, blue = 0] = channels.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
