// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import {
  chooseLanguage,
  findings,
  HOSTILE,
  type OpenConsole,
  openConsole,
  openPersonMenu,
} from './open-console.ts';

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

/** A new account with contacts many0@example.net and so on. */
async function accountWith(name: string, count: number): Promise<ApiClient> {
  const account = await daemon.account(name);
  const rows = Array.from({ length: count }, (_, n) => `many${n}@example.net`);
  const imported = await account.call('POST', '/web-setup/contacts/import', {
    rawBody: `email\n${rows.join('\n')}\n`,
    headers: { 'Content-Type': 'text/csv' },
  });
  expect(imported.status, imported.text).toBe(200);
  return account;
}

/** A new group of an account. */
async function emptyGroup(account: ApiClient) {
  const { data } = await account.post<{ group: { subscriptionGroupId: string } }>(
    '/web-setup/contacts/subscription-groups',
    { name: 'News' },
  );
  const groupId = data.group.subscriptionGroupId;
  const path = `/web-setup/contacts/subscription-groups/${groupId}`;
  return {
    groupId,
    /** The number of its members. */
    count: async () => {
      const group = await account.get<{ group: { activeSubscribers: number } }>(path);
      return group.data.group.activeSubscribers;
    },
  };
}

describe('Contacts', () => {
  it('adds a contact by keyboard, and shows its consent history as text', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'contacts', client);
    await page.getByText('No contacts yet').waitFor();
    await page.getByRole('button', { name: 'Add a contact' }).press('Enter');
    expect(await findings(window)).toEqual([]);
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

    await page.getByRole('button', { name: /^Actions for / }).press('Enter');
    await page.getByRole('button', { name: 'Unsubscribe', exact: true }).press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Unsubscribe', exact: true }).press('Enter');
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
    expect(await page.getByText('The server did not respond').count()).toBe(0);
    expect(await fieldOf('Given Name').inputValue()).toBe('firstName');
    expect(await fieldOf('Plan').inputValue()).toBe('customFields.Plan');
    expect(await fieldOf('Notes').inputValue()).toBe('customFields.Notes');
    await fieldOf('Notes').selectOption({ label: 'Do not read' });
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

  it('leads from an export of blocked addresses to their own import, and shows its rejected rows', async () => {
    const account = await daemon.account('Moved');
    const window = await open.operator(PHONE);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'contacts/import', account);
    const file = {
      name: 'bounces.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from(
        '\ufeffstatus,reason,email,created\r\n5.1.1,"550 5.1.1 no such user",gone@example.net,1672653600\r\n4.2.2,full,full@example.net,1672653600\r\n',
        'utf16le',
      ),
    };
    await page.getByLabel('File', { exact: true }).setInputFiles(file);
    await page.getByRole('button', { name: 'Check the file' }).click();
    await page.getByRole('link', { name: 'Import the file as blocked addresses' }).press('Enter');
    const form = page.getByRole('form', { name: 'Import blocked addresses' });
    const input = form.getByLabel('File', { exact: true });
    await input.waitFor();
    await form.locator('input:focus').waitFor();
    await input.setInputFiles(file);
    await form.getByRole('button', { name: 'Import' }).press('Enter');
    await page.getByText('1 of 2 rows imported').waitFor();
    await page.getByRole('region', { name: 'Rejected rows' }).getByRole('row', { name: /^3 / }).waitFor();
    await page.getByRole('link', { name: 'gone@example.net' }).waitFor();
    const { data } = await account.get<{ suppressions: object[] }>('/web-setup/suppressions');
    expect(data.suppressions).toMatchObject([{ email: 'gone@example.net', reason: 'hard_bounce' }]);
    expect((await account.get<{ count: number }>('/web-setup/contacts')).data.count).toBe(0);

    await form.getByLabel('Format').selectOption('List of addresses');
    await input.setInputFiles({ ...file, buffer: Buffer.from('address\nx@example.net\n') });
    await form.getByRole('button', { name: 'Import' }).press('Enter');
    await page.getByText('1 of 1 rows imported').waitFor();
    // The browser reports a failed request for the refusal of the contact import.
    expect(consoleErrors.filter((text) => !text.includes('400'))).toEqual([]);
    expect(await findings(window)).toEqual([]);
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
    await page.getByRole('button', { name: 'Export as CSV' }).click();
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
    await page.getByRole('button', { name: 'Erase', exact: true }).click();
    await page
      .getByRole('dialog', { name: 'Erase' })
      .getByRole('button', { name: 'Erase', exact: true })
      .click();
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
    await page.getByRole('checkbox', { name: 'Choose all on this page' }).click();
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
    /** What is stored, without what is of the session itself. */
    const stored = async () =>
      (await page.evaluate<string[]>('Object.keys(sessionStorage)')).filter(
        (key) => key !== 'postrider-page-token',
      );
    await page.getByRole('checkbox', { name: 'Choose all on this page' }).click();
    await page.getByRole('button', { name: 'Add to the group' }).click();
    await page.getByText('0 of 3, refused: 0').waitFor();
    // The task, and which pages were open.
    // The task, and which pages were open.
    expect(await stored()).toHaveLength(2);
    await expect.poll(() => respond).not.toBe(ignore);
    // The task is not finished, so the console asks.
    page.once('dialog', (dialog) => void dialog.dismiss());
    await openPersonMenu(page);
    await page.getByRole('button', { name: 'Sign out' }).click();
    expect(await stored()).toHaveLength(2);
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
    expect(await stored()).toEqual([]);
    await context.close();
  });

  it('adds all contacts of a search to a group, through all pages, after it has counted them', async () => {
    const account = await accountWith('Whole search', 230);
    const { count } = await emptyGroup(account);
    await account.post('/web-setup/contacts', { email: 'other@example.com' });
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'contacts?search=many', account);
    const offer = page.getByRole('button', { name: 'Choose all contacts of this search' });
    expect(await offer.count()).toBe(0);
    await page.getByRole('checkbox', { name: 'Choose all on this page' }).press('Space');
    await page.getByText('Chosen: 50').waitFor();
    await offer.press('Enter');
    await page.getByText('Chosen: 230, on all pages').waitFor();
    expect(await findings(window)).toEqual([]);
    // A contact that was not counted is not changed.
    await account.post('/web-setup/contacts', { email: 'many-later@example.net' });
    let sent = 0;
    let isStopped = false;
    await page.route('**/subscriptions', async (route) => {
      // The request of the second page gets no response until the task was stopped.
      if (++sent === 203 && !isStopped) await page.getByRole('button', { name: 'Stop' }).click();
      await route.continue();
    });
    await page.getByRole('button', { name: 'Add to the group' }).press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Add to the group' });
    await dialog.getByText('Add 230 contacts to News?').waitFor();
    expect(await count()).toBe(0);
    await dialog.getByRole('button', { name: 'Add to the group' }).press('Enter');
    await page.getByText('203 of 230 done, 27 left').waitFor();
    isStopped = true;
    await page.reload();
    await page.getByText('203 of 230 done, 27 left').waitFor();
    expect(await count()).toBe(203);
    await page.getByRole('button', { name: 'Continue' }).press('Enter');
    await page.getByText('230 of 230, refused: 0').waitFor();
    expect(await count()).toBe(230);
    const later = await account.get<{ memberships: unknown[] }>(
      `/web-setup/contacts/${emailIdentifier('many-later@example.net')}`,
    );
    expect(later.data.memberships).toEqual([]);
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('removes all contacts of the account from a group, and lists what was refused up to a limit', async () => {
    const account = await accountWith('Removed', 60);
    const { groupId, count } = await emptyGroup(account);
    const path = `/web-setup/contacts/subscription-groups/${groupId}/subscriptions`;
    for (const name of [0, 1, 2]) await account.post(path, { email: `many${name}@example.net` });
    expect(await count()).toBe(3);
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    const removeAll = async () => {
      await page.getByRole('checkbox', { name: 'Choose all on this page' }).click();
      await page.getByRole('button', { name: 'Choose all contacts of the account' }).click();
      await page.getByText('Chosen: 60, on all pages').waitFor();
      await page.getByRole('button', { name: 'Remove from the group' }).click();
      const dialog = page.getByRole('dialog', { name: 'Remove from the group' });
      await dialog.getByText('Remove 60 contacts from News?').waitFor();
      await dialog.getByRole('button', { name: 'Remove from the group' }).click();
    };
    await open.visit(window, 'contacts', account);
    await page.route('**/subscriptions/*', async (route) => {
      const error = { code: 'INVALID_STATE', message: 'Refused by the test' };
      await route.fulfill({ status: 409, json: { success: false, error, requestId: 'req_1' } });
    });
    await removeAll();
    await page.getByText('60 of 60, refused: 60').waitFor();
    expect(await page.getByText(/many\d+@example\.net: Refused by the test/).count()).toBe(50);
    await page.getByText('and 10 more').waitFor();
    await page.unroute('**/subscriptions/*');

    // Those that are not in the group are no failures.
    await removeAll();
    await page.getByText('60 of 60, refused: 0').waitFor();
    expect(await count()).toBe(0);

    // Without the group, nothing else can succeed.
    await account.call('DELETE', `/web-setup/contacts/subscription-groups/${groupId}`);
    await removeAll();
    await page.getByText(`There is no subscription group ${groupId}`).waitFor();
    await page.getByText('0 of 60 done, 60 left').waitFor();
    await page.getByRole('button', { name: 'Discard the rest' }).click();
    await context.close();
  });

  it('unsubscribes all contacts with a status, which leave the list', async () => {
    const account = await accountWith('Unsubscribed', 70);
    await account.call('PATCH', `/web-setup/contacts/${emailIdentifier('many3@example.net')}`, {
      body: { globalStatus: 'unsubscribed' },
    });
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'contacts', account);
    const choose = async (status: string) => {
      await page.getByRole('button', { name: 'Status', exact: true }).click();
      await page.getByRole('button', { name: status, exact: true }).click();
    };
    await choose('unsubscribed from all marketing mail');
    await page.getByRole('link', { name: 'many69@example.net' }).waitFor({ state: 'detached' });
    expect(page.url()).toContain('status=unsubscribed');
    expect(await page.getByRole('rowheader').allTextContents()).toEqual(['many3@example.net']);
    await choose('active');
    await page.getByRole('link', { name: 'many69@example.net' }).waitFor();
    expect(await page.getByRole('link', { name: 'many3@example.net' }).count()).toBe(0);

    const counting = page.getByRole('button', { name: 'Choose all contacts of this search' });
    await page.getByRole('checkbox', { name: 'Choose all on this page' }).click();
    await counting.click();
    await page.getByText('Chosen: 69, on all pages').waitFor();
    // A change of one box takes the choice of the other pages back.
    await page.getByRole('checkbox', { name: 'Choose many69@example.net' }).press('Space');
    await page.getByText('Chosen: 49').waitFor();
    await page.getByRole('checkbox', { name: 'Choose all on this page' }).click();
    await counting.click();
    await page.getByRole('button', { name: 'Unsubscribe', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Unsubscribe' });
    await dialog.getByText('Unsubscribe 69 contacts from all marketing mail?').waitFor();
    await dialog.getByRole('button', { name: 'Unsubscribe', exact: true }).click();
    await page.getByText('69 of 69, refused: 0').waitFor();
    await page.getByText('No contact matches').waitFor();
    const { data } = await account.get<{ contacts: ListedContact[] }>('/web-setup/contacts?limit=200');
    expect(new Set(data.contacts.map(({ globalStatus }) => globalStatus))).toEqual(new Set(['unsubscribed']));
    await context.close();
  });

  it('erases all contacts of the account after the person confirmed their number', async () => {
    const account = await accountWith('Erased', 55);
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'contacts', account);
    await page.getByRole('checkbox', { name: 'Choose all on this page' }).click();
    await page.getByRole('button', { name: 'Choose all contacts of the account' }).click();
    await page.getByRole('button', { name: 'Erase', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Erase' });
    await dialog.getByText('Erase 55 contacts?').waitFor();
    await dialog.getByRole('button', { name: 'Erase', exact: true }).click();
    // An erasure waits for its portions: the whole takes most of a minute on a busy machine.
    await page.getByText('55 of 55, refused: 0').waitFor();
    await page.getByText('No contacts yet').waitFor();
    await context.close();
  });

  it('names errors in the language of the person, with the name of an invalid field', async () => {
    const account = await accountWith('Errors', 1);
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, `contacts/${emailIdentifier('nobody@example.net')}`, account);
    await page.getByText(`There is no contact ${emailIdentifier('nobody@example.net')}`).waitFor();
    await chooseLanguage(page, 'de');
    await page.getByText('Diesen Kontakt gibt es nicht.').waitFor();
    await open.visit(window, 'contacts', account);
    await page.getByRole('button', { name: 'Kontakt hinzufügen' }).click();
    const add = async (address: string) => {
      await page.getByRole('textbox', { name: 'E-Mail-Adresse' }).fill(address);
      await page.keyboard.press('Enter');
    };
    await add('broken');
    await page.getByText('Eine Angabe ist ungültig. email: has no "@"').waitFor();
    await add('many0@example.net');
    await page.getByText('Einen Kontakt mit dieser Adresse oder Nummer gibt es schon.').waitFor();
    await page.keyboard.press('Escape');
    await chooseLanguage(page, 'fr');
    await page.getByRole('heading', { level: 1, name: 'Contacts' }).waitFor();
    await page.getByRole('button', { name: 'Ajouter un contact' }).click();
    await page.getByRole('textbox', { name: 'Adresse' }).fill('many0@example.net');
    await page.keyboard.press('Enter');
    await page.getByText('Un contact avec cette adresse ou ce numéro existe déjà.').waitFor();
    await page.keyboard.press('Escape');
    await chooseLanguage(page, 'en');
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
    expect(await page.getByRole('button', { name: 'Export as CSV' }).count()).toBe(0);
    expect(await page.getByRole('form', { name: 'Add a contact' }).count()).toBe(0);
    await page.getByRole('link', { name: 'ada@example.net' }).click();
    await page.getByText('Consent given').waitFor();
    expect(await page.getByRole('button', { name: 'Erase', exact: true }).count()).toBe(0);
    await context.close();
  });

  it('examines the addresses of all contacts, and lists those of a kind', async () => {
    await client.post('/web-setup/contacts', { email: 'info@example.net' });
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'contacts', client);
    await page.getByRole('link', { name: 'Check addresses' }).press('Enter');
    await page.getByText('Not checked yet').waitFor();
    await page.getByRole('button', { name: 'Check addresses' }).press('Enter');
    await page.getByText('completed', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'A function, not a person' }).press('Enter');
    await page.getByRole('link', { name: 'info@example.net' }).waitFor();
    await context.close();
  });

  it('turns the sunset rule on and off, after it has shown whom it would touch', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'contacts/hygiene', client);
    const form = page.getByRole('form', { name: 'Sunset rule' });
    await form.getByText('Contacts that it would touch now').waitFor();
    const months = form.getByRole('spinbutton', { name: 'Months without a sign' });
    const turnOn = form.getByRole('button', { name: 'Turn on' });
    await months.fill('5');
    expect(await turnOn.isDisabled()).toBe(true);
    await months.fill('24');
    await turnOn.press('Enter');
    await form.getByRole('button', { name: 'Turn off' }).waitFor();
    const rule = async () => (await client.get<{ sunset: object }>('/web-setup/contacts/sunset')).data.sunset;
    expect(await rule()).toMatchObject({ enabled: true, months: 24, messages: 10, noticeDays: 30 });
    await form.getByRole('button', { name: 'Turn off' }).press('Enter');
    await turnOn.waitFor();
    expect(await rule()).toMatchObject({ enabled: false, months: 24 });
    await context.close();
  });

  it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
    const { importId } = await importOf(client);
    await open.examine(
      {
        contacts: 'contacts',
        contact: `contacts/${emailIdentifier('ada@example.net')}`,
        'contact-proof': `contacts/${emailIdentifier('ada@example.net')}/proof`,
        'contact-import': 'contacts/import',
        'contact-hygiene': 'contacts/hygiene?kind=role',
        'import-progress': `contacts/import/${importId}`,
      },
      client,
    );
  });
});
