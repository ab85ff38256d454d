import { createPublicKey } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import type { Server } from 'node:https';
import { authenticate } from 'mailauth';
import { type ParsedMail, simpleParser } from 'mailparser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CreatedDomain, DomainRecord, VerifiedDomain } from '../support/api-client.ts';
import { createAuthority, selfSigned } from '../support/certificates.ts';
import { HOSTNAME, PUBLIC_ADDRESS, type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type VerifiedSignature, verifyDkim } from '../support/dkimpy.ts';
import { freePort } from '../support/free-port.ts';
import { portOf, requestHttps, startTlsProxy } from '../support/https-client.ts';
import { type Knot, startKnot } from '../support/knot.ts';
import { checkSpf } from '../support/pyspf.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import type { SinkMessage, SinkSession } from '../support/smtp-sink-session.ts';

/*
 * The requirements of Gmail ("Email sender guidelines", as of March 2026) and Yahoo ("Sender requirements &
 * recommendations", as of April 2025) for bulk senders, each checked on one delivered message.
 *
 *   test ──HTTP──▶ postrider ──DNS──▶ Knot   kunde.example          what the API printed
 *                      │                     mx.postrider.example   what `postrider zone` printed
 *                      │                     25.2.0.192.in-addr.arpa, as the owner of the address sets it
 *                      │ SMTP + STARTTLS
 *                      ▼
 *                    sink ──▶ dkimpy, pyspf, mailauth (keys and policies from Knot)
 *                      └────▶ the unsubscribe address ──HTTPS──▶ proxy ──HTTP──▶ postrider, public listener
 *
 * Requirements that a message does not show are not covered: spam rates below 0.3 % (better 0.1 %); no purchased
 * addresses, no preselected checkboxes, confirmed sign-up; one From address per kind of mail, nothing misleading in
 * subject, display name or content; separate IP addresses per kind of mail (regions.pools provides them); slow
 * growth of volume; no names that are confusable by Unicode's UTS 39 §5.2; no listing on blocklists or in Safe
 * Browsing; enrollment in Postmaster Tools and the Complaint Feedback Loop; ARC, which applies to forwarders.
 */
const required = requirePrograms('knot', 'dkimpy', 'pyspf');

const ADA = 'ada@empfang.example';
const BOB = 'bob@empfang.example';
const LINK_HOST = `track.${HOSTNAME}`;

const authority = createAuthority();

interface Delivered {
  smtp: SinkMessage;
  session: SinkSession;
  raw: Buffer;
  mail: ParsedMail;
  /** Unfolded field bodies by name in lower case. */
  fields: Map<string, string[]>;
  signatures: VerifiedSignature[];
  /** SPF, DKIM and DMARC as mailauth evaluates them. */
  verdict: Awaited<ReturnType<typeof authenticate>>;
  oneClickUrl: string;
}

