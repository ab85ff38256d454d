import { expect, it } from 'vitest';
import { numbersIn } from '../../../src/console/parts/numbers.ts';

/** With plain spaces: languages use several kinds of spaces that do not break. */
const plain = (text: string) => text.replace(/\s/g, ' ');

it('writes numbers, shares and sizes in the language of the person', () => {
  const shown = (locale: string) => {
    const { number, percent, size } = numbersIn(locale);
    return [number(1234.5), percent(1, 8), size(1_500_000), size(2_500_000_000), size(12_345)].map(plain);
  };
  expect(shown('en')).toEqual(['1,234.5', '12.5%', '1.5 MB', '2.5 GB', '12 kB']);
  expect(shown('de')).toEqual(['1.234,5', '12,5 %', '1,5 MB', '2,5 GB', '12 kB']);
  expect(shown('fr')).toEqual(['1 234,5', '12,5 %', '1,5 Mo', '2,5 Go', '12 ko']);
});

it('shows no share of nothing, and at least 1 kB', () => {
  const { percent, size } = numbersIn('en');
  expect(percent(0, 0)).toBe('–');
  expect(size(0)).toBe('1 kB');
});

it('rounds down a share of which 100% means all', () => {
  const { percent } = numbersIn('en');
  expect(percent(9999, 10_000)).toBe('100%');
  expect(percent(9999, 10_000, 'down')).toBe('99.9%');
});
