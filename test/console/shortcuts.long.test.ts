// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../src/core/clock.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { insertDomain } from '../support/store.ts';
import { findings, HOSTILE, type OpenConsole, openConsole, openPersonMenu } from './open-console.ts';

/* Keyboard shortcuts, actions of the palette, and the bell, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let other: ApiClient;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  other = await daemon.account('Second shop');
  for (const name of ['ada', 'grace', 'edsger'])
    await client.post('/web-setup/contacts', { email: `${name}@example.net`, consentMethod: 'web_form' });
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

function failingDomain(accountId: string, domain_id: string): void {
  const [group] = daemon.tables.domainGroups.list(accountId);
  insertDomain(
    daemon.tables,
    {
      account_id: accountId,
      group_id: group?.group_id ?? '',
      domain_id,
      name: `${domain_id.replace('_', '-')}.test`,
      status: 'TEMPORARY_FAILURE',
      failing_since: Date.now() - HOUR,
      next_check_at: Date.now() + DAY,
    },
    Date.now(),
  );
}

describe('keyboard shortcuts', () => {
  it('open pages, and move in a list', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, '', client);
    // Shortcuts are loaded after the page.
    await expect
      .poll(async () => {
        await page.keyboard.press('g');
        await page.keyboard.press('n');
        return page.getByRole('heading', { level: 1, name: 'Contacts' }).isVisible();
      })
      .toBe(true);
    const links = page.locator('tbody th a');
    await expect.poll(() => links.count()).toBe(3);
    const focused = () => page.evaluate('document.activeElement?.textContent');
    await page.keyboard.press('j');
    await expect.poll(focused).toBe(await links.nth(0).textContent());
    await page.keyboard.press('j');
    await expect.poll(focused).toBe(await links.nth(1).textContent());
    await page.keyboard.press('k');
    await expect.poll(focused).toBe(await links.nth(0).textContent());
    await page.keyboard.press('x');
    await expect.poll(() => page.locator('tbody input:checked').count()).toBe(1);
    await page.keyboard.press('/');
    await expect.poll(() => page.evaluate('document.activeElement?.type')).toBe('search');
    // Keys in a field are text.
    await page.keyboard.type('gm?');
    expect(await page.evaluate('document.activeElement?.value')).toBe('gm?');
    expect(await page.getByRole('dialog').count()).toBe(0);
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('are listed in a dialog, and can be turned off in the profile, also for the next sign-in', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'me', client);
    await page.keyboard.press('?');
    const list = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await list.getByText('Next row').waitFor();
    expect(await findings(window)).toEqual([]);
    await page.keyboard.press('Escape');
    await list.waitFor({ state: 'detached' });
    await page.getByLabel('Keyboard shortcuts of one key').press('Space');
    await page.getByText('Saved').waitFor();
    await page.getByRole('heading', { level: 1 }).click();
    for (const key of ['?', 'g', 'm']) await page.keyboard.press(key);
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'Your profile' }).waitFor();
    for (const key of ['?', 'g', 'm']) await page.keyboard.press(key);
    await openPersonMenu(page);
    // The list is not a shortcut itself: the menu has it.
    await page.getByRole('button', { name: 'Keyboard shortcuts' }).click();
    await list.waitFor();
    expect(page.url()).toContain('/console/me');
    expect(await page.getByRole('dialog').count()).toBe(1);
    await context.close();
  });

  it('do nothing with a modifier, or while a dialog is open', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'keys', client);
    for (const key of ['Alt+g', 'Alt+m']) await page.keyboard.press(key);
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.getByRole('button', { name: 'Close' }).focus();
    for (const key of ['g', 'm', '?']) await page.keyboard.press(key);
    expect(page.url()).toContain('/console/keys');
    expect(await page.getByRole('dialog').count()).toBe(1);
    await context.close();
  });
});

describe('the palette', () => {
  it('creates a key, lists recent pages, and switches to another account', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'webhooks', client);
    await page.getByRole('link', { name: 'Groups', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Groups' }).waitFor();
    await page.keyboard.press('Control+K');
    await page.getByRole('option', { name: 'Recent: Webhooks', selected: true }).waitFor();
    expect(await findings(window)).toEqual([]);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor();
    for (let time = 0; time < 2; time++) {
      await page.keyboard.press('Control+K');
      await page.getByRole('combobox', { name: 'Address, id, domain' }).fill('create a key');
      await page.getByRole('option', { name: 'Create a key', selected: true }).waitFor();
      await page.keyboard.press('Enter');
      await page.getByRole('dialog', { name: 'Create a key' }).waitFor();
      expect(page.url()).not.toContain('create=');
      await page.keyboard.press('Escape');
    }
    await page.keyboard.press('Control+K');
    await page.getByRole('combobox', { name: 'Address, id, domain' }).fill('second');
    await page.getByRole('option', { name: 'Switch to Second shop', selected: true }).waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.url()).toContain(other.accountId);
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('pauses a campaign that is being sent', async () => {
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await page.route('**/web-setup/campaigns?limit=50', (sent) =>
      sent.fulfill({
        json: {
          success: true,
          data: { campaigns: [{ campaignId: 'campaign_1', name: HOSTILE, status: 'sending' }] },
          requestId: 'req_1',
        },
      }),
    );
    const paused: string[] = [];
    await page.route('**/web-setup/campaigns/*/pause', (sent) => {
      paused.push(new URL(sent.request().url()).pathname);
      return sent.fulfill({ json: { success: true, data: {}, requestId: 'req_2' } });
    });
    await open.visit(window, '', client);
    await page.getByRole('button', { name: 'Find anything…' }).click();
    await page.getByRole('combobox', { name: 'Address, id, domain' }).fill('pause');
    await page.getByRole('option', { name: `Pause ${HOSTILE}` }).click();
    await page.getByText(`${HOSTILE} is paused`).waitFor();
    expect(paused).toEqual(['/console/api/web-setup/campaigns/campaign_1/pause']);
    expect(await page.title()).toBe('Overview · Postrider');
    await context.close();
  });
});

