import { describe, expect, it } from 'vitest';
import { checkKey } from '../../../../src/domains/verification/checks/dkim.ts';
import { fixedPublicKey } from '../../../support/rsa-keys.ts';
import { viewOf, type Zone } from '../../zone.ts';

const P = fixedPublicKey(0);
const OTHER = fixedPublicKey(1);
const NAME = 'pr1._domainkey.example.com';
const RIGHT = `v=DKIM1; k=rsa; p=${P}`;

function check(zone: Zone) {
  return checkKey(viewOf(zone), { domain: 'example.com', selector: 'pr1', publicKey: P });
}

describe('a key passes', () => {
  it.each<[string, string[]]>([
    ['as published by us', [RIGHT]],
    ['in two strings', [`v=DKIM1; k=rsa; p=${P.slice(0, 200)}|${P.slice(200)}`]],
    [
      'with spaces in the key',
      [`v=DKIM1; k=rsa; p=${P.slice(0, 100)} ${P.slice(100, 200)}\t${P.slice(200)}`],
    ],
    ['without v= and k=, which have defaults', [`p=${P}`]],
    ['without spaces and with a last semicolon', [`v=DKIM1;k=rsa;p=${P};`]],
    ['with spaces around everything', [` v = DKIM1 ; k = rsa ; p = ${P} ; `]],
    ['with other tags', [`v=DKIM1; k=rsa; n=our mail; h=sha1:sha256; s=email; t=s; p=${P}`]],
    ['sent twice by the server', [RIGHT, RIGHT]],
  ])('%s', async (_, records) => {
    expect(await check({ [`TXT ${NAME}`]: records })).toEqual({
      verdict: 'pass',
      found: records[0]?.replace('|', ''),
      hint: '',
    });
  });

  it('behind a CNAME', async () => {
    const zone = { [`CNAME ${NAME}`]: ['keys.example.net'], 'TXT keys.example.net': [RIGHT] };
    expect(await check(zone)).toMatchObject({ verdict: 'pass' });
  });

  it('with t=y, with a hint', async () => {
    expect(await check({ [`TXT ${NAME}`]: [`v=DKIM1; t=y; p=${P}`] })).toMatchObject({
      verdict: 'pass',
      hint: expect.stringContaining('t=y'),
    });
  });
});

describe('a key does not pass', () => {
  it.each<[string, string[], string]>([
    [
      'of another owner',
      [`v=DKIM1; k=rsa; p=${OTHER}`],
      `Another key is published under this selector. Replace it with: ${RIGHT}`,
    ],
    ['cut off', [`v=DKIM1; k=rsa; p=${P.slice(0, 238)}`], 'cut off after 238 of 392 characters'],
    ['revoked', ['v=DKIM1; k=rsa; p='], 'revokes the key'],
    ['of another kind', [`v=DKIM1; k=ed25519; p=${P}`], 'k=ed25519'],
    ['without the key itself', ['v=DKIM1; k=rsa'], 'has no "p="'],
    ['for another hash', [`v=DKIM1; h=sha1; p=${P}`], 'remove the "h=" tag'],
    ['for another service', [`v=DKIM1; s=chat; p=${P}`], 'remove the "s=" tag'],
    ['with the version in the middle', [`k=rsa; v=DKIM1; p=${P}`], 'must begin with v=DKIM1'],
    ['with a tag twice', [`v=DKIM1; p=${P}; p=${P}`], 'not a list of tags'],
    ['with quotation marks', [`"v=DKIM1; k=rsa; p=${P}"`], 'quotation marks'],
    ['with backslashes', [`v=DKIM1\\; k=rsa\\; p=${P}`], 'backslashes'],
    [
      'in two records',
      [`v=DKIM1; k=rsa; p=${P.slice(0, 200)}`, P.slice(200)],
      'published in two TXT records',
    ],
    [
      'in two records in reverse order',
      [P.slice(200), `v=DKIM1; k=rsa; p=${P.slice(0, 200)}`],
      'published in two TXT records',
    ],
    ['with another key record', [RIGHT, `v=DKIM1; k=rsa; p=${OTHER}`], 'Keep ours and remove the rest'],
    ['with two other keys', [`v=DKIM1; p=${OTHER}`, 'v=DKIM1; p='], 'none of them is ours'],
    ['with another TXT record', [RIGHT, 'verification=123'], 'another TXT record in addition to the key'],
    ['with only another TXT record', ['v=spf1 -all'], 'is not a DKIM key'],
  ])('%s', async (_, records, hint) => {
    expect(await check({ [`TXT ${NAME}`]: records })).toEqual({
      verdict: 'fail',
      found: records.join('\n'),
      hint: expect.stringContaining(hint),
    });
  });

  it.each<[string, Zone, string]>([
    ['without a record', {}, `There is no TXT record at ${NAME} yet. Publish: ${RIGHT}`],
    [
      'when the console doubled the name',
      { [`TXT ${NAME}.example.com`]: [RIGHT] },
      'enter the name as "pr1._domainkey"',
    ],
    [
      'when the CNAME leads nowhere',
      { [`CNAME ${NAME}`]: ['gone.example.net'] },
      'is a CNAME to gone.example.net',
    ],
    [
      'when _domainkey is delegated',
      { 'NS _domainkey.example.com': ['ns1.example.net', 'ns2.example.net'] },
      'delegated to ns1.example.net, ns2.example.net',
    ],
  ])('%s', async (_, zone, hint) => {
    expect(await check(zone)).toEqual({ verdict: 'fail', found: null, hint: expect.stringContaining(hint) });
  });
});

describe('a key is unknown', () => {
  it.each([
    ['ETIMEOUT', 'timeout'],
    ['ESERVFAIL', 'SERVFAIL'],
    ['EREFUSED', 'refused'],
  ] as const)('when DNS answers with %s', async (code, reason) => {
    expect(await check({ [`TXT ${NAME}`]: code })).toEqual({
      verdict: 'unknown',
      found: null,
      hint: expect.stringContaining(reason),
    });
  });
});
