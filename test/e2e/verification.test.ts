import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CreatedDomain, DomainFlags, DomainRecord, VerifiedDomain } from '../support/api-client.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { publishPlatform } from '../support/verified-domain.ts';

/*
 * What can be wrong with a customer's zone, and what they are told about it. Every row registers a domain,
 * publishes what the API printed, breaks one thing and asks for verification.
 *
 *   test ──HTTP──▶ postrider ──DNS──▶ programmable server: the customer's zone, the platform's zone
 */
let dns: DnsServer;
let daemon: RunningDaemon;
let registered = 0;

beforeAll(async () => {
  dns = await startDnsServer();
  daemon = await startDaemon({ 'dns.resolvers': [dns.address], 'dns.timeoutMs': 400 });
});
afterAll(async () => {
  await daemon?.stop();
  await dns?.close();
});

/** A customer's zone as published, each record by what it is for. */
interface Zone {
  id: string;
  domain: string;
  dkim: DomainRecord;
  spf: DomainRecord;
  link: DomainRecord;
  dmarc: DomainRecord;
  mx: DomainRecord;
  alt: DomainRecord;
}

/** Registers a domain and publishes exactly what the API printed. */
async function publishedZone(): Promise<Zone> {
  const name = `kunde${++registered}.example`;
  const created = await daemon.api.put<CreatedDomain>('/web-setup/domains', {
    domain: name,
    useCaseId: 'tx-local',
  });
  const id = created.data.domainId;
  const { dnsRecords } = await eventually(`all records of ${name}`, async () => {
    const { data } = await daemon.api.get<CreatedDomain>(`/web-setup/domains/${id}/dns-records`);
    return data.dnsRecords.some(({ value }) => value === 'Creation in progress') ? null : data;
  });
  const [dkim, spf, link, dmarc, mx, alt] = dnsRecords;
  if (!dkim || !spf || !link || !dmarc || !mx || !alt) throw new Error('six records are promised');
  dns.publish(dnsRecords);
  await publishPlatform(daemon, dns);
  return { id, domain: name, dkim, spf, link, dmarc, mx, alt };
}

async function verify({ id }: Zone): Promise<VerifiedDomain> {
  return (await daemon.api.post<VerifiedDomain>(`/web-setup/domains/${id}/verify`)).data;
}

const GOOD = { dkimEnabled: true, spfConfigured: true, dmarcConfigured: true, mxConfigured: true };
const FLAG_OF = {
  dkim: 'dkimEnabled',
  spf: 'spfConfigured',
  dmarc: 'dmarcConfigured',
  mx: 'mxConfigured',
} as const;

type Needed = keyof typeof FLAG_OF;

/** Of a record of the zone: nothing is there any more. */
const unpublish = (record: DomainRecord) => dns.remove(record.name, record.type);
const replace = (record: DomainRecord, ...values: (string | string[])[]) =>
  dns.set(record.name, record.type, values);

describe('a domain whose zone is as printed', () => {
  it('is SUCCESS, with every check passed and nothing to do', async () => {
    const verified = await verify(await publishedZone());
    expect(verified).toMatchObject({ status: 'SUCCESS', ...GOOD, altStatus: 'ACTIVE', altDkimEnabled: true });
    const needed = verified.checks.filter(({ check }) => check in FLAG_OF);
    expect(needed.map(({ check, passed, hint }) => [check, passed, hint])).toEqual([
      ['dkim', true, ''],
      ['spf', true, ''],
      ['dmarc', true, ''],
      ['mx', true, ''],
    ]);
  });

  it.each<[string, (zone: Zone) => void]>([
    ['the key is in two strings of one record', ({ dkim }) => replace(dkim, halves(dkim.value))],
    [
      'the key is in strings of ten characters',
      ({ dkim }) => replace(dkim, dkim.value.match(/.{1,10}/g) ?? []),
    ],
    [
      'the key has blanks in it',
      ({ dkim }) => replace(dkim, dkim.value.replace('p=', 'p= ').replace('A', ' A')),
    ],
    ['SPF is in two strings of one record', ({ spf }) => replace(spf, halves(spf.value))],
    [
      'the SPF record is merged with what was there',
      ({ spf }) => replace(spf, spf.value.replace('v=spf1', 'v=spf1 ip4:192.0.2.1')),
    ],
    ['another TXT record stands beside SPF', ({ spf }) => replace(spf, spf.value, 'some-verification=123')],
    ['DMARC asks for quarantine', ({ dmarc }) => replace(dmarc, 'v=DMARC1; p=quarantine')],
    [
      'another mail host stands behind ours',
      ({ mx }) => replace(mx, `10 ${mx.value}`, '20 backup.example.net'),
    ],
  ])('is SUCCESS as well when %s', async (_, change) => {
    const zone = await publishedZone();
    change(zone);
    expect(await verify(zone)).toMatchObject({ status: 'SUCCESS', ...GOOD });
  });
});

