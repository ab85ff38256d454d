import { expect, it } from 'vitest';
import { canonicalBase64 } from '../../src/sending/request.ts';

it.each([
  ['aGVsbG8', 'aGVsbG8='],
  ['-_-_', '+/+/'],
  ['-_8', '+/8='],
  ['QQ', 'QQ=='],
  ['QUJD', 'QUJD'],
  ['', ''],
  // No number of bytes has this length: the check of the attachment refuses it.
  ['QUJDR', 'QUJDR'],
])('reads %s as %s', (given, expected) => {
  expect(canonicalBase64(given)).toBe(expected);
});
