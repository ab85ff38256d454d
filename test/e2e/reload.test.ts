import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { allSettings } from '../../src/config/settings.ts';
import { type ApiClient, createApiClient, type VerifiedDomain } from '../support/api-client.ts';
import { createAuthority } from '../support/certificates.ts';
import { type Child, startChild } from '../support/child.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * SIGHUP: each test changes settings in the file of a running daemon and observes the effect from outside. The settings
 * of one test are back at their defaults in the next.
 */
const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;
const HOST = 'mx.postrider.example';
const SENDER = 'kunde.example';

let dir: string;
let dns: DnsServer;
let otherDns: DnsServer;
let sink: Sink;
let otherSink: Sink;
let daemon: Child;
let api: ApiClient;
let domainId: string;
let apiPort: number;
let mxPort: number;
let pagesPort: number;

/** Sections with their lines; those of `changes` are added. */
function configText(changes: Record<string, readonly string[]>): string {
  const base: Record<string, readonly string[]> = {
    data: ['dir = "data"'],
    api: [`listen = "127.0.0.1:${apiPort}"`],
    public: [`listen = "127.0.0.1:${pagesPort}"`],
    mx: [`listen = "127.0.0.1:${mxPort}"`],
    console: ['listen = "off"'],
    dns: ['timeoutMs = 2000', ...(changes['dns'] === undefined ? [`resolvers = ["${dns.address}"]`] : [])],
  };
  const delivery: Record<string, string> = {
    port: String(sink.port),
    allowPrivateNetworks: 'true',
    egress: '[{ name = "main", publicAddress = "192.0.2.25" }]',
  };
  for (const line of changes['delivery'] ?? []) delete delivery[line.split(' ', 1)[0] ?? ''];
  base['delivery'] = Object.entries(delivery).map(([key, value]) => `${key} = ${value}`);
  const names = new Set([...Object.keys(base), ...Object.keys(changes)]);
  names.delete('');
  const sections = [...names].map((name) =>
    [`[${name}]`, ...(base[name] ?? []), ...(changes[name] ?? [])].join('\n'),
  );
  return [`hostname = "${HOST}"`, ...(changes[''] ?? []), ...sections].join('\n');
}

interface ReloadRecord {
  applied?: string[];
  needsRestart?: string[];
  msg: string;
  err?: { message: string };
}

const records = () =>
  daemon.output
    .split('\n')
    .filter((line) => /"msg":"configuration (?:not )?reloaded/.test(line))
    .map((line): ReloadRecord => JSON.parse(line));

/** Writes the file and sends SIGHUP; resolves with the record of the reload. */
async function reload(changes: Record<string, readonly string[]>): Promise<ReloadRecord> {
  const before = records().length;
  writeFileSync(join(dir, 'postrider.toml'), configText(changes));
  daemon.signal('SIGHUP');
  return eventually('the reload', () => records()[before] ?? null);
}

function cli(...args: string[]): string {
  const file = join(dir, 'postrider.toml');
  return execFileSync(process.execPath, [PROGRAM, '--config', file, ...args], { encoding: 'utf8', env: {} });
}

async function send(to: string, body: Record<string, unknown> = {}) {
  return api.send({ ...SHORT_MAIL, from: `a@${SENDER}`, to, ...body });
}

/** Sends a message and waits until it has one of the states. */
async function sendUntil(to: string, ...states: string[]) {
  const { messageId } = (await send(to)).data;
  return eventually(`a message to ${to} to be ${states.join(' or ')}`, async () => {
    const message = await api.message(messageId);
    return states.includes(message.status) ? message : null;
  });
}

/** The status of a GET request with these header fields. */
function statusOf(path: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const req = request({ host: '127.0.0.1', port: apiPort, path, headers }, (res) => {
      res.resume();
      resolve(res.statusCode ?? 0);
    });
    req.on('error', reject).end();
  });
}

/** The settings whose effect the tests below observe. */
const observed = new Set<string>();

