import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { systemRandom } from '../../src/core/random.ts';
import { createSeal, mac } from '../../src/core/seal.ts';
import { packId, type SentMail } from '../../src/mail/sent-mail.ts';
import {
  accountTag,
  clickTokens,
  createTokens,
  linkPrefix,
  ownTokenKey,
  type TokenAccounts,
  type Tokens,
} from '../../src/mail/tokens.ts';

const seal = createSeal(Buffer.alloc(32, 1), systemRandom);
const tokens = createTokens(seal);
const ACCOUNT = 'acct_abcdefghijkl';
const made = tokens.of(ACCOUNT);
const otherTokens = createTokens(createSeal(Buffer.alloc(32, 2), systemRandom));

const PURPOSES = [
  'returnPath',
  'feedback',
  'unsubscribe',
  'signedId',
  'openUrl',
] as const satisfies (keyof Tokens)[];
const ADDRESS_PURPOSES = ['returnPath', 'feedback', 'unsubscribe', 'signedId'] as const;

/** The id in a token of any purpose; null when it is not valid. */
function idIn(from: Tokens, purpose: (typeof PURPOSES)[number], token: string): string | null {
  const read = from[purpose](token);
  return typeof read === 'object' ? (read?.id ?? null) : read;
}

const kind = fc.constantFrom('msg', 'job', 'evt', 'campaign', 'domain', 'sgroup', 'whd');
const epoch = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2 ** 48 - 1 }));
const id = fc
  .tuple(kind, epoch, fc.stringMatching(/^[0-9a-z]{12}$/))
  .map(([kind, epoch, suffix]) => `${kind}_${epoch}_${suffix}`);

const sample = 'msg_1700000000000_abcdefghijkl';

describe.each(PURPOSES)('a token for %s', (purpose) => {
  const token = { make: made[purpose], read: (text: string) => idIn(tokens, purpose, text) };

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
      const prefix = /^(?:b|fbl|unsubscribe)-(?=.{48}$)/;
      const bare = token.make(sample).replace(prefix, '');
      const wanted = prefix.exec(made[other](sample))?.[0] ?? '';
      expect(idIn(tokens, other, token.make(sample))).toBeNull();
      expect(idIn(tokens, other, wanted + bare)).toBeNull();
    }
    expect(idIn(otherTokens, purpose, token.make(sample))).toBeNull();
    const others = otherTokens.of(ACCOUNT)[purpose](sample);
    expect(idIn(otherTokens, purpose, others)).toBe(sample);
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
      `b-${'a'.repeat(48)}`,
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
  const token = {
    make: (mail: SentMail) => tokens.of(mail.accountId)[purpose](mail),
    read: tokens[purpose],
  };
  const other = purpose === 'reportUrl' ? tokens.unsubscribeUrl : tokens.reportUrl;

  it('contains the mail that it was created from', () => {
    fc.assert(
      fc.property(sentMail, (mail) => {
        expect(token.read(token.make(mail))).toEqual(mail);
      }),
    );
  });

  it('is rejected with any bit changed', () => {
    const bytes = Buffer.from(token.make(mail), 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
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
    expect(other(good)).toBeNull();
    expect(otherTokens[purpose](good)).toBeNull();
  });

  it('is rejected when it is signed but contains something else', () => {
    const page = purpose === 'reportUrl' ? 'report' : 'unsubscribe';
    for (const bytes of [[], [0], [128, ...Array(48).fill(0)], Array(32).fill(0), Array(200).fill(255)])
      expect(token.read(signedUrl(page, Buffer.from(bytes)))).toBeNull();
  });

  it('is rejected with the key of one account and the id of another', () => {
    const forged = tokens.of('acct_two')[purpose](mail);
    expect(token.read(forged)).toBeNull();
  });

  it('fits on a header line', () => {
    expect(token.make(mail)).toHaveLength(115);
  });
});

describe('a token in an address', () => {
  it.each([
    ['returnPath', /^b-[a-z2-7]{48}$/],
    ['feedback', /^fbl-[a-z2-7]{48}$/],
    ['unsubscribe', /^unsubscribe-[a-z2-7]{48}$/],
    ['signedId', /^[a-z2-7]{48}$/],
  ] as const)('for %s is a short local part', (purpose, shape) => {
    const token = made[purpose](sample);
    expect(token).toMatch(shape);
    expect(token.length).toBeLessThanOrEqual(64);
  });

  it.each(ADDRESS_PURPOSES)('for %s survives hosts that change letter case', (purpose) => {
    const token = made[purpose](sample);
    expect(tokens[purpose](token.toUpperCase())).toBe(sample);
    expect(tokens[purpose](token.replace(/[a-m]/g, (char) => char.toUpperCase()))).toBe(sample);
  });

  it('rejects letters that only case folding maps to the alphabet', () => {
    const token = made.returnPath(sample);
    const odd = token.replace(/k/g, '\u212a').replace(/s/g, '\u017f');
    expect(odd).not.toBe(token);
    expect(tokens.returnPath(odd)).toBeNull();
  });
});

