// Long: opens every page of the console.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DESKTOP, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type HostileAccount, startHostileAccount } from './hostile-account.ts';
import { answerQuestions, type OpenConsole, openConsole } from './open-console.ts';

/*
 * Every page of the console that links lead to, in Chromium over an account with markup in every text that others write.
 * Each of these fields must be shown as text by some page.
 */
let hostile: HostileAccount;
let browser: TestBrowser;
let open: OpenConsole;

/** What is done on a page before it is examined, by its path. */
const ACTIONS: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  '': openBell,
  'contacts/import': chooseFile,
  templates: searchResources,
  messages: showViews,
};

/** The text of the page with the values of its fields, and of its editor of HTML, which is in a shadow tree. */
const SHOWN_TEXT = `[document.body.textContent,
  ...[...document.querySelectorAll('input, textarea')].map((field) => field.value),
  ...[...document.querySelectorAll('div.code')].map(({ shadowRoot }) => shadowRoot?.textContent)].join(' ')`;
const LINKS = `[...document.querySelectorAll('a[href], area[href], form[action], iframe[src]')]
  .map((element) => element.href ?? element.getAttribute('action') ?? element.src)`;
/** Addresses of the console itself are links, the pages of a sign-up form and of an archive, and files that the page creates. */
const ALLOWED_LINK =
  /^(?:data:text\/plain;|http:\/\/track\.mail\.postrider\.test\/j\/|http:\/\/link\.shop\.test\/a\/)/;

/** In the frame of a preview, the browser refuses what the sandbox and the policy forbid. */
const PREVIEWS = '/console/previews/';
/** What it refuses in the mail of the click map, which the page parses before it is in a frame. */
const PARSED =
  /^(?:Executing inline event handler|Applying inline style) violates .* The action has been blocked\.$/;
/** More pages than there are: the walk ends by itself. */
const MAX_PAGES = 200;

