import type { KeyObject } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { simpleParser } from 'mailparser';
import { Registry } from 'prom-client';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { DAY, HOUR, iso } from '../../src/core/clock.ts';
import { createLog, type Log } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createDirectMail } from '../../src/delivery/direct-mail.ts';
import { parseReportRecord } from '../../src/delivery/tls-reports.ts';
import { createTlsSystem, type TlsSystem } from '../../src/delivery/tls-system.ts';
import type { SessionRecord, TargetHost, TlsResult } from '../../src/delivery/worker/protocol.ts';
import { createResolver } from '../../src/dns/resolver.ts';
import type { GenerateKey } from '../../src/domains/key-queue.ts';
import { reportKeyRecord } from '../../src/domains/platform/report-key.ts';
import { parseFile } from '../../src/mail/incoming/parse.ts';
import { openSeal } from '../../src/store/master-key.ts';
import { createAuthority, selfSigned } from '../support/certificates.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { type PolicyHost, startPolicyHost } from '../support/policy-host.ts';
import { RSA_KEY } from '../support/rsa-keys.ts';
import { type Sink, type SinkOptions, startSink } from '../support/smtp-sink.ts';
import { startStore } from '../support/store.ts';

const HOSTNAME = 'mail.postrider.test';
const DOMAIN = 'empfang.test';
const authority = createAuthority();

describe('the TLSRPT record', () => {
  const mail = (address: string) => ({ kind: 'mailto', address, domain: address.split('@')[1] });
  const CASES: [records: string[], targets: object[]][] = [
    [['v=TLSRPTv1; rua=mailto:a@example.test'], [mail('a@example.test')]],
    [['v=TLSRPTv1;rua=mailto:a@example.test;'], [mail('a@example.test')]],
    [
      ['v=TLSRPTv1; rua=mailto:a@example.test,https://example.test/v1?x=1; ext=1'],
      [mail('a@example.test'), { kind: 'https', url: 'https://example.test/v1?x=1' }],
    ],
    [['v=TLSRPTv1; rua=mailto:a%2Cb@example.test'], []],
    [['v=TLSRPTv1; rua=mailto:a%2Bb@example.test', 'other'], [mail('a+b@example.test')]],
    [['v=TLSRPTv1; rua=http://example.test/, mailto:a@example.test'], [mail('a@example.test')]],
    [
      [`v=TLSRPTv1; rua=${Array.from({ length: 9 }, (_, n) => `mailto:${n}@a.test`).join()}`],
      [0, 1, 2, 3].map((n) => mail(`${n}@a.test`)),
    ],
    [['v=TLSRPTv1; rua=mailto:a@example.test', 'v=TLSRPTv1; rua=mailto:b@example.test'], []],
    [['v=TLSRPTv2; rua=mailto:a@example.test'], []],
    [['v=TLSRPTv1; ruf=mailto:a@example.test'], []],
    [['v=TLSRPTv1; rua=mailto:%0d%0aRCPT@example.test'], []],
    [['v=TLSRPTv1; rua=mailto:a@exämple.test'], []],
    [['v=TLSRPTv1; rua=mailto:%ff'], []],
    [['v=TLSRPTv1; rua='], []],
    [[], []],
  ];
  it.each(CASES)('%j names %j', (records, targets) => {
    expect(parseReportRecord(records)).toEqual(targets);
  });
});

let ahead: number;
let dns: DnsServer;
let sink: Sink;
let https: PolicyHost;
let store: ReturnType<typeof startStore>;
let posted: { type: string; body: Buffer }[];
/** The day that is reported. */
let midnight: number;

beforeEach(async () => {
  posted = [];
  midnight = Math.floor(Date.now() / DAY) * DAY;
  // At noon, so that no test crosses midnight.
  ahead = midnight + 12 * HOUR - Date.now();
  dns = await startDnsServer();
  https = await startPolicyHost();
  onTestFinished(() => dns.close());
  onTestFinished(() => https.close());
  store = startStore({ now: () => Date.now() + ahead, advance: (ms: number) => void (ahead += ms) });
  dns.set('reports.test', 'MX', ['10 mx.reports.test']);
  dns.set('mx.reports.test', 'A', ['127.0.0.1']);
  dns.set('collect.test', 'A', ['127.0.0.1']);
  https.handle('collect.test', authority.issue(['collect.test']), (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      posted.push({ type: request.headers['content-type'] ?? '', body: Buffer.concat(chunks) });
      response.writeHead(201).end();
    });
  });
});