describe('a click token', () => {
  const HOST = 'link.example.com';
  const create = (id: string, url: string) => clickTokens(made.click, id, HOST)(url);
  const read = (token: string) => tokens.click(token, HOST);

  it('contains message and URL', () => {
    fc.assert(
      fc.property(id, fc.webUrl({ withQueryParameters: true, withFragments: true }), (id, url) => {
        const token = create(id, url);
        expect(token).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(read(token)).toMatchObject({ id, url, madeForHost: true });
      }),
    );
  });

  it('is rejected with any bit changed, so that it is no open redirect', () => {
    const good = create(sample, 'https://example.com/ü?a=1');
    const bytes = Buffer.from(good, 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
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
    expect(tokens.openUrl(create(sample, ''))).toBeNull();
    expect(read(made.openUrl(sample))).toBeNull();
  });

  it('reports whether it was created for the host', () => {
    const token = create(sample, 'https://example.com/');
    expect(tokens.click(token, 'link.example.org')).toMatchObject({ madeForHost: false });
    expect(tokens.click(token, '')).toMatchObject({ madeForHost: false });
  });

  it('is rejected without a message id or a host', () => {
    expect(tokens.openUrl(signedUrl('open', packId(sample)))?.id).toBe(sample);
    expect(read(signedUrl('click', Buffer.from('https://example.com')))).toBeNull();
    expect(read(signedUrl('click', Buffer.alloc(0)))).toBeNull();
    expect(
      read(signedUrl('click', Buffer.concat([packId(sample), Buffer.from('https://example.com')]))),
    ).toBeNull();
  });
});

/** A URL token with this payload, signed for the account. */
function signedUrl(purpose: string, payload: Buffer): string {
  const key = mac(ownTokenKey(seal, ACCOUNT), `url/${purpose}`, 32);
  const bytes = Buffer.concat([Buffer.from([0xa2]), accountTag(ACCOUNT), payload]);
  return Buffer.concat([bytes, mac(key, bytes, 16)]).toString('base64url');
}

describe('the tokens of an account that came from another installation', () => {
  const TWO = 'acct_two';
  const ofTwo = 'msg_1700000000001_abcdefghijkl';
  const accounts: TokenAccounts = {
    importedKey: (tag) =>
      tag === accountTag(ACCOUNT).toString('hex')
        ? { accountId: ACCOUNT, key: ownTokenKey(seal, ACCOUNT) }
        : null,
    accountOf: (messageId) => (messageId === ofTwo ? TWO : null),
  };
  const here = createTokens(createSeal(Buffer.alloc(32, 3), systemRandom), accounts);

  it('are valid here', () => {
    for (const purpose of PURPOSES) expect(idIn(here, purpose, made[purpose](sample))).toBe(sample);
    for (const purpose of ['unsubscribeUrl', 'reportUrl'] as const)
      expect(here[purpose](made[purpose](mail))).toEqual(mail);
    const click = clickTokens(made.click, sample, 'link.example.com')('https://example.com/');
    expect(here.click(click, 'link.example.com')).toMatchObject({ id: sample, madeForHost: true });
  });

  it('are created with the same key here', () => {
    for (const purpose of PURPOSES) expect(here.of(ACCOUNT)[purpose](sample)).toBe(made[purpose](sample));
    expect(here.of(TWO).returnPath(sample)).not.toBe(tokens.of(TWO).returnPath(sample));
  });

  it('are not valid for messages and mail of other accounts', () => {
    for (const purpose of ADDRESS_PURPOSES) expect(here[purpose](made[purpose](ofTwo))).toBeNull();
    const click = clickTokens(made.click, ofTwo, 'link.example.com')('https://example.com/');
    for (const read of [here.openUrl(made.openUrl(ofTwo)), here.click(click, 'link.example.com')]) {
      expect(read?.isOf(TWO)).toBe(false);
      expect(read?.isOf(ACCOUNT)).toBe(true);
    }
    for (const forged of [
      { ...mail, accountId: TWO },
      { ...mail, messageId: ofTwo },
    ])
      for (const purpose of ['unsubscribeUrl', 'reportUrl'] as const)
        expect(here[purpose](made[purpose](forged))).toBeNull();
  });

  it('of other accounts there are not valid here', () => {
    for (const purpose of PURPOSES) expect(idIn(here, purpose, tokens.of(TWO)[purpose](sample))).toBeNull();
  });
});

describe('the tokens after a replacement of the master key', () => {
  const keys = new Map([
    [1, Buffer.alloc(32, 1)],
    [2, Buffer.alloc(32, 2)],
  ]);
  const both = createSeal(() => ({ newest: 2, keys }), systemRandom);

  it('of the former key are valid, and new ones have the new key', () => {
    const after = createTokens(both);
    for (const purpose of PURPOSES) {
      expect(idIn(after, purpose, made[purpose](sample))).toBe(sample);
      expect(after.of(ACCOUNT)[purpose](sample)).toBe(otherTokens.of(ACCOUNT)[purpose](sample));
    }
  });

  it('of both keys are valid where the account moves', () => {
    const there = createTokens(createSeal(Buffer.alloc(32, 3), systemRandom), {
      importedKey: () => ({ accountId: ACCOUNT, key: ownTokenKey(both, ACCOUNT) }),
      accountOf: () => null,
    });
    for (const purpose of PURPOSES) {
      expect(idIn(there, purpose, made[purpose](sample))).toBe(sample);
      expect(idIn(there, purpose, otherTokens.of(ACCOUNT)[purpose](sample))).toBe(sample);
    }
  });
});

it('every URL token of an account begins with its prefix', () => {
  const click = clickTokens(made.click, sample, 'link.example.com')('https://example.com/');
  expect(linkPrefix(ACCOUNT)).toMatch(/^[\w-]{8}$/);
  expect(linkPrefix('acct_two')).not.toBe(linkPrefix(ACCOUNT));
  for (const token of [made.unsubscribeUrl(mail), made.reportUrl(mail), made.openUrl(sample), click])
    expect(token.slice(0, 8)).toBe(linkPrefix(ACCOUNT));
});
