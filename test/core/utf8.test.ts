import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeUtf8, encodeUtf8 } from '../../src/core/utf8.ts';

describe('text in UTF-8', () => {
  it('has the bytes that Node writes, whatever its characters and their place', () => {
    const part = fc.oneof(fc.constantFrom('a', 'é', '€', '🚀', '\ud800', '\udc00', '\0', ''), fc.string());
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), fc.integer({ min: 0, max: 9000 }), (parts, ascii) => {
        for (const text of [parts.join('') + 'x'.repeat(ascii), 'x'.repeat(ascii) + parts.join('')]) {
          const bytes = Buffer.from(text);
          expect(encodeUtf8(text).equals(bytes)).toBe(true);
          expect(decodeUtf8(bytes)).toBe(text.toWellFormed());
        }
      }),
    );
  });
});
