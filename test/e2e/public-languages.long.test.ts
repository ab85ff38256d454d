// Long: every public page in every language, on a phone and on a desktop computer.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PAGE_LANGUAGES, PAGE_TEXTS, type PageLanguage } from '../../src/accounts/page-texts.ts';
import { createPublicPageSettings } from '../../src/accounts/public-pages.ts';
import { addPerson } from '../../src/audience/people.ts';
import { DAY } from '../../src/core/clock.ts';
import { plainLook } from '../../src/http/public/look.ts';
import { faultPage } from '../../src/http/public/plain-pages.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import type { Database } from '../../src/store/database/database.ts';
import { FORM, startPublic } from '../http/public/rig.ts';
import { accessibilityFaults } from '../support/accessibility.ts';
import { DESKTOP, startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import { granted } from '../support/refusal.ts';
import { requirePrograms } from '../support/required-programs.ts';

/** Texts that name something, and are the same in several languages. */
const SHORT_TEXT = 12;

/*
 * Chromium displays what the listener of the public pages returns for each language: GET of every page, and the answers to
 * every form. No page has a script. A client that follows every link and submits nothing changes no row of the database.
 */
const required = requirePrograms('chromium');
const LANGUAGES = Object.keys(PAGE_LANGUAGES) as PageLanguage[];
const NARROW = { width: 320, height: 640 };
const ADA = 'ada@example.net';
const LONG_NAME = 'Freundschaftsbezeugungsgesellschaft-Sondermitteilungen';

/** The public pages with everything that they can show; returns the requests for each of them. */
async function start() {
  const rig = await startPublic();
  const { writer, clock, ids } = rig;
  const tokens = rig.tokens.of('acct_one');
  const form = { from: 'news@example.com', subject: null, intro: null };
  const groups = [LONG_NAME, 'Winter news – Schönes', '毎週のお知らせ'].map((name) => rig.group(name, form));
  const [news = '', offers = ''] = groups;
  const provenance = { by: 'key_one', ipAddress: null, userAgent: null, at: clock.now() };
  const person = (email: string) =>
    writer.run((tx) =>
      addPerson(
        tx,
        ids,
        { email, firstName: 'Ada', customFields: { city: 'Zürich' } },
        {
          accountId: 'acct_one',
          source: 'api',
          defaultMethod: 'double_opt_in',
          provenance,
          mayAdd: () => null,
        },
      ),
    );
  const mail = (email: string, fields: object = {}) =>
    rig.sent({ use_case: 'mk', recipient: email, recipient_hash: emailIdentifier(email), ...fields }).mail;
  const of = (letter: string, email: string, fields: object = {}) =>
    `/${letter}/${letter === 'r' ? tokens.reportUrl(mail(email, fields)) : tokens.unsubscribeUrl(mail(email, fields))}`;
  for (const email of [ADA, 'paused@example.net', 'stopped@example.net']) granted(await person(email));
  granted(
    await createPublicPageSettings(rig).put('acct_one', {
      // Too light for text on white, and made readable.
      colors: { accent: '#e0559c', background: '#fbeef5' },
      profileFields: ['firstName', 'lastName', 'phone', 'customFields.city'].map((field) => ({
        field,
        label: null,
        labels: {},
      })),
    }),
  );
  const post = (path: string, body: string) => rig.call(path, { method: 'POST', headers: FORM, body });
  await post(of('p', 'paused@example.net'), 'action=pause90');
  await post(of('p', 'paused@example.net'), 'action=erase&confirmed=yes');
  await post(of('p', 'stopped@example.net'), 'action=stop');
  granted(await person('blocked@example.net'));
  await writer.run((tx) =>
    tx.suppressions.add({
      account_id: 'acct_one',
      recipient_hash: emailIdentifier('blocked@example.net'),
      stream: 'all',
      reason: 'hard_bounce',
      email: null,
      message_seq: null,
      created_at: clock.now(),
    }),
  );
  const changed = of('p', 'often@example.net');
  granted(await person('often@example.net'));
  for (let n = 0; n < 20; n++) await post(changed, 'action=resume');
  const delivered = rig.sent({ use_case: 'tx', recipient: 'rep@example.net' });
  await rig.deliver(delivered.message);
  const reported = `/r/${tokens.reportUrl(delivered.mail)}`;
  const signUp = (email: string, at = clock.now()) =>
    `/k/${tokens.signUp({ groupId: news, email, firstName: 'Eve', lastName: '', at, language: null })}`;
  const confirmed = signUp('eve@example.net');
  await post(confirmed, '');
  const ended = signUp('stopped@example.net', clock.now() - DAY);
  const inList = { subscription_group_id: offers };
  const tx = { use_case: 'tx' as const };
  const gets: Record<string, string> = {
    home: '/',
    unknown: '/u/nothing',
    'unsubscribe-list': of('u', ADA, inList),
    'unsubscribe-marketing': of('u', ADA),
    'unsubscribe-transactional': of('u', 'bob@example.net', tx),
    'unsubscribe-before': of('u', 'stopped@example.net'),
    report: of('r', ADA),
    preferences: of('p', ADA, inList),
    'preferences-paused': of('p', 'paused@example.net'),
    'preferences-stopped': of('p', 'stopped@example.net'),
    'preferences-blocked': of('p', 'blocked@example.net'),
    'preferences-none': of('p', 'bob@example.net'),
    'sign-up': `/j/${news}`,
    'sign-up-confirm': signUp('new@example.net'),
    'sign-up-confirmed': confirmed,
    'sign-up-ended': ended,
    'sign-up-expired': signUp('new@example.net', clock.now() - 8 * DAY),
  };
  const posts: Record<string, [path: string, body: string]> = {
    method: ['/', ''],
    'sign-up-sent': [`/j/${news}`, 'email=new@example.net&website=x'],
    'sign-up-invalid': [`/j/${news}`, 'email=new&firstName=Ada'],
    'sign-up-later': [`/j/${news}`, 'email=new@example.net'],
    'too-large': [`/j/${news}`, `email=${'x'.repeat(20_000)}`],
    unsubscribed: [of('u', 'un@example.net', inList), 'choice=list'],
    resubscribed: [of('u', 'un@example.net', inList), 'undo=group'],
    reported: [reported, 'reason=other'],
    'reported-again': [reported, 'reason=other'],
    'too-often': [changed, 'action=pause30'],
    'preferences-saved': [of('p', ADA, inList), `action=save&shown=${offers}&group-${offers}=on`],
    'preferences-faulty': [
      of('p', ADA, inList),
      `action=save&field-${Buffer.from('phone').toString('hex')}=12`,
    ],
    'preferences-unconfirmed': [of('p', ADA, inList), 'action=erase'],
  };
  const headers = (language: string) => ({ ...FORM, 'Accept-Language': `${language}, en;q=0.5` });
  const faultOf = (language: string) => {
    const { status, body } = faultPage(plainLook(language));
    const bytes = Buffer.from(body ?? '');
    return { status, headers: {}, body: bytes.toString(), bytes };
  };
  const get = (path: string, language: string) => rig.call(path, { headers: headers(language) });
  return {
    rig,
    gets,
    get,
    pages: (language: string): [name: string, () => ReturnType<typeof rig.call>][] => [
      ...Object.entries(gets).map(([name, path]): [string, () => ReturnType<typeof rig.call>] => [
        name,
        () => get(path, language),
      ]),
      ...Object.entries(posts).map(([name, [path, body]]): [string, () => ReturnType<typeof rig.call>] => [
        name,
        () => rig.call(path, { method: 'POST', headers: headers(language), body }),
      ]),
      ['fault', () => Promise.resolve(faultOf(language))],
    ],
  };
}

/** A hash of all rows of all tables. */
function fingerprint(db: Database): string {
  const names = db
    .prepare<[], string>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY 1",
    )
    .pluck()
    .all();
  const hash = createHash('sha256');
  for (const name of names) hash.update(JSON.stringify([name, db.prepare(`SELECT * FROM "${name}"`).all()]));
  return hash.digest('hex');
}