interface SystemOptions {
  settings?: object;
  generateKey?: GenerateKey;
  log?: Log;
}

async function createSystem(port: number, options: SystemOptions = {}): Promise<TlsSystem> {
  const { settings = {}, generateKey = async () => RSA_KEY } = options;
  const { log = createLog({ level: 'silent', hashAddresses: false }) } = options;
  const { dir, tables, writer } = store;
  writeFileSync(`${dir}/authority.pem`, authority.cert);
  const all = {
    hostname: HOSTNAME,
    'delivery.port': port,
    'delivery.allowPrivateNetworks': true,
    'delivery.tls.caFile': `${dir}/authority.pem`,
    'mx.listen': 'off',
    ...settings,
  };
  const env = Object.entries(all).map(([path, value]) => [
    `POSTRIDER_${path.replaceAll('.', '__').toUpperCase()}`,
    JSON.stringify(value),
  ]);
  const config = loadConfig({ cwd: dir, env: Object.fromEntries(env) });
  const clock = { now: () => Date.now() + ahead };
  const resolver = createResolver({
    resolvers: [dns.address],
    timeoutMs: PATIENCE_MS,
    monotonic: clock,
    random: systemRandom,
  });
  const seal = await openSeal({ random: systemRandom, tables, writer }, { file: `${dir}/master.key` });
  const monotonic = { now: () => performance.now() };
  const mail = createDirectMail({ config, clock, monotonic, random: systemRandom }, resolver);
  const context = {
    ...store,
    config,
    clock,
    monotonic,
    random: systemRandom,
    log,
    seal,
    registry: new Registry(),
  };
  const system = createTlsSystem(context, {
    resolver,
    mail,
    generateKey,
    userAgent: 'Postrider/test',
    reportIntervalMs: 20,
  });
  onTestFinished(async () => {
    await mail.close();
    await system.stop();
    resolver.close();
  });
  return system;
}

async function start({
  sinkOptions = {},
  settings = {},
}: {
  sinkOptions?: SinkOptions;
  settings?: object;
} = {}): Promise<TlsSystem> {
  sink = await startSink(sinkOptions);
  onTestFinished(() => sink.close());
  const system = await createSystem(sink.port, { settings });
  system.start();
  const { tables } = store;
  const key = await expect
    .poll(() => reportKeyRecord(tables, HOSTNAME))
    .not.toBeNull()
    .then(() => reportKeyRecord(tables, HOSTNAME));
  if (key !== null) dns.publish([{ ...key, type: 'TXT' }]);
  return system;
}

const HOSTS: TargetHost[] = [
  {
    name: 'mx1.empfang.test',
    addresses: ['192.0.2.1'],
    policy: { kind: 'mta-sts', domain: DOMAIN, mode: 'enforce' },
  },
  {
    name: 'mx2.empfang.test',
    addresses: ['192.0.2.2'],
    policy: {
      kind: 'dane',
      base: 'mx2.empfang.test',
      tlsaName: '_25._tcp.mx2.empfang.test',
      names: ['mx2.empfang.test'],
      records: [{ usage: 3, selector: 1, matchingType: 1, data: 'ab' }],
    },
  },
];
const STS = {
  lines: ['version: STSv1', 'mode: enforce', 'mx: *.empfang.test', 'max_age: 60'],
  mx: ['*.empfang.test'],
};

function session(host: string, address: string, tlsResult: TlsResult): SessionRecord {
  return {
    host,
    address,
    port: 25,
    localAddress: '192.0.2.99',
    tls: null,
    phase: 'dot',
    reply: null,
    error: null,
    startedAt: 0,
    endedAt: 0,
    tlsResult,
  };
}

const SUCCESS: TlsResult = { failure: null, reason: '' };
const EXPIRED: TlsResult = { failure: 'certificate-expired', reason: 'CERT_HAS_EXPIRED' };