describe.skipIf(required.missing)(`the bulk sender requirements${required.reason}`, () => {
  let knot: Knot;
  let sink: Sink;
  let proxy: Server;
  let daemon: RunningDaemon;
  let names: Resolver;
  let delivered: Delivered;

  beforeAll(async () => {
    knot = await startKnot();
    names = new Resolver();
    names.setServers([knot.address]);
    sink = await startSink({ tls: selfSigned(['mx.empfang.example']) });
    const publicPort = await freePort();
    proxy = await startTlsProxy(authority.issue([LINK_HOST]), publicPort);
    daemon = await startDaemon({
      'dns.resolvers': [knot.address],
      'delivery.port': sink.port,
      'delivery.allowPrivateNetworks': true,
      'public.listen': `127.0.0.1:${publicPort}`,
      'public.url': `https://${LINK_HOST}:${portOf(proxy)}`,
    });
    await knot.serve('empfang.example', [
      { type: 'MX', name: 'empfang.example', value: 'mx.empfang.example', priority: 10 },
      { type: 'A', name: 'mx.empfang.example', value: sink.host },
    ]);
    const reverse = PUBLIC_ADDRESS.split('.').toReversed();
    await knot.serveLines(`${reverse.slice(1).join('.')}.in-addr.arpa`, [
      `${reverse.join('.')}.in-addr.arpa. 60 IN PTR ${HOSTNAME}.`,
    ]);
    await knot.serve('kunde.example', []);
    await knot.serveLines(HOSTNAME, (await daemon.cli('zone')).split('\n'));
    await verifiedMarketingDomain();
    delivered = await readDelivered(await sendNewsletter());
  });
  afterAll(async () => {
    await daemon?.stop();
    await sink?.close();
    proxy?.close();
    await knot?.stop();
  });

  async function verifiedMarketingDomain(): Promise<void> {
    const { data } = await daemon.api.put<CreatedDomain>('/web-setup/domains', {
      domain: 'kunde.example',
      useCaseId: 'mk-local',
    });
    const records = [...data.dnsRecords, ...data.recommendedDnsRecords.filter(isReturnPathSpf)];
    await knot.serve(
      'kunde.example',
      // Links use the platform's host: the daemon would expect a link host at its documentation address.
      records.filter(({ value, purpose }) => value !== 'Creation in progress' && purpose !== 'Tracking'),
    );
    const { data: verified } = await daemon.api.post<VerifiedDomain>(
      `/web-setup/domains/${data.domainId}/verify`,
    );
    expect(verified).toMatchObject({ status: 'SUCCESS' });
  }

  /** Sends to a member of a group, with a campaign and tracking. */
  async function sendNewsletter(): Promise<SinkMessage> {
    const { api } = daemon;
    const { data: list } = await api.post<{ group: { subscriptionGroupId: string } }>(
      '/web-setup/contacts/subscription-groups',
      { name: 'News' },
    );
    const { subscriptionGroupId } = list.group;
    for (const email of [ADA, BOB]) {
      await api.post('/web-setup/contacts', { email, consentMethod: 'double_opt_in' });
      const joined = await api.post(
        `/web-setup/contacts/subscription-groups/${subscriptionGroupId}/subscriptions`,
        { email, consentMethod: 'double_opt_in' },
      );
      expect(joined.status).toBe(201);
    }
    const { data: created } = await api.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
      name: 'Winter',
    });
    const { campaignId } = created.campaign;
    newsletter = { ...newsletter, subscriptionGroupId, campaignId };
    const response = await send(newsletter);
    expect(response.status).toBe(202);
    const [message] = await sink.waitFor(1);
    if (message === undefined) throw new Error('nothing was delivered');
    return message;
  }

  let newsletter: Record<string, unknown> = {
    to: `Ada <${ADA}>`,
    from: 'Läden & Söhne <neues@kunde.example>',
    replyTo: 'hilfe@kunde.example',
    subject: 'Schönes für kalte Tage',
    html: '<!doctype html><html lang="de"><head><title>Neues</title></head><body><p>Guten Tag.</p><p><a href="https://kunde.example/neu">Zum Laden</a></p>{{company_address_html}}{{unsubscribe_email_html}}{{report_abuse_email_html}}</body></html>',
    enableClickTracking: true,
    enableOpenTracking: true,
  };
  const send = (body: Record<string, unknown>) =>
    daemon.api.call<{ jobId: string }>('POST', '/marketing/send', { body });

  async function readDelivered(smtp: SinkMessage): Promise<Delivered> {
    const raw = Buffer.from(smtp.raw, 'latin1');
    const session = sink.sessions.find(({ number }) => number === smtp.connection);
    if (session === undefined) throw new Error('the sink has no session of this message');
    const fields = fieldsOf(smtp.raw);
    // mailauth accepts what Node's resolver returns, also string[][] for TXT; its type declares string[] only.
    const resolve = async (name: string, type: string) => (await names.resolve(name, type)) as string[];
    return {
      smtp,
      session,
      raw,
      mail: await simpleParser(raw),
      fields,
      signatures: verifyDkim(raw, knot),
      verdict: await authenticate(raw, {
        ip: PUBLIC_ADDRESS,
        helo: session.hello,
        sender: smtp.from,
        mta: 'mx.empfang.example',
        resolver: resolve,
        disableArc: true,
        disableBimi: true,
      }),
      oneClickUrl: /<(https:[^>]+)>/.exec(only(fields, 'list-unsubscribe'))?.[1] ?? '',
    };
  }

  const both = 'Gmail and Yahoo';
  const REQUIREMENTS: [
    by: string,
    requirement: string,
    check: (message: Delivered) => void | Promise<void>,
  ][] = [
    // Authentication.
    [
      both,
      'SPF passes for the envelope sender, which has the organizational domain of From',
      ({ smtp, session }) => {
        expect(domainOf(smtp.from)).toBe('return-a.kunde.example');
        const query = { ip: PUBLIC_ADDRESS, helo: session.hello, sender: smtp.from };
        expect(checkSpf(query, knot).result).toBe('pass');
        expect(checkSpf({ ...query, ip: '192.0.2.99' }, knot).result).not.toBe('pass');
      },
    ],
    [
      both,
      'SPF passes for the From domain',
      ({ session }) => {
        const sender = 'neues@kunde.example';
        expect(checkSpf({ ip: PUBLIC_ADDRESS, helo: session.hello, sender }, knot).result).toBe('pass');
      },
    ],
    [both, 'DKIM passes', ({ signatures }) => expect(signatures).toMatchObject([{ valid: true, fault: '' }])],
    [
      both,
      'the DKIM key has 2048 bits (the minimum is 1024)',
      async ({ signatures }) => {
        const [signature] = signatures;
        const texts = await names.resolveTxt(`${signature?.selector}._domainkey.${signature?.domain}`);
        const key = /p=([^;]+)/.exec(texts.map((strings) => strings.join(''))[0] ?? '')?.[1] ?? '';
        const { asymmetricKeyDetails } = createPublicKey({
          key: Buffer.from(key, 'base64'),
          format: 'der',
          type: 'spki',
        });
        expect(asymmetricKeyDetails?.modulusLength).toBe(2048);
      },
    ],
    [
      both,
      'the From domain is aligned with DKIM and SPF',
      ({ mail, signatures, smtp }) => {
        const [from] = mail.from?.value ?? [];
        expect(domainOf(from?.address ?? '')).toBe('kunde.example');
        expect(signatures[0]?.domain).toBe('kunde.example');
        expect(domainOf(smtp.from).endsWith('.kunde.example')).toBe(true);
      },
    ],
    [
      both,
      'the From domain has a DMARC policy, and the message passes it',
      async ({ verdict }) => {
        const [record = ''] = (await names.resolveTxt('_dmarc.kunde.example')).map((texts) => texts.join(''));
        expect(record).toMatch(/^v=DMARC1; *p=(none|quarantine|reject)\b/);
        expect(verdict.dmarc).toMatchObject({ status: { result: 'pass' }, domain: 'kunde.example' });
      },
    ],
    [
      'Yahoo',
      'the DMARC policy has a report address at a host that receives mail',
      async () => {
        const [record = ''] = (await names.resolveTxt('_dmarc.kunde.example')).map((texts) => texts.join(''));
        const reports = /rua=mailto:([^;,\s]+)/.exec(record)?.[1] ?? '';
        expect(domainOf(reports)).toBe('return-a.kunde.example');
        expect(await names.resolveMx(domainOf(reports))).toEqual([{ exchange: HOSTNAME, priority: 10 }]);
      },
    ],
    // The sending host.
    [
      both,
      'the sending address has forward-confirmed reverse DNS',
      async ({ session }) => {
        expect(await names.reverse(PUBLIC_ADDRESS)).toEqual([HOSTNAME]);
        expect(await names.resolve4(HOSTNAME)).toEqual([PUBLIC_ADDRESS]);
        expect(session.hello).toBe(HOSTNAME);
      },
    ],
    [both, 'the message is sent over TLS', ({ smtp }) => expect(smtp.tls?.protocol).toMatch(/^TLSv1\.[23]$/)],
    [
      'Yahoo',
      'the SMTP session conforms to RFC 5321, with a return path that receives mail',
      async ({ smtp, session }) => {
        expect(smtp.from).toMatch(/^[^@<>\s]+@[^@<>\s]+$/);
        expect(smtp.to).toEqual([ADA]);
        expect(session.commands[0]).toBe(`EHLO ${HOSTNAME}`);
        expect(await names.resolveMx(domainOf(smtp.from))).toEqual([{ exchange: HOSTNAME, priority: 10 }]);
      },
    ],
    // The form of the message.
    [
      both,
      'RFC 5322: required fields are present, no field is repeated',
      ({ fields }) => {
        for (const name of ['from', 'to', 'subject', 'date', 'message-id', 'mime-version', 'content-type'])
          expect(fields.has(name), name).toBe(true);
        for (const [name, values] of fields) expect([name, values.length]).toEqual([name, 1]);
      },
    ],
    [
      both,
      'RFC 5322: lines end in CRLF and have at most 998 bytes, the header is ASCII',
      ({ smtp, raw }) => {
        expect(smtp.raw.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
        expect(Math.max(...smtp.raw.split('\r\n').map(({ length }) => length))).toBeLessThanOrEqual(998);
        expect(headerOf(smtp.raw)).toMatch(/^[\t\r\n -~]*$/);
        expect(raw.length).toBe(smtp.raw.length);
      },
    ],
    [
      'Gmail',
      'the Message-ID is valid and has the domain of the sender',
      ({ fields }) => expect(only(fields, 'message-id')).toMatch(/^<[A-Za-z0-9._-]+@kunde\.example>$/),
    ],
    [
      both,
      'the Date is the current time',
      ({ fields }) => {
        const date = only(fields, 'date');
        expect(date).toMatch(/^\w{3}, \d{1,2} \w{3} \d{4} \d{2}:\d{2}:\d{2} [+-]\d{4}$/);
        expect(Math.abs(Date.parse(date) - Date.now())).toBeLessThan(600_000);
      },
    ],
    [
      'Gmail',
      'From has one address, the one of the sender',
      ({ mail }) =>
        expect(mail.from?.value).toEqual([{ address: 'neues@kunde.example', name: 'Läden & Söhne' }]),
    ],
    [
      'Gmail',
      'To has the recipient, and no other recipient is named',
      ({ mail, smtp, fields }) => {
        expect([mail.to].flat().flatMap((list) => list?.value ?? [])).toEqual([
          { address: ADA, name: 'Ada' },
        ]);
        expect(smtp.raw).not.toContain(BOB);
        expect([fields.get('bcc'), fields.get('cc')]).toEqual([undefined, undefined]);
      },
    ],
    [
      'Gmail',
      'the header has less than 8 KiB',
      ({ smtp }) => expect(headerOf(smtp.raw).length).toBeLessThan(8 * 1024),
    ],
    ['Gmail', 'the subject is unchanged', ({ mail }) => expect(mail.subject).toBe('Schönes für kalte Tage')],
    [
      'Gmail',
      'the html is unchanged, and the text part has the same content',
      ({ mail, fields }) => {
        expect(only(fields, 'content-type')).toMatch(/^multipart\/alternative;/);
        expect(mail.html).toMatch(/^<!doctype html><html lang="de">.*<\/html>\s*$/s);
        expect(mail.text).toContain('Guten Tag.');
      },
    ],
    [
      'Gmail',
      'the platform adds no hidden content but the tracking pixel',
      ({ mail }) => {
        const html = String(mail.html);
        expect(html).not.toMatch(/display:\s*none|visibility:\s*hidden|font-size:\s*0/i);
        expect(html.match(/<img\b/g)).toHaveLength(1);
      },
    ],
    // Unsubscribing.
    [
      both,
      'List-Unsubscribe has an https and a mailto URL, List-Unsubscribe-Post its only value',
      ({ fields }) => {
        expect(only(fields, 'list-unsubscribe')).toMatch(
          /^<https:\/\/[^<>\s]+>, <mailto:unsubscribe-[a-z0-9]+@return-a\.kunde\.example[^<>\s]*>$/,
        );
        expect(only(fields, 'list-unsubscribe-post')).toBe('List-Unsubscribe=One-Click');
      },
    ],
    [
      both,
      'the DKIM signature covers both (RFC 8058 §4)',
      ({ signatures }) => {
        const signed = signatures[0]?.signedFields ?? [];
        for (const name of ['list-unsubscribe', 'list-unsubscribe-post']) expect(signed).toContain(name);
      },
    ],
    [
      both,
      'Precedence and List-Id are present and signed',
      ({ fields, signatures }) => {
        expect(only(fields, 'precedence')).toBe('bulk');
        expect(only(fields, 'list-id')).toBe(
          `"News" <${String(newsletter['subscriptionGroupId'])}.kunde.example>`,
        );
        for (const name of ['precedence', 'list-id']) expect(signatures[0]?.signedFields).toContain(name);
      },
    ],
    [
      both,
      'the body has a visible unsubscribe link to a page without a login',
      async ({ mail }) => {
        const [, href = '', words = ''] = /<a\b[^>]*href="([^"]*\/u\/[^"]*)"[^>]*>([^<]+)<\/a>/.exec(
          String(mail.html),
        ) ?? ['', '', ''];
        // The footer is in the language of the mail, which is German.
        expect(words).toMatch(/unsubscribe|abmelden/i);
        const page = await request(href, 'GET');
        expect(page.status).toBe(200);
        expect(page.headers['set-cookie']).toBeUndefined();
        expect(page.body).toMatch(/<form[^>]*method="post"/);
        expect(page.body).not.toMatch(/type="password"|type="email"/);
        expect(mail.text).toContain('/u/');
      },
    ],
    [
      'Gmail',
      'the body names the company and its postal address',
      ({ mail }) => {
        for (const form of [String(mail.html), mail.text]) {
          expect(form).toContain('Kunde GmbH');
          expect(form).toContain('Hauptstrasse 1');
        }
      },
    ],
    [
      'Gmail',
      'links redirect to their destination and use the link host only',
      async ({ mail }) => {
        const links = [...String(mail.html).matchAll(/href="(https?:[^"]+)"/g)].map(([, url = '']) => url);
        expect(new Set(links.map((url) => new URL(url).hostname))).toEqual(new Set([LINK_HOST]));
        const [shop = ''] = links.filter((url) => url.includes('/c/'));
        expect(await request(shop, 'GET')).toMatchObject({
          status: 302,
          headers: { location: 'https://kunde.example/neu' },
        });
      },
    ],
    [
      both,
      'a GET of the unsubscribe URL changes nothing, as scanners follow links',
      async ({ oneClickUrl }) => {
        for (const method of ['GET', 'HEAD'])
          expect(await request(oneClickUrl, method)).toMatchObject({ status: 200 });
        expect(await daemon.api.allEvents({ event: 'email_unsubscribed' })).toEqual([]);
        const again = await send({ ...newsletter, to: BOB });
        expect(again.status).toBe(202);
      },
    ],
    [
      both,
      'one POST of `List-Unsubscribe=One-Click` unsubscribes, without cookie, redirect or confirmation',
      async ({ oneClickUrl }) => {
        const response = await request(oneClickUrl, 'POST', 'List-Unsubscribe=One-Click');
        expect(response.status).toBe(200);
        expect(response.headers.location).toBeUndefined();
        expect(response.headers['set-cookie']).toBeUndefined();
        const [event] = await daemon.api.allEvents({ event: 'email_unsubscribed' });
        expect(event).toMatchObject({ method: 'one_click', recipient: ADA });
      },
    ],
    [
      both,
      'an opt-out takes effect within two days: immediately, the next send is rejected',
      async () => {
        const refused = await send(newsletter);
        expect(refused.status).toBe(403);
        expect(refused.error).toMatchObject({ code: 'RECIPIENT_UNSUBSCRIBED' });
        expect((await send({ ...newsletter, to: BOB })).status).toBe(202);
      },
    ],
    // Complaints.
    [
      'Gmail',
      'Feedback-ID has four parts, the last of which is constant, and is signed',
      ({ fields, signatures }) => {
        const [campaign, account, stream, service, ...more] = only(fields, 'feedback-id').split(':');
        expect([account, stream, service, more]).toEqual([daemon.api.accountId, 'mk', 'mxpostriderexam', []]);
        expect(service).toMatch(/^.{5,15}$/);
        expect(campaign).toBe(newsletter['campaignId']);
        expect(signatures[0]?.signedFields).toContain('feedback-id');
      },
    ],
    [
      'Yahoo',
      'CFBL-Address is present and signed',
      ({ fields, signatures }) => {
        expect(only(fields, 'cfbl-address')).toMatch(/^fbl-[a-z0-9]+@return-a\.kunde\.example; report=arf$/);
        expect(signatures[0]?.signedFields).toContain('cfbl-address');
      },
    ],
  ];

  it.each(REQUIREMENTS)('%s: %s', async (_by, _requirement, check) => {
    await check(delivered);
  });

  it('the signature is invalid after a change of From or List-Unsubscribe-Post', () => {
    const forged = delivered.smtp.raw.replace('neues@kunde.example', 'neues@gmail.example');
    expect(verifyDkim(Buffer.from(forged, 'latin1'), knot)).toMatchObject([{ valid: false }]);
    const noPost = delivered.smtp.raw.replace('List-Unsubscribe=One-Click', 'List-Unsubscribe=Two-Clicks');
    expect(verifyDkim(Buffer.from(noPost, 'latin1'), knot)).toMatchObject([{ valid: false }]);
  });

  const request = (url: string, method: string, body?: string) =>
    requestHttps(url, { ca: authority.cert, method, ...(body === undefined ? {} : { body }) });
});

function isReturnPathSpf({ name, type, value }: DomainRecord): boolean {
  return name === 'return-a.kunde.example' && type === 'TXT' && value.startsWith('v=spf1');
}

function headerOf(raw: string): string {
  return raw.slice(0, raw.indexOf('\r\n\r\n') + 2);
}

function fieldsOf(raw: string): Map<string, string[]> {
  const fields = new Map<string, string[]>();
  for (const line of headerOf(raw)
    .replace(/\r\n(?=[ \t])/g, '')
    .split('\r\n')) {
    const [, name = '', value = ''] = /^([!-9;-~]+):[ \t]*(.*)$/.exec(line) ?? [];
    if (name === '') continue;
    const key = name.toLowerCase();
    fields.set(key, [...(fields.get(key) ?? []), value.trim()]);
  }
  return fields;
}

function only(fields: Map<string, string[]>, name: string): string {
  const found = fields.get(name) ?? [];
  if (found.length !== 1) throw new Error(`${name} occurs ${found.length} times`);
  return found[0] ?? '';
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1);
}
