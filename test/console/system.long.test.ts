// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { enqueue } from '../support/store.ts';
import { findings, HOSTILE, insertShopDomain, type OpenConsole, openConsole } from './open-console.ts';

/* The page of the system and the palette, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let other: ApiClient;
let messageId: string;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  other = await daemon.account(HOSTILE);
  insertShopDomain(daemon, client);
  ({ message_id: messageId } = enqueue(daemon.tables, Date.now(), {
    account_id: client.accountId,
    domain_id: 'domain_1',
    dueAt: Date.now() + DAY,
  }));
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

describe('System', () => {
  it('shows failed checks with what to change, the queue and the accounts', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await page.getByRole('link', { name: 'System', exact: true }).click();
    const checks = page.getByRole('region', { name: 'Checks' });
    await checks.getByText('failure').first().waitFor();
    expect(await checks.getByText('passes', { exact: true }).count()).toBe(0);
    await page.getByRole('link', { name: 'Show all checks' }).press('Enter');
    await checks.getByText('passes', { exact: true }).first().waitFor();
    expect(page.url()).toContain('checks=all');
    await page.getByRole('region', { name: 'Queue' }).getByRole('rowheader').waitFor();
    await page.getByText('No backups are scheduled').waitFor();
    await page.getByRole('region', { name: 'Source addresses' }).getByText('192.0.2.25').waitFor();
    await page.getByRole('link', { name: HOSTILE }).click();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    expect(page.url()).toContain(other.accountId);
    expect(await page.title()).toBe('Overview · Postrider');
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('is shown to operators only', async () => {
    const window = await open.member(client, 'owner', DESKTOP);
    expect(await window.page.getByRole('link', { name: 'System', exact: true }).count()).toBe(0);
    await open.visit(window, 'system', client);
    await window.page.getByText('Only operators of the installation see this page').waitFor();
    await window.context.close();
  });
});

describe('the palette', () => {
  it('opens pages, messages, domains, recipients and accounts by keyboard', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, '', client);
    const find = async (text: string, option: string) => {
      await page.keyboard.press('Control+K');
      await page.getByRole('combobox', { name: 'Address, id, domain' }).fill(text);
      await page.getByRole('option', { name: option, exact: true, selected: true }).waitFor();
      await page.keyboard.press('Enter');
    };
    await find('templ', 'Page: Templates');
    await page.getByRole('heading', { level: 1, name: 'Templates' }).waitFor();
    await find(messageId, `Message ${messageId}`);
    await page.getByRole('button', { name: 'Cancel the message' }).waitFor();
    await find('shop.te', 'Domain shop.test');
    await expect.poll(() => page.url()).toContain('/console/domains/domain_1?');
    await find('ann@example.com', 'Messages to ann@example.com');
    await page.getByText('No message matches').waitFor();
    expect(page.url()).toContain('recipient=ann%40example.com');
    await find('onerror', `Switch to ${HOSTILE}`);
    await expect.poll(() => page.url()).toContain(other.accountId);
    await context.close();
  });

  it('opens again directly after it was closed', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, '', client);
    await page.keyboard.press('Control+K');
    const input = page.getByRole('combobox', { name: 'Address, id, domain' });
    await input.waitFor();
    // In one turn: the browser reports that the dialog was closed after it was opened again.
    await page.evaluate(`new Promise((closed) => {
      const dialog = document.querySelector('dialog.palette');
      dialog.addEventListener('close', closed, { once: true });
      dialog.close();
      document.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true }));
    }).then(() => undefined)`);
    await input.fill('templ');
    await page.getByRole('option', { name: 'Page: Templates', exact: true, selected: true }).waitFor();
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('opens what the server finds by id or by name', async () => {
    const template = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
      name: 'Quarterly report',
      subject: 'Report',
      html: '<p>{{company_address_html}}{{unsubscribe_email_html}}</p>',
    });
    await client.post('/web-setup/contacts', {
      email: 'grace@example.net',
      firstName: 'Grace',
      lastName: 'Hopper',
    });
    const webhook = await client.post<{ webhookId: string }>('/web-setup/webhooks', {
      name: 'Shop',
      url: 'https://hooks.example.com/in',
      events: ['*'],
    });
    const { webhookId } = webhook.data;
    const at = Date.now();
    const event_id = `evt_${at}_000000000001`;
    const event = { event_id, account_id: client.accountId, kind: 'domain_verified', at } as const;
    const eventSeq = daemon.tables.events.insert({
      ...event,
      message_seq: null,
      domain_id: 'domain_1',
      data: '{}',
    });
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, '', client);
    const find = async (text: string, option: string) => {
      await page.keyboard.press('Control+K');
      await page.getByRole('combobox', { name: 'Address, id, domain' }).fill(text);
      await page.getByRole('option', { name: option, exact: true, selected: true }).waitFor();
      await page.keyboard.press('Enter');
    };
    await find('quarterly', 'Template Quarterly report');
    await expect.poll(() => page.url()).toContain(template.data.template.templateId);
    await find('hopper', 'Contact Grace Hopper grace@example.net');
    await page.getByRole('heading', { level: 1, name: 'grace@example.net' }).waitFor();
    await find(webhookId, `Webhook ${webhookId}`);
    await expect.poll(() => page.url()).toContain(`/webhooks/${webhookId}`);
    await find('job_1_2', 'Messages of job job_1_2');
    await expect.poll(() => page.url()).toContain('jobId=job_1_2');
    await find('waiting.test', 'Queue for waiting.test');
    await page.getByRole('heading', { level: 1, name: 'waiting.test' }).waitFor();
    // A webhook that was turned off has deliveries, too.
    const body = { isActive: false };
    expect((await client.call('PATCH', `/web-setup/webhooks/${webhookId}`, { body })).status).toBe(200);
    const { number = 0 } = daemon.tables.webhooks.get(client.accountId, webhookId) ?? {};
    const deliveryId = `whd_${at}_000000000001`;
    daemon.tables.webhookDeliveries.insert({ webhook: number, eventSeq, deliveryId, at });
    await find(deliveryId, `Webhook of delivery ${deliveryId}`);
    await expect.poll(() => page.url()).toContain(`/webhooks/${webhookId}`);
    const key = await client.post<{ key: { keyId: string } }>('/web-setup/keys', {
      name: 'Till',
      scopes: ['setup'],
    });
    const { keyId } = key.data.key;
    await find(keyId, `API key ${keyId}`);
    await page.getByRole('row', { name: 'Till' }).waitFor();
    await find(event_id, `Event ${event_id}`);
    await expect.poll(() => page.url()).toContain('/domains/domain_1');
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('chooses with the arrow keys and the mouse, on a phone, without a finding of axe-core', async () => {
    const window = await open.operator(PHONE, { dark: true });
    const { page, context } = window;
    await open.visit(window, '', client);
    await page.getByRole('button', { name: 'Find anything…' }).click();
    await page.getByRole('option', { name: 'Page: Overview' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    await page.getByRole('option', { name: 'Invite a person', selected: true }).waitFor();
    expect(await findings(window)).toEqual([]);
    await window.screenshot('console-palette-phone-dark');
    await page.getByRole('option', { name: 'Page: Domains' }).click();
    await page.getByRole('heading', { level: 1, name: 'Domains' }).waitFor();
    await page.keyboard.press('Control+K');
    await page.getByRole('combobox', { name: 'Address, id, domain' }).fill('no such thing');
    await page.getByText('Nothing was found.').waitFor();
    await page.keyboard.press('Escape');
    expect(await page.getByRole('dialog').count()).toBe(0);
    await context.close();
  });
});

it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
  await open.examine({ system: 'system?checks=all' }, client);
});
