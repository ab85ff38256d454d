// Long: opens its pages of the console on a phone and a desktop, light and dark.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, startBrowser, type TestBrowser } from '../support/browser.ts';
import { startGroup } from '../support/group.ts';
import { type InProcess, PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { insertDomainOf } from '../support/store.ts';
import { findings, type OpenConsole, openConsole } from './open-console.ts';

/* A/B tests in the console: their preparation, their figures and the choice of a winner. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let group: string;
let spring: string;
let short: string;

const FOOTER = '<p>{{company_address_html}}{{unsubscribe_email_html}}</p>';
const FROM = 'news@news.test';

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  insertDomainOf(daemon, client, { domain_id: 'domain_1', name: 'news.test', use_case: 'mk' });
  const members = ['delivered', 'delivered+2'].map((name) => ({
    email: `${name}@simulator.${PLATFORM}`,
    consentMethod: 'web_form',
  }));
  group = (await startGroup(client, members)).subscriptionGroupId;
  spring = await template('Spring offer', 'Spring is here', '<p>Everything about spring</p>');
  short = await template('Short offer', 'Spring, in short', '<p>Only the best</p>');
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

async function template(name: string, subject: string, html: string): Promise<string> {
  const body = { name, subject, html: `${html}${FOOTER}` };
  const created = await client.post<{ template: { templateId: string } }>('/web-setup/templates', body);
  return created.data.template.templateId;
}

async function campaign(name: string, prepared: object = {}): Promise<string> {
  const body = {
    name,
    prepared: { subscriptionGroupId: group, templateId: spring, from: FROM, ...prepared },
  };
  const created = await client.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', body);
  expect(created.status, created.text).toBe(201);
  return created.data.campaign.campaignId;
}

interface Shown {
  prepared: Record<string, unknown>;
  progress?: { test?: { share: number; decision: Record<string, unknown> | null } };
}

async function read(id: string): Promise<Shown> {
  return (await client.get<{ campaign: Shown }>(`/web-setup/campaigns/${id}`)).data.campaign;
}

async function saved(page: Page): Promise<void> {
  await page.getByRole('status').getByText('Saved', { exact: true }).waitFor();
}

/** A campaign of tomorrow with a test of two subjects whose messages are sent, with invented figures. */
async function tested(name: string): Promise<string> {
  const id = await campaign(name);
  const sent = await client.post(`/web-setup/campaigns/${id}/send`, {
    subject: 'Spring is here',
    html: `<p>Spring</p>${FOOTER}`,
    subscriptionGroupId: group,
    from: FROM,
    enableOpenTracking: true,
    variants: [
      {},
      { subject: '20 % on everything, in every shop and on the whole site, until Sunday evening' },
    ],
    test: { share: 20, winner: 'opens', waitHours: 4 },
    scheduledAt: new Date(Date.now() + DAY).toISOString(),
  });
  expect(sent.status, sent.text).toBe(202);
  const { seq = 0 } = daemon.tables.campaigns.get(client.accountId, id) ?? {};
  const db = openDatabase(daemon.dataDir);
  try {
    for (const [variant, opened, clicked] of [
      [1, 950, 95],
      [2, 1140, 95],
    ])
      db.prepare(
        'UPDATE campaign_variants SET queued = 4800, delivered = 4750, opened = ?, clicked = ? WHERE campaign_seq = ? AND variant = ?',
      ).run(opened, clicked, seq, variant);
    db.prepare(
      'UPDATE campaign_sends SET last_seq = 0, at_seq = 0, decide_at = ? WHERE campaign_seq = ?',
    ).run(Date.now() + DAY, seq);
  } finally {
    db.close();
  }
  return id;
}

it('prepares variants with their faults next to the fields, and sends them', async () => {
  const id = await campaign('Two subjects');
  const window = await open.member(client, 'sender', DESKTOP);
  const { page, context, consoleErrors } = window;
  await open.visit(window, `campaigns/${id}?step=content`, client);
  const add = page.getByRole('button', { name: 'Add a variant' });
  expect(await add.isVisible()).toBe(false);
  await page.locator('summary', { hasText: 'Test variants' }).press('Enter');
  await add.press('Enter');
  const second = page.getByRole('group', { name: 'Variant B' });
  await second.getByText('The same as another variant').waitFor();
  await second.locator('input:focus').fill('20 % on everything');
  await second.getByText('The same as another variant').waitFor({ state: 'detached' });
  await saved(page);
  const variants = [{}, { subject: '20 % on everything' }];
  const test = { share: 20, winner: 'opens', waitHours: 4 };
  expect((await read(id)).prepared).toMatchObject({ variants, test });

  await add.click();
  const third = page.getByRole('group', { name: 'Variant C' });
  await third.getByRole('combobox', { name: 'Other template' }).selectOption(short);
  await third.getByRole('button', { name: 'Remove Short offer' }).waitFor();
  await page.getByLabel('Share in percent').fill('0');
  await page.getByText('A whole number from 1 to 99').waitFor();
  await page.locator('.notice.bad', { hasText: 'Not saved' }).waitFor();
  await page.getByLabel('Share in percent').fill('30');
  await page.getByRole('combobox', { name: 'Winner' }).selectOption('clicks');
  await page.getByLabel('Hours to wait').fill('6');
  await saved(page);
  expect((await read(id)).prepared).toMatchObject({
    variants: [...variants, { templateId: short }],
    test: { share: 30, winner: 'clicks', waitHours: 6 },
  });
  // Each variant is previewed.
  const line = page.getByRole('region', { name: 'In the inbox' });
  await line.getByText('Spring is here').waitFor();
  await page.getByRole('link', { name: 'Variant B' }).click();
  await line.getByText('20 % on everything').waitFor();
  await page.getByRole('link', { name: 'Variant C' }).click();
  await line.getByText('Spring, in short').waitFor();
  await page.frameLocator('iframe').getByText('Only the best').waitFor();
  consoleErrors.splice(0);
  expect(await findings(window)).toEqual([]);
  await third.getByRole('button', { name: 'Remove variant C' }).press('Enter');
  await third.waitFor({ state: 'detached' });
  await line.getByText('Spring is here').waitFor();

  await page.getByRole('link', { name: 'Next: Review' }).click();
  const sentence = '30% of the audience receive one of 2 variants. 6 h later';
  await page.locator('p', { hasText: sentence }).waitFor();
  await page.getByRole('radio', { name: 'Later' }).press('Space');
  await page.getByRole('button', { name: 'Schedule the campaign' }).press('Enter');
  await page.getByRole('dialog').getByText(sentence).waitFor();
  await page.keyboard.press('Enter');
  await page.getByText('The test begins with the campaign.').waitFor();
  expect((await read(id)).progress?.test).toMatchObject({
    share: 30,
    winner: 'clicks',
    waitHours: 6,
    variants: [
      { name: 'A', subject: 'Spring is here' },
      { name: 'B', subject: '20 % on everything' },
    ],
  });
  await context.close();
});

it('divides the audience without a winner, and has no test without variants', async () => {
  const id = await campaign('Divided', {
    variants: [{}, { subject: 'Second' }],
    test: { share: 20, winner: 'opens', waitHours: 4 },
  });
  const window = await open.operator(DESKTOP);
  const { page, context } = window;
  await open.visit(window, `campaigns/${id}?step=content`, client);
  await page.getByRole('combobox', { name: 'Winner' }).selectOption('none');
  await page.getByLabel('Hours to wait').waitFor({ state: 'detached' });
  await expect
    .poll(async () => (await read(id)).prepared)
    .toMatchObject({ test: { share: 100, winner: 'none' } });
  await page.getByRole('button', { name: 'Remove variant B' }).click();
  await expect.poll(async () => Object.keys((await read(id)).prepared)).not.toContain('test');
  expect((await read(id)).prepared).not.toHaveProperty('variants');
  await context.close();
});

it('shows the figures of a test, and who may send ends it with a variant', async () => {
  const id = await tested('Decided by a person');
  const author = await open.member(client, 'author', DESKTOP);
  await open.visit(author, `campaigns/${id}`, client);
  await author.page.getByText(/^Testing until /).waitFor();
  expect(await author.page.getByRole('button', { name: 'Send this one' }).count()).toBe(0);
  await author.context.close();

  const window = await open.member(client, 'sender', DESKTOP);
  const { page, context, consoleErrors } = window;
  await open.visit(window, `campaigns/${id}`, client);
  const row = (name: string) =>
    page.getByRole('region', { name: 'A/B test' }).getByRole('row', { name: new RegExp(`^${name}\\W*`) });
  const first = page.getByRole('row', { name: /Spring is here/ });
  expect(await first.textContent()).toMatch(/4,75020%9502%95-4 points-5\.7 to -2\.3/);
  const second = page.getByRole('row', { name: /20 % on everything/ });
  expect(await second.textContent()).toMatch(/4,75024%1,1402%95highest rate/);
  expect(await row('A').count()).toBe(1);
  await second.getByRole('button', { name: 'Send this one' }).press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Send this one' });
  await dialog.getByText('Send variant B to everybody who has no message yet?').waitFor();
  expect(await findings(window)).toEqual([]);
  await window.screenshot('console-campaign-winner');
  await page.keyboard.press('Enter');
  await page.getByText(/^sender\d+@example\.com chose variant B on /).waitFor();
  expect(await page.getByRole('button', { name: 'Send this one' }).count()).toBe(0);
  expect((await read(id)).progress?.test?.decision).toMatchObject({ variant: 'B', reason: 'chosen' });
  expect(consoleErrors.filter((text) => !text.includes('/console/previews/'))).toEqual([]);
  await context.close();
});

it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
  const draft = await campaign('Draft', {
    variants: [{}, { subject: '20 % on everything' }, { templateId: short }],
    test: { share: 20, winner: 'opens', waitHours: 4 },
  });
  await open.examine(
    {
      'campaign-variants': `campaigns/${draft}?step=content`,
      'campaign-variants-review': `campaigns/${draft}?step=review`,
      'campaign-variants-results': `campaigns/${await tested('Undecided')}`,
    },
    client,
  );
});
