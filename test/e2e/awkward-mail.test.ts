import { type ParsedMail, simpleParser } from 'mailparser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CreatedDomain, SendData, VerifiedDomain } from '../support/api-client.ts';
import { HOSTNAME, type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { verifyDkim } from '../support/dkimpy.ts';
import { type Knot, startKnot } from '../support/knot.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { type Postfix, startPostfix } from '../support/postfix.ts';
import { requirePrograms } from '../support/required-programs.ts';

/*
 * Mail that is hard to carry: what a stranger's server stores is what was meant, and its signature holds.
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

describe.skipIf(required.missing)(`awkward mail${required.reason}`, () => {
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

    const wish = { domain: 'kunde.example', useCaseId: 'tx-local' };
    const { dnsRecords, domainId } = (await daemon.api.put<CreatedDomain>('/web-setup/domains', wish)).data;
    await knot.serve(
      'kunde.example',
      dnsRecords.filter(({ value }) => value !== 'Creation in progress'),
    );
    await knot.serveLines(HOSTNAME, (await daemon.cli('zone')).split('\n'));
    const verified = await daemon.api.post<VerifiedDomain>(`/web-setup/domains/${domainId}/verify`);
    expect(verified.data.status).toBe('SUCCESS');
  });
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

  /** Sends and returns the mail as stored, once as octets and once as a reader sees it; it must be signed well. */
  async function carry(change: object, to = ADA): Promise<{ raw: string; mail: ParsedMail }> {
    const before = await postfix.mail(to);
    const { delivery } = await send(to, change);
    expect(delivery).toMatchObject({ status: 'delivered' });
    const after = await postfix.waitForMail(to, before.length + 1);
    const stored = after.find((one) => !before.some((other) => other.equals(one))) ?? Buffer.alloc(0);
    expect(verifyDkim(stored, knot)).toMatchObject([{ domain: 'kunde.example', valid: true }]);
    return { raw: stored.toString('latin1'), mail: await simpleParser(stored) };
  }

  const text = async (given: string) => (await carry({ text: given })).mail.text?.replace(/\n+$/, '');

  it.each<[what: string, given: string]>([
    ['lines of dots', '.\n..\n...\n.hidden\n\n.'],
    ['lines that begin like a mailbox', 'From here on\n>From there\nFrom: me'],
    ['blanks and tabs at the ends of lines', 'a  \n\tb\t\n  c'],
    ['blank lines in a row', 'a\n\n\n\nb'],
    ['a line of 5,000 characters', 'word '.repeat(1000).trim()],
    ['a line of 5,000 characters without a blank', 'x'.repeat(5000)],
    ['what is not ASCII', 'Zwölf Boxkämpfer jagen Viktor – 東京 – 🚚 – نص'],
    ['what looks like an encoded word', '=?utf-8?q?no?= =C3=BC ='],
    ['what looks like the end of a part', '--\n----=_Part\n--boundary--'],
  ])('carries a text with %s', async (_, given) => {
    expect(await text(given)).toBe(given);
  });

  it.each<[what: string, given: string]>([
    ['of the old Macintosh', 'a\rb\rc'],
    ['of DOS', 'a\r\nb\r\nc'],
    ['of all kinds', 'a\nb\r\nc'],
  ])('carries line ends %s as lines', async (_, given) => {
    expect(await text(given)).toBe('a\nb\nc');
  });

  it('carries html in one line of 200 KB', async () => {
    const html = `<p>${'<b>fett</b> und weiter, '.repeat(8000)}</p>`;
    const { mail, raw } = await carry({ html: html + COMPLIANCE });
    expect(mail.html).toContain(html);
    expect(Math.max(...raw.split('\n').map((line) => line.length))).toBeLessThanOrEqual(998);
  });

  it.each<[what: string, subject: string]>([
    ['as long as it may be', 'Wort '.repeat(199).trim()],
    ['as long as it may be, without a blank', 'x'.repeat(998)],
    ['of 300 signs beyond ASCII', '東京都庁'.repeat(75)],
    ['with blanks around it', '  Hello   there  '],
    ['that looks encoded', '=?utf-8?q?Hello?='],
    ['with quotes, brackets and a colon', 'Re: "Hello" <there> (you)'],
  ])('carries a subject %s', async (_, subject) => {
    const { mail, raw } = await carry({ subject });
    // Blanks around a header's value are not part of it (RFC 5322 §3.6.5).
    expect(mail.subject?.trim()).toBe(subject.trim());
    expect(Math.max(...raw.split('\n').map((line) => line.length))).toBeLessThanOrEqual(998);
  });

  it('carries ten attachments of 2 MB together, byte for byte', async () => {
    const contents = Array.from({ length: 10 }, (_, n) =>
      Buffer.from(Array.from({ length: n === 0 ? 2 * MIB - 9 : 1 }, (_, at) => (at * 7 + n) % 256)),
    );
    const { mail } = await carry({
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

  it('carries an image that stands in the html', async () => {
    const png = Buffer.from('iVBORw0KGgo=', 'base64');
    const { mail } = await carry({
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

  it('carries a caller’s own way to unsubscribe, and then none of ours beside it', async () => {
    const { raw } = await carry({ headers: { 'List-Unsubscribe': '<mailto:raus@kunde.example>' } });
    expect(raw.match(/^List-Unsubscribe:.*$/gim)).toEqual(['List-Unsubscribe: <mailto:raus@kunde.example>']);
    expect(raw).not.toMatch(/^List-Unsubscribe-Post:/im);
  });

  it('reaches an address beyond ASCII with SMTPUTF8', async () => {
    const { mail, raw } = await carry({ subject: 'Grüße' }, JOERG);
    expect(Buffer.from(raw, 'latin1').toString()).toMatch(/^To: jörg@empfang\.example$/m);
    expect(mail.subject).toBe('Grüße');
    expect(raw).toMatch(/\bwith UTF8SMTPS?\b/);
  });

  it('reaches a domain beyond ASCII', async () => {
    const before = (await postfix.mail(IDN)).length;
    expect((await send('ada@müller.example', {})).delivery).toMatchObject({ status: 'delivered' });
    await postfix.waitForMail(IDN, before + 1);
  });

  it('waits, and does not bounce, where the name server refuses to answer', async () => {
    const { messageId, delivery } = await send('ada@elsewhere.test', {});
    expect(delivery).toMatchObject({ status: 'deferred' });
    expect((await daemon.api.message(messageId)).timeline.at(-1)).toMatchObject({
      event: 'email_delayed',
      enhancedCode: '4.4.3',
    });
  });

  it('accounts for every message at both ends', async () => {
    expect(await readLedger(daemon.api)).toEqual({ accepted, delivered, bounced: 0, failed: 0, queued: 1 });
    const stored = await Promise.all([ADA, JOERG, IDN].map((mailbox) => postfix.mail(mailbox)));
    expect(stored.flat()).toHaveLength(delivered);
    expect(await faultsInEvents(daemon.api)).toEqual([]);
  });
});
