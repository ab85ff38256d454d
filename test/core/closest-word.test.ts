import { expect, it } from 'vitest';
import { closestWord } from '../../src/core/closest-word.ts';

it.each([
  ['hostnam', 'hostname'],
  ['prot', 'port'],
  ['LISTEN', 'listen'],
  ['lsiten', 'listen'],
  ['zzz', null],
  ['', null],
  ['p'.repeat(10_000), null],
])('the candidate closest to %j is %j', (word, expected) => {
  expect(closestWord(word, ['hostname', 'listen', 'port'])).toBe(expected);
});
