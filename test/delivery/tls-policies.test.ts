import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { monotonicClock } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/random.ts';
import type { StsPolicy } from '../../src/delivery/mta-sts.ts';
import { createRouteFinder, type RouteResult } from '../../src/delivery/routes.ts';
import { associationOf, createTlsPolicies } from '../../src/delivery/tls-policies.ts';
import { type ConfigurableResolver, createResolver } from '../../src/dns/resolver.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { PATIENCE_MS } from '../support/patience.ts';

const HASH = 'ab'.repeat(32);
const RECORD = { usage: 3, selector: 1, matchingType: 1, data: HASH };

let dns: DnsServer;
let resolver: ConfigurableResolver;
let sts: StsPolicy | null;
let isDaneOn: boolean;

beforeEach(async () => {
  sts = null;
  isDaneOn = true;
  dns = await startDnsServer();
  resolver = createResolver({
    resolvers: [dns.address],
    timeoutMs: PATIENCE_MS,
    monotonic: monotonicClock,
    random: systemRandom,
  });
  secure('one.test', 'MX', '10 mx.one.test');
  secure('mx.one.test', 'A', '192.0.2.1');
  tlsa('_25._tcp.mx.one.test');
});

afterEach(async () => {
  resolver.close();
  await dns.close();
});

function secure(name: string, type: 'MX' | 'A' | 'CNAME', value: string): void {
  dns.set(name, type, { values: [value], authenticated: true });
}

function tlsa(
  name: string,
  authenticated = true,
  [usage, selector, matchingType] = [3, 1, 1] as const,
): void {
  const data = { usage, selector, matchingType, certificate: Buffer.from(HASH, 'hex') };
  dns.set(name, 'TLSA', {
    values: [],
    raw: [{ type: 'TLSA', name, ttl: 300, data }],
    authenticated,
  });
}

async function route(destination = 'one.test'): Promise<RouteResult> {
  const env = {
    POSTRIDER_DELIVERY__TLS__DANE: String(isDaneOn),
    POSTRIDER_DELIVERY__ALLOWPRIVATENETWORKS: 'true',
  };
  const context = { config: loadConfig({ env }), random: systemRandom };
  const policies = { of: async () => ({ policy: sts, fault: null }) };
  const find = createRouteFinder(context, {
    resolver,
    tlsPolicies: createTlsPolicies(context, { resolver, sts: policies }),
  });
  return find(destination, 'never');
}

/** The policies of the hosts, in their order. */
async function policies(destination?: string) {
  const found = await route(destination);
  if (found.kind === 'failure') throw new Error(found.failure);
  return found.hosts.map(({ policy }) => policy);
}

const FAULT = {
  type: 'dnssec-invalid',
  text: expect.stringMatching(/^mx\.one\.test: the TLSA records .* could not/),
};

describe('TLSA records', () => {
  it('apply to a host if all of its DNS data is secure', async () => {
    expect(await policies()).toEqual([
      {
        kind: 'dane',
        base: 'mx.one.test',
        tlsaName: '_25._tcp.mx.one.test',
        names: ['mx.one.test', 'one.test'],
        records: [RECORD],
      },
    ]);
  });

  it.each<[what: string, change: () => void]>([
    ['the MX records are not secure', () => dns.set('one.test', 'MX', ['10 mx.one.test'])],
    ['the addresses are not secure', () => dns.set('mx.one.test', 'A', ['192.0.2.1'])],
    ['they are not secure themselves', () => tlsa('_25._tcp.mx.one.test', false)],
    ['there are none', () => dns.remove('_25._tcp.mx.one.test')],
    ['there are other records at their name', () => dns.set('_25._tcp.mx.one.test', 'TLSA', 'NODATA')],
    [
      'the resolver is not trusted',
      () => resolver.configure({ resolvers: [dns.address], timeoutMs: PATIENCE_MS, trustAd: 'never' }),
    ],
    ['they are turned off', () => void (isDaneOn = false)],
  ])('do not apply if %s', async (_, change) => {
    change();
    expect(await policies()).toEqual([undefined]);
  });

  it('are not looked up at a host whose addresses are not secure', async () => {
    dns.set('mx.one.test', 'A', ['192.0.2.1']);
    await policies();
    expect(dns.asked('_25._tcp.mx.one.test')).toBe(0);
  });

  it.each(['SERVFAIL', 'REFUSED', 'silent', 'bad bytes'] as const)(
    'exclude the host if the answer is: %s',
    async (answer) => {
      dns.set('_25._tcp.mx.one.test', 'TLSA', answer);
      if (answer === 'silent')
        resolver.configure({ resolvers: [dns.address], timeoutMs: 2000, trustAd: 'loopback' });
      expect(await policies()).toMatchObject([{ kind: 'dane', fault: FAULT }]);
      const found = await route();
      expect(found.ttl).toBeLessThanOrEqual(60);
    },
  );

  it('require encryption only if none is usable', async () => {
    tlsa('_25._tcp.mx.one.test', true, [1, 0, 1] as never);
    expect(await policies()).toMatchObject([{ kind: 'dane', records: [] }]);
  });

  it('apply to a domain without MX records', async () => {
    secure('bare.test', 'A', '192.0.2.2');
    tlsa('_25._tcp.bare.test');
    expect(await policies('bare.test')).toMatchObject([{ base: 'bare.test', names: ['bare.test'] }]);
  });

  it('add the end of the CNAMEs of the domain to the names', async () => {
    secure('alias.test', 'CNAME', 'one.test');
    expect(await policies('alias.test')).toMatchObject([
      { names: ['mx.one.test', 'alias.test', 'one.test'] },
    ]);
  });

  describe('of a host that is an alias', () => {
    beforeEach(() => {
      secure('one.test', 'MX', '10 alias.one.test');
      secure('alias.one.test', 'CNAME', 'mx.two.test');
      secure('mx.two.test', 'A', '192.0.2.3');
    });

    it('are first those at the end of the CNAMEs', async () => {
      tlsa('_25._tcp.mx.two.test');
      tlsa('_25._tcp.alias.one.test');
      expect(await policies()).toMatchObject([
        { base: 'mx.two.test', names: ['mx.two.test', 'one.test', 'alias.one.test'] },
      ]);
    });

    it('are then those of the alias', async () => {
      tlsa('_25._tcp.alias.one.test');
      expect(await policies()).toMatchObject([{ base: 'alias.one.test' }]);
    });

    it('are those of the alias if only the CNAME is secure', async () => {
      dns.set('mx.two.test', 'A', ['192.0.2.3']);
      tlsa('_25._tcp.alias.one.test');
      tlsa('_25._tcp.mx.two.test');
      expect(await policies()).toMatchObject([{ base: 'alias.one.test' }]);
      expect(dns.asked('_25._tcp.mx.two.test')).toBe(0);
    });
  });
});