/** Sentences of the English pages without a value. */
const ENGLISH = Object.values(PAGE_TEXTS.en).filter(
  (text) => text.length > SHORT_TEXT && !text.includes('{'),
);

/** What the keyboard reaches; of the radio buttons of a group only the chosen one. */
const CONTROLS = `[...document.querySelectorAll('a[href], button, select, input:not([type=hidden]):not([tabindex="-1"])')]
  .filter((each) => each.type !== 'radio' || each.checked)`;
/** The place of the focus among them, its outline, and whether that is wide enough and on the screen. */
const FOCUS = `(() => {
  const at = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  const { top, bottom } = at.getBoundingClientRect();
  return [${CONTROLS}.indexOf(at), outlineStyle, parseFloat(outlineWidth) >= 2 && bottom > 0 && top < innerHeight];
})()`;

const SCREENSHOTS = new Set(
  ['de', 'ja', 'fr', 'pl'].flatMap((language) =>
    [
      'preferences',
      'unsubscribe-list',
      'unsubscribed',
      'sign-up',
      'preferences-paused',
      'preferences-faulty',
      'report',
    ].map((name) => `${language} ${name}`),
  ),
);

describe.skipIf(required.missing)(`the public pages in every language${required.reason}`, () => {
  let browser: TestBrowser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());

  it.each(LANGUAGES)(
    'fit a phone and a desktop computer in %s, labeled and without scripts',
    async (language) => {
      const { pages } = await start();
      const windows: [string, Window][] = [
        ['phone', await browser.open(NARROW)],
        ['desktop', await browser.open(DESKTOP)],
        ['phone in the dark', await browser.open(NARROW, { dark: true })],
        ['desktop in the dark', await browser.open(DESKTOP, { dark: true })],
      ];
      const faults: string[] = [];
      for (const [name, request] of pages(language)) {
        const { status, body } = await request();
        if (status === 404 && name !== 'unknown') faults.push(`${name}: 404`);
        if (!body.includes(`<html lang="${language}">`)) faults.push(`${name}: not in ${language}`);
        if (/<script|\son\w+=|javascript:/i.test(body)) faults.push(`${name}: has a script`);
        if (/\{[a-z]+\}/.test(body.replace(/<style>[^<]*<\/style>/g, '')))
          faults.push(`${name}: a value is missing`);
        for (const text of language === 'en' ? [] : ENGLISH)
          if (body.includes(text)) faults.push(`${name}: in English: ${text}`);
        for (const [device, { page, screenshot }] of windows) {
          await page.setContent(body);
          const width = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
          if (width !== 0) faults.push(`${name} on a ${device}: ${String(width)} px too wide`);
          for (const fault of await accessibilityFaults(page))
            faults.push(`${name} on a ${device}: ${fault}`);
          if (SCREENSHOTS.has(`${language} ${name}`))
            await screenshot(`public-${language}-${name}-${device}`);
        }
      }
      expect(faults).toEqual([]);
      for (const [, { context }] of windows) await context.close();
    },
  );

  it('change no row when every link is followed and nothing is submitted', async () => {
    const { rig, gets, get } = await start();
    const before = fingerprint(rig.db);
    const waiting = Object.values(gets);
    const seen = new Set(waiting);
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      const { body } = await get(path, 'en');
      await rig.call(path, { method: 'HEAD' });
      for (const [, href = ''] of body.matchAll(/(?:href|action|src)="([^"]+)"/g)) {
        const { pathname, origin } = new URL(href, rig.base);
        if (origin !== new URL(rig.base).origin || seen.has(pathname)) continue;
        seen.add(pathname);
        waiting.push(pathname);
      }
    }
    expect(seen.size).toBeGreaterThan(Object.keys(gets).length);
    expect(fingerprint(rig.db)).toBe(before);
  });

  it('show where the keyboard is, in the order of the page', async () => {
    const { pages } = await start();
    const faults: string[] = [];
    const windows = [await browser.open(NARROW), await browser.open(DESKTOP, { dark: true })];
    for (const [name, request] of pages('de')) {
      const { body } = await request();
      for (const { page } of windows) {
        await page.setContent(body);
        const count = Number(await page.evaluate(`${CONTROLS}.length`));
        const focused: unknown[] = [];
        for (let n = 0; n < count; n++) {
          await page.keyboard.press('Tab');
          focused.push(await page.evaluate(FOCUS));
        }
        const expected = Array.from({ length: count }, (_, index) => [index, 'solid', true]);
        if (JSON.stringify(focused) !== JSON.stringify(expected))
          faults.push(`${name}: ${JSON.stringify(focused)}`);
      }
    }
    expect(faults).toEqual([]);
    for (const { context } of windows) await context.close();
  });

  it('save preferences by keyboard and without scripts', async () => {
    const { rig, gets } = await start();
    const { page, context } = await browser.open(NARROW, { script: false });
    await page.goto(`${rig.base}${gets['preferences']}`);
    await page.getByRole('switch', { name: LONG_NAME }).focus();
    await page.keyboard.press('Space');
    await page.getByLabel('Language').focus();
    await page.keyboard.press('f');
    await page.keyboard.press('Tab');
    await page.keyboard.type('Augusta');
    await page.keyboard.press('Enter');
    await page.getByRole('status').waitFor();
    expect(await page.locator('html').getAttribute('lang')).toBe('fr');
    expect(await page.getByRole('switch', { name: LONG_NAME }).isChecked()).toBe(true);
    expect(rig.tables.contacts.byIdentifier('acct_one', emailIdentifier(ADA))).toMatchObject({
      language: 'fr',
      first_name: 'Augusta',
    });
    await context.close();
  });
});
