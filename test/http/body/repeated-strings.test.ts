import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createJsonScan, MIN_LONG_BYTES } from '../../../src/core/json-scan.ts';
import { isRefusal } from '../../../src/core/refusal.ts';
import { parseJsonWithStrings } from '../../../src/http/body/json-parse.ts';
import { createRepeatedStrings, type RepeatedStrings } from '../../../src/http/body/repeated-strings.ts';

const HTML = `<p title="\\">Grüße 🙂</p>\n`.repeat(MIN_LONG_BYTES / 16);

/** Reads a body that arrives in chunks of `size` bytes; `known`: how many of its strings were known. */
async function read(
  repeated: RepeatedStrings,
  body: string | Buffer,
  { accountId = 'acct_one', size = 65_536 } = {},
) {
  const bytes = Buffer.from(body);
  const scan = createJsonScan({ find: repeated.finder(accountId) });
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    const chunk = bytes.subarray(at, at + size);
    expect(scan.push(chunk)).toBeNull();
    chunks.push(chunk);
  }
  const strings = scan.longStrings();
  const parsed = await parseJsonWithStrings(chunks, strings, repeated, accountId);
  const known = strings.filter((string) => string.known !== null).length;
  return isRefusal(parsed) ? { known, refusal: parsed.message } : { known, value: parsed.value };
}

function bodyWith(html: string, to = 'a@example.org'): string {
  return JSON.stringify({ to, html, subject: 'Hello' });
}

/** A reader that knows these strings. */
async function knowing(...texts: string[]): Promise<RepeatedStrings> {
  const repeated = createRepeatedStrings();
  for (const text of texts) for (let n = 0; n < 2; n++) await read(repeated, bodyWith(text));
  return repeated;
}

describe('a long string that an account repeats', () => {
  it('is known from the third body on, which has the same value', async () => {
    const repeated = createRepeatedStrings();
    const expected = (to: string) => ({ to, html: HTML, subject: 'Hello' });
    expect(await read(repeated, bodyWith(HTML))).toEqual({ known: 0, value: expected('a@example.org') });
    expect(await read(repeated, bodyWith(HTML))).toEqual({ known: 0, value: expected('a@example.org') });
    const third = await read(repeated, bodyWith(HTML, 'other@example.org'));
    expect(third).toEqual({ known: 1, value: expected('other@example.org') });
  });

  it('is not known in another account', async () => {
    const repeated = await knowing(HTML);
    expect((await read(repeated, bodyWith(HTML), { accountId: 'acct_two' })).known).toBe(0);
    expect((await read(repeated, bodyWith(HTML))).known).toBe(1);
  });

  it('is found next to others that begin alike, and next to unknown ones', async () => {
    const texts = Array.from({ length: 20 }, (_, n) => `${HTML}<p>${n}</p>`);
    const repeated = await knowing(...texts);
    for (const [n, text] of texts.entries()) {
      const body = JSON.stringify({ text: `${n}`.repeat(2000 + n), html: text });
      expect(await read(repeated, body)).toEqual({ known: 1, value: JSON.parse(body) });
    }
  });

  it('is learned again when it changes', async () => {
    const changed = HTML.replace('Grüße', 'Greet');
    const repeated = await knowing(HTML);
    for (let n = 0; n < 3; n++) await read(repeated, bodyWith(changed));
    expect(await read(repeated, bodyWith(changed))).toEqual({
      known: 1,
      value: JSON.parse(bodyWith(changed)),
    });
  });

  it('is read in chunks of any size, complete, longer, shorter and changed anywhere', async () => {
    const repeated = await knowing(HTML);
    const text = fc
      .integer({ min: 0, max: HTML.length })
      .chain((at) =>
        fc.constantFrom(
          HTML,
          HTML.slice(0, at),
          `${HTML.slice(0, at)}\\`,
          `${HTML.slice(0, at)}"`,
          HTML + HTML.slice(0, at),
          `${HTML.slice(0, at)}x${HTML.slice(at)}`,
          `${HTML.slice(0, at)}\\${HTML.slice(at + 1)}`,
        ),
      );
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 3 * MIN_LONG_BYTES }), async (html, size) => {
        const body = bodyWith(html);
        expect((await read(repeated, body, { size })).value).toEqual(JSON.parse(body));
      }),
      { numRuns: 300 },
    );
  });
});

describe('a body with a known string', () => {
  const literal = JSON.stringify(HTML);

  it.each<[string, string]>([
    ['is not valid after it', `{"html":${literal},}`],
    ['does not end', `{"html":${literal}`],
    ['has text after it', `{"html":${literal}x}`],
    ['is not valid before it', `{"to":1 "html":${literal}}`],
  ])('is refused as any other when it %s', async (_, body) => {
    const { refusal } = await read(await knowing(HTML), body);
    expect(refusal).toMatch(/^The body is not valid JSON/);
    expect(refusal).toBe((await read(createRepeatedStrings(), body)).refusal);
  });

  it.each<[string, string]>([
    ['twice with the same name', `{"html":${literal},"html":"short"}`],
    ['with two names', `{"html":${literal},"text":${literal}}`],
    ['with a name of objects', `{"__proto__":${literal},"html":"short"}`],
    ['with an escaped name', `{"ht\\u006dl":${literal}}`],
    ['as a name', `{${literal}:1}`],
    ['in a list', `{"html":[${literal}]}`],
    ['after a byte order mark', `\uFEFF{"html":${literal}}`],
  ])('%s has the value that JSON has', async (_, body) => {
    const { value } = await read(await knowing(HTML), body);
    expect(value).toEqual(JSON.parse(body.replace(/^\uFEFF/, '')));
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });

  it('is refused when the rest is not UTF-8', async () => {
    const body = Buffer.from(`{"html":${literal},"to":"?"}`);
    body[body.length - 3] = 0xff;
    expect((await read(await knowing(HTML), body)).refusal).toMatch(/not valid UTF-8/);
  });
});

it('strings of mail that differ in a few characters are never mixed up', async () => {
  const repeated = createRepeatedStrings();
  for (let code = 100_000; code < 100_100; code++) {
    const body = bodyWith(HTML.replace('Grüße', `${code}`));
    expect((await read(repeated, body)).value).toEqual(JSON.parse(body));
  }
});

it('strings that were not used for the longest time are dropped', async () => {
  const texts = Array.from({ length: 30 }, (_, n) => `${n} ${'x'.repeat(400_000)}`);
  const repeated = await knowing(...texts);
  expect((await read(repeated, bodyWith(texts[0] ?? ''))).known).toBe(0);
  expect((await read(repeated, bodyWith(texts.at(-1) ?? ''))).known).toBe(1);
});
