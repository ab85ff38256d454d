// Long: opens its pages of the console on a phone and a desktop, light and dark.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pauseSend } from '../../src/campaigns/run.ts';
import { DAY, HOUR, MINUTE } from '../../src/core/clock.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { startGroup } from '../support/group.ts';
import { type InProcess, PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { insertDomainOf } from '../support/store.ts';
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
  insertDomainOf(daemon, client, { domain_id: 'domain_1', name: 'news.test', use_case: 'mk' });
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

/** The step of a draft with this name in the address. */
function step(id: string, name: 'audience' | 'content' | 'review'): string {
  return `campaigns/${id}?step=${name}`;
}

/** Waits until the draft is saved. */
async function saved(page: Page): Promise<void> {
  await page.getByRole('status').getByText('Saved', { exact: true }).waitFor();
}

describe('Campaigns', () => {
  it('composes in three steps, checks, tests, sends, and shows the results, by mouse', async () => {
    const window = await open.member(client, 'sender', DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'campaigns', client);
    await page.getByRole('link', { name: 'New campaign' }).click();
    await page.getByLabel('Name').fill(HOSTILE);
    await page.getByRole('combobox', { name: 'Group' }).selectOption(group);
    await page.getByText('of 3 members can receive it').waitFor();
    expect(await findings(window)).toEqual([]);
    await page.getByRole('button', { name: 'Next: Content' }).click();
    await page.getByRole('heading', { level: 1, name: HOSTILE }).waitFor();
    await page.getByRole('combobox', { name: 'Template' }).selectOption(templateId);
    await page.getByLabel('Name of the sender').fill('Shop, Ltd');
    expect(await page.getByLabel('Address before the @').inputValue()).toBe('news');
    await page.getByLabel('As the contact (address)').fill(MEMBERS[0] ?? '');
    await page.getByRole('button', { name: 'Use', exact: true }).press('Enter');
    await page.frameLocator('iframe').getByText('Hello Ann').waitFor();
    await saved(page);
    const from = '"Shop, Ltd" <news@news.test>';
    // In the campaign: a person who opens it sees the same.
    expect(await preparedOf(page.url())).toEqual({ subscriptionGroupId: group, templateId, from });
    await page.getByRole('link', { name: 'Next: Review' }).click();
    const line = page.getByRole('region', { name: 'In the inbox' });
    await line.getByText('Spring is here, Ann').waitFor();
    expect(await line.textContent()).toContain('Hello Ann');
    await page.getByText('Everything is in order.').waitFor();
    await page.getByText('3 people can receive it.').waitFor();
    // To the person, who is no contact.
    const self = await shownPerson(page);
    await page.getByRole('button', { name: 'Send test' }).press('Enter');
    await page.getByText(`The test message to ${self} was accepted`).waitFor();
    const { data: sent } = await client.get<{ messages: { subject: string; campaignId?: string }[] }>(
      `/web-setup/messages?recipient=${encodeURIComponent(self)}`,
    );
    expect(sent.messages).toMatchObject([{ subject: '[Test] Spring is here, Ann' }]);
    expect(sent.messages[0]).not.toHaveProperty('campaignId');

    await page.getByRole('button', { name: 'Send the campaign' }).press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Send the campaign' });
    for (const text of ['News: 3 of 3 active members', 'Spring is here, Ann', from, 'Immediately'])
      await dialog.getByText(text, { exact: true }).waitFor();
    // The policy of previews forbids scripts, also those of the browser's driver and of axe.
    expect(consoleErrors.filter((text) => !text.includes('/console/previews/'))).toEqual([]);
    expect(await findings(window)).toEqual([]);
    consoleErrors.splice(0);
    await page.keyboard.press('Enter');
    await page.locator('main .status', { hasText: /^sent$/ }).waitFor();
    await page.getByText('From sent to clicked').waitFor();
    // Nothing is left to cancel.
    await page.getByRole('button', { name: 'Cancel the campaign' }).waitFor({ state: 'detached' });
    expect(await page.title()).toBe(`${HOSTILE} · Postrider`);
    expect(consoleErrors.filter((text) => !text.includes('/console/previews/'))).toEqual([]);

    // The next one begins with the same sender.
    const next = await campaign('Next');
    await open.visit(window, step(next, 'content'), client);
    await expect.poll(() => page.getByLabel('Name of the sender').inputValue()).toBe('Shop, Ltd');
    await context.close();
  });

  it('shows why a campaign was stopped automatically, and resumes it with a reason', async () => {
    const id = await campaign('Old list');
    const sent = await client.post(`/web-setup/campaigns/${id}/send`, {
      subject: 'Spring',
      html: `<p>Spring</p>${FOOTER}`,
      subscriptionGroupId: group,
      from: 'a@news.test',
      scheduledAt: new Date(Date.now() + DAY).toISOString(),
    });
    expect(sent.status, sent.text).toBe(202);
    const send = daemon.tables.campaignSends.get(daemon.tables.campaigns.get(client.accountId, id)?.seq ?? 0);
    if (send === null) throw new Error('no send of the campaign');
    const figures = { messages: 119, events: 10, rate: 8.403, lowerBound: 3.77, limit: 5 };
    pauseSend(daemon.tables, send, { reason: 'hard_bounces', figures: JSON.stringify(figures) }, Date.now());
    await open.examine({ 'campaign-stopped': `campaigns/${id}` }, client);
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, `campaigns/${id}`, client);
    await page.getByText('8.4%, and the limit is 5%').waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Why it may continue').fill('The old addresses are deleted');
    await window.screenshot('console-campaign-resume');
    await dialog.getByRole('button', { name: 'Resume' }).click();
    await expect.poll(() => statusOf(id)).not.toBe('paused');
    const { rows } = daemon.tables.auditRecords.list({}, 20);
    expect(rows.find(({ operation }) => operation === 'resumeCampaign')).toMatchObject({
      outcome: 'done',
      detail: 'The old addresses are deleted',
    });
    expect((await client.post(`/web-setup/campaigns/${id}/cancel`)).status).toBe(200);
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
    await page.locator('.figure', { hasText: 'Delivered' }).getByText('75%').waitFor();
    await page.locator('.funnel li', { hasText: 'Delivered' }).getByText('600').waitFor();
    await page.getByRole('row', { name: `https://example.com/${HOSTILE} 7 25%` }).waitFor();
    const provider = page.getByRole('row').filter({ hasText: HOSTILE }).filter({ hasText: '200' });
    // Opened by people, and by programs.
    expect(await provider.textContent()).toContain('25%0%10%0%');
    const mail = page.frameLocator('iframe[title="Click map"]');
    await mail.getByText('21 (75%)').waitFor();
    await mail.getByText('0 (0%)').waitFor();
    expect(await mail.locator('a[href]').count()).toBe(0);
    expect(await findings(window)).toEqual([]);
    await page.getByRole('link', { name: 'By day' }).press('Enter');
    await expect.poll(() => page.url()).toContain('interval=day');
    await page.getByText('As a table').press('Enter');
    await page
      .getByRole('region', { name: 'By time' })
      .getByRole('row', { name: /31.* 600 / })
      .waitFor();
    expect(await page.title()).toBe('Counted · Postrider');
    await context.close();
  });

  it('schedules, pauses, resumes and cancels by keyboard, on a phone', async () => {
    const id = await campaign('Summer');
    const window = await open.operator(PHONE);
    const { page, context } = window;
    await prepare(id, 'news@news.test');
    await open.visit(window, step(id, 'review'), client);
    const start = Math.ceil((Date.now() + DAY) / MINUTE) * MINUTE;
    await page.getByRole('radio', { name: 'Later' }).press('Space');
    await page.getByLabel('Start', { exact: true }).last().fill(localTime(start));
    await page.locator('summary', { hasText: 'Messages per hour' }).press('Enter');
    await page.getByRole('spinbutton', { name: 'Messages per hour' }).fill('50');
    // In UTC: the person who sends it may be in another time zone.
    await expect
      .poll(() => preparedOf(id))
      .toMatchObject({ scheduledAt: new Date(start).toISOString(), perHour: 50 });
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
    await prepare(id, 'news@other.test');
    const window = await open.operator(DESKTOP);
    await open.visit(window, step(id, 'review'), client);
    await window.page.getByText('The domain of the sender, other.test, is not registered').waitFor();
    await window.page.getByRole('button', { name: 'Send the campaign' }).press('Enter');
    await window.page.keyboard.press('Enter');
    await window.page.locator('.outcome.bad', { hasText: 'other.test' }).waitFor();
    expect(await statusOf(id)).toBe('draft');
    await window.context.close();
    const author = await open.member(client, 'author', DESKTOP);
    await open.visit(author, step(id, 'review'), client);
    await author.page.getByText('Your role does not permit sending.').waitFor();
    expect(await author.page.getByRole('button', { name: /Send/ }).count()).toBe(0);
    await author.context.close();
  });

  it('names what is wrong with the content, and what to do', async () => {
    const { data } = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
      name: 'With faults',
      html: `<style>p { color: red }</style><p style="color:red">{{shade}} {{ {{<a href="www.shop.test">a</a> <a href="http://shop.test/">b</a></p><img src="/a.png"><img src="https://shop.test/b.png" alt="">${'<p>x</p>'.repeat(15_000)}`,
    });
    const id = await campaign('Faults');
    await client.put(`/web-setup/campaigns/${id}`, {
      prepared: { subscriptionGroupId: group, templateId: data.template.templateId, from: 'a@news.test' },
    });
    const window = await open.operator(DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, step(id, 'review'), client);
    const checks = page.locator('.checks');
    for (const text of [
      'There is no subject',
      'The content must show {{company_address_html}}',
      'Contacts have no field {{shade}}',
      'Links that lead nowhere (1): www.shop.test.',
      'Links without encryption (1): http://shop.test/.',
      'Images that cannot be loaded (1): /a.png.',
      'Images without an alternative text (1): /a.png.',
      'Gmail hides the end of messages above 102 kB',
      // Opened by the server.
      'Links to pages that do not exist (1): http://shop.test/ (DNS).',
      'Images that do not exist, or are no images (1): https://shop.test/b.png (DNS).',
    ])
      await checks.getByText(text).waitFor();
    expect(await checks.locator('li.bad, li.warn').count()).toBe(10);
    await page.getByRole('button', { name: 'Check again' }).press('Enter');
    await checks.getByText('Links to pages that do not exist').waitFor();
    // The checks cause no violation of the policy of the page.
    expect(consoleErrors.filter((text) => !text.includes('/console/previews/'))).toEqual([]);
    expect(await findings(window)).toEqual([]);
    await context.close();
  });

  it('saves by itself, also when the page is left, and shows it', async () => {
    const id = await campaign('Automatic');
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await prepare(id, 'news@news.test');
    await open.visit(window, step(id, 'content'), client);
    await page.getByLabel('Subject').fill('First subject');
    await saved(page);
    expect(await preparedOf(id)).toMatchObject({ subject: 'First subject', from: 'news@news.test' });
    // Left before it is saved: no question, and nothing is lost.
    const asked = answerQuestions(window, () => false);
    await page.getByLabel('Subject').fill('Second subject');
    await page.getByRole('link', { name: 'Groups', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Groups' }).waitFor();
    await expect.poll(() => preparedOf(id)).toMatchObject({ subject: 'Second subject' });
    expect(asked).toEqual([]);
    // Closed before it is saved.
    await open.visit(window, step(id, 'content'), client);
    await page.getByLabel('Subject').fill('Third subject');
    await page.close({ runBeforeUnload: true });
    await expect.poll(() => preparedOf(id)).toMatchObject({ subject: 'Third subject' });
    await context.close();
  });

  it('shows that a draft is not saved, tries again, and asks before it is left', async () => {
    const id = await campaign('Without a connection');
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await prepare(id, 'news@news.test');
    await open.visit(window, step(id, 'content'), client);
    let isDown = true;
    await page.route(`**/web-setup/campaigns/${id}`, async (route) => {
      if (route.request().method() !== 'PATCH' || !isDown) return route.continue();
      // The first response is lost after the server has stored the change.
      await route.fetch();
      return route.abort();
    });
    await page.getByLabel('Subject').fill('One');
    await page.getByText('It is tried again by itself.').waitFor();
    await page.getByLabel('Subject').fill('Two');
    const asked = answerQuestions(window, () => false);
    await page.getByText('It is tried again by itself.').waitFor();
    await page.getByRole('link', { name: 'Groups', exact: true }).click();
    await expect
      .poll(() => asked)
      .toEqual(['Leave although the last changes to the campaign are not saved?']);
    isDown = false;
    await saved(page);
    expect(await preparedOf(id)).toMatchObject({ subject: 'Two' });
    await context.close();
  });

  it('replaces nothing that another person changed: this person decides', async () => {
    const id = await campaign('Shared');
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await prepare(id, 'news@news.test');
    const change = async (subject: string) => {
      const prepared = { ...(await preparedOf(id)), subject };
      expect((await client.put(`/web-setup/campaigns/${id}`, { prepared })).status).toBe(200);
    };
    await open.visit(window, step(id, 'content'), client);
    const subject = page.getByLabel('Subject');
    await subject.waitFor();
    await change('Theirs');
    await subject.fill('Mine');
    const notice = page.locator('.notice.bad', { hasText: 'Another person changed this draft' });
    await notice.waitFor();
    expect(await preparedOf(id)).toMatchObject({ subject: 'Theirs' });
    expect(await findings(window)).toEqual([]);
    await notice.getByRole('button', { name: 'Use the other version' }).click();
    await notice.waitFor({ state: 'detached' });
    expect(await subject.inputValue()).toBe('Theirs');

    await change('Theirs again');
    await subject.fill('Mine again');
    await notice.getByRole('button', { name: 'Save my version' }).click();
    await saved(page);
    expect(await preparedOf(id)).toMatchObject({ subject: 'Mine again' });

    // Sent meanwhile by another person.
    const body = { subject: 'Sent', html: FOOTER, subscriptionGroupId: group, from: 'a@news.test' };
    expect((await client.post(`/web-setup/campaigns/${id}/send`, body)).status).toBe(202);
    await subject.fill('Too late');
    await page.getByText('Another person started this campaign').waitFor();
    await page.getByRole('button', { name: 'Show the campaign' }).click();
    await page.getByText('From sent to clicked').waitFor();
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
    await open.visit(author, step(id, 'content'), client);
    const templates = author.page.getByRole('combobox', { name: 'Template' });
    await templates.waitFor();
    expect(await templates.locator('option', { hasText: 'Spring offer' }).count()).toBe(0);
    await author.page.getByLabel('Search templates by name').fill('spring');
    await templates.selectOption({ label: 'Spring offer' });
    // The choice remains while others are searched.
    await author.page.getByLabel('Search templates by name').fill('filler 5');
    await templates.locator('option', { hasText: 'Filler 54' }).waitFor({ state: 'attached' });
    await expect.poll(() => templates.inputValue()).toBe(templateId);
    await author.page.getByLabel('Subject').fill('Prepared by another');
    await saved(author.page);
    await author.page.locator('.preview').waitFor();
    await author.context.close();
    const sender = await open.member(client, 'sender', DESKTOP);
    await open.visit(sender, step(id, 'content'), client);
    const subject = sender.page.getByLabel('Subject');
    await expect.poll(() => subject.inputValue()).toBe('Prepared by another');
    const chosen = sender.page.getByRole('combobox', { name: 'Template' });
    await expect.poll(() => chosen.inputValue()).toBe(templateId);
    await sender.context.close();
  });

  it('is sent to several groups and a segment without excluded people, and again to those who did not open', async () => {
    const own = await daemon.account('Segments');
    insertDomainOf(daemon, own, { domain_id: 'domain_segments', name: 'segments.test', use_case: 'mk' });
    const people = (names: string[], plan: string) =>
      names.map((name) => ({
        email: `${name}@simulator.${PLATFORM}`,
        consentMethod: 'web_form',
        customFields: { plan },
      }));
    const { subscriptionGroupId: news, campaignId: id } = await startGroup(own, [
      ...people(['delivered', 'delivered+2'], 'gold'),
      ...people(['delivered+3'], 'free'),
    ]);
    const { data } = await own.post<{ group: { subscriptionGroupId: string } }>(
      '/web-setup/contacts/subscription-groups',
      { name: 'Offers' },
    );
    const offers = data.group.subscriptionGroupId;
    for (const { email, consentMethod } of people(['delivered+4', 'delivered+5'], 'gold')) {
      await own.post('/web-setup/contacts', { email, consentMethod, customFields: { plan: 'gold' } });
      const added = await own.post(`/web-setup/contacts/subscription-groups/${offers}/subscriptions`, {
        email,
      });
      expect(added.status, added.text).toBe(201);
    }
    const segment = async (name: string, filter: object) =>
      (await own.post<{ segment: { segmentId: string } }>('/web-setup/segments', { name, filter })).data
        .segment.segmentId;
    const gold = await segment('Gold', { field: 'customFields.plan', op: 'is', value: 'gold' });
    const fifth = await segment('Fifth', { field: 'email', op: 'contains', value: '+5' });
    await own.post('/web-setup/templates', {
      name: 'Offer',
      subject: 'Offer',
      html: `<p>Offer</p>${FOOTER}`,
    });

    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, step(id, 'audience'), own);
    const groups = page.getByRole('combobox', { name: 'Group' });
    await groups.selectOption(news);
    await page.getByText('of 3 members can receive it').waitFor();
    await groups.selectOption(offers);
    await page.getByText('of 5 members can receive it').waitFor();
    await page.getByRole('combobox', { name: 'Segment', exact: true }).selectOption(gold);
    await page.getByText('of 4 members can receive it').waitFor();
    await page.getByText('Leave people out').press('Enter');
    await page.getByRole('combobox', { name: 'Not to people in these segments' }).selectOption(fifth);
    await page.locator('.audience-count').getByText('of 3 members can receive it').waitFor();
    expect(await findings(window)).toEqual([]);
    await window.screenshot('console-campaign-audience');
    await page.getByRole('link', { name: 'Next: Content' }).click();
    await page.getByRole('combobox', { name: 'Template' }).selectOption({ label: 'Offer' });
    await saved(page);
    await page.getByRole('link', { name: 'Next: Review' }).click();
    await page.getByText('3 people can receive it.').waitFor();
    await page.getByRole('button', { name: 'Send the campaign' }).press('Enter');
    await page
      .getByRole('dialog')
      .getByText('News, Offers, in Gold, without Fifth: 3 of 3 active members')
      .waitFor();
    await page.keyboard.press('Enter');
    await page.locator('main .status', { hasText: /^sent$/ }).waitFor();
    const { data: sent } = await own.get<{ campaign: { progress: object } }>(`/web-setup/campaigns/${id}`);
    expect(sent.campaign.progress).toMatchObject({
      queued: 3,
      subscriptionGroupIds: [news, offers],
      segmentId: gold,
      excludeSegmentIds: [fifth],
    });

    // The simulator opens nothing.
    await page.getByRole('button', { name: 'Resend to those who did not open' }).press('Enter');
    await page.getByRole('dialog').getByText('everybody would get it again').waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.audience-count').getByText('of 3 members can receive it').waitFor();
    await page.getByRole('button', { name: /^Remove Did not open Spring/ }).waitFor();
    await page.getByRole('button', { name: 'Remove Fifth' }).waitFor();
    const again = /campaign_\w+/.exec(page.url())?.[0] ?? '';
    expect(again).not.toBe(id);
    const { data: draft } = await own.get<{ campaign: { prepared: object } }>(
      `/web-setup/campaigns/${again}`,
    );
    expect(draft.campaign.prepared).toMatchObject({
      subscriptionGroupIds: [news, offers],
      excludeSegmentIds: [fifth],
      templateId: expect.any(String),
    });
    await context.close();
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
    await open.visit(window, step(id, 'review'), client);
    await page.getByText('A group, segment or campaign of the audience was deleted').waitFor();
    expect(await page.getByRole('button', { name: 'Send the campaign' }).count()).toBe(0);
    await page.locator('.checks').getByRole('link', { name: 'Audience' }).click();
    await page.getByRole('button', { name: 'Remove Deleted: choose another' }).press('Enter');
    await page.getByRole('combobox', { name: 'Group' }).selectOption(group);
    await saved(page);
    await page.getByRole('button', { name: 'Remove News' }).waitFor();
    expect(await preparedOf(id)).toMatchObject({ subscriptionGroupId: group });
    await context.close();
  });

  it('shows the rates and the progress of campaigns in their list', async () => {
    const id = await campaign('Listed');
    const body = { subject: 'Listed {{firstName}}', html: FOOTER, subscriptionGroupId: group };
    const sent = await client.post(`/web-setup/campaigns/${id}/send`, { ...body, from: 'a@news.test' });
    expect(sent.status, sent.text).toBe(202);
    const { campaignCounts } = daemon.tables;
    const hour = Date.now() - (Date.now() % HOUR);
    for (const [name, count] of [
      ['sent', 40],
      ['delivered', 40],
      ['uniqueOpened', 10],
      ['uniqueClicked', 3],
    ] as const)
      campaignCounts.add(id, hour, name, count);
    campaignCounts.endUnit(true);
    campaignCounts.write();
    const window = await open.operator(DESKTOP);
    await open.visit(window, 'campaigns', client);
    const row = window.page.getByRole('row', { name: /^Listed/ });
    await row.getByText('25%', { exact: true }).waitFor();
    expect(await row.textContent()).toMatch(/^ListedListed \{\{firstName\}\}.*News.*4025%7\.5%/);
    await row.locator('.sparkline').waitFor();
    await window.context.close();
  });

  it('deletes a draft with changes, and a campaign that was sent, after a confirmation', async () => {
    const id = await campaign('Unwanted');
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    const asked = answerQuestions(window, () => false);
    await prepare(id, 'news@news.test');
    await open.visit(window, step(id, 'content'), client);
    // The changes are still being saved when the draft is deleted.
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route(`**/web-setup/campaigns/${id}`, async (route) => {
      if (route.request().method() === 'PATCH') await released;
      await route.continue();
    });
    const save = page.waitForRequest((request) => request.method() === 'PATCH');
    await page.getByLabel('Subject').fill('Not needed');
    await save;
    const remove = async (name: string) => {
      await page.getByRole('button', { name: `Actions for ${name}` }).click();
      await page.getByRole('button', { name: 'Delete the campaign' }).click();
    };
    await remove('Unwanted');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    expect(await statusOf(id)).toBe('draft');
    await remove('Unwanted');
    const deletion = page.waitForRequest((request) => request.method() === 'DELETE');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete the campaign' }).click();
    void deletion.then(release);
    setTimeout(release, 500);
    await page.getByRole('heading', { level: 1, name: 'Campaigns' }).waitFor();
    await page.getByRole('link', { name: 'Unwanted' }).waitFor({ state: 'detached' });
    expect((await client.get(`/web-setup/campaigns/${id}`)).status).toBe(404);
    expect(asked).toEqual([]);
    expect(await page.locator('.toast.bad').count()).toBe(0);

    const sent = await campaign('Sent and deleted');
    const body = { subject: 'Hello', html: FOOTER, subscriptionGroupId: group, from: 'a@news.test' };
    expect((await client.post(`/web-setup/campaigns/${sent}/send`, body)).status).toBe(202);
    await eventually('the end of the campaign', async () => (await statusOf(sent)) === 'sent');
    await open.visit(window, `campaigns/${sent}`, client);
    await remove('Sent and deleted');
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
    await page.getByRole('link', { name: 'New campaign' }).press('Enter');
    await page.getByRole('combobox', { name: 'Group' }).selectOption({ index: 1 });
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
      'campaign-new': 'campaigns/new',
      'campaign-audience': step(draft, 'audience'),
      'campaign-content': step(draft, 'content'),
      'campaign-review': step(draft, 'review'),
      'campaign-sent': `campaigns/${sent?.campaignId}`,
    },
    client,
  );
});

/** The value of a field for a time in the time zone of this process, which is that of the browser. */
function localTime(time: number): string {
  return new Date(time - new Date(time).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