function live(names: readonly string[], test: () => Promise<void>): void {
  for (const name of names) observed.add(name);
  it(`${names.join(', ')}: a reload applies the change`, test);
}

/** Settings that cannot be observed here in a short time, and what they share with one that is. */
const NOT_OBSERVED: Record<string, string> = {
  'api.connectionsPerAddress': 'does not limit clients on loopback; read at each connection',
  'console.failureMail': 'mail follows after a quarter of an hour; read in each run, see test/notices',
  'console.trustedProxies': 'the same function as api.trustedProxies',
  'public.trustedProxies': 'the same function as api.trustedProxies',
  'mx.feedbackLoops': 'needs signed complaints; read for each report',
  'submission.tls.certificateFile': 'the same certificate source as mx.tls',
  'submission.tls.keyFile': 'the same certificate source as mx.tls',
  'delivery.retry.greylisted': 'the same object as delivery.retry.first',
  'delivery.retry.factor': 'the same object as delivery.retry.first',
  'delivery.retry.expireMarketing': 'the same object as delivery.retry.expireTransactional',
  'delivery.warmup.schedule': 'needs a day; read whenever the limit of an address is computed',
  'delivery.warmup.transactionalFactor': 'the same object as delivery.warmup.schedule',
  'delivery.warmup.stepBack': 'the same object as delivery.warmup.schedule',
  'delivery.warmup.deferralPercent': 'the same object as delivery.warmup.schedule',
  'delivery.warmup.complaintPercent': 'the same object as delivery.warmup.schedule',
  'dns.server.addresses':
    'the same view of the configuration as verification.dmarcPolicy; the zone is compared every second',
  'dns.server.contact': 'the same view as dns.server.addresses',
  'dns.server.nameServers': 'the same view as dns.server.addresses',
  'dns.server.secondaries': 'the same view as dns.server.addresses',
  'domains.dkimRotation': 'the same view of the configuration as verification.dmarcPolicy',
  'domains.ed25519': 'the same view of the configuration as verification.dmarcPolicy',
  'domains.platformSignature': 'the same view of the configuration as verification.dmarcPolicy',
  'dns.timeoutMs': 'set together with dns.resolvers',
  'tlsReports.send': 'reports are sent on the next day; read for each session and each run',
  'tlsReports.organization': 'reports are sent on the next day; read for each report',
  'tlsReports.contact': 'reports are sent on the next day; read for each report',
  'checks.rspamd': 'read at each check of a mail, see test/templates/checks',
  'checks.spamassassin': 'read at each check of a mail, see test/templates/checks',
  'doctor.blocklists': 'read at each run of the checks, see test/doctor',
  'doctor.mailHosts': 'read at each run of the checks, see test/doctor',
  'doctor.timeServers': 'read at each run of the checks, see test/doctor',
  'readers.budget': 'needs a slow query; sent with each read, see test/store/readers/pool.test.ts',
  'reputation.limits': 'read at each judgement, see test/reputation',
  'reputation.blocks.pause': 'the same object as reputation.limits',
  'reputation.blocks.slow': 'the same object as reputation.limits',
  'reputation.complaints.notice': 'the same object as reputation.limits',
  'reputation.complaints.pause': 'the same object as reputation.limits',
  'reputation.hardBounces.notice': 'the same object as reputation.limits',
  'reputation.hardBounces.pause': 'the same object as reputation.limits',
  'reputation.perMinute': 'the same object as reputation.limits',
  'reputation.ramp.days': 'the same object as reputation.limits',
  'reputation.ramp.factor': 'the same object as reputation.limits',
  'reputation.ramp.messages': 'the same object as reputation.limits',
  'reputation.transactional': 'the same object as reputation.limits',
  'reputation.unsubscribes.notice': 'the same object as reputation.limits',
  secondary: 'the same view of the configuration as verification.dmarcPolicy',
  'limits.bodyDays': 'retention runs every hour; read when a run begins',
  'limits.eventDays': 'retention runs every hour; read when a run begins',
  'limits.inboundDays': 'retention runs every hour; read when a run begins',
  'limits.account.concurrentRequests': 'the same object as the other limits of accounts',
  'webhooks.operatorAccounts': 'read at each event of the installation',
};

