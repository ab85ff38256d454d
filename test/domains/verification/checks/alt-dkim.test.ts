import { describe, expect, it } from 'vitest';
import { checkSecondaryDkim } from '../../../../src/domains/verification/checks/dkim.ts';
import type { DkimKeyRow } from '../../../../src/store/domains/domains.ts';
import { fixedPublicKey } from '../../../support/rsa-keys.ts';
import { viewOf, type Zone } from '../../zone.ts';

const P = fixedPublicKey(0);
const NAME = 'ps1._domainkey.example.com';
const TARGET = 'alt_1.dkim.mail.example.net';
const ALIAS: Zone = { [`CNAME ${NAME}`]: [TARGET] };
const KEY: Zone = { [`TXT ${TARGET}`]: [`v=DKIM1; k=rsa; p=${P}`] };

const ROW: DkimKeyRow = {
  key_id: 1,
  domain_id: 'domain_one',
  selector: 'ps1',
  lane: 'secondary',
  slot: 's',
  state: 'active',
  private_key: Buffer.alloc(0),
  public_key: P,
  created_at: 0,
  changed_at: 0,
};

function check(zone: Zone, keys: DkimKeyRow[] = [ROW]) {
  return checkSecondaryDkim({
    view: viewOf(zone),
    platform: { hostname: 'mail.example.net' },
    domain: { name: 'example.com', alt_domain_id: 'alt_1' },
    keys,
  });
}

describe('checkSecondaryDkim', () => {
  it.each<[string, Zone, string, string]>([
    ['passes through its CNAME', { ...ALIAS, ...KEY }, 'pass', ''],
    ['passes as a TXT record', { [`TXT ${NAME}`]: [`v=DKIM1; k=rsa; p=${P}`] }, 'pass', ''],
    ['fails without a record', KEY, 'fail', `There is no record at ${NAME}. Publish: CNAME ${TARGET}`],
    [
      'fails with another CNAME',
      { ...KEY, [`CNAME ${NAME}`]: ['x.example.org'] },
      'fail',
      `Change it to: CNAME ${TARGET}`,
    ],
    ["fails without the platform's record, and names its operator", ALIAS, 'fail', 'The CNAME is correct'],
    [
      'fails with another key',
      { [`TXT ${NAME}`]: [`v=DKIM1; p=${fixedPublicKey(1)}`] },
      'fail',
      'Better: publish the CNAME',
    ],
    ['is unknown when DNS does not answer', { [`TXT ${NAME}`]: 'ETIMEOUT' }, 'unknown', ''],
  ])('%s', async (_, zone, verdict, hint) => {
    expect(await check(zone)).toMatchObject({
      verdict,
      hint: expect.stringContaining(hint),
    });
  });

  it('fails without a lookup before the lane is provisioned', async () => {
    expect(await check({}, [])).toMatchObject({
      verdict: 'fail',
      hint: expect.stringContaining('not set up yet'),
    });
  });
});
