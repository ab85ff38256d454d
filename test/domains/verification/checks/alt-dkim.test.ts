import { describe, expect, it } from 'vitest';
import { checkAltDkim } from '../../../../src/domains/verification/checks/alt-dkim.ts';
import { freshPublicKey, viewOf, type Zone } from '../../zone.ts';

const P = freshPublicKey();
const NAME = 'ps1._domainkey.example.com';
const TARGET = 'alt_1.dkim.mail.example.net';
const ALIAS: Zone = { [`CNAME ${NAME}`]: [TARGET] };
const KEY: Zone = { [`TXT ${TARGET}`]: [`v=DKIM1; k=rsa; p=${P}`] };

describe('the key of the secondary lane', () => {
  it.each<[string, Zone, string, string]>([
    ['passes through its CNAME', { ...ALIAS, ...KEY }, 'pass', ''],
    ['passes as a record of its own', { [`TXT ${NAME}`]: [`v=DKIM1; k=rsa; p=${P}`] }, 'pass', ''],
    ['fails without a record', KEY, 'fail', `There is no record at ${NAME}. Publish: CNAME ${TARGET}`],
    [
      'fails with another CNAME',
      { ...KEY, [`CNAME ${NAME}`]: ['x.example.org'] },
      'fail',
      `Change it to: CNAME ${TARGET}`,
    ],
    ["fails while the platform's part is missing, and says whose it is", ALIAS, 'fail', 'The CNAME is right'],
    [
      'fails with another key',
      { [`TXT ${NAME}`]: [`v=DKIM1; p=${freshPublicKey()}`] },
      'fail',
      'Better publish the CNAME',
    ],
    ['is left open when DNS does not answer', { [`TXT ${NAME}`]: 'ETIMEOUT' }, 'unknown', ''],
  ])('%s', async (_, zone, verdict, hint) => {
    const key = { domain: 'example.com', selector: 'ps1', publicKey: P };
    expect(await checkAltDkim(viewOf(zone), key, TARGET)).toMatchObject({
      verdict,
      hint: expect.stringContaining(hint),
    });
  });

  it('is not looked for before the lane is set up', async () => {
    expect(await checkAltDkim(viewOf({}), null, TARGET)).toMatchObject({
      verdict: 'fail',
      hint: expect.stringContaining('being set up'),
    });
  });
});
