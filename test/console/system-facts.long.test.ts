// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { HOSTILE, type OpenConsole, openConsole } from './open-console.ts';

/* Backups, certificates and source addresses on the page of the system, in Chromium over a daemon in this process. */
const FACTS = '/web-setup/installation';

let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;

beforeAll(async () => {
  const now = Date.now();
  daemon = await startInProcess({
    'console.listen': '127.0.0.1:0',
    'backup.schedule': '30 3 1 1 *',
    'delivery.egress': [
      {
        name: 'main',
        publicAddress: '192.0.2.25',
        warmup: { started: new Date(now - 2 * DAY).toISOString().slice(0, 10), days: 30 },
      },
    ],
  });
  client = await daemon.account('Shop');
  const { certificates, egressHealth } = daemon.tables;
  const row = { private_key: null, chain: null, not_after: null, due_at: now, tried_at: now };
  // The texts of authorities and receivers are those of third parties.
  certificates.put({ ...row, host: 'new.example.com', failures: 2, last_error: HOSTILE });
  const issued = { private_key: Buffer.alloc(1), chain: 'pem', not_after: now + 60 * DAY };
  certificates.put({ ...row, ...issued, host: 'link.example.com', failures: 0, last_error: null });
  egressHealth.put({
    entry: 'main',
    provider: 'Yahoo',
    since: now - DAY,
    probe_at: now + DAY,
    failures: 3,
    passed: 0,
    blocked: 0,
    reply: HOSTILE,
  });
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

describe('System', () => {
  it('shows backups, certificates and source addresses, with texts of third parties as text', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'system', client);
    const lastBackup = page.getByText('Last complete backup').locator('..');
    await lastBackup.getByText('never').waitFor();
    const certificates = page.getByRole('region', { name: 'Certificates' });
    const failing = certificates.getByRole('row', { name: 'new.example.com' });
    await failing.getByText('not issued yet').waitFor();
    await failing.getByText(HOSTILE).waitFor();
    const year = new Date(Date.now() + 60 * DAY).getFullYear();
    await certificates.getByRole('row', { name: 'link.example.com' }).getByText(`${year}`).waitFor();
    const addresses = page.getByRole('region', { name: 'Source addresses' });
    const main = addresses.getByRole('row', { name: '192.0.2.25' });
    // Day 4 if midnight passes during the test.
    await main.getByText(/^day [34] of 30$/).waitFor();
    await main.getByText(`Yahoo, `).filter({ hasText: HOSTILE }).waitFor();
    await page.getByText('Warm-up by provider').press('Enter');
    const byProvider = page.getByRole('region', { name: 'Warm-up by provider' });
    await byProvider.getByRole('rowheader', { name: 'main' }).waitFor();
    expect(await page.title()).toBe('System · Postrider');
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('shows versions and storage, the next backup and one that runs', async () => {
    const { data } = await client.get<{
      version: string;
      nodeVersion: string;
      hostname: string;
      backups: { nextAt: string };
    }>(FACTS);
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'system', client);
    const fact = (name: string) =>
      page.locator('dl > div', { has: page.getByText(name, { exact: true }) }).locator('dd');
    expect(await fact('Postrider').textContent()).toBe(data.version);
    expect(await fact('Node.js').textContent()).toBe(data.nodeVersion);
    expect(await fact('Host name').textContent()).toBe(data.hostname);
    expect(await fact('Started').textContent()).toContain(`${new Date().getFullYear()}`);
    for (const name of ['Database', 'Write-ahead log', 'Free space'])
      expect(await fact(name).textContent(), name).toMatch(/^\d+(\.\d)? [kMG]B$/);
    const next = new Date(data.backups.nextAt).getFullYear();
    expect(await fact('Next backup').textContent()).toContain(`${next}`);
    await page.route(`**/console/api${FACTS}`, async (sent) => {
      const response = await sent.fetch();
      const body = await response.json();
      body.data.backups.isRunning = true;
      await sent.fulfill({ response, json: body });
    });
    await page.reload();
    await page.getByText('running now').waitFor();
    await context.close();
  });

  it('shows why the last backup failed, on a phone', async () => {
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await page.route(`**/console/api${FACTS}`, async (sent) => {
      const response = await sent.fetch();
      const body = await response.json();
      body.data.backups = {
        lastSuccessAt: '2026-01-31T03:00:00.000Z',
        nextAt: '2026-02-01T03:15:00.000Z',
        error: 'ENOSPC: no space left on device',
        isRunning: false,
      };
      await sent.fulfill({ response, json: body });
    });
    await open.visit(window, 'system', client);
    await page.getByRole('heading', { name: 'Backups' }).click();
    await page.getByText('The last backup failed: ENOSPC: no space left on device').waitFor();
    await page.getByText('Last complete backup').locator('..').getByText('2026').waitFor();
    await context.close();
  });

  it('has no finding of axe-core with facts, on a phone and a desktop, light and dark', async () => {
    await open.examine({ 'system-facts': 'system' }, client);
  });
});
