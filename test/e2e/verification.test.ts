import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { CreatedDomain, DomainFlags, DomainRecord, VerifiedDomain } from '../support/api-client.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { publishPlatform } from '../support/verified-domain.ts';

/*
 * Faults in a customer's zone, and the status and hints that the verification returns for them. Each test publishes
 * the records that the API printed, changes one of them and verifies the domain.
 *
 *   test ──HTTP──▶ postrider ──DNS──▶ programmable name server: zones of the customer and the platform
 */
/** As many as the tests use: registered together, because all of them need records in the platform's zone. */
const DOMAINS = 19;
/** Of these, the domains that stay PENDING. They are used in turn: a domain may be verified ten times per minute. */
const PENDING_DOMAINS = 3;

let dns: DnsServer;
let daemon: RunningDaemon;
/** Registered domains that no test has used. */
const unused: Zone[] = [];
const pending: Zone[] = [];

beforeAll(async () => {
  dns = await startDnsServer();
  daemon = await startDaemon({
    'dns.resolvers': [dns.address],
    'dns.timeoutMs': 2000,
    'limits.setupBurst': 1000,
  });
  const names = Array.from({ length: DOMAINS }, (_, n) => `kunde${n + 1}.example`);
  const ids: string[] = [];
  // One after the other: an account may wait for a few keys at a time only.
  for (const name of names) ids.push(await register(name));
  for (const [n, name] of names.entries()) unused.push(await readZone(name, ids[n] ?? ''));
  pending.push(...unused.splice(0, PENDING_DOMAINS));
  await publishPlatform(daemon, dns);
});
afterAll(async () => {
  await daemon?.stop();
  await dns?.close();
});

/** The records of a customer's zone by purpose. */
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

/** Registers a domain; returns its id. */
async function register(domain: string): Promise<string> {
  const body = { domain, useCaseId: 'tx-local' };
  return (await daemon.api.put<CreatedDomain>('/web-setup/domains', body)).data.domainId;
}

/** Waits until the records of both lanes exist. */
async function readZone(name: string, id: string): Promise<Zone> {
  const { dnsRecords } = await eventually(
    `all records of ${name}`,
    async () => {
      const { data } = await daemon.api.get<CreatedDomain>(`/web-setup/domains/${id}/dns-records`);
      return data.dnsRecords.some(({ value }) => value === 'Creation in progress') ? null : data;
    },
    { everyMs: 500 },
  );
  const [dkim, spf, link, dmarc, mx, alt] = dnsRecords;
  if (!dkim || !spf || !link || !dmarc || !mx || !alt) throw new Error('the API must print six records');
  return { id, domain: name, dkim, spf, link, dmarc, mx, alt };
}

/** The zone of an unused domain, with exactly the records that the API printed. */
function publishedZone(): Zone {
  const zone = unused.pop();
  if (zone === undefined) throw new Error(`more than ${DOMAINS} domains are needed`);
  return publish(zone);
}

/** The zone of a domain whose checks have never passed together, with exactly the records that the API printed. */
function pendingZone(): Zone {
  const zone = pending.shift();
  if (zone === undefined) throw new Error('there is no pending domain');
  pending.push(zone);
  return publish(zone);
}

/** Replaces all records of a zone by those that the API printed. */
function publish(zone: Zone): Zone {
  const { domain, dkim, spf, link, dmarc, mx, alt } = zone;
  const records = [dkim, spf, link, dmarc, mx, alt];
  for (const name of [doubledName(zone), domain, ...records.map((record) => record.name)]) dns.remove(name);
  dns.publish(records);
  return zone;
}

