import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { HAS_IPV6 } from '../support/ipv6.ts';
import { type Postfix, startPostfix } from '../support/postfix.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * A server and a receiver with IPv6 addresses only. Every listener and every connection is on ::1; the name server alone is
 * on 127.0.0.1.
 *
 *   test ──HTTP──▶ postrider ──SMTP──▶ Postfix
 *                      ▲                  │ ada@ exists, other users do not
 *                      └───── DSN ────────┘
 */
const LOOPBACK = '::1';
/** A documentation address, as behind NAT. */
const PUBLIC_ADDRESS = '2001:db8::25';
const required = requirePrograms('postfix');

const reason = HAS_IPV6 ? required.reason : ' [skipped: this machine has no IPv6]';

describe.skipIf(required.missing || !HAS_IPV6)(`mail over IPv6 alone${reason}`, () => {
  let dns: DnsServer;
  let postfix: Postfix;
  let daemon: RunningDaemon;
  let spf: string[];

  beforeAll(async () => {
    const mxPort = await freePort(LOOPBACK);
    dns = await startDnsServer();
    postfix = await startPostfix({
      hostname: 'mx.empfang.example',
      mailboxes: ['ada@empfang.example'],
      host: LOOPBACK,
      accepts: { reportsTo: { host: LOOPBACK, port: mxPort }, transports: {} },
    });
    daemon = await startDaemon({
      'dns.resolvers': [dns.address],
      'api.listen': `[${LOOPBACK}]:${await freePort(LOOPBACK)}`,
      'public.listen': `[${LOOPBACK}]:${await freePort(LOOPBACK)}`,
      'mx.listen': `[${LOOPBACK}]:${mxPort}`,
      'delivery.port': postfix.port,
      'delivery.allowPrivateNetworks': true,
      'delivery.egress': [{ name: 'main', address6: LOOPBACK, publicAddress: PUBLIC_ADDRESS }],
    });
    dns.set('empfang.example', 'MX', ['10 mx.empfang.example']);
    dns.set('mx.empfang.example', 'AAAA', [LOOPBACK]);
    await verifiedDomain(daemon, dns, 'kunde.example');
    const zone: { type: string; value: string }[] = JSON.parse(await daemon.cli('zone', '--json'));
    spf = zone.filter(({ value }) => value.includes('v=spf1')).map(({ value }) => value);
  });
  afterAll(async () => {
    await daemon?.stop();
    await postfix?.stop();
    await dns?.close();
  });

  const send = async (user: string) => {
    const mail = { ...SHORT_MAIL, from: 'a@kunde.example', to: `${user}@empfang.example` };
    return (await daemon.api.send(mail, { Prefer: 'wait=20' })).data.messageId;
  };

  it('publishes the address of the server in SPF', () => {
    expect(spf.some((value) => value.includes(`ip6:${PUBLIC_ADDRESS}`))).toBe(true);
    expect(spf.some((value) => value.includes('ip4:'))).toBe(false);
  });

  it('delivers over TLS, and the link for unsubscribing in the mail opens its page', async () => {
    const message = await daemon.api.message(await send('ada'));
    expect(message.status).toBe('delivered');
    const [mail] = await postfix.waitForMail('ada@empfang.example', 1);
    const text = mail?.toString() ?? '';
    expect(text).toMatch(/Received: from mx\.postrider\.example \(unknown \[IPv6:::1\]\)\s+\(using TLSv1\.3/);
    const [, link = ''] = /List-Unsubscribe:\s+<([^>]+)>/.exec(text) ?? [];
    const { port, pathname } = new URL(link);
    const page = await fetch(`http://[${LOOPBACK}]:${port}${pathname}`);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('a…@empfang.example')]);
  });

  it('records the bounce that the receiver reports later', async () => {
    const messageId = await send('niemand');
    const bounced = await eventually(
      `the bounce of ${messageId}`,
      async () => {
        const message = await daemon.api.message(messageId);
        return message.status === 'bounced' ? message : null;
      },
      { everyMs: 100 },
    );
    expect(bounced.timeline.at(-1)).toMatchObject({
      event: 'email_bounced',
      classification: 'invalid-recipient',
      source: 'dsn',
    });
  });
});
