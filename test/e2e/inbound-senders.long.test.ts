// Long: real mail servers send mail of the largest size.
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { startExim } from '../support/exim.ts';
import { freePort } from '../support/free-port.ts';
import { type InboundEntry, inboundAddress, receivedMails } from '../support/inbound.ts';
import { startPostfix } from '../support/postfix.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { SIGNING_RECORD, signMail } from '../support/signed-mail.ts';
import { smtpClient } from '../support/smtp-client.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * Mail that a real server relays to the routes of two accounts.
 *
 *   test ──SMTP──▶ Postfix or Exim at 127.0.0.2 ──SMTP──▶ postrider: support@, sales@ of one account, orders@ of the other
 */
interface Relay {
  port: number;
  host: string;
  /** The mail for grace@absender.example, whose reports come here. */
  reports(): Promise<string>;
  log(): Promise<string>;
  stop(): Promise<void>;
}

const SENDER = 'grace@absender.example';
const HOST = '127.0.0.2';
/** The limit of the daemon is 36,700,160 bytes with the header fields of the relays. */
const ATTACHMENT_BYTES = 26_700_000;
const LINE_BYTES = 57;

async function startPostfixRelay(port: number): Promise<Relay> {
  const server = await startPostfix({
    hostname: 'mx.absender.example',
    mailboxes: [SENDER],
    host: HOST,
    accepts: { reportsTo: { host: '127.0.0.1', port }, transports: { [SENDER]: 'virtual:' } },
    parameters: {
      mynetworks: '127.0.0.0/8',
      smtpd_relay_restrictions: 'permit_mynetworks, reject',
      message_size_limit: '60000000',
      virtual_mailbox_limit: '0',
    },
  });
  return {
    ...server,
    reports: async () => Buffer.concat(await server.mail(SENDER)).toString('latin1'),
  };
}

async function startEximRelay(port: number): Promise<Relay> {
  const server = await startExim({
    hostname: 'mx.absender.example',
    domain: 'absender.example',
    mailboxes: ['grace'],
    host: HOST,
    quota: 100_000_000,
    reportsTo: { host: '127.0.0.1', port },
    main: 'message_size_limit = 60M\n',
    acl: '  accept hosts = 127.0.0.0/8',
  });
  return { ...server, reports: () => server.mailbox('grace') };
}

