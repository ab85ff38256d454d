// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../src/core/clock.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import { COUNTED_OUTCOMES, type CountedOutcome } from '../../src/store/messages/hourly-counts.ts';
import { createTables } from '../../src/store/tables.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { insertDomain } from '../support/store.ts';
import { HOSTILE, type OpenConsole, openConsole } from './open-console.ts';

/* Volume and rates of the overview, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  const [group] = daemon.tables.domainGroups.list(client.accountId);
  for (const [id, name] of [
    ['domain_1', 'shop.test'],
    ['domain_2', 'news.test'],
  ] as const)
    insertDomain(
      daemon.tables,
      {
        account_id: client.accountId,
        group_id: group?.group_id ?? '',
        domain_id: id,
        name,
        next_check_at: Date.now() + DAY,
      },
      Date.now(),
    );
  const hook = { name: 'Shop', url: 'https://shop.test/hook', events: ['email_bounced'] };
  const made = await client.post('/web-setup/webhooks', hook);
  expect(made.status, made.text).toBe(201);
  // More than any disk has; only now, because nothing is added while the disk is nearly full.
  await daemon.reload({ 'limits.freeDiskBytes': 10 ** 15 });
  const hour = Math.floor(Date.now() / HOUR) * HOUR - 2 * HOUR;
  const db = openDatabase(daemon.dataDir);
  const writer = createWriter(db, createTables(db));
  await writer.run((tx) => {
    const count = (
      domainId: string,
      provider: string,
      outcomes: Partial<Record<CountedOutcome, number>>,
      at = hour,
    ) => {
      const key = { hour: at, accountId: client.accountId, domainId, provider, stream: 'tx' } as const;
      for (const outcome of COUNTED_OUTCOMES)
        tx.hourlyCounts.add({ ...key, outcome, outcomeClass: '' }, outcomes[outcome] ?? 0);
    };
    tx.certificates.put({
      host: 'track.shop.test',
      private_key: null,
      chain: null,
      not_after: null,
      due_at: hour,
      tried_at: hour,
      failures: 2,
      last_error: HOSTILE,
    });
    tx.certificates.put({
      host: 'old.shop.test',
      private_key: Buffer.alloc(1),
      chain: 'pem',
      not_after: hour,
      due_at: Date.now() + DAY,
      tried_at: hour,
      failures: 0,
      last_error: null,
    });
    tx.egressHealth.put({
      entry: 'main',
      provider: 'Yahoo',
      since: hour,
      probe_at: Date.now() + DAY,
      failures: 3,
      passed: 0,
      blocked: 0,
      reply: HOSTILE,
    });
    const [webhook] = tx.webhooks.list(client.accountId);
    if (webhook !== undefined) tx.webhooks.setFailingSince(webhook.number, hour);
    count('domain_1', 'gmail', { accepted: 1000, delivered: 900, bounced: 75, complained: 4 });
    count('domain_1', HOSTILE, { accepted: 10, delivered: 10 });
    count('domain_2', 'gmail', { accepted: 1000, delivered: 999, bounced: 1 });
    count('domain_2', 'gmail', { accepted: 500, delivered: 500 }, hour - 10 * DAY);
  });
  await writer.close();
  db.close();
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

describe('Overview', () => {
  it('names domains with many bounces or complaints, each with a link to these messages', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, '', client);
    await page.getByRole('link', { name: '0.4% of the messages of shop.test caused complaints' }).waitFor();
    expect(await page.getByRole('link', { name: 'of the messages of news.test' }).count()).toBe(0);
    await page.getByRole('link', { name: '7.4% of the messages of shop.test bounced' }).press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor();
    expect(page.url()).toContain('domainId=domain_1&status=bounced');
    await context.close();
  });

  it('names problems of the installation to operators only, and webhooks that fail', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, '', client);
    // The disk, an address, two certificates; two rates of a domain and a webhook.
    await page.getByText('Mail is flowing. 7 things need you.').waitFor();
    await page.getByRole('link', { name: 'below 1,000,000 GB new mail is refused' }).waitFor();
    const certificate = page.getByRole('link', {
      name: `of track.shop.test could not be obtained: ${HOSTILE}`,
    });
    expect(await certificate.getAttribute('href')).toContain('/console/system?account=');
    expect(await certificate.getAttribute('href')).toContain('section=certificates');
    await page.getByRole('link', { name: /^Webhooks 1 failing$/ }).waitFor();
    await page.getByRole('link', { name: 'Every call of webhook Shop fails' }).press('Enter');
    await page.getByText('https://shop.test/hook').first().waitFor();
    expect(page.url()).toContain('status=pending');
    await page.getByRole('link', { name: 'failed', exact: true }).waitFor();
    await context.close();

    const other = await open.member(client, 'viewer', DESKTOP);
    await open.visit(other, '', client);
    await other.page.getByText('Mail is flowing. 3 things need you.').waitFor();
    await other.page.getByRole('link', { name: 'Every call of webhook Shop' }).waitFor();
    expect(await other.page.getByText('of disk space are free').count()).toBe(0);
    await other.context.close();
  });

  it('reads what needs attention again, and opens the part of the system that has it', async () => {
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await page.clock.install();
    let error = 'first';
    await page.route('**/console/attention', async (sent) => {
      const response = await sent.fetch();
      const body = await response.json();
      body.data.installation.problems = [{ kind: 'certificate', host: 'track.shop.test', error }];
      await sent.fulfill({ response, json: body });
    });
    await open.visit(window, '', client);
    await page.getByRole('link', { name: 'could not be obtained: first' }).waitFor();
    error = 'second';
    await page.clock.fastForward(30_000);
    await page.getByRole('link', { name: 'could not be obtained: second' }).click();
    await page.getByRole('region', { name: 'Certificates' }).getByText(HOSTILE).first().waitFor();
    // Other parts are folded on a phone.
    expect(await page.getByText('No backups are scheduled').isVisible()).toBe(false);
    await context.close();
  });

  it('leads from each problem of the installation to what shows it', async () => {
    const window = await open.operator(PHONE);
    const { page, context } = window;
    const until = new Date(Date.now() + HOUR).toISOString();
    const since = new Date().toISOString();
    const site = { kind: 'site', pool: 'default', until };
    await page.route('**/console/attention', async (sent) => {
      const response = await sent.fetch();
      const body = await response.json();
      // States of other servers, the disk of backups and the queue.
      body.data.installation.problems = [
        { kind: 'queue', reason: HOSTILE },
        { ...site, site: 'mx1.blocked.test,mx2.blocked.test', state: 'suspended' },
        { ...site, site: 'mx.limited.test', state: 'limited' },
        {
          kind: 'address',
          address: '192.0.2.25',
          provider: 'Yahoo',
          reply: HOSTILE,
          since,
          nextProbeAt: until,
        },
        { kind: 'certificate', host: 'old.shop.test', error: null },
        { kind: 'backup', error: 'ENOSPC' },
      ];
      await sent.fulfill({ response, json: body });
    });
    const problems = [
      [`No mail is sent: ${HOSTILE}`, null],
      ['No mail is sent to mx1.blocked.test, mx2.blocked.test until', 'Sites'],
      ['mx.limited.test asked for less mail until', 'Sites'],
      [`Yahoo refuses mail from 192.0.2.25: ${HOSTILE}`, 'Source addresses'],
      ['The certificate of old.shop.test has expired', 'Certificates'],
      ['The last backup failed: ENOSPC', 'Backups'],
    ] as const;
    await open.visit(window, '', client);
    await page.getByText('No mail is sent. 9 things need you.').waitFor();
    for (const [text, section] of problems) {
      await page.getByRole('link', { name: text }).press('Enter');
      await page.getByRole('heading', { level: 1, name: section === null ? 'Queue' : 'System' }).waitFor();
      if (section !== null)
        await page.locator('details[open]', { has: page.getByRole('heading', { name: section }) }).waitFor();
      await page.goBack();
    }
    await context.close();
  });

  it('shows the figures of a period, their change, a chart with a table, and providers', async () => {
    const window = await open.operator(PHONE);
    const { page, context, consoleErrors } = window;
    await open.visit(window, '', client);
    const figure = (name: string) => page.locator('.figure', { hasText: name });
    await figure('Accepted').getByText('2,010').waitFor();
    await figure('Bounced').getByText('3.8%').waitFor();
    await figure('Complaints').getByText('4 · Gmail: below 0.1%').waitFor();
    const chart = page.getByRole('figure', { name: 'Messages by hour' });
    const delivered = chart.getByRole('button', { name: 'Delivered: 1,909' });
    expect(await delivered.getAttribute('aria-pressed')).toBe('true');
    await delivered.press('Enter');
    await expect.poll(() => delivered.getAttribute('aria-pressed')).toBe('false');
    expect(await chart.locator('canvas').count()).toBe(1);
    await chart.getByText('As a table').press('Enter');
    expect(await chart.getByRole('table').getByRole('row').count()).toBe(25);
    await chart.getByRole('row', { name: /1,909 0 76 0 0$/ }).waitFor();
    const providers = page.getByRole('region', { name: 'Provider of the recipients' });
    await providers.getByRole('rowheader', { name: HOSTILE }).waitFor();

    await page.getByRole('link', { name: '30 d' }).click();
    await figure('Accepted').getByText('2,510').waitFor();
    await page.getByRole('figure', { name: 'Messages by day' }).waitFor();
    expect(page.url()).toContain('period=30d');
    await providers.getByRole('row', { name: /^gmail 2,500/ }).waitFor();
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('compares a period with the one before', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, '?period=7d', client);
    await page.getByText('+302% on the 7 days before').waitFor();
    await context.close();
  });

  it('fits all of it on one screen', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, '', client);
    await page.getByRole('figure', { name: 'Messages by hour' }).waitFor();
    await page.getByRole('region', { name: 'Provider of the recipients' }).waitFor();
    expect(await page.evaluate('document.documentElement.scrollHeight')).toBeLessThanOrEqual(1400);
    await context.close();
  });

  it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
    await open.examine({ 'overview-hours': '', 'overview-days': '?period=30d' }, client);
  });
});
