import { describe, expect, it } from 'vitest';
import { checkKey } from '../../../../src/domains/verification/checks/dkim.ts';
import { freshPublicKey, viewOf, type Zone } from '../../zone.ts';

const P = freshPublicKey();
const OTHER = freshPublicKey();
const NAME = 'pr1._domainkey.example.com';
const RIGHT = `v=DKIM1; k=rsa; p=${P}`;

function check(zone: Zone) {
  return checkKey(viewOf(zone), { domain: 'example.com', selector: 'pr1', publicKey: P });
}

describe('a key passes', () => {
  it.each<[string, string[]]>([
    ['as we say it', [RIGHT]],
    ['in two strings', [`v=DKIM1; k=rsa; p=${P.slice(0, 200)}|${P.slice(200)}`]],
    [
      'with blanks in the key',
      [`v=DKIM1; k=rsa; p=${P.slice(0, 100)} ${P.slice(100, 200)}\t${P.slice(200)}`],
    ],
    ['without v= and k=, which have defaults', [`p=${P}`]],
    ['without blanks and with a last semicolon', [`v=DKIM1;k=rsa;p=${P};`]],
    ['with blanks around everything', [` v = DKIM1 ; k = rsa ; p = ${P} ; `]],
    ['with other tags', [`v=DKIM1; k=rsa; n=our mail; h=sha1:sha256; s=email; t=s; p=${P}`]],
    ['sent twice by a careless server', [RIGHT, RIGHT]],
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

  it('but is told about t=y', async () => {
    expect(await check({ [`TXT ${NAME}`]: [`v=DKIM1; t=y; p=${P}`] })).toMatchObject({
      verdict: 'pass',
      hint: expect.stringContaining('t=y'),
    });
  });
});

describe('a key does not pass', () => {
  it.each<[string, string[], string]>([
    [
      'of somebody else',
      [`v=DKIM1; k=rsa; p=${OTHER}`],
      `Another key is published under this selector. Replace it by: ${RIGHT}`,
    ],
    ['cut off', [`v=DKIM1; k=rsa; p=${P.slice(0, 238)}`], 'cut off after 238 of 392 characters'],
    ['revoked', ['v=DKIM1; k=rsa; p='], 'revokes the key'],
    ['of another kind', [`v=DKIM1; k=ed25519; p=${P}`], 'k=ed25519'],
    ['without the key itself', ['v=DKIM1; k=rsa'], 'has no "p="'],
    ['for another hash', [`v=DKIM1; h=sha1; p=${P}`], 'remove the "h=" tag'],
    ['for another service', [`v=DKIM1; s=chat; p=${P}`], 'remove the "s=" tag'],
    ['with the version in the middle', [`k=rsa; v=DKIM1; p=${P}`], 'must begin with v=DKIM1'],
    ['with a tag twice', [`v=DKIM1; p=${P}; p=${P}`], 'no list of tags'],
    ['with the quotation marks', [`"v=DKIM1; k=rsa; p=${P}"`], 'quotation marks'],
    ['with the backslashes', [`v=DKIM1\\; k=rsa\\; p=${P}`], 'backslashes'],
    [
      'in two records',
      [`v=DKIM1; k=rsa; p=${P.slice(0, 200)}`, P.slice(200)],
      'published in two TXT records',
    ],
    [
      'in two records, the other way round',
      [P.slice(200), `v=DKIM1; k=rsa; p=${P.slice(0, 200)}`],
      'published in two TXT records',
    ],
    ['beside another key', [RIGHT, `v=DKIM1; k=rsa; p=${OTHER}`], 'Keep ours and remove the rest'],
    ['among strangers', [`v=DKIM1; p=${OTHER}`, 'v=DKIM1; p='], 'none of them is ours'],
    ['beside another text', [RIGHT, 'verification=123'], 'another TXT record beside the key'],
    ['when there is only another text', ['v=spf1 -all'], 'is no DKIM key'],
  ])('%s', async (_, records, hint) => {
    expect(await check({ [`TXT ${NAME}`]: records })).toEqual({
      verdict: 'fail',
      found: records.join('\n'),
      hint: expect.stringContaining(hint),
    });
  });

  it.each<[string, Zone, string]>([
    ['when nothing is there', {}, `There is no TXT record at ${NAME} yet. Publish: ${RIGHT}`],
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

describe('nothing is said about a key', () => {
  it.each([
    ['ETIMEOUT', 'time-out'],
    ['ESERVFAIL', 'SERVFAIL'],
    ['EREFUSED', 'refused'],
  ] as const)('when DNS answers with %s', async (code, why) => {
    expect(await check({ [`TXT ${NAME}`]: code })).toEqual({
      verdict: 'unknown',
      found: null,
      hint: expect.stringContaining(why),
    });
  });
});
