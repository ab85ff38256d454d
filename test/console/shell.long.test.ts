// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../src/core/clock.ts';
import { packContent } from '../../src/mail/stored-content.ts';
import { MAX_SCANNED_ROWS } from '../../src/store/rows/page.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type InProcess, PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { messageIdOf, newMessage } from '../support/rows.ts';
import { enqueue, insertDomain } from '../support/store.ts';
import {
  chooseAccount,
  chooseLanguage,
  findings,
  HOSTILE,
  type OpenConsole,
  openConsole,
  openPersonMenu,
} from './open-console.ts';

/*
 * The built application in Chromium, over a daemon in this process: each page by mouse and by keyboard, on a phone and a
 * desktop, light and dark, without findings of axe-core.
 */
/** In the content of a message. */
const SCRIPTED = '<img src="http://images.example/open.gif"><script>parent.document.title = 3</script>';

let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let other: ApiClient;
const messages: Record<string, string> = {};

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  other = await daemon.account('Empty');
  const [group] = daemon.tables.domainGroups.list(client.accountId);
  const row = {
    account_id: client.accountId,
    group_id: group?.group_id ?? '',
    next_check_at: Date.now() + DAY,
  };
  insertDomain(daemon.tables, { ...row, domain_id: 'domain_1', name: 'shop.test' }, Date.now());
  insertDomain(
    daemon.tables,
    { ...row, domain_id: 'domain_2', name: 'broken.test', status: 'FAILED' },
    Date.now(),
  );
  for (const [name, subject] of [
    ['delivered', 'Your order 10042'],
    ['bounced', HOSTILE],
  ] as const) {
    const sent = await client.send({
      from: 'orders@shop.test',
      to: `${name}@simulator.${PLATFORM}`,
      subject,
      html: `<p>Thank you</p>${SCRIPTED}<p>{{company_address_html}}{{unsubscribe_email_html}}</p>`,
    });
    messages[name] = sent.data.recipients[0]?.messageId ?? '';
  }
  await eventually(
    'the results of both messages',
    async () =>
      (await client.message(messages['delivered'] ?? '')).status === 'delivered' &&
      (await client.message(messages['bounced'] ?? '')).status === 'bounced',
  );
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

let operators = 0;

/** A new operator's sign-in link. */
async function operatorLink(): Promise<string> {
  const created = await daemon.people.createOperator({ email: `ops${++operators}@example.com` });
  if (!('link' in created)) throw new Error(created.message);
  return `${daemon.consoleUrl}/console/#/link/${created.link.token}`;
}

