import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { systemRandom } from '../../src/core/random.ts';
import { createSeal } from '../../src/core/seal.ts';
import type { SentMail } from '../../src/mail/sent-mail.ts';
import { clickTokens, createTokens, type IdToken, type Tokens } from '../../src/mail/tokens.ts';

const tokens = createTokens(createSeal(Buffer.alloc(32, 1), systemRandom));
const otherTokens = createTokens(createSeal(Buffer.alloc(32, 2), systemRandom));

const PURPOSES = [
  'returnPath',
  'feedback',
  'unsubscribe',
  'signedId',
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

  it('contains the id that it was created from', () => {
    fc.assert(
      fc.property(id, (id) => {
        expect(token.read(token.make(id))).toBe(id);
      }),
    );
  });

  it.each(['msg_0_000000000000', 'msg_281474976710655_zzzzzzzzzzzz'])('accepts %s', (id) => {
    expect(token.read(token.make(id))).toBe(id);
  });

  it('is rejected with any character changed', () => {
    const good = token.make(sample);
    for (let at = 0; at < good.length; at++) {
      for (const char of 'abcdefghijklmnopqrstuvwxyz234567ABCXYZ0189-_=+/ \u0000é') {
        const changed = good.slice(0, at) + char + good.slice(at + 1);
        if (changed.toLowerCase() !== good.toLowerCase()) expect(token.read(changed)).toBeNull();
      }
    }
  });

  it('is rejected with a character missing, doubled or added', () => {
    const good = token.make(sample);
    for (let at = 0; at <= good.length; at++) {
      if (at < good.length) expect(token.read(good.slice(0, at) + good.slice(at + 1))).toBeNull();
      expect(token.read(`${good.slice(0, at)}a${good.slice(at)}`)).toBeNull();
    }
  });

  it('is rejected for another purpose, and in another installation', () => {
    for (const other of PURPOSES.filter((other) => other !== purpose)) {
      const prefix = /^(?:b|fbl|unsubscribe)-(?=.{40}$)/;
      const bare = token.make(sample).replace(prefix, '');
      const wanted = prefix.exec(tokens[other].make(sample))?.[0] ?? '';
      expect(tokens[other].read(token.make(sample))).toBeNull();
      expect(tokens[other].read(wanted + bare)).toBeNull();
    }
    expect(otherTokens[purpose].read(token.make(sample))).toBeNull();
    expect(otherTokens[purpose].read(otherTokens[purpose].make(sample))).toBe(sample);
  });

  it('is null for any other text, and never throws', () => {
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
  ])('cannot be created from %j', (id) => {
    expect(() => token.make(id)).toThrow('cannot be packed into a token');
  });
});

const account = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/);
const sentMail: fc.Arbitrary<SentMail> = fc.record({
  messageId: id,
  accountId: account,
  recipientHash: fc.stringMatching(/^email_[0-9a-f]{32}$/),
  stream: fc.constantFrom('tx', 'mk'),
  groupId: fc.option(id),
  simulated: fc.boolean(),
});
const mail: SentMail = {
  messageId: sample,
  accountId: 'acct_abcdefghijkl',
  recipientHash: 'email_0123456789abcdef0123456789abcdef',
  stream: 'mk',
  groupId: 'sgroup_1700000000000_abcdefghijkl',
  simulated: false,
};

