// Long: opens pages of the console on a phone and a desktop, light and dark.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { type OpenConsole, openConsole } from './open-console.ts';

/* The settings of the public pages and requests for erasure, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0', 'public.url': 'http://127.0.0.1:0' });
  client = await daemon.account('Shop');
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

const settings = async () => (await client.get<object>('/web-setup/public-pages')).data;

describe('the settings of the public pages', () => {
  it('are saved with the texts of one language, and keep those of others', async () => {
    await client.put('/web-setup/public-pages', { texts: { fr: { 'report.title': 'Plainte' } } });
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'settings', client);
    const form = page.getByRole('form', { name: 'Public pages' });
    await form.getByLabel('Name of the sender').fill('Laden');
    await form.getByLabel('Color of buttons').fill('#aa0000');
    await form.getByLabel('Fields that people').fill('firstName, customFields.city = City');
    await form.getByLabel('Texts in').selectOption('de');
    await form.getByText('Unsubscribe', { exact: true }).click();
    const title = form.getByRole('textbox', { name: 'unsubscribe.title' });
    expect(await title.getAttribute('placeholder')).toBe('Abmelden');
    await title.fill('Tschüss?');
    await window.screenshot('console-public-pages');
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The public pages were saved').waitFor();
    expect(await settings()).toMatchObject({
      name: 'Laden',
      colors: { accent: '#aa0000', background: null },
      profileFields: [
        { field: 'firstName', label: null },
        { field: 'customFields.city', label: 'City' },
      ],
      texts: { de: { 'unsubscribe.title': 'Tschüss?' }, fr: { 'report.title': 'Plainte' } },
    });
    expect(consoleErrors).toEqual([]);
    await context.close();
  });
});

describe('a request for erasure', () => {
  it('is named in the list and on the page of the contact, with its pause', async () => {
    await client.post('/web-setup/contacts', { email: 'ada@example.net', language: 'de' });
    const contact = daemon.tables.contacts.list({ accountId: client.accountId, beforeSeq: null, limit: 1 })
      .rows[0];
    if (contact === undefined) throw new Error('no contact');
    const now = Date.now();
    daemon.tables.contacts.update({
      ...contact,
      erasure_requested_at: now,
      paused_until: now + 1_000_000_000,
    });
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'contacts', client);
    await page.getByText('These people asked to be erased').waitFor();
    await page.getByRole('link', { name: 'ada@example.net' }).first().click();
    await page.getByText('Asked to be erased:').waitFor();
    await page.getByText('Marketing mail is paused by the person until').waitFor();
    await context.close();
    await open.examine(
      { settings: 'settings', contacts: 'contacts', contact: `contacts/${contact.email_hash}` },
      client,
    );
  });
});
