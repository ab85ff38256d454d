// Long: opens every page several times in a browser.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type OpenConsole, openConsole } from './open-console.ts';
import { insertMail } from './received-mail.ts';

/* What applies to all pages of the console, in Chromium over a daemon in this process: commands, print, narrow windows. */
const run = promisify(execFile);
/** A sheet of A4 at 96 pixels per inch. */
const A4 = { width: 794, height: 1123 };
const LONG = `a-recipient-with-a-long-name.${'x'.repeat(30)}@example.net`;

const required = requirePrograms('chromium', 'curl');

let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
/** The pages with data, by name. */
const pages: Record<string, string> = {};

beforeAll(async () => {
  if (required.missing) return;
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  const created = async (path: string, body: unknown, method = 'POST'): Promise<Record<string, string>> => {
    const { status, text, data } = await client.call<Record<string, unknown>>(method, path, { body });
    expect(status, text).toBeLessThan(300);
    const [first] = Object.values(data).filter((value) => typeof value === 'object' && !Array.isArray(value));
    return { ...data, ...(first as object) } as Record<string, string>;
  };
  const domain = await created('/web-setup/domains', { domain: 'shop.test', useCaseId: 'tx-local' }, 'PUT');
  const contact = await created('/web-setup/contacts', {
    email: LONG,
    firstName: 'Ada',
    lastName: 'Lovelace',
  });
  const group = await created('/web-setup/contacts/subscription-groups', { name: 'News' });
  await created('/web-setup/suppressions', { email: LONG });
  const webhook = await created('/web-setup/webhooks', {
    name: 'Shop',
    url: 'https://shop.test/hook',
    events: ['email_bounced'],
  });
  const template = await created('/web-setup/templates', { name: 'Order', html: '<p>Hello</p>' });
  const segment = await created('/web-setup/segments', {
    name: 'Ada',
    filter: { field: 'firstName', op: 'is', value: 'Ada' },
  });
  const route = await created('/web-setup/inbound-routes', {
    name: 'Support',
    match: '*@in.shop.test',
    domainId: domain['domainId'],
  });
  await insertMail(daemon, client, {
    inboundId: 'inb_one',
    routeId: route['routeId'] ?? '',
    recipient: 'support@in.shop.test',
    sender: LONG,
    raw: `Subject: A question\r\nFrom: ${LONG}\r\n\r\nHello`,
    results: {},
  });
  const sequence = await created('/web-setup/sequences', {
    name: 'Welcome',
    trigger: { joined: group['subscriptionGroupId'] },
    steps: [{ wait: '2d' }],
  });
  Object.assign(pages, {
    overview: '',
    messages: 'messages',
    domains: 'domains',
    records: `domains/${domain['domainId']}?step=records`,
    check: `domains/${domain['domainId']}?step=check`,
    queue: 'queue',
    contacts: 'contacts',
    contact: `contacts/${contact['contactIdentifier']}`,
    import: 'contacts/import',
    groups: 'groups',
    group: `groups/${group['subscriptionGroupId']}`,
    segments: 'segments',
    segment: `segments/${segment['segmentId']}`,
    suppressions: 'suppressions',
    webhooks: 'webhooks',
    webhook: `webhooks/${webhook['webhookId']}`,
    media: 'media',
    templates: 'templates',
    template: `templates/${template['templateId']}`,
    campaigns: 'campaigns',
    reputation: 'reputation',
    reports: 'reputation?tab=dmarc',
    sequences: 'sequences',
    sequence: `sequences/${sequence['sequenceId']}`,
    inbound: 'inbound',
    'inbound-mail': 'inbound/inb_one',
    'inbound-routes': 'inbound/routes',
    inbox: 'inbox',
    keys: 'keys',
    people: 'people',
    audit: 'audit',
    system: 'system',
    reference: 'reference',
    settings: 'settings',
    profile: 'me',
    accounts: 'system/accounts',
    account: `system/accounts/${client.accountId}`,
  });
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

/** Pages whose data belongs to the console itself, which has no operation of the API. */
const WITHOUT_COMMAND = ['people', 'audit', 'reference', 'profile'];

/** Cells and buttons in tables that are not completely inside the window. */
const CUT_OFF = `[...document.querySelectorAll('main :is(th, td, button, select):not(thead *)')]
  .filter((element) => element.getBoundingClientRect().right > innerWidth ||
    // In lists, long texts end with an ellipsis.
    (element.scrollWidth > innerWidth && getComputedStyle(element).textOverflow !== 'ellipsis'))
  .map((element) => element.outerHTML.slice(0, 200))`;
/** What is in front of the value of the first cell. */
const FIRST_LABEL = `getComputedStyle(document.querySelector('main td'), '::before').content`;

/** The styles that only one of two pages has. */
async function differences(one: Page, other: Page): Promise<string[]> {
  const ofOne = await one.evaluate<string[]>(STYLES);
  const ofOther = await other.evaluate<string[]>(STYLES);
  return [
    ...ofOne.filter((style) => !ofOther.includes(style)),
    ...ofOther.filter((style) => !ofOne.includes(style)),
  ];
}

/** What a sheet would change: of each kind of element in the content, once. */
const STYLES = `[...new Set([...document.querySelectorAll('main *:not(svg *)')].map((element) => {
  const style = getComputedStyle(element);
  return [element.localName, element.className.baseVal ?? element.className, element.type ?? '',
    ...['display', 'color', 'background-color', 'font-size', 'font-weight', 'line-height', 'padding', 'border', 'border-radius',
      'min-height', 'gap', 'text-align', 'white-space'].map((name) => style.getPropertyValue(name))].join(' | ');
}))].sort()`;

/** Controls without a class, which no sheet styles, and visible ones below 24 x 24 px. */
const CONTROLS = `[...document.querySelectorAll('button, input:not([type=hidden], [hidden]), select, textarea')]
  .filter((element) => {
    const { width, height } = element.getBoundingClientRect();
    const isSmall = element.checkVisibility() && !element.matches('label .tick') && (width < 24 || height < 24);
    return element.className === '' || isSmall;
  })
  .map((element) => element.outerHTML.slice(0, 200))`;

/** Opens another page of the application without loading it again. */
async function follow({ page }: Window, path: string): Promise<void> {
  const address = `/console/${path}${path.includes('?') ? '&' : '?'}account=${client.accountId}`;
  await page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(address)}); dispatchEvent(new PopStateEvent('popstate'))`,
  );
  await page.getByRole('heading', { level: 1 }).waitFor();
  await expect.poll(() => page.locator('.loading').count()).toBe(0);
}

describe.skipIf(required.missing)(`every page${required.reason}`, () => {
  it('of the navigation is opened by these tests, and shows nothing that failed', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    const links = await page.evaluate<string[]>(
      "[...document.querySelectorAll('.side nav a')].map(({ pathname }) => pathname)",
    );
    const opened = Object.values(pages).map((path) => `/console/${path.split('?')[0]}`);
    expect(links.length).toBeGreaterThan(15);
    expect(links.filter((path) => !opened.includes(path))).toEqual([]);
    for (const [name, path] of Object.entries(pages)) {
      await open.visit(window, path, client);
      expect(await page.getByRole('alert').allTextContents(), name).toEqual([]);
    }
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('shows a command that reads its data with the key that it names', async () => {
    const window = await open.operator(DESKTOP);
    // The command of the import sends a file.
    const folder = mkdtempSync(join(tmpdir(), 'postrider-curl-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'contacts.csv'), 'email\nada@example.net\n');
    const environment = {
      PATH: process.env['PATH'],
      SETUP_KEY: client.keys.setup,
      OPERATOR_KEY: client.operatorKey,
      ACCOUNT_ID: client.accountId,
    };
    for (const [name, path] of Object.entries(pages)) {
      await open.visit(window, path, client);
      const command = window.page.locator('.curl pre');
      expect(await command.count(), name).toBe(WITHOUT_COMMAND.includes(name) ? 0 : 1);
      if (WITHOUT_COMMAND.includes(name)) continue;
      const text = (await command.textContent()) ?? '';
      expect(text, name).toContain(daemon.url);
      const { stdout } = await run('sh', ['-c', text], { cwd: folder, env: environment });
      expect(JSON.parse(stdout), name).toMatchObject({ success: true });
    }
    await window.context.close();
  });

  it('looks the same when it is opened directly and after every other page', async () => {
    const second = await open.operator(DESKTOP);
    await open.visit(second, '', client);
    // Loads the sheets of all pages.
    for (const path of Object.values(pages)) await follow(second, path);
    const first = await open.operator(DESKTOP);
    for (const [name, path] of Object.entries(pages)) {
      await open.visit(first, path, client);
      expect(await first.page.evaluate(CONTROLS), name).toEqual([]);
      expect((await first.page.evaluate<string[]>(STYLES)).length, name).toBeGreaterThan(3);
      await follow(second, path);
      // Until all parts of both are loaded.
      await expect.poll(() => differences(first.page, second.page), { message: name }).toEqual([]);
    }
    await first.context.close();
    await second.context.close();
  });

  it('is printed over the whole width of the paper, without what only a screen needs', async () => {
    const window = await open.operator(A4);
    const { page, context } = window;
    await page.emulateMedia({ media: 'print' });
    for (const [name, path] of Object.entries(pages)) {
      await open.visit(window, path, client);
      const box = await page.locator('main').boundingBox();
      expect(box?.width, name).toBe(A4.width);
      const hidden = page
        .locator('header, .side, .curl, form button, .copy, .screen')
        .filter({ visible: true });
      expect(await hidden.count(), name).toBe(0);
    }
    await context.close();
  });

  it('has the fields of a form in one line', async () => {
    const window = await open.operator(DESKTOP);
    await open.visit(window, 'queue', client);
    const { page, context } = window;
    const tops = [];
    const form = page.getByRole('form', { name: 'Cancel waiting messages' });
    for (const field of [
      form.getByLabel('Destination'),
      form.getByRole('combobox', { name: 'Account' }),
      form.getByLabel('Reason'),
    ])
      tops.push((await field.boundingBox())?.y);
    expect(new Set(tops).size, tops.join()).toBe(1);
    await context.close();
  });

  it('shows whole rows of tables with the names of their columns on a phone', async () => {
    const window = await open.operator({ width: 390, height: 844 });
    const { page, context } = window;
    for (const [name, path] of Object.entries(pages)) {
      await open.visit(window, path, client);
      expect(await page.evaluate(CUT_OFF), name).toEqual([]);
      await window.screenshot(`console-phone-${name}`);
    }
    await open.visit(window, 'settings', client);
    expect(await page.evaluate(FIRST_LABEL)).toContain('Used');
    await context.close();
  });
});
