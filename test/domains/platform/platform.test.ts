import { describe, expect, it } from 'vitest';
import { toZoneFile } from '../../../src/dns/zone-file.ts';
import { type EgressAddressSetting, egressSet } from '../../../src/domains/platform/egress-addresses.ts';
import type { Platform } from '../../../src/domains/platform/platform.ts';
import { platformZone } from '../../../src/domains/platform/platform-zone.ts';
import { fixedPublicKey } from '../../support/rsa-keys.ts';
import { viewOf, type Zone } from '../zone.ts';

const HOST: Zone = { 'A mail.example.net': ['192.0.2.25'], 'AAAA mail.example.net': ['2001:db8::25'] };

const entry = (options: Partial<EgressAddressSetting>): EgressAddressSetting => ({
  pools: ['default'],
  ...options,
});

describe('egressSet', () => {
  it.each<[string, EgressAddressSetting[], string[]]>([
    ['without entries: those of the host name', [], ['192.0.2.25', '2001:db8::25']],
    ['an address', [entry({ address: '198.51.100.1' })], ['198.51.100.1']],
    ['both', [entry({ address: '198.51.100.1', address6: '2001:db8::1' })], ['198.51.100.1', '2001:db8::1']],
    [
      'behind NAT: the public one',
      [entry({ address: '10.0.0.1', publicAddress: '198.51.100.9' })],
      ['198.51.100.9'],
    ],
    [
      'behind IPv4 NAT with IPv6',
      [entry({ address: '10.0.0.1', address6: '2001:db8::1', publicAddress: '198.51.100.9' })],
      ['198.51.100.9', '2001:db8::1'],
    ],
    [
      'an entry whose address the system chooses',
      [entry({ address: '198.51.100.1' }), entry({})],
      ['198.51.100.1', '192.0.2.25', '2001:db8::25'],
    ],
    [
      'of all pools',
      [entry({ address: '198.51.100.1' }), entry({ address: '198.51.100.2', pools: ['secondary'] })],
      ['198.51.100.1', '198.51.100.2'],
    ],
  ])('%s', async (_, egress, addresses) => {
    const platform = { hostname: 'mail.example.net', egress };
    expect(await egressSet(viewOf(HOST), platform, null)).toEqual({ addresses, unknown: null });
  });

  it('returns only the addresses of one pool', async () => {
    const egress = [
      entry({ address: '198.51.100.1' }),
      entry({ address: '198.51.100.2', pools: ['secondary'] }),
    ];
    const set = await egressSet(viewOf(HOST), { hostname: 'mail.example.net', egress }, 'secondary');
    expect(set.addresses).toEqual(['198.51.100.2']);
  });

  it.each<[string, Zone, string | null]>([
    ['missing', {}, null],
    ['unknown', { 'A mail.example.net': 'ETIMEOUT' }, expect.stringContaining('timeout')],
  ])('are none when the host name is %s', async (_, zone, unknown) => {
    expect(await egressSet(viewOf(zone), { hostname: 'mail.example.net', egress: [] }, null)).toEqual({
      addresses: [],
      unknown,
    });
  });
});

