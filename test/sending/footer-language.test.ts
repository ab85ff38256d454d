import { describe, expect, it } from 'vitest';
import { PAGE_LANGUAGES, PAGE_TEXTS, type PageLanguage } from '../../src/accounts/page-texts.ts';
import { createPublicPageSettings, type PublicPagesPatch } from '../../src/accounts/public-pages.ts';
import { addPerson } from '../../src/audience/people.ts';
import { complianceTemplateProblems } from '../../src/mail/compliance.ts';
import type { MessageContent } from '../../src/mail/content.ts';
import { textFromHtml } from '../../src/mail/html/text-part.ts';
import { complianceTexts } from '../../src/templates/footer.ts';
import { granted } from '../support/refusal.ts';
import { insertDomain } from '../support/store.ts';
import { accepted, HTML, startAcceptance } from './acceptance.ts';

const LANGUAGES = Object.keys(PAGE_LANGUAGES) as PageLanguage[];
const FOOTER = '{{company_address_html}}{{unsubscribe_email_html}}{{report_abuse_email_html}}';

function start() {
  const setup = startAcceptance();
  const { tables, writer, ids, clock, contents, send } = setup;
  const settings = createPublicPageSettings(setup);
  const provenance = { by: 'key_one', ipAddress: null, userAgent: null, at: clock.now() };
  insertDomain(
    tables,
    { account_id: 'acct_one', domain_id: 'domain_mk', name: 'news.example', use_case: 'mk' },
    clock.now(),
  );
  const account = tables.accounts.get('acct_one') ?? expect.fail('no account');
  return {
    ...setup,
    set: async (pages: PublicPagesPatch) => granted(await settings.put('acct_one', pages)),
    contact: async (email: string, language: string | null) =>
      granted(
        await writer.run((tx) =>
          addPerson(
            tx,
            ids,
            { email, language },
            {
              accountId: 'acct_one',
              source: 'api',
              defaultMethod: 'double_opt_in',
              provenance,
              mayAdd: () => null,
            },
          ),
        ),
      ),
    /** The mail to one address. */
    mailTo: async (to: string, html: string = HTML): Promise<MessageContent> => {
      accepted(await send({ to, html }));
      return contents()[0] ?? expect.fail('no mail');
    },
    /** Marketing mail to all of them in one request, by address. */
    newsTo: async (to: string[]): Promise<Map<string, MessageContent>> => {
      granted(
        await send(
          { to, from: 'News <news@news.example>', html: FOOTER, subject: 'News' },
          { sender: { account, useCase: 'mk', allowFrom: [], allowEssential: true } },
        ),
      );
      return new Map(contents().map((content) => [content.to[0]?.address ?? '', content]));
    },
  };
}

describe('the default footer', () => {
  it.each(LANGUAGES)('is valid and complete in %s, as html and as text', (language) => {
    const { tables } = start();
    const mail = { fromDomain: 'example.com', groupId: null, html: '' };
    const templates = complianceTexts(tables, 'acct_one', mail, language);
    const texts = PAGE_TEXTS[language];
    for (const kind of ['unsubscribe', 'report_abuse', 'company_address'] as const)
      expect(complianceTemplateProblems(kind, templates[kind])).toEqual([]);
    expect(templates.unsubscribe).toContain(`<span lang="${language}"`);
    const text = textFromHtml(`${templates.unsubscribe}<br>${templates.report_abuse}`);
    for (const each of [texts['footer.unsubscribe'], texts['footer.unasked'], texts['footer.report']])
      expect(text).toContain(each);
    expect(text).toContain('{{recipient_email}}');
    expect(text).toContain('{{sender_email}}');
  });
});

describe('the footer of a mail', () => {
  it('is in the language of the contact', async () => {
    const { contact, mailTo } = start();
    await contact('ada@example.net', 'de-AT');
    const { html } = await mailTo('ada@example.net', `<html lang="fr"><p>{{name}}</p>${FOOTER}`);
    expect(html).toContain('Abmelden</a>');
    expect(html).toContain('Missbrauch melden</a>');
    expect(html).not.toContain('Unsubscribe');
  });

  it('is that of the account for people of other languages, else that of the html, else English', async () => {
    const { contact, mailTo, set } = start();
    await contact('aino@example.net', 'fi');
    const inFrench = `<!doctype html><HTML class="x" LANG=fr-CA><p>{{name}}</p>${FOOTER}</html>`;
    for (const to of ['aino@example.net', 'bob@example.net']) {
      expect((await mailTo(to)).html).toContain('Unsubscribe</a>');
      expect((await mailTo(to, inFrench)).html).toContain('Se désinscrire</a>');
    }
    await set({ language: 'sv' });
    expect((await mailTo('bob@example.net', inFrench)).html).toContain('Avanmäl mig</a>');
    expect((await mailTo('aino@example.net')).html).toContain('Avanmäl mig</a>');
  });

  it('has the texts of the account, in which nothing is html or a variable', async () => {
    const { contact, mailTo, set } = start();
    await contact('ada@example.net', 'de');
    await set({
      texts: {
        de: {
          'footer.unsubscribe': '<b>Tschüss</b> {{email}}',
          'footer.sent': 'Für {recipient}\nvon {sender}:',
        },
        fr: { 'footer.unsubscribe': 'Partir' },
      },
    });
    const { html } = await mailTo('ada@example.net', `{{name}}${FOOTER}`);
    expect(html).toContain('&lt;b&gt;Tschüss&lt;/b&gt; &#123;&#123;email&#125;&#125;</a>');
    expect(html).toContain('Für ');
    expect(html).toContain('<br>von shop@example.com:');
    expect(html).toContain('Missbrauch melden</a>');
    await set({ texts: {} });
    expect((await mailTo('ada@example.net')).html).toContain('Abmelden</a>');
  });

  it('is appended to submitted mail in the language of the recipient', async () => {
    const { contact, send, contents } = start();
    await contact('ada@example.net', 'ja');
    accepted(
      await send(
        { to: 'ada@example.net', html: '<p>ご注文</p>', text: 'ご注文' },
        { appendFooter: true, literalBraces: true },
      ),
    );
    const [content] = contents();
    expect(content?.html).toContain('配信を停止する</a>');
    expect(content?.text).toContain('配信を停止する');
  });

  it('differs between the recipients of marketing mail', async () => {
    const { contact, newsTo } = start();
    const people = { ada: 'de', bob: 'pl', cy: 'de-CH', dan: null };
    for (const [name, language] of Object.entries(people)) await contact(`${name}@example.net`, language);
    const mails = await newsTo(Object.keys(people).map((name) => `${name}@example.net`));
    const words = { ada: 'Abmelden', bob: 'Zrezygnuj z subskrypcji', cy: 'Abmelden', dan: 'Unsubscribe' };
    for (const [name, word] of Object.entries(words))
      expect(mails.get(`${name}@example.net`)?.html).toContain(`>${word}</a>`);
  });

  it('is that of the first recipient where copies share one content', async () => {
    const { contact, send, contents } = start();
    await contact('ada@example.net', 'it');
    await contact('bob@example.net', 'nl');
    accepted(await send({ to: ['ada@example.net', 'bob@example.net'] }));
    for (const { html } of contents()) expect(html).toContain('Annulla l&#39;iscrizione</a>');
  });
});
