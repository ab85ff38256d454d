// Long: opens its pages of the console on a phone and a desktop, light and dark.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { insertDomain } from '../support/store.ts';
import { chooseLanguage, HOSTILE, type OpenConsole, openConsole } from './open-console.ts';

/* Reports about domains, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let empty: ApiClient;

/** The start of a day in UTC, some days ago. */
const day = (ago: number) => Math.floor(Date.now() / DAY) * DAY - ago * DAY;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  empty = await daemon.account('Empty');
  const [group] = daemon.tables.domainGroups.list(client.accountId);
  const own = {
    account_id: client.accountId,
    group_id: group?.group_id ?? '',
    next_check_at: Date.now() + DAY,
  };
  insertDomain(daemon.tables, { ...own, domain_id: 'domain_1', name: 'shop.test' }, Date.now());
  insertDomain(
    daemon.tables,
    { ...own, domain_id: 'domain_2', name: 'other.test', dkim_enabled: 0 },
    Date.now() - 1,
  );
  const received = {
    received_at: Date.now(),
    network: '192.0.2.0/24',
    signer: 'receiver.example',
    verified: 1,
  } as const;
  const row = { header_from: 'shop.test', disposition: 'none', messages: 3 };
  for (const ago of [2, 60])
    daemon.tables.dmarcReports.insert(
      {
        ...received,
        domain: 'shop.test',
        policy_domain: 'shop.test',
        organization: HOSTILE,
        report_id: `report-${ago}`,
        begin_at: day(ago),
        end_at: day(ago - 1),
        policy: JSON.stringify({ p: 'none' }),
        truncated: 0,
      },
      [
        { ...row, source_ip: '192.0.2.25', dkim: 'pass', spf: 'pass' },
        { ...row, source_ip: '203.0.113.9', dkim: 'fail', spf: 'fail', messages: 1 },
      ],
    );
  daemon.tables.tlsReports.insert(
    {
      ...received,
      host: 'return-a.shop.test',
      organization: 'Sender',
      report_id: 'tls-1',
      begin_at: day(2),
      end_at: day(1) - 1000,
    },
    [
      {
        policy_type: 'no-policy-found',
        successful: 9,
        failed: 1,
        failures: [
          { type: 'certificate-expired', receiving_host: 'mx.shop.test', reason: HOSTILE, sessions: 1 },
        ],
      },
    ],
  );
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

const date = (ago: number) => new Date(day(ago)).toISOString().slice(0, 10);

/** The headline figures, each with its note. */
async function figures(page: Page): Promise<string[]> {
  await page.locator('.figure').first().waitFor();
  return (await page.locator('.figure').all()).reduce(async (shown, figure) => {
    const [label, value, note] = await figure.locator('dt, dd').allInnerTexts();
    return [...(await shown), `${label}: ${value} (${note})`];
  }, Promise.resolve<string[]>([]));
}

describe('Reports', () => {
  it('shows who sends as a domain, by source and by day, and chooses another period', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'reports?domain=domain_1', client);
    expect(await figures(page)).toEqual([
      'Reported messages: 4 (from 2 addresses)',
      'Passed DMARC: 75% (3 messages)',
      'Failed: 1 (25%)',
      'To spam: 0 (0%)',
      'Rejected: 0 (0%)',
    ]);
    const sources = page.getByRole('region', { name: 'Sources' });
    expect(await sources.getByRole('row').allInnerTexts()).toEqual([
      expect.stringContaining('Address'),
      expect.stringMatching(/192\.0\.2\.25\s+passes\s+3\s+100%\s+100%\s+0\s+0/i),
      expect.stringMatching(/203\.0\.113\.9\s+fails\s+1\s+0%\s+0%\s+0\s+0/i),
    ]);
    const days = page.getByRole('region', { name: 'By day' });
    expect(await days.getByRole('row').count()).toBe(2);
    // The report ended at midnight: it is about the day before.
    await days
      .getByRole('row', { name: date(2) })
      .getByText('75%')
      .first()
      .waitFor();
    await page.getByRole('region', { name: 'Reports received' }).getByText(HOSTILE).waitFor();

    await page.getByLabel('Period').selectOption('90');
    await days.getByRole('row', { name: date(60) }).waitFor();
    expect(page.url()).toContain('days=90');
    await expect.poll(() => figures(page)).toContain('Passed DMARC: 75% (6 messages)');
    const chart = page.getByRole('figure', { name: 'Over time' });
    await chart.getByText('Passed DMARC: 6').waitFor();
    await chart.getByText('Failed: 2').waitFor();
    expect(await chart.locator('canvas').count()).toBe(1);
    expect(await page.title()).toBe('Reputation · Postrider');
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('writes the axes of charts in the language of the person', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await page.addInitScript(`
      const { fillText } = CanvasRenderingContext2D.prototype;
      window.drawn = [];
      CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        window.drawn.push(text);
        fillText.call(this, text, ...place);
      };`);
    await chooseLanguage(page, 'fr');
    await open.visit(window, 'reports?domain=domain_1&days=90', client);
    const month = new Intl.DateTimeFormat('fr', { month: 'short', timeZone: 'UTC' }).format(day(2));
    await expect.poll(() => page.evaluate('drawn.join()')).toMatch(new RegExp(`\\d ${month}`));
    expect(await page.evaluate('drawn.join()')).not.toMatch(/\d\/\d/);
    // The days are in the table below.
    expect(await page.getByText('Sous forme de tableau').count()).toBe(0);
    await context.close();
  });

  it('shows failures of encryption, by keyboard, on a phone', async () => {
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await open.visit(window, 'reports?domain=domain_1', client);
    await page.getByRole('link', { name: 'Encryption (TLS)' }).press('Enter');
    await expect
      .poll(() => figures(page))
      .toEqual(['Reported sessions: 10 (in 1 report)', 'Encrypted: 90% (9)', 'Failed: 1 (10%)']);
    expect(page.url()).toContain('tab=tls');
    const failures = page.getByRole('region', { name: 'Failures' });
    await failures.getByRole('row', { name: 'certificate-expired' }).getByText(HOSTILE).waitFor();
    await page
      .getByRole('region', { name: 'By day' })
      .getByRole('row', { name: date(2) })
      .waitFor();
    await context.close();
  });

  it('states what to do without a domain, without a verified domain and without reports', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'reports', empty);
    await page.getByText('No domains yet').waitFor();
    await open.visit(window, 'reports?domain=domain_2', client);
    await page.getByText('Reports are shown once the DKIM record of other.test is verified').waitFor();
    await open.visit(window, 'reports?domain=domain_1&days=7', client);
    await page.getByLabel('Domain').selectOption('domain_2');
    await page.getByText('Reports are shown once the DKIM record of other.test is verified').waitFor();
    expect(page.url()).toContain('days=7');
    await context.close();
  });

  it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
    await open.examine(
      { reports: 'reports?domain=domain_1', 'reports-tls': 'reports?domain=domain_1&tab=tls' },
      client,
    );
  });
});
