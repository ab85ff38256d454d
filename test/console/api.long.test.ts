// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { findings, HOSTILE, type OpenConsole, openConsole } from './open-console.ts';

/* The page that calls operations of the API, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

describe('the page of the API', () => {
  it('calls an operation by keyboard with a body, and shows the response and the command', async () => {
    const window = await open.member(client, 'owner', DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'reference', client);
    await page.getByLabel('Filter').fill('create template');
    await page.getByRole('link', { name: /^Create a template/ }).press('Enter');
    const body = page.getByRole('textbox', { name: 'Body' });
    expect(JSON.parse(await body.inputValue())).toHaveProperty('html');
    await body.fill(JSON.stringify({ name: `It's ${HOSTILE}`, html: '<p>{{company_address_html}}</p>' }));
    await page.getByRole('button', { name: 'Send the request' }).press('Enter');
    const response = page.getByRole('region', { name: 'Response' });
    await response.getByText(/^20[01]$/).waitFor();
    expect(await response.locator('pre').first().textContent()).toContain('"templateId": "template_');
    expect(
      daemon.tables.templates.list({ accountId: client.accountId, beforeSeq: null, limit: 2 }).rows,
    ).toMatchObject([{ name: `It's ${HOSTILE}` }]);
    await response.getByText('The same with curl').first().press('Enter');
    const command = (await response.locator('pre').last().textContent()) ?? '';
    expect(command).toContain(`curl -sS -X POST '${daemon.url}/web-setup/templates'`);
    expect(command).toContain("It'\\''s");
    expect(await findings(window)).toEqual([]);
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('keeps the values of parameters in the address, and shows errors as they are', async () => {
    const window = await open.member(client, 'developer', PHONE);
    const { page, context } = window;
    await open.visit(window, 'reference/getMessage', client);
    await page.getByRole('textbox', { name: /^id/ }).fill('msg_none/../x');
    await page.getByRole('button', { name: 'Send the request' }).click();
    const response = page.getByRole('region', { name: 'Response' });
    await response.getByText('404', { exact: true }).waitFor();
    await response.getByText('"MESSAGE_NOT_FOUND"').waitFor();
    expect(await findings(window)).toEqual([]);
    await page.reload();
    expect(await page.getByRole('textbox', { name: /^id/ }).inputValue()).toBe('msg_none/../x');

    await page.getByRole('textbox', { name: /^id/ }).fill('..');
    await page.getByRole('button', { name: 'Send the request' }).click();
    await page.getByText('id: ..').waitFor();
    expect(await response.count()).toBe(0);

    await open.visit(window, 'reference/listWebhookDeliveries?in.webhookId=wh_1&in.status=failed', client);
    expect(await page.getByRole('combobox', { name: /^status/ }).inputValue()).toBe('failed');
    await context.close();
  });

  it('lists only what the role permits, and asks before it deletes', async () => {
    const window = await open.member(client, 'developer', DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'reference?filter=campaign', client);
    await page.getByRole('link', { name: /^List campaigns/ }).waitFor();
    expect(await page.getByRole('link', { name: /^Send a campaign|^Create a campaign/ }).count()).toBe(0);
    const created = await client.post<{ webhookId: string }>('/web-setup/webhooks', {
      url: 'https://hooks.example.com/',
      events: ['email_bounced'],
    });
    const { webhookId } = created.data;
    await open.visit(window, `reference/deleteWebhook?in.webhookId=${webhookId}`, client);
    await page.getByRole('button', { name: 'Send the request' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Go back' }).click();
    expect((await client.get(`/web-setup/webhooks/${webhookId}`)).status).toBe(200);
    await page.getByRole('button', { name: 'Send the request' }).click();
    await dialog.getByRole('button', { name: 'Send the request' }).click();
    await page
      .getByRole('region', { name: 'Response' })
      .getByText(/^20[01]$/)
      .waitFor();
    expect((await client.get(`/web-setup/webhooks/${webhookId}`)).status).toBe(404);
    await context.close();
  });

  it('is not offered to roles that develop nothing', async () => {
    const window = await open.member(client, 'viewer', DESKTOP);
    const { page, context } = window;
    await open.visit(window, '', client);
    await page.getByRole('link', { name: 'Messages', exact: true }).waitFor();
    expect(await page.getByRole('link', { name: 'API', exact: true }).count()).toBe(0);
    await context.close();
  });

  it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
    await open.examine({ api: 'reference', 'api-operation': 'reference/updateTemplate' }, client);
  });
});
