import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { packJson, unpackJson } from '../../../src/store/rows/packed-json.ts';
import { SHAPES, STRINGS } from '../../../src/store/rows/packed-json-dictionary.ts';

const TIME = Date.UTC(2026, 0, 15, 12);

const REPLY = { code: 250, enhanced: '2.0.0', text: 'OK 1768478400 d2e1a72fcca58-7a1b gsmtp' };
const REPORT = {
  conclusion: 'replied',
  action: 'deliver',
  reply: REPLY,
  sessions: [
    {
      host: 'mx1.provider.example',
      address: '192.0.2.25',
      port: 25,
      localAddress: '198.51.100.7',
      tls: {
        protocol: 'TLSv1.3',
        cipher: 'TLS_AES_256_GCM_SHA384',
        verified: false,
        policy: 'opportunistic',
      },
      stage: 'dot',
      reply: REPLY,
      error: null,
      startedAt: TIME - 420,
      endedAt: TIME - 3,
    },
  ],
};

describe('packed JSON', () => {
  it.each([
    ['a report of an attempt', REPORT],
    ['an empty object', {}],
    ['an unknown shape', { b: 1, a: [null, true, false], '': 'x', dot: 'dot' }],
    ['keys in an order that no shape has', { text: 'no', enhanced: null, code: 550 }],
    ['a shape with an additional key', { ...REPLY, more: [] }],
    ['a key that contains a comma', { 'code,enhanced': 1, text: '' }],
    ['keys that every object inherits', JSON.parse('{"__proto__":{"a":1},"constructor":"x"}')],
    [
      'small and large integers',
      [0, 1, 47, 48, 127, 128, 16_384, -1, -48, 2 ** 31, 2 ** 53 - 1, 1 - 2 ** 53],
    ],
    ['fractions and numbers without exact neighbors', [0.5, -0.25, 1e-7, 1e300, 2 ** 53, -(2 ** 60)]],
    ['times near and far', [TIME, TIME - 1, TIME + 1, TIME - 2 ** 31, TIME + 2 ** 31, TIME + 2 ** 32, -TIME]],
    ['times as texts', [new Date(TIME + 60_000).toISOString(), new Date(TIME - 2 ** 33).toISOString()]],
    ['texts that only look like times', ['2026-02-31T12:00:00.000Z', '2026-01-15T24:00:00.000Z']],
    [
      'addresses, and texts that only look like one',
      [
        '192.0.2.1',
        '0.0.0.0',
        '255.255.255.255',
        '01.2.3.4',
        '1.2.3',
        '1.2.3.256',
        '1.2.3.4.',
        '1.2.3.4\n',
        '2001:db8::1',
      ],
    ],
    ['strings that occur again', ['again', { again: 'again' }, 'other', 'other', 'again']],
    ['characters of every length', ['a', 'é', '€', '😀', '\u0000', '\ud800', 'x\udc00y', '\ud83d\ude00']],
    ['a long text', 'ü'.repeat(70_000)],
  ])('round-trips %s', (_, value) => {
    expect(unpackJson(packJson(value, TIME), TIME)).toBe(JSON.stringify(value));
  });

  it.each([
    [
      'values without a JSON form',
      { a: undefined, b: Number.NaN, c: Number.POSITIVE_INFINITY, d: -0, e: [undefined] },
    ],
  ])('writes %s as JSON.stringify does', (_, value) => {
    expect(unpackJson(packJson(value, TIME), TIME)).toBe(JSON.stringify(value));
  });

  it('round-trips generated values', () => {
    let state = 1;
    const random = (below: number) => {
      state = (state * 48_271) % 2_147_483_647;
      return state % below;
    };
    const text = () => String.fromCodePoint(...Array.from({ length: random(20) }, () => random(0x3000)));
    const generated = (depth: number): unknown => {
      const kind = random(depth > 3 ? 5 : 7);
      if (kind === 0) return [null, true, false][random(3)];
      if (kind === 1) return random(1000) - 500;
      if (kind === 2) return TIME + random(2_000_000_000) - 1_000_000_000;
      if (kind === 3) return random(1_000_000) / 7;
      if (kind === 4) return text();
      if (kind === 5) return Array.from({ length: random(5) }, () => generated(depth + 1));
      return Object.fromEntries(Array.from({ length: random(6) }, () => [text(), generated(depth + 1)]));
    };
    for (let run = 0; run < 2000; run++) {
      const value = generated(0);
      expect(unpackJson(packJson(value, TIME), TIME)).toBe(JSON.stringify(value));
    }
  });

  it('writes any value as JSON.stringify does', () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 20 }),
      fc.string({ unit: 'binary', maxLength: 20 }),
      // Any UTF-16, lone surrogates included.
      fc
        .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 8 })
        .map((units) => String.fromCharCode(...units)),
      fc.constantFrom(...STRINGS, '__proto__', 'constructor', 'toString', '0', '-1', '1.2.3.4', '256.1.1.1'),
      fc.ipV4(),
      fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
      fc.integer({ min: -(2 ** 32), max: 2 ** 32 }).map((ms) => new Date(TIME + ms).toISOString()),
    );
    const number = fc.oneof(
      fc.double(),
      fc.maxSafeInteger(),
      fc.integer({ min: -(2 ** 32), max: 2 ** 32 }).map((ms) => TIME + ms),
      fc.constantFrom(-0, 1e21, 1e-7, 2 ** 53, -(2 ** 53), Number.MIN_VALUE, Number.MAX_VALUE, 47, 48),
    );
    const shape = fc.constantFrom(...SHAPES);
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 6, withCrossShrink: true },
        fc.constantFrom(null, true, false, undefined),
        number,
        text,
        fc.array(tie('value'), { maxLength: 6 }),
        // JSON.parse makes `__proto__` a property like any other.
        fc
          .array(fc.tuple(text, tie('value')), { maxLength: 6 })
          .map((fields) =>
            JSON.parse(
              `{${fields.map(([key, item]) => `${JSON.stringify(key)}:${JSON.stringify(item) ?? 'null'}`).join()}}`,
            ),
          ),
        // Known shapes, also twice in one value, and with fields that are missing or in another order.
        fc
          .tuple(shape, fc.array(tie('value'), { minLength: 12, maxLength: 12 }), fc.boolean())
          .map(([keys, items, isReversed]) =>
            Object.fromEntries(
              (isReversed ? keys.toReversed() : keys).map((key, index) => [key, items[index % items.length]]),
            ),
          ),
      ),
    }));
    const time = fc.oneof(fc.constant(TIME), fc.integer({ min: 0, max: 2 ** 48 - 1 }));
    fc.assert(
      fc.property(value, time, (packed, at) => {
        const json = JSON.stringify(packed) ?? 'null';
        expect(unpackJson(packJson(packed, at), at)).toBe(json);
      }),
      { numRuns: Number(process.env['FUZZ'] ?? 1) * 2000, seed: 1 },
    );
  });

  it('round-trips values that are very deep or very long', () => {
    let deep: unknown = 'end';
    for (let depth = 0; depth < 1000; depth++) deep = depth % 2 === 0 ? [deep] : { host: deep };
    const long = `${'ä\u{1f600}'.repeat(300_000)}\ud800`;
    for (const value of [
      deep,
      { [long]: long, again: [long, long] },
      Array.from({ length: 100_000 }, (_, n) => n),
    ])
      expect(unpackJson(packJson(value, TIME), TIME) === JSON.stringify(value)).toBe(true);
  });

  it('has a code of one byte for every known string, and none twice', () => {
    expect(new Set(STRINGS).size).toBe(STRINGS.length);
    for (const text of STRINGS) expect(packJson(text, TIME)).toHaveLength(1);
  });

  it('knows the keys of every shape, none of which contains a comma', () => {
    for (const keys of SHAPES) {
      expect(packJson(Object.fromEntries(keys.map((key) => [key, 1])), TIME)).toHaveLength(2 + keys.length);
      expect(keys.join().split(',')).toEqual(keys);
    }
  });

  it('takes a third of the bytes of a report', () => {
    expect(packJson(REPORT, TIME).length).toBeLessThan(JSON.stringify(REPORT).length / 3);
  });

  it('rejects bytes that were not packed', () => {
    const packed = packJson(REPORT, TIME);
    expect(() => unpackJson(packed.subarray(0, -1), TIME)).toThrow('ends early');
    expect(() => unpackJson(Buffer.concat([packed, packed]), TIME)).toThrow('other bytes');
    expect(() => unpackJson(Buffer.from([0xff]), TIME)).toThrow('unknown tag 255');
    expect(() => unpackJson(Buffer.from([0x0d, 0x7f]), TIME)).toThrow('unknown shape 127');
    expect(() => unpackJson(Buffer.from([0x09, 0x00]), TIME)).toThrow('unknown string 0');
  });
});
