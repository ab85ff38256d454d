import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { insertShopDomain, openConsole } from './open-console.ts';

/* The built application in Chromium over a daemon in this process. The long tests examine its pages. */
const required = requirePrograms('chromium');

let daemon: InProcess;
let browser: TestBrowser;
let client: ApiClient;

beforeAll(async () => {
  if (required.missing) return;
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  insertShopDomain(daemon, client);
  for (const [path, body] of [
    ['contacts', { email: 'ada@example.net', firstName: 'Ada' }],
    ['suppressions', { email: 'ada@example.net' }],
    ['templates', { name: 'Order', html: '<p>Hello</p>' }],
  ] as const)
    await client.call('POST', `/web-setup/${path}`, { body });
  browser = await startBrowser(['localhost']);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

describe.skipIf(required.missing)(`the console${required.reason}`, () => {
  it('opens every page of its navigation, and shows nothing that failed', async () => {
    const open = openConsole(daemon, browser);
    const window = await open.operator(DESKTOP);
    const { page, consoleErrors } = window;
    const paths = await page.evaluate<string[]>(
      "[...document.querySelectorAll('.side nav a')].map(({ pathname }) => pathname)",
    );
    expect(paths.length).toBeGreaterThan(15);
    for (const path of paths) {
      await open.visit(window, path.replace('/console/', ''), client);
      expect(await page.getByRole('alert').allTextContents(), path).toEqual([]);
    }
    expect(consoleErrors).toEqual([]);
  });
});