describe.each(['unsubscribeUrl', 'reportUrl'] as const)('a token for %s', (purpose) => {
  const token = tokens[purpose];
  const other = purpose === 'reportUrl' ? tokens.unsubscribeUrl : tokens.reportUrl;

  it('contains the mail that it was created from', () => {
    fc.assert(
      fc.property(sentMail, (mail) => {
        expect(token.read(token.make(mail))).toEqual(mail);
      }),
    );
  });

  it('is rejected with any bit changed', () => {
    const octets = Buffer.from(token.make(mail), 'base64url');
    for (let bit = 0; bit < octets.length * 8; bit++) {
      const changed = Buffer.from(octets);
      changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(token.read(changed.toString('base64url'))).toBeNull();
    }
  });

  it('is rejected when truncated, spliced, for the other page, and in another installation', () => {
    const good = token.make(mail);
    for (let length = 0; length < good.length; length++) expect(token.read(good.slice(0, length))).toBeNull();
    const second = token.make({ ...mail, recipientHash: 'email_ffffffffffffffffffffffffffffffff' });
    for (let at = 1; at < good.length; at++) {
      const mixed = good.slice(0, at) + second.slice(at);
      if (mixed !== good && mixed !== second) expect(token.read(mixed)).toBeNull();
    }
    expect(other.read(good)).toBeNull();
    expect(otherTokens[purpose].read(good)).toBeNull();
  });

  it('is rejected when it is signed but contains something else', () => {
    const page = purpose === 'reportUrl' ? 'report' : 'unsubscribe';
    for (const octets of [[], [0], [128, ...Array(48).fill(0)], Array(32).fill(0), Array(200).fill(255)])
      expect(token.read(tokens.makeUrlToken(page, Buffer.from(octets)))).toBeNull();
  });

  it('fits on a header line', () => {
    expect(token.make(mail)).toHaveLength(107);
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

  it('rejects letters that only case folding maps to the alphabet', () => {
    const token = tokens.returnPath.make(sample);
    const odd = token.replace(/k/g, '\u212a').replace(/s/g, '\u017f');
    expect(odd).not.toBe(token);
    expect(tokens.returnPath.read(odd)).toBeNull();
  });
});

describe('a click token', () => {
  const HOST = 'link.example.com';
  const create = (id: string, url: string) => clickTokens(tokens.clickKey, id, HOST)(url);
  const read = (token: string) => tokens.readClick(token, HOST);

  it('contains message and URL', () => {
    fc.assert(
      fc.property(id, fc.webUrl({ withQueryParameters: true, withFragments: true }), (id, url) => {
        const token = create(id, url);
        expect(token).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(read(token)).toEqual({ id, url, madeForHost: true });
      }),
    );
  });

  it('is rejected with any bit changed, so that it is no open redirect', () => {
    const good = create(sample, 'https://example.com/ü?a=1');
    const octets = Buffer.from(good, 'base64url');
    for (let bit = 0; bit < octets.length * 8; bit++) {
      const changed = Buffer.from(octets);
      changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(read(changed.toString('base64url'))).toBeNull();
    }
    expect(read(good)).not.toBeNull();
  });

  it.each(['+', '/', '=', ' ', '\n', '.'])('has one spelling: %j is rejected in it', (char) => {
    const good = create(sample, 'https://example.com/');
    expect(read(good + char)).toBeNull();
    expect(read(`${good.slice(0, 5)}${char}${good.slice(5)}`)).toBeNull();
  });

  it('is rejected as an open token, and an open token as a click', () => {
    expect(tokens.openUrl.read(create(sample, ''))).toBeNull();
    expect(read(tokens.openUrl.make(sample))).toBeNull();
  });

  it('reports whether it was created for the host', () => {
    const token = create(sample, 'https://example.com/');
    expect(tokens.readClick(token, 'link.example.org')).toMatchObject({ madeForHost: false });
    expect(tokens.readClick(token, '')).toMatchObject({ madeForHost: false });
  });

  it('of an older version, without a host, is valid for every host', () => {
    const url = 'https://example.com/?a=1';
    const id = Buffer.from(tokens.openUrl.make(sample), 'base64url').subarray(0, 15);
    const old = tokens.makeUrlToken('click', Buffer.concat([id, Buffer.from(url)]));
    expect(tokens.readClick(old, HOST)).toEqual({ id: sample, url, madeForHost: true });
  });

  it('is rejected without a message id', () => {
    expect(read(tokens.makeUrlToken('click', Buffer.from('https://example.com')))).toBeNull();
    expect(read(tokens.makeUrlToken('click', Buffer.alloc(0)))).toBeNull();
  });
});

describe('a URL token of any octets', () => {
  const purpose = fc.constantFrom('unsubscribe', 'report', 'click', 'open');

  it('returns them for its purpose and no other', () => {
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
