import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DomainRecord, MessageData } from '../support/api-client.ts';
import { createAuthority } from '../support/certificates.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import type { SinkSession } from '../support/smtp-sink-session.ts';
import { publishPlatform, verifiedDomain } from '../support/verified-domain.ts';

/*
 * Mail that a receiver refuses because of our address goes out over the secondary lane, once, and nothing else does.
 *
 *   postrider ──127.0.0.1, primary key────▶ mx: refuses the listed address, content, recipients
 *             ──127.0.0.2, secondary key──▶ mx
 *             ──login over verified TLS───▶ relay
 */
const LISTED = '554 5.7.1 Service unavailable; Client host [127.0.0.1] blocked using bl.example';
const MESSAGES = 20;

let dns: DnsServer;
let mx: Sink;

const fromPrimary = (reply: string) => (session: SinkSession) =>
  session.remoteAddress === '127.0.0.1' ? reply : undefined;

beforeAll(async () => {
  dns = await startDnsServer();
  mx = await startSink({
    host: '0.0.0.0',
    recipients: {
      '@listed.example': fromPrimary(LISTED),
      '@soft.example': fromPrimary('421 4.7.0 127.0.0.1 has a bad reputation: blocked using bl.example'),
      '@content.example': '554 5.7.1 Message content rejected as spam',
      '@dmarc.example': '550 5.7.1 Email rejected per DMARC policy for kunde.example',
      '@unknown.example': '550 5.1.1 No such user',
    },
  });
  for (const name of ['listed', 'soft', 'content', 'dmarc', 'unknown', 'good'])
    publishMailHost(dns, `${name}.example`);
});
afterAll(async () => {
  await mx?.close();
  await dns?.close();
});

/** Registers and verifies a domain; returns its id. */
async function addDomain(daemon: RunningDaemon, name: string): Promise<string> {
  return (await verifiedDomain(daemon, dns, name)).domainId;
}

/** Publishes the record of the secondary lane when it is known, verifies the domain, and returns the selector. */
async function activate(daemon: RunningDaemon, domainId: string): Promise<string> {
  const record = await eventually('the record of the secondary lane', async () => {
    const { data } = await daemon.api.get<{ dnsRecords: DomainRecord[] }>(
      `/web-setup/domains/${domainId}/dns-records`,
    );
    const found = data.dnsRecords.find(({ purpose }) => purpose === 'Secondary DKIM');
    return found === undefined || found.value === 'Creation in progress' ? null : found;
  });
  dns.publish([record]);
  await publishPlatform(daemon, dns);
  const verified = await daemon.api.post<{ altStatus: string }>(`/web-setup/domains/${domainId}/verify`);
  expect(verified.data.altStatus).toBe('ACTIVE');
  return record.name.split('.', 1)[0] ?? '';
}

const clientOf = (daemon: RunningDaemon, domain = 'kunde.example') => ({
  send: async (to: string) => {
    const { data } = await daemon.api.send({ ...SHORT_MAIL, from: `Shop <shop@${domain}>`, to });
    return data.messageId;
  },
  final: async (id: string, status: string) => {
    let message = await daemon.api.message(id);
    try {
      await eventually(`${id} to be ${status}`, async () => {
        message = await daemon.api.message(id);
        return message.status === status;
      });
    } catch (error) {
      throw new Error(`${id} is ${message.status}: ${JSON.stringify(message.timeline)}`, { cause: error });
    }
    return message;
  },
});
const lanesOf = ({ timeline }: MessageData) =>
  timeline.filter(({ type }) => type === 'attempt').map(({ lane }) => lane);
const countOf = (address: string) => mx.messages.filter(({ to }) => to.includes(address)).length;

