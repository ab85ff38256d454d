import { describe, expect, it } from 'vitest';
import { checkTracking } from '../../../../src/domains/verification/checks/tracking.ts';
import { viewOf, type Zone } from '../../zone.ts';

const US: Zone = { 'A track.mail.example.net': ['192.0.2.25'] };
const LINK: Zone = { 'CNAME link.example.com': ['track.mail.example.net'] };
const CUSTOM: Zone = { 'CNAME eu.example.com': ['track.mail.example.net'] };

async function check(
  zone: Zone,
  { custom = false, https = null as ((host: string, address: string) => boolean) | null } = {},
) {
  const { changes, ...result } = await checkTracking({
    view: viewOf(zone),
    platform: {
      hostname: 'mail.example.net',
      publicUrl: https === null ? 'http://links.example.net' : 'https://links.example.net',
    },
    domain: { name: 'example.com', tracking_domain: custom ? 'eu.example.com' : null },
    answersHttps: async (host, address) => https?.(host, address) ?? true,
  });
  return { ...result, host: changes?.tracking_host };
}

it('is probed at an address of the platform, whatever addresses it has', async () => {
  const probed: [string, string][] = [];
  const https = (...where: [string, string]) => {
    probed.push(where);
    return true;
  };
  await check({ ...US, 'A link.example.com': ['10.0.0.1', '192.0.2.25'] }, { https });
  expect(probed).toEqual([['link.example.com', '192.0.2.25']]);
});

describe('the host of tracked links', () => {
  it.each<[string, Zone, string | null | undefined, string, string]>([
    ['is link. when that is our CNAME', { ...US, ...LINK }, 'link.example.com', 'pass', ''],
    [
      'is link. when it has our address',
      { ...US, 'A link.example.com': ['192.0.2.25'] },
      'link.example.com',
      'pass',
      '',
    ],
    [
      'is link. over a longer chain',
      {
        ...US,
        'CNAME link.example.com': ['l.example.org'],
        'CNAME l.example.org': ['track.mail.example.net'],
      },
      'link.example.com',
      'pass',
      '',
    ],
    [
      "is the platform's without a record",
      US,
      null,
      'fail',
      'There is no record at link.example.com. Publish: CNAME track.mail.example.net',
    ],
    [
      "is the platform's when it leads elsewhere",
      { ...US, 'A link.example.com': ['198.51.100.1'] },
      null,
      'fail',
      'does not lead to this platform',
    ],
    [
      "is the platform's while that has no address",
      LINK,
      null,
      'fail',
      'must publish the records of "postrider zone"',
    ],
    [
      'stays what it was when DNS does not answer',
      { ...US, 'CNAME link.example.com': 'ETIMEOUT' },
      undefined,
      'unknown',
      '',
    ],
    [
      'stays what it was when our own name does not answer',
      { ...LINK, 'A track.mail.example.net': 'ESERVFAIL' },
      undefined,
      'unknown',
      '',
    ],
  ])('%s', async (_, zone, host, verdict, hint) => {
    expect(await check(zone)).toMatchObject({ host, verdict, hint: expect.stringContaining(hint) });
  });

  it.each<[string, Zone, string | null | undefined, string, string]>([
    ['is the custom one when that leads here', { ...US, ...LINK, ...CUSTOM }, 'eu.example.com', 'pass', ''],
    [
      'falls back to link.',
      { ...US, ...LINK },
      'link.example.com',
      'fail',
      'Until then links use link.example.com.',
    ],
    ["falls back to the platform's", US, null, 'fail', "Until then links use the platform's own address."],
    [
      'stays what it was when DNS does not answer for link.',
      { ...US, 'CNAME link.example.com': 'ETIMEOUT' },
      undefined,
      'fail',
      'Until then links use the same host as before.',
    ],
  ])('%s', async (_, zone, host, verdict, hint) => {
    expect(await check(zone, { custom: true })).toMatchObject({
      host,
      verdict,
      hint: expect.stringContaining(hint),
    });
  });

  it('must answer over HTTPS where links are https', async () => {
    const zone = { ...US, ...LINK, ...CUSTOM };
    const only = (good: string) => (host: string) => host === good;
    expect(await check(zone, { https: only('link.example.com') })).toMatchObject({
      host: 'link.example.com',
      verdict: 'pass',
    });
    expect(await check(zone, { https: () => false })).toMatchObject({
      host: null,
      hint: expect.stringContaining('valid certificate'),
    });
    expect(await check(zone, { custom: true, https: only('link.example.com') })).toMatchObject({
      host: 'link.example.com',
      verdict: 'fail',
    });
  });
});