describe('a new domain with one thing wrong is PENDING, and the hint names it:', () => {
  it.each<[string, Needed, (zone: Zone) => void, (zone: Zone) => RegExp | string]>([
    ['no DKIM record', 'dkim', ({ dkim }) => unpublish(dkim), ({ dkim }) => dkim.value],
    ['another key', 'dkim', ({ dkim }) => replace(dkim, otherKey(dkim)), () => /another key/i],
    ['a key that is no key', 'dkim', ({ dkim }) => replace(dkim, 'hello'), () => /not a DKIM key/],
    ['a revoked key', 'dkim', ({ dkim }) => replace(dkim, 'v=DKIM1; k=rsa; p='), () => /revokes/],
    ['a key cut off', 'dkim', ({ dkim }) => replace(dkim, dkim.value.slice(0, 255)), () => /cut off/],
    [
      'the key in two records',
      'dkim',
      ({ dkim }) => replace(dkim, ...halves(dkim.value)),
      () => /two TXT records/,
    ],
    [
      'a second key beside ours',
      'dkim',
      ({ dkim }) => replace(dkim, dkim.value, otherKey(dkim)),
      () => /2 key records/,
    ],
    [
      'the DKIM record under a doubled name',
      'dkim',
      ({ dkim, domain }) => {
        unpublish(dkim);
        dns.set(`${dkim.name}.${domain}`, 'TXT', [dkim.value]);
      },
      () => /the domain twice/,
    ],

    ['no SPF record', 'spf', ({ spf }) => unpublish(spf), ({ spf }) => spf.value],
    [
      'SPF without us',
      'spf',
      ({ spf }) => replace(spf, 'v=spf1 mx -all'),
      () => /include:spf\.mx\.postrider\.example/,
    ],
    [
      'us behind "-all"',
      'spf',
      ({ spf }) => replace(spf, `v=spf1 -all ${include(spf)}`),
      () => /before the include/,
    ],
    [
      'a second SPF record',
      'spf',
      ({ spf }) => replace(spf, spf.value, 'v=spf1 mx -all'),
      () => /There are 2 SPF records/,
    ],
    [
      'SPF with quotation marks',
      'spf',
      ({ spf }) => replace(spf, `"${spf.value}"`),
      () => /without quotation marks/,
    ],
    [
      'SPF that nobody can read',
      'spf',
      ({ spf }) => replace(spf, `v=spf1 ipv4:1.2.3.4 ${include(spf)} ~all`),
      () => /error/,
    ],

    ['no DMARC record', 'dmarc', ({ dmarc }) => unpublish(dmarc), ({ dmarc }) => dmarc.value],
    [
      'DMARC that asks for nothing',
      'dmarc',
      ({ dmarc }) => replace(dmarc, 'v=DMARC1; p=none'),
      () => /p=none/,
    ],
    [
      'DMARC twice',
      'dmarc',
      ({ dmarc }) => replace(dmarc, dmarc.value, 'v=DMARC1; p=none'),
      () => /There are 2 DMARC/,
    ],
    [
      'DMARC without a policy',
      'dmarc',
      ({ dmarc }) => replace(dmarc, 'v=DMARC1; sp=reject'),
      () => /Publish|policy/,
    ],

    ['no MX record', 'mx', ({ mx }) => unpublish(mx), ({ mx }) => `MX 10 ${mx.value}`],
    [
      'the MX of somebody else',
      'mx',
      ({ mx }) => replace(mx, '10 mail.example.net'),
      () => /goes to mail\.example\.net/,
    ],
    [
      'a CNAME where the MX should be',
      'mx',
      ({ mx }) => {
        unpublish(mx);
        dns.set(mx.name, 'CNAME', ['www.example.net']);
      },
      () => /Replace the CNAME/,
    ],
  ])('%s', async (_, check, change, hint) => {
    const zone = await publishedZone();
    change(zone);
    const verified = await verify(zone);
    expect(verified).toMatchObject({ status: 'PENDING', ...GOOD, [FLAG_OF[check]]: false });
    expect(verified.message).toMatch(/pending/i);
    const failed = verified.checks.filter((one) => one.check in FLAG_OF && !one.passed);
    expect(failed).toHaveLength(1);
    const wanted = hint(zone);
    expect(failed[0]?.check).toBe(check);
    expect(failed[0]?.expected).not.toBe('');
    expect(failed[0]?.hint).toEqual(
      typeof wanted === 'string' ? expect.stringContaining(wanted) : expect.stringMatching(wanted),
    );
    const flags = await daemon.api.get<DomainFlags>(`/web-setup/domains/${zone.id}`);
    expect(flags.data).toMatchObject({ status: 'PENDING', ...GOOD, [FLAG_OF[check]]: false });
  });
});

