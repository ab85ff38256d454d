import { describe, expect, it } from 'vitest';
import { trackDisplay } from '../../../src/mail/html/display.ts';
import { trackVisibility, voidElementStyle } from '../../../src/mail/html/visibility.ts';
import { cpuMsOf } from '../../support/process-cost.ts';

/** Whether the text of an element with this style is displayed, for the compliance checks and for the text part. */
function isShown(style: string) {
  const attributes = new Map([['style', style]]);
  const display = trackDisplay();
  display.open('p', attributes);
  const visibility = trackVisibility();
  visibility.open('p', attributes);
  return { forCompliance: display.isShown(), inText: visibility.isTextShown() };
}

describe('a style', () => {
  it.each([
    'opacity:0',
    'color:red; OPACITY : 0 ;',
    'opacity:000',
    'opacity:0.',
    'opacity:.00',
    'opacity:00.00 !important',
    'opacity:0!important;',
  ])('%j hides the text', (style) => {
    expect(isShown(style)).toEqual({ forCompliance: false, inText: false });
  });

  it.each(['opacity:', 'opacity:;', 'opacity:.', 'opacity:0.1', 'opacity:10', 'opacity:.01', 'opacity:0 1'])(
    '%j shows the text',
    (style) => {
      expect(isShown(style)).toEqual({ forCompliance: true, inText: true });
    },
  );

  it.each<[string, boolean]>([
    ['font:0 serif', false],
    ['font:bold +00/1 serif', false],
    ['font:0.0 serif', false],
    ['font:.0', false],
    ['font:0px serif', false],
    ['font-size:0', false],
    ['font-size:00.00em', false],
    ['font-size:0. ! important', false],
    ['font:10px serif', true],
    ['font:0.5em serif', true],
    ['font-size:.01px', true],
    ['opacity:0 ! important; opacity:1', false],
    ['opacity:1!important; opacity:0', true],
    ['opacity:1 !\timportant; opacity:0', true],
  ])('%j: the text part has the text: %s', (style, inText) => {
    expect(isShown(style).inText).toBe(inText);
  });

  const blanks = '\t'.repeat(50_000);
  const zeros = '0'.repeat(50_000);
  it.each<[string, string]>([
    ['an opacity of blanks', `opacity:${blanks}x`],
    ['blanks after an opacity', `opacity:0${blanks}x`],
    ['blanks within an opacity', `opacity:0${blanks}x${blanks}y`],
    ['blanks after an exclamation mark', `opacity:0 !${blanks}x`],
    ['an opacity of zeros', `opacity:${zeros}x`],
    ['exclamation marks', `opacity:0${' !'.repeat(25_000)}x`],
    ['a font of zeros', `font:${zeros}x`],
    ['a font of signed zeros', `font:+${zeros}x`],
    ['a font size of zeros', `font-size:${zeros}_`],
    ['a font size of zeros and a dot', `font-size:${zeros}.${zeros}_`],
    ['repeated names', 'opacity\t'.repeat(20_000)],
    ['semicolons', ';'.repeat(50_000)],
  ])('is read in linear time: %s', (_, style) => {
    const cost = cpuMsOf(() => {
      isShown(style);
      voidElementStyle(new Map([['style', style]]));
    });
    // Quadratic time is seconds.
    expect(cost).toBeLessThan(500);
  });
});
