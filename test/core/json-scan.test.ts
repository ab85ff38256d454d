import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createJsonScan, MAX_DEPTH, MAX_NAMES, MAX_VALUES } from '../../src/core/json-scan.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { JsonElement, parseJson, parseJsonList } from '../../src/http/body/json-parse.ts';

const LIST = { name: 'messages', max: 3 };

/** Scans and parses a body that arrives in chunks of `size` bytes; elements of the list as their values. */
async function read(body: string, { size = 7, list }: { size?: number; list?: typeof LIST } = {}) {
  const bytes = Buffer.from(body);
  const scan = createJsonScan({ list });
  for (let at = 0; at < bytes.length; at += size) {
    const refusal = scan.push(bytes.subarray(at, at + size));
    if (refusal !== null) return { refusal: refusal.message, read: at + size };
  }
  const elements = scan.elements();
  const parsed =
    list === undefined || elements === null
      ? await parseJson(bytes, 'account')
      : await parseJsonList(bytes, list.name, elements, 'account');
  return isRefusal(parsed) ? { refusal: parsed.message } : { value: built(parsed.value) };
}

function built(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]: [string, unknown]) => [
      name,
      Array.isArray(inner) ? inner.map(elementValue) : inner,
    ]),
  );
}

function elementValue(inner: unknown): unknown {
  if (!(inner instanceof JsonElement)) return inner;
  const element = inner.read();
  return isRefusal(element) ? element.code : element.value;
}

describe('limits', () => {
  const numbers = (count: number) => `[${Array.from({ length: count }, () => '1').join(',')}]`;

  it.each<[string, string, string | null]>([
    ['as many values as are allowed', numbers(MAX_VALUES - 1), null],
    ['one value more', numbers(MAX_VALUES), `body: must have at most ${MAX_VALUES} values`],
    ['one empty list more', `[${'[],'.repeat(MAX_VALUES)}1]`, `body: must have at most ${MAX_VALUES} values`],
    ['one string more', `[${'"a",'.repeat(MAX_VALUES)}1]`, `body: must have at most ${MAX_VALUES} values`],
    ['brackets inside a text', JSON.stringify({ a: '[],{}:\\"'.repeat(MAX_VALUES) }), null],
    [
      'as many names as are allowed',
      JSON.stringify(Object.fromEntries(Array.from({ length: MAX_NAMES }, (_, n) => [n, n]))),
      null,
    ],
    [
      'one name more',
      JSON.stringify(Object.fromEntries(Array.from({ length: MAX_NAMES + 1 }, (_, n) => [n, n]))),
      `body: must not have an object with more than ${MAX_NAMES} names`,
    ],
    ['as deep as allowed', '['.repeat(MAX_DEPTH) + ']'.repeat(MAX_DEPTH), null],
    [
      'one level deeper',
      '['.repeat(MAX_DEPTH + 1) + ']'.repeat(MAX_DEPTH + 1),
      `body: must not be nested more than ${MAX_DEPTH} levels deep`,
    ],
  ])('%s', async (_, body, refusal) => {
    const result = await read(body, { size: 1000 });
    expect(result.refusal ?? null).toBe(refusal);
  });

  it('are applied while the body arrives', async () => {
    const { read: bytes = 0 } = await read(`[${'1,'.repeat(1_000_000)}1]`, { size: 1000 });
    expect(bytes).toBeLessThan(2 * MAX_VALUES + 2000);
  });

  it('hold for each element of the list, not for all together', async () => {
    const element = numbers(MAX_VALUES - 1);
    expect(await read(`{"messages":[${element},${element}]}`, { size: 1000, list: LIST })).toHaveProperty(
      'value',
    );
    expect(await read(`{"messages":[1,${numbers(MAX_VALUES)}]}`, { size: 1000, list: LIST })).toMatchObject({
      refusal: `messages[1]: must have at most ${MAX_VALUES} values`,
    });
  });

  it('refuse a fourth element of three before it has arrived', async () => {
    const body = `{"messages":[1,2,3,"${'x'.repeat(100_000)}"]}`;
    const { refusal, read: bytes } = await read(body, { list: LIST });
    expect(refusal).toBe('messages: must have at most 3 entries');
    expect(bytes).toBeLessThan(50);
  });

  it('refuse too many values outside the list', async () => {
    const { refusal } = await read(`{"a":"${'x'.repeat(300_000)}","messages":[1]}`, {
      size: 1000,
      list: LIST,
    });
    expect(refusal).toBe('body: must have at most 262144 bytes outside messages');
  });

  it('refuse an element over its size, and not the others', async () => {
    const body = `{"messages":["${'x'.repeat(4 * 1024 * 1024)}",2]}`;
    expect(await read(body, { size: 65_536, list: LIST })).toEqual({
      value: { messages: ['PAYLOAD_TOO_LARGE', 2] },
    });
  });
});

