// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { totpCode, totpStep } from '../../src/people/credentials.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import {
  chooseLanguage,
  findings,
  HOSTILE,
  type OpenConsole,
  openConsole,
  openPersonMenu,
  shownPerson,
} from './open-console.ts';

/* People, the audit log and the profile, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;

beforeAll(async () => {
  daemon = await startInProcess({
    'console.listen': '127.0.0.1:0',
    // Passkeys need https or this name.
    'console.url': 'http://localhost:0',
  });
  client = await daemon.account('Shop');
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

/** Chooses an action in the menu of a person's row, which asks in a dialog. */
async function chooseAction(page: Page, email: string, name: string): Promise<void> {
  await page.getByRole('button', { name: `Actions for ${email}` }).press('Enter');
  await page.getByRole('button', { name, exact: true }).press('Enter');
  await page.getByRole('dialog', { name }).waitFor();
}

describe('People', () => {
  it('invites a person, who opens the link and has the role', async () => {
    const { page, context } = await open.operator(DESKTOP);
    await page.getByRole('link', { name: 'People', exact: true }).click();
    await page.getByText('Nobody is a member of this account').waitFor();
    await page.getByRole('button', { name: 'Invite a person' }).click();
    const drawer = page.getByRole('dialog', { name: 'Invite a person' });
    await drawer.getByLabel('Email address').fill('new@example.com');
    await drawer.getByLabel('Role').selectOption('author');
    await drawer.getByText('Prepares templates and campaigns, but does not send.').waitFor();
    await drawer.getByRole('button', { name: 'Invite', exact: true }).click();
    const link =
      (await page
        .getByRole('dialog', { name: /^Sign-in link for/ })
        .locator('pre')
        .textContent()) ?? '';
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByRole('rowheader', { name: 'new@example.com' }).waitFor();

    const invited = await browser.open(PHONE);
    await invited.page.goto(link);
    await invited.page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await invited.page.getByRole('button', { name: 'Later' }).click();
    await invited.page.getByRole('heading', { name: 'Overview' }).waitFor();
    await invited.page.getByRole('button', { name: 'Menu' }).click();
    expect(await invited.page.getByRole('link', { name: 'People', exact: true }).count()).toBe(0);
    await openPersonMenu(invited.page);
    await invited.page.getByRole('link', { name: 'Your profile' }).click();
    await invited.page.getByRole('heading', { name: 'Your profile' }).waitFor();
    await invited.context.close();
    await context.close();
  });

  it('changes a role and removes a member by keyboard', async () => {
    const member = await daemon.people.invite(
      client.accountId,
      { email: 'changed@example.com', role: 'viewer' },
      'operator',
    );
    if (!('person' in member)) throw new Error(member.message);
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await open.visit(window, 'people', client);
    const role = page.getByLabel('Role of changed@example.com');
    await role.focus();
    await page.keyboard.press('ArrowUp');
    expect(await role.inputValue()).toBe('developer');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await expect.poll(() => daemon.people.standing(member.person, client.accountId)).toBe('developer');
    const row = page.getByRole('row', { name: 'changed@example.com' });
    await chooseAction(page, 'changed@example.com', 'Remove');
    await page.getByRole('dialog').getByText('Remove changed@example.com from this account?').waitFor();
    await page.keyboard.press('Enter');
    await row.waitFor({ state: 'detached' });
    expect(daemon.people.get(member.person.id)).toBeNull();
    await context.close();
  });

  it('shows operators all people, and disables one', async () => {
    const created = await daemon.people.createOperator({ email: 'left@example.com', name: HOSTILE });
    if (!('person' in created)) throw new Error(created.message);
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'people', client);
    await page.getByRole('link', { name: 'Whole installation' }).click();
    const row = page.getByRole('row', { name: 'left@example.com' });
    await row.getByText(HOSTILE).waitFor();
    await chooseAction(page, 'left@example.com', 'Disable');
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
    await row.getByText('disabled').waitFor();
    expect(daemon.people.get(created.person.id)?.status).toBe('disabled');
    await row.getByRole('button', { name: 'Enable' }).click();
    await expect.poll(() => daemon.people.get(created.person.id)?.status).toBe('active');
    expect(await page.title()).toBe('People · Postrider');
    expect(page.url()).toContain('scope=all');
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('names the roles that may see people and the audit log, and offers others nothing', async () => {
    const window = await open.member(client, 'viewer', PHONE);
    const { page, context } = window;
    for (const path of ['people', 'audit']) {
      await open.visit(window, path, client);
      await page.getByText('The data is visible to: Owner, Operator.').waitFor();
      const offered = page.locator('main').locator('button, form');
      expect(await offered.count()).toBe(0);
    }
    await context.close();
  });

  it('shows why a person cannot be invited', async () => {
    const window = await open.operator(DESKTOP);
    await open.visit(window, 'people', client);
    for (let turn = 0; turn < 2; turn++) {
      await window.page.getByRole('button', { name: 'Invite a person' }).click();
      await window.page.getByLabel('Email address').fill('twice@example.com');
      await window.page.getByRole('button', { name: 'Invite', exact: true }).click();
      if (turn === 0) await window.page.getByRole('button', { name: 'I have stored it' }).click();
    }
    await window.page.getByText('is already a member of the account').waitFor();
    await window.page.keyboard.press('Escape');
    await chooseLanguage(window.page, 'de');
    await window.page.getByRole('button', { name: 'Person einladen' }).click();
    await window.page.getByLabel('E-Mail-Adresse').fill('twice@example.com');
    await window.page.getByRole('button', { name: 'Einladen', exact: true }).click();
    await window.page
      .getByText('Das ist im jetzigen Zustand nicht möglich. twice@example.com is already a member')
      .waitFor();
    await window.page.keyboard.press('Escape');
    await chooseLanguage(window.page, 'en');
    await window.context.close();
  });

  it('creates a new link after the person confirmed who they are, which replaces the sessions of the other', async () => {
    const other = await open.member(client, 'viewer', PHONE);
    const email = await shownPerson(other.page);
    const { window, ownEmail } = await operatorWithPasskey();
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'people', client);
    requireConfirmation(ownEmail);
    await chooseAction(page, email, 'New link');
    await page.getByRole('dialog', { name: 'New link' }).getByText(email).waitFor();
    await page.keyboard.press('Enter');
    const confirmation = page.getByRole('dialog', { name: 'Confirm that it is you' });
    await confirmation.getByRole('button', { name: 'Go back' }).press('Enter');
    await page.locator('.outcome.bad', { hasText: 'Confirm with your passkey or password' }).waitFor();
    expect(await page.getByText('/console/#/link/').count()).toBe(0);
    // Without the confirmation, the other person remains signed in.
    await other.page.reload();
    await other.page.getByRole('heading', { name: 'Overview' }).waitFor();

    await chooseAction(page, email, 'New link');
    await page.keyboard.press('Enter');
    await confirmation.getByRole('button', { name: 'Confirm with a passkey' }).press('Enter');
    await page.getByText(`Sign-in link for ${email}`).waitFor();
    expect(await findings(window)).toEqual([]);
    const link =
      (await page
        .getByRole('dialog', { name: /^Sign-in link for/ })
        .locator('pre')
        .textContent()) ?? '';
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await other.page.reload();
    await other.page.getByRole('heading', { name: 'Sign in to localhost', exact: true }).waitFor();
    const opened = await browser.open(DESKTOP);
    await opened.page.goto(link);
    await opened.page.getByRole('button', { name: 'Sign in', exact: true }).click();
    // The new link removed what the person had signed in with.
    await opened.page.getByRole('heading', { name: 'How will you sign in next time?' }).waitFor();
    await opened.page.getByRole('button', { name: 'Later' }).click();
    await opened.page.getByRole('heading', { name: 'Overview' }).waitFor();
    expect(await shownPerson(opened.page)).toBe(email);
    // The two refused requests.
    expect(consoleErrors.filter((text) => !text.includes('403'))).toEqual([]);
    await opened.context.close();
    await other.context.close();
    await context.close();
  });

  it('deletes a person of the installation after the person confirmed who they are', async () => {
    const other = await open.member(client, 'viewer', PHONE);
    const email = await shownPerson(other.page);
    const { window, ownEmail } = await operatorWithPasskey();
    const { page, context } = window;
    await open.visit(window, 'people?scope=all', client);
    const row = page.getByRole('row', { name: email });
    await row.getByText('Member of accounts').waitFor();
    requireConfirmation(ownEmail);
    const remove = async () => {
      await chooseAction(page, email, 'Remove');
      const question = page.getByRole('dialog', { name: 'Remove' });
      await question.getByText(`Delete ${email} with all sessions and memberships?`).waitFor();
      await page.keyboard.press('Enter');
    };
    const isStored = () => daemon.people.list().some((each) => each.email === email);
    const confirmation = page.getByRole('dialog', { name: 'Confirm that it is you' });
    await remove();
    await confirmation.getByRole('button', { name: 'Confirm with a passkey' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.outcome.bad', { hasText: 'Confirm with your passkey or password' }).waitFor();
    expect(isStored()).toBe(true);
    await remove();
    await confirmation.getByRole('button', { name: 'Confirm with a passkey' }).press('Enter');
    await row.waitFor({ state: 'detached' });
    expect(isStored()).toBe(false);
    await other.page.reload();
    await other.page.getByRole('heading', { name: 'Sign in to localhost', exact: true }).waitFor();
    await other.context.close();
    await context.close();
  });
});

describe('two open windows', () => {
  it('show the same after some seconds, also the audit log, accounts and sessions', async () => {
    const pages = [
      ['people', '**/console/people'],
      ['people?scope=all', '**/console/people'],
      ['audit?scope=all', '**/console/audit?*'],
      ['me', '**/console/me/sessions'],
      ['system/accounts', '**/web-setup/accounts'],
      [`system/accounts/${client.accountId}`, '**/web-setup/accounts/*'],
    ] as const;
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await page.clock.install();
    for (const [path, request] of pages) {
      await open.visit(window, path, client);
      const read = page.waitForRequest(request);
      await page.clock.fastForward(10_000);
      await read;
    }
    await context.close();
  });

  it('keep a form that is being filled, its focus and its selection', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await page.clock.install();
    await open.visit(window, 'people', client);
    await page.getByRole('button', { name: 'Invite a person' }).click();
    const email = page.getByLabel('Email address');
    const invitedRole = page.locator('select[aria-describedby=role-hint]');
    await invitedRole.selectOption('author');
    await email.fill('half-typed');
    await email.press('Shift+ArrowLeft');
    const selection = () => page.evaluate('getSelection().toString()');
    expect(await selection()).toBe('d');
    const elsewhere = await daemon.people.invite(
      client.accountId,
      { email: 'elsewhere@example.com', role: 'viewer' },
      'operator',
    );
    if (!('person' in elsewhere)) throw new Error(elsewhere.message);
    await page.clock.fastForward(10_000);
    await page.getByRole('rowheader', { name: 'elsewhere@example.com' }).waitFor();
    expect(await email.inputValue()).toBe('half-typed');
    expect(await invitedRole.inputValue()).toBe('author');
    expect(await page.evaluate('document.activeElement.name')).toBe('email');
    expect(await selection()).toBe('d');

    // A choice that is not saved remains, unless the role was changed elsewhere.
    await page.keyboard.press('Escape');
    const role = page.getByLabel('Role of elsewhere@example.com');
    await role.selectOption('developer');
    const read = page.waitForResponse('**/console/people');
    await page.clock.fastForward(10_000);
    await (await read).finished();
    expect(await role.inputValue()).toBe('developer');
    await daemon.people.setRole(client.accountId, elsewhere.person.id, 'sender');
    await page.clock.fastForward(10_000);
    await expect.poll(() => role.inputValue()).toBe('sender');
    await context.close();
  });

  it('keep the choice of a person in the audit log, and the limits of an account that are being changed', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await page.clock.install();
    await open.visit(window, 'audit', client);
    const person = page.getByLabel('Person');
    const [, second = ''] = await person.getByRole('option').allTextContents();
    await person.selectOption(second);
    const chosen = await person.inputValue();
    const readLog = page.waitForResponse('**/console/audit?*');
    await page.clock.fastForward(10_000);
    await (await readLog).finished();
    expect(await person.inputValue()).toBe(chosen);

    await open.visit(window, `system/accounts/${client.accountId}`, client);
    await page.getByLabel('Rule for Domains').selectOption('own');
    await page.getByLabel('Maximum for Domains').fill('7');
    const readAccount = page.waitForResponse('**/web-setup/accounts/*');
    await page.clock.fastForward(10_000);
    await (await readAccount).finished();
    expect(await page.getByLabel('Maximum for Domains').inputValue()).toBe('7');
    await context.close();
  });

  it('read nothing while hidden, and again when they are shown', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await page.clock.install();
    await open.visit(window, 'people', client);
    let reads = 0;
    page.on('request', (sent) => {
      if (sent.url().endsWith('/console/people')) reads++;
    });
    const show = (isVisible: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${!isVisible}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));`);
    await show(false);
    await page.clock.fastForward(30_000);
    await page.evaluate('Promise.resolve()');
    expect(reads).toBe(0);
    await show(true);
    await expect.poll(() => reads).toBe(1);
    await context.close();
  });
});

describe('the audit log', () => {
  it('shows what was done and denied, by person, and exports it', async () => {
    const owner = await open.member(client, 'owner', DESKTOP);
    const { page, context } = owner;
    await open.visit(owner, 'people', client);
    await page.getByRole('button', { name: 'Invite a person' }).click();
    await page.getByLabel('Email address').fill('audited@example.com');
    await page.getByRole('button', { name: 'Invite', exact: true }).click();
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByRole('rowheader', { name: 'audited@example.com' }).waitFor();
    await page.getByRole('link', { name: 'Audit log' }).click();
    const row = page.getByRole('row', { name: 'console.invitePerson' }).first();
    await row.getByText('done').waitFor();
    await row.getByText('Invite a person', { exact: true }).waitFor();
    await row.getByText('console.invitePerson', { exact: true }).waitFor();
    await chooseLanguage(page, 'de');
    await row.getByText('Person einladen', { exact: true }).waitFor();
    await chooseLanguage(page, 'en');
    expect(await page.getByRole('link', { name: 'Whole installation' }).count()).toBe(0);
    await page.getByLabel('Person').selectOption('audited@example.com');
    await page.getByText('No records').waitFor();
    expect(page.url()).toContain('personId=person_');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export as CSV' }).click(),
    ]);
    expect(readFileSync(await download.path(), 'utf8')).toContain('"console.invitePerson"');
    await context.close();
  });
});

describe('the profile', () => {
  it('adds a passkey, which signs in and confirms a session', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await addAuthenticator(window);
    const email = await shownPerson(page);
    await openPersonMenu(page);
    await page.getByRole('link', { name: 'Your profile' }).click();
    await page.getByLabel('Name of the passkey').fill(HOSTILE);
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByRole('rowheader', { name: HOSTILE }).waitFor();
    await openPersonMenu(page);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    await page.getByRole('heading', { name: 'Your profile' }).waitFor();

    requireConfirmation(email);
    await page.getByRole('row', { name: HOSTILE }).getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('button', { name: 'Confirm with a passkey' }).press('Enter');
    await page.getByText('The passkey was removed').waitFor();
    expect(await page.title()).toBe('Your profile · Postrider');
    await context.close();
  });

  it('sets a password with an authenticator app by keyboard; both confirm a session', async () => {
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await open.visit(window, 'me', client);
    await page.getByLabel('New password').fill('correct horse battery staple');
    await page.keyboard.press('Enter');
    await page.getByText('The password signs you in only together').waitFor();
    await page.getByRole('button', { name: 'Set up' }).press('Enter');
    const secret = bytesOf((await page.locator('form code').textContent()) ?? '');
    const step = totpStep(Date.now());
    await page.getByLabel('Code of the authenticator app').fill(totpCode(secret, step));
    await page.keyboard.press('Enter');
    await page.getByText('The authenticator app is set up').waitFor();

    requireConfirmation(await shownPerson(page));
    await page.getByRole('button', { name: 'Remove the password' }).press('Enter');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' });
    await dialog.getByLabel('Password').fill('wrong');
    await dialog.getByLabel('Code of the authenticator app').fill(totpCode(secret, step + 1));
    await page.keyboard.press('Enter');
    await dialog.getByText('Address, password or code are not correct').waitFor();
    expect(await findings(window)).toEqual([]);
    await dialog.getByLabel('Password').fill('correct horse battery staple');
    await page.keyboard.press('Enter');
    await page.getByText('You have no password').waitFor();
    await context.close();
  });

  it('lists sessions and ends another one', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    const email = await shownPerson(page);
    const person = daemon.people.list().find((each) => each.email === email);
    const link = await daemon.people.issueLink(person?.id ?? '', 'sign-in');
    if (!('link' in link)) throw new Error(link.message);
    const other = await browser.open(PHONE);
    await other.page.goto(`${daemon.consoleUrl}/console/#/link/${link.link.token}`);
    await other.page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await other.page.getByRole('button', { name: 'Later' }).click();
    await other.page.getByRole('heading', { name: 'Overview' }).waitFor();
    await open.visit(window, 'me', client);
    await page.getByText('this session').waitFor();
    await page.getByRole('button', { name: 'End', exact: true }).click();
    await page.getByText('Ended').waitFor();
    await other.page.reload();
    await other.page.getByRole('heading', { name: 'Sign in to localhost', exact: true }).waitFor();
    await other.context.close();
    await context.close();
  });
});