describe('the bell', () => {
  it('counts what needs attention since it was opened last, for each person', async () => {
    failingDomain(client.accountId, 'domain_one');
    // Operators also see the problems of this machine.
    const window = await open.member(client, 'owner', PHONE, { dark: true });
    const { page, context } = window;
    await open.visit(window, '', client);
    const bell = page.getByRole('button', { name: /^Notifications/ });
    await page.getByRole('button', { name: 'Notifications: 1 new thing needs attention' }).click();
    const list = page.locator('.notifications');
    await list.getByRole('link', { name: /new: .*domain-one\.test/ }).waitFor();
    expect(await findings(window)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Notifications', exact: true }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Notifications', exact: true }).waitFor();
    failingDomain(client.accountId, 'domain_two');
    await page.reload();
    await page.getByRole('button', { name: 'Notifications: 1 new thing needs attention' }).waitFor();
    expect(await page.getByRole('status').filter({ hasText: '1 new thing' }).count()).toBe(1);
    await bell.click();
    await list.getByRole('link', { name: /domain-two\.test/ }).click();
    await expect.poll(() => page.url()).toContain('/domains/domain_two');
    expect(await list.isVisible()).toBe(false);

    const colleague = await open.member(client, 'viewer', DESKTOP);
    await open.visit(colleague, '', client);
    await colleague.page
      .getByRole('button', { name: 'Notifications: 2 new things need attention' })
      .waitFor();
    await colleague.context.close();
    await context.close();
  });
});

describe('the settings of the account', () => {
  it('state what is missing, and store company and address', async () => {
    const account = await daemon.account('Unfinished');
    await account.call('PUT', '/web-setup/account', {
      body: { companyName: null, companyAddress: null },
    });
    const window = await open.member(account, 'owner', PHONE);
    const { page, context } = window;
    await open.visit(window, 'settings', account);
    await page.getByText('The company or its postal address is missing').waitFor();
    await page.getByLabel('Company, as in the footer').fill(HOSTILE);
    await page.getByLabel('Street and number').fill('1 Main Street');
    await page.getByLabel('City').fill('Springfield');
    await page.getByLabel('Country').fill('Ireland');
    const form = page.getByRole('form', { name: 'Company and address' });
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The account was saved').waitFor();
    await page.getByText('The company or its postal address is missing').waitFor({ state: 'detached' });
    const { data } = await account.get<{ companyName: string; companyAddress: object }>('/web-setup/account');
    expect(data).toMatchObject({
      companyName: HOSTILE,
      companyAddress: { line1: '1 Main Street', city: 'Springfield', country: 'Ireland', postalCode: '' },
    });
    await context.close();
  });
});

it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
  await open.examine({ settings: 'settings' }, client);
});
