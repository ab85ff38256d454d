// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY, MINUTE } from '../../src/core/clock.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { enqueue, insertDomain } from '../support/store.ts';
import { chooseLanguage, HOSTILE, insertShopDomain, type OpenConsole, openConsole } from './open-console.ts';

/* The queue, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  insertShopDomain(daemon, client);
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

/** A message that waits for a day; returns its id. */
function waiting(recipient: string): string {
  const now = Date.now();
  return enqueue(daemon.tables, now, {
    account_id: client.accountId,
    domain_id: 'domain_1',
    recipient,
    dueAt: now + DAY,
  }).message_id;
}

it('pauses a destination, explains it, and resumes it', async () => {
  waiting('ada@paused.test');
  const window = await open.operator(DESKTOP);
  const { page, context, consoleErrors } = window;
  await open.visit(window, 'queue', client);
  await page.getByRole('rowheader', { name: 'paused.test' }).waitFor();
  const form = page.getByRole('form', { name: 'Pause or reject mail' });
  await form.getByLabel('Target').fill('paused.test');
  await form.getByLabel('Reason').fill(HOSTILE);
  await form.getByRole('button', { name: 'Apply' }).click();
  await page.getByText('paused.test was paused').waitFor();
  await page.getByRole('cell', { name: HOSTILE }).waitFor();
  expect((await controls()).map(({ target }) => target)).toEqual(['paused.test']);
  await page.getByRole('link', { name: 'paused.test' }).click();
  await page.getByRole('heading', { level: 1, name: 'paused.test' }).waitFor();
  await page.getByText(HOSTILE).first().waitFor();
  expect(page.url()).toContain('/queue/destinations/paused.test');
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click();
  await page.getByText('paused.test was resumed').waitFor();
  expect(await controls()).toEqual([]);
  expect(await page.title()).toBe('paused.test · Postrider');
  expect(consoleErrors).toEqual([]);
  await context.close();
});

it('explains a message and cancels those to a destination after a count, by keyboard', async () => {
  const id = waiting('ada@purged.test');
  const kept = waiting('ada@kept.test');
  const window = await open.operator(PHONE);
  const { page, context } = window;
  await open.visit(window, 'queue', client);
  await page.getByLabel('Recipient domain or message id').fill(id);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: id }).waitFor();
  await page.getByText('ada@purged.test').waitFor();
  await page.getByRole('link', { name: 'purged.test' }).press('Enter');
  const form = page.getByRole('form', { name: 'Cancel waiting messages' });
  await form.getByLabel('Reason').fill('Sent by mistake');
  await page.keyboard.press('Enter');
  await page.getByText('Waiting messages: 1', { exact: true }).waitFor();
  expect((await client.message(id)).status).toBe('queued');
  await page.getByRole('button', { name: 'Cancel these messages: 1' }).press('Enter');
  await page.getByText('Canceled messages: 1').waitFor();
  expect((await client.message(id)).status).toBe('cancelled');
  expect((await client.message(kept)).status).toBe('queued');
  await context.close();
});

it('pauses an account', async () => {
  const window = await open.operator(DESKTOP);
  const { page, context } = window;
  await open.visit(window, 'queue', client);
  const form = page.getByRole('form', { name: 'Pause or reject mail' });
  await form.getByLabel('Kind').selectOption('account');
  await form.getByLabel('Target').selectOption(client.accountId);
  await form.getByLabel('Reason').fill('Under review');
  await form.getByRole('button', { name: 'Apply' }).click();
  await page.getByRole('cell', { name: 'Under review' }).waitFor();
  expect(await controls()).toEqual([expect.objectContaining({ scope: 'account', target: client.accountId })]);
  await page.getByRole('link', { name: 'By account' }).click();
  await page.getByRole('link', { name: 'Shop' }).click();
  await page.getByRole('heading', { level: 1, name: client.accountId }).waitFor();
  await page.getByText('Under review').waitFor();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click();
  await page.getByText(`${client.accountId} was resumed`).waitFor();
  expect(await controls()).toEqual([]);
  const again = page.getByRole('form', { name: 'Pause or reject mail' });
  await again.getByLabel('Reason').fill('Still under review');
  await again.getByRole('button', { name: 'Apply' }).click();
  await page.locator('.notice', { hasText: 'Still under review' }).getByText('until it is resumed').waitFor();
  await context.close();
});

