// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, startBrowser, type TestBrowser } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { HOSTILE, type OpenConsole, openConsole } from './open-console.ts';

/* Segments, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let groupId: string;

interface Segments {
  segments: { segmentId: string; name: string; filter: object; count: number }[];
}

const GROUPS = '/web-setup/contacts/subscription-groups';

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
  const { data } = await client.post<{ group: { subscriptionGroupId: string } }>(GROUPS, { name: HOSTILE });
  groupId = data.group.subscriptionGroupId;
  for (const [n, name] of ['ada', 'grace', 'linus', 'margaret'].entries())
    await client.post('/web-setup/contacts', {
      email: `${name}@example.net`,
      customFields: { plan: n % 2 === 0 ? 'gold' : 'free' },
    });
  await client.post(`${GROUPS}/${groupId}/subscriptions`, { email: 'ada@example.net' });
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

async function segments(): Promise<Segments['segments']> {
  return (await client.get<Segments>('/web-setup/segments')).data.segments;
}

describe('Segments', () => {
  it('are created with conditions and groups of them, and counted while the form changes', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'segments', client);
    await page.getByText('No segments yet').waitFor();
    await page.getByRole('link', { name: 'New segment' }).press('Enter');
    const form = page.getByRole('form', { name: 'Filter' });
    await form.getByLabel('Name', { exact: true }).fill('Gold members');
    expect(await form.getByRole('button', { name: 'Save segment' }).isDisabled()).toBe(true);
    await form.getByRole('combobox', { name: 'Field' }).selectOption('Custom field');
    await form.getByRole('textbox', { name: 'Name of the field' }).fill('plan');
    await form.getByRole('textbox', { name: 'Value' }).fill('gold');
    await form.getByText('2 contacts').waitFor();
    await form.getByRole('link', { name: 'linus@example.net' }).waitFor();
    await form.getByRole('button', { name: 'Add a group of conditions' }).press('Enter');
    await form.getByRole('combobox', { name: 'Field' }).nth(1).selectOption('Group');
    await form.getByRole('combobox', { name: 'Value' }).selectOption(HOSTILE);
    await form.getByText('1 contact', { exact: true }).waitFor();
    await form.getByRole('button', { name: 'Save segment' }).press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Gold members' }).waitFor();
    expect(await segments()).toMatchObject([
      {
        name: 'Gold members',
        count: 1,
        filter: {
          all: [
            { field: 'customFields.plan', op: 'is', value: 'gold' },
            { any: [{ group: groupId, active: true }] },
          ],
        },
      },
    ]);

    await page.getByRole('button', { name: 'Remove the group of conditions' }).press('Enter');
    await page.getByText('2 contacts').waitFor();
    await page.getByRole('button', { name: 'Save segment' }).press('Enter');
    await page.getByText('Saved: Gold members').last().waitFor();
    await expect.poll(async () => (await segments())[0]?.count).toBe(2);
    await page.getByRole('button', { name: /^Actions for / }).press('Enter');
    await page.getByRole('button', { name: 'Delete segment' }).press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete segment' }).press('Enter');
    await page.getByText('No segments yet').waitFor();
    expect(await segments()).toEqual([]);
    await context.close();
  });

  it('offers a viewer no changes', async () => {
    const window = await open.member(client, 'viewer', DESKTOP);
    await open.visit(window, 'segments', client);
    expect(await window.page.getByRole('link', { name: 'New segment' }).count()).toBe(0);
    await window.context.close();
  });

  it('have no finding of axe-core on a phone and a desktop, light and dark', async () => {
    const { data } = await client.post<{ segment: { segmentId: string } }>('/web-setup/segments', {
      name: 'Gold, not reading',
      filter: {
        all: [
          { field: 'customFields.plan', op: 'is', value: 'gold' },
          { not: { opened: { withinDays: 30 } } },
          {
            any: [
              { group: groupId },
              { not: { all: [{ field: 'createdAt', op: 'before', value: '2026-01-01' }] } },
              { joined: { withinDays: 7, group: groupId } },
            ],
          },
        ],
      },
    });
    await open.examine(
      {
        segments: 'segments',
        'segment-new': 'segments/new',
        segment: `segments/${data.segment.segmentId}`,
      },
      client,
    );
  });
});