it('observes every setting that a reload applies, or states why not', () => {
  const names = allSettings().flatMap(({ name, appliedBy }) => (appliedBy === 'reload' ? [name] : []));
  expect([...observed, ...Object.keys(NOT_OBSERVED)].toSorted()).toEqual(names.toSorted());
});

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'postrider-reload-'));
  [dns, otherDns] = [await startDnsServer(), await startDnsServer()];
  sink = await startSink();
  otherSink = await startSink({ host: '127.0.0.2' });
  [apiPort, mxPort, pagesPort] = [await freePort(), await freePort(), await freePort()];
  writeFileSync(join(dir, 'postrider.toml'), configText({}));
  publishMailHost(dns, 'empfang.example', sink.host);
  daemon = startChild(process.execPath, [PROGRAM, '--config', join(dir, 'postrider.toml'), 'serve'], {
    env: {},
  });
  await eventually('the daemon to be up', () => {
    if (!daemon.running) throw new Error(daemon.output);
    return daemon.output.includes('postrider started');
  });
  const address = ['--company', 'Kunde', '--address', 'Hauptstrasse 1, 10115 Berlin, DE'];
  const account = cli('account', 'create', '--name', 'Kunde', ...address);
  api = createApiClient(`http://127.0.0.1:${apiPort}`, JSON.parse(account));
  ({ domainId } = await verifiedDomain({ api, cli: async (...args) => cli(...args) }, dns, SENDER));
});

afterAll(async () => {
  await daemon.kill('SIGKILL');
  await Promise.all([sink.close(), otherSink.close(), dns.close(), otherDns.close()]);
  rmSync(dir, { recursive: true, force: true });
});

it('changes nothing with an invalid file, and logs the error', async () => {
  const broken = await reload({ limits: ['setupBytes = 0'], webhooks: ['allowPrivateNetworks = false'] });
  expect(broken.msg).toContain('not reloaded');
  expect(broken.err?.message).toContain('limits.setupBytes');
  expect((await api.post('/web-setup/webhooks', webhook())).status).toBe(201);
});

it('changes nothing when a file that the configuration names cannot be used', async () => {
  const routes = ['routes = [{ match = "*", host = "r.example", user = "u", passwordFile = "none" }]'];
  const broken = await reload({ delivery: routes, webhooks: ['allowPrivateNetworks = false'] });
  expect(broken.err?.message).toMatch(/passwordFile of "\*".*none does not exist/);
  const trust = await reload({ api: ['trustedProxies = ["somewhere"]'] });
  expect(trust.err?.message).toContain('api.trustedProxies: "somewhere" is not an address');
  expect((await api.post('/web-setup/webhooks', webhook())).status).toBe(201);
});

it('names the settings that need a restart, and applies the others', async () => {
  const record = await reload({ mx: ['mailBytes = 1000000'], readers: ['budget = "3s"', 'threads = 3'] });
  expect(record).toMatchObject({
    applied: ['readers.budget'],
    needsRestart: ['mx.mailBytes', 'readers.threads'],
  });
  expect((await reload({})).needsRestart).toEqual([]);
});

live(['log.level', 'log.hashAddresses'], async () => {
  await reload({ log: ['hashAddresses = false'] });
  await sendUntil('lesbar@empfang.example', 'delivered');
  await eventually('the address in the log', () =>
    daemon.output.includes('"recipient":"lesbar@empfang.example"'),
  );
  await reload({});
  const { messageId } = await sendUntil('verborgen@empfang.example', 'delivered');
  await eventually('the record of the message', () => daemon.output.includes(messageId));
  expect(daemon.output).not.toContain('verborgen@empfang.example');
  expect(daemon.output).not.toContain('"level":"debug"');
  await reload({ log: ['level = "debug"'] });
  await api.get('/web-setup/account');
  await eventually('a debug record', () => daemon.output.includes('"level":"debug"'));
});

