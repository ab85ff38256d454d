import { describe, expect, it } from 'vitest';
import { textFromHtml } from '../../../src/mail/html/text-part.ts';
import { trackVisibility, voidElementStyle } from '../../../src/mail/html/visibility.ts';
import { cpuMsOf } from '../../support/process-cost.ts';

/** Whether the text of an element with this style is displayed. */
function isShown(style: string): boolean {
  const visibility = trackVisibility();
  visibility.open('p', new Map([['style', style]]));
  return visibility.isTextShown();
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
    expect(isShown(style)).toBe(false);
  });

  it.each(['opacity:', 'opacity:;', 'opacity:.', 'opacity:0.1', 'opacity:10', 'opacity:.01', 'opacity:0 1'])(
    '%j shows the text',
    (style) => {
      expect(isShown(style)).toBe(true);
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
    ['font-size:.01px', false],
    ['font-size:1px', false],
    ['font-size:2px', true],
    ['visibility:collapse', false],
    ['opacity:0%', false],
    ['opacity:1%', true],
    ['max-height:0;overflow:hidden', false],
    ['height:0px;overflow:hidden', false],
    ['height:0', true],
    ['width:0;overflow:clip', false],
    ['max-height:0', true],
    ['position:absolute;left:-9999px', false],
    ['position:relative;left:-9999px', true],
    ['position:absolute;left:-10px', true],
    ['text-indent:-9999px', false],
    ['text-indent:-1em', true],
    ['margin-left:-2000px', false],
    ['position:absolute;clip:rect(0 0 0 0)', false],
    ['clip-path:inset(100%)', false],
    ['transform:scale(0)', false],
    ['color:#fff', false],
    ['color:white;background:#000', true],
    ['color:#FFFFFF;background-color:rgb(255, 255, 255)', false],
    ['color:#fff;background:url(a.png)', true],
    ['color:#fff;background:linear-gradient(#000,#111)', true],
    ['color:transparent', false],
    ['color:#333;background:#333', false],
    ['color:#333', true],
    ['opacity:0 ! important; opacity:1', false],
    ['opacity:1!important; opacity:0', true],
    ['opacity:1 !\timportant; opacity:0', true],
  ])('%j shows the text: %s', (style, shown) => {
    expect(isShown(style)).toBe(shown);
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
    ['a color of blanks', `color:rgb(${blanks}x`],
    ['a clip of zeros', `position:fixed;clip:rect(${'0 '.repeat(25_000)}`],
    ['a margin of blanks', `margin${blanks}:-`],
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

describe('colors', () => {
  it.each([
    ['<body bgcolor="#000000"><p style="color:#fff">', true],
    ['<table bgcolor="black"><tr><td><font color="#000">', false],
    ['<td style="background:#fff url(x.png)"><p style="color:#fff">', true],
    ['<td background="x.png"><p style="color:#fff">', true],
    ['<p style="color:#fff"><b style="color:#000">', true],
    ['<p style="color:#fff"><b>', false],
    ['<p style="color:#fff"><a href="#">', true],
    ['<div style="background:#000"><p style="color:#fff"></p></div><p style="color:#fff">', false],
    // A style sheet may set other colors.
    ['<style>td{background:#000}</style><td style="color:#fff">', true],
  ])('%s shows its text: %s', (html, shown) => {
    expect(textFromHtml(`${html}x`)).toBe(shown ? 'x' : '');
  });
});
