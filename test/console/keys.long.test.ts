// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { findings, HOSTILE, type OpenConsole, openConsole } from './open-console.ts';

/* The pages of keys and of accounts in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let other: ApiClient;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0', 'limits.account.domains': 7 });
  client = await daemon.account('Shop');
  other = await daemon.account(HOSTILE);
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

/** The status of a request with a key. */
const statusWith = async ({ accountId }: ApiClient, secret: string) => {
  const headers = { 'X-Api-Key': secret, 'X-Id': accountId };
  return (await fetch(`${daemon.url}/web-setup/account`, { headers })).status;
};

/** Whether an element is completely inside the window. */
const isInWindow = (selector: string) => `(() => {
  const { top, bottom } = document.querySelector('${selector}').getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
})()`;

const keyNamed = (name: string) =>
  daemon.tables.apiKeys.list(client.accountId).find((key) => key.name === name);

describe('Keys', () => {
  it('creates a key with restrictions by keyboard, shows it once and its last use, and revokes it', async () => {
    const window = await open.member(client, 'developer', PHONE);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'keys', client);
    await page.getByRole('button', { name: 'Create a key' }).press('Enter');
    await expect
      .poll(() =>
        page
          .getByRole('textbox', { name: /^Name/ })
          .evaluate((field) => field === field.ownerDocument.activeElement),
      )
      .toBe(true);
    await page.keyboard.type(HOSTILE);
    await page.keyboard.press('Tab');
    // Transactional mail is chosen at first.
    await page.keyboard.press('Space');
    await page.getByRole('checkbox', { name: /^setup/ }).press('Space');
    await page.getByText('Restrictions', { exact: true }).and(page.locator('summary')).press('Enter');
    await page.getByLabel('Only from these addresses or networks').fill('127.0.0.0/8, ::1');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'The new key' });
    const value = dialog.locator('pre');
    const secret = (await value.textContent()) ?? '';
    expect(secret).toMatch(/^pr_/);
    await expect(page.evaluate(isInWindow('dialog[open] pre'))).resolves.toBe(true);
    expect(await findings(window)).toEqual([]);
    await window.screenshot('console-new-key-phone');
    await page.keyboard.press('Escape');
    expect(await value.isVisible()).toBe(true);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await dialog.getByRole('button', { name: 'Copy the key' }).press('Enter');
    await dialog.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(secret);
    await dialog.getByRole('button', { name: 'I have stored it' }).press('Enter');
    await dialog.waitFor({ state: 'detached' });
    const row = page.getByRole('row').filter({ hasText: HOSTILE });
    await row.getByText('setup · 127.0.0.0/8, ::1').waitFor();
    const created = keyNamed(HOSTILE);
    expect(created).toMatchObject({
      scopes: '["setup"]',
      allow_ips: '["127.0.0.0/8","::1"]',
      revoked_at: null,
    });
    expect(await statusWith(client, secret)).toBe(200);
    expect(await findings(window)).toEqual([]);

    daemon.tables.apiKeys.use(created?.key_id ?? '', Date.parse('2026-02-03T12:00:00Z'));
    await open.visit(window, 'keys', client);
    expect(await page.content()).not.toContain(secret);
    expect(await row.textContent()).toMatch(/3 Feb, |Feb 3, /);
    await row.getByRole('button', { name: `Actions for ${HOSTILE}` }).press('Enter');
    expect(await findings(window)).toEqual([]);
    await row.getByRole('button', { name: 'Revoke' }).press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).press('Enter');
    await row.getByText(/^revoked /).waitFor();
    expect(await statusWith(client, secret)).toBe(401);
    expect(await page.title()).toBe('Keys · Postrider');
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('names what is wrong with a key', async () => {
    const window = await open.member(client, 'owner', DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'keys', client);
    await page.getByRole('button', { name: 'Create a key' }).click();
    expect(await findings(window)).toEqual([]);
    await page.getByRole('textbox', { name: /^Name/ }).fill('Wrong');
    await page.getByText('Restrictions', { exact: true }).and(page.locator('summary')).click();
    await page.getByLabel('Only from these addresses or networks').fill('10.0.0');
    await page.getByRole('button', { name: 'Create the key' }).click();
    await page.getByText('allowIps: "10.0.0" is not an address or network').waitFor();
    await page.getByRole('checkbox', { name: /^transactional/ }).uncheck();
    await page.getByRole('button', { name: 'Create the key' }).click();
    await page.getByText('Choose at least one use').waitFor();
    expect(keyNamed('Wrong')).toBeUndefined();
    await context.close();
  });

  it('shows a program in the chosen language', async () => {
    const window = await open.member(client, 'developer', DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'keys', client);
    const languages = await page.getByLabel('Programming language').locator('option').allTextContents();
    expect(languages).toEqual(['Shell', 'JavaScript', 'Python', 'Java', 'PHP', 'Ruby', 'Go', 'C#']);
    await page.getByLabel('Programming language').selectOption('Go');
    await page.getByText('package main').waitFor();
    await page.reload();
    await page.getByText('package main').waitFor();
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy the account id' }).press('Enter');
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(client.accountId);
    await context.close();
  });
});

