import { randomBytes } from 'node:crypto';
import { deflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../src/core/concurrency/slices.ts';
import {
  type EncodedContent,
  type PackedContent,
  packContent,
  packLongContent,
  readContent,
  toJobContent,
  writeDocumentInSteps,
} from '../../src/mail/stored-content.ts';

/** Half a surrogate pair, which has no UTF-8, and characters that are escaped or of several bytes. */
const ODD = fc.constantFrom('\ud83d', '\udc0e', '🐎', '"', '\\', '\n', '\u0001', 'ü', '€');
const json = (html: string) => JSON.stringify({ subject: 'Žluťoučký kůň 🐎', html });
const rows = (count: number) => json('<tr><td style="padding:8px 0">Bücher 🐎</td></tr>\n'.repeat(count));
/** The form in which the database returns a content. */
function stored({ body, size }: PackedContent): EncodedContent {
  return {
    bytes: new Uint8Array(typeof body === 'string' ? Buffer.from(body) : body),
    encoding: typeof body === 'string' ? 'json' : body[0] === 0xff ? 'document' : 'deflate',
    size,
  };
}

describe('a content', () => {
  it.each([
    ['short', json('<p>Hi</p>'), 'json'],
    ['ordinary', rows(100), 'deflate'],
    ['long', rows(5_000), 'json'],
  ])('that is %s is stored in the smaller encoding, and decoded', (_, content, encoding) => {
    const packed = packContent(content);
    expect(stored(packed).encoding).toBe(encoding);
    expect(packed.size).toBe(Buffer.byteLength(content));
    expect(readContent(stored(packed))).toEqual(JSON.parse(content));
  });

  it('may follow a longer one, and have the maximum length for the calling thread', () => {
    const longest = json('字'.repeat(32 * 1024 - json('').length));
    expect(longest).toHaveLength(32 * 1024);
    const packed = [longest, rows(20), longest].map((content) => packContent(content));
    expect(packed.map((content) => stored(content).encoding)).toEqual(['deflate', 'deflate', 'deflate']);
    expect(packed.map((content) => readContent(stored(content)))).toEqual(
      [longest, rows(20), longest].map((content) => JSON.parse(content)),
    );
  });

  it('that is repetitive takes a tenth of its length', () => {
    const content = rows(200);
    expect(packContent(content).body.length).toBeLessThan(content.length / 10);
  });

  it('that is long is a document that another thread deflates', async () => {
    const content = JSON.parse(rows(5_000));
    const packed = await packLongContent({ document: written(content), isDeflated: true });
    expect(packed.body.length).toBeLessThan(JSON.stringify(content).length / 10);
    expect(readContent(stored(packed))).toEqual(content);
    expect(toJobContent(packed)).toEqual({ ...stored(packed), encoding: 'deflate' });
  });

  it.each([true, false])('with incompressible files is stored as a document (%s)', async (isDeflated) => {
    const bytes = randomBytes(100_000);
    const content = { html: '', attachments: [{ name: 'a.bin', content: bytes.toString('base64') }] };
    const packed = await packLongContent({ document: written(content), isDeflated });
    expect(stored(packed).encoding).toBe('document');
    expect(packed.body.length).toBe(packed.size);
    expect(packed.size).toBeLessThan(bytes.length + 200);
    expect(readContent(stored(packed))).toEqual(content);
    expect(toJobContent(packed)).toEqual(stored(packed));
  });

  it('is the same after it was a document, whatever its characters', () => {
    // Around the end of the first piece.
    const padding = fc.integer({ min: 65_500, max: 65_560 });
    const characters = fc.string({ unit: fc.oneof(fc.string({ unit: 'binary' }), ODD), maxLength: 40 });
    fc.assert(
      fc.property(padding, characters, fc.integer({ min: 1, max: 3 }), (length, text, times) => {
        const long = `${'x'.repeat(length)}${text}`.repeat(times);
        const content = { text: long, texts: [text, long] };
        const { text: read, texts } = readDocument(content) as typeof content;
        // Not `toBe`, whose report of a difference would take half a minute.
        expect(read === long.toWellFormed()).toBe(true);
        expect(texts[1] === long.toWellFormed()).toBe(true);
        // A short text is part of the JSON, which escapes half a pair.
        expect(texts[0]?.toWellFormed()).toBe(text.toWellFormed());
      }),
      { numRuns: 25 },
    );
  });

  it('has whole files after texts of any characters', () => {
    const texts = fc.tuple(fc.constantFrom('x', 'я', '字', '🐎'), fc.nat(100_000));
    const lengths = fc.array(fc.nat(100_000), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(texts, lengths, ([character, count], files) => {
        const html = character.repeat(count / character.length);
        const attachments = files.map((length) => ({ content: randomBytes(length).toString('base64') }));
        const read = readDocument({ html, attachments }) as { html: string; attachments: typeof attachments };
        expect(read.html === html).toBe(true);
        expect(read.attachments.map(({ content }, n) => content === attachments[n]?.content)).toEqual(
          files.map(() => true),
        );
      }),
      { numRuns: 200 },
    );
  });

  it('is the same after it was a document, for any object', () => {
    const texts = fc.oneof(fc.string(), fc.string({ minLength: 60, maxLength: 70 }));
    const values = fc.object({ values: [texts, fc.double(), fc.boolean(), fc.constant(null)], maxDepth: 3 });
    fc.assert(
      fc.property(values, (value) => {
        // A member `content` is base64.
        const content = JSON.parse(JSON.stringify(value).replaceAll('"content":', '"contents":'));
        expect(readDocument(content)).toEqual(content);
      }),
    );
  });

  it.each([
    ['a pair', '🐎'],
    ['a half', '\ud83d'],
    ['a half before a pair', '\ud83d🐎'],
    ['two halves before a pair', '\ud83d\ud83d🐎'],
  ])('is the same with %s of surrogates at the end of a piece', (_, text) => {
    for (let before = 65_530; before <= 65_540; before++) {
      const content = ['x'.repeat(before) + text];
      expect(readDocument(content)).toEqual(content.map((one) => one.toWellFormed()));
    }
  });

  it('that was deflated is not deflated again', async () => {
    const packed = packContent(rows(100));
    expect(await packLongContent(packed)).toBe(packed);
  });
});

describe('decoding', () => {
  it('rejects bytes that decode to more than their size', () => {
    const bytes = new Uint8Array(deflateRawSync(Buffer.alloc(50 * 1024 * 1024)));
    expect(() => readContent({ bytes, encoding: 'deflate', size: 1024 })).toThrow(/larger than 1024 bytes/);
  });

  it('rejects damaged bytes', () => {
    const { bytes, size } = stored(packContent(rows(100)));
    const half = bytes.slice(0, bytes.length / 2);
    expect(() => readContent({ bytes: half, encoding: 'deflate', size })).toThrow(/unexpected end of file/);
    const document = new Uint8Array(written(JSON.parse(rows(2_000))));
    const cut = document.slice(0, document.length / 2);
    expect(() => readContent({ bytes: cut, encoding: 'document', size: document.length })).toThrow();
  });
});

const written = (content: object): Buffer => withoutPause(writeDocumentInSteps(content));

function readDocument(content: object): unknown {
  const bytes = new Uint8Array(written(content));
  return readContent({ bytes, encoding: 'document', size: bytes.length });
}