/** Where a DKIM record ends up when its full name is entered in a form that appends the domain. */
function doubledName({ dkim, domain }: Zone): string {
  return `${dkim.name}.${domain}`;
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

type RequiredCheck = keyof typeof FLAG_OF;

const unpublish = (record: DomainRecord) => dns.remove(record.name, record.type);
const replace = (record: DomainRecord, ...values: (string | string[])[]) =>
  dns.set(record.name, record.type, values);

describe('a domain with the printed records', () => {
  it('is SUCCESS with all checks passed and no hints', async () => {
    const verified = await verify(publishedZone());
    expect(verified).toMatchObject({ status: 'SUCCESS', ...GOOD, altStatus: 'ACTIVE', altDkimEnabled: true });
    const checks = verified.checks.filter(({ check }) => check in FLAG_OF);
    expect(checks.map(({ check, passed, hint }) => [check, passed, hint])).toEqual([
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
      'the key contains spaces',
      ({ dkim }) => replace(dkim, dkim.value.replace('p=', 'p= ').replace('A', ' A')),
    ],
    ['SPF is in two strings of one record', ({ spf }) => replace(spf, halves(spf.value))],
    [
      'the SPF record is merged with an existing one',
      ({ spf }) => replace(spf, spf.value.replace('v=spf1', 'v=spf1 ip4:192.0.2.1')),
    ],
    ['there is another TXT record', ({ spf }) => replace(spf, spf.value, 'some-verification=123')],
    ['DMARC asks for quarantine', ({ dmarc }) => replace(dmarc, 'v=DMARC1; p=quarantine')],
    ['there is a less preferred MX', ({ mx }) => replace(mx, `10 ${mx.value}`, '20 backup.example.net')],
  ])('is SUCCESS when %s', async (_, change) => {
    const zone = publishedZone();
    change(zone);
    expect(await verify(zone)).toMatchObject({ status: 'SUCCESS', ...GOOD });
  });
});

describe('a new domain with one fault is PENDING with a hint:', () => {
  it.each<[string, RequiredCheck, (zone: Zone) => void, (zone: Zone) => RegExp | string]>([
    ['no DKIM record', 'dkim', ({ dkim }) => unpublish(dkim), ({ dkim }) => dkim.value],
    ['another key', 'dkim', ({ dkim }) => replace(dkim, otherKey(dkim)), () => /another key/i],
    ['an invalid key', 'dkim', ({ dkim }) => replace(dkim, 'hello'), () => /not a DKIM key/],
    ['a revoked key', 'dkim', ({ dkim }) => replace(dkim, 'v=DKIM1; k=rsa; p='), () => /revokes/],
    ['a truncated key', 'dkim', ({ dkim }) => replace(dkim, dkim.value.slice(0, 255)), () => /cut off/],
    [
      'the key in two records',
      'dkim',
      ({ dkim }) => replace(dkim, ...halves(dkim.value)),
      () => /two TXT records/,
    ],
    [
      'a second key record',
      'dkim',
      ({ dkim }) => replace(dkim, dkim.value, otherKey(dkim)),
      () => /2 key records/,
    ],
    [
      'the DKIM record under a doubled name',
      'dkim',
      (zone) => {
        unpublish(zone.dkim);
        dns.set(doubledName(zone), 'TXT', [zone.dkim.value]);
      },
      () => /the domain twice/,
    ],

    ['no SPF record', 'spf', ({ spf }) => unpublish(spf), ({ spf }) => spf.value],
    [
      'SPF without the include',
      'spf',
      ({ spf }) => replace(spf, 'v=spf1 mx -all'),
      () => /include:spf\.mx\.postrider\.example/,
    ],
    [
      'the include after "-all"',
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
      'SPF with a syntax error',
      'spf',
      ({ spf }) => replace(spf, `v=spf1 ipv4:1.2.3.4 ${include(spf)} ~all`),
      () => /error/,
    ],

    ['no DMARC record', 'dmarc', ({ dmarc }) => unpublish(dmarc), ({ dmarc }) => dmarc.value],
    ['DMARC with p=none', 'dmarc', ({ dmarc }) => replace(dmarc, 'v=DMARC1; p=none'), () => /p=none/],
    [
      'a second DMARC record',
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
    ['another MX', 'mx', ({ mx }) => replace(mx, '10 mail.example.net'), () => /goes to mail\.example\.net/],
    [
      'a CNAME instead of the MX',
      'mx',
      ({ mx }) => {
        unpublish(mx);
        dns.set(mx.name, 'CNAME', ['www.example.net']);
      },
      () => /Replace the CNAME/,
    ],
  ])('%s', async (_, check, change, hint) => {
    const zone = pendingZone();
    change(zone);
    const verified = await verify(zone);
    expect(verified).toMatchObject({ status: 'PENDING', ...GOOD, [FLAG_OF[check]]: false });
    expect(verified.message).toMatch(/pending/i);
    const failed = verified.checks.filter((one) => one.check in FLAG_OF && !one.passed);
    expect(failed).toHaveLength(1);
    const expectedHint = hint(zone);
    expect(failed[0]?.check).toBe(check);
    expect(failed[0]?.expected).not.toBe('');
    expect(failed[0]?.hint).toEqual(
      typeof expectedHint === 'string'
        ? expect.stringContaining(expectedHint)
        : expect.stringMatching(expectedHint),
    );
    const flags = await daemon.api.get<DomainFlags>(`/web-setup/domains/${zone.id}`);
    expect(flags.data).toMatchObject({ status: 'PENDING', ...GOOD, [FLAG_OF[check]]: false });
  });
});

describe('a DNS failure', () => {
  const FAILURES = ['SERVFAIL', 'silent', 'REFUSED', 'bad bytes'] as const;
  let added: Zone;
  let verifiedOnce: Zone;

  beforeAll(() => {
    added = publishedZone();
    verifiedOnce = publishedZone();
  });

  it.each(FAILURES)('(%s) sets no flag of a new domain, and the hints report it', async (failure) => {
    const zone = publish(added);
    breakZone(zone, failure);
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

  it.each(FAILURES)('(%s) clears no flag of a verified domain', async (failure) => {
    const zone = publish(verifiedOnce);
    expect((await verify(zone)).status).toBe('SUCCESS');
    breakZone(zone, failure);
    expect(await verify(zone)).toMatchObject({
      status: 'SUCCESS',
      ...GOOD,
      altStatus: 'ACTIVE',
      altDkimEnabled: true,
    });
  });

  it('of one record affects only its check', async () => {
    const zone = publishedZone();
    dns.set(zone.spf.name, 'TXT', 'SERVFAIL');
    expect(await verify(zone)).toMatchObject({ status: 'PENDING', ...GOOD, spfConfigured: false });
  });

  it('of the included SPF record is not reported as a fault of the zone', async () => {
    const zone = publishedZone();
    dns.set('spf.mx.postrider.example', 'TXT', 'SERVFAIL');
    onTestFinished(() => publishPlatform(daemon, dns));
    const { spfConfigured, checks } = await verify(zone);
    expect(spfConfigured).toBe(false);
    expect(checks.find(({ check }) => check === 'spf')?.hint).toMatch(/^No result at present/);
  });
});

describe('a verified domain whose record is removed', () => {
  it('is TEMPORARY_FAILURE, may still send, and recovers', async () => {
    const zone = publishedZone();
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

describe('verification', () => {
  it('is limited to ten requests per minute and domain', async () => {
    const zone = publishedZone();
    // At the same time: one after the other, they can take longer than a minute on a slow machine.
    const answers = await Promise.all(
      Array.from({ length: 11 }, () => daemon.api.post(`/web-setup/domains/${zone.id}/verify`)),
    );
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      ...Array.from({ length: 10 }, () => 200),
      429,
    ]);
    await verify(publishedZone());
  });
});

/** Makes all queries for the names of the zone fail. */
function breakZone(zone: Zone, failure: 'SERVFAIL' | 'silent' | 'REFUSED' | 'bad bytes'): void {
  const { domain, dkim, spf, link, dmarc, mx, alt } = zone;
  for (const name of [domain, ...[dkim, spf, link, dmarc, mx, alt].map((record) => record.name)]) {
    dns.remove(name);
    dns.set(name, '*', failure);
  }
}

function halves(value: string): [string, string] {
  const middle = Math.floor(value.length / 2);
  return [value.slice(0, middle), value.slice(middle)];
}

/** A key of the same form with another modulus. */
function otherKey({ value }: DomainRecord): string {
  return value.replace(
    /(p=MI.{40})(.{20})/,
    (_, head: string, tail: string) => head + tail.split('').toReversed().join(''),
  );
}

function include({ value }: DomainRecord): string {
  return /include:\S+/.exec(value)?.[0] ?? '';
}
