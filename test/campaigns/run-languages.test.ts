import { describe, expect, it } from 'vitest';
import { createPublicPageSettings } from '../../src/accounts/public-pages.ts';
import { createComplianceTemplates } from '../../src/templates/compliance-templates.ts';
import { granted } from '../support/refusal.ts';
import { COMPLIANCE, startCampaigns } from './setup.ts';

/** Languages of members, in turns, with the text of the link for each of them. */
const LANGUAGES: [tag: string | null, text: string][] = [
  ['de', 'Abmelden'],
  [null, 'Annulla l&#39;iscrizione'],
  ['ja-JP', '配信を停止する'],
  ['fr', 'Partir'],
  ['fi', 'Annulla l&#39;iscrizione'],
  ['de-CH', 'Abmelden'],
];
const MEMBERS = 90;

/** A group with members in these languages, and an account whose language is Italian. */
async function start() {
  const setup = await startCampaigns();
  const settings = createPublicPageSettings(setup);
  const set = async (fr: string) =>
    granted(await settings.put('acct_one', { language: 'it', texts: { fr: { 'footer.unsubscribe': fr } } }));
  await set('Partir');
  for (let n = 0; n < MEMBERS; n++)
    await setup.member(`user${n}@example.net`, { language: LANGUAGES[n % LANGUAGES.length]?.[0] ?? null });
  return {
    ...setup,
    set,
    sharedIds: (messages: readonly { content_id: number }[]) =>
      new Set(messages.map(({ content_id }) => setup.tables.messages.content(content_id)?.shared_id)),
  };
}

describe('a campaign to people of several languages', () => {
  it('has the footer of each of them, and one body for each language', async () => {
    const { runner, send, progress, messages, content, sharedIds, until } = await start();
    const row = granted(await send());
    runner.start();
    await expect.poll(() => progress(row.campaign_id).queued).toBe(MEMBERS);
    const sent = messages(row);
    expect(new Set(sent.map(({ recipient }) => recipient)).size).toBe(MEMBERS);
    for (const message of sent) {
      const n = Number(/\d+/.exec(message.recipient)?.[0]);
      expect(content(message).html, message.recipient).toContain(
        `>${LANGUAGES[n % LANGUAGES.length]?.[1]}</a>`,
      );
    }
    expect(sharedIds(sent).size).toBe(4);
    expect(progress(row.campaign_id).skipped).toEqual({ withoutEmail: 0, notEligible: 0, notRenderable: 0 });
    await until(row.campaign_id, 'sending');
  });

  it('has texts that change while it is sent, from then on', async () => {
    const { runner, send, set, clock, progress, messages, content } = await start();
    const row = granted(await send({ perHour: 240 }));
    const queued = (count: number) => expect.poll(() => progress(row.campaign_id).queued).toBe(count);
    const next = async (count: number) => {
      clock.advance(15_100);
      runner.wake();
      await queued(count);
    };
    runner.start();
    await queued(1);
    for (let count = 2; count <= 4; count++) await next(count);
    await set('Quitter');
    for (let count = 5; count <= 10; count++) await next(count);
    const french = messages(row).filter((_, index) => LANGUAGES[index % LANGUAGES.length]?.[0] === 'fr');
    expect(french.map((message) => />(Partir|Quitter)<\/a>/.exec(content(message).html)?.[1])).toEqual([
      'Partir',
      'Quitter',
    ]);
  });

  it('has one body if the footer is that of the account', async () => {
    const setup = await start();
    const { runner, send, progress, messages, sharedIds } = setup;
    const templates = createComplianceTemplates(setup, () => null);
    for (const [type, link] of [
      ['unsubscribe', 'unsubscribe_url'],
      ['report_abuse', 'report_abuse_url'],
    ] as const)
      granted(
        await templates.create('acct_one', {
          name: 'Ours',
          type,
          domain: null,
          htmlContent: `<a href="{{${link}}}">Stop</a>`,
        }),
      );
    const row = granted(await send({ html: `<p>News</p>${COMPLIANCE}{{report_abuse_email_html}}` }));
    runner.start();
    await expect.poll(() => progress(row.campaign_id).queued).toBe(MEMBERS);
    expect(sharedIds(messages(row)).size).toBe(1);
  });
});
