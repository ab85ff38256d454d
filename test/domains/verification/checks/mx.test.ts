import { describe, expect, it } from 'vitest';
import { checkMx } from '../../../../src/domains/verification/checks/mx.ts';
import { viewOf, type Zone } from '../../zone.ts';

const HOST = 'return-a.example.com';

const PLATFORM: Zone = { 'A mail.example.net': ['192.0.2.25'] };

function check(zone: Zone, hasKnownAddress = true, platform = PLATFORM) {
  return checkMx({
    view: viewOf({ ...platform, ...zone }),
    platform: {
      hostname: 'mail.example.net',
      egress: [{ pools: ['default'], ...(hasKnownAddress ? { address: '192.0.2.25' } : {}) }],
    },
    domain: { name: 'example.com' },
  });
}

describe('the return path', () => {
  it.each<[string, string[], string]>([
    ['passes with our host', ['10 mail.example.net'], ''],
    ['passes with our host first among others', ['20 backup.example.org', '10 mail.example.net'], ''],
    [
      'passes with a preferred other host, with a hint',
      ['5 other.example.org', '10 mail.example.net'],
      'other.example.org is preferred to mail.example.net',
    ],
  ])('%s', async (_, records, hint) => {
    expect(await check({ [`MX ${HOST}`]: records })).toMatchObject({
      verdict: 'pass',
      hint: expect.stringContaining(hint),
    });
  });

  it.each<[string, Zone, string | null, string]>([
    ['without a record', {}, null, `There is no MX record at ${HOST}. Publish: MX 10 mail.example.net`],
    [
      'with another host',
      { [`MX ${HOST}`]: ['10 mx.example.org'] },
      '10 mx.example.org',
      'goes to mx.example.org',
    ],
    ['with a null MX', { [`MX ${HOST}`]: ['0 .'] }, '0 .', 'no mail accepted'],
    [
      'under a doubled name',
      { [`MX ${HOST}.example.com`]: ['10 mail.example.net'] },
      null,
      'enter the name as "return-a"',
    ],
    [
      'as a CNAME',
      { [`CNAME ${HOST}`]: ['example.org'] },
      null,
      'Replace the CNAME with: MX 10 mail.example.net',
    ],
  ])('fails %s', async (_, zone, found, hint) => {
    expect(await check(zone)).toEqual({
      verdict: 'fail',
      expected: 'MX 10 mail.example.net',
      found,
      hint: expect.stringContaining(hint),
    });
  });

  it.each<[string, Zone, boolean, string]>([
    ['passes with an IPv6 address of our host', { 'AAAA mail.example.net': ['2001:db8::25'] }, true, 'pass'],
    ['fails when our host has no address', {}, true, 'fail'],
    ['passes when no address of the platform is known at all', {}, false, 'pass'],
    ['is unknown when the address is', { 'A mail.example.net': 'ESERVFAIL' }, true, 'unknown'],
  ])('%s', async (_, platform, hasKnownAddress, verdict) => {
    const judgment = await check({ [`MX ${HOST}`]: ['10 mail.example.net'] }, hasKnownAddress, platform);
    expect(judgment.verdict).toBe(verdict);
    if (Object.keys(platform).length === 0) expect(judgment.hint).toContain('has no A or AAAA record');
  });

  it('is unknown when DNS does not answer', async () => {
    expect(await check({ [`MX ${HOST}`]: 'ETIMEOUT' })).toMatchObject({ verdict: 'unknown' });
  });
});
