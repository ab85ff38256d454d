import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, systemClock } from '../../src/core/clock.ts';
import { createIds } from '../../src/core/ids.ts';
import { systemRandom } from '../../src/core/random.ts';
import type { ApiClient, CreatedDomain } from '../support/api-client.ts';
import { DESKTOP, startBrowser, type TestBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { answerQuestions, HOSTILE, type OpenConsole, openConsole } from './open-console.ts';

/*
 * Every page of the console that links lead to, in Chromium, over an account with markup in every text that others write:
 * callers, recipients' servers, senders of reports and of mail to postmaster@.
 */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let sink: Sink;

const QUOTED = HOSTILE.replaceAll('"', "'");
const PREVIEWS = '/console/previews/';
/** More pages than there are: the walk ends by itself. */
const MAX_PAGES = 150;

beforeAll(async () => {
  sink = await startSink({
    recipients: { 'refused@': `550 5.1.1 ${HOSTILE}`, 'later@': `451 4.3.0 ${HOSTILE}` },
  });
  daemon = await startInProcess({
    'console.listen': '127.0.0.1:0',
    'delivery.port': sink.port,
    'delivery.allowPrivateNetworks': true,
  });
  daemon.dns.set('recipient.test', 'MX', ['10 mx.recipient.test']);
  daemon.dns.set('mx.recipient.test', 'A', [sink.host]);
  client = await daemon.account(HOSTILE);
  const { data } = await client.put<CreatedDomain>('/web-setup/domains', {
    domain: 'shop.test',
    useCaseId: 'tx-local',
  });
  daemon.dns.publish(data.dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
  await daemon.publishPlatform();
  await client.post(`/web-setup/domains/${data.domainId}/verify`);
  for (const name of ['refused', 'later', 'accepted']) {
    const sent = await client.send({
      from: `"${QUOTED}" <orders@shop.test>`,
      to: `${name}@recipient.test`,
      subject: HOSTILE,
      html: `<p>Thank you</p><p>{{company_address_html}}{{unsubscribe_email_html}}</p>`,
    });
    expect(sent.status, sent.text).toBe(200);
  }
  await eventually('the first attempt of each message', async () => {
    const messages = await client.allMessages();
    return (
      messages.length === 3 && messages.every(({ status }) => status !== 'queued' && status !== 'sending')
    );
  });
  const [opened] = await client.allMessages({ status: 'delivered' });
  const { seq = 0, domain_id = null } = daemon.tables.messages.byId(opened?.messageId ?? '') ?? {};
  for (const kind of ['email_opened', 'email_clicked'] as const)
    daemon.tables.events.insert({
      event_id: createIds(systemClock, systemRandom).make('evt'),
      account_id: client.accountId,
      kind,
      at: Date.now(),
      message_seq: seq,
      domain_id,
      data: JSON.stringify({ ip: '192.0.2.1', userAgent: `${kind} ${HOSTILE}`, isBot: false }),
    });
  const body = { email: 'ada@example.net', firstName: HOSTILE, customFields: { [HOSTILE]: HOSTILE } };
  await client.post('/web-setup/contacts', {
    ...body,
    consentMethod: 'web_form',
    consentDetails: HOSTILE,
    consentUserAgent: `consent ${HOSTILE}`,
  });
  await client.post('/web-setup/contacts/subscription-groups', { name: HOSTILE, description: HOSTILE });
  await client.post('/web-setup/webhooks', {
    name: HOSTILE,
    url: 'https://hooks.example.net/',
    events: ['email_bounced'],
  });
  await client.post('/web-setup/templates', { name: HOSTILE, subject: HOSTILE, html: HOSTILE });
  await client.post('/web-setup/suppressions', { email: 'grace@example.net', reason: 'hard_bounce' });
  daemon.tables.keptMail.insert({
    box: 'postmaster',
    kind: 'unknown',
    recipient: 'postmaster@mx.example.com',
    sender: HOSTILE,
    remote_address: '192.0.2.1',
    network: '192.0.2.0/24',
    message_seq: null,
    received_at: Date.now(),
    raw: Buffer.from(
      `Subject: ${HOSTILE}\r\nFrom: "${QUOTED}" <eve@example.net>\r\nContent-Type: text/html\r\n\r\n${HOSTILE}`,
    ),
  });
  const begin = Math.floor(Date.now() / DAY) * DAY - 2 * DAY;
  daemon.tables.dmarcReports.insert(
    {
      received_at: Date.now(),
      network: '192.0.2.0/24',
      signer: QUOTED,
      domain: 'shop.test',
      policy_domain: 'shop.test',
      organization: HOSTILE,
      report_id: HOSTILE,
      begin_at: begin,
      end_at: begin + DAY,
      policy: JSON.stringify({ p: 'none' }),
      truncated: 0,
    },
    [
      {
        header_from: 'shop.test',
        disposition: 'none',
        messages: 3,
        source_ip: '192.0.2.25',
        dkim: 'pass',
        spf: 'pass',
      },
    ],
  );
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
  await sink?.close();
});

describe('The console', () => {
  it('shows text of others as text on every page, and requests nothing from elsewhere', {
    timeout: 900_000,
  }, async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, requests, consoleErrors } = window;
    // Another session of the operator, whose browser has a name with markup.
    const person = daemon.people.list().findLast(({ operator }) => operator);
    const link = await daemon.people.issueLink(person?.id ?? '', 'sign-in');
    if (!('link' in link)) throw new Error(link.message);
    await fetch(`${daemon.consoleUrl}/console/session/link`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'X-Postrider-Console': '1',
        'User-Agent': `session ${HOSTILE}`,
      },
      body: JSON.stringify({ token: link.link.token }),
    });
    const dialogs = answerQuestions(window, () => false);
    const failures: string[] = [];
    page.on('response', (response) => {
      if (response.status() >= 400) failures.push(`${response.status()} ${response.url()}`);
    });
    const waiting = [''];
    const seen = new Set(waiting);
    let shown = 0;
    /** The user agents that were not shown yet. */
    const agents = new Set(['consent', 'email_opened', 'email_clicked', 'session']);
    for (let path = waiting.shift(); path !== undefined && seen.size < MAX_PAGES; path = waiting.shift()) {
      await open.visit(window, path, client);
      await page.evaluate('for (const each of document.querySelectorAll("details")) each.open = true');
      await expect.poll(() => page.locator('.loading').count()).toBe(0);
      await previewLoaded(page);
      expect(await page.title(), path).toMatch(/ · Postrider$/);
      // The application has no such elements itself; frames with mail are documents of their own.
      expect(await page.locator('main img, main script').count(), path).toBe(0);
      if ((await page.getByText(HOSTILE).count()) > 0) shown++;
      // Fields of events are shown as JSON, in which quotation marks are escaped.
      for (const name of agents)
        if ((await page.getByText(`${name} <img src=x onerror=`).count()) > 0) agents.delete(name);
      const links: string[] = await page
        .locator('a[href^="/console/"]:not([download])')
        .evaluateAll((found) => found.map((link) => link.getAttribute('href') ?? ''));
      for (const link of links) {
        const { pathname, searchParams } = new URL(link, daemon.consoleUrl);
        for (const name of ['account', 'from', 'lastKey']) searchParams.delete(name);
        const query = searchParams.toString();
        const next = pathname.slice('/console/'.length) + (query === '' ? '' : `?${query}`);
        // The forms of single operations show no data of others.
        if (!seen.has(next) && !next.startsWith('reference/')) {
          seen.add(next);
          waiting.push(next);
        }
      }
    }
    expect(waiting).toEqual([]);
    expect([...agents]).toEqual([]);
    for (const path of [
      'messages',
      'contacts',
      'inbox',
      'reports',
      'system/accounts',
      'webhooks',
      'templates',
    ])
      expect([...seen]).toContain(path);
    // Overview, messages, contacts, groups, templates, webhooks, inbox, reports, accounts, and their details.
    expect(shown).toBeGreaterThan(15);
    expect(dialogs).toEqual([]);
    expect(failures).toEqual([]);
    // In the preview of the template, the browser refuses what the sandbox and the policy forbid.
    expect(consoleErrors.filter((line) => !line.includes(PREVIEWS))).toEqual([]);
    expect(consoleErrors, 'of the preview of the template').not.toEqual([]);
    expect(
      requests.filter((url) => !url.startsWith(daemon.consoleUrl) && !/^(?:data|about):/.test(url)),
    ).toEqual([]);
    await context.close();
  });
});

/** If the page has the frame of a preview, it is loaded after the page, and leaving the page would stop it. */
async function previewLoaded(page: Page): Promise<void> {
  if ((await page.locator(`iframe[src^="${PREVIEWS}"]`).count()) === 0) return;
  const preview = () => page.frames().find((frame) => frame.url().includes(PREVIEWS));
  await expect.poll(preview).toBeDefined();
  await preview()?.waitForLoadState();
}
