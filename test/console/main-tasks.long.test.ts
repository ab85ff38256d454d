// Long: does the main task of every page of the console with four combinations of input and window.
import { readdirSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import { startGroup } from '../support/group.ts';
import { type InProcess, PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { insertDomain } from '../support/store.ts';
import { counted, keyboard, pointer } from './input.ts';
import { FURTHER_TASKS, MAIN_TASKS, type Session, showNavigation, shown } from './main-tasks.ts';
import { type OpenConsole, openConsole, shownPerson } from './open-console.ts';

/*
 * The main task of every page of the console, in Chromium over a daemon in this process: with a keyboard and with a mouse
 * or a finger, on a desktop and on a phone.
 */
const PAGES = new URL('../../src/console/pages/', import.meta.url);

let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let domains = 0;

beforeAll(async () => {
  daemon = await startInProcess({
    'console.listen': '127.0.0.1:0',
    // Passkeys need https or this name.
    'console.url': 'http://localhost:0',
  });
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

describe.each([
  { with: 'with a keyboard on a desktop', name: 'keys', size: DESKTOP, inputOf: keyboard },
  { with: 'with a finger on a phone', name: 'finger', size: PHONE, inputOf: pointer },
  { with: 'with a mouse on a desktop', name: 'mouse', size: DESKTOP, inputOf: pointer },
])('$with', ({ name, size, inputOf }) => {
  let window: Window;
  let session: Session;

  beforeAll(async () => {
    const client = await accountWithData(name);
    window = await open.operator(size);
    const { page } = window;
    await addAuthenticator(window);
    const input = await inputOf(window);
    await showOverview(page, client);
    const email = await shownPerson(page);
    session = { daemon, page, input, client, email, name };
  });
  afterAll(() => window?.context.close());
  afterEach(async ({ task }) => {
    // The next test begins with another page.
    if (task.result?.state === 'fail') await showOverview(window.page, session.client);
  });

  it.each(
    Object.entries({ ...MAIN_TASKS, ...FURTHER_TASKS }).map(
      ([name, task]) => [`${name}: ${task.does}`, task] as const,
    ),
  )('%s', async (_, { page, run, endsAlone = false, maxClicks = Number.POSITIVE_INFINITY }) => {
    if (page !== null) await openPage(session, page);
    const { input, clicks } = counted(session.input);
    await run({ ...session, input });
    expect(clicks()).toBeLessThanOrEqual(maxClicks);
    expect(await session.input.otherEvents()).toEqual([]);
    expect(await session.page.getByRole('navigation', { name: 'Pages' }).isVisible()).toBe(
      size !== PHONE && !endsAlone,
    );
    expect(await session.page.evaluate('document.documentElement.scrollWidth')).toBe(size.width);
    // The policy of previews forbids scripts, also those of the browser's driver.
    const errors = window.consoleErrors.splice(0);
    expect(errors.filter((line) => !line.includes('/console/previews/'))).toEqual([]);
  });

  it('has a task for every page of the navigation', async () => {
    const links = await session.page.locator('.side-nav a').allTextContents();
    expect(links.length).toBeGreaterThan(15);
    const covered = Object.values(MAIN_TASKS).map(({ page }) => page);
    // Some have a count behind their name.
    expect(links.filter((link) => !covered.includes(link.replace(/\d.*$/, '')))).toEqual([]);
  });
});

it('has a task for every page of the sources', () => {
  const pages = readdirSync(PAGES).map((name) => name.replace('.tsx', ''));
  expect(Object.keys(MAIN_TASKS).toSorted()).toEqual(pages.toSorted());
});

async function showOverview(page: Page, { accountId }: ApiClient): Promise<void> {
  await page.goto(`${daemon.consoleUrl}/console/?account=${accountId}`);
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
}

/** Opens a page with the navigation. The link to the profile is in the menu of the person. */
async function openPage({ page, input }: Session, title: string): Promise<void> {
  if (await page.getByRole('heading', { level: 1, name: title, exact: true }).isVisible()) return;
  const isProfile = title === 'Your profile';
  const links = page.locator(isProfile ? '.me-menu' : '.side-nav');
  // Some have a count behind their name.
  const link = links.getByRole('link', { name: new RegExp(`^${title}(?: \\d.*)?$`) });
  const isFolded = !(await link.isVisible());
  await showNavigation(page, input);
  if (isProfile) await input.press(page.getByRole('button', { name: /^Your menu: / }));
  await input.press(link);
  await shown(page, title);
  expect(await link.isVisible()).toBe(!isFolded);
}

/** An account with what the tasks need, in which `name` is part of all names that are unique in the installation. */
async function accountWithData(name: string): Promise<ApiClient> {
  const client = await daemon.account(`Shop ${name}`);
  const [group] = daemon.tables.domainGroups.list(client.accountId);
  const own = {
    account_id: client.accountId,
    group_id: group?.group_id ?? '',
    next_check_at: Date.now() + DAY,
  };
  for (const domain of [{ name: `${name}.test` }, { name: `news-${name}.test`, use_case: 'mk' }] as const)
    insertDomain(daemon.tables, { ...own, domain_id: `domain_${++domains}`, ...domain }, Date.now());
  await client.put('/web-setup/domains', { domain: `pending-${name}.test`, useCaseId: 'tx-local' });
  const member = `delivered@simulator.${PLATFORM}`;
  await startGroup(client, [{ email: member, consentMethod: 'web_form' }]);
  const footer = '<p>{{company_address_html}}{{unsubscribe_email_html}}</p>';
  // Newer ones come first: the tasks must choose.
  await client.post('/web-setup/contacts/subscription-groups', { name: 'Another group' });
  for (const template of ['Newsletter', 'Another template'])
    await client.post('/web-setup/templates', { name: template, subject: 'News', html: footer });
  await client.post('/web-setup/suppressions', { email: 'blocked@example.net', reason: 'hard_bounce' });
  for (const [to, subject] of [
    [member, 'Your order'],
    [`delivered+2@simulator.${PLATFORM}`, 'Your invoice'],
  ] as const) {
    const sent = await client.send({ from: `orders@${name}.test`, to, subject, html: footer });
    expect(sent.status, sent.text).toBe(200);
  }
  daemon.tables.keptMail.insert({
    box: 'postmaster',
    kind: 'unknown',
    recipient: 'postmaster@mx.example.com',
    sender: 'eve@example.net',
    remote_address: '192.0.2.1',
    network: '192.0.2.0/24',
    message_seq: null,
    received_at: Date.now(),
    raw: Buffer.from(`Subject: Question ${name}\r\n\r\nWhy was it rejected?`),
  });
  const begin = Math.floor(Date.now() / DAY) * DAY - 60 * DAY;
  daemon.tables.tlsReports.insert(
    {
      received_at: Date.now(),
      network: '192.0.2.0/24',
      signer: 'receiver.example',
      verified: 1,
      host: `return-a.${name}.test`,
      organization: 'Receiver',
      report_id: name,
      begin_at: begin,
      end_at: begin + DAY - 1000,
    },
    [
      {
        policy_type: 'no-policy-found',
        successful: 9,
        failed: 1,
        failures: [
          { type: 'certificate-expired', receiving_host: `mx.${name}.test`, reason: '', sessions: 1 },
        ],
      },
    ],
  );
  return client;
}

/** Passkeys of the window are those of a device that confirms everything. */
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
