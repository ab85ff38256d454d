// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { HOSTILE, insertShopDomain, type OpenConsole, openConsole } from './open-console.ts';
import { createRoute, insertMail } from './received-mail.ts';

/* Mail that an account received, and its routes, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let sent: string;
let tracker: Awaited<ReturnType<typeof startTracker>>;

const SUPPORT = 'support@in.shop.test';
const ANSWER = [
  'Subject: Re: Your order',
  'From: Grace <grace@example.net>',
  `To: ${SUPPORT}`,
  '',
  'Thank you, it arrived.',
  '',
  'On Friday, Shop wrote:',
  '> Your order is on its way.',
].join('\r\n');
/** In quotation marks; a name without a slash. */
const QUOTED = HOSTILE.replaceAll('"', "'");
const FILE = '<img src=x onerror=document.title=4>.html';
/** `tracker`: the address of a server that the mail tries to reach. */
const forged = (tracker: string) =>
  [
    `Subject: ${HOSTILE}`,
    `From: "${QUOTED}" <eve@example.org>`,
    `X-Note: ${HOSTILE}`,
    'Auto-Submitted: auto-replied',
    'Content-Type: multipart/mixed; boundary=x',
    '',
    '--x',
    'Content-Type: multipart/alternative; boundary=y',
    '',
    '--y',
    'Content-Type: text/plain',
    '',
    HOSTILE,
    '--y',
    'Content-Type: text/html',
    '',
    `<p id="shown">Win a prize</p>${HOSTILE}<script>top.document.title=3</script>` +
      `<img src="${tracker}/pixel"><link rel="stylesheet" href="${tracker}/sheet"><p style="background:url(${tracker}/back)">Hi</p>` +
      `<iframe src="${tracker}/frame"></iframe><meta http-equiv="refresh" content="0;url=${tracker}/refresh">` +
      `<p><a target="_top" href="${tracker}/top">Leave</a> <a target="_blank" href="${tracker}/blank">Open</a>` +
      `<a target="_top" href="javascript:document.title=6">Run</a></p>` +
      `<form target="_top" action="${tracker}/form"><button>Send</button></form>`,
    '--y--',
    '--x',
    `Content-Type: text/html; name="../../${FILE}"`,
    `Content-Disposition: attachment; filename="../../${FILE}"`,
    '',
    '<script>document.title=5</script>',
    '--x',
    'Content-Type: image/svg+xml; name="a.svg"',
    'Content-Disposition: inline; filename="a.svg"',
    '',
    '<svg xmlns="http://www.w3.org/2000/svg" onload="document.title=6"><script>document.title=7</script></svg>',
    '--x--',
    '',
  ].join('\r\n');

beforeAll(async () => {
  tracker = await startTracker();
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0', 'public.url': 'http://127.0.0.1:0' });
  client = await daemon.account('Shop');
  insertShopDomain(daemon, client);
  const message = await client.send({
    from: 'orders@shop.test',
    to: `delivered@simulator.${PLATFORM}`,
    subject: 'Your order',
    html: '<p>{{company_address_html}}{{unsubscribe_email_html}}</p>',
  });
  expect(message.status, message.text).toBe(200);
  sent = message.data.messageId;
  const support = await createRoute(client, 'Support', SUPPORT);
  const others = await createRoute(client, HOSTILE, '*@all.shop.test');
  await insertMail(daemon, client, {
    inboundId: 'inb_hostile',
    routeId: others,
    recipient: 'info@all.shop.test',
    sender: 'eve@example.org',
    raw: forged(tracker.url),
    results: { spf: 'softfail', dkim: 'none', dmarc: 'fail', dkimDomains: [] },
  });
  await insertMail(daemon, client, {
    inboundId: 'inb_answer',
    routeId: support,
    recipient: SUPPORT,
    sender: 'grace@example.net',
    raw: ANSWER,
    results: {},
    answers: sent,
  });
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
  await tracker?.close();
});