describe('another egress pool', () => {
  let daemon: RunningDaemon;
  let selector: string;

  beforeAll(async () => {
    daemon = await startDaemon({
      'dns.resolvers': [dns.address],
      'delivery.port': mx.port,
      'delivery.allowPrivateNetworks': true,
      'delivery.egress': [
        { name: 'main', address: '127.0.0.1', publicAddress: '192.0.2.25', pools: ['default'] },
        { name: 'second', address: '127.0.0.2', publicAddress: '192.0.2.26', pools: ['secondary'] },
      ],
    });
    selector = await activate(daemon, await addDomain(daemon, 'kunde.example'));
  });
  afterAll(() => daemon?.stop());

  it('takes mail that is refused because of our address, each message once', async () => {
    const { send, final } = clientOf(daemon);
    const recipients = Array.from(
      { length: MESSAGES },
      // Several sessions that end with a 421 would suspend the site.
      (_, n) => `u${n}@${n === 1 ? 'soft' : 'listed'}.example`,
    );
    const ids: string[] = [];
    for (const to of recipients) ids.push(await send(to));
    for (const id of ids) {
      const message = await final(id, 'delivered');
      expect(lanesOf(message)).toEqual(['primary', 'secondary']);
      const delayed = message.timeline.find(({ event }) => event === 'email_delayed');
      expect(delayed).toMatchObject({ nextLane: 'secondary', classification: 'reputation-block' });
    }
    for (const to of recipients) expect(countOf(to)).toBe(1);
    const [message] = mx.messages.filter(({ to }) => to.includes('u0@listed.example'));
    expect(message?.remoteAddress).toMatch(/127\.0\.0\.2$/);
    // The key of the secondary lane.
    expect(message?.raw.replaceAll(/\r\n[ \t]/g, ' ')).toContain(` s=${selector};`);
    expect(await daemon.metric('postrider_lane_failovers_total{cause="listing"}')).toBe(MESSAGES);
    expect(await daemon.metric('postrider_lane_attempts_total{lane="secondary",result="delivered"}')).toBe(
      MESSAGES,
    );
  });

  it('stops at the cap, and the mail above it bounces in the primary lane', async () => {
    const { send, final } = clientOf(daemon);
    const message = await final(await send('capped@listed.example'), 'bounced');
    expect(lanesOf(message)).toEqual(['primary']);
    expect(await daemon.metric('postrider_lane_failovers_total{cause="capped"}')).toBe(1);
  });

  it.each(['content', 'dmarc', 'unknown'])('takes no mail that is refused because of %s', async (name) => {
    const { send, final } = clientOf(daemon);
    const message = await final(await send(`a@${name}.example`), 'bounced');
    expect(lanesOf(message)).toEqual(['primary']);
  });

  it('takes no other mail', async () => {
    const { send, final } = clientOf(daemon);
    const message = await final(await send('a@good.example'), 'delivered');
    expect(lanesOf(message)).toEqual(['primary']);
    expect(mx.messages.at(-1)?.remoteAddress).toMatch(/127\.0\.0\.1$/);
  });

  it('never takes a message that may have been accepted', async () => {
    const { send } = clientOf(daemon);
    mx.program({ script: { dot: 'drop' } });
    const id = await send('lost@good.example');
    await eventually('a deferral', async () => (await daemon.api.message(id)).status === 'deferred');
    mx.program({ script: {} });
    await daemon.cli('queue', 'retry', id);
    const message = await clientOf(daemon).final(id, 'delivered');
    expect(new Set(lanesOf(message))).toEqual(new Set(['primary']));
  });
});

describe('a relay', () => {
  let daemon: RunningDaemon;
  let relay: Sink;
  let dir: string;
  let domainId: string;

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'postrider-relay-'));
    const authority = createAuthority();
    writeFileSync(join(dir, 'authority.pem'), authority.cert);
    writeFileSync(join(dir, 'password'), 'correct horse\n');
    dns.set('relay.example', 'A', ['127.0.0.1']);
    relay = await startSink({ keywords: ['AUTH PLAIN'], tls: authority.issue(['relay.example']) });
    relay.program({ script: { greeting: '421 4.3.2 down for maintenance' } });
    const login = { user: 'postrider', passwordFile: join(dir, 'password') };
    daemon = await startDaemon(
      {
        'dns.resolvers': [dns.address],
        'delivery.port': mx.port,
        'delivery.allowPrivateNetworks': true,
        'delivery.egress': [{ name: 'main', address: '127.0.0.1', publicAddress: '192.0.2.25' }],
        secondary: { type: 'relay', host: 'relay.example', port: relay.port, ...login },
      },
      { NODE_EXTRA_CA_CERTS: join(dir, 'authority.pem') },
    );
  });
  afterAll(async () => {
    await daemon?.stop();
    await relay?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  it('is probed before its lane is provisioned', async () => {
    domainId = await addDomain(daemon, 'zwei.example');
    await eventually('the probe', () => daemon.log().includes('down for maintenance'));
    const doctor = await daemon.tryCli('doctor', '--json');
    expect(doctor.stdout).toContain('The relay of the secondary lane cannot be used');
    const records = await daemon.api.get<{ altStatus: string }>(`/web-setup/domains/${domainId}/dns-records`);
    expect(JSON.stringify(records.data)).toContain('Creation in progress');
    expect(records.data.altStatus).toBe('PENDING');
  });

  it('takes mail that is refused because of our address, with a login over verified TLS', async () => {
    relay.program({ script: {} });
    // A start probes without waiting for the next attempt.
    await daemon.kill('SIGTERM');
    await daemon.restart();
    await activate(daemon, domainId);
    const { send, final } = clientOf(daemon, 'zwei.example');
    const before = mx.messages.length;
    const message = await final(await send('relayed@listed.example'), 'delivered');
    expect(lanesOf(message)).toEqual(['primary', 'secondary']);
    expect(relay.messages.map(({ to }) => to)).toEqual([['relayed@listed.example']]);
    expect(mx.messages).toHaveLength(before);
    const session = relay.sessions.findLast(({ messages }) => messages > 0);
    expect(session?.login).toBe('postrider:correct horse');
    expect(session?.tls?.servername).toBe('relay.example');
    const attempt = message.timeline.findLast(({ type }) => type === 'attempt');
    expect(JSON.stringify(attempt)).toContain('"verified":true');
    expect(daemon.log()).not.toContain('correct horse');
  });
});
