import { expect, it } from 'vitest';
import { closest } from '../../src/core/closest.ts';

it.each([
  ['hostnam', 'hostname'],
  ['prot', 'port'],
  ['LISTEN', 'listen'],
  ['lsiten', 'listen'],
  ['zzz', null],
  ['', null],
  ['p'.repeat(10_000), null],
])('the candidate closest to %j is %j', (word, expected) => {
  expect(closest(word, ['hostname', 'listen', 'port'])).toBe(expected);
});