describe('DNS that does not answer', () => {
  const TROUBLES = ['SERVFAIL', 'silent', 'REFUSED', 'bad bytes'] as const;

  it.each(TROUBLES)('(%s) sets no flag on a new domain, and says that nothing is known', async (trouble) => {
    const zone = await publishedZone();
    breakZone(zone, trouble);
    const verified = await verify(zone);
    expect(verified).toMatchObject({
      status: 'PENDING',
      dkimEnabled: false,
      spfConfigured: false,
      dmarcConfigured: false,
      mxConfigured: false,
    });
    for (const { hint } of verified.checks.filter(({ check }) => check in FLAG_OF)) {
      expect(hint).toMatch(/^No result at present/);
    }
  });

  it.each(TROUBLES)('(%s) takes no flag from a verified domain', async (trouble) => {
    const zone = await publishedZone();
    expect((await verify(zone)).status).toBe('SUCCESS');
    breakZone(zone, trouble);
    expect(await verify(zone)).toMatchObject({
      status: 'SUCCESS',
      ...GOOD,
      altStatus: 'ACTIVE',
      altDkimEnabled: true,
    });
  });

  it('for one record holds up that record alone', async () => {
    const zone = await publishedZone();
    dns.set(zone.spf.name, 'TXT', 'SERVFAIL');
    expect(await verify(zone)).toMatchObject({ status: 'PENDING', ...GOOD, spfConfigured: false });
  });

  it('for what SPF includes is no fault of the customer', async () => {
    const zone = await publishedZone();
    dns.set('spf.mx.postrider.example', 'TXT', 'SERVFAIL');
    const { spfConfigured, checks } = await verify(zone);
    expect(spfConfigured).toBe(false);
    expect(checks.find(({ check }) => check === 'spf')?.hint).toMatch(/^No result at present/);
  });
});

describe('a verified domain whose record goes away', () => {
  it('is TEMPORARY_FAILURE, still sends, and recovers', async () => {
    const zone = await publishedZone();
    await verify(zone);
    const { dkim } = zone;
    unpublish(dkim);
    expect(await verify(zone)).toMatchObject({ status: 'TEMPORARY_FAILURE', ...GOOD, dkimEnabled: false });
    const html = '{{company_address_html}} {{unsubscribe_email_html}}';
    const mail = { to: 'delivered@simulator.mx.postrider.example', subject: 'x', html };
    expect((await daemon.api.send({ ...mail, from: `a@${zone.domain}` })).status).toBe(200);

    replace(dkim, dkim.value);
    expect(await verify(zone)).toMatchObject({ status: 'SUCCESS', ...GOOD });
    const events = await daemon.api.allEvents({ domainId: zone.id });
    expect(events.map(({ event }) => event).filter((event) => event.startsWith('domain_'))).toEqual([
      'domain_verified',
      'domain_failing',
      'domain_verified',
    ]);
  });
});

describe('asking again and again', () => {
  it('is answered ten times a minute for a domain', async () => {
    const zone = await publishedZone();
    const statuses: number[] = [];
    for (let n = 0; n < 11; n++) {
      statuses.push((await daemon.api.post(`/web-setup/domains/${zone.id}/verify`)).status);
    }
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
    await verify(await publishedZone());
  });
});

/** Every name of the customer's zone, whatever is asked for. */
function breakZone(zone: Zone, trouble: 'SERVFAIL' | 'silent' | 'REFUSED' | 'bad bytes'): void {
  const { domain, dkim, spf, link, dmarc, mx, alt } = zone;
  for (const name of [domain, ...[dkim, spf, link, dmarc, mx, alt].map((record) => record.name)]) {
    dns.remove(name);
    dns.set(name, '*', trouble);
  }
}

function halves(value: string): [string, string] {
  const middle = Math.floor(value.length / 2);
  return [value.slice(0, middle), value.slice(middle)];
}

/** Of the same form, with another number in it. */
function otherKey({ value }: DomainRecord): string {
  return value.replace(
    /(p=MI.{40})(.{20})/,
    (_, head: string, tail: string) => head + tail.split('').toReversed().join(''),
  );
}

function include({ value }: DomainRecord): string {
  return /include:\S+/.exec(value)?.[0] ?? '';
}
