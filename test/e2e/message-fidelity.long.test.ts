// Long: delivers large messages to Postfix with a name server of its own.
import { type ParsedMail, simpleParser } from 'mailparser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CreatedDomain, SendData, VerifiedDomain } from '../support/api-client.ts';
import { HOSTNAME, type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { verifyDkim } from '../support/dkimpy.ts';
import { startGroup } from '../support/group.ts';
import { type Knot, startKnot } from '../support/knot.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { type Postfix, startPostfix } from '../support/postfix.ts';
import { requirePrograms } from '../support/required-programs.ts';

/*
 * Messages that are easily altered in transit: Postfix stores what the caller sent, with a valid DKIM signature.
 *
 *   test ──HTTP──▶ postrider ──SMTP + STARTTLS──▶ Postfix ──▶ maildirs ──▶ mailparser, dkimpy
 *                      └──DNS──▶ Knot
 */
const required = requirePrograms('knot', 'postfix', 'dkimpy');

const ADA = 'ada@empfang.example';
const JOERG = 'jörg@empfang.example';
const IDN = 'ada@xn--mller-kva.example';
const COMPLIANCE = '{{company_address_html}}{{unsubscribe_email_html}}';
const MIB = 1024 * 1024;

describe.skipIf(required.missing)(`message fidelity${required.reason}`, () => {
  let knot: Knot;
  let postfix: Postfix;
  let daemon: RunningDaemon;
  let accepted = 0;
  let delivered = 0;

  beforeAll(async () => {
    postfix = await startPostfix({
      hostname: 'mx.empfang.example',
      mailboxes: [ADA, JOERG, IDN],
      host: '127.0.0.2',
    });
    knot = await startKnot();
    daemon = await startDaemon({
      'dns.resolvers': [knot.address],
      'delivery.port': postfix.port,
      'delivery.allowPrivateNetworks': true,
    });
    await knot.serve('example', []);
    const toPostfix = (zone: string) => ({ type: 'MX', name: zone, value: postfix.hostname, priority: 10 });
    await knot.serve('empfang.example', [
      toPostfix('empfang.example'),
      { type: 'A', name: postfix.hostname, value: postfix.host },
    ]);
    await knot.serve('xn--mller-kva.example', [toPostfix('xn--mller-kva.example')]);

    await knot.serveLines(HOSTNAME, (await daemon.cli('zone')).split('\n'));
    await verify('kunde.example', 'tx-local');
    await verify('kunde-news.example', 'mk-local');
  });

  async function verify(domain: string, useCaseId: string): Promise<void> {
    const created = await daemon.api.put<CreatedDomain>('/web-setup/domains', { domain, useCaseId });
    const { dnsRecords, domainId } = created.data;
    await knot.serve(
      domain,
      dnsRecords.filter(({ value }) => value !== 'Creation in progress'),
    );
    const verified = await daemon.api.post<VerifiedDomain>(`/web-setup/domains/${domainId}/verify`);
    expect(verified.data.status).toBe('SUCCESS');
  }
  afterAll(async () => {
    await daemon?.stop();
    await knot?.stop();
    await postfix?.stop();
  });

  async function send(to: string, change: object): Promise<SendData> {
    const body = { from: 'a@kunde.example', to, subject: 'Hello', html: COMPLIANCE, ...change };
    const { data } = await daemon.api.send(body, { Prefer: 'wait=25' });
    accepted++;
    if (data.delivery?.status === 'delivered') delivered++;
    return data;
  }

  /** Sends; returns the stored message, raw and parsed, after checking its signature. */
  async function deliver(change: object, to = ADA): Promise<{ raw: string; mail: ParsedMail }> {
    const before = await postfix.mail(to);
    const { delivery } = await send(to, change);
    expect(delivery).toMatchObject({ status: 'delivered' });
    const after = await postfix.waitForMail(to, before.length + 1);
    const stored = after.find((one) => !before.some((other) => other.equals(one))) ?? Buffer.alloc(0);
    expect(verifyDkim(stored, knot)).toMatchObject([{ domain: 'kunde.example', valid: true }]);
    return { raw: stored.toString('latin1'), mail: await simpleParser(stored) };
  }

  const deliverText = async (text: string) => (await deliver({ text })).mail.text?.replace(/\n+$/, '');

  it.each<[what: string, text: string]>([
    ['lines of dots', '.\n..\n...\n.hidden\n\n.'],
    ['lines that begin with From', 'From here on\n>From there\nFrom: me'],
    ['trailing spaces and tabs', 'a  \n\tb\t\n  c'],
    ['several empty lines', 'a\n\n\n\nb'],
    ['a line of 5,000 characters', 'word '.repeat(1000).trim()],
    ['a line of 5,000 characters without a space', 'x'.repeat(5000)],
    ['non-ASCII characters', 'Zwölf Boxkämpfer jagen Viktor – 東京 – 🚚 – نص'],
    ['text in the form of an encoded word', '=?utf-8?q?no?= =C3=BC ='],
    ['text in the form of a MIME boundary', '--\n----=_Part\n--boundary--'],
  ])('delivers a text with %s', async (_, text) => {
    expect(await deliverText(text)).toBe(text);
  });

  it.each<[what: string, text: string]>([
    ['CR', 'a\rb\rc'],
    ['CRLF', 'a\r\nb\r\nc'],
    ['mixed', 'a\nb\r\nc'],
  ])('normalizes %s line ends', async (_, text) => {
    expect(await deliverText(text)).toBe('a\nb\nc');
  });

  it('delivers html of one line of 200 KB', async () => {
    const html = `<p>${'<b>fett</b> und weiter, '.repeat(8000)}</p>`;
    const { mail, raw } = await deliver({ html: html + COMPLIANCE });
    expect(mail.html).toContain(html);
    expect(Math.max(...raw.split('\n').map((line) => line.length))).toBeLessThanOrEqual(998);
  });

  it('delivers html of 1 MB, and the text that is derived from it', async () => {
    const rows = Array.from(
      { length: 20_000 },
      (_, n) => `<tr><td>Artikel ${n}, größer</td><td>${n},90 €</td></tr>`,
    );
    const html = `<table>\n${rows.join('\n')}\n</table>`;
    expect(html.length).toBeGreaterThan(MIB - 100_000);
    const { mail } = await deliver({ html: html + COMPLIANCE });
    expect(mail.html).toContain(html);
    const text = mail.text ?? '';
    expect([0, 9_999, 19_999].every((n) => text.includes(`Artikel ${n}, größer ${n},90 €`))).toBe(true);
  });

  it('delivers the copies of a campaign, each with the values of its recipient and a valid signature', async () => {
    const members = [
      { email: ADA, firstName: 'Ada' },
      { email: IDN, firstName: 'Jörg <b>' },
    ];
    const { subscriptionGroupId, campaignId } = await startGroup(daemon.api, members);
    const rows = Array.from({ length: 1500 }, (_, n) => `<p>Angebot ${n} für {{firstName}}</p>`).join('\n');
    const before = await Promise.all(members.map(({ email }) => postfix.mail(email)));
    const sent = await daemon.api.post(`/web-setup/campaigns/${campaignId}/send`, {
      from: 'news@kunde-news.example',
      subject: 'Neues für {{firstName}}',
      html: rows + COMPLIANCE,
      subscriptionGroupId,
    });
    expect(sent.status, sent.text).toBe(202);
    accepted += members.length;
    for (const [index, { email, firstName }] of members.entries()) {
      const older = before[index] ?? [];
      const stored = (await postfix.waitForMail(email, older.length + 1)).filter(
        (one) => !older.some((other) => other.equals(one)),
      );
      expect(stored).toHaveLength(1);
      delivered++;
      const raw = stored[0] ?? Buffer.alloc(0);
      expect(verifyDkim(raw, knot)).toMatchObject([{ domain: 'kunde-news.example', valid: true }]);
      const mail = await simpleParser(raw);
      const shown = firstName.replace('<', '&lt;').replace('>', '&gt;');
      expect(mail.subject).toBe(`Neues für ${firstName}`);
      expect(mail.html).toContain(rows.replaceAll('{{firstName}}', shown));
      expect(mail.text).toContain(`Angebot 1499 für ${firstName}`);
    }
  });

  it.each<[what: string, subject: string]>([
    ['of the maximum length', 'Wort '.repeat(199).trim()],
    ['of the maximum length without a space', 'x'.repeat(998)],
    ['of 300 non-ASCII characters', '東京都庁'.repeat(75)],
    ['with leading and trailing spaces', '  Hello   there  '],
    ['in the form of an encoded word', '=?utf-8?q?Hello?='],
    ['with quotes, brackets and a colon', 'Re: "Hello" <there> (you)'],
  ])('delivers a subject %s', async (_, subject) => {
    const { mail, raw } = await deliver({ subject });
    // Spaces around the body of a field do not belong to it (RFC 5322 §3.6.5).
    expect(mail.subject?.trim()).toBe(subject.trim());
    expect(Math.max(...raw.split('\n').map((line) => line.length))).toBeLessThanOrEqual(998);
  });

  it('delivers ten attachments of 2 MB in total, byte for byte', async () => {
    const contents = Array.from({ length: 10 }, (_, n) =>
      Buffer.from(Array.from({ length: n === 0 ? 2 * MIB - 9 : 1 }, (_, at) => (at * 7 + n) % 256)),
    );
    const { mail } = await deliver({
      attachments: contents.map((content, n) => ({
        name: `Anhang ${n} – „schön“.bin`,
        contentType: 'application/octet-stream',
        content: content.toString('base64'),
      })),
    });
    expect(mail.attachments.map(({ filename }) => filename)).toEqual(
      contents.map((_, n) => `Anhang ${n} – „schön“.bin`),
    );
    expect(mail.attachments.every(({ content }, n) => content.equals(contents[n] ?? Buffer.alloc(0)))).toBe(
      true,
    );
  });

  it('delivers an inline image', async () => {
    const png = Buffer.from('iVBORw0KGgo=', 'base64');
    const { mail } = await deliver({
      html: `<img src="cid:logo@kunde">${COMPLIANCE}`,
      attachments: [
        {
          name: 'logo.png',
          contentType: 'image/png',
          content: png.toString('base64'),
          contentId: 'logo@kunde',
        },
      ],
    });
    expect(mail.attachments).toMatchObject([
      { contentId: '<logo@kunde>', contentDisposition: 'inline', related: true },
    ]);
  });

  it('delivers the List-Unsubscribe of the caller instead of the one of the platform', async () => {
    const { raw } = await deliver({ headers: { 'List-Unsubscribe': '<mailto:raus@kunde.example>' } });
    expect(raw.match(/^List-Unsubscribe:.*$/gim)).toEqual(['List-Unsubscribe: <mailto:raus@kunde.example>']);
    expect(raw).not.toMatch(/^List-Unsubscribe-Post:/im);
  });

  it('delivers to a non-ASCII local part with SMTPUTF8', async () => {
    const { mail, raw } = await deliver({ subject: 'Grüße' }, JOERG);
    expect(Buffer.from(raw, 'latin1').toString()).toMatch(/^To: jörg@empfang\.example$/m);
    expect(mail.subject).toBe('Grüße');
    expect(raw).toMatch(/\bwith UTF8SMTPS?\b/);
  });

  it('delivers to an internationalized domain', async () => {
    const before = (await postfix.mail(IDN)).length;
    expect((await send('ada@müller.example', {})).delivery).toMatchObject({ status: 'delivered' });
    await postfix.waitForMail(IDN, before + 1);
  });

  it('defers a message when the name server refuses the query', async () => {
    const { messageId, delivery } = await send('ada@elsewhere.test', {});
    expect(delivery).toMatchObject({ status: 'deferred' });
    expect((await daemon.api.message(messageId)).timeline.at(-1)).toMatchObject({
      event: 'email_delayed',
      enhancedCode: '4.4.3',
    });
  });

  it('agrees with Postfix on the number of delivered messages', async () => {
    expect(await readLedger(daemon.api)).toEqual({ accepted, delivered, bounced: 0, failed: 0, queued: 1 });
    const stored = await Promise.all([ADA, JOERG, IDN].map((mailbox) => postfix.mail(mailbox)));
    expect(stored.flat()).toHaveLength(delivered);
    expect(await faultsInEvents(daemon.api)).toEqual([]);
  });
});
