// Long: starts SpamAssassin and Rspamd, which load all their rules.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOSTNAME } from '../support/daemon.ts';
import { startGroup } from '../support/group.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';
import type { SinkMessage } from '../support/smtp-sink-session.ts';
import {
  checkWithSpamAssassin,
  formatSpamFilterResult,
  type Rspamd,
  received,
  startRspamd,
} from '../support/spam-filters.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * The score that SpamAssassin and Rspamd give to delivered messages without network tests: every matched rule is
 * printed, and the score has a limit. The usual thresholds are 5 (SpamAssassin) and 15 (Rspamd); the limits here
 * leave a margin for network tests.
 *
 *   test ──HTTP──▶ postrider ──SMTP──▶ sink ──▶ the message ──▶ spamassassin -L -t
 *                                                          └──▶ rspamd ──DNS──▶ the test's name server
 */
const required = requirePrograms('spamassassin', 'rspamd');

const ORDER = `<html><head><title>Your order</title></head><body>
<h1>Thank you for your order, {{name}}</h1>
<p>We received your order <b>2026-1041</b> today and will ship it tomorrow. You can follow it
<a href="https://www.kunde.example/orders/2026-1041">on our website</a>.</p>
<table border="0" cellpadding="4">
<tr><th align="left">Item</th><th align="right">Quantity</th><th align="right">Price</th></tr>
<tr><td>Rain jacket, blue, size M</td><td align="right">1</td><td align="right">€ 89.00</td></tr>
<tr><td>Wool socks, pair</td><td align="right">3</td><td align="right">€ 36.00</td></tr>
<tr><td colspan="2">Total including VAT</td><td align="right">€ 125.00</td></tr>
</table>
<p>We ship to: Ada Byron, Lindenweg 4, 10115 Berlin. Questions? Reply to this message or call
<a href="tel:+4930901820">030 901820</a>.</p>
<p>{{company_address_html}} {{unsubscribe_email_html}}</p></body></html>`;

const TEXT_ONLY = `Hello Ada,

your order 2026-1041 left our warehouse today and will reach you tomorrow.
You can follow it at https://www.kunde.example/orders/2026-1041

{{company_address_text}}
{{unsubscribe_email_text}}
`;

const INVITATION = `<p>Dear Ada,</p><p>we look forward to seeing you for the fitting of your rain jacket on
14 March 2026 at 10:00 in our shop in Berlin. Please accept or decline the invitation.</p>
<p>{{company_address_html}} {{unsubscribe_email_html}}</p>`;

const CALENDAR = [
  'BEGIN:VCALENDAR',
  'VERSION:2.0',
  'PRODID:-//Kunde GmbH//Shop//EN',
  'METHOD:REQUEST',
  'BEGIN:VEVENT',
  'UID:fitting-1041@kunde.example',
  'SEQUENCE:0',
  'DTSTAMP:20260301T090000Z',
  'DTSTART:20260314T090000Z',
  'DTEND:20260314T093000Z',
  'SUMMARY:Fitting',
  'LOCATION:Hauptstrasse 1\\, 10115 Berlin',
  'ORGANIZER;CN=Kunde Shop:mailto:events@kunde.example',
  'ATTENDEE;CN=Ada Byron;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:ada@empfang.example',
  'END:VEVENT',
  'END:VCALENDAR',
  '',
].join('\r\n');

const NEWSLETTER = readFileSync(new URL('../mail/newsletter/newsletter.html', import.meta.url), 'utf8');

describe.skipIf(required.missing)(`spam filters${required.reason}`, () => {
  let setup: SendingSetup;
  let rspamd: Rspamd;

  beforeAll(async () => {
    setup = await startSendingSetup({ 'public.url': `https://${HOSTNAME}` });
    rspamd = await startRspamd({ dns: setup.dns.address });
  });
  afterAll(async () => {
    await rspamd?.stop();
    await setup?.stop();
  });

  async function expectBelow(
    title: string,
    message: SinkMessage | undefined,
    limits: { spamAssassin: number; rspamd: number },
  ) {
    if (message === undefined) throw new Error('the message did not arrive');
    const mail = received(message);
    const spamAssassin = await checkWithSpamAssassin(mail);
    const rspamdResult = await rspamd.check(mail, message);
    console.log(
      [
        title,
        formatSpamFilterResult('SpamAssassin', spamAssassin),
        formatSpamFilterResult('Rspamd', rspamdResult),
      ].join('\n'),
    );
    const names = rspamdResult.rules.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['R_DKIM_ALLOW', 'R_SPF_ALLOW', 'DMARC_POLICY_ALLOW']));
    expect(names).not.toContain('PHISHING');
    expect(spamAssassin.score).toBeLessThanOrEqual(limits.spamAssassin);
    expect(rspamdResult.score).toBeLessThanOrEqual(limits.rspamd);
  }

  it('score an order below the limits', async () => {
    const before = setup.sink.count;
    await setup.daemon.api.send({
      from: 'Kunde Shop <orders@kunde.example>',
      to: 'Ada Byron <ada@empfang.example>',
      subject: 'Your order 2026-1041',
      html: ORDER,
      templateVariables: { name: 'Ada' },
      enableClickTracking: true,
    });
    const message = (await setup.sink.waitFor(before + 1)).at(-1);
    await expectBelow('A transactional order', message, { spamAssassin: 1.5, rspamd: 1 });
  });

  it('score a newsletter of 200 links below the limits', async () => {
    const { daemon, dns, sink } = setup;
    await verifiedDomain(daemon, dns, 'neues.example', { useCaseId: 'mk-local' });
    const { subscriptionGroupId, campaignId } = await startGroup(daemon.api, [
      { email: 'ada@empfang.example' },
    ]);
    const before = sink.count;
    await daemon.api.post(`/web-setup/campaigns/${campaignId}/send`, {
      subscriptionGroupId,
      from: 'Alpenglow Outdoor <news@neues.example>',
      subject: 'The winter sale starts today',
      html: NEWSLETTER,
      enableClickTracking: true,
      enableOpenTracking: true,
    });
    const message = (await sink.waitFor(before + 1)).at(-1);
    await expectBelow('A newsletter of 200 links', message, { spamAssassin: 2.5, rspamd: 2 });
  });

  it('score a text-only message below the limits', async () => {
    const before = setup.sink.count;
    await setup.daemon.api.send({
      from: 'Kunde Shop <orders@kunde.example>',
      to: 'Ada Byron <ada@empfang.example>',
      subject: 'Your parcel is on its way',
      text: TEXT_ONLY,
    });
    const message = (await setup.sink.waitFor(before + 1)).at(-1);
    await expectBelow('A text-only message', message, { spamAssassin: 1.5, rspamd: 1 });
  });

  it('score a calendar invitation below the limits', async () => {
    const before = setup.sink.count;
    await setup.daemon.api.send({
      from: 'Kunde Shop <events@kunde.example>',
      to: 'Ada Byron <ada@empfang.example>',
      subject: 'Invitation: fitting on 14 March',
      html: INVITATION,
      calendar: { method: 'REQUEST', content: CALENDAR },
    });
    const message = (await setup.sink.waitFor(before + 1)).at(-1);
    await expectBelow('A calendar invitation', message, { spamAssassin: 1.5, rspamd: 2 });
  });
});
