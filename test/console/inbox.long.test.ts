// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { HOSTILE, type OpenConsole, openConsole } from './open-console.ts';

/* Received mail for the operator, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;

const RAW = [
  `Subject: ${HOSTILE}`,
  `From: "${HOSTILE.replaceAll('"', "'")}" <eve@example.net>`,
  `X-Note: ${HOSTILE}`,
  'Content-Type: multipart/mixed; boundary=x',
  '',
  '--x',
  '',
  HOSTILE,
  '--x',
  `Content-Type: text/html; name="${HOSTILE.replaceAll('"', "'")}"`,
  '',
  HOSTILE,
  '--x--',
  '',
].join('\r\n');

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  receive('postmaster', 'Subject: A question\r\n\r\nHello');
  receive('abuse', RAW);
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

/** Stores a received mail. */
function receive(box: 'postmaster' | 'abuse', raw: string): void {
  daemon.tables.keptMail.insert({
    box,
    kind: 'unknown',
    recipient: `${box}@mx.example.com`,
    sender: HOSTILE,
    remote_address: '192.0.2.1',
    network: '192.0.2.0/24',
    message_seq: null,
    received_at: Date.now(),
    raw: Buffer.from(raw),
  });
}

describe('Inbox', () => {
  it('keeps a mail that arrives while the page is open behind a button, and the filters open', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await page.clock.install();
    await open.visit(window, 'inbox', client);
    await page.getByRole('link', { name: 'A question' }).waitFor();
    const rows = await page.locator('tbody tr').count();
    await page.getByRole('button', { name: 'Box' }).press('Enter');
    receive('postmaster', 'Subject: Just arrived\r\n\r\nHello');
    await page.clock.fastForward(10_000);
    await page.getByRole('main').getByRole('button', { name: '1 new' }).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(rows);
    await page.getByRole('button', { name: 'abuse@' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('main').getByRole('button', { name: '1 new' }).press('Enter');
    await page.getByRole('link', { name: 'Just arrived' }).waitFor();
    await context.close();
  });

  it('does not extend the session while nobody uses the page', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await page.clock.install();
    await open.visit(window, 'inbox', client);
    const isUnattended = async (ms: number) => {
      const next = page.waitForRequest(/\/installation\/inbox/);
      await page.clock.fastForward(ms);
      return (await (await next).allHeaders())['x-unattended'] === '1';
    };
    expect(await isUnattended(10_000)).toBe(false);
    expect(await isUnattended(15 * 60_000)).toBe(true);
    await page.keyboard.press('Tab');
    expect(await isUnattended(10_000)).toBe(false);
    await context.close();
  });

  it('shows a mail as text by keyboard, marks it as read, and saves its source', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'inbox', client);
    const row = page.getByRole('row', { name: 'A question' });
    await row.getByText('unread', { exact: true }).waitFor();
    await page.getByRole('link', { name: HOSTILE }).press('Enter');
    await page.getByRole('heading', { level: 1, name: HOSTILE }).waitFor();
    expect(await page.locator('pre.mail').textContent()).toBe(HOSTILE);
    // It was marked as read: the page shows no text about it.
    await expect.poll(() => daemon.tables.keptMail.head(2)?.read_at ?? null).not.toBeNull();
    await expect.poll(() => page.getByText('Loading').count()).toBe(0);
    expect(await page.getByText('The server did not respond').count()).toBe(0);
    await page.getByText('Header fields').click();
    await page.getByRole('definition').filter({ hasText: HOSTILE }).last().waitFor();
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download the source' }).press('Enter');
    expect(await readFile(await (await download).path(), 'utf8')).toBe(RAW);
    expect(await page.title()).toBe(`${HOSTILE} · Postrider`);

    await page.getByRole('navigation', { name: 'Where you are' }).getByRole('link').press('Enter');
    // The heading of a page gets the focus when it is shown, and a key would go to it.
    await expect.poll(() => page.evaluate('document.activeElement?.textContent')).toBe('Inbox');
    await page.getByRole('button', { name: 'Status' }).press('Enter');
    await page.getByRole('button', { name: 'Only unread mail' }).press('Enter');
    await page.getByRole('link', { name: HOSTILE }).waitFor({ state: 'detached' });
    expect(page.url()).toContain('unread=true');
    await page.getByRole('link', { name: 'A question' }).waitFor();
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('marks a mail as unread on a phone', async () => {
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await open.visit(window, 'inbox?box=abuse', client);
    expect(await page.getByRole('link', { name: 'A question' }).count()).toBe(0);
    await page.getByRole('link', { name: HOSTILE }).click();
    await page.getByRole('button', { name: 'Mark as unread' }).click();
    const row = page.locator('tr', { has: page.locator('a[href*="inbox/2?"]') });
    await row.getByText('unread', { exact: true }).waitFor();
    // The request waits, and is not sent when the person takes it back.
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await row.getByText('unread', { exact: true }).waitFor({ state: 'detached' });
    expect(daemon.tables.keptMail.head(2)?.read_at ?? null).not.toBeNull();
    await row.getByRole('link').click();
    await page.getByRole('button', { name: 'Mark as unread' }).click();
    await expect.poll(() => daemon.tables.keptMail.head(2)?.read_at ?? null).toBeNull();
    await row.getByText('unread', { exact: true }).waitFor();
    await context.close();
  });

  it('is not for members of an account', async () => {
    const window = await open.member(client, 'owner', DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'inbox', client);
    expect(await page.getByRole('link', { name: 'A question' }).count()).toBe(0);
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
    await open.examine({ inbox: 'inbox', 'inbox-mail': 'inbox/2' }, client);
  });
});