it('pauses a site until a time and an egress pool, and rejects the mail to a destination', async () => {
  waiting('ada@rejected.test');
  const window = await open.operator(DESKTOP);
  const { page, context } = window;
  await open.visit(window, 'queue', client);
  const form = page.getByRole('form', { name: 'Pause or reject mail' });
  const apply = async (fields: Readonly<Record<string, string>>) => {
    for (const [name, value] of Object.entries(fields))
      await (name === 'Kind' || name === 'Action'
        ? form.getByLabel(name).selectOption(value)
        : form.getByLabel(name).fill(value));
    await form.getByRole('button', { name: 'Apply' }).click();
  };
  const until = Math.ceil((Date.now() + DAY) / MINUTE) * MINUTE;
  await apply({ Kind: 'site', Target: 'mx.slow.test', Reason: 'Maintenance', Until: localTime(until) });
  await page.getByText('mx.slow.test was paused').waitFor();
  // The name of a pool that the configuration does not have.
  await apply({ Kind: 'pool', Target: 'none', Reason: 'Blocked' });
  await page.locator('.outcome.bad', { hasText: 'the pools are default' }).waitFor();
  await apply({ Target: 'default' });
  await page.getByText('default was paused').waitFor();
  await apply({
    Target: 'rejected.test',
    Action: 'bounce',
    Reason: 'No longer exists',
    Until: localTime(until - 2 * DAY),
  });
  await page.locator('.outcome.bad', { hasText: 'until' }).waitFor();
  await apply({ Until: '' });
  await page.getByText('Mail to rejected.test is rejected').waitFor();
  const created = (await controls()).filter(({ scope }) => scope !== 'account');
  expect(created).toHaveLength(3);
  const base = { action: 'pause', until: null };
  expect(created).toEqual(
    expect.arrayContaining(
      [
        { ...base, scope: 'site', target: 'mx.slow.test', until: new Date(until).toISOString() },
        { ...base, scope: 'pool', target: 'default' },
        { ...base, scope: 'destination', target: 'rejected.test', action: 'bounce' },
      ].map((each) => expect.objectContaining(each)),
    ),
  );
  const rules = page.getByRole('region', { name: 'Pauses and rejections' });
  await rules
    .getByRole('row', {
      name: /^rejected\.test Recipient domain Rejected No longer exists until it is resumed/,
    })
    .waitFor();
  await rules.getByRole('row', { name: /^default Egress pool Paused Blocked/ }).waitFor();
  await rules.getByRole('row', { name: /^mx\.slow\.test Site Paused Maintenance .*20\d\d/ }).waitFor();
  await page.getByRole('link', { name: 'rejected.test' }).click();
  await page
    .locator('.notice', { hasText: 'No longer exists' })
    .getByText('Rejected', { exact: true })
    .waitFor();
  await open.visit(window, 'queue', client);
  for (const { target } of created) {
    const row = rules.getByRole('row').filter({ has: page.getByRole('rowheader', { name: target }) });
    await row.getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click();
    await row.waitFor({ state: 'detached' });
  }
  expect((await controls()).filter(({ scope }) => scope !== 'account')).toEqual([]);
  await context.close();
});