/** Counts sessions as the recording of attempts does. */
async function count(
  system: TlsSystem,
  results: readonly [host: number, result: TlsResult][],
  destination = DOMAIN,
) {
  const sessions = results.map(([index, result]) =>
    session(HOSTS[index]?.name ?? '', `192.0.2.${index + 1}`, result),
  );
  await store.writer.run((tables) => {
    system.reports.count(tables, { destination, hosts: HOSTS, tls: { sts: STS, fault: null }, sessions });
    return null;
  });
}

const nextDay = () => {
  ahead = midnight + DAY + 4 * HOUR + 1000 - Date.now();
};
const unreported = () => store.tables.tlsSessions.nextUnreported({ day: 0, domain: '' }, 1_000_000);

const EXPECTED = {
  'organization-name': HOSTNAME,
  'contact-info': `postmaster@${HOSTNAME}`,
  policies: expect.arrayContaining([
    {
      policy: {
        'policy-type': 'sts',
        'policy-string': STS.lines,
        'policy-domain': DOMAIN,
        'mx-host': STS.mx,
      },
      summary: { 'total-successful-session-count': 2, 'total-failure-session-count': 3 },
      'failure-details': [
        {
          'result-type': 'certificate-expired',
          'sending-mta-ip': '192.0.2.99',
          'receiving-mx-hostname': 'mx1.empfang.test',
          'receiving-ip': '192.0.2.1',
          'failed-session-count': 3,
          'failure-reason-code': 'CERT_HAS_EXPIRED',
        },
      ],
    },
    {
      policy: { 'policy-type': 'tlsa', 'policy-string': ['3 1 1 ab'], 'policy-domain': 'mx2.empfang.test' },
      summary: { 'total-successful-session-count': 1, 'total-failure-session-count': 0 },
    },
  ]),
};
const SOME: [number, TlsResult][] = [
  [0, SUCCESS],
  [0, EXPIRED],
  [0, EXPIRED],
  [1, SUCCESS],
  [0, SUCCESS],
  [0, EXPIRED],
];

const wants = (...uris: string[]) =>
  dns.set(`_smtp._tls.${DOMAIN}`, 'TXT', [`v=TLSRPTv1; rua=${uris.join()}`]);