describe('a person who came with a link', () => {
  it('is asked for a passkey before anything else, also after a reload', async () => {
    const window = await browser.open(PHONE);
    const { page, context } = window;
    await addAuthenticator(window);
    await page.goto(await invitationLink('asked@example.com'));
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'How will you sign in next time?' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'How will you sign in next time?' }).waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await findings(window)).toEqual([]);
      await window.screenshot(`console-first-sign-in-phone-${colorScheme}`);
    }
    expect(await page.getByRole('navigation').count()).toBe(0);
    // However long it takes.
    requireConfirmation('asked@example.com');
    await page.getByRole('button', { name: 'Create a passkey' }).press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await openPersonMenu(page);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await context.close();
  });

  it('can use a password and an authenticator app instead', async () => {
    const { page, context } = await browser.open(DESKTOP);
    await page.goto(await invitationLink('password@example.com'));
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByText('Use a password and an authenticator application instead').press('Enter');
    await page.getByLabel('New password').fill('correct horse battery staple');
    await page.keyboard.press('Enter');
    const secret = bytesOf((await page.locator('form code').textContent()) ?? '');
    await page.getByLabel('Code of the authenticator app').fill(totpCode(secret, totpStep(Date.now())));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await context.close();
  });

  it('who postponed it is offered the same where a recent sign-in is needed, and continues', async () => {
    const window = await open.member(client, 'owner', DESKTOP);
    const { page, context } = window;
    await addAuthenticator(window);
    await open.visit(window, 'people', client);
    requireConfirmation(await shownPerson(page));
    await page.getByRole('button', { name: 'Invite a person' }).click();
    await page.getByLabel('Email address').fill('after-later@example.com');
    await page.getByRole('button', { name: 'Invite', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' });
    await dialog.getByText('You have none yet').waitFor();
    expect(await findings(window)).toEqual([]);
    await window.screenshot('console-first-credential-dialog-desktop-light');
    await dialog.getByRole('button', { name: 'Create a passkey' }).click();
    await page.getByRole('rowheader', { name: 'after-later@example.com' }).waitFor();
    await context.close();
  });
});

