// Long: opens public pages and a page of the console on a phone and a desktop, light and dark.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type InProcess, PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { insertDomain } from '../support/store.ts';
import { answerQuestions, findings, HOSTILE, type OpenConsole, openConsole } from './open-console.ts';

/* The archive of a group and the web view with hostile mail, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;

const GROUPS = '/web-setup/contacts/subscription-groups';
const FOOTER = '<p>{{company_address_html}} {{unsubscribe_email_html}}</p>';
const READER = `delivered@simulator.${PLATFORM}`;

/** What runs code, sends data or leaves the page if the page lets it. */
const HOSTILE_MAIL = `<html><head><title>Mail</title><base href="https://elsewhere.test/">
<meta http-equiv="refresh" content="0;url=https://elsewhere.test/refresh">
<meta http-equiv="Content-Security-Policy" content="script-src 'unsafe-inline'">
<link rel="stylesheet" href="data:text/css,body{}"><script src="data:text/javascript,document.title=1"></script></head>
<body onload="document.title='load'">${HOSTILE}
<svg onload="document.title='svg'"><script>document.title='svg script'</script><a xlink:href="javascript:document.title='x'"><text y="9">svg link</text></a></svg>
<math><mtext><style><img src=x onerror="document.title='mathml'"></style></mtext></math>
<iframe srcdoc="<script>parent.document.title='frame'</script>"></iframe><object data="data:text/html,<script>1</script>"></object>
<form action="https://elsewhere.test/form"><button id="send">Send</button></form>
<a id="plain" href="javascript:document.title='plain'">plain</a>
<a id="tab" href="jav&#x09;ascript:document.title='tab'">tab</a>
<a id="entity" href="&#106;avascript&colon;document.title='entity'">entity</a>
<a id="space" href=" \u0001javascript:document.title='space'">space</a>
<a id="data" href="data:text/html,<script>document.title='data'</script>">data</a>
<a id="vb" href="vbscript:x">vb</a><details ontoggle="document.title='toggle'" open>d</details>
<input autofocus onfocus="document.title='focus'"><video><source onerror="document.title='video'"></video>
<template><script>document.title='template'</script></template><noscript><p title="</noscript><img src=x onerror=document.title=4>"></noscript>
<a href="{{view_url}}">View</a>${FOOTER}</body></html>`;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0', 'public.url': 'http://127.0.0.1:0' });
  client = await daemon.account('Shop');
  const [group] = daemon.tables.domainGroups.list(client.accountId);
  for (const use_case of ['tx', 'mk'] as const)
    insertDomain(
      daemon.tables,
      {
        account_id: client.accountId,
        group_id: group?.group_id ?? '',
        domain_id: `domain_${use_case}`,
        name: `${use_case}.test`,
        use_case,
        next_check_at: Date.now() + DAY,
      },
      Date.now(),
    );
  await client.post('/web-setup/contacts', { email: READER });
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

async function groupWith(fields: object): Promise<{ subscriptionGroupId: string; archiveUrl: string }> {
  const { data } = await client.post<{ group: { subscriptionGroupId: string; archiveUrl?: string } }>(
    GROUPS,
    {
      isPublic: true,
      ...fields,
    },
  );
  const { subscriptionGroupId, archiveUrl = '' } = data.group;
  await client.post(`${GROUPS}/${subscriptionGroupId}/subscriptions`, { email: READER, isActive: true });
  return { subscriptionGroupId, archiveUrl };
}

async function sendCampaign(subscriptionGroupId: string, subject: string, html: string): Promise<string> {
  const { data } = await client.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
    name: 'News',
  });
  const path = `/web-setup/campaigns/${data.campaign.campaignId}`;
  const sent = await client.call('POST', `${path}/send`, {
    body: { from: 'news@mk.test', subject, html, subscriptionGroupId },
  });
  expect(sent.status, sent.text).toBe(202);
  await eventually(
    'the campaign is sent',
    async () => (await client.get<{ campaign: { status: string } }>(path)).data.campaign.status === 'sent',
  );
  return data.campaign.campaignId;
}

/** The address of a message's web view. */
async function viewOf(html: string): Promise<string> {
  const sent = await client.send({ from: 'shop@tx.test', to: READER, subject: HOSTILE, html });
  const content = await client.get<{ html: string }>(`/web-setup/messages/${sent.data.messageId}/content`);
  return /href="([^"]*\/v\/[^"]*)"/.exec(content.data.html)?.[1] ?? '';
}