live(['api.hosts', 'api.trustedProxies'], async () => {
  await reload({});
  const host = { Host: 'api.anders.example' };
  expect(await statusOf('/healthz', host)).toBe(421);
  await reload({ api: ['hosts = ["api.anders.example"]'] });
  expect(await statusOf('/healthz', host)).toBe(200);
  await reload({ api: ['trustedProxies = ["127.0.0.1"]'] });
  const forwarded = { 'X-Forwarded-For': '203.0.113.9' };
  expect(await statusOf('/healthz', { Host: 'noch.anders.example', ...forwarded })).toBe(200);
});

live(['api.metricsKey', 'api.metricsKeyFile'], async () => {
  await reload({ api: ['metricsKey = "0123456789abcdef"'] });
  expect(await statusOf('/metrics', {})).toBe(401);
  expect(await statusOf('/metrics', { Authorization: 'Bearer 0123456789abcdef' })).toBe(200);
  writeFileSync(join(dir, 'key'), 'fedcba9876543210\n', { mode: 0o600 });
  await reload({ api: ['metricsKeyFile = "key"'] });
  expect(await statusOf('/metrics', { Authorization: 'Bearer 0123456789abcdef' })).toBe(401);
  expect(await statusOf('/metrics', { Authorization: 'Bearer fedcba9876543210' })).toBe(200);
});

live(['mx.tls.certificateFile', 'mx.tls.keyFile'], async () => {
  const { cert, key } = createAuthority().issue([HOST]);
  writeFileSync(join(dir, 'mx.pem'), cert);
  writeFileSync(join(dir, 'mx.key'), createAuthority().issue([HOST]).key);
  const tls = { 'mx.tls': ['certificateFile = "mx.pem"', 'keyFile = "mx.key"'] };
  expect((await reload(tls)).err?.message).toContain('cannot be used for TLS');
  writeFileSync(join(dir, 'mx.key'), key);
  await reload(tls);
  await eventually('the certificate', () => daemon.output.includes('"msg":"certificate reloaded"'));
});

live(['dns.resolvers'], async () => {
  await reload({});
  publishMailHost(otherDns, 'anderswo.example', sink.host);
  const record = await reload({ dns: [`resolvers = ["${otherDns.address}"]`] });
  expect(record.applied).toContain('dns.resolvers');
  await sendUntil('a@anderswo.example', 'delivered');
});

live(['delivery.port'], async () => {
  const third = await startSink();
  try {
    await reload({ delivery: [`port = ${third.port}`] });
    await sendUntil('port@empfang.example', 'delivered');
    expect(third.count).toBe(1);
  } finally {
    await third.close();
  }
});

live(['delivery.allowPrivateNetworks'], async () => {
  await reload({ delivery: ['allowPrivateNetworks = false'] });
  await sendUntil('privat@empfang.example', 'bounced', 'failed');
  expect(sink.messages.some(({ to }) => to.includes('privat@empfang.example'))).toBe(false);
});

live(['delivery.tls.mtaSts'], async () => {
  await reload({});
  publishMailHost(dns, 'sts.example', sink.host);
  await sendUntil('an@sts.example', 'delivered');
  expect(dns.asked('_mta-sts.sts.example')).toBe(1);
  await reload({ 'delivery.tls': ['mtaSts = false'] });
  publishMailHost(dns, 'aus.example', sink.host);
  await sendUntil('aus@aus.example', 'delivered');
  expect(dns.asked('_mta-sts.aus.example')).toBe(0);
});