beforeAll(async () => {
  hostile = await startHostileAccount();
  browser = await startBrowser(['localhost']);
  open = openConsole(hostile.daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await hostile?.stop();
});

describe('The console', () => {
  it('shows text of others as text on every page, and requests nothing from elsewhere', async () => {
    const { daemon, client } = hostile;
    const window = await open.operator(DESKTOP);
    const { page, context, requests } = window;
    await useOtherSession();
    const unseen = new Map(hostile.fields);
    const dialogs = answerQuestions(window, () => false);
    const failures: string[] = [];
    const errors: string[] = [];
    let refused = 0;
    page.on('console', (message) => {
      if (!['error', 'warning'].includes(message.type())) return;
      const text = message.text();
      const isClickMap = page.url().includes('/console/campaigns/campaign_') && PARSED.test(text);
      if (isClickMap || text.includes(PREVIEWS)) refused++;
      else errors.push(`${page.url()}: ${text}`);
    });
    page.on('response', (response) => {
      if (response.status() >= 400) failures.push(`${response.status()} ${response.url()}`);
    });
    // The profile has its link in the menu of the person, which is closed.
    const waiting = ['', 'me'];
    const seen = new Set(waiting);
    for (let path = waiting.shift(); path !== undefined && seen.size < MAX_PAGES; path = waiting.shift()) {
      await open.visit(window, path, client);
      await page.evaluate('for (const each of document.querySelectorAll("details")) each.open = true');
      await expect.poll(() => page.locator('.loading').count()).toBe(0);
      await previewLoaded(page);
      await ACTIONS[path]?.(page);
      expect(await page.title(), path).toMatch(/ · Postrider$/);
      // The application has no such elements itself, but for images of the account and an empty one of ProseMirror next to a variable; frames with mail are documents of their own.
      expect(
        await page
          .locator('main img:not(.ProseMirror-separator, [src^="/console/images/"]), main script, [onerror]')
          .count(),
        path,
      ).toBe(0);
      const shown = await shownText(page);
      for (const [field, text] of unseen) if (shown.includes(text)) unseen.delete(field);
      const links: string[] = await page.evaluate(LINKS);
      expect(
        links.filter((link) => !ALLOWED_LINK.test(link) && !link.startsWith(daemon.consoleUrl)),
        path,
      ).toEqual([]);
      for (const link of links.filter((each) => each.startsWith(`${daemon.consoleUrl}/console/`))) {
        const { pathname, searchParams } = new URL(link);
        for (const name of ['account', 'from', 'lastKey']) searchParams.delete(name);
        const query = searchParams.toString();
        const next = pathname.slice('/console/'.length) + (query === '' ? '' : `?${query}`);
        // The forms of single operations show no data of others; exports are files; frames are no pages of the application.
        if (!seen.has(next) && !/^(?:reference|exports|audit\/export|previews)(?:\/|\?|$)/.test(next)) {
          seen.add(next);
          waiting.push(next);
        }
      }
    }
    expect(waiting).toEqual([]);
    expect([...unseen.keys()], 'fields that no page shows as text').toEqual([]);
    expect(dialogs).toEqual([]);
    expect(failures).toEqual([]);
    expect(errors).toEqual([]);
    expect(refused, 'what the browser refuses in mail').toBeGreaterThan(0);
    expect(
      requests.filter((url) => !url.startsWith(daemon.consoleUrl) && !/^(?:data|about):/.test(url)),
    ).toEqual([]);
    await context.close();
  });
});

/** Another session of the operator, of a browser whose name has markup, with a passkey; records of the audit log. */
async function useOtherSession(): Promise<void> {
  const { daemon, text } = hostile;
  const personId = daemon.people.list().findLast(({ operator }) => operator)?.id ?? '';
  const issued = await daemon.people.issueLink(personId, 'sign-in');
  if (!('link' in issued)) throw new Error(issued.message);
  const userAgent = text('session');
  const send = (method: string, path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(`${daemon.consoleUrl}/console/${path}`, {
      method,
      headers: {
        'Content-Type': 'application/json',
        'X-Postrider-Console': '1',
        'User-Agent': userAgent,
        ...headers,
      },
      body: JSON.stringify(body),
    });
  const opened = await send('POST', 'session/link', { token: issued.link.token });
  const [cookie = ''] = opened.headers.get('set-cookie')?.split(';') ?? [];
  const { data } = (await opened.json()) as { data: { pageToken: string } };
  const credentials = { Cookie: cookie, 'X-Postrider-Page-Token': data.pageToken };
  const target = encodeURIComponent(text('id of person'));
  expect((await send('DELETE', `people/${target}`, {}, credentials)).status).toBe(404);
  const failed = { email: text('failed sign-in'), password: 'a password' };
  expect((await send('POST', 'session/password', failed)).status).toBe(401);
  daemon.tables.passkeys.insert({
    credential_id: 'passkey',
    person_id: personId,
    name: text('passkey'),
    public_key: Buffer.alloc(1),
    counter: 0,
    transports: '[]',
    created_at: Date.now(),
    used_at: null,
  });
  for (const { number } of daemon.tables.webhooks.list(hostile.client.accountId))
    daemon.tables.webhooks.setFailingSince(number, Date.now());
  daemon.tables.savedViews.insert({
    view_id: 'view_1',
    person_id: personId,
    account_id: hostile.client.accountId,
    page: 'messages',
    name: text('saved view'),
    query: JSON.stringify({ subject: text('filter of a saved view'), account: 'acct_other' }),
    created_at: Date.now(),
  });
}

/** The text of the page, and of it with each of its tabs. */
async function shownText(page: Page): Promise<string> {
  const shown: string[] = [await page.evaluate(SHOWN_TEXT)];
  for (const tab of await page.getByRole('tab').all()) {
    await tab.press('Enter');
    await expect.poll(() => page.locator('.loading').count()).toBe(0);
    shown.push(await page.evaluate(SHOWN_TEXT));
  }
  return shown.join(' ');
}

/** Opens what needs attention, in which a failing webhook is named. */
async function openBell(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Notifications/ }).press('Enter');
  const list = page.locator('.notifications');
  await list.getByText('<img').first().waitFor();
  expect(await list.locator('img, script, [onerror]').count()).toBe(0);
  await page.keyboard.press('Escape');
}

/** Opens the saved views and applies one: its filters are shown. */
async function showViews(page: Page): Promise<void> {
  const view = page.getByRole('button', { name: hostile.fields.get('saved view') ?? '' }).first();
  await page.getByRole('button', { name: 'Views', exact: true }).press('Enter');
  await view.press('Enter');
  await page.getByRole('button', { name: /^Remove the filter Subject: / }).waitFor();
  await page.getByRole('button', { name: 'Views', exact: true }).press('Enter');
  await view.waitFor();
}

/** Chooses a file that is not sent: its columns are shown. */
async function chooseFile(page: Page): Promise<void> {
  const cells = [hostile.text('column'), hostile.text('value in file')];
  const lines = cells.map((cell) => `email,"${cell.replaceAll('"', '""')}"`).join('\r\n');
  await page
    .getByLabel('File', { exact: true })
    .setInputFiles({ name: 'a.csv', mimeType: 'text/csv', buffer: Buffer.from(lines) });
  await page.getByRole('rowheader', { name: /^column / }).waitFor();
}

async function searchResources(page: Page): Promise<void> {
  await page.keyboard.press('Control+k');
  await page.locator('dialog[open] input').fill('template');
  await page
    .locator('dialog[open]')
    .getByText(/template <img/)
    .first()
    .waitFor();
  await page.keyboard.press('Escape');
}

/** If the page has the frame of a preview, it is loaded after the page, and leaving the page would stop it. */
async function previewLoaded(page: Page): Promise<void> {
  if ((await page.locator(`iframe[src^="${PREVIEWS}"]`).count()) === 0) return;
  const preview = () => page.frames().find((frame) => frame.url().includes(PREVIEWS));
  await expect.poll(preview).toBeDefined();
  await preview()?.waitForLoadState();
}