describe('an association', () => {
  const certificate = (bytes: number) => Buffer.alloc(bytes, 1);
  const CASES: [numbers: [number, number, number], bytes: number, usable: boolean][] = [
    [[3, 1, 1], 32, true],
    [[2, 0, 2], 64, true],
    [[2, 0, 0], 700, true],
    [[0, 0, 1], 32, false],
    [[1, 1, 1], 32, false],
    [[4, 1, 1], 32, false],
    [[255, 255, 255], 32, false],
    [[3, 2, 1], 32, false],
    [[3, 1, 3], 32, false],
    [[3, 1, 1], 31, false],
    [[3, 1, 2], 32, false],
    [[3, 1, 0], 0, false],
  ];
  it.each(CASES)('%j with %d bytes is usable: %s', ([usage, selector, matchingType], bytes, usable) => {
    const found = associationOf({ usage, selector, matchingType, certificate: certificate(bytes) });
    expect(found !== null).toBe(usable);
  });
});

describe('an MTA-STS policy', () => {
  const policyWith = (mode: StsPolicy['mode'], ...mx: string[]): StsPolicy => ({ mode, mx, maxAge: 60 });

  beforeEach(() => {
    dns.set('sts.test', 'MX', ['10 mx1.sts.test', '20 mx2.sts.test']);
    for (const name of ['mx1.sts.test', 'mx2.sts.test']) dns.set(name, 'A', ['192.0.2.8']);
  });

  it('applies to hosts without TLSA records', async () => {
    sts = policyWith('enforce', 'mx.one.test');
    expect(await policies()).toMatchObject([{ kind: 'dane' }]);
    dns.remove('_25._tcp.mx.one.test');
    resolver.clear();
    expect(await policies()).toEqual([{ kind: 'mta-sts', domain: 'one.test', mode: 'enforce' }]);
  });

  it('leaves only the hosts that it permits', async () => {
    sts = policyWith('enforce', 'mx2.sts.test');
    const found = await route('sts.test');
    expect(found).toMatchObject({ hosts: [{ name: 'mx2.sts.test' }] });
  });

  it('states the reason at each host if it permits none', async () => {
    sts = policyWith('enforce', '*.other.test');
    const fault = {
      type: 'validation-failure',
      text: 'mx1.sts.test is not a mail host in the MTA-STS policy of sts.test, which permits *.other.test',
    };
    expect(await policies('sts.test')).toMatchObject([{ fault }, { fault: {} }]);
  });

  it('excludes no host in mode testing, and concerns none in mode none', async () => {
    sts = policyWith('testing', 'mx2.sts.test');
    expect(await policies('sts.test')).toMatchObject([{ mode: 'testing', fault: {} }, { mode: 'testing' }]);
    sts = policyWith('none');
    expect(await policies('sts.test')).toEqual([undefined, undefined]);
  });
});