live(['delivery.tls.dane', 'dns.trustAd'], async () => {
  const secure = { authenticated: true };
  dns.set('dane.example', 'MX', { values: ['10 mx.dane.example'], ...secure });
  dns.set('mx.dane.example', 'A', { values: [sink.host], ...secure });
  const name = `_${sink.port}._tcp.mx.dane.example`;
  const data = { usage: 3, selector: 1, matchingType: 1, certificate: Buffer.alloc(32) };
  dns.set(name, 'TLSA', { values: [], raw: [{ type: 'TLSA', name, ttl: 300, data }], ...secure });
  await reload({});
  // The sink offers no TLS.
  await sendUntil('a@dane.example', 'deferred');
  await reload({ 'delivery.tls': ['dane = false'] });
  await sendUntil('b@dane.example', 'delivered');
  await reload({});
  await sendUntil('c@dane.example', 'deferred');
  await reload({ dns: [`resolvers = ["${dns.address}"]`, 'trustAd = "never"'] });
  await sendUntil('d@dane.example', 'delivered');
});

live(['delivery.routes'], async () => {
  writeFileSync(join(dir, 'password'), 'geheim', { mode: 0o600 });
  otherSink.program({ keywords: ['AUTH PLAIN'] });
  const login = 'user = "u", passwordFile = "password", tls = "none", allowUnverifiedAuth = true';
  const route = `{ match = "*", host = "${otherSink.host}", port = ${otherSink.port}, ${login} }`;
  await reload({ delivery: [`routes = [${route}]`] });
  await sendUntil('weg@empfang.example', 'delivered');
  expect(otherSink.sessions.at(-1)?.login).toBe('u:geheim');
  await reload({});
  await sendUntil('direkt@empfang.example', 'delivered');
  expect(otherSink.count).toBe(1);
});

live(['delivery.egress'], async () => {
  await reload({
    delivery: ['egress = [{ name = "b", publicAddress = "192.0.2.25", hostname = "b.example" }]'],
  });
  // Idle connections have the former name.
  sink.disconnect();
  await sendUntil('egress@empfang.example', 'delivered');
  expect(sink.sessions.at(-1)?.hello).toBe('b.example');
});

live(['delivery.shaping'], async () => {
  sink.disconnect();
  await reload({ delivery: ['shaping = [{ match = "mx.empfang.example", messagesPerConnection = 1 }]'] });
  const before = sink.sessions.length;
  for (const user of ['eins', 'zwei', 'drei']) await sendUntil(`${user}@empfang.example`, 'delivered');
  expect(sink.sessions.length - before).toBe(3);
});

live(['delivery.replies'], async () => {
  sink.program({ recipients: { 'murmel@': '451 4.3.0 mumble' } });
  await reload({});
  await sendUntil('murmel@empfang.example', 'deferred');
  await reload({
    delivery: ['replies = [{ text = "mumble", meaning = "mailbox full", action = "bounce" }]'],
  });
  await sendUntil('murmel@empfang.example', 'bounced');
});

live(['delivery.returnPath'], async () => {
  await reload({ delivery: ['returnPath = "platform"'] });
  await sendUntil('umschlag@empfang.example', 'delivered');
  expect(sink.messages.at(-1)?.from).toMatch(new RegExp(`@${HOST.replaceAll('.', '\\.')}$`));
});

live(['delivery.retry.first', 'delivery.retry.max'], async () => {
  sink.program({ recipients: { 'warte@': '451 4.3.0 later' } });
  await reload({ 'delivery.retry': ['first = "20h"', 'max = "30h"'] });
  const { nextAttemptAt = '' } = await sendUntil('warte@empfang.example', 'deferred');
  expect(Date.parse(nextAttemptAt) - Date.now()).toBeGreaterThan(10 * 3_600_000);
});

live(['regions'], async () => {
  await reload({ '': ['regions = [{ code = "local", name = "Here" }, { code = "mars", name = "Mars" }]'] });
  const { text } = await api.get('/web-setup/use-cases');
  expect(text).toContain('tx-mars');
});

live(['verification.dmarcPolicy'], async () => {
  await reload({});
  dns.set(`_dmarc.${SENDER}`, 'TXT', [`v=DMARC1; p=none; rua=mailto:dmarc@return-a.${SENDER}`]);
  const verify = async () => {
    const result = await api.post<VerifiedDomain>(`/web-setup/domains/${domainId}/verify`);
    return result.data.dmarcConfigured;
  };
  expect(await verify()).toBe(false);
  await reload({ verification: ['dmarcPolicy = "any"'] });
  expect(await verify()).toBe(true);
});