describe('mail of an account on the link host', () => {
  it('runs no code, sends nothing and leaves nowhere, in the web view and in the archive', async () => {
    const group = await groupWith({ name: HOSTILE, description: HOSTILE, archive: true });
    const campaignId = await sendCampaign(group.subscriptionGroupId, HOSTILE, HOSTILE_MAIL);
    const host = new URL(group.archiveUrl).origin;
    for (const url of [await viewOf(HOSTILE_MAIL), `${group.archiveUrl}.${campaignId}`]) {
      const window = await browser.open(DESKTOP);
      const { page, context, requests } = window;
      const dialogs = answerQuestions(window, () => true);
      await page.goto(url);
      await page.locator('#plain').waitFor();
      for (const id of ['plain', 'tab', 'entity', 'space', 'data', 'vb', 'send'])
        await page.locator(`#${id}`).dispatchEvent('click');
      await page.getByText('svg link').dispatchEvent('click');
      expect(await page.title(), url).toBe('Mail');
      expect(page.url()).toBe(url);
      // The origin of the page is none, so that it has no storage of the host.
      expect(await page.evaluate('window.origin')).toBe('null');
      expect(dialogs).toEqual([]);
      expect(
        requests.filter((each) => !each.startsWith(`${host}/`) && !/^(?:data|vbscript):/.test(each)),
      ).toEqual([]);
      await context.close();
    }
  });

  it('is listed as text, in the page and in the feed', async () => {
    const group = await groupWith({ name: HOSTILE, description: HOSTILE, archive: true });
    await sendCampaign(group.subscriptionGroupId, `${HOSTILE} ]]></title>`, `<p>x</p>${FOOTER}`);
    const window = await browser.open(DESKTOP);
    const { page, context, requests, consoleErrors } = window;
    await page.goto(group.archiveUrl);
    expect(await page.locator('main img, main script, [onerror]').count()).toBe(0);
    expect(await page.locator('h1').textContent()).toContain(HOSTILE);
    expect(await page.locator('.archive a').textContent()).toBe(`${HOSTILE} ]]></title>`);
    const feed = await (await fetch(`${group.archiveUrl}.rss`)).text();
    const read = await browser.open(DESKTOP);
    const item = await read.page.evaluate(
      `(() => { const feed = new DOMParser().parseFromString(${JSON.stringify(feed)}, 'application/xml');
        return [feed.querySelectorAll('parsererror, img, script').length, feed.querySelector('channel > title').textContent,
          feed.querySelector('item > title').textContent, feed.querySelector('item > link').textContent]; })()`,
    );
    expect(item).toEqual([
      0,
      `${HOSTILE} – Shop Ltd`,
      `${HOSTILE} ]]></title>`,
      expect.stringContaining(`${group.archiveUrl}.campaign_`),
    ]);
    expect(requests.every((url) => url.startsWith(new URL(group.archiveUrl).origin))).toBe(true);
    expect(consoleErrors).toEqual([]);
    await Promise.all([context.close(), read.context.close()]);
  });
});

describe('the archive of a group', () => {
  it('is switched on in the console, and its pages fit phones and desktops, light and dark', async () => {
    const group = await groupWith({ name: 'Monthly news', description: 'What is new, once a month.' });
    for (const subject of [
      'Spring in the workshop',
      'A new oven, and what we learned with it',
      'Summer opening hours',
    ])
      await sendCampaign(
        group.subscriptionGroupId,
        subject,
        `<h1>News</h1><p>Hello {{firstName|reader}}</p>${FOOTER}`,
      );
    const window = await open.operator(DESKTOP);
    const path = `groups/${group.subscriptionGroupId}?tab=settings`;
    await open.visit(window, path, client);
    await window.page.getByLabel('Publish the campaigns').check({ timeout: 20_000 });
    await window.page.getByRole('button', { name: 'Save' }).click();
    const link = window.page.locator('a[href*="/a/"]');
    await link.waitFor({ timeout: 20_000 });
    const url = (await link.getAttribute('href')) ?? '';
    expect(window.consoleErrors).toEqual([]);
    await window.context.close();
    await open.examine({ 'group-archive': path }, client);
    for (const [sizeName, size] of [
      ['phone', PHONE],
      ['desktop', DESKTOP],
    ] as const)
      for (const dark of [false, true]) {
        const reader = await browser.open(size, { dark });
        await reader.page.goto(url);
        expect(await findings(reader)).toEqual([]);
        expect(await reader.page.locator('.archive a').allTextContents()).toEqual([
          'Summer opening hours',
          'A new oven, and what we learned with it',
          'Spring in the workshop',
        ]);
        expect(await reader.page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
          size.width,
        );
        await reader.screenshot(`public-archive-${sizeName}-${dark ? 'dark' : 'light'}`);
        await reader.context.close();
      }
  });
});
