import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CreatedDomain, DomainRecord, MessageData, VerifiedDomain } from '../support/api-client.ts';
import { HOSTNAME, PUBLIC_ADDRESS, type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { verifyDkim } from '../support/dkimpy.ts';
import { eventually } from '../support/eventually.ts';
import { type Knot, startKnot } from '../support/knot.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { type Postfix, startPostfix } from '../support/postfix.ts';
import { checkSpf } from '../support/pyspf.ts';
import { requirePrograms } from '../support/required-programs.ts';

/*
 * Verifies a domain and delivers mail with independent software on the other side: a customer publishes the printed
 * records in Knot, and Postfix receives the messages.
 *
 *   test ──HTTP──▶ postrider ──DNS──▶ Knot    kunde.example         what the API printed
 *                      │                      mx.postrider.example  what `postrider zone` printed
 *                      │                      empfang.example       MX 10 mx.empfang.example
 *                      │ SMTP + STARTTLS      example               nothing else exists
 *                      ▼
 *                   Postfix ──▶ maildirs of ada and bob ──▶ dkimpy, pyspf (keys and policies from Knot)
 */
const required = requirePrograms('knot', 'postfix', 'dkimpy', 'pyspf');

/** The header fields that the DKIM signature covers. */
const SIGNED_FIELDS =
  'from to subject cc date message-id reply-to list-unsubscribe list-unsubscribe-post feedback-id mime-version content-type cfbl-address'.split(
    ' ',
  );

const ADA = 'ada@empfang.example';
const BOB = 'bob@empfang.example';
const OTHER_ADDRESS = '192.0.2.99';

const PDF = Buffer.from('%PDF-1.4\n\u0000\u0001 not really a document \r\n.\r\n'.repeat(500), 'latin1');
const SUBJECT = 'Ihre Bestellung № 10042 – schöne Grüße aus Köln, und noch viele weitere Wörter 🚚';

const ORDER = {
  to: `Ada Müller-Lüdenscheidt <${ADA}>`,
  cc: [`Zoë Ångström-Bob <${BOB}>`],
  from: 'Läden & Söhne <bestellung@kunde.example>',
  replyTo: 'Kundendienst <hilfe@kunde.example>',
  subject: 'Ihre Bestellung № {{number}} – schöne Grüße aus {{town}}, und noch viele weitere Wörter 🚚',
  html: '<p>Guten Tag {{name}},</p><p>.</p><p>{{company_address_html}}</p><p>{{unsubscribe_email_html}}</p>',
  templateVariables: { number: 10042, town: 'Köln', name: 'Ada & <Bob>' },
  attachments: [
    { name: 'Rechnung März 2026.pdf', contentType: 'application/pdf', content: PDF.toString('base64') },
  ],
  headers: { 'X-Order': 'zwölf' },
};

describe.skipIf(required.missing)(`verification and delivery${required.reason}`, () => {
  let knot: Knot;
  let postfix: Postfix;
  let daemon: RunningDaemon;
  let domain: CreatedDomain;
  /** The order for Ada as Postfix stored it. */
  let stored: Buffer = Buffer.alloc(0);
  let accepted = 0;

  beforeAll(async () => {
    postfix = await startPostfix({
      hostname: 'mx.empfang.example',
      mailboxes: [ADA, BOB],
      host: '127.0.0.2',
    });
    knot = await startKnot();
    daemon = await startDaemon({
      'dns.resolvers': [knot.address],
      'delivery.port': postfix.port,
      'delivery.allowPrivateNetworks': true,
    });
    await knot.serve('example', []);
    await knot.serve('kunde.example', []);
    await knot.serve('empfang.example', [
      { type: 'MX', name: 'empfang.example', value: postfix.hostname, priority: 10 },
      { type: 'A', name: postfix.hostname, value: postfix.host },
    ]);
  });
  afterAll(async () => {
    await daemon?.stop();
    await knot?.stop();
    await postfix?.stop();
  });

  /** Publishes the output of `postrider zone`, as an operator does. */
  const publishPlatform = async () => knot.serveLines(HOSTNAME, (await daemon.cli('zone')).split('\n'));

  const printedRecords = async () =>
    (await daemon.api.get<CreatedDomain>(`/web-setup/domains/${domain.domainId}/dns-records`)).data;

  const verify = async () =>
    (await daemon.api.post<VerifiedDomain>(`/web-setup/domains/${domain.domainId}/verify`)).data;

  /** Sends and waits for the outcome. */
  const send = async (body: Record<string, unknown>) => {
    const { data } = await daemon.api.send(body, { Prefer: 'wait=20' });
    accepted += data.totalRecipients;
    return data;
  };

  it('reports PENDING and four failed checks while the zone is empty', async () => {
    const created = await daemon.api.put<CreatedDomain>('/web-setup/domains', {
      domain: 'Kunde.Example.',
      useCaseId: 'tx-local',
    });
    expect(created.status).toBe(201);
    domain = created.data;
    expect(domain).toMatchObject({ domain: 'kunde.example', status: 'PENDING', altStatus: 'PENDING' });
    await publishPlatform();

    expect(await verify()).toMatchObject({
      status: 'PENDING',
      dkimEnabled: false,
      spfConfigured: false,
      dmarcConfigured: false,
      mxConfigured: false,
    });
    const refused = await daemon.api.send(ORDER);
    expect([refused.status, refused.error.code]).toEqual([403, 'DOMAIN_NOT_VERIFIED']);
  });

  it('prints six records, the last one when the secondary lane is provisioned', async () => {
    const records = await eventually('the record of the secondary lane', async () => {
      const { dnsRecords } = await printedRecords();
      return dnsRecords.at(-1)?.value === 'Creation in progress' ? null : dnsRecords;
    });
    expect(records.map(({ type, name, purpose }) => [type, name, purpose])).toEqual([
      ['TXT', expect.stringMatching(/^[a-z0-9]+\._domainkey\.kunde\.example$/), undefined],
      ['TXT', 'kunde.example', 'SPF'],
      ['CNAME', 'link.kunde.example', 'Tracking'],
      ['TXT', '_dmarc.kunde.example', 'DMARC'],
      ['MX', 'return-a.kunde.example', undefined],
      ['CNAME', expect.stringMatching(/^[a-z0-9]+\._domainkey\.kunde\.example$/), 'Secondary DKIM'],
    ]);
    await publishPlatform();
  });

  it('reports SUCCESS when Knot serves exactly those records', async () => {
    await knot.serve('kunde.example', (await printedRecords()).dnsRecords);
    expect(await verify()).toMatchObject({
      status: 'SUCCESS',
      dkimEnabled: true,
      spfConfigured: true,
      dmarcConfigured: true,
      mxConfigured: true,
      altStatus: 'ACTIVE',
      altDkimEnabled: true,
    });
  });

  it('delivers the message unchanged to the MX', async () => {
    const sent = await send(ORDER);
    expect(sent).toMatchObject({
      status: 'sent',
      from: ORDER.from,
      totalRecipients: 2,
      recipients: [
        { email: ADA, status: 'sent', role: 'to' },
        { email: BOB, status: 'sent', role: 'cc' },
      ],
      delivery: { status: 'delivered', smtpReply: expect.stringMatching(/^250 2\.0\.0 Ok: queued as/) },
    });

    [stored = stored] = await postfix.waitForMail(ADA, 1);
    const mail = await simpleParser(stored);
    expect(mail.subject).toBe(SUBJECT);
    expect(mail.from?.value).toEqual([{ name: 'Läden & Söhne', address: 'bestellung@kunde.example' }]);
    expect(mail.to).toMatchObject({ value: [{ name: 'Ada Müller-Lüdenscheidt', address: ADA }] });
    expect(mail.cc).toMatchObject({ value: [{ name: 'Zoë Ångström-Bob', address: BOB }] });
    expect(mail.replyTo?.value).toEqual([{ name: 'Kundendienst', address: 'hilfe@kunde.example' }]);
    expect(mail.html).toContain('<p>Guten Tag Ada &amp; &lt;Bob&gt;,</p><p>.</p>');
    expect(mail.html).toContain('Hauptstrasse 1');
    expect(mail.text).toContain('Guten Tag Ada & <Bob>,');
    expect(mail.attachments).toMatchObject([
      { filename: 'Rechnung März 2026.pdf', contentType: 'application/pdf' },
    ]);
    expect(mail.attachments[0]?.content.equals(PDF)).toBe(true);
    expect(mail.headers.get('x-order')).toBe(`=?utf-8?b?${Buffer.from('zwölf').toString('base64')}?=`);

    const [copy] = await postfix.waitForMail(BOB, 1);
    const bobs = await simpleParser(copy ?? '');
    expect(bobs.messageId).toBe(mail.messageId);
    expect(bobs.to).toEqual(mail.to);
    expect(returnPath(copy)).not.toBe(returnPath(stored));
  });

  it('encrypts with STARTTLS although the certificate is self-signed', () => {
    expect(headerText(stored)).toMatch(
      /^Received: from mx\.postrider\.example .*\(using TLSv1\.3 with cipher /m,
    );
  });

  it('passes DKIM in dkimpy with the From domain, and signs every field once more than it occurs', () => {
    const [signature, ...others] = verifyDkim(stored, knot);
    expect(others).toEqual([]);
    expect(signature).toMatchObject({ domain: 'kunde.example', valid: true, fault: '' });
    const signed = signature?.signedFields ?? [];
    for (const name of SIGNED_FIELDS) {
      const present = fieldsNamed(stored, name);
      expect([name, signed.filter((field) => field === name).length]).toEqual([name, present + 1]);
    }
  });

  it.each([
    'Subject: You have won',
    'From: Attacker <a@evil.example>',
    'To: x@evil.example',
    'Cc: x@evil.example',
  ])('fails DKIM after "%s" is prepended', (field) => {
    expect(validity(insertAbove(stored, field))).toEqual([false]);
  });

  it.each(SIGNED_FIELDS.slice(4))('fails DKIM with a second %s', (name) => {
    expect(validity(insertAbove(stored, `${name}: forged`))).toEqual([false]);
  });

  it.each([
    ['the sender', (text: string) => text.replace('bestellung@kunde.example', 'chef@kunde.example')],
    ['the subject', (text: string) => text.replace(/^Subject: /m, 'Subject: Re: ')],
    [
      'the unsubscribe URL',
      (text: string) => text.replace('List-Unsubscribe: <http', 'List-Unsubscribe: <HTTP'),
    ],
    ['the body', (text: string) => text.replace('Guten Tag', 'Guten Tog')],
    ['the end of the body', (text: string) => `${text}one more line\n`],
  ])('fails DKIM after a change of %s', (_, alter) => {
    const altered = alter(stored.toString('latin1'));
    expect(altered).not.toBe(stored.toString('latin1'));
    expect(validity(Buffer.from(altered, 'latin1'))).toEqual([false]);
  });

  it('passes DKIM after a server in transit adds a field', () => {
    expect(validity(insertAbove(stored, 'X-Spam-Status: No'))).toEqual([true]);
  });

  it('uses the return path of the platform, which passes SPF, until the one of the domain has SPF', () => {
    const sender = returnPath(stored);
    expect(sender).toMatch(/^b-[a-z0-9]+@mx\.postrider\.example$/);
    expect(spf(sender, PUBLIC_ADDRESS)).toBe('pass');
    expect(spf(sender, OTHER_ADDRESS)).toBe('softfail');
    expect(spf('bestellung@kunde.example', PUBLIC_ADDRESS)).toBe('pass');
  });

  it('uses the return path of the domain, which passes SPF, after its SPF record is published', async () => {
    const { dnsRecords, recommendedDnsRecords } = await printedRecords();
    await knot.serve('kunde.example', [...dnsRecords, ...recommendedDnsRecords.filter(isReturnPathSpf)]);
    const { status, checks } = await verify();
    expect(status).toBe('SUCCESS');
    expect(checks).toContainEqual(expect.objectContaining({ check: 'returnPathSpf', passed: true }));

    const before = (await postfix.mail(ADA)).map(returnPath);
    await send({ ...ORDER, cc: undefined, subject: 'Zweite Bestellung' });
    const second = (await postfix.waitForMail(ADA, 2)).find((mail) => !before.includes(returnPath(mail)));
    const sender = returnPath(second);
    expect(sender).toMatch(/^b-[a-z0-9]+@return-a\.kunde\.example$/);
    expect(spf(sender, PUBLIC_ADDRESS)).toBe('pass');
    expect(spf(sender, OTHER_ADDRESS)).toBe('softfail');
    expect(verifyDkim(second ?? '', knot)).toMatchObject([{ domain: 'kunde.example', valid: true }]);
  });

  it('passes DKIM for a message of one line of ASCII', async () => {
    const html = '{{company_address_html}} {{unsubscribe_email_html}}';
    await send({ to: ADA, from: 'a@kunde.example', subject: 'x', html });
    for (const mail of await postfix.waitForMail(ADA, 3)) expect(validity(mail)).toEqual([true]);
  });

  it('delivers a template that is sent repeatedly, each message with its own values and a valid signature', async () => {
    const rows = Array.from({ length: 30 }, (_, number) => `<tr><td>Artikel № ${number}</td></tr>`).join(
      '\n',
    );
    const html = `<p>Guten Tag {{name}},</p>\n<p>.{{number}}</p><table>\n${rows}\n</table>
<p><a href="https://kunde.example/{{number}}">Verfolgen</a></p>{{company_address_html}} {{unsubscribe_email_html}}`;
    const names = ['Ada', 'Bob & <Eve>', 'Zoë = 1', '.', `${'x'.repeat(990)} ${'ü'.repeat(80)}`, 'Ada'];
    for (const [number, name] of names.entries())
      await send({
        to: ADA,
        from: 'a@kunde.example',
        subject: `Bestellung ${number}`,
        html,
        templateVariables: { name, number },
      });
    const received = await postfix.waitForMail(ADA, 3 + names.length);
    const mails = await Promise.all(received.map((stored) => simpleParser(stored)));
    for (const [number, name] of names.entries()) {
      const index = mails.findIndex(({ subject }) => subject === `Bestellung ${number}`);
      const escaped = name.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
      expect(mails[index]?.html).toContain(`<p>Guten Tag ${escaped},</p>\n<p>.${number}</p>`);
      expect(mails[index]?.html).toContain('<tr><td>Artikel № 29</td></tr>');
      expect(mails[index]?.text).toContain(`Guten Tag ${name},`);
      expect(validity(received[index] ?? Buffer.alloc(0))).toEqual([true]);
    }
  });

  it('records a hard bounce for a rejected recipient, and suppresses the address', async () => {
    const nobody = { ...ORDER, to: 'niemand@empfang.example', cc: undefined };
    const sent = await send(nobody);
    expect(sent.delivery).toMatchObject({
      status: 'bounced',
      smtpReply: expect.stringMatching(/^550 5\.1\.1 .*User unknown/),
    });
    const [bounce] = await daemon.api.allEvents({ event: 'email_bounced' });
    expect(bounce).toMatchObject({
      messageId: sent.messageId,
      recipient: 'niemand@empfang.example',
      bounceType: 'hard',
      classification: 'invalid-recipient',
      smtpCode: 550,
      enhancedCode: '5.1.1',
      source: 'smtp',
      suppressed: true,
    });

    const rejected = await daemon.api.send(nobody);
    expect(rejected.status).toBe(403);
    expect(rejected.error).toMatchObject({
      code: 'RECIPIENT_SUPPRESSED',
      details: [{ field: 'to', recipient: 'niemand@empfang.example', reason: 'hard_bounce' }],
    });
  });

  it('shows host, reply and TLS parameters in the timeline', async () => {
    const messages = await daemon.api.allMessages();
    const first = messages.find(({ subject, recipient }) => subject === SUBJECT && recipient === ADA);
    const { timeline } = await daemon.api.message(first?.messageId ?? '');
    expect(kindsOf(timeline)).toEqual(['email_sent', 'attempt', 'email_delivered']);
    expect(timeline[1]).toMatchObject({
      type: 'attempt',
      lane: 'primary',
      attempt: 1,
      sessions: [
        {
          host: postfix.hostname,
          address: postfix.host,
          port: postfix.port,
          tls: { protocol: 'TLSv1.3', cipher: expect.stringContaining('TLS_'), verified: false },
          reply: { code: 250, enhanced: '2.0.0', text: expect.stringContaining('queued as') },
        },
      ],
    });
  });

  it('agrees with Postfix on the number of delivered messages', async () => {
    const ledger = await readLedger(daemon.api);
    expect(ledger).toEqual({ accepted, delivered: accepted - 1, bounced: 1, failed: 0, queued: 0 });
    const [adas, bobs] = await Promise.all([postfix.mail(ADA), postfix.mail(BOB)]);
    expect(adas.length + bobs.length).toBe(ledger.delivered);
    expect(await faultsInEvents(daemon.api)).toEqual([]);
  });

  const validity = (message: Buffer) => verifyDkim(message, knot).map(({ valid }) => valid);
  const spf = (sender: string, ip: string) => checkSpf({ ip, helo: HOSTNAME, sender }, knot).result;
});

function isReturnPathSpf({ name, type, value }: DomainRecord): boolean {
  return name === 'return-a.kunde.example' && type === 'TXT' && value.startsWith('v=spf1');
}

/** The unfolded header, one field per line. */
function headerText(message: Buffer): string {
  const text = message.toString('latin1');
  return text.slice(0, text.indexOf('\n\n') + 1).replace(/\n[ \t]+/g, ' ');
}

function fieldsNamed(message: Buffer, name: string): number {
  return headerText(message).match(new RegExp(`^${name}:`, 'gim'))?.length ?? 0;
}

/** The envelope sender, which Postfix stores in Return-Path. */
function returnPath(message: Buffer | undefined): string {
  return /^Return-Path: <(.*)>$/m.exec(message === undefined ? '' : headerText(message))?.[1] ?? '';
}

function insertAbove(message: Buffer, field: string): Buffer {
  return Buffer.concat([Buffer.from(`${field}\n`), message]);
}

function kindsOf(timeline: MessageData['timeline']): string[] {
  return timeline.map(({ type, event }) => event ?? type);
}
