// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { findings, HOSTILE, insertShopDomain, type OpenConsole, openConsole } from './open-console.ts';

/* Subscription groups, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0', 'public.url': 'http://127.0.0.1:0' });
  client = await daemon.account('Shop');
  insertShopDomain(daemon, client);
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

interface GroupList {
  groups: {
    subscriptionGroupId: string;
    name: string;
    tags: string[];
    isActive: boolean;
    signUp: object | null;
    signUpUrl: string | null;
  }[];
}
interface MemberList {
  subscribers: { email: string; isActive: boolean; consentMethod: string; consentDetails: string }[];
}

async function groups(): Promise<GroupList['groups']> {
  const { data } = await client.get<GroupList>('/web-setup/contacts/subscription-groups');
  return data.groups;
}

async function members(groupId: string): Promise<MemberList['subscribers']> {
  const { data } = await client.get<MemberList>(
    `/web-setup/contacts/subscription-groups/${groupId}/subscriptions`,
  );
  return data.subscribers;
}

describe('Groups', () => {
  it('creates a group by keyboard, adds a member with consent, deactivates and removes it', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'groups', client);
    await page.getByText('No groups yet').waitFor();
    await page.getByRole('button', { name: 'New group' }).press('Enter');
    await page.getByLabel('Name').fill(HOSTILE);
    await page.getByLabel('Description').fill('What is new');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: HOSTILE }).waitFor();
    await page.getByText('No members yet').waitFor();

    await page.getByRole('button', { name: 'Add a member' }).press('Enter');
    const form = page.getByRole('form', { name: 'Add a member' });
    await form.getByLabel('Email address').fill('ada@example.net');
    await form.getByRole('combobox', { name: 'Consent' }).selectOption('web_form');
    await form.getByLabel('Details of the consent').fill(HOSTILE);
    await page.keyboard.press('Enter');
    const row = page.getByRole('row', { name: 'ada@example.net' });
    await row.getByText(HOSTILE, { exact: true }).waitFor();
    await page.getByText('1 active of 1').waitFor();
    const [group] = await groups();
    const groupId = group?.subscriptionGroupId ?? '';
    expect(await members(groupId)).toMatchObject([
      { email: 'ada@example.net', isActive: true, consentMethod: 'web_form', consentDetails: HOSTILE },
    ]);

    const choose = async (action: string) => {
      await row.getByRole('button', { name: 'Actions for ada@example.net' }).press('Enter');
      await row.getByRole('button', { name: action, exact: true }).press('Enter');
    };
    await choose('Deactivate');
    // It is shown as done, and not sent when the person takes it back.
    await row.getByText('inactive: left the group').waitFor();
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await row.getByText('inactive: left the group').waitFor({ state: 'detached' });
    expect(await members(groupId)).toMatchObject([{ isActive: true }]);
    await choose('Deactivate');
    // What waits is sent when its toast goes.
    const toast = page.locator('.toast', { hasText: 'gets no more mail of this group' });
    await toast.getByRole('button', { name: 'Close' }).press('Enter');
    await page.getByText('0 active of 1').waitFor();
    expect(await members(groupId)).toMatchObject([{ isActive: false }]);
    await choose('Remove');
    await row.waitFor({ state: 'detached' });
    expect(await members(groupId)).toMatchObject([{ isActive: false }]);
    // Also when the page is left.
    await page.reload();
    await page.getByText('No members yet').waitFor();
    expect(await members(groupId)).toEqual([]);
    expect(await page.title()).toBe(`${HOSTILE} · Postrider`);
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('searches members, with the search in the address, and changes the settings on a phone', async () => {
    const [group] = await groups();
    const groupId = group?.subscriptionGroupId ?? '';
    for (const name of ['grace', 'edsger']) {
      const body = { email: `${name}@example.net`, consentMethod: 'web_form' };
      await client.post('/web-setup/contacts', body);
      await client.post(`/web-setup/contacts/subscription-groups/${groupId}/subscriptions`, body);
    }
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await open.visit(window, 'groups', client);
    await page.keyboard.press('Control+K');
    await page.getByRole('combobox', { name: 'Address, id, domain' }).fill(groupId);
    await page.getByRole('option', { name: `Group ${groupId}`, exact: true, selected: true }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('searchbox').fill('grace');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'edsger@example.net' }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'grace@example.net' }).waitFor();
    expect(page.url()).toContain('search=grace');

    await page.getByRole('link', { name: 'Settings' }).click();
    const form = page.getByRole('form', { name: 'Settings' });
    await form.getByLabel('Name').fill('News');
    await form.getByLabel('Tags').fill('news, monthly');
    await form.getByLabel('The group receives mail').uncheck();
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { level: 1, name: 'News' }).waitFor();
    await page.getByText('receives no mail').waitFor();
    expect(await groups()).toMatchObject([{ name: 'News', tags: ['news', 'monthly'], isActive: false }]);
    await context.close();
  });

  it('turns on the sign-up form, and shows its code with a preview', async () => {
    const [group] = await groups();
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, `groups/${group?.subscriptionGroupId}`, client);
    await page.getByRole('link', { name: 'Sign-up form' }).press('Enter');
    await page.getByText('This group has no form yet').waitFor();
    const form = page.getByRole('form', { name: 'Confirmation mail' });
    await form.getByLabel('Sender').fill('news@shop.test');
    await form.getByLabel('First paragraph').fill(HOSTILE);
    await page.keyboard.press('Enter');
    const code = page.locator('main pre:not(.curl pre)').first();
    const address = `/j/${group?.subscriptionGroupId}" method="post"`;
    await expect.poll(() => code.textContent()).toContain(address);
    expect(await code.textContent()).not.toContain('firstName');
    await page.getByLabel('Ask for the name').check();
    await expect.poll(() => code.textContent()).toContain('name="firstName"');
    expect(page.url()).toContain('names=1');
    const preview = page.getByRole('form', { name: 'Preview of the form of News' });
    await preview.getByLabel('First name').fill('Ada');
    await preview.getByRole('button', { name: 'Subscribe' }).click();
    expect(page.url()).toContain('tab=form');
    expect(await groups()).toMatchObject([{ signUp: { from: 'news@shop.test', intro: HOSTILE } }]);
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('subscribes who fills in the form and opens the link of the mail, on a phone', async () => {
    const [group] = await groups();
    const window = await browser.open(PHONE, { dark: true });
    const { page, context } = window;
    await page.goto(group?.signUpUrl ?? '');
    expect(await findings(window)).toEqual([]);
    await page.getByLabel('Email address').fill('joan@example.net');
    await page.getByLabel('First name').fill(HOSTILE);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Please confirm your address' }).waitFor();
    expect(await findings(window)).toEqual([]);
    const [message] = await client.allMessages({ recipient: 'joan@example.net' });
    const content = await client.get<{ text: string; html: string }>(
      `/web-setup/messages/${message?.messageId}/content`,
    );
    expect(content.data.html).not.toContain('<script>');
    await page.goto(/http:\S+\/k\/[\w-]+/.exec(content.data.text)?.[0] ?? '');
    expect(await findings(window)).toEqual([]);
    await page.getByRole('button', { name: 'Yes, subscribe' }).press('Enter');
    await page.getByRole('heading', { name: 'You are subscribed' }).waitFor();
    expect(await findings(window)).toEqual([]);
    const joined = await members(group?.subscriptionGroupId ?? '');
    expect(joined).toContainEqual(
      expect.objectContaining({ email: 'joan@example.net', consentMethod: 'double_opt_in' }),
    );
    await context.close();
  });

  it('gives a code that another site can use: its form queues the confirmation mail', async () => {
    const [group] = await groups();
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, `groups/${group?.subscriptionGroupId}?tab=form&names=1`, client);
    const code = (await page.locator('main pre:not(.curl pre)').first().textContent()) ?? '';
    await context.close();
    const site = createServer((_request, response) => {
      response.setHeader('Content-Type', 'text/html; charset=utf-8');
      response.end(`<!doctype html><title>Shop</title>${code}`);
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void site.close());
    await once(site, 'listening');
    const visitor = await browser.open(PHONE);
    await visitor.page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
    // Programs fill it in, people do not see it.
    expect(await visitor.page.locator('input[name="website"]').isVisible()).toBe(false);
    await visitor.page.getByLabel('Email address').fill('katherine@example.net');
    await visitor.page.getByLabel('First name').fill('Katherine');
    await visitor.page.getByLabel('Last name').fill('Müller & Söhne');
    await visitor.page.getByRole('button', { name: 'Subscribe' }).click();
    await visitor.page.getByRole('heading', { name: 'Please confirm your address' }).waitFor();
    expect(visitor.consoleErrors).toEqual([]);
    const [message] = await client.allMessages({ recipient: 'katherine@example.net' });
    expect(message).toMatchObject({ from: 'news@shop.test', useCase: 'tx' });
    expect(await members(group?.subscriptionGroupId ?? '')).not.toContainEqual(
      expect.objectContaining({ email: 'katherine@example.net' }),
    );
    const content = await client.get<{ text: string }>(`/web-setup/messages/${message?.messageId}/content`);
    await visitor.page.goto(/http:\S+\/k\/[\w-]+/.exec(content.data.text)?.[0] ?? '');
    await visitor.page.getByRole('button', { name: 'Yes, subscribe' }).click();
    await visitor.page.getByRole('heading', { name: 'You are subscribed' }).waitFor();
    const { data } = await client.get<{ contacts: object[] }>('/web-setup/contacts?search=katherine');
    expect(data.contacts).toEqual([
      expect.objectContaining({ firstName: 'Katherine', lastName: 'Müller & Söhne' }),
    ]);
    await visitor.context.close();
  });

  it('offers a viewer no changes', async () => {
    const [group] = await groups();
    const window = await open.member(client, 'viewer', DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'groups', client);
    expect(await page.getByRole('button', { name: 'New group' }).count()).toBe(0);
    await open.visit(window, `groups/${group?.subscriptionGroupId}`, client);
    await page.getByRole('link', { name: 'grace@example.net' }).waitFor();
    expect(await page.getByRole('button', { name: 'Deactivate' }).count()).toBe(0);
    expect(await page.getByRole('form', { name: 'Add a member' }).count()).toBe(0);
    await open.visit(window, `groups/${group?.subscriptionGroupId}?tab=settings`, client);
    expect(await page.getByRole('button', { name: 'Save' }).count()).toBe(0);
    expect(await page.getByRole('button', { name: 'Delete' }).count()).toBe(0);
    await context.close();
  });

  it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
    const [group] = await groups();
    const page = `groups/${group?.subscriptionGroupId}`;
    await open.examine(
      {
        groups: 'groups',
        group: page,
        'group-form': `${page}?tab=form`,
        'group-settings': `${page}?tab=settings`,
      },
      client,
    );
  });

  it('deletes a group', async () => {
    const [group] = await groups();
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, `groups/${group?.subscriptionGroupId}?tab=settings`, client);
    await page.getByRole('button', { name: /^Actions for / }).click();
    await page.getByRole('button', { name: 'Delete the group' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete the group' }).click();
    await page.getByText('No groups yet').waitFor();
    expect(await groups()).toEqual([]);
    await context.close();
  });
});