describe('a report', () => {
  it('is sent by mail, signed with the key in the zone, after the end of the day', async () => {
    wants('mailto:tls@reports.test');
    const system = await start({ sinkOptions: { tls: selfSigned(['other.test']) } });
    await count(system, SOME);
    expect(sink.count).toBe(0);
    nextDay();
    const [message] = await sink.waitFor(1);
    expect(message).toMatchObject({ from: `postmaster@${HOSTNAME}`, to: ['tls@reports.test'] });
    const raw = Buffer.from(message?.raw ?? '', 'latin1');
    const date = iso(midnight).slice(0, 10);
    const { headers, attachments, text, subject } = await simpleParser(raw);
    const id = `${date}.${DOMAIN}@${HOSTNAME}`;
    expect(subject).toBe(`Report Domain: ${DOMAIN} Submitter: ${HOSTNAME} Report-ID: <${id}>`);
    expect(headers.get('tls-report-domain')).toBe(DOMAIN);
    expect(headers.get('tls-report-submitter')).toBe(HOSTNAME);
    expect(headers.get('content-type')).toMatchObject({
      value: 'multipart/report',
      params: { 'report-type': 'tlsrpt' },
    });
    expect(text).toContain('aggregate TLS report');
    expect(attachments).toMatchObject([
      {
        contentType: 'application/tlsrpt+gzip',
        filename: `${HOSTNAME}!${DOMAIN}!${midnight / 1000}!${midnight / 1000 + 86_399}!${midnight / DAY}.json.gz`,
      },
    ]);
    const report = JSON.parse(gunzipSync(attachments[0]?.content ?? Buffer.alloc(0)).toString());
    expect(report).toMatchObject({
      ...EXPECTED,
      'date-range': { 'start-datetime': `${date}T00:00:00Z`, 'end-datetime': `${date}T23:59:59Z` },
      'report-id': id,
    });
    const key = reportKeyRecord(store.tables, HOSTNAME);
    const { results } = await dkimVerify(raw, {
      // The key is for TLS reports only: other services ignore it (RFC 8460 §3, RFC 6376 §3.6.1).
      resolver: async () => [[key?.value.replace(' s=tlsrpt;', '') ?? '']],
      curTime: new Date(Date.now() + ahead),
    });
    expect(results).toMatchObject([
      { signingDomain: HOSTNAME, selector: 'tlsrpt', status: { result: 'pass' } },
    ]);
    expect(key?.value).toContain('; s=tlsrpt;');
    expect(parseFile(raw)).toMatchObject({ kind: 'tls-report' });
    await expect.poll(unreported).toBeNull();
  });

  it('is sent by mail although TLS fails there, which is what it reports', async () => {
    wants('mailto:tls@reports.test');
    const system = await start({ sinkOptions: { tls: 'garbage' } });
    await count(system, SOME);
    nextDay();
    const [message] = await sink.waitFor(1);
    expect(message?.tls).toBeNull();
  });

  it('is sent by HTTPS, with the names of the settings', async () => {
    wants('https://collect.test:PORT/v1'.replace('PORT', String(https.port)));
    const system = await start({
      settings: { 'tlsReports.organization': 'Kunde', 'tlsReports.contact': 'tls@kunde.test' },
    });
    await count(system, SOME);
    nextDay();
    await expect.poll(() => posted).toHaveLength(1);
    expect(posted[0]?.type).toBe('application/tlsrpt+gzip');
    expect(JSON.parse(gunzipSync(posted[0]?.body ?? Buffer.alloc(0)).toString())).toMatchObject({
      ...EXPECTED,
      'organization-name': 'Kunde',
      'contact-info': 'tls@kunde.test',
    });
    expect(https.requests).toEqual(['collect.test /v1']);
    await expect.poll(unreported).toBeNull();
  });

  it('is sent again to a target that failed, and only to that one', async () => {
    wants('mailto:tls@reports.test', `https://collect.test:${https.port}/v1`);
    const system = await start({ sinkOptions: { recipients: { 'tls@': '451 4.3.0 later' } } });
    await count(system, SOME);
    nextDay();
    await expect.poll(() => posted.length + sink.sessions.length).toBe(2);
    await expect.poll(() => sink.sessions[0]?.closed).toBe(true);
    expect(unreported()).not.toBeNull();
    sink.program({ recipients: {} });
    ahead += HOUR;
    await sink.waitFor(1);
    await expect.poll(unreported).toBeNull();
    expect(posted).toHaveLength(1);
  });

  it('is not sent again to a target that has it after a lookup of the TLSRPT record that fails', async () => {
    wants('mailto:tls@reports.test', `https://collect.test:${https.port}/v1`);
    const system = await start({ sinkOptions: { recipients: { 'tls@': '451 4.3.0 later' } } });
    await count(system, SOME);
    nextDay();
    await expect.poll(() => posted.length + sink.sessions.length).toBe(2);
    await expect.poll(() => sink.sessions[0]?.closed).toBe(true);
    sink.program({ recipients: {} });
    const record = `_smtp._tls.${DOMAIN}`;
    const asked = dns.asked(record);
    dns.set(record, 'TXT', 'SERVFAIL');
    ahead += 2 * HOUR;
    await expect.poll(() => dns.asked(record)).toBeGreaterThan(asked);
    wants('mailto:tls@reports.test', `https://collect.test:${https.port}/v1`);
    ahead += 4 * HOUR;
    await sink.waitFor(1);
    await expect.poll(unreported).toBeNull();
    expect(posted).toHaveLength(1);
  });

  it('is dropped after a day of attempts', async () => {
    wants('mailto:tls@reports.test');
    const system = await start({ sinkOptions: { recipients: { 'tls@': '451 4.3.0 later' } } });
    await count(system, SOME);
    nextDay();
    ahead += DAY;
    await expect.poll(unreported).toBeNull();
    expect(sink.count).toBe(0);
  });

  it('is not mailed without the record of its key', async () => {
    wants('mailto:tls@reports.test');
    const system = await start();
    dns.remove(`tlsrpt._domainkey.${HOSTNAME}`);
    await count(system, SOME);
    nextDay();
    await expect.poll(() => dns.asked(`tlsrpt._domainkey.${HOSTNAME}`)).toBeGreaterThan(0);
    expect(sink.sessions).toEqual([]);
    expect(unreported()).not.toBeNull();
  });

  it('is not sent, and nothing is counted, when reports are turned off', async () => {
    wants('mailto:tls@reports.test');
    sink = await startSink();
    const system = await startOff();
    await count(system, SOME);
    expect(unreported()).toBeNull();
  });
});

