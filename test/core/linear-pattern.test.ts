import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePattern } from '../../src/core/linear-pattern.ts';

function matches(pattern: string, text: string): boolean {
  const compiled = compilePattern(pattern);
  if (typeof compiled === 'string') throw new Error(compiled);
  return compiled.matches(text);
}

describe('a linear pattern', () => {
  it.each([
    ['S\\d{4}', 'on our block list (S3140)', true],
    ['S\\d{4}', 'on our block list (S31)', false],
    ['^too many (connections|sessions)$', 'Too many Sessions', true],
    ['^too many (connections|sessions)$', 'too many sessions today', false],
    ['\\bip\\b', 'recipient', false],
    ['\\bip\\b', 'your IP is blocked', true],
    ['a(?:b|c){2,3}d', 'abcbd', true],
    ['a(?:b|c){2,3}d', 'abcbcd', false],
    ['[^0-9]\\.[A-C]', '1.a x.B', true],
    ['\\[ph0[12]\\]', 'refused [PH02]', true],
    ['x.*y|z', 'x..', false],
    ['x.*y|z', 'x..y', true],
  ])('%s in "%s": %s', (pattern, text, expected) => {
    expect(matches(pattern, text)).toBe(expected);
  });

  it.each([
    ['(a', 'has a "(" without ")"'],
    ['a)', 'has a ")" without "("'],
    ['[a', 'has a "[" without "]"'],
    ['*a', 'has a "*" with nothing to repeat'],
    ['a**', 'repeats a repetition'],
    ['a*', 'must not match the empty text'],
    ['(?=a)', 'must not have lookaround or named groups'],
    ['(a)\\1', 'must not have \\1'],
    ['a{1,99}', 'must repeat at most 50 times'],
    ['(abcdefghij){50}(abcdefghij){50}', 'is too large'],
    ['((((((){50}){50}){50}){50}){50}){50}', 'is too large'],
  ])('is refused: %s', (pattern, fault) => {
    expect(compilePattern(pattern)).toBe(fault);
  });

  it('agrees with RegExp', () => {
    const atom = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\d', '(a|b)', '(?:ab|c)', '^', '$', '\\b');
    const piece = fc.tuple(atom, fc.constantFrom('', '', '?', '*', '+', '{2}', '{1,3}'));
    const pattern = fc
      .array(piece, { minLength: 1, maxLength: 6 })
      .map((pieces) =>
        pieces
          .map(
            ([one, times]) => one + (/[$^b]$|^\^$/.test(one) && one.length < 3 && one !== 'b' ? '' : times),
          )
          .join(''),
      );
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '1', ' '), maxLength: 12 });
    fc.assert(
      fc.property(pattern, text, (source, given) => {
        const compiled = compilePattern(source);
        if (typeof compiled === 'string') return;
        expect(compiled.matches(given)).toBe(new RegExp(source, 'i').test(given));
      }),
      { numRuns: 500 },
    );
  });

  it('takes steps in proportion to the text where RegExp backtracks', () => {
    expect(matches('(a+)+$', `${'a'.repeat(2000)}b`)).toBe(false);
  });
});
