import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, MINUTE } from '../../src/core/clock.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { startGroup } from '../support/group.ts';
import { type InProcess, PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { insertDomain } from '../support/store.ts';
import {
  answerQuestions,
  findings,
  HOSTILE,
  type OpenConsole,
  openConsole,
  shownPerson,
} from './open-console.ts';

/* The pages of campaigns, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let empty: ApiClient;
let group: string;
let templateId: string;

const FOOTER = '<p>{{company_address_html}}{{unsubscribe_email_html}}</p>';
const MEMBERS = ['delivered', 'delivered+2', 'delivered+3'].map((name) => `${name}@simulator.${PLATFORM}`);

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  empty = await daemon.account('Empty');
  const [domainGroup] = daemon.tables.domainGroups.list(client.accountId);
  insertDomain(
    daemon.tables,
    {
      account_id: client.accountId,
      group_id: domainGroup?.group_id ?? '',
      domain_id: 'domain_1',
      name: 'news.test',
      use_case: 'mk',
      next_check_at: Date.now() + DAY,
    },
    Date.now(),
  );
  const started = await startGroup(
    client,
    MEMBERS.map((email) => ({ email, firstName: 'Ann', consentMethod: 'web_form' })),
  );
  group = started.subscriptionGroupId;
  const created = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
    name: 'Spring offer',
    subject: 'Spring is here, {{firstName}}',
    html: '<p>Hello {{firstName}}</p><p>{{company_address_html}}{{unsubscribe_email_html}}</p>',
  });
  templateId = created.data.template.templateId;
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

async function campaign(name: string): Promise<string> {
  const created = await client.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', { name });
  return created.data.campaign.campaignId;
}

async function prepare(id: string, from: string): Promise<void> {
  const prepared = { subscriptionGroupId: group, templateId, from };
  expect((await client.put(`/web-setup/campaigns/${id}`, { prepared })).status).toBe(200);
}

/** `name`: an id, or an address that has it. */
async function preparedOf(name: string): Promise<Record<string, unknown> | null> {
  const id = /campaign_\w+/.exec(name)?.[0];
  const { data } = await client.get<{ campaign: { prepared: Record<string, unknown> | null } }>(
    `/web-setup/campaigns/${id}`,
  );
  return data.campaign.prepared;
}

async function statusOf(id: string): Promise<string> {
  return (await client.get<{ campaign: { status: string } }>(`/web-setup/campaigns/${id}`)).data.campaign
    .status;
}

describe('Campaigns', () => {
  it('composes, checks, tests, sends, and shows the results as they arrive, by mouse', async () => {
    const window = await open.member(client, 'sender', DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'campaigns', client);
    await page.getByRole('button', { name: 'New campaign' }).click();
    expect(await findings(window)).toEqual([]);
    await page.getByLabel('Name').fill(HOSTILE);
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { level: 1, name: HOSTILE }).waitFor();
    await page.getByRole('combobox', { name: 'Group' }).selectOption(group);
    await page.getByRole('combobox', { name: 'Template' }).selectOption(templateId);
    await page.getByLabel('Sender').fill('Shop <news@news.test>');
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByLabel('As the contact (address)').fill(MEMBERS[0] ?? '');
    await page.getByRole('button', { name: 'Use', exact: true }).press('Enter');
    await page.frameLocator('iframe').getByText('Hello Ann').waitFor();
    // To the person, who is no contact.
    const self = await shownPerson(page);
    await page.getByRole('button', { name: 'Send to me' }).press('Enter');
    await page.getByText(`The test message to ${self} was accepted`).waitFor();
    const { data: sent } = await client.get<{ messages: { subject: string; campaignId?: string }[] }>(
      `/web-setup/messages?recipient=${encodeURIComponent(self)}`,
    );
    expect(sent.messages).toMatchObject([{ subject: '[Test] Spring is here, Ann' }]);
    expect(sent.messages[0]).not.toHaveProperty('campaignId');
    // In the campaign: a person who opens it sees the same.
    expect(await preparedOf(page.url())).toMatchObject({ templateId, from: 'Shop <news@news.test>' });

    await page.getByRole('button', { name: 'Send the campaign' }).press('Enter');
    await page.getByRole('dialog').getByText('to News: 3 active members?').waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('3 of 3 members are processed').waitFor();
    await page.locator('main .status', { hasText: 'sent' }).waitFor();
    await page.getByRole('row', { name: /^Queued \d/ }).waitFor();
    // Nothing is left to cancel.
    await page.getByRole('button', { name: 'Cancel the campaign' }).waitFor({ state: 'detached' });
    expect(await page.title()).toBe(`${HOSTILE} · Postrider`);
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('shows counts, shares, providers and links, whose addresses are text, and clicks in the content', async () => {
    const id = await campaign('Counted');
    const sent = await client.post(`/web-setup/campaigns/${id}/send`, {
      subject: 'Links',
      html: `<p><a href="https://example.com/a?b=1&amp;c=2">First ${HOSTILE}</a> <a href="https://example.com/d">Second</a></p>${FOOTER}`,
      subscriptionGroupId: group,
      from: 'a@news.test',
      scheduledAt: new Date(Date.now() + DAY).toISOString(),
    });
    expect(sent.status, sent.text).toBe(202);
    expect((await client.post(`/web-setup/campaigns/${id}/cancel`)).status).toBe(200);
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    // Mail to the simulator is not counted: the counts are invented.
    const { data } = await client.get<{ totals: Record<string, number> }>(
      `/web-setup/campaigns/${id}/analytics`,
    );
    const counts = {
      bounced: 0,
      complained: 0,
      unsubscribed: 0,
      uniqueClicked: 0,
      machineClicked: 0,
    };
    await page.route('**/analytics?**', (sent) =>
      sent.fulfill({
        json: {
          success: true,
          data: {
            ...data,
            totals: { ...data.totals, queued: 1000, sent: 800, delivered: 600, clicked: 28 },
            series: [{ ...data.totals, delivered: 600, timestamp: '2026-01-31T00:00:00.000Z' }],
            links: [
              { url: 'https://example.com/a?b=1&c=2', clicks: 21 },
              { url: `https://example.com/${HOSTILE}`, clicks: 7 },
            ],
            providers: [
              { ...counts, provider: HOSTILE, delivered: 200, uniqueOpened: 50, machineOpened: 20 },
            ],
          },
        },
      }),
    );
    await open.visit(window, '', client);
    await page.keyboard.press('Control+K');
    await page.getByRole('combobox', { name: 'Address, id, domain' }).fill(id);
    await page.keyboard.press('Enter');
    await page.getByRole('row', { name: 'Delivered 600 75%' }).waitFor();
    await page.getByRole('row', { name: `https://example.com/${HOSTILE} 7 25%` }).waitFor();
    const provider = page.getByRole('row').filter({ hasText: HOSTILE }).filter({ hasText: '200' });
    expect(await provider.textContent()).toContain('5025%');
    expect(await provider.textContent()).toContain('2010%');
    await page.getByText('Click map', { exact: true }).press('Enter');
    const mail = page.frameLocator('iframe[title="Click map"]');
    await mail.getByText('21 (75%)').waitFor();
    await mail.getByText('0 (0%)').waitFor();
    expect(await mail.locator('a[href]').count()).toBe(0);
    expect(await findings(window)).toEqual([]);
    await page.getByRole('link', { name: 'By hour' }).press('Enter');
    await expect.poll(() => page.url()).toContain('interval=hour');
    expect(await page.title()).toBe('Counted · Postrider');
    await context.close();
  });

  it('schedules, pauses, resumes and cancels by keyboard, on a phone', async () => {
    const id = await campaign('Summer');
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await prepare(id, 'news@news.test');
    await open.visit(window, `campaigns/${id}`, client);
    const start = Math.ceil((Date.now() + DAY) / MINUTE) * MINUTE;
    await page.getByLabel('Start').fill(localTime(start));
    await page.getByRole('button', { name: 'Check' }).press('Enter');
    // In UTC: the person who sends it may be in another time zone.
    await expect
      .poll(async () => (await preparedOf(id))?.['scheduledAt'])
      .toBe(new Date(start).toISOString());
    expect(await page.getByLabel('Start').inputValue()).toBe(localTime(start));
    await page.getByRole('button', { name: 'Schedule the campaign' }).press('Enter');
    await page.keyboard.press('Enter');
    await page.locator('main .status', { hasText: 'scheduled' }).waitFor();
    expect(await statusOf(id)).toBe('scheduled');
    await page.getByRole('button', { name: 'Pause' }).press('Enter');
    await page.locator('main .status', { hasText: 'paused' }).waitFor();
    await page.getByRole('button', { name: 'Resume' }).press('Enter');
    await page.locator('main .status', { hasText: 'scheduled' }).waitFor();
    await page.getByRole('button', { name: 'Cancel the campaign' }).press('Enter');
    await page.keyboard.press('Enter');
    await page.locator('main .status', { hasText: 'canceled' }).waitFor();
    expect(await statusOf(id)).toBe('cancelled');
    await context.close();
  });

  it('shows what the server refuses, and lets an author prepare only', async () => {
    const id = await campaign('Refused');
    const path = `campaigns/${id}`;
    await prepare(id, 'news@other.test');
    const window = await open.operator(DESKTOP);
    await open.visit(window, path, client);
    await window.page.getByRole('button', { name: 'Send the campaign' }).press('Enter');
    await window.page.keyboard.press('Enter');
    await window.page.locator('.outcome.bad', { hasText: 'other.test' }).waitFor();
    expect(await statusOf(id)).toBe('draft');
    await window.context.close();
    const author = await open.member(client, 'author', DESKTOP);
    await open.visit(author, path, client);
    await author.page.getByText('Your role does not permit sending.').waitFor();
    expect(await author.page.getByRole('button', { name: /Send/ }).count()).toBe(0);
    await author.context.close();
  });

  it('asks before fields that were not checked are discarded, and does not send while they differ', async () => {
    const id = await campaign('Unchecked');
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await prepare(id, 'news@news.test');
    await open.visit(window, `campaigns/${id}`, client);
    const send = page.getByRole('button', { name: 'Send the campaign' });
    await send.waitFor();
    await page.getByLabel('Subject').fill('Another subject');
    await page.getByText('Some fields were changed: check them before you send.').waitFor();
    expect(await send.count()).toBe(0);
    const asked = answerQuestions(window, () => false);
    const groups = page.getByRole('link', { name: 'Groups', exact: true });
    await groups.click();
    await expect.poll(() => asked).toEqual(['Leave without checking the changes to the campaign?']);
    expect(page.url()).toContain(`campaigns/${id}`);
    await page.getByRole('button', { name: 'Check' }).click();
    await send.waitFor();
    expect(await preparedOf(id)).toMatchObject({ subject: 'Another subject' });
    await groups.click();
    await page.getByRole('heading', { level: 1, name: 'Groups' }).waitFor();
    expect(asked).toHaveLength(1);
    await context.close();
  });

  it('shows a sender what an author prepared, with a template that a search found', async () => {
    const id = await campaign('Prepared by another');
    for (let number = 0; number < 55; number++)
      await client.post('/web-setup/templates', {
        name: `Filler ${number}`,
        subject: 'Filler',
        html: FOOTER,
      });
    const author = await open.member(client, 'author', DESKTOP);
    await open.visit(author, `campaigns/${id}`, client);
    const templates = author.page.getByRole('combobox', { name: 'Template' });
    expect(await templates.locator('option', { hasText: 'Spring offer' }).count()).toBe(0);
    await author.page.getByLabel('Search templates by name').fill('spring');
    await templates.selectOption({ label: 'Spring offer' });
    await author.page.getByLabel('Sender').fill('news@news.test');
    await author.page.getByLabel('Subject').fill('Prepared by another');
    await author.page.getByRole('button', { name: 'Check' }).click();
    const stored = author.page.getByText('Stored with the campaign', { exact: true });
    await stored.waitFor();
    await author.page.getByRole('heading', { name: 'Check' }).waitFor();
    await author.page.locator('.preview').waitFor();
    expect(await stored.isVisible()).toBe(true);
    await author.context.close();
    const sender = await open.member(client, 'sender', DESKTOP);
    await open.visit(sender, `campaigns/${id}`, client);
    await sender.page.getByRole('button', { name: 'Send the campaign' }).waitFor();
    const subject = sender.page.getByLabel('Subject');
    await expect.poll(() => subject.inputValue()).toBe('Prepared by another');
    const chosen = sender.page.getByRole('combobox', { name: 'Template' });
    await expect.poll(() => chosen.inputValue()).toBe(templateId);
    await sender.context.close();
  });

  it('asks for another group when the prepared one was deleted', async () => {
    const id = await campaign('Without its group');
    await prepare(id, 'news@news.test');
    const created = await client.post<{ group: { subscriptionGroupId: string } }>(
      '/web-setup/contacts/subscription-groups',
      { name: 'Deleted' },
    );
    const { subscriptionGroupId } = created.data.group;
    const prepared = { ...(await preparedOf(id)), subscriptionGroupId };
    await client.put(`/web-setup/campaigns/${id}`, { prepared });
    await client.call('DELETE', `/web-setup/contacts/subscription-groups/${subscriptionGroupId}`);
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, `campaigns/${id}`, client);
    const groups = page.getByRole('combobox', { name: 'Group' });
    expect(await groups.inputValue()).toBe('');
    await groups.locator('option', { hasText: 'Deleted: choose another' }).waitFor({ state: 'attached' });
    // The browser requires a choice.
    await page.getByRole('button', { name: 'Check' }).click();
    expect(await preparedOf(id)).toMatchObject({ subscriptionGroupId });
    await groups.selectOption({ index: 1 });
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByRole('button', { name: 'Send the campaign' }).waitFor();
    expect(await groups.locator('option', { hasText: 'Deleted: choose another' }).count()).toBe(0);
    await context.close();
  });

  it('keeps the selected template while others are searched', async () => {
    const id = await campaign('Selected');
    for (let number = 0; number < 51; number++)
      await client.post('/web-setup/templates', { name: `More ${number}`, subject: 'More', html: FOOTER });
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, `campaigns/${id}`, client);
    const templates = page.getByRole('combobox', { name: 'Template' });
    const selected = await templates.inputValue();
    await page.getByLabel('Search templates by name').fill('spring');
    await templates.locator('option', { hasText: 'Spring offer' }).waitFor({ state: 'attached' });
    await templates.locator('option', { hasText: /^More 1$/ }).waitFor({ state: 'detached' });
    expect(await templates.inputValue()).toBe(selected);
    await context.close();
  });

  it('deletes a draft with fields that were not checked, and a campaign that was sent, after a confirmation', async () => {
    const id = await campaign('Unwanted');
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    const asked = answerQuestions(window, () => false);
    await open.visit(window, `campaigns/${id}`, client);
    await page.getByLabel('Subject').fill('Not checked');
    const remove = page.getByRole('button', { name: 'Delete the campaign' });
    await remove.click();
    await page.keyboard.press('Escape');
    expect(await statusOf(id)).toBe('draft');
    await remove.click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete the campaign' }).click();
    await page.getByRole('heading', { level: 1, name: 'Campaigns' }).waitFor();
    await page.getByRole('link', { name: 'Unwanted' }).waitFor({ state: 'detached' });
    expect((await client.get(`/web-setup/campaigns/${id}`)).status).toBe(404);
    expect(asked).toEqual([]);

    const sent = await campaign('Sent and deleted');
    const body = { subject: 'Hello', html: FOOTER, subscriptionGroupId: group, from: 'a@news.test' };
    expect((await client.post(`/web-setup/campaigns/${sent}/send`, body)).status).toBe(202);
    await eventually('the end of the campaign', async () => (await statusOf(sent)) === 'sent');
    await open.visit(window, `campaigns/${sent}`, client);
    await remove.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Campaigns' }).waitFor();
    expect((await client.get(`/web-setup/campaigns/${sent}`)).status).toBe(404);
    await context.close();
  });

  it('leads from an empty account to the first template', async () => {
    await empty.post('/web-setup/contacts/subscription-groups', { name: 'News' });
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'campaigns', empty);
    await page.getByText('No campaigns yet').waitFor();
    await page.getByRole('button', { name: 'New campaign' }).press('Enter');
    await page.getByLabel('Name').fill('First');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'New template' }).click();
    await page.getByRole('heading', { level: 1, name: 'New template' }).waitFor();
    await context.close();
  });
});

it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
  const draft = await campaign('Draft');
  await prepare(draft, 'news@news.test');
  const sent = (
    await client.get<{ campaigns: { campaignId: string; status: string }[] }>('/web-setup/campaigns')
  ).data.campaigns.find(({ status }) => status === 'sent');
  await open.examine(
    {
      campaigns: 'campaigns',
      'campaign-draft': `campaigns/${draft}`,
      'campaign-sent': `campaigns/${sent?.campaignId}`,
    },
    client,
  );
});

/** The value of a field for a time in the time zone of this process, which is that of the browser. */
function localTime(time: number): string {
  return new Date(time - new Date(time).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