describe("the platform's own zone", () => {
  const platform: Platform = {
    hostname: 'mail.example.net',
    egress: [
      entry({ address: '10.0.0.1', publicAddress: '192.0.2.25' }),
      entry({ address6: '2001:db8::26', hostname: 'out2.example.net' }),
    ],
    secondary: { type: 'relay', spfInclude: 'spf.relay.example' },
    returnPath: 'auto',
    publicUrl: 'http://127.0.0.1:8081',
    dmarcPolicy: 'enforced',
    stsPolicy: null,
    nameServer: null,
    keyPolicy: { rotationMs: null, ed25519: false },
    signs: false,
    retirementMs: 0,
  };

  it('lists hosts, senders and keys', async () => {
    const p = fixedPublicKey(0);
    const records = await platformZone(viewOf({}), platform, [
      { alt_domain_id: 'alt_1', slot: 's', state: 'active', public_key: p },
    ]);
    expect(records.map(({ name, type, value, priority }) => [name, type, value, priority])).toEqual([
      ['mail.example.net', 'A', '192.0.2.25', undefined],
      ['track.mail.example.net', 'A', '192.0.2.25', undefined],
      ['mail.example.net', 'MX', 'mail.example.net', 10],
      ['mail.example.net', 'TXT', 'v=spf1 include:spf.mail.example.net ~all', undefined],
      [
        'spf.mail.example.net',
        'TXT',
        'v=spf1 ip4:192.0.2.25 ip6:2001:db8::26 include:spf.relay.example ~all',
        undefined,
      ],
      ['*._report._dmarc.mail.example.net', 'TXT', 'v=DMARC1', undefined],
      ['alt_1.dkim.mail.example.net', 'TXT', `v=DKIM1; k=rsa; p=${p}`, undefined],
      ['out2.example.net', 'AAAA', '2001:db8::26', undefined],
      ['out2.example.net', 'TXT', 'v=spf1 a -all', undefined],
      ['25.2.0.192.in-addr.arpa', 'PTR', 'mail.example.net', undefined],
      [`6.2.${'0.'.repeat(22)}8.b.d.0.1.0.0.2.ip6.arpa`, 'PTR', 'out2.example.net', undefined],
    ]);
    expect(toZoneFile(records).trim().split('\n')).toHaveLength(11);
  });

  it('has the addresses of the first entry with an address that uses the host name', async () => {
    const egress = [
      entry({}),
      entry({ address: '192.0.2.30', hostname: 'out.example.net' }),
      entry({ address: '192.0.2.25' }),
      entry({ address: '192.0.2.26' }),
    ];
    const records = await platformZone(viewOf({}), { ...platform, egress }, []);
    const hosts = records.filter(({ name, type }) => name === 'mail.example.net' && type === 'A');
    expect(hosts.map(({ value }) => value)).toEqual(['192.0.2.25']);
  });

  it('uses the host name for an entry without an address', async () => {
    const bare: Platform = { ...platform, egress: [], secondary: { type: 'builtin', pool: 'secondary' } };
    const records = await platformZone(viewOf({}), bare, []);
    expect(records.map(({ name, type, value }) => [name, type, value])).toEqual([
      ['track.mail.example.net', 'CNAME', 'mail.example.net'],
      ['mail.example.net', 'MX', 'mail.example.net'],
      ['mail.example.net', 'TXT', 'v=spf1 include:spf.mail.example.net ~all'],
      ['spf.mail.example.net', 'TXT', 'v=spf1 a:mail.example.net ~all'],
      ['*._report._dmarc.mail.example.net', 'TXT', 'v=DMARC1'],
    ]);
  });

  it.each([
    ['https://links.example.org/base', [['CNAME', 'links.example.org']]],
    [
      'https://mail.example.net',
      [
        ['A', '192.0.2.25'],
        ['AAAA', '2001:db8::25'],
      ],
    ],
    [
      'https://track.mail.example.net',
      [
        ['A', '192.0.2.25'],
        ['AAAA', '2001:db8::25'],
      ],
    ],
    [
      'http://[::1]:8081',
      [
        ['A', '192.0.2.25'],
        ['AAAA', '2001:db8::25'],
      ],
    ],
  ])('has the addresses or the name of the tracking host for public.url %s', async (publicUrl, expected) => {
    const records = await platformZone(viewOf(HOST), { ...platform, publicUrl }, []);
    const track = records.filter(({ name }) => name === 'track.mail.example.net');
    expect(track.map(({ type, value }) => [type, value])).toEqual(expected);
  });

  it('has the addresses of a host of public.url that no other server can publish', async () => {
    const nameServer = {
      listen: '192.0.2.25:53',
      nameServers: [],
      addresses: ['192.0.2.25', '2001:db8::25'],
    };
    const hostOf = async (publicUrl: string, served: Platform['nameServer'] = nameServer) => {
      const records = await platformZone(viewOf({}), { ...platform, publicUrl, nameServer: served }, []);
      const { hostname } = new URL(publicUrl);
      return records.flatMap(({ name, type, value }) => (name === hostname ? [`${type} ${value}`] : []));
    };
    expect(await hostOf('https://t.mail.example.net')).toEqual(['A 192.0.2.25', 'AAAA 2001:db8::25']);
    expect(await hostOf('https://t.mail.example.net', null)).toEqual([]);
    expect(await hostOf('https://links.example.org')).toEqual([]);
    expect(await hostOf('https://ns1.mail.example.net')).toEqual([]);
    expect(await hostOf('https://track.mail.example.net')).toHaveLength(2);
  });
});
