import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import type { ApiClient, CreatedDomain } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { type OpenConsole, openConsole } from './open-console.ts';

/* The DMARC policy on the page of a domain, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let domainId: string;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  const { data } = await client.put<CreatedDomain>('/web-setup/domains', {
    domain: 'shop.test',
    useCaseId: 'tx-local',
  });
  ({ domainId } = data);
  daemon.dns.publish(data.dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
  await daemon.publishPlatform();
  const verified = await client.post<{ status: string }>(`/web-setup/domains/${domainId}/verify`);
  expect(verified.data.status, verified.text).toBe('SUCCESS');
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

/** A report on one day, some days ago. */
function report(ago: number, policy: string, passed: number, failed: number): void {
  const begin = Math.floor(Date.now() / DAY) * DAY - ago * DAY;
  const row = { header_from: 'shop.test', disposition: 'none' };
  daemon.tables.dmarcReports.insert(
    {
      received_at: begin + DAY,
      network: '192.0.2.0/24',
      signer: 'receiver.example',
      domain: 'shop.test',
      policy_domain: 'shop.test',
      organization: 'Receiver',
      report_id: `${policy} ${ago} ${passed}`,
      begin_at: begin,
      end_at: begin + DAY - 1000,
      policy: JSON.stringify({ p: policy }),
      truncated: 0,
    },
    [
      { ...row, source_ip: '192.0.2.25', dkim: 'pass', spf: 'pass', messages: passed },
      ...(failed === 0
        ? []
        : [{ ...row, source_ip: '203.0.113.9', dkim: 'fail', spf: 'fail', messages: failed }]),
    ],
  );
}

describe('The DMARC policy of a domain', () => {
  it('recommends nothing before there are reports', async () => {
    const window = await open.operator(PHONE);
    await open.visit(window, `domains/${domainId}`, client);
    await window.page.getByText('No receiver has reported yet').waitFor();
    await window.context.close();
  });

  it('shows the record with p=quarantine to who still publishes p=none', async () => {
    report(26, 'none', 1, 0);
    const window = await open.operator(PHONE);
    await open.visit(window, `domains/${domainId}`, client);
    await window.page.getByText('p=none protects nobody').waitFor();
    await window.page.getByRole('definition').getByText('v=DMARC1; p=quarantine;').waitFor();
    await window.context.close();
  });

  it('names the sources to correct while the reports do not permit a stricter policy', async () => {
    for (let ago = 13; ago >= 9; ago--) report(ago, 'quarantine', 10, 1);
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, `domains/${domainId}`, client);
    await page
      .getByText('Receivers find p=quarantine. Reports of 6 days on 56 messages: 91 % passed.')
      .waitFor();
    await page.getByText('p=reject is safe after reports of 14 days').waitFor();
    await page.getByText('203.0.113.9: 5 of 5 failed').waitFor();
    await page.getByRole('link', { name: 'All reports of this domain' }).press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Reports' }).waitFor();
    await context.close();
  });

  it('shows the record of the stricter policy when it is safe, and that the policy is complete', async () => {
    for (let ago = 25; ago >= 2; ago--) report(ago, 'quarantine', 100, 0);
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, `domains/${domainId}`, client);
    await page.getByText('p=reject is safe now').waitFor();
    const { data } = await client.get<CreatedDomain>(`/web-setup/domains/${domainId}/dns-records`);
    const record = data.dnsRecords.find(({ value }) => value.startsWith('v=DMARC1'));
    expect(record?.value).toContain('p=reject');
    await page
      .getByRole('definition')
      .getByText(record?.value ?? '')
      .waitFor();
    report(1, 'reject', 100, 0);
    await page.reload();
    await page.getByText('Receivers refuse mail that others send in the name of this domain').waitFor();
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
    await open.examine({ 'domain-dmarc': `domains/${domainId}` }, client);
  });
});
