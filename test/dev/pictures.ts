import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { startInstallation } from '../bench/large/installation.ts';
import { startReceiver } from '../bench/receiver.ts';
import { startBrowser, type WindowSize } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { sampleInstallation } from './sample.ts';

/* `npm run docs:images` writes with it the pictures of the console with sample data, in docs/images. */
const IMAGES = new URL('../../docs/images/', import.meta.url).pathname;
const DESKTOP: WindowSize = { width: 1280, height: 800 };

const folder = mkdtempSync(join(tmpdir(), 'postrider-pictures-'));
const dataDir = await sampleInstallation(folder);
const receiver = await startReceiver();
const consolePort = await freePort();
const running = await startInstallation(dataDir, receiver.port, {
  'console.listen': `127.0.0.1:${consolePort}`,
  'limits.eventDays': 400,
});
const { daemon, accounts, group, campaignIds } = running;
const [account] = accounts;
if (account === undefined) throw new Error('the sample has no account');

/** A request with the account's key; returns `data`. */
async function api<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(daemon.baseUrl + path, {
    method,
    headers: {
      'X-Id': account?.accountId ?? '',
      'X-Api-Key': account?.keys.setup ?? '',
      'Content-Type': 'application/json',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
  return ((await response.json()) as { data: T }).data;
}

const browser = await startBrowser(['localhost']);
const created = await daemon.cli(
  'operator',
  'create',
  '--email',
  'sam@northwind.example',
  '--name',
  'Sam Rivera',
  '--json',
);
const { link }: { link: string } = JSON.parse(created);

/** Signs in once; its cookie and its token are those of all windows. */
async function signedIn(): Promise<{
  cookies: Parameters<Awaited<ReturnType<typeof browser.open>>['context']['addCookies']>[0];
  token: string;
}> {
  const { page, context } = await browser.open(DESKTOP);
  await page.goto(link);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('button', { name: 'Later' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  const token = await page.evaluate<string>("sessionStorage.getItem('postrider-page-token')");
  const cookies = await context.cookies();
  return { cookies, token };
}
const { cookies, token } = await signedIn();

/** Stores a picture of a page; `prepare` does something on it first. */
async function picture(
  name: string,
  path: string,
  { dark = false, prepare }: { dark?: boolean; prepare?: (page: Page) => Promise<void> } = {},
): Promise<void> {
  const { page, context } = await browser.open(DESKTOP, { dark });
  await context.addCookies(cookies);
  await page.addInitScript(
    `if (location.pathname.startsWith('/console/') && origin !== 'null') sessionStorage.setItem('postrider-page-token', ${JSON.stringify(token)})`,
  );
  await page.goto(
    `${new URL(link).origin}/console/${path}${path.includes('?') ? '&' : '?'}account=${account?.accountId}`,
  );
  // Each window asks for a passkey.
  await page.getByRole('button', { name: 'Later' }).click();
  await page.getByRole('heading', { level: 1 }).waitFor();
  await eventually('the data', async () => (await page.locator('.loading').count()) === 0);
  await prepare?.(page);
  // Charts and frames of mail are drawn after their data has arrived; the stream of events keeps the network busy.
  await page.waitForTimeout(1000);
  // No row is under the pointer.
  await page.mouse.move(1, 1);
  await page.screenshot({ path: `${IMAGES}${name}.png` });
  console.log(`docs/images/${name}.png`);
  await context.close();
}

const { templates } = await api<{ templates: { templateId: string; name: string }[] }>(
  'GET',
  '/web-setup/templates?limit=50',
);
const { campaign } = await api<{ campaign: { campaignId: string } }>('POST', '/web-setup/campaigns', {
  name: 'Winter roast',
});
await api('PATCH', `/web-setup/campaigns/${campaign.campaignId}`, {
  prepared: {
    subscriptionGroupId: group.subscriptionGroupId,
    templateId: templates.find(({ name }) => name === 'Newsletter')?.templateId,
    from: 'Northwind Coffee <hello@news.example>',
    subject: 'The winter roast is here',
    previewText: 'Dark chocolate, orange and a little smoke. Order until Friday.',
  },
});

await picture('console-overview', '?period=30d');
await picture('console-overview-dark', '?period=30d', { dark: true });
await picture('console-messages', 'messages', {
  prepare: async (page) => {
    await page.locator('main tbody tr', { hasText: 'Bounced' }).getByRole('link').first().click();
    await page.getByRole('heading', { name: 'Timeline' }).waitFor();
  },
});
await picture('console-results', `campaigns/${campaignIds.at(-3)}`);
await picture('console-composer', `campaigns/${campaign.campaignId}?step=review`);
await picture('console-templates', 'templates');
const { starters } = await api<{ starters: { starterId: string; name: string; design: object }[] }>(
  'GET',
  '/web-setup/templates/starters',
);
const newsletter = starters.find(({ starterId }) => starterId === 'newsletter');
const { template } = await api<{ template: { templateId: string } }>('POST', '/web-setup/templates', {
  name: newsletter?.name,
  design: newsletter?.design,
});
await picture('console-blocks', `templates/${template.templateId}`, {
  prepare: (page) => page.locator('[data-type="text"] .prose').first().click(),
});

await browser.close();
await running.stop();
await receiver.stop();
rmSync(folder, { recursive: true });
