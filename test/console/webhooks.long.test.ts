// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type InProcess, PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { findings, HOSTILE, insertShopDomain, type OpenConsole, openConsole } from './open-console.ts';

/* Suppressions and webhooks, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let endpoint: Server;
let address: string;
const BOUNCED = `bounced@simulator.${PLATFORM}`;

beforeAll(async () => {
  endpoint = createServer((request, response) => {
    request.resume();
    response.writeHead(503).end(HOSTILE);
  }).listen(0, '127.0.0.1');
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0', 'webhooks.allowPrivateNetworks': true });
  client = await daemon.account('Shop');
  address = `http://localhost:${(endpoint.address() as AddressInfo).port}/hook`;
  insertShopDomain(daemon, client);
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
  endpoint?.close();
});

it('creates a webhook by keyboard, tests it, shows the response as text, and rotates the secret', async () => {
  const window = await open.operator(DESKTOP);
  const { page, context, consoleErrors } = window;
  await open.visit(window, 'webhooks', client);
  await page.getByText('No webhooks yet').waitFor();
  await page.getByRole('button', { name: 'Add a webhook' }).press('Enter');
  expect(await findings(window)).toEqual([]);
  await page.getByLabel('Address of the endpoint').fill(address);
  await page.getByLabel('Name').fill(HOSTILE);
  await page.keyboard.press('Enter');
  const shown = page.getByRole('dialog', { name: 'The secret of the webhook' });
  const first = (await shown.locator('pre').textContent()) ?? '';
  await shown.getByRole('button', { name: 'I have stored it' }).press('Enter');
  await page.getByRole('heading', { level: 1, name: HOSTILE }).waitFor();
  await page.getByRole('button', { name: 'Send a test event' }).press('Enter');
  const result = page.getByRole('dialog', { name: 'Result of the test' });
  await result.getByText('The endpoint did not accept the event').waitFor();
  await result.getByText(HOSTILE).first().waitFor();
  expect(await findings(window)).toEqual([]);
  await result.getByRole('button', { name: 'Close' }).press('Enter');
  await page.getByText('Show the secret').click();
  const secret = (await page.locator('details[open] pre').first().textContent()) ?? '';
  expect(secret).toMatch(/^whsec_/);
  expect(first).toBe(secret);
  await page.getByRole('button', { name: 'Actions' }).press('Enter');
  await page.getByRole('button', { name: 'Rotate the secret' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate the secret' }).click();
  const rotated = (await shown.locator('pre').textContent()) ?? '';
  expect(rotated).not.toBe(secret);
  await shown.getByRole('button', { name: 'I have stored it' }).press('Enter');
  await page.getByText('The secret was rotated').waitFor();
  await expect.poll(() => page.locator('details[open] pre').first().textContent()).toBe(rotated);
  expect(await page.title()).toBe(`${HOSTILE} · Postrider`);
  expect(consoleErrors).toEqual([]);
  await context.close();
});

it('shows failed deliveries with the response, retries one and replays a period', async () => {
  await client.send({
    from: 'orders@shop.test',
    to: BOUNCED,
    subject: HOSTILE,
    html: '<p>Thank you</p><p>{{company_address_html}}{{unsubscribe_email_html}}</p>',
  });
  const window = await open.operator(PHONE);
  const { page, context } = window;
  await open.visit(window, 'webhooks', client);
  await page.getByRole('link', { name: HOSTILE }).press('Enter');
  await page.locator('.status.bad', { hasText: 'failing' }).waitFor();
  const row = page.getByRole('row', { name: 'Rejected permanently' }).first();
  await row.getByText('the endpoint responded with 503').waitFor();
  await row.getByRole('link', { name: 'Rejected permanently' }).press('Enter');
  const exchange = page.getByRole('dialog', { name: 'Payload and response' });
  await exchange.getByText(HOSTILE).first().waitFor();
  const payload = JSON.parse((await exchange.locator('pre').last().textContent()) ?? '');
  expect(payload).toMatchObject({ type: 'email_bounced', data: { object: { to: [BOUNCED] } } });
  expect(page.url()).toContain('delivery=whd_');
  expect(await findings(window)).toEqual([]);
  await page.keyboard.press('Escape');
  await exchange.waitFor({ state: 'detached' });
  await page.getByText('Every call has failed since').waitFor();
  await row.getByRole('button', { name: 'Retry now' }).press('Enter');
  await page.getByText('The delivery is tried now').waitFor();
  await page.getByRole('link', { name: 'delivered', exact: true }).click();
  await page.getByText('No deliveries').waitFor();
  expect(page.url()).toContain('status=succeeded');
  await page.getByText('Replay events of a period').click();
  await page.getByRole('button', { name: 'Replay' }).click();
  await page.getByText(/Events that are sent now: [1-9]/).waitFor();
  await context.close();
});

it('names a webhook whose every call fails in the list, and leads from the overview to what waits', async () => {
  const window = await open.operator(DESKTOP);
  const { page, context } = window;
  await open.visit(window, 'webhooks', client);
  const row = page.getByRole('row', { name: HOSTILE });
  await row.locator('.status.bad', { hasText: 'failing' }).waitFor();
  await row.getByText('503').waitFor();
  await row.getByText('0%', { exact: true }).waitFor();
  await open.visit(window, '', client);
  await page.getByRole('link', { name: /^Every call of webhook .* fails/ }).click();
  await page.getByRole('row', { name: 'Rejected permanently' }).first().waitFor();
  expect(page.url()).toContain('status=pending');
  await context.close();
});

it('states that an endpoint is held back, until when, and how much waits behind it', async () => {
  const nextProbeAt = new Date(Date.now() + 600_000).toISOString();
  const window = await open.operator(PHONE);
  const { page, context } = window;
  await page.route('**/webhook-health*', async (sent) => {
    const response = await sent.fetch();
    const body = (await response.json()) as { data: { webhooks: object[] } };
    const webhooks = body.data.webhooks.map((each) => ({ ...each, waiting: 161, nextProbeAt }));
    await sent.fulfill({ response, json: { ...body, data: { webhooks } } });
  });
  await open.visit(window, 'webhooks', client);
  await page.getByRole('link', { name: HOSTILE }).click();
  await page.getByText(/^Waiting for the endpoint: next probe .*, 161 events behind it$/).waitFor();
  await context.close();
});

