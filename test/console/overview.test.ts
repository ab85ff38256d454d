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
  await writer.run((all) => {
    const count = (
      domainId: string,
      provider: string,
      outcomes: Partial<Record<CountedOutcome, number>>,
      at = hour,
    ) => {
      const key = { hour: at, accountId: client.accountId, domainId, provider, stream: 'tx' } as const;
      for (const outcome of COUNTED_OUTCOMES)
        all.hourlyCounts.add({ ...key, outcome, outcomeClass: '' }, outcomes[outcome] ?? 0);
    };
    all.certificates.put({
      host: 'track.shop.test',
      private_key: null,
      chain: null,
      not_after: null,
      due_at: hour,
      tried_at: hour,
      failures: 2,
      last_error: HOSTILE,
    });
    all.certificates.put({
      host: 'old.shop.test',
      private_key: Buffer.alloc(1),
      chain: 'pem',
      not_after: hour,
      due_at: Date.now() + DAY,
      tried_at: hour,
      failures: 0,
      last_error: null,
    });
    all.egressHealth.put({
      entry: 'main',
      provider: 'Yahoo',
      since: hour,
      probe_at: Date.now() + DAY,
      failures: 3,
      passed: 0,
      blocked: 0,
      reply: HOSTILE,
    });
    const [webhook] = all.webhooks.list(client.accountId);
    if (webhook !== undefined) all.webhooks.setFailingSince(webhook.number, hour);
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
    await page.getByRole('heading', { name: 'Problems of the installation' }).waitFor();
    await page.getByRole('link', { name: 'below 1,000,000 GB new mail is refused' }).waitFor();
    const certificate = page.getByRole('link', {
      name: `of track.shop.test could not be obtained: ${HOSTILE}`,
    });
    expect(await certificate.getAttribute('href')).toContain('/console/system?account=');
    expect(await certificate.getAttribute('href')).toContain('section=certificates');
    await page.getByRole('link', { name: 'Every call of webhook Shop has failed since' }).press('Enter');
    await page.getByText('https://shop.test/hook').first().waitFor();
    expect(page.url()).toContain('status=failed');
    await page.getByText('Calls that failed and will be repeated are pending.').waitFor();
    await page.getByRole('link', { name: 'failed', exact: true }).waitFor();
    await context.close();

    const other = await open.member(client, 'viewer', DESKTOP);
    await open.visit(other, '', client);
    await other.page.getByRole('link', { name: 'Every call of webhook Shop' }).waitFor();
    expect(await other.page.getByText('Problems of the installation').count()).toBe(0);
    await other.context.close();
  });

  it('reads the problems of the installation again, and opens the part of the system that has one', async () => {
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await page.clock.install();
    let lastError = 'first';
    await page.route('**/console/api/web-setup/installation', async (sent) => {
      const response = await sent.fetch();
      const body = await response.json();
      body.data.certificates[0].lastError = lastError;
      await sent.fulfill({ response, json: body });
    });
    await open.visit(window, '', client);
    await page.getByRole('link', { name: 'could not be obtained: first' }).waitFor();
    lastError = 'second';
    await page.clock.fastForward(30_000);
    await page.getByRole('link', { name: 'could not be obtained: second' }).click();
    await page.getByRole('region', { name: 'Certificates' }).getByText('second').waitFor();
    // Other parts are folded on a phone.
    expect(await page.getByText('No backups are scheduled').isVisible()).toBe(false);
    await context.close();
  });

  it('leads from each problem of the installation to what shows it', async () => {
    const window = await open.operator(PHONE);
    const { page, context } = window;
    const change = (path: string, changed: (data: Record<string, unknown>) => object) =>
      page.route(`**/console/api${path}`, async (sent) => {
        const response = await sent.fetch();
        const body = await response.json();
        await sent.fulfill({ response, json: { ...body, data: { ...body.data, ...changed(body.data) } } });
      });
    const until = new Date(Date.now() + HOUR).toISOString();
    const site = {
      pool: 'default',
      connections: { used: 0, allowed: 1 },
      suspendedUntil: null,
      limitedUntil: null,
    };
    // States of other servers, the disk of backups and the queue.
    await change('/web-setup/queue', () => ({ stopped: HOSTILE }));
    await change('/web-setup/queue/sites', () => ({
      sites: [
        { ...site, site: 'mx1.blocked.test,mx2.blocked.test', suspendedUntil: until },
        { ...site, site: 'mx.limited.test', limitedUntil: until },
        { ...site, site: 'mx.fine.test' },
      ],
    }));
    const backups = { lastSuccessAt: null, nextAt: until, isRunning: false, error: 'ENOSPC' };
    await change('/web-setup/installation', () => ({ backups }));
    const problems = [
      [`No mail is sent: ${HOSTILE}`, null, ''],
      [
        'No mail is sent to mx1.blocked.test, mx2.blocked.test until',
        'Sites',
        'mx1.blocked.test, mx2.blocked.test',
      ],
      ['mx.limited.test asked for less mail until', 'Sites', 'mx.limited.test'],
      [`Yahoo refuses mail from 192.0.2.25: ${HOSTILE}`, 'Source addresses', HOSTILE],
      ['The certificate of old.shop.test has expired', 'Certificates', 'old.shop.test'],
      ['The last backup failed: ENOSPC', 'Backups', 'The last backup failed: ENOSPC'],
    ] as const;
    await open.visit(window, '', client);
    for (const [text, section, shown] of problems) {
      const problem = page.getByRole('link', { name: text });
      await problem.waitFor();
      expect(await page.getByRole('link', { name: 'mx.fine.test' }).count()).toBe(0);
      await problem.press('Enter');
      await page.getByRole('heading', { level: 1, name: section === null ? 'Queue' : 'System' }).waitFor();
      if (section === null) await page.getByText(text).waitFor();
      else
        await page
          .locator('details[open]', { has: page.getByRole('heading', { name: section }) })
          .getByText(shown)
          .waitFor();
      await page.goBack();
    }
    await context.close();
  });

  it('shows volume by hour and day as a chart and a table, and by domain and provider', async () => {
    const window = await open.operator(PHONE);
    const { page, context, consoleErrors } = window;
    await open.visit(window, '', client);
    const chart = page.getByRole('figure', { name: 'Messages by hour' });
    await chart.getByText('Accepted: 2,010').waitFor();
    expect(await chart.locator('canvas').count()).toBe(1);
    await chart.getByText('As a table').press('Enter');
    const hours = chart.getByRole('table').getByRole('row');
    expect(await hours.count()).toBeGreaterThanOrEqual(25);
    await chart.getByRole('row', { name: /2,010 1,909 0 76 4$/ }).waitFor();
    const domains = page.getByRole('region', { name: 'Sending domain' });
    await domains.getByRole('row', { name: /^shop\.test 1,010 910 90\.1% 0 75 7\.4% 4 0\.4%$/ }).waitFor();
    const providers = page.getByRole('region', { name: 'Provider of the recipients' });
    await providers.getByRole('rowheader', { name: HOSTILE }).waitFor();

    await page.getByRole('link', { name: '30 days' }).click();
    await page.getByRole('figure', { name: 'Messages by day' }).getByText('Accepted: 2,510').waitFor();
    expect(page.url()).toContain('interval=day');
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
    await open.examine({ 'overview-volume': '', 'overview-days': '?interval=day' }, client);
  });
});
