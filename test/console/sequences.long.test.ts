// Long: opens its pages of the console on a phone and a desktop, light and dark.
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, startBrowser, type TestBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { startGroup } from '../support/group.ts';
import { type InProcess, PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { insertDomainOf } from '../support/store.ts';
import { type OpenConsole, openConsole } from './open-console.ts';

let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let empty: ApiClient;
let group: string;
let templateId: string;
let welcome: string;

const FROM = 'Northwind Coffee <news@news.test>';
const MEMBERS = ['ada', 'grace', 'joan', 'mary'].map((name) => `delivered+${name}@simulator.${PLATFORM}`);

interface Created {
  sequence: { sequenceId: string; steps: object[]; status: string };
}

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Northwind');
  empty = await daemon.account('Empty');
  insertDomainOf(daemon, client, { domain_id: 'domain_1', name: 'news.test', use_case: 'mk' });
  const template = async (name: string, subject: string) => {
    const { data } = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
      name,
      subject,
      html: `<p>Hello {{firstName}}</p><p>{{company_address_html}}{{unsubscribe_email_html}}</p>`,
    });
    return data.template.templateId;
  };
  templateId = await template('Welcome', 'Welcome to Northwind, {{firstName}}');
  const second = await template('How we roast', 'How we roast our coffee');
  const created = await startGroup(client, []);
  group = created.subscriptionGroupId;
  const post = async (body: object) =>
    (await client.post<Created>('/web-setup/sequences', body)).data.sequence.sequenceId;
  welcome = await post({
    name: 'Welcome series',
    trigger: { joined: group },
    steps: [
      { send: { from: FROM, templateId, enableOpenTracking: true } },
      { wait: '3d' },
      { when: { opened: { withinDays: 7 } }, otherwise: 'skip' },
      { send: { from: FROM, templateId: second } },
      { wait: '12h' },
      { send: { from: FROM, templateId, subject: 'Ten percent on your first order' } },
      { end: true },
    ],
    goal: { field: 'customFields.plan', op: 'is', value: 'subscriber' },
    status: 'active',
  });
  await post({
    name: 'Contract ends',
    trigger: { dateField: 'contractEnds', offsetDays: -14 },
    steps: [{ send: { from: FROM, templateId, subject: 'Your contract ends soon' } }],
    status: 'active',
  });
  await post({ name: 'After an order', trigger: { event: 'order placed' }, steps: [{ wait: '2d' }] });
  for (const [index, email] of MEMBERS.entries()) {
    const customFields = index === 3 ? { plan: 'subscriber' } : {};
    await client.post('/web-setup/contacts', {
      email,
      firstName: 'Ada',
      consentMethod: 'web_form',
      customFields,
    });
    const path = `/web-setup/contacts/subscription-groups/${group}/subscriptions`;
    expect((await client.post(path, { email })).status).toBe(201);
  }
  await eventually('the first messages', async () => {
    const { data } = await client.get<{ sequence: { people: { ended: object; inProgress: number } } }>(
      `/web-setup/sequences/${welcome}`,
    );
    return data.sequence.people.inProgress === 3 && 'goal' in data.sequence.people.ended;
  });
  // Simulated mail is not counted.
  const { campaignCounts } = daemon.tables;
  const counted = {
    queued: 1240,
    delivered: 1231,
    bounced: 9,
    uniqueOpened: 640,
    uniqueClicked: 212,
  } as const;
  // The names of a constant.
  for (const [step, share] of [
    [0, 1],
    [3, 0.5],
  ] as const)
    for (const [name, count] of Object.entries(counted))
      campaignCounts.add(`${welcome}_1_${step}`, 0, name as keyof typeof counted, Math.round(count * share));
  campaignCounts.endUnit(true);
  campaignCounts.write();
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

it('shows sequences, their steps with the people at each, and the editor', async () => {
  await open.examine(
    {
      sequences: 'sequences',
      sequence: `sequences/${welcome}`,
      'sequence-editor': `sequences/${welcome}?edit=1`,
      'sequence-new': 'sequences/new',
    },
    client,
  );
  await open.examine({ 'sequences-empty': 'sequences' }, empty);
});

it('creates a sequence from a list of steps, activates, changes and pauses it', async () => {
  const window = await open.member(client, 'sender', DESKTOP);
  const { page } = window;
  await open.visit(window, 'sequences/new', client);
  await page.getByLabel('Name').fill('After sign-up');
  await page.getByRole('combobox', { name: 'Group' }).selectOption(group);
  await page.getByRole('button', { name: 'Message' }).click();
  await page.getByRole('combobox', { name: 'Template' }).selectOption(templateId);
  await page.getByRole('button', { name: 'Wait' }).click();
  await page.getByLabel('Duration').fill('2');
  await page.getByRole('button', { name: 'Move step 2 up' }).click();
  await page.getByRole('button', { name: 'Condition' }).click();
  await page.getByRole('button', { name: 'Remove step 3' }).click();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'Activate' }).click();
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  const id = /seq_\w+/.exec(page.url())?.[0] ?? '';
  const read = async () => (await client.get<Created>(`/web-setup/sequences/${id}`)).data.sequence;
  expect((await read()).steps).toEqual([{ wait: '2d' }, { send: { from: 'news@news.test', templateId } }]);
  expect((await read()).status).toBe('active');
  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByText('This sequence is in use').waitFor();
  await page.getByLabel('Subject').fill('Welcome');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Welcome', { exact: true }).first().waitFor();
  expect(await read()).toMatchObject({ version: 2, status: 'active' });
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('button', { name: 'Activate' }).waitFor();
  expect((await read()).status).toBe('paused');
  await window.context.close();
});
