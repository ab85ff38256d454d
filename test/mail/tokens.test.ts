import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { systemRandom } from '../../src/core/random.ts';
import { createSeal } from '../../src/core/seal.ts';
import { createTokens, type IdToken, type Tokens } from '../../src/mail/tokens.ts';

const tokens = createTokens(createSeal(Buffer.alloc(32, 1), systemRandom));
const strangers = createTokens(createSeal(Buffer.alloc(32, 2), systemRandom));

const PURPOSES = [
  'returnPath',
  'feedback',
  'unsubscribe',
  'signedId',
  'unsubscribeUrl',
  'reportUrl',
  'openUrl',
] as const satisfies (keyof Tokens)[];
const ADDRESS_PURPOSES = ['returnPath', 'feedback', 'unsubscribe', 'signedId'] as const;

const kind = fc.constantFrom('msg', 'job', 'evt', 'campaign', 'domain', 'sgroup', 'whd');
const epoch = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2 ** 48 - 1 }));
const id = fc
  .tuple(kind, epoch, fc.stringMatching(/^[0-9a-z]{12}$/))
  .map(([kind, epoch, suffix]) => `${kind}_${epoch}_${suffix}`);

const sample = 'msg_1700000000000_abcdefghijkl';

describe.each(PURPOSES)('a token for %s', (purpose) => {
  const token: IdToken = tokens[purpose];

  it('names the id it was made of, any id', () => {
    fc.assert(
      fc.property(id, (id) => {
        expect(token.read(token.make(id))).toBe(id);
      }),
    );
  });

  it.each(['msg_0_000000000000', 'msg_281474976710655_zzzzzzzzzzzz'])('holds %s', (id) => {
    expect(token.read(token.make(id))).toBe(id);
  });

  it('is refused with any one character changed', () => {
    const good = token.make(sample);
    for (let at = 0; at < good.length; at++) {
      for (const char of 'abcdefghijklmnopqrstuvwxyz234567ABCXYZ0189-_=+/ \u0000é') {
        const changed = good.slice(0, at) + char + good.slice(at + 1);
        if (changed.toLowerCase() !== good.toLowerCase()) expect(token.read(changed)).toBeNull();
      }
    }
  });

  it('is refused with a character missing, doubled or added', () => {
    const good = token.make(sample);
    for (let at = 0; at <= good.length; at++) {
      if (at < good.length) expect(token.read(good.slice(0, at) + good.slice(at + 1))).toBeNull();
      expect(token.read(`${good.slice(0, at)}a${good.slice(at)}`)).toBeNull();
    }
  });

  it('is refused as a token for anything else, and from another installation', () => {
    for (const other of PURPOSES.filter((other) => other !== purpose)) {
      const prefix = /^(?:b|fbl|unsubscribe)-(?=.{40}$)/;
      const bare = token.make(sample).replace(prefix, '');
      const wanted = prefix.exec(tokens[other].make(sample))?.[0] ?? '';
      expect(tokens[other].read(token.make(sample))).toBeNull();
      expect(tokens[other].read(wanted + bare)).toBeNull();
    }
    expect(strangers[purpose].read(token.make(sample))).toBeNull();
    expect(strangers[purpose].read(strangers[purpose].make(sample))).toBe(sample);
  });

  it('is null for rubbish, and never throws', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 100 }), (text) => {
        expect(token.read(text)).toBeNull();
      }),
    );
    for (const text of [
      '',
      'b-',
      'fbl-',
      'unsubscribe-',
      `b-${'a'.repeat(40)}`,
      'A'.repeat(42),
      'a'.repeat(1_000_000),
    ]) {
      expect(token.read(text)).toBeNull();
    }
  });

  it.each([
    '',
    'msg',
    'msg_1_short',
    'msg_1_ABCDEFGHIJKL',
    'msg_-1_abcdefghijkl',
    'msg_01_abcdefghijkl',
    'msg_1.5_abcdefghijkl',
    'msg_281474976710656_abcdefghijkl',
    'acct_abcdefghijkl',
    'other_1_abcdefghijkl',
    `${sample}\n`,
  ])('cannot be made of %j', (id) => {
    expect(() => token.make(id)).toThrow('cannot stand in a token');
  });
});