function webhook() {
  return { url: 'http://127.0.0.1:9/hook', events: ['email_delivered'], description: 'test' };
}

live(['webhooks.allowPrivateNetworks'], async () => {
  await reload({ webhooks: ['allowPrivateNetworks = false'] });
  expect((await api.post('/web-setup/webhooks', webhook())).status).toBe(400);
});

live(
  [
    'limits.setupPerSecond',
    'limits.setupBurst',
    'limits.account.setupPerSecond',
    'limits.account.setupBurst',
  ],
  async () => {
    const statuses = async (requests = 30) => {
      const answers = Array.from({ length: requests }, () => api.get('/web-setup/account'));
      return (await Promise.all(answers)).map(({ status }) => status);
    };
    await reload({ limits: ['setupBurst = 1', 'setupPerSecond = 1'] });
    expect(await statuses()).toContain(429);
    await reload({ 'limits.account': ['setupBurst = 1', 'setupPerSecond = 1'] });
    expect(await statuses()).toContain(429);
    await reload({});
    expect(await statuses(3)).toEqual([200, 200, 200]);
  },
);

live(['limits.setupBytes'], async () => {
  await reload({ limits: ['setupBytes = 100'] });
  const body = { companyName: 'x'.repeat(180) };
  expect((await api.put('/web-setup/account', body)).status).toBe(413);
});

const ADDITIONS = {
  domains: () => api.put('/web-setup/domains', { domain: 'neu.example', useCaseId: 'tx-local' }),
  webhooks: () => api.post('/web-setup/webhooks', webhook()),
  templates: () => api.post('/web-setup/templates', { name: 'Neu', subject: 'Hi', html: SHORT_MAIL.html }),
  contacts: () => api.post('/web-setup/contacts', { email: 'neu@empfang.example' }),
  storedBytes: () => api.post('/web-setup/contacts', { email: 'neu@empfang.example' }),
  campaigns: () => api.post('/web-setup/campaigns', { name: 'Neu' }),
  subscriptionGroups: () => api.post('/web-setup/contacts/subscription-groups', { name: 'Neu' }),
  suppressions: () => api.post('/web-setup/suppressions', { email: 'neu@empfang.example' }),
};

for (const [key, add] of Object.entries(ADDITIONS)) {
  live([`limits.account.${key}`], async () => {
    await reload({ 'limits.account': [`${key} = 0`] });
    const { status, error } = await add();
    expect([status, error.code]).toEqual([409, 'LIMIT_REACHED']);
  });
}

for (const key of ['messagesPerHour', 'messagesPerDay']) {
  live([`limits.account.${key}`], async () => {
    await reload({ 'limits.account': [`${key} = 0`] });
    expect((await send('zuviel@empfang.example')).status).toBe(429);
  });
}

live(['limits.sendPerSecond'], async () => {
  await reload({ limits: ['sendPerSecond = 1'] });
  const answers = await Promise.all(Array.from({ length: 30 }, () => send('schnell@empfang.example')));
  expect(answers.map(({ status }) => status)).toContain(429);
});

live(['delivery.retry.expireTransactional'], async () => {
  sink.program({ recipients: { 'kurz@': '451 4.3.0 later' } });
  await reload({ 'delivery.retry': ['first = "1s"', 'expireTransactional = "2s"'] });
  await sendUntil('kurz@empfang.example', 'expired', 'failed', 'bounced');
});

for (const [key, value] of [
  ['queuedMessages', '1'],
  ['freeDiskBytes', '1000000000000000'],
] as const) {
  live([`limits.${key}`], async () => {
    sink.program({ recipients: { 'warte@': '451 4.3.0 later' } });
    await reload({});
    const status = async () => (await send('warte@empfang.example')).status;
    await eventually('mail to be accepted', async () => (await status()) === 200);
    await reload({ limits: [`${key} = ${value}`] });
    await eventually('mail to be refused', async () => (await status()) === 503);
  });
}