describe('the list', () => {
  it.each<[string, string]>([
    ['of everything', '{"messages":[{"a":[1,{"b":2}]}, "x,]\\"[", -1.5e3]}'],
    ['of nothing', '{"messages":[]}'],
    ['among others', ' { "a" : [1, 2], "messages" : [ 1 , [2] ] , "b": {"messages": [5]} } '],
    ['under an escaped name', '{"mess\\u0061ges":[1,2]}'],
    ['that is none', '{"messages":{"messages":[1,2,3,4,5]}}'],
    ['that is null', '{"messages":null}'],
    ['in an array', '[{"messages":[1,2,3,4,5]}]'],
    ['with multi-byte texts', '{"messages":["é€𝄞",{"𝄞":"]"}]}'],
    ['after a byte order mark', '\ufeff{"messages":[1]}'],
  ])('%s is found in chunks of any size', async (_, body) => {
    const expected: unknown = JSON.parse(body.replace(/^\uFEFF/, ''));
    for (const size of [1, 2, 3, 5, 1000])
      expect(await read(body, { size, list: LIST })).toEqual({ value: expected });
  });

  it.each([
    ['a comma too many', '{"messages":[1,]}'],
    ['no comma', '{"messages":[1 2]}'],
    ['an element that is not JSON', '{"messages":[1,{"a":}]}'],
    ['a bracket too many', '{"messages":[{}}]}'],
    ['commas alone', '{"messages":[,,]}'],
    ['no end', '{"messages":[1,2'],
    ['no end of an element', '{"messages":[1,{"a":2'],
    ['something behind it', '{"messages":[1]}]'],
    ['a byte order mark in an element', '{"messages":[\ufeff1]}'],
    ['an invalid escape', '{"messages":["\\ud83"]}'],
  ])('with %s is not JSON', async (_, body) => {
    const { refusal } = await read(body, { list: LIST });
    expect(refusal).toMatch(/^The body is not valid JSON/);
  });

  it('may be given once', async () => {
    const { refusal } = await read('{"messages":[1],"messages":[2]}', { list: LIST });
    expect(refusal).toBe('messages: is given more than once');
  });

  it('that is cut anywhere is not JSON', async () => {
    const body = '{"a":{"b":[1]},"messages":[{"c":"x"},[2,"\\""]],"d":null}';
    for (let end = 1; end < body.length; end++) {
      expect(await read(body.slice(0, end), { list: LIST })).toHaveProperty('refusal');
    }
  });

  it('is read as JSON.parse reads it, for any body', async () => {
    const bodies = fc
      .tuple(fc.json({ maxDepth: 3 }), fc.array(fc.json({ maxDepth: 2 }), { maxLength: 3 }), fc.string())
      .map(
        ([a, items, text]) => `{"x":${a},"messages":[${items.join(' ,')}],${JSON.stringify(`_${text}`)}:1}`,
      );
    await fc.assert(
      fc.asyncProperty(bodies, fc.integer({ min: 1, max: 20 }), async (body, size) => {
        expect(await read(body, { size, list: LIST })).toEqual({ value: JSON.parse(body) });
      }),
      { numRuns: 300 },
    );
  });

  it('never accepts what JSON.parse does not', async () => {
    const fragments = fc
      .array(
        fc.constantFrom(
          '{',
          '}',
          '[',
          ']',
          ',',
          ':',
          '"',
          '\\',
          '1',
          'null',
          ' ',
          '"messages":',
          '[1,{"a":2}]',
        ),
        {
          maxLength: 25,
        },
      )
      .map((parts) => `{"messages":${parts.join('')}`);
    await fc.assert(
      fc.asyncProperty(fragments, fc.integer({ min: 1, max: 5 }), async (body, size) => {
        const result = await read(body, { size, list: { ...LIST, max: 100 } });
        if ('value' in result) expect(result.value).toEqual(JSON.parse(body));
      }),
      { numRuns: 2000 },
    );
  });
});
