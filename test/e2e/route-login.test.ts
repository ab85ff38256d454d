import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createAuthority, selfSigned } from '../support/certificates.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * The password of a fixed route is sent only to a server with a valid certificate.
 *
 *   postrider ──route without user──▶ one (self-signed certificate)
 *             ──route with user─────▶ one, the same host and port
 *             ──route with user─────▶ two (certificate of a trusted authority)
 */
const PASSWORD = 'correct horse battery';
const RELAY = 'relay.example';

let dir: string;
let dns: DnsServer;
let one: Sink;
let two: Sink;
let daemon: RunningDaemon;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'postrider-routes-'));
  const passwordFile = join(dir, 'password');
  writeFileSync(passwordFile, `${PASSWORD}\n`);
  const authority = createAuthority();
  const trusted = join(dir, 'authority.pem');
  writeFileSync(trusted, authority.cert);
  dns = await startDnsServer();
  dns.set(RELAY, 'A', ['127.0.0.1']);
  const keywords = ['AUTH PLAIN LOGIN'];
  one = await startSink({ keywords, tls: selfSigned([RELAY]) });
  two = await startSink({ keywords, tls: authority.issue([RELAY]) });
  const login = { user: 'postrider', passwordFile };
  daemon = await startDaemon(
    {
      'dns.resolvers': [dns.address],
      'delivery.routes': [
        { match: 'open.example', host: RELAY, port: one.port },
        { match: 'closed.example', host: RELAY, port: one.port, ...login },
        { match: 'good.example', host: RELAY, port: two.port, ...login },
      ],
    },
    { NODE_EXTRA_CA_CERTS: trusted },
  );
  await verifiedDomain(daemon, dns, 'kunde.example');
});
afterAll(async () => {
  await daemon?.stop();
  await one?.close();
  await two?.close();
  await dns?.close();
  rmSync(dir, { recursive: true, force: true });
});

const eventOf = (messageId: string, type: string) =>
  eventually(`${type} of ${messageId}`, async () => {
    const events = await daemon.api.allEvents({ messageId });
    return events.find(({ event }) => event === type) ?? null;
  });
const send = async (to: string) => {
  const { data } = await daemon.api.send({ ...SHORT_MAIL, from: 'a@kunde.example', to });
  return data.messageId;
};

it('sends no password to a server with an invalid certificate, also after a route without login to it', async () => {
  await eventOf(await send('ann@open.example'), 'email_delivered');
  const delayed = await eventOf(await send('bob@closed.example'), 'email_delayed');
  expect(JSON.stringify(delayed)).toContain('self-signed certificate');
  await eventOf(await send('cid@open.example'), 'email_delivered');
  expect(one.count).toBe(2);
  const commands = one.sessions.flatMap((session) => [...session.commands, session.login]).join('\n');
  expect(commands).not.toMatch(/AUTH/);
  expect(one.messages.map(({ to }) => to)).toEqual([['ann@open.example'], ['cid@open.example']]);
});

it('logs in to a server with a valid certificate', async () => {
  await eventOf(await send('dan@good.example'), 'email_delivered');
  expect(two.sessions.map(({ login }) => login)).toEqual([`postrider:${PASSWORD}`]);
  expect(two.messages[0]?.tls).not.toBeNull();
});

it('writes the password neither to the log nor to events', async () => {
  const encoded = Buffer.from(`\0postrider\0${PASSWORD}`).toString('base64');
  const events = JSON.stringify(await daemon.api.allEvents({}));
  for (const secret of [PASSWORD, encoded]) {
    expect(daemon.log()).not.toContain(secret);
    expect(events).not.toContain(secret);
  }
});
