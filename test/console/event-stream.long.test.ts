// Long: opens many tabs of the console, twice.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { insertShopDomain, type OpenConsole, openConsole } from './open-console.ts';

/* Several tabs of one browser, in Chromium over a daemon in this process: they share connections. */
const TABS = 8;

let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  insertShopDomain(daemon, client);
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

function send(subject: string) {
  return client.send({
    from: 'orders@shop.test',
    to: `delivered@simulator.${PLATFORM}`,
    subject,
    html: '<p>Hello</p>{{company_address_html}}{{unsubscribe_email_html}}',
  });
}

/** Opens pages with messages until there are `TABS`. */
async function openTabs(pages: Page[], account: string): Promise<void> {
  while (pages.length < TABS) {
    const page = await pages[0]?.context().newPage();
    if (page === undefined) throw new Error('there is no page');
    pages.push(page);
    await page.goto(`${daemon.consoleUrl}/console/messages?account=${account}`);
    await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
  }
}

describe(`${TABS} open tabs`, () => {
  it('share a stream, which another tab opens when the first one is closed', async () => {
    await send('Before all');
    const window = await open.operator(DESKTOP);
    const { page, context, requests } = window;
    const streams = () => requests.filter((url) => url.includes('/console/stream?')).length;
    await open.visit(window, 'messages', client);
    const pages = [page];
    await openTabs(pages, client.accountId);
    const before = streams();
    const shows = (subject: string, tabs: Page[]) =>
      Promise.all(tabs.map((tab) => tab.getByRole('link', { name: subject }).first().waitFor()));
    await shows('Before all', pages);
    /** New rows wait until the person asks for them. */
    const receives = async (subject: string, tabs: Page[]) => {
      await Promise.all(
        tabs.map((tab) => tab.getByRole('main').getByRole('button', { name: '1 new' }).press('Enter')),
      );
      await shows(subject, tabs);
    };
    await send('To all tabs');
    await receives('To all tabs', pages);
    expect(streams()).toBe(before);

    const [first, ...others] = pages;
    await first?.close();
    await expect.poll(streams).toBe(before + 1);
    await send('After the first');
    await receives('After the first', others);
    expect(streams()).toBe(before + 1);
    await context.close();
  });

  it('leave connections for requests where tabs cannot share', async () => {
    const window = await open.operator(DESKTOP);
    const { context } = window;
    await context.addInitScript('Object.defineProperty(navigator, "locks", { value: undefined })');
    await open.visit(window, 'messages', client);
    const pages = [window.page];
    await openTabs(pages, client.accountId);
    await Promise.all(
      pages.map((tab) => tab.getByRole('link', { name: 'After the first' }).first().waitFor()),
    );
    await context.close();
  });
});
