import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../../src/core/concurrency/slices.ts';
import { createHtmlReader } from '../../../src/sending/render/html-reader.ts';

const ROWS = '<tr><td>Article, blue</td></tr>\n'.repeat(200);
const htmlOf = (number: number) => `<p>Order ${1_000_000 + number}</p>${ROWS}{{company_address_html}}`;

function start(maxCharacters?: number) {
  const reader = createHtmlReader('variables', maxCharacters);
  return { read: (html: string, isKept?: boolean) => withoutPause(reader.reading(html, isKept)) };
}

describe('HTML that was read', () => {
  it('is kept when it is read again, also next to HTML that differs in a few characters', () => {
    const { read } = start();
    const first = read(htmlOf(1));
    read(htmlOf(2));
    const second = read(htmlOf(1));
    expect(second).not.toBe(first);
    expect(second).toEqual(first);
    for (let number = 3; number < 8; number++) read(htmlOf(number));
    const found = [read(htmlOf(1)), read(htmlOf(9)), read(htmlOf(1))];
    expect(found[2]).toBe(found[0]);
  });

  it('is not kept when each one is read once', () => {
    const { read } = start();
    const numbers = Array.from({ length: 1000 }, (_, number) => number);
    const first = numbers.map((number) => read(htmlOf(number)));
    const kept = numbers.filter((number) => read(htmlOf(number)) === first[number]);
    // One of a power of two, and at most four that are alike.
    expect(kept.length).toBeLessThanOrEqual(4);
  });

  it('is kept when it is certain to be read again', () => {
    const { read } = start();
    const first = read(htmlOf(1), true);
    for (let number = 2; number < 100; number++) read(`<p>${number}</p>${htmlOf(number)}`);
    expect(read(htmlOf(1))).toBe(first);
  });

  it('is found when a request reads it twice', () => {
    const { read } = start();
    expect(read(htmlOf(1))).toBe(read(htmlOf(1)));
  });

  it('is dropped when others that are kept need its memory', () => {
    const { read } = start(10 * htmlOf(1).length);
    const first = read(htmlOf(1), true);
    for (let number = 2; number < 20; number++) read(`<p>${number}</p>${htmlOf(number)}`, true);
    expect(read(htmlOf(1))).not.toBe(first);
  });
});
