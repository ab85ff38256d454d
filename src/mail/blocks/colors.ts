/*
 * Colors of mail: contrast (WCAG 2.2), and what those of designs become in dark mode. All colors are `#rrggbb`.
 */

type Rgb = readonly [red: number, green: number, blue: number];
/** Hue in degrees, saturation and lightness from 0 to 1. */
type Hsl = readonly [hue: number, saturation: number, lightness: number];

function rgbOf(color: string): Rgb {
  const value = Number.parseInt(color.slice(1), 16);
  return [value >> 16, (value >> 8) & 0xff, value & 0xff];
}

function hslOf(color: string): Hsl {
  const [red, green, blue] = rgbOf(color).map((part) => part / 255) as [number, number, number];
  const max = Math.max(red, green, blue);
  const min = Math.min(red, green, blue);
  const range = max - min;
  const lightness = (max + min) / 2;
  if (range === 0) return [0, 0, lightness];
  const saturation = range / (1 - Math.abs(2 * lightness - 1));
  const sector =
    max === red
      ? ((green - blue) / range + 6) % 6
      : max === green
        ? (blue - red) / range + 2
        : (red - green) / range + 4;
  return [60 * sector, saturation, lightness];
}

function colorOf([hue, saturation, lightness]: Hsl): string {
  const reach = saturation * Math.min(lightness, 1 - lightness);
  const part = (n: number) => {
    const k = (n + hue / 30) % 12;
    const value = lightness - reach * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(255 * value)
      .toString(16)
      .padStart(2, '0');
  };
  return `#${part(0)}${part(8)}${part(4)}`;
}

/** WCAG 2.2, relative luminance. */
function luminance(color: string): number {
  const [red, green, blue] = rgbOf(color).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** WCAG 2.2, contrast ratio: from 1 to 21. */
export function contrast(one: string, other: string): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** The contrast of readable text (WCAG 2.2, 1.4.3). */
export const READABLE = 4.5;

/** White or nearly black, whichever is more readable on a color; white where both are. */
export function textOn(background: string): string {
  return contrast('#ffffff', background) >= READABLE ? '#ffffff' : '#111111';
}

/** Lightness of what was light: around the content, behind it, and behind single blocks. */
const DARK_LIGHTNESS = { page: 0.07, surface: 0.12, block: 0.17 } as const;
export type Layer = keyof typeof DARK_LIGHTNESS;

/** A background in dark mode: dark ones stay, light ones keep their hue. */
export function darkBackground(color: string, layer: Layer): string {
  if (luminance(color) < 0.18) return color;
  const [hue, saturation] = hslOf(color);
  return colorOf([hue, Math.min(saturation, 0.25), DARK_LIGHTNESS[layer]]);
}

/** The color of a line in dark mode. */
export function darkLine(color: string): string {
  const [hue, saturation, lightness] = hslOf(color);
  return colorOf([hue, Math.min(saturation, 0.4), lightness > 0.6 ? 0.28 : Math.max(lightness, 0.4)]);
}

/** The color of text on a dark background: as much lighter as it takes to be readable, with its hue. */
export function readableOn(color: string, background: string): string {
  const [hue, saturation, lightness] = hslOf(color);
  // What was black or gray becomes a soft white.
  const target = saturation < 0.25 || lightness < 0.2 ? 10 : 6;
  let result = color;
  for (let step = lightness; contrast(result, background) < target && step < 1; step += 0.02)
    result = colorOf([hue, Math.min(saturation, 0.85), Math.min(step, 0.97)]);
  return result;
}