it('continues a replay that a reload interrupted', async () => {
  const window = await open.operator(DESKTOP);
  const { page, context } = window;
  await open.visit(window, 'webhooks', client);
  await page.getByRole('link', { name: HOSTILE }).click();
  const requested: string[] = [];
  await page.route('**/replay', async (sent) => {
    const { from } = sent.request().postDataJSON() as { from: string };
    requested.push(from);
    // The second request is not answered before the reload.
    if (requested.length === 1) {
      const nextFrom = new Date(Date.parse(from) + 3_600_000).toISOString();
      const data = { replayed: 40, nextFrom };
      await sent.fulfill({ json: { success: true, data, requestId: 'req_1' } });
    } else if (requested.length === 3) {
      await sent.fulfill({ json: { success: true, data: { replayed: 2 }, requestId: 'req_3' } });
    }
  });
  await page.getByText('Replay events of a period').click();
  await page.getByRole('button', { name: 'Replay', exact: true }).click();
  await page.getByText('Done so far: 40').waitFor();
  await expect.poll(() => requested.length).toBe(2);
  page.once('dialog', (dialog) => void dialog.accept());
  await page.reload();
  await page.getByText('Replay events of a period: not finished').waitFor();
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('Events that are sent now: 42').waitFor();
  expect(requested[2]).toBe(requested[1]);
  await context.close();
});