describe.each([
  { name: 'Postfix', required: requirePrograms('postfix'), startRelay: startPostfixRelay },
  { name: 'Exim', required: requirePrograms('exim'), startRelay: startEximRelay },
])('mail from $name $required.reason', ({ required, startRelay }) => {
  let dns: DnsServer;
  let daemon: RunningDaemon;
  let relay: Relay;
  let other: ApiClient;

  beforeAll(async () => {
    if (required.missing) return;
    const mxPort = await freePort();
    dns = await startDnsServer();
    daemon = await startDaemon({
      'dns.resolvers': [dns.address],
      'mx.listen': `127.0.0.1:${mxPort}`,
    });
    relay = await startRelay(mxPort);
    const domain = await verifiedDomain(daemon, dns, 'kunde.example');
    await inboundAddress(daemon.api, domain, 'support');
    await inboundAddress(daemon.api, domain, 'sales');
    other = await daemon.account('Zweite GmbH');
    await inboundAddress(other, await verifiedDomain(daemon, dns, 'zweite.example', { api: other }), '*');
    dns.set('absender.example', 'TXT', ['v=spf1 ip4:127.0.0.0/8 -all']);
    dns.set('_dmarc.absender.example', 'TXT', ['v=DMARC1; p=reject; aspf=s; adkim=s']);
    dns.set('s1._domainkey.absender.example', 'TXT', [SIGNING_RECORD.match(/.{1,255}/g) ?? []]);
  });
  afterAll(async () => {
    await daemon?.stop();
    await relay?.stop();
    await dns?.close();
  });

  const relayed = async (to: string[], content: string) => {
    const client = await smtpClient(relay.port, { host: relay.host });
    await client.say('EHLO program.absender.example');
    expect(await client.mail(SENDER, to, content)).toMatch(/^250/);
    client.destroy();
  };
  const parsedOf = (api: ApiClient, subject: string, count: number): Promise<InboundEntry[]> =>
    eventually(`${count} mails ${subject}`, async () => {
      const found = (await receivedMails(api)).filter((mail) => mail.subject === subject);
      return found.length >= count && found.every(({ status }) => status === 'parsed') ? found : null;
    }).catch(async (error: unknown) => {
      throw new Error(`the relay logged:\n${await relay.log()}`, { cause: error });
    });
  /** The bytes of a part, and their type. */
  const partOf = async (api: ApiClient, inboundId: string, part: string): Promise<Buffer> => {
    const headers = { 'X-Api-Key': api.keys.setup, 'X-Id': api.accountId };
    const response = await fetch(`${daemon.baseUrl}/web-setup/inbound/${inboundId}/${part}`, { headers });
    expect(response.status).toBe(200);
    return Buffer.from(await response.arrayBuffer());
  };

  it.skipIf(required.missing)(
    'comes to each route of each account once, and unknown addresses are reported to its sender',
    async () => {
      const body = 'Hello,\r\n..a line with dots\r\nGr\u00fc\u00dfe\r\n';
      const mail = signMail(
        `From: Grace <${SENDER}>\r\nTo: team@absender.example\r\nSubject: several\r\nMessage-ID: <1@absender.example>\r\n` +
          `Date: ${new Date().toUTCString().replace('GMT', '+0000')}\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${body}`,
        SENDER,
        'absender.example',
      );
      const routes = ['support@in.kunde.example', 'sales@in.kunde.example', 'orders@in.zweite.example'];
      await relayed([...routes, 'nobody@in.kunde.example'], mail);
      const own = await parsedOf(daemon.api, 'several', 2);
      const others = await parsedOf(other, 'several', 1);
      expect(new Set([...own, ...others].flatMap(({ to }) => to))).toEqual(new Set(routes));
      expect([own.length, others.length]).toEqual([2, 1]);
      for (const { authentication, from, parseError } of [...own, ...others])
        expect({ authentication, from, parseError }).toMatchObject({
          from: SENDER,
          parseError: null,
          authentication: { spf: 'pass', dkim: 'pass', dmarc: 'pass', dmarcPolicy: 'reject' },
        });
      // The relay adds its field in front; the rest is as it was signed.
      const raw = await partOf(daemon.api, own[0]?.inboundId ?? '', 'raw');
      expect(raw.toString('latin1').endsWith(Buffer.from(body).toString('latin1'))).toBe(true);
      await eventually('the report on the unknown address', async () =>
        /nobody@in\.kunde\.example[\s\S]*550[ -]5\.1\.1/.test(await relay.reports()),
      );
    },
  );

  it.skipIf(required.missing)('of nearly 35 MB has its attachment unchanged', async () => {
    const bytes = randomBytes(ATTACHMENT_BYTES);
    const lines: string[] = [];
    for (let at = 0; at < bytes.length; at += LINE_BYTES)
      lines.push(bytes.toString('base64', at, at + LINE_BYTES));
    const fields = `From: ${SENDER}\r\nSubject: large\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n`;
    const file = 'Content-Type: application/zip\r\nContent-Disposition: attachment; filename=photos.zip\r\n';
    await relayed(
      ['support@in.kunde.example', 'orders@in.zweite.example'],
      `${fields}--b\r\n\r\nSee the file.\r\n--b\r\n${file}Content-Transfer-Encoding: base64\r\n\r\n${lines.join('\r\n')}\r\n--b--\r\n`,
    );
    for (const api of [daemon.api, other]) {
      const [mail] = await parsedOf(api, 'large', 1);
      expect(mail).toMatchObject({ attachmentCount: 1, parseError: null });
      expect(mail?.size).toBeGreaterThan(36_500_000);
      const stored = await partOf(api, mail?.inboundId ?? '', 'attachments/0');
      expect(hashOf(stored)).toBe(hashOf(bytes));
    }
  });
});

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
