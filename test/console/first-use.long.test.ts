// Long: follows the path of the first use in a browser.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ApiClient, CreatedDomain } from '../support/api-client.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { type OpenConsole, openConsole, openPersonMenu } from './open-console.ts';

/*
 * The path of a user who opens the console for the first time: link, passkey, domain, first message. With UPDATE_DOCS
 * set, it writes the pictures of docs/console.md.
 */
const IMAGES = process.env['UPDATE_DOCS'] === undefined ? '../artifacts/first-use/' : '../../docs/images/';
const SIZE = { width: 1000, height: 640 };

let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Example Shop');
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

it('leads from the link of the command line to the first delivered message', async () => {
  const folder = fileURLToPath(new URL(IMAGES, import.meta.url));
  mkdirSync(folder, { recursive: true });
  const { page, context, consoleErrors } = await open.operator(SIZE);
  /** `shown`: what the caption is about, completely in the picture. */
  const picture = async (name: string, shown?: Locator, block: 'start' | 'end' = 'start') => {
    await shown?.evaluate((element, place) => element.scrollIntoView({ block: place }), block);
    await page.screenshot({ path: join(folder, `console-${name}.png`) });
  };
  await page.getByRole('link', { name: 'Add a sending domain' }).waitFor();
  await picture('start');

  const devtools = await context.newCDPSession(page);
  await devtools.send('WebAuthn.enable');
  await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
    },
  });
  await openPersonMenu(page);
  await page.getByRole('link', { name: 'Your profile' }).click();
  await page.getByLabel('Name of the passkey').fill('Laptop');
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByText('The passkey was added').waitFor();

  await page.getByRole('link', { name: 'Domains', exact: true }).click();
  await page.getByLabel('Domain name').fill('shop.example');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'shop.example' }).waitFor();
  await page.getByRole('listitem', { name: /^TXT / }).first().waitFor();
  await picture('records', page.getByRole('heading', { name: 'DNS records to publish' }));

  const { domains } = (await client.get<{ domains: { domainId: string }[] }>('/web-setup/domains')).data;
  const path = `/web-setup/domains/${domains[0]?.domainId}/dns-records`;
  const { dnsRecords } = (await client.get<CreatedDomain>(path)).data;
  daemon.dns.publish(dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
  await daemon.publishPlatform();
  await page.getByRole('button', { name: 'Check now' }).click();
  await page.locator('.status.ok').first().waitFor();
  await page.locator('.notice', { hasText: 'Mail may be sent from shop.example.' }).waitFor();

  await page.getByRole('link', { name: 'Next: First message' }).click();
  await page.getByLabel('To', { exact: true }).fill(`delivered@simulator.${PLATFORM}`);
  await page.getByRole('button', { name: 'Send the message' }).click();
  const state = page.getByRole('region', { name: 'The message that was sent' });
  await state.getByText('delivered', { exact: true }).waitFor();
  await picture('first-message', state, 'end');
  await state.getByRole('link', { name: 'Details' }).click();
  await page.getByText('Accepted by the server of the recipient').waitFor();
  expect(consoleErrors).toEqual([]);
  await context.close();
});