it('cancels the waiting messages of one account, also those to one destination only', async () => {
  const other = await daemon.account('Other shop');
  const [group] = daemon.tables.domainGroups.list(other.accountId);
  const row = {
    account_id: other.accountId,
    group_id: group?.group_id ?? '',
    next_check_at: Date.now() + DAY,
  };
  insertDomain(daemon.tables, { ...row, domain_id: 'domain_other', name: 'other.test' }, Date.now());
  const own = waiting('ada@common.test');
  const enqueueOther = (recipient: string) =>
    enqueue(daemon.tables, Date.now(), {
      account_id: other.accountId,
      domain_id: 'domain_other',
      recipient,
      dueAt: Date.now() + DAY,
    }).message_id;
  const [first, second, third] = ['a@common.test', 'b@elsewhere.test', 'c@elsewhere.test'].map(enqueueOther);
  const window = await open.operator(DESKTOP);
  const { page, context } = window;
  await open.visit(window, 'queue', client);
  const form = page.getByRole('form', { name: 'Cancel waiting messages' });
  await form.getByLabel('Reason').fill('Fraud');
  // Everything that waits is not canceled by mistake.
  await form.getByRole('button', { name: 'Count', exact: true }).click();
  await page.locator('.outcome.bad').waitFor();
  await form.getByLabel('Recipient domain').or(form.getByLabel('Destination')).fill('common.test');
  await form.getByLabel('Account').selectOption({ label: 'Other shop' });
  await form.getByRole('button', { name: 'Count', exact: true }).click();
  await page.getByRole('button', { name: 'Cancel these messages: 1' }).click();
  await page.getByText('Canceled messages: 1').waitFor();
  expect((await other.message(first ?? '')).status).toBe('cancelled');
  expect((await client.message(own)).status).toBe('queued');

  await open.visit(window, 'queue?by=account', client);
  await page.getByRole('link', { name: 'Other shop' }).click();
  await page.getByRole('heading', { level: 1, name: other.accountId }).waitFor();
  await page.getByRole('form', { name: 'Cancel waiting messages' }).getByLabel('Reason').fill('Fraud');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Cancel these messages: 2' }).press('Enter');
  await page.getByText('Canceled messages: 2').waitFor();
  for (const id of [second, third]) expect((await other.message(id ?? '')).status).toBe('cancelled');
  expect((await client.message(own)).status).toBe('queued');
  await context.close();
});

it('retries the deferred messages of a destination and of an account, and explains one from its page', async () => {
  const [first = '', second = '', third = ''] = ['a@late.test', 'b@late.test', 'c@later.test'].map((to) => {
    const id = waiting(to);
    const { seq } = daemon.tables.messages.byId(id) ?? {};
    daemon.tables.messages.setState(seq ?? 0, 'deferred', Date.now(), null, null);
    return id;
  });
  const isDue = (id: string) => {
    const { seq } = daemon.tables.messages.byId(id) ?? {};
    return (daemon.tables.queue.get(seq ?? 0)?.due_at ?? Number.POSITIVE_INFINITY) <= Date.now();
  };
  const window = await open.operator(DESKTOP);
  const { page, context, consoleErrors } = window;
  await open.visit(window, `messages/${third}`, client);
  await page.getByRole('link', { name: 'Why it waits' }).click();
  await page.getByRole('heading', { level: 1, name: third }).waitFor();
  await page.getByRole('link', { name: 'Back to the queue' }).click();
  await page.getByRole('button', { name: 'Retry now: late.test' }).press('Enter');
  await page.getByText('Messages that are retried now: 2').waitFor();
  expect([first, second, third].map(isDue)).toEqual([true, true, false]);
  await page.getByRole('link', { name: 'By account' }).click();
  expect(page.url()).toContain('by=account');
  await page.getByRole('link', { name: 'Shop' }).click();
  await page.getByRole('heading', { level: 1, name: client.accountId }).waitFor();
  await page.getByRole('button', { name: /^Retry now/ }).click();
  await page.getByText(/Messages that are retried now: [1-9]/).waitFor();
  expect(isDue(third)).toBe(true);
  expect(consoleErrors).toEqual([]);
  await context.close();
});

it('shows the command of the list by account, and reads that list again after a retry', async () => {
  const { seq } = daemon.tables.messages.byId(waiting('ada@by-account.test')) ?? {};
  daemon.tables.messages.setState(seq ?? 0, 'deferred', Date.now(), null, null);
  const window = await open.operator(DESKTOP);
  const { page, context } = window;
  // Without it, the list would be read again at an interval.
  await page.addInitScript('window.setInterval = () => 0');
  await open.visit(window, 'queue?by=account', client);
  expect(await page.locator('.curl pre').textContent()).toContain('/web-setup/queue/accounts');
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'Shop' }) });
  await row.waitFor();
  const read = page.waitForRequest('**/web-setup/queue/accounts');
  await row.getByRole('button', { name: 'Retry now: Shop' }).click();
  await read;
  await open.visit(window, `queue/accounts/${client.accountId}`, client);
  expect(await page.locator('.curl pre').textContent()).toContain('/web-setup/queue/accounts');
  await context.close();
});