describe('Accounts', () => {
  it('creates an account, whose keys are shown once, and finds it', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'system/accounts', client);
    await page.getByRole('rowheader', { name: HOSTILE }).waitFor();
    await page.getByRole('button', { name: 'Create an account' }).click();
    const form = page.getByRole('form', { name: 'Create an account' });
    await form.getByLabel('Name', { exact: true }).fill('New Shop');
    await form.getByLabel('Account id').fill('acct_new');
    await page.keyboard.press('Enter');
    const secret = (await page.getByRole('dialog').locator('pre').first().textContent()) ?? '';
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByText('The account acct_new was created').waitFor();
    expect(await statusWith({ ...client, accountId: 'acct_new' }, secret)).toBe(200);
    await page.getByRole('searchbox').fill('new sh');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByRole('rowheader').allTextContents()).toEqual(['New Shop']);
    expect(page.url()).toContain('search=new+sh');
    await page.getByRole('searchbox').fill('no such account');
    await page.keyboard.press('Enter');
    await page.getByText('No account matches').waitFor();
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('changes limits, disables and enables an account, by keyboard on a phone', async () => {
    const window = await open.operator(PHONE, { dark: true });
    const { page, context } = window;
    await open.visit(window, `system/accounts/${other.accountId}`, client);
    await page.getByRole('heading', { level: 1, name: HOSTILE }).waitFor();
    const domains = page.getByRole('row').filter({ hasText: 'Domains' });
    expect(await domains.getByRole('cell').first().textContent()).toBe('0');
    await domains.getByText('7', { exact: true }).waitFor();
    await page.getByLabel('Rule for Domains').selectOption('at most');
    await page.getByLabel('Maximum for Domains').fill('2');
    await page.getByLabel('Rule for Contacts').selectOption('unlimited');
    await page.getByRole('button', { name: 'Save the limits' }).press('Enter');
    await page.getByText('The limits were saved').waitFor();
    await domains.getByText('2', { exact: true }).waitFor();
    expect(daemon.tables.accountLimits.get(other.accountId)).toMatchObject({
      domains: 2,
      contacts: -1,
      webhooks: null,
    });
    await page.getByRole('button', { name: /^Actions for / }).press('Enter');
    await page.getByRole('button', { name: 'Disable the account' }).press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Disable the account' }).press('Enter');
    await page.getByText('The account is disabled').waitFor();
    expect(await statusWith(other, other.keys.setup)).toBe(403);
    await page.getByRole('button', { name: 'Enable the account' }).press('Enter');
    await page.getByText('The account is enabled').waitFor();
    expect(await statusWith(other, other.keys.setup)).toBe(200);
    expect(await page.title()).toBe(`${HOSTILE} · Postrider`);
    await context.close();
  });

  it('is shown to operators only', async () => {
    const window = await open.member(client, 'owner', DESKTOP);
    await open.visit(window, 'system/accounts', client);
    await window.page.getByText('Only operators of the installation').first().waitFor();
    await window.context.close();
  });
});

it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
  const account = `system/accounts/${client.accountId}`;
  await open.examine({ keys: 'keys', accounts: 'system/accounts', account }, client);
});