it('sets a filter and headers of a webhook, and keeps headers whose values it does not know', async () => {
  await client.post('/web-setup/webhooks', { url: 'https://gateway.test/', events: ['domain_deleted'] });
  const stored = async () => {
    const { data } = await client.get<{ webhooks: { name: string }[] }>('/web-setup/webhooks');
    return data.webhooks.find(({ name }) => name === 'gateway.test');
  };
  const window = await open.operator(PHONE);
  const { page, context, consoleErrors } = window;
  await open.visit(window, 'webhooks', client);
  await page.getByRole('link', { name: 'gateway.test' }).click();
  const form = page.getByRole('form', { name: 'Edit the webhook' });
  const edit = () => page.getByRole('button', { name: 'Edit the webhook' }).click();
  const save = async () => {
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
  };
  await edit();
  await form.getByLabel('transactional mail').check();
  await form.getByLabel('Only of these domains').fill('shop.test');
  await form.getByLabel('Only with one of these tags').fill('one, two\nthree\n');
  await form.getByLabel('Headers of the calls').fill('X-Tenant: shop\nAuthorization: Bearer a:b');
  expect(await findings(window)).toEqual([]);
  await save();
  await page.getByText('transactional mail · shop.test · one, two, three').waitFor();
  await page.getByText('X-Tenant, Authorization').waitFor();
  const filter = { domains: ['shop.test'], streams: ['transactional'], tags: ['one, two', 'three'] };
  const headerNames = ['X-Tenant', 'Authorization'];
  expect(await stored()).toMatchObject({ events: ['domain_deleted'], filter, headerNames });

  await edit();
  await form.getByText('X-Tenant, Authorization are set').waitFor();
  await form.getByLabel('transactional mail').uncheck();
  await save();
  expect(await stored()).toMatchObject({ filter: { tags: filter.tags }, headerNames });
  await edit();
  await form.getByLabel('Only of these domains').fill('');
  await form.getByLabel('Only with one of these tags').fill('');
  await form.getByLabel('Remove all headers').check();
  await save();
  await page.getByText('X-Tenant, Authorization').waitFor({ state: 'detached' });
  expect(Object.keys((await stored()) ?? {})).not.toEqual(expect.arrayContaining(['filter']));
  expect(Object.keys((await stored()) ?? {})).not.toEqual(expect.arrayContaining(['headerNames']));
  await edit();
  await form.getByLabel('Only of these domains').fill('other.test');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.getByText('other.test is not a domain of this account').waitFor();
  expect(consoleErrors.filter((text) => !text.includes('400'))).toEqual([]);
  await context.close();
});

it('shows the bounce behind a suppression, and removes it', async () => {
  await client.post('/web-setup/suppressions', { email: 'ada@example.net', reason: 'hard_bounce' });
  const window = await open.operator(DESKTOP);
  const { page, context } = window;
  await eventually('the bounce', async () => (await client.allEvents({ event: 'email_bounced' })).length > 0);
  await client.post('/web-setup/suppressions', { email: BOUNCED, reason: 'hard_bounce' });
  await open.visit(window, 'suppressions', client);
  await page.getByRole('search').getByLabel('Whole email address').fill(BOUNCED);
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'ada@example.net' }).waitFor({ state: 'detached' });
  expect(page.url()).toContain('email=bounced');
  await page.getByRole('link', { name: BOUNCED }).press('Enter');
  await page.getByRole('heading', { level: 1, name: BOUNCED }).waitFor();
  await page
    .getByRole('row', { name: 'Rejected permanently' })
    .getByText(/^5\d\d/)
    .waitFor();
  await page.getByRole('link', { name: HOSTILE }).waitFor();
  await page.getByRole('button', { name: 'Remove' }).click();
  const dialog = page.getByRole('dialog');
  // The browser demands a reason.
  await dialog.getByRole('button', { name: 'Remove' }).click();
  await dialog.getByLabel('Reason, for the history').fill(HOSTILE);
  await page.keyboard.press('Enter');
  await page.getByText('This address is not blocked').waitFor();
  await page
    .getByRole('region', { name: 'Removed before' })
    .getByRole('row', { name: 'Permanent bounce' })
    .getByText(HOSTILE)
    .waitFor();
  const { data } = await client.get<{ suppressions: { email: string }[] }>('/web-setup/suppressions');
  expect(data.suppressions.map(({ email }) => email)).toEqual(['ada@example.net']);
  await context.close();
});

