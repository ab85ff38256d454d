import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { ApiClient, CreatedDomain } from '../support/api-client.ts';
import { png } from '../support/images.ts';
import type { InProcess } from '../support/in-process-daemon.ts';
import { PLATFORM } from '../support/in-process-daemon.ts';
import type { Input } from './input.ts';

/** What a person does in one window. */
export interface Session {
  daemon: InProcess;
  page: Page;
  input: Input;
  /** The account that the window shows. */
  client: ApiClient;
  /** The operator who is signed in. */
  email: string;
  /** Part of names that no other session uses. */
  name: string;
}

/** The only reason for which most people open a page, with an effect that the API or the page shows. */
interface MainTask {
  /** The title of the page in the navigation from which the task starts; null: what is shown. */
  page: string | null;
  does: string;
  /** Whether it ends at a page without the navigation. */
  endsAlone?: boolean;
  /** Clicks and choices that it takes at most, from its page. */
  maxClicks?: number;
  run(session: Session): Promise<void>;
}

/** In a message. */
const FOOTER = '<p>{{company_address_html}}{{unsubscribe_email_html}}</p>';
const MEMBER = `delivered@simulator.${PLATFORM}`;

/** By the file or folder of the page in src/console/pages. */
export const MAIN_TASKS: Readonly<Record<string, MainTask>> = {
  'sign-in': {
    page: null,
    does: 'signs in with a link',
    endsAlone: true,
    run: async ({ daemon, page, input, email }) => {
      const person = daemon.people.list().find((each) => each.email === email);
      const created = await daemon.people.issueLink(person?.id ?? '', 'sign-in');
      if (!('link' in created)) throw new Error(created.message);
      await showNavigation(page, input);
      await input.press(page.getByRole('button', { name: /^Your menu: / }));
      await input.press(page.getByRole('button', { name: 'Sign out' }));
      const link = `${daemon.consoleUrl}/console/#/link/${created.link.token}`;
      await input.press(page.getByText('I have a sign-in link'));
      await input.enter(page.getByLabel('Sign-in link'), link);
      await input.press(page.getByRole('button', { name: 'Sign in', exact: true }));
      await page.getByRole('heading', { level: 1, name: 'How will you sign in next time?' }).waitFor();
      const { signedInAt } = daemon.people.list().find((each) => each.email === email) ?? {};
      expect(signedInAt).toMatch(/^\d{4}-/);
    },
  },
  'first-sign-in': {
    page: null,
    does: 'creates a passkey',
    run: async ({ daemon, page, input, email }) => {
      await input.press(page.getByRole('button', { name: 'Create a passkey' }));
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
      expect(daemon.people.list().find((each) => each.email === email)?.passkeys).toBe(1);
    },
  },
  overview: {
    page: 'Overview',
    does: 'shows a problem and opens what has it',
    run: async ({ page, input, name }) => {
      await input.press(page.getByRole('link', { name: `pending-${name}.test: not verified yet` }));
      await page.getByRole('heading', { level: 1, name: `pending-${name}.test` }).waitFor();
    },
  },
  messages: {
    page: 'Messages',
    does: 'finds a message and shows what happened to it',
    // Three with the link to the page, also for a bounce.
    maxClicks: 2,
    run: async ({ page, input }) => {
      await page.getByRole('link', { name: 'Your invoice' }).waitFor();
      await input.enter(page.getByLabel('Recipient or message id'), MEMBER);
      await input.press(page.getByRole('button', { name: 'Search', exact: true }));
      await page.getByRole('link', { name: 'Your invoice' }).waitFor({ state: 'detached' });
      await input.press(page.getByRole('link', { name: 'Your order' }));
      await page.getByText('Accepted by the server of the recipient').waitFor();
    },
  },
  domains: {
    page: 'Domains',
    does: 'registers a domain and verifies it',
    run: async ({ daemon, page, input, client, name }) => {
      const domain = `new-${name}.test`;
      await input.press(page.getByRole('link', { name: 'Add a domain' }));
      await shown(page, 'Add a domain');
      await input.enter(page.getByLabel('Domain name'), domain);
      await input.press(page.getByRole('radio', { name: /^Marketing/ }));
      await input.press(page.getByRole('button', { name: 'Register' }));
      await shown(page, domain);
      const listed = await client.get<{ domains: { domain: string; domainId: string }[] }>(
        '/web-setup/domains',
      );
      const id = listed.data.domains.find((each) => each.domain === domain)?.domainId;
      const { dnsRecords } = (await client.get<CreatedDomain>(`/web-setup/domains/${id}/dns-records`)).data;
      daemon.dns.publish(dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
      await daemon.publishPlatform();
      await input.press(page.getByRole('link', { name: 'Next: Check the records' }));
      await input.press(page.getByRole('button', { name: 'Check now' }));
      await page.locator('.notice', { hasText: `Mail may be sent from ${domain}.` }).waitFor();
      const { data } = await client.get<{ status: string; useCase: string }>(`/web-setup/domains/${id}`);
      expect(data).toMatchObject({ status: 'SUCCESS', useCase: 'mk' });
    },
  },
  queue: {
    page: 'Queue',
    does: 'pauses a destination and resumes it',
    run: async ({ page, input, client, name }) => {
      const target = `paused-${name}.test`;
      const controls = async () => {
        const path = '/web-setup/queue/controls';
        return (await client.get<{ controls: { target: string }[] }>(path)).data.controls;
      };
      const form = page.getByRole('form', { name: 'Pause or reject mail' });
      await input.enter(form.getByLabel('Target'), target);
      await input.enter(form.getByLabel('Reason'), 'Under review');
      await input.press(form.getByRole('button', { name: 'Apply' }));
      const row = page.getByRole('row', { name: target });
      await row.waitFor();
      expect(await controls()).toMatchObject([{ target }]);
      await input.press(row.getByRole('button', { name: 'Resume' }));
      await input.press(page.getByRole('dialog').getByRole('button', { name: 'Resume' }));
      await row.waitFor({ state: 'detached' });
      expect(await controls()).toEqual([]);
    },
  },
  contacts: {
    page: 'Contacts',
    does: 'adds a contact with consent',
    run: async ({ page, input, client }) => {
      const email = 'ada@example.net';
      await input.press(page.getByRole('button', { name: 'Add a contact' }));
      const form = page.getByRole('form', { name: 'Add a contact' });
      await input.enter(form.getByLabel('Email address'), email);
      await input.choose(form.getByRole('combobox', { name: 'Consent' }), 'Web form');
      await input.press(form.getByRole('button', { name: 'Add' }));
      await page.getByRole('link', { name: email }).waitFor();
      const { data } = await client.get<{ contacts: object[] }>(`/web-setup/contacts?search=${email}`);
      expect(data.contacts).toMatchObject([{ email, consentMethod: 'web_form' }]);
    },
  },
  groups: {
    page: 'Groups',
    does: 'creates a group and adds a member',
    run: async ({ page, input, client }) => {
      const email = 'grace@example.net';
      await input.press(page.getByRole('button', { name: 'New group' }));
      await input.enter(page.getByLabel('Name'), 'Offers');
      await input.press(page.getByRole('button', { name: 'Create' }));
      await shown(page, 'Offers');
      await input.press(page.getByRole('button', { name: 'Add a member' }));
      const form = page.getByRole('form', { name: 'Add a member' });
      await input.enter(form.getByLabel('Email address'), email);
      await input.choose(form.getByRole('combobox', { name: 'Consent' }), 'Web form');
      await input.press(form.getByRole('button', { name: 'Add' }));
      await page.getByRole('row', { name: email }).waitFor();
      const groups = '/web-setup/contacts/subscription-groups';
      const listed = await client.get<{ groups: { subscriptionGroupId: string; name: string }[] }>(groups);
      const id = listed.data.groups.find((each) => each.name === 'Offers')?.subscriptionGroupId;
      const members = await client.get<{ subscribers: object[] }>(`${groups}/${id}/subscriptions`);
      expect(members.data.subscribers).toMatchObject([{ email, consentMethod: 'web_form' }]);
    },
  },
  campaigns: {
    page: 'Campaigns',
    does: 'composes a campaign and sends it',
    maxClicks: 7,
    run: async ({ page, input, client, name }) => {
      await input.press(page.getByRole('link', { name: 'New campaign' }));
      await shown(page, 'New campaign');
      await input.enter(page.getByLabel('Name'), 'Spring offer');
      await input.choose(page.getByRole('combobox', { name: 'Group' }), 'News');
      await input.press(page.getByRole('button', { name: 'Next: Content' }));
      await shown(page, 'Spring offer');
      await input.choose(page.getByRole('combobox', { name: 'Template' }), 'Newsletter');
      await page.frameLocator('iframe').getByText('1 Main St').waitFor();
      await input.press(page.getByRole('link', { name: 'Next: Review' }));
      await page.getByText('Everything is in order.').waitFor();
      await input.press(page.getByRole('button', { name: 'Send the campaign' }));
      const dialog = page.getByRole('dialog');
      await dialog.getByText('News: 1 of 1 active members').waitFor();
      await dialog.getByText(`news@news-${name}.test`).waitFor();
      await input.press(dialog.getByRole('button', { name: 'Send the campaign' }));
      await page.getByText('From sent to clicked').waitFor();
      const { data } = await client.get<{ campaigns: object[] }>('/web-setup/campaigns');
      expect(data.campaigns).toContainEqual(
        expect.objectContaining({
          name: 'Spring offer',
          status: expect.stringMatching(/^(?:sending|sent)$/),
        }),
      );
    },
  },
  segments: {
    page: 'Segments',
    does: 'saves a filter as a segment',
    run: async ({ page, input, client }) => {
      await input.press(page.getByRole('link', { name: 'New segment' }));
      await shown(page, 'New segment');
      await input.enter(page.getByLabel('Name', { exact: true }), 'In the news');
      await input.choose(page.getByRole('combobox', { name: 'Field' }), 'Group');
      await input.choose(page.getByRole('combobox', { name: 'Value' }), 'News');
      await page.getByText('1 contact', { exact: true }).waitFor();
      await input.press(page.getByRole('button', { name: 'Save segment' }));
      await shown(page, 'In the news');
      const { data } = await client.get<{ segments: object[] }>('/web-setup/segments');
      expect(data.segments).toMatchObject([{ name: 'In the news', count: 1 }]);
    },
  },
  sequences: {
    page: 'Sequences',
    does: 'sends a message to those who join a group',
    run: async ({ page, input, client }) => {
      await input.press(page.getByRole('link', { name: 'New sequence' }));
      await shown(page, 'New sequence');
      await input.enter(page.getByLabel('Name'), 'After sign-up');
      await input.choose(page.getByRole('combobox', { name: 'Group' }), 'News');
      await input.press(page.getByRole('button', { name: 'Message' }));
      await input.choose(page.getByRole('combobox', { name: 'Template' }), 'Newsletter');
      await input.press(page.getByRole('button', { name: 'Save' }));
      await shown(page, 'After sign-up');
      await input.press(page.getByRole('button', { name: 'Activate' }));
      await page.getByRole('button', { name: 'Pause' }).waitFor();
      const { data } = await client.get<{ sequences: object[] }>('/web-setup/sequences');
      expect(data.sequences).toMatchObject([{ name: 'After sign-up', status: 'active' }]);
    },
  },
  media: {
    page: 'Images',
    does: 'finds an image by its name',
    run: async ({ page, input, client }) => {
      await client.call('POST', '/web-setup/media?name=harbor.png', {
        rawBody: png(),
        headers: { 'Content-Type': 'image/png' },
      });
      await input.enter(page.getByRole('searchbox', { name: 'Search by name' }), 'harbor');
      await input.press(page.getByRole('button', { name: /^harbor\.png/ }));
      const image = page.getByRole('dialog', { name: 'harbor.png' });
      await input.press(image.getByRole('button', { name: 'Close' }));
      await image.waitFor({ state: 'detached' });
    },
  },
  templates: {
    page: 'Templates',
    does: 'creates a template',
    maxClicks: 5,
    run: async ({ page, input, client }) => {
      const html = `<h1>Welcome</h1>${FOOTER}`;
      await input.press(page.getByRole('link', { name: 'New template' }));
      await shown(page, 'New template');
      await input.press(page.getByRole('button', { name: 'Your own HTML' }));
      await input.enter(page.getByLabel('Name'), 'Welcome');
      await input.enter(page.getByLabel('Subject'), 'Welcome to the shop');
      await input.enter(page.getByRole('textbox', { name: 'HTML' }), html);
      // Phones show the code or the preview.
      const preview = page.getByRole('tab', { name: 'Preview' });
      if ((await preview.count()) > 0) await input.press(preview);
      await page.frameLocator('iframe').getByRole('heading', { name: 'Welcome' }).waitFor();
      await input.press(page.getByRole('button', { name: 'Save' }));
      await shown(page, 'Welcome');
      const { data } = await client.get<{ templates: object[] }>('/web-setup/templates?search=welcome');
      expect(data.templates).toMatchObject([{ name: 'Welcome', subject: 'Welcome to the shop', html }]);
    },
  },
  suppressions: {
    page: 'Suppressions',
    does: 'removes the suppression of an address with a reason',
    run: async ({ page, input, client }) => {
      await input.press(page.getByRole('link', { name: 'blocked@example.net' }));
      await shown(page, 'blocked@example.net');
      await input.press(page.getByRole('button', { name: 'Remove' }));
      const dialog = page.getByRole('dialog');
      await input.enter(dialog.getByLabel('Reason, for the history'), 'The mailbox exists again');
      await input.press(dialog.getByRole('button', { name: 'Remove' }));
      await page.getByText('This address is not blocked').waitFor();
      const { data } = await client.get<{ suppressions: object[] }>('/web-setup/suppressions');
      expect(data.suppressions).toEqual([]);
    },
  },
  webhooks: {
    page: 'Webhooks',
    does: 'creates a webhook for chosen events',
    run: async ({ page, input, client }) => {
      const url = 'https://hooks.example.net/in';
      await input.press(page.getByRole('button', { name: 'Add a webhook' }));
      await input.enter(page.getByLabel('Address of the endpoint'), url);
      await input.enter(page.getByLabel('Name'), 'Shop');
      await input.press(page.getByRole('checkbox', { name: 'Rejected permanently' }));
      await input.press(page.getByRole('button', { name: 'Add', exact: true }));
      expect(await newSecret(page)).toMatch(/^whsec_/);
      await input.press(page.getByRole('button', { name: 'I have stored it' }));
      await shown(page, 'Shop');
      const { data } = await client.get<{ webhooks: object[] }>('/web-setup/webhooks');
      expect(data.webhooks).toMatchObject([{ name: 'Shop', url, events: ['email_bounced'] }]);
    },
  },
  inbound: {
    page: 'Inbound mail',
    does: 'creates a route for an address',
    run: async ({ page, input, client, name }) => {
      const match = `support@in.${name}.test`;
      await input.press(page.getByRole('link', { name: 'Routes', exact: true }));
      await input.press(page.getByRole('button', { name: 'New route' }));
      const form = page.getByRole('form', { name: 'New route' });
      await input.enter(form.getByLabel('Name'), 'Support');
      await input.choose(form.getByRole('combobox', { name: 'Domain' }), `${name}.test`);
      await input.enter(form.getByRole('textbox', { name: 'Address' }), match);
      await input.press(form.getByRole('button', { name: 'Create' }));
      await page.getByText(`Next: publish the MX record of in.${name}.test`).waitFor();
      const { data } = await client.get<{ routes: object[] }>('/web-setup/inbound-routes');
      expect(data.routes).toMatchObject([{ name: 'Support', match }]);
    },
  },
  reports: {
    page: 'Reputation',
    does: 'shows the failures of encryption in another period',
    run: async ({ page, input, name }) => {
      await input.press(page.getByRole('link', { name: 'Encryption (TLS)' }));
      await input.choose(page.getByLabel('Domain'), `${name}.test`);
      await input.choose(page.getByLabel('Period'), 'The last 90 days');
      await expect.poll(() => page.url()).toContain('days=90');
      await page.locator('.figure', { hasText: 'Encrypted' }).getByText('90%').waitFor();
      await page.getByRole('region', { name: 'Failures' }).getByText('certificate-expired').waitFor();
    },
  },
  inbox: {
    page: 'Inbox',
    does: 'reads a mail to postmaster',
    run: async ({ page, input, client, name }) => {
      const readAt = async () => {
        const { data } = await client.get<{ mails: { subject: string; readAt: string | null }[] }>(
          '/web-setup/installation/inbox',
        );
        return data.mails.find(({ subject }) => subject === `Question ${name}`)?.readAt;
      };
      expect(await readAt()).toBeNull();
      await input.press(page.getByRole('link', { name: `Question ${name}` }));
      await page.getByText('Why was it rejected?').waitFor();
      await expect.poll(readAt).toMatch(/^\d{4}-/);
    },
  },
  keys: {
    page: 'Keys',
    does: 'creates a key, which works',
    run: async ({ daemon, page, input, client }) => {
      await input.press(page.getByRole('button', { name: 'Create a key' }));
      const form = page.getByRole('form', { name: 'Create a key' });
      await input.enter(form.getByRole('textbox', { name: /^Name/ }), 'Shop');
      await input.press(form.getByRole('checkbox', { name: /^transactional/ }));
      await input.press(form.getByRole('checkbox', { name: /^setup/ }));
      await input.press(form.getByRole('button', { name: 'Create the key' }));
      const secret = await newSecret(page);
      await input.press(page.getByRole('button', { name: 'I have stored it' }));
      expect(await statusWith(daemon, client.accountId, secret)).toBe(200);
    },
  },
  api: {
    page: 'API',
    does: 'finds an operation, calls it and returns to the list',
    run: async ({ page, input, client }) => {
      await input.enter(page.getByLabel('Filter'), 'create subscription group');
      await input.press(page.getByRole('link', { name: /^Create a subscription group/ }));
      await shown(page, 'API');
      await input.enter(page.getByRole('textbox', { name: 'Body' }), '{"name": "Called"}');
      await input.press(page.getByRole('button', { name: 'Send the request' }));
      const response = page.getByRole('region', { name: 'Response' });
      await response.getByText(/^20[01]$/).waitFor();
      const { data } = await client.get<{ groups: object[] }>('/web-setup/contacts/subscription-groups');
      expect(data.groups).toContainEqual(expect.objectContaining({ name: 'Called' }));
      await input.press(page.getByRole('navigation', { name: 'Where you are' }).getByRole('link'));
      await page.getByRole('link', { name: /^Create a subscription group/ }).waitFor();
    },
  },
  people: {
    page: 'People',
    does: 'invites a person with a role',
    run: async ({ daemon, page, input, client, name }) => {
      const email = `invited-${name}@example.com`;
      await input.press(page.getByRole('button', { name: 'Invite a person' }));
      const drawer = page.getByRole('dialog', { name: 'Invite a person' });
      await input.enter(drawer.getByLabel('Email address'), email);
      await input.choose(drawer.getByLabel(/^Role/), 'Author');
      await input.press(drawer.getByRole('button', { name: 'Invite', exact: true }));
      expect(await newSecret(page)).toContain('/console/#/link/');
      await input.press(page.getByRole('button', { name: 'I have stored it' }));
      await page.getByRole('rowheader', { name: email }).waitFor();
      const person = daemon.people.list().find((each) => each.email === email);
      expect(person && daemon.people.standing(person, client.accountId)).toBe('author');
    },
  },
  audit: {
    page: 'Audit log',
    does: 'shows what a person did, and exports it',
    run: async ({ page, input, email }) => {
      await input.press(page.getByRole('link', { name: 'Whole installation' }));
      await input.choose(page.getByLabel('Person'), email);
      await expect.poll(() => page.url()).toContain('personId=person_');
      await page.getByRole('row', { name: email }).first().waitFor();
      const people = () => page.locator('tbody td:nth-child(2)').allTextContents();
      await expect.poll(async () => new Set(await people())).toEqual(new Set([email]));
      const download = page.waitForEvent('download');
      await input.press(page.getByRole('button', { name: 'Export as CSV' }));
      expect(readFileSync(await (await download).path(), 'utf8')).toContain(`"${email}"`);
    },
  },
  system: {
    page: 'System',
    does: 'shows the checks that did not pass, then all',
    run: async ({ page, input }) => {
      const checks = page.getByRole('region', { name: 'Checks' });
      const causes = checks.getByRole('listitem');
      // The checks take longer than everything else.
      await causes.first().waitFor();
      const passed = checks.getByText('passes', { exact: true });
      expect(await passed.count()).toBe(0);
      const count = await causes.count();
      await input.press(page.getByRole('link', { name: 'Show all checks' }));
      await passed.first().waitFor();
      expect(await causes.count()).toBeGreaterThan(count);
    },
  },
  accounts: {
    page: 'Accounts',
    does: 'creates an account, whose key works',
    run: async ({ daemon, page, input, name }) => {
      await input.press(page.getByRole('button', { name: 'Create an account' }));
      const form = page.getByRole('form', { name: 'Create an account' });
      await input.enter(form.getByLabel('Name', { exact: true }), 'New Shop');
      await input.enter(form.getByLabel('Account id'), `acct_new_${name}`);
      await input.press(form.getByRole('button', { name: 'Create the account' }));
      const secret = await newSecret(page);
      await input.press(page.getByRole('button', { name: 'I have stored it' }));
      await page.getByText(`The account acct_new_${name} was created`).waitFor();
      expect(await statusWith(daemon, `acct_new_${name}`, secret)).toBe(200);
    },
  },
  settings: {
    page: 'Settings',
    does: 'changes the company',
    run: async ({ client, page, input }) => {
      const form = page.getByRole('form', { name: 'Company and address' });
      await input.enter(form.getByLabel('Company, as in the footer'), 'New Company Ltd');
      await input.press(form.getByRole('button', { name: 'Save' }));
      await page.getByText('The account was saved').waitFor();
      const { data } = await client.get<{ companyName: string }>('/web-setup/account');
      expect(data.companyName).toBe('New Company Ltd');
    },
  },
  profile: {
    page: 'Your profile',
    does: 'replaces a passkey',
    run: async ({ daemon, page, input, email }) => {
      await input.press(
        page.getByRole('row', { name: 'First passkey' }).getByRole('button', { name: 'Remove' }),
      );
      await input.press(page.getByRole('dialog').getByRole('button', { name: 'Remove' }));
      await page.getByText('The passkey was removed').waitFor();
      await input.enter(page.getByLabel('Name of the passkey'), 'Laptop');
      await input.press(page.getByRole('button', { name: 'Add a passkey' }));
      await page.getByRole('rowheader', { name: 'Laptop' }).waitFor();
      expect(daemon.people.list().find((each) => each.email === email)?.passkeys).toBe(1);
    },
  },
};

/** Tasks of pages that have another main task. */
export const FURTHER_TASKS: Readonly<Record<string, MainTask>> = {
  import: {
    page: 'Contacts',
    does: 'imports a list',
    maxClicks: 4,
    run: async ({ page, input, client }) => {
      await input.press(page.getByRole('link', { name: 'Import contacts' }));
      await shown(page, 'Import contacts');
      const chooser = page.waitForEvent('filechooser');
      await input.press(page.getByLabel('File', { exact: true }));
      await (await chooser).setFiles({
        name: 'list.csv',
        mimeType: 'text/csv',
        buffer: Buffer.from('email,consentMethod\nlist@example.net,web_form\n'),
      });
      await input.press(page.getByRole('button', { name: 'Check the file' }));
      await page.getByText('1 of 1 rows can be imported').waitFor();
      await input.press(page.getByRole('button', { name: 'Import', exact: true }));
      await expect.poll(() => page.url()).toContain('/contacts/import/import_');
      await expect
        .poll(async () => (await client.get('/web-setup/contacts?search=list@example.net')).text)
        .toContain('list@example.net');
    },
  },
  'test-message': {
    page: null,
    does: 'sends a test message of a draft',
    maxClicks: 2,
    run: async ({ daemon, page, input, client, name, email }) => {
      const { data } = await client.get<{ templates: { templateId: string; name: string }[] }>(
        '/web-setup/templates',
      );
      const templateId = data.templates.find((each) => each.name === 'Newsletter')?.templateId;
      const created = await client.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
        name: 'Test',
        prepared: { templateId, from: `news@news-${name}.test` },
      });
      const { campaignId } = created.data.campaign;
      await page.goto(
        `${daemon.consoleUrl}/console/campaigns/${campaignId}?account=${client.accountId}&step=content`,
      );
      await page.frameLocator('iframe').getByText('1 Main St').waitFor();
      await input.press(page.getByRole('button', { name: 'Send test' }));
      await page.getByText(`The test message to ${email} was accepted`).waitFor();
    },
  },
};

/** Waits until a page is shown, and its heading has the focus, so that screen readers read it. */
export async function shown(page: Page, title: string): Promise<void> {
  const heading = page.getByRole('heading', { level: 1, name: title, exact: true });
  await expect
    .poll(() => heading.evaluate((element) => element.ownerDocument.activeElement === element))
    .toBe(true);
}

/** On a phone, opens the navigation. */
export async function showNavigation(page: Page, input: Input): Promise<void> {
  const menu = page.getByRole('button', { name: 'Menu', exact: true, expanded: false });
  if (await menu.isVisible()) await input.press(menu);
}

/** The first secret in the dialog that shows new ones. */
function newSecret(page: Page): Promise<string | null> {
  return page.getByRole('dialog').locator('pre').first().textContent();
}

/** The status of a request with a key. */
async function statusWith({ url }: InProcess, accountId: string, secret: string | null): Promise<number> {
  const headers = { 'X-Api-Key': secret ?? '', 'X-Id': accountId };
  return (await fetch(`${url}/web-setup/account`, { headers })).status;
}
