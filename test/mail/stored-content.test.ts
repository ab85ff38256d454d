import { deflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  contentWriter,
  type EncodedContent,
  jsonPieces,
  type LongContent,
  type PackedContent,
  packContent,
  packLongContent,
  plainContentWriter,
  unpackContent,
} from '../../src/mail/stored-content.ts';

/** Half a surrogate pair, which JSON escapes, and characters that are escaped or of several bytes. */
const ODD = fc.constantFrom('\ud83d', '\udc0e', '🐎', '"', '\\', '\n', '\u0001', 'ü', '€');
const json = (html: string) => JSON.stringify({ subject: 'Žluťoučký kůň 🐎', html });
const rows = (count: number) => json('<tr><td style="padding:8px 0">Bücher 🐎</td></tr>\n'.repeat(count));
/** The form in which the database returns a content. */
function stored({ body, size }: PackedContent): EncodedContent {
  return {
    bytes: new Uint8Array(typeof body === 'string' ? Buffer.from(body) : body),
    encoding: typeof body === 'string' ? 'json' : 'deflate',
    size,
  };
}

describe('a content', () => {
  it.each([
    ['short', json('<p>Hi</p>'), 'json'],
    ['ordinary', rows(100), 'deflate'],
    ['long', rows(5_000), 'json'],
  ])('that is %s is stored in the smaller encoding, and decoded to the same JSON', (_, content, encoding) => {
    const packed = packContent(content);
    expect(stored(packed).encoding).toBe(encoding);
    expect(packed.size).toBe(Buffer.byteLength(content));
    expect(unpackContent(stored(packed))).toBe(content);
  });

  it('may follow a longer one, and have the maximum length for the calling thread', () => {
    const longest = json('字'.repeat(32 * 1024 - json('').length));
    expect(longest).toHaveLength(32 * 1024);
    const packed = [longest, rows(20), longest].map((content) => packContent(content));
    expect(packed.map((content) => stored(content).encoding)).toEqual(['deflate', 'deflate', 'deflate']);
    expect(packed.map((content) => unpackContent(stored(content)))).toEqual([longest, rows(20), longest]);
  });

  it('that is repetitive takes a tenth of its length', () => {
    const content = rows(200);
    expect(packContent(content).body.length).toBeLessThan(content.length / 10);
  });

  it('that is long is deflated by another thread', async () => {
    const content = rows(5_000);
    const packed = await packLongContent(written(content));
    expect(packed.body.length).toBeLessThan(content.length / 10);
    expect(unpackContent(stored(packed))).toBe(content);
  });

  it('that is written in pieces is the same, whatever its characters', async () => {
    // Around the end of the first piece.
    const padding = fc.integer({ min: 65_500, max: 65_560 });
    const characters = fc.string({ unit: fc.oneof(fc.string({ unit: 'binary' }), ODD), maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(padding, characters, fc.integer({ min: 1, max: 3 }), async (length, text, times) => {
        const content = { text: `${'x'.repeat(length)}${text}`.repeat(times) };
        for (const writer of [contentWriter(100), contentWriter(content.text.length), plainContentWriter()]) {
          for (const piece of jsonPieces(content)) writer.write(piece);
          const packed = await packLongContent(writer.end());
          // Not `toBe`, whose report of a difference would take half a minute.
          expect(unpackContent(stored(packed)) === JSON.stringify(content)).toBe(true);
          expect(packed.size).toBe(Buffer.byteLength(JSON.stringify(content)));
        }
      }),
      { numRuns: 25 },
    );
  });

  it('that is written in pieces is the same for any object', () => {
    const values = fc.object({ withObjectString: true, withNullPrototype: false, maxDepth: 3 });
    fc.assert(
      fc.property(values, (value) => {
        const content = JSON.parse(JSON.stringify(value));
        expect([...jsonPieces({ ...content, nothing: undefined })].join('')).toBe(JSON.stringify(content));
      }),
    );
  });

  it.each([
    ['a pair', '🐎'],
    ['a half', '\ud83d'],
    ['a half before a pair', '\ud83d🐎'],
    ['two halves before a pair', '\ud83d\ud83d🐎'],
  ])('that is written in pieces is the same with %s of surrogates at the end of a piece', (_, text) => {
    for (let before = 65_530; before <= 65_540; before++) {
      const content = ['x'.repeat(before) + text];
      expect([...jsonPieces(content)].join('') === JSON.stringify(content), String(before)).toBe(true);
    }
  });

  it.each([
    [['{}']],
    [['{"a":', '"b"', '}']],
    [[rows(100)]],
    [['"', 'ü'.repeat(200), '"']],
    [['"', 'x'.repeat(33_000), '"']],
  ])('of the pieces %j is packed as in one piece', async (pieces) => {
    const writer = contentWriter(0);
    for (const piece of pieces) writer.write(piece);
    const packed = await packLongContent(writer.end());
    expect(unpackContent(stored(packed))).toBe(pieces.join(''));
    if (pieces.join('').length < 32_000) expect(packed).toEqual(packContent(pieces.join('')));
  });

  it('that was deflated is not deflated again', async () => {
    const packed = packContent(rows(100));
    expect(await packLongContent(packed)).toBe(packed);
  });
});

describe('decoding', () => {
  it('rejects bytes that decode to more than their size', () => {
    const bytes = new Uint8Array(deflateRawSync(Buffer.alloc(50 * 1024 * 1024)));
    expect(() => unpackContent({ bytes, encoding: 'deflate', size: 1024 })).toThrow(/larger than 1024 bytes/);
  });

  it('rejects damaged bytes', () => {
    const { bytes, size } = stored(packContent(rows(100)));
    const half = bytes.slice(0, bytes.length / 2);
    expect(() => unpackContent({ bytes: half, encoding: 'deflate', size })).toThrow(/unexpected end of file/);
  });
});

function written(content: string): PackedContent | LongContent {
  const writer = contentWriter(content.length);
  writer.write(content);
  return writer.end();
}