it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
  await open.examine({ people: 'people', audit: 'audit?scope=all', profile: 'me' }, client);
});

/** The address of the link of a person who was invited. */
async function invitationLink(email: string): Promise<string> {
  const invited = await daemon.people.invite(client.accountId, { email, role: 'owner' }, 'operator');
  if (!('link' in invited)) throw new Error(invited.message);
  return `${daemon.consoleUrl}/console/#/link/${invited.link?.token}`;
}

/** A window of a new operator who has a passkey. */
async function operatorWithPasskey(): Promise<{ window: Window; ownEmail: string }> {
  const window = await open.operator(DESKTOP);
  const { page } = window;
  await addAuthenticator(window);
  const ownEmail = await shownPerson(page);
  await openPersonMenu(page);
  await page.getByRole('link', { name: 'Your profile' }).click();
  await page.getByLabel('Name of the passkey').fill('Laptop');
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByRole('rowheader', { name: 'Laptop' }).waitFor();
  return { window, ownEmail };
}

/** Gives the browser an authenticator with which the person is always verified. */
async function addAuthenticator({ page, context }: Window): Promise<void> {
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
}

/** Lets the last sign-in of a person be long ago. */
function requireConfirmation(email: string): void {
  const person = daemon.people.list().find((each) => each.email === email);
  const sessions = daemon.tables.consoleSessions.ofPerson(person?.id ?? '', 10);
  expect(sessions.length).toBeGreaterThan(0);
  for (const { session_hash: hash } of sessions) daemon.tables.consoleSessions.setAuthenticated(hash, 0);
}

/** The bytes of a text in base32 (RFC 4648). */
function bytesOf(text: string): Buffer {
  const bits = Array.from(text)
    .map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0'))
    .join('');
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
