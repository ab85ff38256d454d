import { describe, expect, it } from 'vitest';
import { customFieldsFault, mergeCustomFields } from '../../src/audience/custom-fields.ts';

const nested = (depth: number): unknown => (depth === 0 ? 1 : { in: nested(depth - 1) });
const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`f${n}`, n]));

describe('custom fields are kept exactly', () => {
  it.each([
    ['none', {}],
    [
      'every kind of value',
      {
        text: 'x',
        number: -1.5e-7,
        big: 9_007_199_254_740_991,
        yes: true,
        nothing: null,
        list: [1, [2]],
        inner: { a: {} },
      },
    ],
    [
      'any script, direction and mark',
      { 名前: 'Ζωή', 'full name': '\u202Eright to left\u202C', flag: '🏳️‍🌈', lines: 'a\r\n\tb' },
    ],
    [
      'what only looks dangerous',
      { "'; DROP TABLE contacts; --": '<script>', constructor: 'x', toString: 1, '$.a': '{{name}}' },
    ],
    ['a thousand of them', many(1000)],
    ['five levels', nested(5)],
  ])('%s', (_, fields) => {
    expect(customFieldsFault(fields)).toBeNull();
    expect(customFieldsFault(JSON.parse(JSON.stringify(fields)))).toBeNull();
  });
});

describe('custom fields are refused by name', () => {
  it.each([
    ['no object', 'x', '', 'must be an object'],
    ['a list', [], '', 'must be an object'],
    ['too many', many(1001), '', 'has more than 1000 values'],
    ['too many inside', { list: Array.from({ length: 1001 }, () => 1) }, '', 'has more than 1000 values'],
    ['too deep', nested(6), 'in.in.in.in.in', 'is nested more than 5 levels deep'],
    ['too large', { a: 'x'.repeat(65_536) }, '', 'is larger than 65536 bytes of JSON'],
    ['NUL', { a: { b: ['x', 'a\u0000b'] } }, 'a.b[1]', 'must not contain the character U+0000'],
    ['half a character', { a: '\ud83d' }, 'a', 'must not contain an unpaired surrogate (half a character)'],
    ['a number that is not exact', { a: JSON.parse('9007199254740993') }, 'a', undefined],
    ['a number that is no number', JSON.parse('{"a":1e400}'), 'a', undefined],
    [
      'a name without end',
      { ['x'.repeat(101)]: 1 },
      '',
      'has a field whose name is longer than 100 characters',
    ],
    ['an empty name', { a: { '': 1 } }, 'a', 'has a field without a name'],
    [
      'a control character in a name',
      { 'a\nb': 1 },
      '',
      'has a field whose name contains a control character',
    ],
    ['__proto__', JSON.parse('{"__proto__":{"admin":true}}'), '', 'must not have a field __proto__'],
  ])('%s', (_, fields, path, message) => {
    const fault = customFieldsFault(fields);
    expect(fault?.path).toBe(path);
    if (message !== undefined) expect(fault?.message).toBe(message);
  });
});

it('merging replaces what is given, and null takes away', () => {
  expect(mergeCustomFields({ a: 1, b: { c: 1 }, d: 1 }, { b: { e: 2 }, d: null, f: 3 })).toEqual({
    a: 1,
    b: { e: 2 },
    f: 3,
  });
});
