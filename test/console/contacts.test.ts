import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { HOSTILE, type OpenConsole, openConsole } from './open-console.ts';

/* Contacts, in Chromium over a daemon in this process. */
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

interface ListedContact {
  email: string | null;
  firstName: string | null;
  globalStatus: string;
  consentMethod: string | null;
  consentDetails: string | null;
  customFields: object;
}

async function contacts(): Promise<ListedContact[]> {
  const { data } = await client.get<{ contacts: ListedContact[] }>('/web-setup/contacts?limit=200');
  return data.contacts;
}

/** The newest import in the background. */
async function importOf(account: ApiClient): Promise<{ importId: string; status: string }> {
  const { data } = await account.get<{ imports: { importId: string; status: string }[] }>(
    '/web-setup/contacts/imports',
  );
  const [newest] = data.imports;
  if (newest === undefined) throw new Error('the account has no import');
  return newest;
}

async function group(name: string): Promise<string> {
  const { data } = await client.post<{ group: { subscriptionGroupId: string } }>(
    '/web-setup/contacts/subscription-groups',
    { name },
  );
  return data.group.subscriptionGroupId;
}

describe('Contacts', () => {
  it('adds a contact by keyboard, and shows its consent history as text', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'contacts', client);
    await page.getByText('No contacts yet').waitFor();
    await page.getByText('Add a contact').press('Enter');
    const form = page.getByRole('form', { name: 'Add a contact' });
    await form.getByLabel('Email address').fill('ada@example.net');
    await form.getByLabel('First name').fill(HOSTILE);
    await form.getByRole('combobox', { name: 'Consent' }).selectOption('web_form');
    await form.getByLabel('Details of the consent').fill(HOSTILE);
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'ada@example.net' }).press('Enter');
    await page.getByRole('heading', { level: 1, name: 'ada@example.net' }).waitFor();
    const history = page.getByRole('region', { name: 'Consent history' });
    await history.getByText('Consent given').waitFor();
    await history.getByText(HOSTILE, { exact: true }).waitFor();
    await page.emulateMedia({ media: 'print' });
    expect(await page.getByRole('navigation').isVisible()).toBe(false);
    expect(await history.isVisible()).toBe(true);
    await page.emulateMedia({ media: 'screen' });
    expect(await contacts()).toMatchObject([
      { email: 'ada@example.net', firstName: HOSTILE, consentMethod: 'web_form', consentDetails: HOSTILE },
    ]);

    await page.getByRole('button', { name: 'Unsubscribe' }).press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Unsubscribe' }).press('Enter');
    await page.getByRole('region', { name: 'Suppressions' }).getByText('Unsubscribed').waitFor();
    expect(await contacts()).toMatchObject([{ globalStatus: 'unsubscribed' }]);
    expect(await page.title()).toBe('ada@example.net · Postrider');
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('imports a file with columns of other names, after a check, into a group', async () => {
    const groupId = await group('News');
    const window = await open.operator(PHONE);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'contacts', client);
    await page.getByRole('link', { name: 'Import contacts' }).click();
    const text = [
      '\uFEFF"E-Mail Address";Given Name;Plan;Notes',
      `grace@example.net;"${HOSTILE.replaceAll('"', '""')}";gold;x`,
      'broken;B;;',
      'edsger@example.net;E;silver;y',
    ].join('\r\n');
    await page
      .getByLabel('File', { exact: true })
      .setInputFiles({ name: 'people.csv', mimeType: 'text/csv', buffer: Buffer.from(text) });
    const fieldOf = (column: string) => page.getByRole('combobox', { name: `Field of column ${column}` });
    expect(await fieldOf('E-Mail Address').inputValue()).toBe('email');
    expect(await fieldOf('Given Name').inputValue()).toBe('firstName');
    expect(await fieldOf('Notes').inputValue()).toBe('');
    await fieldOf('Plan').selectOption({ label: 'Custom field Plan' });
    await page.getByLabel('Add the contacts to a group').selectOption('News');
    await page.getByRole('button', { name: 'Check the file' }).click();
    await page.getByText('2 of 3 rows can be imported. Nothing was stored.').waitFor();
    const rejected = page.getByRole('region', { name: 'Rejected rows' });
    await rejected.getByRole('row', { name: '3 email: has no "@"' }).waitFor();
    expect(await contacts()).toHaveLength(1);
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByText('completed').waitFor();
    expect(page.url()).toContain('/contacts/import/import_');
    await page.getByText('Column Notes was not read.').waitFor({ state: 'detached' });
    await rejected.getByRole('row', { name: '3 email: has no "@"' }).waitFor();
    expect(await contacts()).toMatchObject([
      { email: 'edsger@example.net', firstName: 'E', customFields: { Plan: 'silver' } },
      { email: 'grace@example.net', firstName: HOSTILE, customFields: { Plan: 'gold' } },
      { email: 'ada@example.net' },
    ]);
    const members = await client.get<{ count: number }>(
      `/web-setup/contacts/subscription-groups/${groupId}/subscriptions`,
    );
    expect(members.data.count).toBe(2);
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('shows the progress of an import, also after a reload, and cancels it', async () => {
    const large = await daemon.account('Large');
    // So many that it runs until it is cancelled.
    const rows = Array.from({ length: 500_000 }, (_, n) => `p${n}@example.net`);
    const started = await large.call('POST', '/web-setup/contacts/import?background=true&fileName=long.csv', {
      rawBody: `email\n${rows.join('\n')}\n`,
      headers: { 'Content-Type': 'text/csv' },
    });
    expect(started.status, started.text).toBe(202);
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'contacts/import', large);
    const list = page.getByRole('region', { name: 'Imports' });
    await list.getByRole('row', { name: /long\.csv.*(?:running|waiting)/ }).waitFor();
    await list.getByRole('link', { name: 'long.csv' }).press('Enter');
    await page.getByRole('progressbar').waitFor();
    await page.reload();
    await page.getByRole('progressbar').waitFor();
    await page.getByText('running').waitFor();
    await page.getByRole('button', { name: 'Cancel the import' }).press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the import' }).press('Enter');
    await page.getByText('canceled', { exact: true }).waitFor();
    expect(await importOf(large)).toMatchObject({ status: 'cancelled', fileName: 'long.csv' });
    await context.close();
  });

  it('names what is wrong with a file, and stores nothing', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'contacts/import', client);
    const choose = (text: string) =>
      page
        .getByLabel('File', { exact: true })
        .setInputFiles({ name: 'people.csv', mimeType: 'text/csv', buffer: Buffer.from(text) });
    await choose('');
    await page.getByText('The file has no header line').waitFor();
    await choose('Name\nAda\n');
    await page.getByRole('button', { name: 'Check the file' }).click();
    await page.getByText('the header names neither email nor phone').waitFor();
    expect(await page.getByRole('button', { name: 'Import', exact: true }).isDisabled()).toBe(true);
    await context.close();
  });

  it('exports what the search finds, with values that no spreadsheet evaluates', async () => {
    await client.post('/web-setup/contacts', { email: 'formula@example.net', firstName: '=1+1' });
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'contacts', client);
    await page.getByRole('searchbox').fill('formula');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'ada@example.net' }).waitFor({ state: 'detached' });
    expect(page.url()).toContain('search=formula');
    const download = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Export as CSV' }).click();
    const file = await (await download).path();
    const [header, row, ...more] = (await readFile(file, 'utf8')).trimEnd().split('\r\n');
    expect(header).toMatch(/^contactIdentifier,email,/);
    expect(row).toContain(`"${emailIdentifier('formula@example.net')}","formula@example.net"`);
    expect(row).toContain(`"'=1+1"`);
    expect(more).toEqual([]);
    await context.close();
  });

  it('changes several contacts, and erases them after the person confirmed the session', async () => {
    const groupId = await group('Offers');
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'contacts', client);
    await page.getByRole('checkbox', { name: 'Choose grace@example.net' }).press('Space');
    await page.getByRole('checkbox', { name: 'Choose edsger@example.net' }).press('Space');
    await page.getByText('Chosen: 2').waitFor();
    await page.getByRole('combobox', { name: 'Group', exact: true }).selectOption('Offers');
    await page.getByRole('button', { name: 'Add to the group' }).press('Enter');
    await page.getByText('2 of 2, refused: 0').waitFor();
    const members = await client.get<{ count: number }>(
      `/web-setup/contacts/subscription-groups/${groupId}/subscriptions`,
    );
    expect(members.data.count).toBe(2);

    await page.getByRole('checkbox', { name: 'Choose edsger@example.net' }).press('Space');
    await page.getByRole('button', { name: 'Erase' }).click();
    await page.getByRole('dialog', { name: 'Erase' }).getByRole('button', { name: 'Erase' }).click();
    await page.getByRole('link', { name: 'edsger@example.net' }).waitFor({ state: 'detached' });
    expect((await contacts()).map(({ email }) => email)).not.toContain('edsger@example.net');
    await context.close();
  });

  it('continues a change of several contacts that a reload interrupted', async () => {
    const account = await daemon.account('Interrupted');
    const created = await account.post<{ group: { subscriptionGroupId: string } }>(
      '/web-setup/contacts/subscription-groups',
      { name: 'News' },
    );
    for (const name of ['a', 'b', 'c'])
      await account.post('/web-setup/contacts', { email: `${name}@example.net` });
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'contacts', account);
    let sent = 0;
    await page.route('**/subscriptions', async (route) => {
      // The second request gets no response before the reload.
      if (++sent !== 2) await route.continue();
    });
    await page.getByRole('button', { name: 'Choose all on this page' }).click();
    await page.getByRole('button', { name: 'Add to the group' }).click();
    await page.getByText('1 of 3, refused: 0').waitFor();
    await expect.poll(() => sent).toBe(2);
    const questions: string[] = [];
    page.on('dialog', (dialog) => {
      questions.push(dialog.type());
      void dialog.accept();
    });
    await page.reload();
    await page.getByText('1 of 3 done, 2 left').waitFor();
    expect(questions).toEqual(['beforeunload']);
    await page.getByRole('button', { name: 'Continue' }).press('Enter');
    await page.getByText('3 of 3, refused: 0').waitFor();
    const members = await account.get<{ count: number }>(
      `/web-setup/contacts/subscription-groups/${created.data.group.subscriptionGroupId}/subscriptions`,
    );
    expect(members.data.count).toBe(3);
    await page.reload();
    await page.getByRole('link', { name: 'a@example.net' }).waitFor();
    expect(await page.getByRole('button', { name: 'Continue' }).count()).toBe(0);
    await context.close();
  });

  it('stores nothing of a change of several contacts after the person signed out', async () => {
    const account = await daemon.account('Signed out');
    await account.post('/web-setup/contacts/subscription-groups', { name: 'News' });
    for (const name of ['a', 'b', 'c'])
      await account.post('/web-setup/contacts', { email: `${name}@example.net` });
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'contacts', account);
    const ignore = () => {};
    let respond = ignore;
    // The first contact is added; the response arrives after the person signed out.
    await page.route('**/subscriptions', async (route) => {
      const response = await route.fetch();
      await new Promise<void>((resolve) => {
        respond = resolve;
      });
      await route.fulfill({ response });
    });
    const stored = () => page.evaluate('Object.keys(sessionStorage).length');
    await page.getByRole('button', { name: 'Choose all on this page' }).click();
    await page.getByRole('button', { name: 'Add to the group' }).click();
    await page.getByText('0 of 3, refused: 0').waitFor();
    expect(await stored()).toBe(1);
    await expect.poll(() => respond).not.toBe(ignore);
    // The task is not finished, so the console asks.
    page.once('dialog', (dialog) => void dialog.dismiss());
    await page.getByRole('button', { name: 'Sign out' }).click();
    expect(await stored()).toBe(1);
    const question = page.waitForEvent('dialog');
    const signedOut = page.getByRole('button', { name: 'Sign out' }).click();
    const dialog = await question;
    expect(dialog.message()).toContain('not finished');
    await dialog.accept();
    await signedOut;
    await page.getByText('0 of 3, refused: 0').waitFor({ state: 'detached' });
    const responded = page.waitForResponse('**/subscriptions');
    respond();
    await (await responded).finished();
    // The application handles the response before the next task of the page.
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 100))');
    expect(await stored()).toBe(0);
    await context.close();
  });

  it('is found with its address and its identifier', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, '', client);
    await page.keyboard.press('Control+K');
    await page
      .getByRole('combobox', { name: 'Address, id, domain' })
      .fill(emailIdentifier('ada@example.net'));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'ada@example.net' }).waitFor();
    await context.close();
  });

  it('offers a viewer no changes', async () => {
    const window = await open.member(client, 'viewer', DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'contacts', client);
    await page.getByRole('link', { name: 'ada@example.net' }).waitFor();
    expect(await page.getByRole('checkbox').count()).toBe(0);
    expect(await page.getByRole('link', { name: 'Import contacts' }).count()).toBe(0);
    expect(await page.getByRole('link', { name: 'Export as CSV' }).count()).toBe(0);
    expect(await page.getByRole('form', { name: 'Add a contact' }).count()).toBe(0);
    await page.getByRole('link', { name: 'ada@example.net' }).click();
    await page.getByText('Consent given').waitFor();
    expect(await page.getByRole('button', { name: 'Erase' }).count()).toBe(0);
    await context.close();
  });

  it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
    const { importId } = await importOf(client);
    await open.examine(
      {
        contacts: 'contacts',
        contact: `contacts/${emailIdentifier('ada@example.net')}`,
        'contact-import': 'contacts/import',
        'import-progress': `contacts/import/${importId}`,
      },
      client,
    );
  });
});
