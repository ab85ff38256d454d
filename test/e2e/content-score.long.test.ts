// Long: starts spamd and Rspamd, which load all their rules.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type Rspamd, type Spamd, startRspamd, startSpamd } from '../support/spam-filters.ts';

/*
 * The score of content before it is sent, of the real filters:
 *
 *   test ──POST /web-setup/templates/preview──▶ postrider ──▶ spamd, rspamd
 */
const required = requirePrograms('spamd', 'rspamd');

/** The test text that every filter marks as spam. */
const GTUBE = 'XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X';
const FOOTER = '{{company_address_html}}{{unsubscribe_email_html}}';

interface Preview {
  checks: {
    id: string;
    level: string;
    score: number;
    threshold: number;
    rules: { name: string; points: number }[];
  }[];
}

describe.skipIf(required.missing)(`the spam score of content${required.reason}`, () => {
  let daemon: InProcess;
  let spamd: Spamd;
  let rspamd: Rspamd;

  beforeAll(async () => {
    daemon = await startInProcess();
    spamd = await startSpamd();
    rspamd = await startRspamd({ dns: '127.0.0.1:1' });
  });
  afterAll(async () => {
    await daemon?.stop();
    await spamd?.stop();
    await rspamd?.stop();
  });

  const scores = async (html: string) => {
    const api = await daemon.account('Shop');
    const body = { subject: 'Spring in the shop', html, from: 'news@shop.test', checkSpam: true };
    const { data } = await api.post<Preview>('/web-setup/templates/preview', body);
    return data.checks.filter(({ id }) => /spam/.test(id));
  };

  it('is reported by both after a reload, and distinguishes a newsletter from spam', async () => {
    expect(await scores(`<p>Hello Ann</p>${FOOTER}`)).toEqual([]);
    await daemon.reload({ 'checks.spamassassin': spamd.address, 'checks.rspamd': rspamd.url });
    const newsletter = await scores(
      `<h1>New jackets</h1><p>Hello Ann, our new rain jackets are here. We look forward to your visit in our shop.</p><p>${FOOTER}</p>`,
    );
    expect(newsletter).toMatchObject([
      { id: 'spamassassin', level: 'ok', threshold: 5 },
      { id: 'rspamd', level: 'ok' },
    ]);
    const spam = await scores(`<p>${GTUBE}</p>${FOOTER}`);
    expect(spam).toMatchObject([
      { id: 'spamassassin', level: 'bad' },
      { id: 'rspamd', level: 'bad' },
    ]);
    expect(spam[0]?.rules[0]).toMatchObject({ name: 'GTUBE', points: 1000 });
  });

  it('does not prevent a preview when a filter does not answer', async () => {
    await daemon.reload({ 'checks.spamassassin': '127.0.0.1:1' });
    expect(await scores(`<p>Hello</p>${FOOTER}`)).toMatchObject([{ id: 'spamUnavailable', level: 'warn' }]);
  });
});