describe('a token in an address', () => {
  it.each([
    ['returnPath', /^b-[a-z2-7]{40}$/],
    ['feedback', /^fbl-[a-z2-7]{40}$/],
    ['unsubscribe', /^unsubscribe-[a-z2-7]{40}$/],
    ['signedId', /^[a-z2-7]{40}$/],
  ] as const)('for %s is a short local part', (purpose, shape) => {
    const token = tokens[purpose].make(sample);
    expect(token).toMatch(shape);
    expect(token.length).toBeLessThanOrEqual(64);
  });

  it.each(ADDRESS_PURPOSES)('for %s survives hosts that change letter case', (purpose) => {
    const token = tokens[purpose].make(sample);
    expect(tokens[purpose].read(token.toUpperCase())).toBe(sample);
    expect(tokens[purpose].read(token.replace(/[a-m]/g, (char) => char.toUpperCase()))).toBe(sample);
  });

  it('takes no letter that only looks the same in another case', () => {
    const token = tokens.returnPath.make(sample);
    const odd = token.replace(/k/g, '\u212a').replace(/s/g, '\u017f');
    expect(odd).not.toBe(token);
    expect(tokens.returnPath.read(odd)).toBeNull();
  });
});

describe('a click token', () => {
  it('carries message and destination', () => {
    fc.assert(
      fc.property(id, fc.webUrl({ withQueryParameters: true, withFragments: true }), (id, url) => {
        const token = tokens.makeClick(id, url);
        expect(token).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(tokens.readClick(token)).toEqual({ id, url });
      }),
    );
  });

  it('is refused with any one bit changed: never an open redirect', () => {
    const good = tokens.makeClick(sample, 'https://example.com/ü?a=1');
    const octets = Buffer.from(good, 'base64url');
    for (let bit = 0; bit < octets.length * 8; bit++) {
      const changed = Buffer.from(octets);
      changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(tokens.readClick(changed.toString('base64url'))).toBeNull();
    }
    expect(tokens.readClick(good)).not.toBeNull();
  });

  it.each(['+', '/', '=', ' ', '\n', '.'])('has one spelling: %j does not hide in it', (char) => {
    const good = tokens.makeClick(sample, 'https://example.com/');
    expect(tokens.readClick(good + char)).toBeNull();
    expect(tokens.readClick(`${good.slice(0, 5)}${char}${good.slice(5)}`)).toBeNull();
  });

  it('is refused as an open, and an open as a click', () => {
    expect(tokens.openUrl.read(tokens.makeClick(sample, ''))).toBeNull();
    expect(tokens.readClick(tokens.openUrl.make(sample))).toBeNull();
  });

  it('is refused when it names no message', () => {
    expect(tokens.readClick(tokens.makeUrlToken('click', Buffer.from('https://example.com')))).toBeNull();
    expect(tokens.readClick(tokens.makeUrlToken('click', Buffer.alloc(0)))).toBeNull();
  });
});

describe('a URL token of any octets', () => {
  const purpose = fc.constantFrom('unsubscribe', 'report', 'click', 'open');

  it('gives them back for its purpose and no other', () => {
    fc.assert(
      fc.property(purpose, purpose, fc.uint8Array({ maxLength: 200 }), (purpose, other, octets) => {
        const payload = Buffer.from(octets);
        const token = tokens.makeUrlToken(purpose, payload);
        expect(tokens.readUrlToken(purpose, token)).toEqual(payload);
        if (other !== purpose) expect(tokens.readUrlToken(other, token)).toBeNull();
      }),
    );
  });

  it('is signed with 128 bits', () => {
    expect(Buffer.from(tokens.makeUrlToken('open', Buffer.alloc(0)), 'base64url')).toHaveLength(16);
  });
});