describe('sign-in', () => {
  it('uses the link of the address once, and removes it from the address', async () => {
    const { page, context } = await browser.open(DESKTOP);
    const link = await operatorLink();
    await page.goto(link);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('button', { name: 'Later' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    expect(page.url()).not.toContain('#');
    await openPersonMenu(page);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await page.goto('about:blank');
    await page.goto(link);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByText('The link is not valid').waitFor();
    await context.close();
  });

  it('signs nobody in before a click', async () => {
    const window = await browser.open(PHONE);
    const { page, context, requests } = window;
    await page.goto(await operatorLink());
    await page.getByText('You opened a sign-in link').waitFor();
    expect(requests.filter((url) => url.includes('/session/link'))).toEqual([]);
    expect(await context.cookies()).toEqual([]);
    expect(page.url()).not.toContain('#');
    expect(await findings(window)).toEqual([]);
    await window.screenshot('console-sign-in-link-phone-light');
    await page.getByRole('button', { name: 'Go back' }).click();
    await page.getByText('I have a sign-in link').waitFor();
    await context.close();
  });

  it('remains after a reload, and in a new tab while another one is open', async () => {
    const { page, context } = await open.operator(DESKTOP);
    await page.reload();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const second = await context.newPage();
    await second.goto(`${daemon.consoleUrl}/console/messages`);
    await second.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
    await page.close();
    await second.reload();
    await second.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
    await second.close();
    // The cookie alone is what a program on another port of this host could obtain.
    const alone = await context.newPage();
    await alone.goto(`${daemon.consoleUrl}/console/messages`);
    await alone.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    // A sign-in in another tab is one in this tab, too.
    const third = await context.newPage();
    await third.goto(await operatorLink());
    await third.getByRole('button', { name: 'Sign in', exact: true }).click();
    await alone.getByRole('heading', { name: 'How will you sign in next time?' }).waitFor();
    await third.getByRole('button', { name: 'Later' }).click();
    await third.getByRole('heading', { name: 'Overview' }).waitFor();
    await alone.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
    await context.close();
  });

  it('accepts a pasted link by keyboard, and names what is not a link', async () => {
    const window = await browser.open(PHONE);
    const { page, context } = window;
    const link = await operatorLink();
    await page.goto(`${daemon.consoleUrl}/console/`);
    await page.getByText('I have a sign-in link').press('Enter');
    const field = page.getByLabel('Sign-in link');
    await field.focus();
    await page.keyboard.type('https://example.com/');
    await page.keyboard.press('Enter');
    await page.getByText('This is not a sign-in link').waitFor();
    expect(await findings(window)).toEqual([]);
    await field.fill(link);
    await field.press('Enter');
    await page.getByRole('button', { name: 'Later' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await context.close();
  });

  it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
    await open.examine({ 'sign-in': '' }, null);
  });
});

describe('the shell', () => {
  it('changes account, language and theme, which remain after a reload', async () => {
    const { page, context, requests, consoleErrors } = await open.operator(DESKTOP);
    await chooseAccount(page, 'Shop');
    await page.getByRole('link', { name: 'Messages', exact: true }).click();
    await page.getByRole('heading', { name: 'Messages' }).waitFor();
    expect(page.url()).toContain(client.accountId);
    await page.getByRole('link', { name: 'Your order 10042' }).waitFor();
    await chooseAccount(page, 'Empty');
    await page.getByText('No messages yet').waitFor();
    await chooseLanguage(page, 'de');
    await page.getByRole('heading', { name: 'Nachrichten' }).waitFor();
    await openPersonMenu(page);
    await page.getByRole('button', { name: 'Dunkel' }).click();
    await page.reload();
    await page.getByRole('heading', { name: 'Nachrichten' }).waitFor();
    expect(await page.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe('dark');
    await chooseLanguage(page, 'fr');
    await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
    expect(await page.evaluate('document.documentElement.lang')).toBe('fr');
    expect(requests.filter((url) => !url.startsWith(daemon.consoleUrl) && !url.startsWith('data:'))).toEqual(
      [],
    );
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('shows the language that was chosen last, although the texts of another one arrive later', async () => {
    const { page, context } = await open.operator(DESKTOP);
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route(/\/de-[^/]*\.js$/, async (sent) => {
      await held;
      await sent.continue();
    });
    await openPersonMenu(page);
    const language = page.getByLabel(/^(?:Language|Langue)/);
    const loading = page.waitForRequest(/\/de-[^/]*\.js$/);
    await language.selectOption('de');
    await loading;
    await language.selectOption('fr');
    await page.getByLabel('Langue').waitFor();
    const loaded = page.waitForResponse(/\/de-[^/]*\.js$/);
    release();
    const url = (await loaded).url();
    // Resolves when the application has the texts, too.
    await page.evaluate(`import('${url}').then(() => new Promise((resolve) => setTimeout(resolve)))`);
    expect(await page.getByLabel('Langue').count()).toBe(1);
    await context.close();
  });

  it('shows the sign-in when the session has ended', async () => {
    const window = await open.operator(DESKTOP);
    await open.visit(window, 'messages', client);
    await window.context.clearCookies();
    await window.page.getByRole('link', { name: /^Domains\b/ }).click();
    await window.page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await window.context.close();
  });

  it('shows an error with a way to try again when the server does not respond', async () => {
    const { page, context } = await open.operator(DESKTOP);
    await page.route('**/console/api/**', (sent) => sent.abort());
    await page.getByRole('link', { name: /^Domains\b/ }).click();
    await page.getByText('The server did not respond').first().waitFor();
    await page.unroute('**/console/api/**');
    await page.getByRole('button', { name: 'Try again' }).first().click();
    await page.getByRole('table').or(page.getByText('No domains yet')).waitFor();
    await context.close();
  });

  it('states what is wrong with an address that leads to nothing, and where to continue', async () => {
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await open.visit(window, 'templates/template_none', client);
    await page.getByText('Nothing was found at this address').waitFor();
    await page.getByText('choose the account in the navigation').waitFor();
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0);
    await page.getByRole('alert').getByRole('link', { name: 'Back to the list' }).click();
    await page.getByRole('heading', { level: 1, name: 'Templates' }).waitFor();
    await open.visit(window, `contacts?status=${'x'.repeat(200)}`, client);
    await page.getByText('This address or search is not valid').waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width);
    await page.getByRole('link', { name: 'Start again without filters' }).click();
    await page.getByText('No contacts yet').waitFor();
    expect(await findings(window)).toEqual([]);
    await context.close();
  });

  it('is loaded with less than 80 KiB', async () => {
    const loaded = new Map<string, number>();
    const { page, context } = await browser.open(DESKTOP);
    page.on('response', (response) => {
      if (/\/console\/(assets\/.*)?$/.test(response.url()))
        void response.body().then((body) => loaded.set(response.url(), gzipSync(body).length));
    });
    await page.goto(`${daemon.consoleUrl}/console/`);
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await expect.poll(() => loaded.size).toBeGreaterThanOrEqual(3);
    expect([...loaded.values()].reduce((sum, size) => sum + size, 0)).toBeLessThan(80 * 1024);
    await context.close();
  });
});

describe('Overview', () => {
  it('names what needs attention, with a link to it', async () => {
    const window = await open.operator(DESKTOP);
    await open.visit(window, '', client);
    await window.page.getByRole('link', { name: 'broken.test: failed' }).press('Enter');
    await expect.poll(() => window.page.url()).toContain('/console/domains/domain_2');
    await window.context.close();
  });

  it('leads from an empty account to the first message', async () => {
    const window = await open.operator(DESKTOP);
    const { page } = window;
    await open.visit(window, '', other);
    await page.getByText('No mail was sent yet.').waitFor();
    await page.getByRole('link', { name: 'Add a sending domain' }).press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Domains' }).waitFor();
    await page.goBack();
    await page.getByRole('button', { name: 'Dismiss' }).press('Enter');
    await page.getByRole('link', { name: 'Add a sending domain' }).waitFor({ state: 'detached' });
    await window.context.close();
  });
});

describe('Messages', () => {
  it('finds messages by recipient, status and id, with the search in the address', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'messages', client);
    await page.getByLabel('Recipient or message id').fill(`delivered@simulator.${PLATFORM}`);
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1);
    expect(page.url()).toContain('recipient=delivered');
    await page.reload();
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1);
    await page.getByRole('button', { name: 'Reset' }).click();
    await expect.poll(() => page.locator('tbody tr').count()).toBe(2);
    expect(await page.getByLabel('Recipient or message id').inputValue()).toBe('');
    await page.getByRole('button', { name: 'Status' }).click();
    const status = (name: string) => page.locator('.popover label', { hasText: name });
    await status('bounced1').waitFor();
    await status('canceled0').click();
    await page.getByText('No message matches').waitFor();
    await page.getByRole('button', { name: 'Remove the filter Status: canceled' }).waitFor();
    await status('bounced1').click();
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1);
    await page.locator('tbody tr').getByText('the mailbox does not exist').waitFor();
    expect(page.url()).toContain('status=cancelled%2Cbounced');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Remove the filter Status: bounced' }).press('Enter');
    await page.getByText('No message matches').waitFor();
    await page.getByRole('button', { name: 'Remove the filter Status: canceled' }).press('Enter');
    await expect.poll(() => page.locator('tbody tr').count()).toBe(2);
    await page.getByRole('button', { name: 'More filters' }).press('Enter');
    await page.getByRole('textbox', { name: 'Subject' }).fill('ORDER 10042');
    await page.getByRole('textbox', { name: 'Sender' }).fill('orders@');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1);
    expect(page.url()).toContain('sender=orders%40&subject=ORDER');
    await page.getByRole('button', { name: 'Remove the filter Sender: orders@' }).press('Enter');
    await expect.poll(() => page.url()).not.toContain('sender=');
    await page.goBack();
    await page.goBack();
    await page.getByRole('button', { name: 'Period', exact: true }).press('Enter');
    await page.getByRole('button', { name: 'Last 7 days' }).press('Enter');
    await page.getByRole('button', { name: 'Remove the filter Period: Last 7 days' }).waitFor();
    expect(page.url()).toContain('period=7d');
    await expect.poll(() => page.locator('tbody tr').count()).toBe(2);
    await page.getByLabel('Recipient or message id').fill(messages['delivered'] ?? '');
    await page.keyboard.press('Enter');
    await page.getByText('Accepted by the server of the recipient').waitFor();
    await context.close();
  });

  it.each([
    ['part of the name', 'LIVERED@'],
    ['a domain', `@simulator.${PLATFORM}`],
    ['part of a domain', 'simulator'],
  ])('finds messages by %s of the recipient', async (_, part) => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'messages', client);
    await page.getByLabel('Recipient or message id').fill(part);
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Your order 10042' }).waitFor();
    await expect.poll(() => page.locator('tbody tr').count()).toBe(part === 'LIVERED@' ? 1 : 2);
    await page.getByLabel('Recipient or message id').fill('ivered@example.net');
    await page.keyboard.press('Enter');
    await page.getByText('Only messages to exactly this address were searched.').waitFor();
    await context.close();
  });

  it('states how far a search went that found nothing', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    let pages = 0;
    // As if the account had many messages.
    await page.route('**/web-setup/messages?*recipient=absent*', async (route) => {
      pages++;
      await route.fulfill({
        json: {
          success: true,
          data: { messages: [], count: 0, nextKey: `key${pages}`, examinedSince: '2026-01-15T12:00:00.000Z' },
        },
      });
    });
    await open.visit(window, 'messages?recipient=absent', client);
    await page.getByText(/All messages since .*2026.* were searched, no older ones/).waitFor();
    expect(pages).toBe(20);
    await page.getByRole('link', { name: 'Search older messages' }).click();
    await expect.poll(() => pages).toBe(40);
    expect(page.url()).toContain('lastKey=key20');
    await context.close();
  });

  it('shows a subject as text, and the reply of the server', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'messages', client);
    await page.getByRole('link', { name: HOSTILE }).click();
    await page.getByRole('heading', { level: 2, name: HOSTILE }).waitFor();
    await page.getByText('Rejected permanently').waitFor();
    await page.getByText(/^Reply: 5\d\d/).waitFor();
    await page.getByText('Bounced: the mailbox does not exist').waitFor();
    await page.getByText('Remove it from the list that it comes from.').waitFor();
    expect(await page.title()).toBe('Messages · Postrider');
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('shows the content in an isolated frame by keyboard, and saves the source', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    const failed: [url: string, reason: string | undefined][] = [];
    page.on('requestfailed', (request) => failed.push([request.url(), request.failure()?.errorText]));
    await open.visit(window, `messages/${messages['delivered'] ?? ''}`, client);
    const tab = (name: string) => page.getByRole('tab', { name });
    const contents: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/content')) contents.push(request.url());
    });
    await page.getByText('Accepted by the server of the recipient').waitFor();
    expect(contents).toEqual([]);
    await tab('Preview').press('Enter');
    await page.frameLocator('.message-content iframe').getByText('Thank you').waitFor();
    await tab('Preview').press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await page.getByRole('tabpanel').getByText('<p>').waitFor();
    expect(await tab('HTML').getAttribute('aria-selected')).toBe('true');
    await tab('Header fields').press('Enter');
    await page.getByRole('tabpanel').getByText('orders@shop.test', { exact: true }).first().waitFor();
    expect(contents.length).toBe(1);
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download the source' }).press('Enter');
    const file = await (await saved).path();
    expect(readFileSync(file, 'utf8')).toMatch(/^Date: .*\r\nFrom: orders@shop\.test\r\n/);
    expect(await page.title()).toBe('Messages · Postrider');
    // The policy of the frame, not the network, ends the request.
    expect(failed.filter(([url]) => url.includes('images.example'))).toEqual([
      ['http://images.example/open.gif', 'csp'],
    ]);
    await context.close();
  });

  it('finds messages by domain, campaign, job and time, with the search in the address', async () => {
    const shop = await daemon.account('Searched');
    const [group] = daemon.tables.domainGroups.list(shop.accountId);
    const of = {
      account_id: shop.accountId,
      group_id: group?.group_id ?? '',
      next_check_at: Date.now() + DAY,
    };
    for (const [domain_id, name] of [
      ['domain_3', 'news.test'],
      ['domain_4', 'orders.test'],
    ] as const)
      insertDomain(daemon.tables, { ...of, domain_id, name }, Date.now());
    const created = await shop.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
      name: 'Spring',
    });
    const { campaignId } = created.data.campaign;
    const midnight = new Date(Date.now() - 2 * DAY).setHours(0, 0, 0, 0);
    const at = midnight + 12 * HOUR;
    const nextDay = new Date(midnight + 36 * HOUR).setHours(0, 0, 0, 0);
    const row = { account_id: shop.accountId, dueAt: Date.now() + DAY };
    enqueue(daemon.tables, at, {
      ...row,
      domain_id: 'domain_3',
      subject: 'Of the campaign',
      campaign_id: campaignId,
      job_id: 'job_1_spring',
      priority: 1,
    });
    enqueue(daemon.tables, Date.now(), { ...row, domain_id: 'domain_4', subject: 'Your order' });
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    const search = page.locator('.more-filters');
    const rows = () => page.locator('tbody tr').count();
    const time = (ms: number) => encodeURIComponent(new Date(ms).toISOString());
    const searches = [
      { field: 'Domain', value: 'domain_3', query: 'domainId=domain_3' },
      { field: 'Campaign', value: campaignId, query: `campaignId=${campaignId}` },
      { field: 'Job id', value: ' job_1_spring ', query: 'jobId=job_1_spring' },
    ];
    for (const { field, value, query } of searches) {
      await open.visit(window, 'messages', shop);
      await expect.poll(rows).toBe(2);
      await page.getByRole('button', { name: 'More filters' }).press('Enter');
      const input = search.getByLabel(field);
      await (field === 'Domain' || field === 'Campaign' ? input.selectOption(value) : input.fill(value));
      await search.getByRole('button', { name: 'Apply' }).click();
      await expect.poll(rows, { message: field }).toBe(1);
      expect(page.url()).toContain(query);
      // What applies is shown, and is the value of its field.
      await page.reload();
      await expect.poll(rows).toBe(1);
      await page.getByRole('button', { name: `Remove the filter ${field}: ` }).waitFor();
      await page.getByRole('button', { name: 'More filters' }).press('Enter');
      await expect.poll(() => input.inputValue()).toBe(value.trim());
      await page.keyboard.press('Escape');
      await page.getByRole('link', { name: 'Of the campaign' }).click();
      await page.getByRole('heading', { level: 2, name: 'Of the campaign' }).waitFor();
      expect(page.url()).toContain(query);
      if (field === 'Domain') await page.keyboard.press('Escape');
      else await page.getByRole('link', { name: 'Back to the list' }).click();
      await page.locator('.detail').waitFor({ state: 'detached' });
      expect(page.url()).toContain(query);
    }
    await open.visit(window, 'messages', shop);
    await expect.poll(rows).toBe(2);
    const choosePeriod = async (first: string, last: string) => {
      await page.getByRole('button', { name: 'Period', exact: true }).press('Enter');
      await page.getByLabel('First day').fill(first);
      await page.getByLabel('Last day').fill(last);
      await page.locator('.date-range').getByRole('button', { name: 'Apply' }).press('Enter');
    };
    await choosePeriod('', localDay(at));
    await page.getByRole('link', { name: 'Of the campaign' }).waitFor();
    await expect.poll(rows).toBe(1);
    expect(page.url()).toContain(`to=${time(nextDay)}`);
    await page.getByRole('button', { name: /^Remove the filter Period: Until / }).waitFor();
    // In the wrong order.
    await choosePeriod(localDay(Date.now()), localDay(nextDay));
    await page.getByRole('link', { name: 'Your order' }).waitFor();
    expect(await rows()).toBe(1);
    expect(page.url()).toContain(`from=${time(nextDay)}&to=`);
    await page.getByRole('button', { name: 'More filters' }).press('Enter');
    await search.getByLabel('Domain').selectOption('domain_3');
    await search.getByRole('button', { name: 'Apply' }).click();
    await page.getByText('No message matches').waitFor();
    expect(page.url()).toMatch(/from=.*domainId=domain_3/);
    // A domain that was deleted, and whose messages are stored, remains the filter.
    await open.visit(window, 'messages?domainId=domain_deleted', shop);
    await page.getByRole('button', { name: 'Status' }).click();
    await page.getByRole('checkbox', { name: 'queued' }).check();
    await expect.poll(() => page.url()).toContain('status=queued&domainId=domain_deleted');
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('retries a deferred message now', async () => {
    const dueAt = Date.now() + DAY;
    const { seq, message_id: id } = enqueue(daemon.tables, Date.now(), {
      account_id: client.accountId,
      domain_id: 'domain_1',
      recipient: 'ada@late.test',
      dueAt,
    });
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, `messages/${id}`, client);
    await page.getByRole('button', { name: 'Cancel the message' }).waitFor();
    // It waits for its first attempt.
    expect(await page.getByRole('button', { name: 'Retry now' }).count()).toBe(0);
    daemon.tables.messages.setState(seq, 'deferred', Date.now(), null, null);
    await page.reload();
    await page.getByRole('button', { name: 'Retry now' }).press('Enter');
    await page.getByText('The message is due now').waitFor();
    expect(daemon.tables.queue.get(seq)?.due_at).not.toBe(dueAt);
    await context.close();
  });

  it('cancels a waiting message after a confirmation, by keyboard', async () => {
    const now = Date.now();
    const { message_id: id } = enqueue(daemon.tables, now, {
      account_id: client.accountId,
      domain_id: 'domain_1',
      dueAt: now + DAY,
    });
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await open.visit(window, `messages/${id}`, client);
    await page.getByRole('button', { name: 'Cancel the message' }).press('Enter');
    await page.getByRole('dialog').waitFor();
    expect((await client.message(id)).status).toBe('queued');
    await page.keyboard.press('Enter');
    await page.locator('.detail .notice', { hasText: 'Canceled' }).waitFor();
    expect((await client.message(id)).status).toBe('cancelled');
    await context.close();
  });

  it('shows new messages without a reload', async () => {
    const window = await open.operator(DESKTOP);
    await open.visit(window, 'messages', client);
    await client.send({
      from: 'orders@shop.test',
      to: `delivered@simulator.${PLATFORM}`,
      subject: 'Arrived later',
      html: '<p>{{company_address_html}}{{unsubscribe_email_html}}</p>',
    });
    await window.page.getByRole('main').getByRole('button', { name: '1 new' }).press('Enter');
    await window.page.getByRole('link', { name: 'Arrived later' }).waitFor();
    await window.context.close();
  });

  it('shows new messages again after a proxy has answered in place of the server', async () => {
    const window = await open.operator(DESKTOP);
    await window.page.route('**/console/stream?**', (sent) => sent.fulfill({ status: 502 }));
    const refused = window.page.waitForResponse(
      (response) => response.url().includes('/console/stream?') && response.status() === 502,
    );
    await open.visit(window, 'messages', client);
    await refused;
    await window.page.unroute('**/console/stream?**');
    await client.send({
      from: 'orders@shop.test',
      to: `delivered@simulator.${PLATFORM}`,
      subject: 'After the restart',
      html: '<p>{{company_address_html}}{{unsubscribe_email_html}}</p>',
    });
    await window.page.getByRole('main').getByRole('button', { name: '1 new' }).press('Enter');
    await window.page.getByRole('link', { name: 'After the restart' }).waitFor();
    await window.context.close();
  });

  it('offers a viewer no action', async () => {
    const window = await open.member(client, 'viewer', DESKTOP);
    await open.visit(window, 'domains/domain_2', client);
    expect(await window.page.getByRole('button', { name: 'Check now' }).count()).toBe(0);
    await open.visit(window, 'domains', client);
    expect(await window.page.getByLabel('Domain name').count()).toBe(0);
    await window.context.close();
  });

  // After tests with earlier dates: the numbers of messages increase with their dates.
  it('finds a message behind more than one page examines', async () => {
    const many = await daemon.account('Many');
    const content_id = daemon.tables.messages.insertContent(packContent('{}'), Date.now());
    const insert = (number: number, recipient: string) =>
      daemon.tables.messages.insert(
        newMessage(Date.now(), {
          message_id: messageIdOf(number, Date.now()),
          account_id: many.accountId,
          recipient,
          content_id,
        }),
      );
    insert(0, 'hans.mueller@example.net');
    for (let number = 1; number <= MAX_SCANNED_ROWS; number++) insert(number, 'ada@example.net');
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'messages?recipient=hans.mu', many);
    await page.getByText('hans.mueller@example.net').waitFor();
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1);
    await page.keyboard.press('Control+K');
    await page.getByRole('dialog').getByRole('combobox').fill('hans.m');
    await page.getByRole('option', { name: 'Messages to addresses with “hans.m”' }).click();
    await page.getByText('hans.mueller@example.net').waitFor();
    await context.close();
  });
});

it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
  await open.examine(
    {
      overview: '',
      messages: 'messages',
      message: `messages/${messages['bounced']}`,
      domains: 'domains',
      'no-page': 'none',
    },
    client,
  );
});

/** The value of a date field in the time zone of this process, which is that of the browser. */
function localDay(time: number): string {
  return new Date(time - new Date(time).getTimezoneOffset() * MINUTE).toISOString().slice(0, 10);
}