/** A server that the browser reaches; `reached` has the paths that were requested. */
async function startTracker() {
  const reached: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    reached.push(url);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // Sound: the server listens on a port.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    reached,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

describe('Inbound mail', () => {
  it('lists mail with the results of its authentication, and filters it by sender and route', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'inbound', client);
    await page.getByRole('row', { name: /Re: Your order.*grace@example\.net.*DMARC: pass/ }).waitFor();
    const forged = page.getByRole('row', { name: /eve@example\.org/ });
    await forged.getByText('DMARC: fail').waitFor();
    await forged.getByText('automatic reply').waitFor();

    await page.getByLabel('Address of the sender').fill('Grace@example.net');
    await page.getByLabel('Address of the sender').press('Enter');
    await forged.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Re: Your order' }).waitFor();
    await page.getByRole('button', { name: 'Reset' }).click();
    await forged.waitFor();
    await page.getByRole('button', { name: 'Route', exact: true }).click();
    await page.getByRole('button', { name: 'Support', exact: true }).click();
    await forged.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Remove the filter Route: Support' }).waitFor();
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('shows an answer with and without what it quotes, leads to its message, and saves its source', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'inbound', client);
    await page.getByRole('link', { name: 'Re: Your order' }).click();
    const text = page.getByRole('tabpanel');
    await text.getByText('Your order is on its way').waitFor();
    await page.getByRole('tab', { name: 'Without quotations' }).click();
    await text.getByText('Your order is on its way').waitFor({ state: 'detached' });
    await text.getByText('Thank you, it arrived.').waitFor();
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download the source' }).click();
    expect(await readFile(await (await download).path(), 'utf8')).toBe(ANSWER);
    await page.getByRole('link', { name: sent }).click();
    await page.getByRole('heading', { name: 'Your order', exact: true }).waitFor();
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('shows hostile mail as text, its HTML in a frame that loads and runs nothing, and saves its files', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context, requests, consoleErrors } = window;
    await open.visit(window, 'inbound/inb_hostile', client);
    await page.getByRole('heading', { level: 1, name: HOSTILE }).waitFor();
    await page.getByText('The sender may be forged').waitFor();
    expect(await page.getByRole('tabpanel').textContent()).toContain(HOSTILE);
    await page.getByRole('tab', { name: 'Header fields' }).click();
    await page.getByRole('definition').filter({ hasText: HOSTILE }).last().waitFor();
    await page.getByRole('tab', { name: 'HTML' }).click();
    await page.getByRole('tabpanel').getByText('top.document.title=3').waitFor();
    // Until here nothing was refused: nothing of it was parsed as HTML.
    expect(consoleErrors).toEqual([]);

    await page.getByRole('tab', { name: 'Preview' }).click();
    const frame = page.frameLocator('iframe');
    await frame.getByText('Win a prize').waitFor();
    expect(await page.locator('iframe').getAttribute('sandbox')).toBe('');
    expect(await page.title()).toBe(`${HOSTILE} · Postrider`);
    const address = page.url();
    for (const name of ['Leave', 'Open', 'Run']) await frame.getByRole('link', { name }).click();
    await frame.getByRole('button', { name: 'Send' }).click();
    expect(await page.title()).toBe(`${HOSTILE} · Postrider`);
    expect([page.url(), context.pages().length]).toEqual([address, 1]);

    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: `Download ${FILE}` }).click();
    const file = await download;
    expect(file.suggestedFilename()).not.toMatch(/[/\\<>]/);
    expect(await readFile(await file.path(), 'utf8')).toBe('<script>document.title=5</script>');
    await page.getByText(`Saved as ${FILE}`).waitFor();
    expect(await page.title()).toBe(`${HOSTILE} · Postrider`);
    // The browser records what it wanted to load; the policy of the frame stopped that before it was sent.
    expect(requests).toContain(`${tracker.url}/pixel`);
    expect(tracker.reached).toEqual([]);
    expect(consoleErrors.filter((line) => !/\/console\/previews\/|^Framing .* violates /.test(line))).toEqual(
      [],
    );
    await context.close();
  });

  it('serves files of a stranger as downloads that no browser shows, by links and to the console', async () => {
    const { data } = await client.get<{ attachments: { url: string }[]; rawUrl: string }>(
      '/web-setup/inbound/inb_hostile',
    );
    const { page, context } = await open.operator(DESKTOP);
    const title = await page.title();
    const links = [...data.attachments.map(({ url }) => url), data.rawUrl];
    expect(links).toHaveLength(3);
    const served = [];
    for (const link of links) {
      served.push(await fetch(link));
      const download = page.waitForEvent('download');
      // Chromium ends the navigation: there is no page.
      await expect(page.goto(link)).rejects.toThrow(/Download is starting|ERR_ABORTED/);
      expect((await download).suggestedFilename()).not.toMatch(/[/\\<>]/);
    }
    const path = '/web-setup/inbound/inb_hostile';
    for (const part of ['attachments/0', 'attachments/1', 'raw'])
      served.push(
        await fetch(`${daemon.url}${path}/${part}`, {
          headers: { 'X-Api-Key': client.keys.setup, 'X-Id': client.accountId },
        }),
      );
    for (const { status, url, headers } of served) {
      expect(status, url).toBe(200);
      expect(headers.get('content-type'), url).toMatch(/^(?:application\/octet-stream|message\/rfc822)$/);
      expect(headers.get('content-disposition'), url).toMatch(/^attachment; filename="[\w.,()+ -]+"; /);
      expect(headers.get('x-content-type-options'), url).toBe('nosniff');
      expect(headers.get('content-security-policy'), url).toBe("default-src 'none'; sandbox");
    }
    expect(await page.title()).toBe(title);
    expect(tracker.reached).toEqual([]);
    await context.close();
  });

  it('creates a route, changes it and deletes it after a question', async () => {
    const window = await open.member(client, 'developer', DESKTOP);
    const { page, context, consoleErrors } = window;
    const webhook = await client.post('/web-setup/webhooks', {
      name: 'Help desk',
      url: 'https://desk.example.net/in',
      events: ['email_bounced'],
    });
    expect(webhook.status, webhook.text).toBe(201);
    const routes = async () =>
      (await client.get<{ routes: object[] }>('/web-setup/inbound-routes?search=orders')).data.routes;
    await open.visit(window, 'inbound', client);
    await page.getByRole('link', { name: 'Routes', exact: true }).click();
    await page.getByRole('button', { name: 'New route' }).click();
    const form = page.getByRole('form', { name: 'New route' });
    await form.getByLabel('Name').fill('Orders');
    await form.getByRole('textbox', { name: 'Address' }).fill('orders@elsewhere.test');
    await form.getByRole('button', { name: 'Create' }).click();
    await page.locator('.outcome.bad').waitFor();
    expect(await routes()).toEqual([]);
    await form.getByRole('textbox', { name: 'Address' }).fill('Orders@in.shop.test');
    await form.getByRole('radio', { name: 'Also a certain webhook' }).check();
    await form.getByLabel('Webhook', { exact: true }).selectOption('Help desk');
    await form.getByRole('button', { name: 'Create' }).click();
    await page.getByText('Next: publish the MX record of in.shop.test').waitFor();
    expect(await routes()).toMatchObject([
      { match: 'orders@in.shop.test', action: 'webhook', spamPolicy: 'mark', isActive: true },
    ]);

    await page.getByRole('link', { name: 'Orders', exact: true }).click();
    const drawer = page.getByRole('dialog', { name: 'Orders' });
    await expect
      .poll(() => drawer.getByLabel('Webhook', { exact: true }).locator('option:checked').textContent())
      .toBe('Help desk');
    await drawer.getByRole('radio', { name: /^Refuse/ }).check();
    await drawer.getByRole('checkbox', { name: 'Receive mail at this address' }).uncheck();
    await drawer.getByRole('button', { name: 'Save' }).click();
    const row = page.getByRole('row', { name: /^Orders/ });
    await row.getByText('refuses mail').waitFor();
    expect(await routes()).toMatchObject([{ action: 'webhook', spamPolicy: 'reject', isActive: false }]);

    await row.getByRole('button', { name: 'Actions for Orders' }).click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('Mail to orders@in.shop.test is refused from then on').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await row.waitFor({ state: 'detached' });
    expect(await routes()).toEqual([]);
    expect(consoleErrors.filter((line) => !line.includes('400'))).toEqual([]);
    await context.close();
  });

  it('deletes a mail after a question, on a phone', async () => {
    const support = await createRoute(client, 'Spam', 'spam@in.shop.test');
    await insertMail(daemon, client, {
      inboundId: 'inb_spam',
      routeId: support,
      recipient: 'spam@in.shop.test',
      sender: 'spam@example.net',
      raw: 'Subject: Cheap watches\r\nFrom: spam@example.net\r\n\r\nBuy',
      results: {},
    });
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await open.visit(window, 'inbound', client);
    await page.getByRole('link', { name: 'Cheap watches' }).click();
    await page.getByRole('heading', { level: 1, name: 'Cheap watches' }).waitFor();
    await page.getByRole('button', { name: 'Actions for Cheap watches' }).click();
    await page.getByRole('button', { name: 'Delete the mail' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete the mail' }).click();
    await page.getByRole('link', { name: 'Re: Your order' }).waitFor();
    expect(await page.getByRole('link', { name: 'Cheap watches' }).count()).toBe(0);
    expect((await client.get('/web-setup/inbound/inb_spam')).status).toBe(404);
    await context.close();
  });

  it('is not in the navigation of a viewer, who can read a route but not change it', async () => {
    const window = await open.member(client, 'viewer', DESKTOP);
    const { page, context } = window;
    expect(await page.getByRole('link', { name: 'Inbound mail' }).count()).toBe(0);
    await open.visit(window, 'inbound', client);
    await page.getByText('Your role does not permit this').waitFor();
    await open.visit(window, 'inbound/routes', client);
    await page.getByRole('link', { name: 'Support' }).click();
    const drawer = page.getByRole('dialog', { name: 'Support' });
    expect(await drawer.getByRole('textbox', { name: 'Address' }).isDisabled()).toBe(true);
    expect(await page.getByRole('button', { name: 'Save' }).count()).toBe(0);
    expect(await page.getByRole('button', { name: 'New route' }).count()).toBe(0);
    await context.close();
  });

  it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
    const { data } = await client.get<{ routes: { routeId: string }[] }>('/web-setup/inbound-routes');
    await open.examine(
      {
        inbound: 'inbound',
        'inbound-mail': 'inbound/inb_answer',
        'inbound-hostile': 'inbound/inb_hostile',
        'inbound-routes': 'inbound/routes',
        'inbound-route': `inbound/routes?route=${data.routes[0]?.routeId}`,
      },
      client,
    );
  });
});