async function startOff(): Promise<TlsSystem> {
  dns.publish([{ name: `tlsrpt._domainkey.${HOSTNAME}`, type: 'TXT', value: 'none' }]);
  await store.writer.run((tables) => tables.settings.put('tlsrpt-dkim-public-key', 'none'));
  return start({ settings: { 'tlsReports.send': false } });
}

describe('sessions', () => {
  it('are counted for domains that want reports only, once that is known', async () => {
    const system = await start();
    await count(system, SOME, 'silent.test');
    await expect.poll(() => dns.asked('_smtp._tls.silent.test')).toBe(1);
    nextDay();
    await expect.poll(unreported).toBeNull();
    await count(system, SOME, 'silent.test');
    expect(unreported()).toBeNull();
    // The second time was for the report of the first day.
    expect(dns.asked('_smtp._tls.silent.test')).toBe(2);
  });

  it('survive a restart', async () => {
    wants('mailto:tls@reports.test');
    const first = await start();
    await count(first, SOME);
    await first.stop();
    nextDay();
    await start();
    expect((await sink.waitFor(1))[0]?.to).toEqual(['tls@reports.test']);
  });

  it('counts failures without details above a limit on their kinds', async () => {
    const system = await start();
    const many = Array.from({ length: 150 }, (_, n): [number, TlsResult] => [
      0,
      { failure: 'validation-failure', reason: `code ${n}` },
    ]);
    await count(system, many);
    const [row] = store.tables.tlsSessions.ofDay({ day: midnight / DAY, domain: DOMAIN });
    expect(row).toMatchObject({ successful: 0, failed: 150 });
    const failures = store.tables.tlsSessions.failures(row?.seq ?? 0);
    expect(failures).toHaveLength(101);
    expect(failures.reduce((sum, { sessions }) => sum + sessions, 0)).toBe(150);
  });

  it('counts sessions as failures of a policy that cannot be fetched', async () => {
    const system = await start();
    const fault = { type: 'sts-policy-fetch-error', text: 'status 404' } as const;
    await store.writer.run((tables) => {
      const sessions = [session('mx1.empfang.test', '192.0.2.1', SUCCESS)];
      const hosts = [{ name: 'mx1.empfang.test', addresses: ['192.0.2.1'] }];
      system.reports.count(tables, { destination: DOMAIN, hosts, tls: { sts: null, fault }, sessions });
      return null;
    });
    const [row] = store.tables.tlsSessions.ofDay({ day: midnight / DAY, domain: DOMAIN });
    expect(row).toMatchObject({ policy_type: 'sts', successful: 0, failed: 1 });
    expect(store.tables.tlsSessions.failures(row?.seq ?? 0)).toMatchObject([
      { type: 'sts-policy-fetch-error' },
    ]);
  });
});

it('a key that is generated while the daemon stops is neither stored nor reported as an error', async () => {
  const lines: string[] = [];
  const log = createLog({ level: 'error', hashAddresses: false }, { write: (line) => void lines.push(line) });
  let finish: (key: KeyObject) => void = () => {};
  const generated = new Promise<KeyObject>((resolve) => {
    finish = resolve;
  });
  const system = await createSystem(25, { generateKey: () => generated, log });
  system.start();
  await system.stop();
  await store.writer.close();
  finish(RSA_KEY);
  await generated;
  await new Promise(setImmediate);
  expect(lines).toEqual([]);
  expect(reportKeyRecord(store.tables, HOSTNAME)).toBeNull();
});