it('blocks an address for one kind of mail, and finds it with filters that are in the address', async () => {
  const window = await open.operator(PHONE);
  const { page, context, consoleErrors } = window;
  await open.visit(window, 'suppressions', client);
  await page.getByRole('button', { name: 'Block an address' }).click();
  const form = page.getByRole('form', { name: 'Block an address' });
  await form.getByLabel('Email address').fill('not an address');
  await form.getByRole('button', { name: 'Block' }).click();
  await page.locator('.outcome.bad').waitFor();
  await form.getByLabel('Email address').fill(' Grace@Example.net ');
  await form.getByLabel('Blocked mail').selectOption('mk');
  await form.getByLabel('Email address').press('Enter');
  await page.getByText('Grace@Example.net is blocked').waitFor();
  await page.getByRole('row', { name: /grace@example\.net .*Added by hand/i }).waitFor();
  const { data } = await client.get<{ suppressions: object[] }>('/web-setup/suppressions?reason=manual');
  expect(data.suppressions).toEqual([expect.objectContaining({ reason: 'manual', stream: 'mk' })]);

  const search = page.getByRole('search');
  const listed = () =>
    page.getByRole('region', { name: 'Suppressions' }).getByRole('rowheader').allTextContents();
  const choose = async (filter: string, value: string) => {
    await search.getByRole('button', { name: filter, exact: true }).click();
    await search.getByRole('button', { name: value, exact: true }).click();
  };
  await choose('Reason', 'Permanent bounce');
  await expect.poll(listed).toEqual(['ada@example.net']);
  await search.getByRole('button', { name: 'Remove the filter Reason: Permanent bounce' }).click();
  await choose('Blocked mail', 'Marketing');
  await expect.poll(() => page.url()).toMatch(/stream=mk/);
  await expect
    .poll(async () => (await listed()).map((each) => each.toLowerCase()))
    .toEqual(['grace@example.net']);
  await page.reload();
  await expect.poll(async () => (await listed()).length).toBe(1);
  await search.getByRole('button', { name: 'Remove the filter Blocked mail: Marketing' }).waitFor();
  await search.getByRole('button', { name: 'Views' }).click();
  await search.getByLabel('Name of the view').fill('Marketing only');
  await page.keyboard.press('Enter');
  await page.getByText('The view “Marketing only” was saved').waitFor();
  await choose('Reason', 'Spam complaint');
  await page.getByText('No suppression matches').waitFor();
  await search.getByRole('button', { name: 'Views' }).click();
  await search.getByRole('button', { name: 'Marketing only', exact: true }).click();
  await expect.poll(async () => (await listed()).length).toBe(1);
  expect(page.url()).not.toContain('reason=');
  await search.getByRole('button', { name: 'Views' }).click();
  await search.getByRole('button', { name: 'Delete the view Marketing only' }).click();
  await page.getByText('No view is saved for this list yet.').waitFor();
  await page.keyboard.press('Escape');
  await search.getByRole('button', { name: 'Reset' }).click();
  await expect.poll(async () => (await listed()).length).toBe(2);
  expect(consoleErrors.filter((text) => !text.includes('400'))).toEqual([]);
  await context.close();
});

it('offers a viewer neither secrets nor actions', async () => {
  const window = await open.member(client, 'viewer', DESKTOP);
  const { page, context } = window;
  await open.visit(window, 'webhooks', client);
  expect(await page.getByRole('button', { name: 'Add a webhook' }).count()).toBe(0);
  await page.getByRole('link', { name: HOSTILE }).click();
  await page.getByRole('heading', { name: 'Deliveries' }).waitFor();
  await page.getByRole('row', { name: 'Rejected permanently' }).first().waitFor();
  expect(await page.getByText('Show the secret').count()).toBe(0);
  expect(await page.getByRole('button', { name: 'Edit the webhook' }).count()).toBe(0);
  expect(await page.getByRole('button', { name: 'Retry now' }).count()).toBe(0);
  await open.visit(window, 'suppressions', client);
  expect(await page.getByRole('button', { name: 'Block an address' }).count()).toBe(0);
  await context.close();
});

it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
  const { data } = await client.get<{ webhooks: { webhookId: string }[] }>('/web-setup/webhooks');
  await open.examine(
    {
      suppressions: 'suppressions',
      suppression: 'suppressions/ada@example.net',
      'suppression-removed': `suppressions/${BOUNCED}`,
      webhooks: 'webhooks',
      webhook: `webhooks/${data.webhooks[0]?.webhookId}`,
    },
    client,
  );
});
