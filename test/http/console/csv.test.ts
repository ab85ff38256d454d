import { describe, expect, it } from 'vitest';
import { csvField } from '../../../src/http/console/csv.ts';

describe('a field of an exported file', () => {
  it.each([
    '=1+1',
    '+cmd|1',
    '-2+3',
    '@SUM(1)',
    '\t=1+1',
    '\r=1+1',
    '\n=1+1',
    '＝1+1',
    '＋1',
    '－1+1',
    '＠SUM(1)',
    '+49 170 1',
  ])('does not begin as a formula: %j', (value) => {
    expect(csvField(value)).toBe(`"'${value}"`);
  });

  it('has no formula after a semicolon either, which separates cells in some countries', () => {
    expect(csvField("x;=cmd|' /C calc'!A0;y")).toBe(`"x;'=cmd|' /C calc'!A0;y"`);
    expect(csvField({ note: 'x;@SUM(1)' })).toBe(`"{""note"":""x;'@SUM(1)""}"`);
  });

  it.each(['+491701', '-5', 'a=b', 'ada@example.net', 'Thank you ;-)', '', 'a;b'])(
    'is not changed otherwise: %j',
    (value) => {
      expect(csvField(value)).toBe(`"${value}"`);
    },
  );

  it('has its quotation marks twice', () => {
    expect(csvField('a "b", c')).toBe('"a ""b"", c"');
    expect(csvField(null)).toBe('""');
    expect(csvField(-5)).toBe('"-5"');
  });
});
