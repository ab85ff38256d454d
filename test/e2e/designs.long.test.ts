// Long: starts SpamAssassin, which loads all its rules for each of 24 messages, and Rspamd.
import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Design } from '../../src/mail/blocks/design.ts';
import { renderDesign } from '../../src/mail/blocks/render.ts';
import { parseTemplate } from '../../src/mail/template.ts';
import { HOSTNAME } from '../support/daemon.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';
import {
  checkWithSpamAssassin,
  formatSpamFilterResult,
  type Rspamd,
  received,
  startRspamd,
} from '../support/spam-filters.ts';

/*
 * The starters as they are delivered: their HTML is what the renderer made, with values in the place of variables, and
 * neither filter has an objection to the markup.
 *
 *   starter ──HTTP──▶ template ──▶ message ──SMTP──▶ sink ──▶ spamassassin -L -t
 *                                                        └──▶ rspamd
 */
const required = requirePrograms('spamassassin', 'rspamd');

/** Rules of the filters about HTML and MIME, by the beginning of their names. */
const MARKUP =
  /^(?:T_)?(?:HTML|MIME|TVD|BODY_8BITS|OBFU|FONT|TAG_|HIDDEN|ZERO|R_WHITE|R_SUSPICIOUS|R_BAD|R_PARTS|R_EMPTY|MANY_INVISIBLE|MANUAL|EXT_CSS|DATA_URI|PHISHING|HAS_ONION|SUSPICIOUS|LONG_|INVALID|CTYPE|STYLE|MPART|MISSING|PARTS|DOUBLE|BOGUS|EMPTY)/;

interface Starter {
  starterId: string;
  name: string;
  type: 'transactional' | 'marketing';
  subject: string;
  design: Design;
}

const VALUES = {
  orderNumber: 'A-10042',
  orderDate: '2026-03-01',
  total: '€ 125.00',
  orderUrl: 'https://www.kunde.example/orders/A-10042',
  resetUrl: 'https://www.kunde.example/reset/7f3a',
  firstName: 'Zoë & Tom',
};

describe.skipIf(required.missing)(`the starters as mail${required.reason}`, () => {
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

  async function deliver(starter: Starter) {
    const { daemon, sink } = setup;
    const { name, subject, design } = starter;
    const { data } = await daemon.api.post<{ template: { templateId: string; html: string } }>(
      '/web-setup/templates',
      { name, subject, design },
    );
    const before = sink.count;
    await daemon.api.send({
      from: 'Kunde Shop <shop@kunde.example>',
      to: 'Ada Byron <ada@empfang.example>',
      templateId: data.template.templateId,
      templateVariables: VALUES,
      enableClickTracking: false,
    });
    const message = (await sink.waitFor(before + 1)).at(-1);
    if (message === undefined) throw new Error('the message did not arrive');
    return { message, html: data.template.html };
  }

  it.each(['en', 'de', 'fr'])('arrive unchanged and get no points for their markup: %s', async (language) => {
    const { data } = await setup.daemon.api.get<{ starters: Starter[] }>(
      `/web-setup/templates/starters?language=${language}`,
    );
    expect(data.starters).toHaveLength(8);
    for (const starter of data.starters) {
      const { message, html } = await deliver(starter);
      expect(html).toBe(renderDesign(starter.design));

      const mail = received(message);
      const { html: arrived, text } = await simpleParser(mail, {
        skipHtmlToText: true,
        skipTextToHtml: true,
      });
      if (arrived === false) throw new Error('the message has no HTML');
      let at = 0;
      for (const literal of parseTemplate(html).texts) {
        const found = arrived.replaceAll('\r\n', '\n').indexOf(literal, at);
        expect(found, `${starter.starterId}: ${literal.slice(0, 80)}`).toBeGreaterThanOrEqual(at);
        at = found + literal.length;
      }
      expect(text).toContain('Kunde');
      expect(Buffer.byteLength(arrived)).toBeLessThan(25_000);

      const spamAssassin = await checkWithSpamAssassin(mail);
      const rspamdResult = await rspamd.check(mail, message);
      console.log(
        [
          `${starter.starterId} (${language})`,
          formatSpamFilterResult('SpamAssassin', spamAssassin),
          formatSpamFilterResult('Rspamd', rspamdResult),
        ].join('\n'),
      );
      const objections = [...spamAssassin.rules, ...rspamdResult.rules].filter(
        ({ name, score }) => score > 0.01 && MARKUP.test(name),
      );
      expect([starter.starterId, objections]).toEqual([starter.starterId, []]);
      expect(spamAssassin.score).toBeLessThanOrEqual(1.5);
      expect(rspamdResult.score).toBeLessThanOrEqual(1);
    }
  });
});
