import { execFile } from 'node:child_process';
import { Resolver } from 'node:dns/promises';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { simpleParser } from 'mailparser';
import { createTransport } from 'nodemailer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CreatedDomain } from '../support/api-client.ts';
import { type Authority, createAuthority } from '../support/certificates.ts';
import { HOSTNAME, type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { publishMailHost } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * SMTP clients send through the platform.
 *
 *   nodemailer ─┐
 *   swaks ──────┴─SMTP, with and without TLS─▶ postrider ──SMTP──▶ sink
 */
const required = requirePrograms('swaks');

const HTML = '<p>Hello <img src="cid:logo"></p>{{company_address_html}}{{unsubscribe_email_html}}';
const FROM = 'Läden & Söhne <shop@kunde.example>';

describe('submission', () => {
  let dns: DnsServer;
  let sink: Sink;
  let daemon: RunningDaemon;
  let authority: Authority;
  let port: number;
  const dir = mkdtempSync(join(tmpdir(), 'postrider-submission-'));
  const caFile = join(dir, 'ca.pem');

  beforeAll(async () => {
    port = await freePort();
    authority = createAuthority();
    const { cert, key } = authority.issue([HOSTNAME]);
    writeFileSync(caFile, authority.cert);
    writeFileSync(join(dir, 'cert.pem'), cert);
    writeFileSync(join(dir, 'key.pem'), key);
    dns = await startDnsServer();
    sink = await startSink();
    daemon = await startDaemon({
      'dns.resolvers': [dns.address],
      'delivery.port': sink.port,
      'delivery.allowPrivateNetworks': true,
      'submission.listen': `127.0.0.1:${port}`,
      'submission.tls.certificateFile': join(dir, 'cert.pem'),
      'submission.tls.keyFile': join(dir, 'key.pem'),
    });
    publishMailHost(dns, 'empfang.example');
    await verifiedDomain(daemon, dns, 'kunde.example');
    await verifiedDomain(daemon, dns, 'news.example', { useCaseId: 'mk-local' });
    await daemon.api.put<CreatedDomain>('/web-setup/domains', {
      domain: 'pending.example',
      useCaseId: 'tx-local',
    });
  });
  afterAll(async () => {
    await daemon?.stop();
    await sink?.close();
    await dns?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const login = (scope: 'transactional' | 'marketing' = 'transactional') => ({
    user: daemon.api.accountId,
    pass: daemon.api.keys[scope],
  });
  /** The message for the recipient, once it is at the sink. */
  const arrived = async (recipient: string) =>
    eventually(`mail for ${recipient}`, () => sink.messages.find(({ to }) => to.includes(recipient)) ?? null);

  describe('by nodemailer', () => {
    const transport = (options: object = {}) =>
      createTransport({ host: '127.0.0.1', port, ignoreTLS: true, auth: login(), ...options });
    const mail = {
      from: FROM,
      subject: 'Grüße',
      html: HTML,
      text: 'Hello {{company_address}} {{unsubscribe_url}}',
    };

    it.each([
      ['without TLS', 'plain', {}],
      ['with STARTTLS', 'starttls', { ignoreTLS: false, requireTLS: true }],
    ])('%s: delivers the message unchanged and signed', async (_, name, options) => {
      const to = `${name}@empfang.example`;
      const pdf = Buffer.from('%PDF-1.4\n.\r\n..\n');
      const tls = { ca: authority.cert, servername: HOSTNAME };
      const sent = await transport({ ...options, tls }).sendMail({
        ...mail,
        to: { name: 'Zoë Müller', address: to },
        cc: `cc-${name}@empfang.example`,
        bcc: `bcc-${name}@empfang.example`,
        replyTo: 'help@kunde.example',
        headers: { 'X-Order': 'zwölf' },
        attachments: [
          { filename: 'Rechnung März.pdf', content: pdf },
          { filename: 'logo.png', content: Buffer.from('png'), cid: 'logo' },
        ],
      });
      const id = /queued as (msg_\S+)/.exec(sent.response)?.[1] ?? '';
      expect(sent.response).toMatch(/^250 2\.6\.0 OK: queued as msg_/);

      const { raw } = await arrived(to);
      const received = await simpleParser(raw);
      expect(received.subject).toBe('Grüße');
      expect(received.from?.value).toEqual([{ name: 'Läden & Söhne', address: 'shop@kunde.example' }]);
      expect(received.to).toMatchObject({ value: [{ name: 'Zoë Müller', address: to }] });
      expect(received.cc).toMatchObject({ value: [{ address: `cc-${name}@empfang.example` }] });
      expect(received.replyTo?.value).toMatchObject([{ address: 'help@kunde.example' }]);
      expect(received.html).toContain('Hauptstrasse 1');
      expect(received.text).toMatch(/^Hello Kunde GmbH, Hauptstrasse 1.* http/);
      expect(received.messageId).toMatch(/@kunde\.example>$/);
      expect(raw).toMatch(/^DKIM-Signature: /);
      expect(raw).not.toContain(`bcc-${name}`);
      const [document, logo] = ['application/pdf', 'image/png'].map((type) =>
        received.attachments.find(({ contentType }) => contentType === type),
      );
      expect(document?.filename).toBe('Rechnung März.pdf');
      expect(document?.content.equals(pdf)).toBe(true);
      expect(logo).toMatchObject({ cid: 'logo', contentType: 'image/png' });
      await arrived(`bcc-${name}@empfang.example`);
      await eventually('the event', async () => (await daemon.api.message(id)).status === 'delivered');
    });

    it('preserves the alternatives, Message-ID and references of an invitation, and signs them', async () => {
      const to = 'thread@empfang.example';
      const event = 'BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nSUMMARY:Grüße\r\nEND:VCALENDAR\r\n';
      await transport().sendMail({
        from: FROM,
        to,
        subject: 'Re: Termin',
        text: 'Bis dann!',
        html: '<p>Bis dann!</p>',
        amp: '<!doctype html><html ⚡4email></html>',
        watchHtml: '<b>Bis dann!</b>',
        icalEvent: { method: 'REQUEST', content: event },
        messageId: '<antwort-1@mail.kunde.example>',
        inReplyTo: '<frage-1@empfang.example>',
        references: ['<frage-0@empfang.example>', '<frage-1@empfang.example>'],
      });
      const { raw } = await arrived(to);
      const types = [...raw.matchAll(/^Content-Type: ([\w/-]+)/gm)].map(([, type]) => type);
      expect(types).toEqual([
        'multipart/mixed',
        'multipart/alternative',
        'text/plain',
        'text/watch-html',
        'text/x-amp-html',
        'text/html',
        'text/calendar',
        'application/ics',
      ]);
      expect(raw).toMatch(/^Content-Type: text\/calendar; charset=utf-8; method=REQUEST\r$/m);
      const received = await simpleParser(raw);
      expect(received.messageId).toBe('<antwort-1@mail.kunde.example>');
      expect(received.inReplyTo).toBe('<frage-1@empfang.example>');
      expect(received.references).toEqual(['<frage-0@empfang.example>', '<frage-1@empfang.example>']);
      const calendar = received.attachments.find(({ contentType }) => contentType === 'text/calendar');
      expect(calendar?.content.toString()).toBe(event);
      // The footer is appended to text and html.
      expect(received.text).toMatch(/^Bis dann!\n\nKunde GmbH\n/);
      expect(received.html).toContain('Hauptstrasse 1');

      const names = new Resolver();
      names.setServers([dns.address]);
      const { results } = await dkimVerify(Buffer.from(raw), {
        resolver: (name: string) => names.resolveTxt(name),
      });
      expect(results.map(({ status }) => status.result)).toEqual(['pass']);
      const [, signed = ''] = /\bh=([^;]+);/.exec(raw) ?? [];
      expect(signed.replace(/\s/g, '')).toMatch(/:In-Reply-To:References$/);
    });

    it('sends a text-only message as text/plain with the footer', async () => {
      const to = 'text@empfang.example';
      await transport().sendMail({ from: FROM, to, subject: 'Code', text: '123456' });
      const { raw } = await arrived(to);
      expect(raw).toMatch(/^Content-Type: text\/plain; charset=utf-8\r$/m);
      expect(raw).not.toMatch(/multipart|text\/html/);
      expect(raw).toMatch(/^List-Unsubscribe: /m);
      expect(raw).not.toMatch(/^List-Unsubscribe-Post:/m);
      expect((await simpleParser(raw)).text).toMatch(/^123456\n\nKunde GmbH\n/);
    });

    it('sends to a subscription group with a marketing key and tracking', async () => {
      const { api } = daemon;
      const group = await api.post<{ group: { subscriptionGroupId: string } }>(
        '/web-setup/contacts/subscription-groups',
        { name: 'News' },
      );
      const id = group.data.group.subscriptionGroupId;
      await api.post('/web-setup/contacts', { email: 'reader@empfang.example' });
      await api.post(`/web-setup/contacts/subscription-groups/${id}/subscriptions`, {
        email: 'reader@empfang.example',
        consentMethod: 'double_opt_in',
      });
      const news = {
        ...mail,
        from: 'news@news.example',
        html: HTML.replace('<p>', '<p><a href="https://news.example/today">Today</a>'),
        headers: { 'X-Postrider-Group': id, 'X-Postrider-Track': 'clicks, opens' },
      };
      const marketing = transport({ auth: login('marketing') });
      const sent = await marketing.sendMail({ ...news, to: 'reader@empfang.example' });
      expect(sent.response).toMatch(/queued as job_/);
      const { raw } = await arrived('reader@empfang.example');
      const received = await simpleParser(raw);
      expect(received.html).toMatch(/href="http[^"]+\/c\//);
      expect(received.html).toMatch(/\/o\/[^"]+\.gif/);

      await expect(marketing.sendMail({ ...news, to: 'unknown@empfang.example' })).rejects.toThrow(
        /550 5\.7\.1 CONSENT_REQUIRED/,
      );
    });

    it.each<[string, () => Promise<unknown>, RegExp]>([
      [
        'a wrong key',
        () =>
          transport({ auth: { ...login(), pass: `pr_${'0'.repeat(43)}` } }).sendMail({
            ...mail,
            to: 'x@empfang.example',
          }),
        /535 5\.7\.8/,
      ],
      [
        'a setup key',
        () =>
          transport({ auth: { user: daemon.api.accountId, pass: daemon.api.keys.setup } }).sendMail({
            ...mail,
            to: 'x@empfang.example',
          }),
        /535 5\.7\.8 INSUFFICIENT_SCOPE/,
      ],
      [
        'a From domain that is not registered',
        () => transport().sendMail({ ...mail, from: 'a@unknown.example', to: 'x@empfang.example' }),
        /550 5\.7\.1 DOMAIN_NOT_REGISTERED/,
      ],
      [
        'a From domain that is not verified',
        () => transport().sendMail({ ...mail, from: 'a@pending.example', to: 'x@empfang.example' }),
        /550 5\.7\.1 DOMAIN_NOT_VERIFIED/,
      ],
      [
        'a certificate for another name',
        () =>
          transport({
            ignoreTLS: false,
            requireTLS: true,
            tls: { ca: authority.cert, servername: 'other.example' },
          }).sendMail({ ...mail, to: 'x@empfang.example' }),
        /altnames/,
      ],
    ])('rejects %s', async (_, send, reply) => {
      await expect(send()).rejects.toThrow(reply);
    });
  });

  describe.skipIf(required.missing)(`by swaks${required.reason}`, () => {
    /** Runs swaks; the exit code is 0 when the message was accepted. */
    const swaks = (...args: string[]) =>
      new Promise<{ code: number; transcript: string }>((resolve) => {
        const all = ['--server', '127.0.0.1', '--port', String(port), '--timeout', '20', ...args];
        execFile('swaks', all, (error, stdout) =>
          resolve({ code: typeof error?.code === 'number' ? error.code : 0, transcript: stdout }),
        );
      });
    const auth = ({ user, pass } = login()) => [
      '--auth',
      'PLAIN',
      '--auth-user',
      user,
      '--auth-password',
      pass,
    ];
    const mail = (to: string, from = 'shop@kunde.example') =>
      `--from ${from} --to ${to} --h-Subject From_swaks`
        .split(' ')
        .concat('--body', 'Hello {{company_address}} {{unsubscribe_url}}');

    it.each([
      ['without TLS', 'swaks-plain', []],
      ['with TLS that it verifies', 'swaks-tls', ['--tls', '--tls-verify', '--tls-ca-path', caFile]],
    ])('delivers a text message %s', async (_, name, tls) => {
      const to = `${name}@empfang.example`;
      const args = tls.includes('--tls-verify') ? await hostArguments(tls) : tls;
      const { code, transcript } = await swaks(...mail(to), ...auth(), ...args);
      expect([code, transcript]).toEqual([0, expect.stringMatching(/250 2\.6\.0 OK: queued as msg_/)]);
      const { raw } = await arrived(to);
      const received = await simpleParser(raw);
      expect(received.subject).toBe('From_swaks');
      expect(received.text).toContain('Hello Kunde GmbH, Hauptstrasse 1');
      expect(raw).not.toMatch(/text\/html/);
    });

    it('delivers text in braces as it is', async () => {
      const to = 'swaks-braces@empfang.example';
      const { code } = await swaks(...mail(to), '--body', 'Hi {{name}} {{company_address}}', ...auth());
      expect(code).toBe(0);
      const received = await simpleParser((await arrived(to)).raw);
      expect(received.text).toContain('Hi {{name}} Kunde GmbH, Hauptstrasse 1');
    });

    it.each<[string, () => string[], RegExp]>([
      ['no login', () => mail('x@empfang.example'), /530 5\.7\.0 Authentication required/],
      [
        'a wrong key',
        () => [...mail('x@empfang.example'), ...auth({ user: 'acct_x', pass: 'pr_x' })],
        /535 5\.7\.8/,
      ],
      [
        'a From domain that is not registered',
        () => [...mail('x@empfang.example', 'a@unknown.example'), ...auth()],
        /550 5\.7\.1 DOMAIN_NOT_REGISTERED/,
      ],
      [
        'a From domain that is not verified',
        () => [...mail('x@empfang.example', 'a@pending.example'), ...auth()],
        /550 5\.7\.1 DOMAIN_NOT_VERIFIED/,
      ],
    ])('rejects %s', async (_, args, reply) => {
      const { code, transcript } = await swaks(...args());
      expect(code).not.toBe(0);
      expect(transcript).toMatch(reply);
    });

    /** Newer versions of swaks have an option for the name to verify; older ones verify the name that they connect to. */
    async function hostArguments(tls: string[]): Promise<string[]> {
      const help = await new Promise<string>((resolve) => {
        execFile('swaks', ['--help'], { env: { ...process.env, PAGER: 'cat' } }, (_, stdout) =>
          resolve(stdout),
        );
      });
      return help.includes('--tls-verify-target') ? [...tls, '--tls-verify-target', HOSTNAME] : tls;
    }
  });
});