it('names the destination of a cancellation that is not finished, on every page of the queue', async () => {
  waiting('ada@cancelled.test');
  const window = await open.operator(DESKTOP);
  const { page, context } = window;
  await open.visit(window, 'queue/destinations/cancelled.test', client);
  await page.getByRole('button', { name: 'Count', exact: true }).waitFor();
  const form = page.locator('form').filter({ has: page.getByRole('button', { name: 'Count', exact: true }) });
  await form.getByLabel('Reason').fill('Test');
  await form.getByRole('button', { name: 'Count', exact: true }).click();
  const now = page.getByRole('button', { name: 'Cancel these messages: 1' });
  await now.waitFor();
  await page.route('**/queue/purge', (sent) => sent.abort());
  await now.click();
  await page.getByRole('button', { name: 'Continue' }).waitFor();
  await open.visit(window, 'queue/destinations/another.test', client);
  await page.getByText('Cancel waiting messages: cancelled.test: not finished').waitFor();
  await context.close();
});

it('reads each of its pages again at an interval', async () => {
  const id = waiting('ada@refreshed.test');
  const pages = [
    ['queue', '**/web-setup/queue'],
    [`queue/accounts/${client.accountId}`, '**/web-setup/queue/accounts?*'],
    ['queue/destinations/refreshed.test', '**/web-setup/queue/destinations/*'],
    [`queue/messages/${id}`, '**/web-setup/queue/messages/*'],
  ] as const;
  const window = await open.operator(DESKTOP);
  const { page, context } = window;
  await page.clock.install();
  for (const [path, request] of pages) {
    await open.visit(window, path, client);
    const read = page.waitForRequest(request);
    await page.clock.fastForward(10_000);
    await read;
  }
  await context.close();
});

it('explains in the language of the person, with local times', async () => {
  const id = waiting('ada@german.test');
  const { seq } = daemon.tables.messages.byId(id) ?? {};
  daemon.tables.messages.setState(seq ?? 0, 'deferred', Date.now(), null, null, 1);
  daemon.tables.messages.insertAttempt({
    message_seq: seq ?? 0,
    attempt: 1,
    at: Date.now(),
    lane: 'primary',
    report: {
      classification: 'greylisted',
      reply: { code: 451, enhanced: '4.7.1', text: HOSTILE },
      sessions: [],
    },
  });
  const window = await open.operator(DESKTOP);
  const { page, context } = window;
  await open.visit(window, `queue/messages/${id}`, client);
  await page.getByText('The last attempt was deferred; the next one is at').waitFor();
  await page.getByText('The destination greylists unknown senders.').waitFor();
  expect(await page.getByText(/\d{4}-\d\d-\d\dT/).count()).toBe(0);
  await chooseLanguage(page, 'de');
  await page.getByText('Der letzte Versuch wurde aufgeschoben').waitFor();
  await page.getByText('Der Empfänger lehnt unbekannte Absender vorläufig ab.').waitFor();
  await page.getByRole('button', { name: 'Jetzt erneut versuchen' }).click();
  await page.getByText('Die Nachricht ist jetzt fällig').waitFor();
  await chooseLanguage(page, 'en');
  await page.getByRole('heading', { level: 1, name: id }).waitFor();
  await context.close();
});

it('shows members that it is for operators', async () => {
  const window = await open.member(client, 'owner', DESKTOP);
  await open.visit(window, 'queue', client);
  await window.page.getByText('Only operators').waitFor();
  expect(await window.page.getByRole('link', { name: 'Queue' }).count()).toBe(0);
  await window.context.close();
});

it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
  const id = waiting('ada@examined.test');
  await open.examine(
    {
      queue: 'queue',
      'queue-accounts': 'queue?by=account',
      'queue-account': `queue/accounts/${client.accountId}`,
      'queue-destination': 'queue/destinations/examined.test',
      'queue-message': `queue/messages/${id}`,
    },
    client,
  );
});

/** The value of a field for a time in the time zone of this process, which is that of the browser. */
function localTime(time: number): string {
  return new Date(time - new Date(time).getTimezoneOffset() * MINUTE).toISOString().slice(0, 16);
}

async function controls(): Promise<{ scope: string; target: string }[]> {
  const { data } = await client.get<{ controls: { scope: string; target: string }[] }>(
    '/web-setup/queue/controls',
  );
  return data.controls;
}
