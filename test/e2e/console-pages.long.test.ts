// Long: opens every page of the console over a database with a history.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { measurePages } from '../bench/console/measure.ts';
import { findPages } from '../bench/console/pages.ts';
import { signInOperator } from '../bench/console/sign-in.ts';
import { addConsoleData } from '../bench/large/console-data.ts';
import { buildHistory } from '../bench/large/history.ts';
import { prepareInstallation, startInstallation } from '../bench/large/installation.ts';
import { startBrowser } from '../support/browser.ts';
import { freePort } from '../support/free-port.ts';
import { requirePrograms } from '../support/required-programs.ts';

/* The parts of `npm run bench:console` with a small history: every page is found, and each of its requests succeeds. */
const required = requirePrograms('chromium');

it.skipIf(required.missing)(
  `every page of the console is found and gets its data${required.reason}`,
  async () => {
    const root = mkdtempSync(join(tmpdir(), 'postrider-console-'));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    const [prepared, data] = [join(root, 'prepared'), join(root, 'data')];
    const installation = await prepareInstallation(prepared);
    const now = Date.now();
    buildHistory(prepared, data, installation, { messages: 5000, people: 1000, now });
    addConsoleData(data, { now, share: 0.02 });
    const listen = `127.0.0.1:${await freePort()}`;
    const running = await startInstallation(data, await freePort(), { 'console.listen': listen });
    onTestFinished(() => running.stop());
    const browser = await startBrowser(['localhost']);
    onTestFinished(() => browser.close());
    const { page, consoleUrl, cookie, pageToken } = await signInOperator(running.daemon, browser);
    const { accountId } = running.accounts[0] ?? expect.unreachable();
    const pages = await findPages({ page, consoleUrl, accountId });
    const results = await measurePages({ consoleUrl, cookie, pageToken }, pages, 1);

    const links: string[] = await page
      .locator('nav[aria-label="Pages"] a')
      .evaluateAll((all) => all.map((link) => (link.getAttribute('href') ?? '').replace(/\?.*/s, '')));
    const found = pages.map((each) => `/console/${each.page.split('?')[0]}`);
    expect(links.length).toBeGreaterThan(15);
    expect(links.filter((link) => !found.includes(link))).toEqual([]);
    // Details of a message, a domain, a contact, a group, a campaign, a webhook, a suppression, an account.
    expect(found.filter((path) => /_/.test(path)).length).toBeGreaterThan(7);
    expect(results.filter(({ failed }) => Object.keys(failed).length > 0)).toEqual([]);
    expect(results.filter(({ requests, p95 }) => requests > 0 && p95 === 0)).toEqual([]);
  },
);
