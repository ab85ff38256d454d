import { describe, expect, it } from 'vitest';
import { customFieldsFault, mergeCustomFields } from '../../src/audience/profile.ts';

const nested = (depth: number): unknown => (depth === 0 ? 1 : { in: nested(depth - 1) });
const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`f${n}`, n]));

describe('custom fields are stored unchanged', () => {
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
      'names and values that look like code',
      { "'; DROP TABLE contacts; --": '<script>', constructor: 'x', toString: 1, '$.a': '{{name}}' },
    ],
    ['a thousand values', many(1000)],
    ['five levels', nested(5)],
  ])('%s', (_, fields) => {
    expect(customFieldsFault(fields)).toBeNull();
    expect(customFieldsFault(JSON.parse(JSON.stringify(fields)))).toBeNull();
  });
});

describe('custom fields are refused', () => {
  it.each([
    ['no object', 'x', '', 'must be an object'],
    ['a list', [], '', 'must be an object'],
    ['too many', many(1001), '', 'must have at most 1000 values'],
    ['too many inside', { list: Array.from({ length: 1001 }, () => 1) }, '', 'must have at most 1000 values'],
    ['too deep', nested(6), 'in.in.in.in.in', 'must not be nested more than 5 levels deep'],
    ['too large', { a: 'x'.repeat(65_536) }, '', 'must have at most 65536 bytes of JSON'],
    ['NUL', { a: { b: ['x', 'a\u0000b'] } }, 'a.b[1]', 'must not contain the character U+0000'],
    [
      'an unpaired surrogate',
      { a: '\ud83d' },
      'a',
      'must not contain an unpaired surrogate (half a character)',
    ],
    ['a number that is not exact', { a: JSON.parse('9007199254740993') }, 'a', undefined],
    ['a number that is infinite', JSON.parse('{"a":1e400}'), 'a', undefined],
    [
      'a name that is too long',
      { ['x'.repeat(101)]: 1 },
      '',
      'must not have a field whose name is longer than 100 characters',
    ],
    ['an empty name', { a: { '': 1 } }, 'a', 'must not have a field without a name'],
    [
      'a control character in a name',
      { 'a\nb': 1 },
      '',
      'must not have a field whose name contains a control character',
    ],
    ['__proto__', JSON.parse('{"__proto__":{"admin":true}}'), '', 'must not have a field __proto__'],
  ])('%s', (_, fields, path, message) => {
    const fault = customFieldsFault(fields);
    expect(fault?.path).toBe(path);
    if (message !== undefined) expect(fault?.message).toBe(message);
  });
});

it('merging replaces fields on the first level, and null removes one', () => {
  expect(mergeCustomFields({ a: 1, b: { c: 1 }, d: 1 }, { b: { e: 2 }, d: null, f: 3 })).toEqual({
    a: 1,
    b: { e: 2 },
    f: 3,
  });
});
