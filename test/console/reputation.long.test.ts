// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import type { ReputationCounter } from '../../src/store/reputation/reputation-counts.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { chooseLanguage, insertShopDomain, type OpenConsole, openConsole } from './open-console.ts';

/* What providers do with the mail, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let empty: ApiClient;

const today = Math.floor(Date.now() / DAY) * DAY;
const dateOf = (ago: number) => new Date(today - ago * DAY).toISOString().slice(0, 10);
/** Messages of a day, by provider. */
const SHARES = { Google: 410, Microsoft: 230, Yahoo: 90, 'United Internet': 60, Apple: 55, other: 120 };

/** Counts of one day, which differ from day to day. */
function countsOf(volume: number, ago: number, provider: string): Partial<Record<ReputationCounter, number>> {
  const sent = Math.round(volume * (1 + 0.25 * Math.sin(ago * 1.7) + ([0, 6].includes(ago % 7) ? -0.5 : 0)));
  const deferred = Math.round(sent * (provider === 'Google' && ago < 5 ? 0.136 : 0.012));
  const hardBounced = Math.round(sent * 0.006);
  const blocked = provider === 'Microsoft' && ago > 20 ? Math.round(sent * 0.03) : 0;
  return {
    volume: sent,
    delivered: sent - hardBounced - blocked,
    deferred,
    hardBounced,
    softBounced: Math.round(sent * 0.003),
    blocked,
    // One in about 1,200.
    complained: (ago * 7 + volume) % Math.ceil(1200 / volume) === 0 ? 1 : 0,
    unsubscribed: Math.round(sent * 0.004),
    opened: Math.round(sent * 0.41),
    clicked: Math.round(sent * 0.07),
  };
}

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  [client, empty] = [await daemon.account('Shop'), await daemon.account('Empty')];
  insertShopDomain(daemon, client);
  const { reputationCounts, spamRates, dmarcReports } = daemon.tables;
  const { accountId } = client;
  for (let ago = 0; ago < 30; ago++) {
    for (const [provider, volume] of Object.entries(SHARES))
      for (const [counter, count] of Object.entries(countsOf(volume, ago, provider)))
        for (let n = 0; n < count; n++)
          reputationCounts.add(
            {
              day: today - ago * DAY,
              accountId,
              domainId: 'domain_1',
              source: counter === 'volume' ? '' : n % 3 === 0 ? 'pool-b' : 'pool-a',
              provider,
            },
            // Sound: the keys of the counts.
            counter as ReputationCounter,
          );
    reputationCounts.endUnit(true);
    reputationCounts.write();
    const rate = { account_id: accountId, day: today - ago * DAY, recorded_at: today };
    if (ago > 1)
      spamRates.put({
        ...rate,
        provider: 'Google',
        about: 'shop.test',
        rate: Math.round(10 * (11 + 6 * Math.sin(ago))) / 100_000,
      });
    if (ago > 1 && ago % 2 === 0)
      spamRates.put({ ...rate, provider: 'Microsoft', about: '192.0.2.25', rate: 0.001 });
  }
  dmarcReports.insert(
    {
      domain: 'shop.test',
      policy_domain: 'shop.test',
      organization: 'receiver.example',
      report_id: '1',
      begin_at: today - 3 * DAY,
      end_at: today - 2 * DAY,
      policy: JSON.stringify({ p: 'reject' }),
      truncated: 0,
      received_at: today,
      network: '192.0.2.0/24',
      signer: 'receiver.example',
      verified: 1,
    },
    [
      {
        source_ip: '192.0.2.25',
        header_from: 'shop.test',
        disposition: 'none',
        dkim: 'pass',
        spf: 'pass',
        messages: 930,
      },
      {
        source_ip: '203.0.113.9',
        header_from: 'shop.test',
        disposition: 'reject',
        dkim: 'fail',
        spf: 'fail',
        messages: 7,
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

describe('the reputation in the console', () => {
  it('states what changed, and shows providers, charts and DMARC', async () => {
    const window = await open.operator(DESKTOP);
    const { page } = window;
    await open.visit(window, 'reputation', client);
    await expect
      .poll(() => page.locator('.reputation-changes li').allInnerTexts())
      .toEqual([
        expect.stringMatching(
          /^Google: 12% of shop\.test’s mail has been deferred since .*; it was 1\.\d% in the week before\.$/,
        ),
      ]);
    const providers = page.getByRole('region', { name: 'Provider of the recipients' });
    expect(await providers.getByRole('rowheader').allInnerTexts()).toEqual([
      'Google',
      'Microsoft',
      'Others',
      'Yahoo',
      'United Internet',
      'Apple',
    ]);
    expect(await page.locator('.figure').last().innerText()).toContain('of 937 reported');

    await providers.getByRole('link', { name: 'Microsoft' }).click();
    await page.getByRole('button', { name: 'Provider: Microsoft' }).waitFor();
    expect(await page.getByRole('button', { name: 'Stated by Microsoft' }).count()).toBe(1);
    expect(await page.getByRole('button', { name: 'Stated by Google' }).count()).toBe(0);

    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export as CSV' }).click();
    expect((await download).suggestedFilename()).toBe('reputation.csv');
    await window.context.close();
  });

  it('shows a stopped stream with its figures, and ends the limit with a reason', async () => {
    daemon.tables.sendingLimits.put({
      limit_id: 'limit_1',
      account_id: client.accountId,
      stream: 'mk',
      domain_id: '',
      provider: '',
      level: 'pause',
      figures: JSON.stringify({
        reason: 'complaints',
        messages: 2000,
        events: 20,
        rate: 1,
        lowerBound: 0.57,
        limit: 0.3,
      }),
      per_minute: null,
      since: Date.now(),
      counts_from: 0,
      seen_counts: null,
    });
    await open.examine({ 'reputation-limited': 'reputation' }, client);
    const window = await open.operator(DESKTOP);
    const { page } = window;
    await open.visit(window, 'reputation', client);
    await page
      .getByText('20 of 2,000 delivered messages were reported as spam: 1%, and the limit is 0.3%')
      .waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Why it may continue').fill('The rented list is deleted');
    await dialog.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('None is in force').waitFor();
    expect(daemon.tables.sendingLimits.get('limit_1')?.level).toBeNull();
    await window.context.close();
  });

  it('takes a spam rate and a file of them', async () => {
    const window = await open.operator(DESKTOP);
    const { page } = window;
    await open.visit(window, 'reputation', client);
    await page.getByRole('button', { name: 'Add spam rates' }).click();
    const drawer = page.getByRole('dialog', { name: 'Add spam rates' });
    await drawer.getByLabel('Provider').selectOption('Yahoo');
    await drawer.getByLabel('Domain or IP address').fill('shop.test');
    await drawer.getByLabel('Day (UTC)').fill(dateOf(2));
    await drawer.getByLabel('Spam rate in percent').fill('0.2');
    await drawer.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('button', { name: 'Stated by Yahoo' }).waitFor();
    const { data } = await client.get<{ spamRates: object[] }>('/web-setup/reputation');
    expect(data.spamRates).toContainEqual({
      provider: 'Yahoo',
      domain: 'shop.test',
      day: dateOf(2),
      rate: 0.002,
    });

    await page.getByRole('button', { name: 'Add spam rates' }).click();
    await drawer.getByLabel('File', { exact: true }).setInputFiles({
      name: 'rates.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from(`date,spam rate\n${dateOf(3)},0.1%\nnever,0.1%\n`),
    });
    await drawer.getByLabel('Domain', { exact: true }).fill('shop.test');
    await drawer.getByRole('button', { name: 'Import' }).click();
    await drawer.getByText('1 of 2 rows imported').waitFor();
    await drawer.getByText('the day is not one').waitFor();
    await window.context.close();
  });

  it('is in the language of the person', async () => {
    const window = await open.operator(DESKTOP);
    await open.visit(window, 'reputation', client);
    await chooseLanguage(window.page, 'de');
    await window.page
      .getByText(/^Google: Seit .* werden 12\s% der Mails von shop\.test verzögert/u)
      .waitFor();
    await window.context.close();
  });

  it('is accessible, and fits a phone', async () => {
    await open.examine(
      { reputation: 'reputation', 'reputation-provider': 'reputation?provider=Google&days=7' },
      client,
    );
    await open.examine({ 'reputation-empty': 'reputation' }, empty);
  });
});
