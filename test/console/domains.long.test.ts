// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import type { ApiClient, CreatedDomain } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { type OpenConsole, openConsole } from './open-console.ts';

/* The pages of domains, in Chromium over a daemon in this process and a DNS server of the test. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let other: ApiClient;
let domainId: string;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  other = await daemon.account('Other');
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

/** The records of a domain as the API returns them. */
async function recordsOf(id: string): Promise<CreatedDomain['dnsRecords']> {
  return (await other.get<CreatedDomain>(`/web-setup/domains/${id}/dns-records`)).data.dnsRecords;
}

/** Publishes the records, without those that need a second step of the platform. */
function publish(records: CreatedDomain['dnsRecords']): void {
  daemon.dns.publish(records.filter(({ value }) => value !== 'Creation in progress'));
}

/** A report on one day, some days ago. */
function report(ago: number, policy: string, passed: number, failed: number, domain = 'shop.test'): void {
  const begin = Math.floor(Date.now() / DAY) * DAY - ago * DAY;
  const row = { header_from: domain, disposition: 'none' };
  daemon.tables.dmarcReports.insert(
    {
      received_at: begin + DAY,
      network: '192.0.2.0/24',
      signer: 'receiver.example',
      verified: 1,
      domain,
      policy_domain: domain,
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

describe('The steps of a domain', () => {
  it('lead from its name to a delivered message, by mouse', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await page.clock.install();
    await open.visit(window, 'domains', other);
    await page.getByText('No domains yet').waitFor();
    await page.getByLabel('Domain name').fill('new.test');
    await page.getByRole('radio', { name: /^Transactional/ }).check();
    await page.getByRole('button', { name: 'Register' }).click();
    await page.getByRole('heading', { level: 1, name: 'new.test' }).waitFor();
    expect(page.url()).toContain('step=records');
    const id = /domains\/([^?/]+)/.exec(page.url())?.[1] ?? '';

    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const clipboard = () => page.evaluate<string>('navigator.clipboard.readText()');
    const published = await recordsOf(id);
    const spf = published.find(({ value }) => value.startsWith('v=spf1'));
    const spfRow = page.getByRole('listitem', { name: 'TXT new.test', exact: true });
    await spfRow.getByRole('button', { name: 'Copy Value of TXT new.test' }).click();
    await expect.poll(clipboard).toBe(spf?.value);
    await spfRow.getByRole('button', { name: 'Copy Short name of TXT new.test' }).click();
    await expect.poll(clipboard).toBe('@');
    await spfRow.getByText('not checked yet').waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download as zone file' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('new.test.zone');
    const zone = readFileSync(await download.path(), 'utf8');
    for (const { type, name, ttl = 3600 } of published) expect(zone).toContain(`${name}. ${ttl} IN ${type} `);

    const key = published.find(({ name }) => name.includes('._domainkey.')) ?? { name: '', value: '' };
    await page.getByRole('button', { name: 'Check now' }).click();
    const missing = page.getByRole('listitem').filter({ hasText: key.name }).first();
    await missing.getByText('missing', { exact: true }).waitFor();
    // The whole key is in the column with what is expected, its beginning in what to change.
    expect((await missing.textContent())?.split(key.value.slice(-60)).length).toBe(2);
    publish(published.filter(({ value }) => !value.startsWith('v=spf1')));
    daemon.dns.set('new.test', 'TXT', ['v=spf1 mx ~all']);
    await page.getByRole('button', { name: 'Check now' }).click();
    const wrong = page.getByRole('listitem').filter({ hasText: 'v=spf1 mx ~all' });
    await wrong.getByText('wrong', { exact: true }).waitFor();
    expect(page.url()).toContain('step=check');
    await wrong.getByText('v=spf1 mx include:').first().waitFor();
    await wrong.getByRole('button', { name: 'Copy Name of TXT new.test' }).click();
    await expect.poll(clipboard).toBe('new.test');
    await wrong.getByRole('button', { name: /^Copy Expected of TXT new\.test$/ }).click();
    await expect.poll(clipboard).toMatch(/^v=spf1 mx include:\S+ ~all$/);
    const tracking = page.getByRole('listitem').filter({ hasText: 'link.new.test' });
    await tracking.getByRole('button', { name: /^Copy Expected of CNAME / }).click();
    const target = published.find(({ name }) => name === 'link.new.test')?.value;
    await expect.poll(clipboard).toBe(target);

    // The next visit shows what was found without another check.
    const verified: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/verify')) verified.push(request.method());
    });
    await open.visit(window, `domains/${id}`, other);
    await wrong.getByText('wrong', { exact: true }).waitFor();
    expect(verified).toEqual([]);

    // A correction is found without a click.
    daemon.dns.set('new.test', 'TXT', [spf?.value ?? '']);
    await page.clock.fastForward(31_000);
    await page.locator('.notice', { hasText: 'Mail may be sent from new.test.' }).waitFor();
    expect(verified).toEqual(['POST']);

    await page.getByRole('link', { name: 'Next: First message' }).click();
    await page.getByLabel('To', { exact: true }).fill(`delivered@simulator.${PLATFORM}`);
    await page.getByLabel('Text').fill('Hello {{nobody}} & <b>all</b>');
    await page.getByRole('button', { name: 'Send the message' }).click();
    const sent = page.getByRole('region', { name: 'The message that was sent' });
    await sent.getByText('delivered', { exact: true }).waitFor();
    const messageId = new URL(page.url()).searchParams.get('message') ?? '';
    expect((await other.message(messageId)).status).toBe('delivered');
    const content = await other.get<{ html: string }>(`/web-setup/messages/${messageId}/content`);
    expect(content.data.html).toContain('Hello &#123;&#123;nobody&#125;&#125; &#38; &#60;b&#62;all');
    await page.reload();
    await sent.getByText('delivered', { exact: true }).waitFor();

    await sent.getByRole('link', { name: 'Details' }).click();
    await page.getByRole('button', { name: 'Send again' }).press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).press('Enter');
    await expect.poll(() => page.url()).not.toContain(messageId);
    await page.getByText('Accepted by the server of the recipient').waitFor();
    const all = await other.allMessages();
    expect(all.map(({ status, subject }) => [status, subject])).toEqual([
      ['delivered', all[1]?.subject],
      ['delivered', all[0]?.subject],
    ]);
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('are walked by keyboard on a phone, for the other use case of a domain', async () => {
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await open.visit(window, `domains/${domainId}?step=settings`, client);
    await page.getByRole('link', { name: 'Add shop.test for another use: Marketing' }).press('Enter');
    expect(await page.getByLabel('Domain name').inputValue()).toBe('shop.test');
    expect(await page.getByRole('radio', { name: /^Marketing/ }).isChecked()).toBe(true);
    await page.getByLabel('Domain name').press('Enter');
    await page.getByRole('heading', { level: 2, name: 'DNS records to publish' }).waitFor();
    await page.getByRole('link', { name: 'Next: Check the records' }).press('Enter');
    await page.getByRole('button', { name: 'Check now' }).press('Enter');
    await page.getByText('missing', { exact: true }).first().waitFor();
    await page.getByRole('link', { name: 'First message' }).press('Enter');
    await page.getByText('Mail can be sent once all required records pass.').waitFor();
    await open.visit(window, 'domains', client);
    await page.getByRole('link', { name: 'Add a domain' }).press('Enter');
    await page.getByLabel('Domain name').fill('not a domain');
    await page.getByRole('button', { name: 'Register' }).press('Enter');
    await expect.poll(() => page.locator('.outcome.bad').textContent()).toMatch(/domain/);
    await context.close();
  });

  it('show a viewer what was found, without actions', async () => {
    const window = await open.member(client, 'viewer', DESKTOP);
    const { page, context } = window;
    await open.visit(window, `domains/${domainId}`, client);
    await page.getByText('passes').first().waitFor();
    for (const step of ['', '?step=message', '?step=dkim', '?step=settings']) {
      await open.visit(window, `domains/${domainId}${step}`, client);
      const forbidden = page.getByRole('button', { name: /Check now|Send|Rotate|Save|Delete/ });
      expect(await forbidden.count(), step).toBe(0);
    }
    await open.visit(window, 'domains/new', client);
    await page.getByText('Your role in this account does not permit this.').waitFor();
    await context.close();
  });
});

describe('The settings and keys of a domain', () => {
  it('replace the DKIM key: the old one signs until the record of the new one is found', async () => {
    const window = await open.member(client, 'developer', DESKTOP);
    const { page, context } = window;
    await open.visit(window, `domains/${domainId}?step=dkim`, client);
    await page.getByRole('button', { name: 'Rotate the DKIM key' }).press('Enter');
    await page.getByRole('dialog').getByText('The old key signs until').waitFor();
    await page.keyboard.press('Enter');
    const pending = page.getByRole('region', { name: /^A new key waits for its record/ });
    await pending.waitFor();
    await page.getByRole('row').filter({ hasText: 'not found in DNS yet' }).waitFor();
    const { data } = await client.get<CreatedDomain>(`/web-setup/domains/${domainId}/dns-records`);
    const [key] = data.dnsRecords;
    await pending
      .getByText(key?.name ?? 'no name', { exact: false })
      .first()
      .waitFor();
    publish([key].flatMap((record) => record ?? []));
    await page.getByRole('button', { name: 'Check now' }).click();
    await page.getByRole('row').filter({ hasText: 'signed before: keep its record' }).waitFor();
    expect(await pending.count()).toBe(0);
    await context.close();
  });

  it('set the host of tracked links, and delete a domain after a confirmation', async () => {
    const created = await client.put<CreatedDomain>('/web-setup/domains', {
      domain: 'old.test',
      useCaseId: 'tx-local',
    });
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, `domains/${created.data.domainId}?step=settings`, client);
    await page.getByLabel('Host of tracked links').fill('go.elsewhere.test');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('.outcome.bad', { hasText: 'old.test' }).waitFor();
    await page.getByLabel('Host of tracked links').fill('go.old.test');
    await page.getByRole('button', { name: 'Save' }).click();
    await expect
      .poll(
        async () =>
          (await client.get<{ trackingDomain: string }>(`/web-setup/domains/${created.data.domainId}`)).data
            .trackingDomain,
      )
      .toBe('go.old.test');
    await page.getByRole('button', { name: 'Delete the domain' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete the domain' }).click();
    await page.getByRole('heading', { level: 1, name: 'Domains' }).waitFor();
    await expect.poll(() => page.getByRole('link', { name: 'old.test' }).count()).toBe(0);
    await context.close();
  });
});

/** Publishes a DMARC record, and checks, which reads DNS without the cache. */
async function publishPolicy(
  policy: string,
  { domain, domainId: id }: { domain: string; domainId: string } = { domain: 'shop.test', domainId },
): Promise<void> {
  daemon.dns.set(`_dmarc.${domain}`, 'TXT', [`v=DMARC1; p=${policy}; rua=mailto:reports@${domain}`]);
  expect((await client.post(`/web-setup/domains/${id}/verify`)).status).toBe(200);
}

describe('The DMARC policy of a domain', () => {
  const path = () => `domains/${domainId}?step=dmarc`;

  it('waits for reports before it recommends a stricter policy', async () => {
    await publishPolicy('none');
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await open.visit(window, path(), client);
    await page.getByText('Receivers find this record at _dmarc.shop.test:').waitFor();
    await page.getByRole('listitem').filter({ hasText: 'p=none' }).getByText('applies now').waitFor();
    const next = page.getByRole('region', { name: 'Next step: p=quarantine' });
    await next.getByText('Wait for two weeks of reports').waitFor();
    await context.close();
  });

  it('names the sources to correct while the reports do not permit a stricter policy', async () => {
    await publishPolicy('quarantine');
    for (let ago = 26; ago >= 9; ago--) report(ago, 'quarantine', 10, ago < 14 ? 1 : 0);
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, path(), client);
    const next = page.getByRole('region', { name: 'Next step: p=reject' });
    await next.getByText(/^Publish this record after /).waitFor();
    await page.getByText('Reported messages with this domain in From: 185; passed DMARC: 180').waitFor();
    await page.getByRole('row', { name: /^203\.0\.113\.9 5 0%/ }).waitFor();
    await page.getByText(/^Last report of mail that failed: /).waitFor();
    await page.getByRole('link', { name: 'All reports of this domain' }).press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Reputation' }).waitFor();
    await context.close();
  });

  it('shows the record of the stricter policy when it is safe, and that the policy is complete', async () => {
    const { data } = await client.put<CreatedDomain>('/web-setup/domains', {
      domain: 'safe.test',
      useCaseId: 'tx-local',
    });
    publish(data.dnsRecords);
    for (let ago = 20; ago >= 2; ago--) report(ago, 'quarantine', 100, 0, 'safe.test');
    await publishPolicy('quarantine', data);
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, `domains/${data.domainId}?step=dmarc`, client);
    const next = page.getByRole('region', { name: 'Next step: p=reject' });
    await next.getByText('Two weeks of reports show no failures').waitFor();
    // The tags of the published record remain.
    await next.getByText('v=DMARC1; p=reject; rua=mailto:reports@safe.test,mailto:dmarc@').waitFor();
    await publishPolicy('reject', data);
    await page.getByRole('button', { name: 'Check now' }).click();
    await page.getByText('Receivers refuse mail that others send in the name of this domain').waitFor();
    expect(await next.count()).toBe(0);
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
    await open.examine(
      {
        domains: 'domains',
        'domain-new': 'domains/new',
        'domain-records': `domains/${domainId}?step=records`,
        'domain-check': `domains/${domainId}?step=check`,
        'domain-message': `domains/${domainId}?step=message`,
        'domain-dmarc': path(),
        'domain-dkim': `domains/${domainId}?step=dkim`,
        'domain-settings': `domains/${domainId}?step=settings`,
      },
      client,
    );
  });
});
