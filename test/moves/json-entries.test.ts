import { describe, expect, it } from 'vitest';
import { type JsonEntry, jsonEntries } from '../../src/moves/json-entries.ts';

/** The entries of a text that arrives in pieces of this length. */
async function read(text: string, size: number, lists = ['', 'a', 'a.b']): Promise<JsonEntry[]> {
  async function* pieces() {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  const entries: JsonEntry[] = [];
  for await (const some of jsonEntries(pieces(), new Set(lists))) entries.push(...some);
  return entries.filter(({ text: found }) => found !== null);
}

const TEXT = `{ "x": [1, [2]], "a": { "b": [
  {"k": "]}\\"{[", "n": [{}, "é"]}, 7, "s,]"
  ], "c": [3] } }
{"d": {"e": [1]}}
[true,
[4]]`;

describe('the entries of a file', () => {
  it.each([1, 2, 7, 64, 100_000])(
    'are those of its lists and whole documents, in pieces of %i bytes',
    async (size) => {
      expect((await read(TEXT, size)).map(({ line, list, text }) => [line, list, text?.trim()])).toEqual([
        [2, 'a.b', '{"k": "]}\\"{[", "n": [{}, "é"]}'],
        [2, 'a.b', '7'],
        [2, 'a.b', '"s,]"'],
        [4, null, '{"d": {"e": [1]}}'],
        [5, '', 'true'],
        [6, '', '[4]'],
      ]);
    },
  );

  it('are those of a long list, however its lines are', async () => {
    const entries = Array.from({ length: 20_000 }, (_, n) => `{"email":"p${n}@example.net"}`);
    const found = await read(`{"a":[${entries.join(',')}]}`, 65_536);
    expect(found.map(({ text }) => text)).toEqual(entries);
  });
});
