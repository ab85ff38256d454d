import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PROVIDER_NAMES, type ProviderName } from '../../src/moves/exports.ts';
import { fixedKeys } from '../support/rsa-keys.ts';
import { createShell } from './run.ts';

const DATA = new URL('../data/moves/', import.meta.url).pathname;

let shell: ReturnType<typeof createShell>;
beforeEach(async () => {
  shell = createShell({ generateKey: fixedKeys() });
  await shell.run('account', 'create', '--name', 'Shop', '--id', 'shop');
});
afterEach(() => shell.remove());

const filesOf = (provider: ProviderName, ...names: string[]) =>
  (names.length > 0 ? names : readdirSync(join(DATA, provider)).filter((name) => name.endsWith('.json'))).map(
    (name) => join(DATA, provider, name),
  );

const move = (provider: string, files: readonly string[], ...args: string[]) =>
  shell.run('import-from', provider, ...files, '--account', 'shop', ...args);

const moved = (provider: ProviderName, ...names: string[]) =>
  shell.json('import-from', provider, ...filesOf(provider, ...names), '--account', 'shop', '--json');

const list = (...args: string[]) => shell.json(...args, '--account', 'shop', '--json');

interface Suppression {
  email: string;
  reason: string;
  stream: string;
}
/** The suppressions of the account, as words in order of their addresses. */
const suppressions = async () => {
  const found: Suppression[] = await list('suppression', 'list');
  return found.map(({ email, reason, stream }) => `${email} ${reason} ${stream}`).toSorted();
};

/** A file with this content. */
function written(name: string, content: string | Buffer): string {
  const dir = join(dirname(shell.file), 'exports');
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, name), content);
  return join(dir, name);
}

/** Everything that an import can create. */
const contents = async () => ({
  suppressions: await suppressions(),
  domains: (await list('domain', 'list')).map(
    ({ domain, useCaseId }: Record<string, string>) => `${domain} ${useCaseId}`,
  ),
  groups: await list('group', 'list'),
  contacts: await list('contacts', 'list'),
  templates: await list('template', 'list'),
  partials: await list('partial', 'list'),
  webhooks: await list('webhook', 'list'),
});

describe.each(PROVIDER_NAMES)('import-from %s', (provider) => {
  it('shows everything in a dry run that the import then does, and the second run changes nothing', async () => {
    const before = await contents();
    const files = filesOf(provider);
    const args = ['import-from', provider, ...files, '--account', 'shop', '--json'];
    const planned = await shell.json(...args, '--dry-run');
    expect(await contents()).toEqual(before);
    const first = await shell.json(...args);
    expect(outcomes(planned)).toEqual(outcomes(first));
    expect([planned.changed, first.changed]).toEqual([true, true]);
    const after = await contents();
    const second = await shell.json(...args);
    expect(second.changed).toBe(false);
    expect(await contents()).toEqual(after);
    expect((await move(provider, files)).out).toContain('Nothing has changed');
  });
});

interface Outcome {
  status: string;
  name?: string;
  domain?: string;
  url?: string;
  notes: string[];
}
/** What a report states, without ids. */
function outcomes(report: Record<string, Outcome[] & Record<string, unknown>>) {
  const { suppressions: added, contacts } = report;
  const rows = ['domains', 'groups', 'templates', 'webhooks'].flatMap((kind) =>
    (report[kind] ?? []).map(({ status, name, domain, url, notes }) => [
      kind,
      status,
      name ?? domain ?? url,
      notes,
    ]),
  );
  return { rows, added, contacts };
}

describe('suppressions', () => {
  it('of Postmark distinguish who left from who is blocked', async () => {
    await moved('postmark', 'suppressions.json');
    expect(await suppressions()).toEqual([
      'angry@example.net complaint all',
      'blocked@example.net manual all',
      'bounced@example.net hard_bounce all',
      'left@example.net unsubscribe mk',
    ]);
    expect((await list('suppression', 'list', '--email', 'angry@example.net'))[0].createdAt).toBe(
      '2025-01-09T16:00:00.000Z',
    );
  });

  it.each([
    [
      'sendgrid',
      ['bounces.json', 'spam_reports.json', 'unsubscribes.json', 'groups.json'],
      'group@example.net unsubscribe mk',
    ],
    ['mailgun', ['bounces.json', 'complaints.json', 'unsubscribes.json'], null],
  ] as const)(
    'of %s are one file of each kind; temporary failures are left out',
    async (provider, names, more) => {
      const report = await moved(provider, ...names);
      expect(report.suppressions).toMatchObject({
        rejected: 1,
        rejectedRows: [{ reason: expect.stringContaining('temporary') }],
      });
      expect(await suppressions()).toEqual([
        'angry@example.net complaint all',
        'bounced@example.net hard_bounce all',
        ...(more === null ? [] : [more]),
        'left@example.net unsubscribe mk',
      ]);
    },
  );

  it.each(['resend', 'ses'] as const)('of %s have bounces and complaints', async (provider) => {
    await moved(provider, 'suppressions.json');
    expect(await suppressions()).toEqual([
      'angry@example.net complaint all',
      'bounced@example.net hard_bounce all',
    ]);
  });

  it('are read from the CSV of the provider, too, and stop at the limit of the account', async () => {
    await shell.run('account', 'limits', 'shop', '--suppressions', '1');
    const file = written(
      'bounces.csv',
      'status,reason,email,created\n5.1.1,no,a@example.net,1672653600\n5.1.1,no,b@example.net,1672653600\n',
    );
    const { status, err } = await move('sendgrid', [file]);
    expect([status, err]).toEqual([1, expect.stringContaining('suppressions')]);
    expect(await suppressions()).toHaveLength(1);
  });
});

describe('domains', () => {
  it('are pending, with their records; those of others are left out', async () => {
    const { domains } = await moved('postmark', 'domains.json');
    expect(domains).toMatchObject([
      { domain: 'wildbit.example.com', useCaseId: 'tx-local', status: 'created' },
      { domain: 'shop.example.org', status: 'created' },
    ]);
    expect(domains[0].dnsRecords.length).toBeGreaterThan(4);
    expect(await list('domain', 'list')).toMatchObject([{ status: 'PENDING' }, { status: 'PENDING' }]);
    expect((await moved('mailgun', 'domains.json')).domains).toMatchObject([
      { domain: 'wildbit.example.com', status: 'exists' },
      { domain: 'sandbox3f1c.mailgun.org', status: 'rejected', notes: ['is a domain of Mailgun'] },
    ]);
    expect((await moved('ses', 'identities.json')).domains[1]).toMatchObject({
      domain: 'ann@example.org',
      status: 'rejected',
    });
  });

  it('are registered for the use cases that are named, up to the limit, which a dry run knows', async () => {
    await shell.run('account', 'limits', 'shop', '--domains', '3');
    const args = [
      ...filesOf('postmark', 'domains.json'),
      '--account',
      'shop',
      '--use-case',
      'tx-local',
      'mk-local',
      '--json',
    ];
    const statuses = (report: { domains: Outcome[] }) => report.domains.map(({ status }) => status);
    const expected = ['created', 'created', 'created', 'rejected'];
    expect(statuses(await shell.json('import-from', 'postmark', ...args, '--dry-run'))).toEqual(expected);
    expect(statuses(await shell.json('import-from', 'postmark', ...args))).toEqual(expected);
  });
});

describe('templates', () => {
  const content = async (name: string) => {
    const found: { name: string; templateId: string }[] = await list('template', 'list');
    const { subject, html, text, syntax, type } = await list(
      'template',
      'show',
      found.find((one) => one.name === name)?.templateId ?? '',
    );
    return { subject, html, text, syntax, type };
  };

  it('of Postmark are Liquid where they have sections, with their layout, else in the simple syntax', async () => {
    const { templates } = await moved('postmark', 'templates.json');
    expect(await content('receipt')).toMatchObject({
      syntax: 'liquid',
      subject: 'Receipt {{ number }}',
      html:
        '<html><body><h1>Thanks{% if customer | default: false %}, {{ customer.name }}{% endif %}</h1>\n' +
        '{% if lines | default: false %}{% for item in lines %}<p>{{ item.title }} by {{ seller.name }}: {{ item.price | raw }}</p>{% endfor %}{% endif %}' +
        '{% unless paid | default: false %}<p>Please pay.</p>{% endunless %}' +
        '<p><a href="{{ unsubscribe_url }}">Leave</a> {{ product }}</p></body></html>',
    });
    expect(await content('1236')).toMatchObject({
      syntax: 'simple',
      html: '<p>Hello {{user.name}}, <a href="{{action_url}}">reset</a></p>',
    });
    expect(templates.find(({ name }: { name: string }) => name === 'odd')).toMatchObject({
      status: 'rejected',
      line: 17,
      faults: [
        { field: 'html', line: 2, construct: '{{#if vip}}' },
        { field: 'html', line: 3, construct: '{{> footer}}' },
      ],
    });
  });

  it('of SendGrid have the active version, under the id that programs name', async () => {
    const { templates } = await moved('sendgrid', 'templates.json');
    expect(await content('d-40c6ab2fc6d84c4dbd6d3f6c4ad2b8d1')).toMatchObject({
      syntax: 'liquid',
      html: expect.stringMatching(
        /Hi \{\{ name \| default: "Customer" \}\}.*\{% elsif items \| default: false %\}.*\{\{ forloop\.index0 \}\} \{\{ item\.title \}\}\{% if item\.kind == "gift" %\} \(gift\)/s,
      ),
      text: 'Hi {{ name | default: "Customer" }}\nBye',
    });
    expect(templates[1].faults).toMatchObject([
      { line: 2, construct: '{{formatDate when "MMMM"}}' },
      { line: 2, construct: '{{#and a b}}' },
    ]);
  });

  it('of Mailgun, Resend and Amazon SES have subjects, defaults and links of ours', async () => {
    const { templates } = await moved('mailgun', 'templates.json');
    expect(await content('invoice')).toMatchObject({
      subject: 'Invoice {{ title }}',
      html: expect.stringContaining(
        '{% for item in rows %}<p>{{ item.name }} {{ currency }}</p>{% endfor %}',
      ),
    });
    expect(templates[1]).toMatchObject({ status: 'rejected', faults: [{ construct: '%recipient.name%' }] });
    await moved('resend', 'templates.json');
    expect(await content('order-shipped')).toMatchObject({
      syntax: 'simple',
      subject: '{{{PRODUCT|Your order}}} is on its way',
      html: '<p>{{{PRODUCT|Your order}}} for {{{PRICE}}} <a href="{{unsubscribe_url}}">Leave</a></p>',
    });
    await moved('ses', 'templates.json');
    expect(await content('Welcome')).toMatchObject({
      html: '<h1>Hello {{ name }}</h1>{% if plan | default: false %}<p>{{ plan.title }}</p>{% else %}<p>Free</p>{% endif %}<p>{{ order-id }} <a href="{{ unsubscribe_url }}">Leave</a></p>',
    });
  });

  it('of listmonk are templates, and layouts for campaigns', async () => {
    const { templates } = await moved('listmonk', 'templates.json');
    expect(await content('Order')).toMatchObject({
      type: 'transactional',
      subject: 'Order {{ number }}',
      html:
        '<p>Hello {{ customFields.fullName }}</p>{% if customFields.city == "London" %}UK{% elsif vip | default: false %}VIP{% else %}-{% endif %}' +
        '{% if items | default: false %}{% for item in items %}<li>{{ item.title }}</li>{% endfor %}{% endif %}<a href="https://shop.example.com">Shop</a>',
    });
    const [partial] = await list('partial', 'list');
    expect(await list('partial', 'show', partial.partialId)).toMatchObject({
      name: 'Default-campaign-template',
      html: '<html><body>Hi {{ firstName }}!\n{% block content %}{% endblock %}\n<a href="{{ unsubscribe_url }}">Leave</a> <a href="{{ preferences_url }}">Choose</a></body></html>',
    });
    expect(templates[2].faults).toMatchObject([
      { line: 3, construct: '{{ Date "2006-01-01" }}' },
      { line: 3, construct: '{{ .Subscriber.UUID }}' },
    ]);
  });

  it('with a name that the account has stay as they are', async () => {
    await moved('ses', 'templates.json');
    const [{ templateId }] = await list('template', 'list');
    await shell.run('template', 'update', templateId, '--account', 'shop', '--subject', 'Mine');
    const { templates } = await moved('ses', 'templates.json');
    expect(templates).toMatchObject([
      { status: 'exists', notes: [expect.stringContaining('other content')] },
    ]);
    expect((await content('Welcome')).subject).toBe('Mine');
  });
});

describe('webhooks', () => {
  it('are disabled, with our events, and their secret is printed once', async () => {
    const { webhooks } = await moved('postmark', 'webhooks.json');
    expect(webhooks).toMatchObject([
      {
        status: 'created',
        secret: expect.stringMatching(/^whsec_/),
        events: [
          'email_opened',
          'email_delivered',
          'email_bounced',
          'email_complained',
          'email_unsubscribed',
        ],
      },
      { status: 'created', events: ['email_bounced'] },
    ]);
    expect(await list('webhook', 'list')).toMatchObject([
      {
        isActive: false,
        format: 'postmark',
        filter: { streams: ['transactional'] },
        headerNames: ['X-Team', 'Authorization'],
      },
      { isActive: false, format: 'postmark', filter: { streams: ['marketing'] } },
    ]);
    const again = await moved('postmark', 'webhooks.json');
    expect(again.webhooks.map(({ status, secret }: Record<string, unknown>) => [status, secret])).toEqual([
      ['exists', null],
      ['exists', null],
    ]);
  });

  it('of other providers are merged by address', async () => {
    expect((await moved('mailgun', 'webhooks.json')).webhooks).toMatchObject([
      { url: 'https://www.example.com/hooks/mailgun', events: ['email_delivered', 'email_bounced'] },
      { url: 'https://ops.example.com/bounces', events: ['email_bounced'] },
    ]);
    expect((await moved('sendgrid', 'webhooks.json')).webhooks).toMatchObject([
      {
        notes: ['without an equivalent: group_resubscribe, account_status_change'],
        verificationKey: expect.stringMatching(/^[A-Za-z0-9+/=]{100,}$/),
      },
    ]);
    expect((await moved('resend', 'webhooks.json')).webhooks).toMatchObject([
      { events: ['email_sent', 'email_bounced'] },
    ]);
    expect((await moved('ses', 'event-destinations.json', 'subscriptions.json')).webhooks).toMatchObject([
      {
        url: 'https://www.example.com/hooks/ses',
        events: ['email_bounced', 'email_complained', 'email_delivered'],
      },
    ]);
  });
});

describe('contacts', () => {
  it('of listmonk join the groups of their lists, unless they left or have not confirmed', async () => {
    const report = await moved('listmonk', 'lists.json', 'subscribers.json');
    expect(report.contacts).toMatchObject({
      rows: 4,
      created: 4,
      subscribed: 4,
      optedOut: 1,
      suppressed: 1,
      unconfirmed: 1,
    });
    expect(await list('group', 'list')).toMatchObject([
      { name: 'Customers', activeSubscribers: 1, totalSubscribers: 1 },
      { name: 'Newsletter', activeSubscribers: 2, totalSubscribers: 3 },
    ]);
    const ada = await list('contacts', 'show', 'ada@example.net');
    expect(ada).toMatchObject({
      firstName: 'Ada',
      lastName: 'Lovelace',
      customFields: { city: 'London', projects: 3, fullName: 'Ada Lovelace' },
      globalStatus: 'active',
      consentMethod: 'imported',
    });
    expect(await suppressions()).toEqual(['cem@example.net manual all']);
    expect(await list('contacts', 'show', 'cem@example.net')).toMatchObject({
      globalStatus: 'suppressed',
    });
  });

  it('of two lists with the same name are in one group, and left it if they left one of them', async () => {
    const lists = (...statuses: string[]) =>
      statuses.map((subscription_status) => ({ name: 'News', optin: 'single', subscription_status }));
    const person = (email: string, ...statuses: string[]) => ({
      email,
      uuid: email,
      status: 'enabled',
      attribs: {},
      lists: lists(...statuses),
    });
    const results = [
      person('ada@example.net', 'confirmed', 'confirmed'),
      person('bob@example.net', 'confirmed', 'unsubscribed'),
      person('cem@example.net', 'unsubscribed', 'confirmed'),
    ];
    const file = written('same.json', JSON.stringify({ data: { results } }));
    const args = ['import-from', 'listmonk', file, '--account', 'shop', '--json'];
    const planned = await shell.json(...args, '--dry-run');
    const report = await shell.json(...args);
    expect(report.contacts).toMatchObject({ created: 3, subscribed: 3, optedOut: 2 });
    expect(planned.contacts).toEqual(report.contacts);
    expect(await list('group', 'list')).toMatchObject([
      { name: 'News', activeSubscribers: 1, totalSubscribers: 3 },
    ]);
  });

  it('of listmonk as CSV have no lists', async () => {
    const report = await moved('listmonk', 'subscribers.csv');
    expect(report).toMatchObject({ groups: [], contacts: { created: 2, suppressed: 1, subscribed: 0 } });
  });

  it('of Resend who unsubscribed get no marketing mail', async () => {
    await moved('resend', 'contacts.json');
    expect(await suppressions()).toEqual(['left@example.net unsubscribe mk']);
    expect(await list('contacts', 'show', 'left@example.net')).toMatchObject({
      globalStatus: 'unsubscribed',
    });
  });
});

describe('a file', () => {
  it.each([
    ['is empty', '', 'is empty'],
    ['is binary', Buffer.from([0x1f, 0x8b, 0, 0, 1, 2, 3]), 'is not text, but binary data'],
    [
      'is of another provider',
      '{"items":[{"address":"a@example.net","created_at":"now"}]}',
      'line 1: looks like suppressions of Mailgun, not of Postmark',
    ],
    [
      'is a CSV of another provider',
      'status,reason,email,created\n',
      'line 1: looks like suppressions of SendGrid, not of Postmark',
    ],
    [
      'is the answer to a failed request',
      '{"ErrorCode":10,"Message":"Bad or missing API token."}',
      'it is the answer "Bad or missing API token."',
    ],
    [
      'is not complete',
      '{"Suppressions":[{"EmailAddress":"a@example.net","SuppressionReason":"HardBounce"},\n{"EmailAdd',
      'line 2: ends in the middle of an entry: the file is not complete',
    ],
    [
      'has an entry of 10 MB',
      `{"Suppressions":[\n{"EmailAddress":"${'a'.repeat(10_000_000)}"}]}`,
      'line 2: an entry is longer than 8 MiB',
    ],
    ['is nested too deep', `{"Suppressions":[${'['.repeat(200)}`, 'is nested deeper than 64 levels'],
    ['has brackets that do not match', '{"Suppressions":[{"EmailAddress":1]}', 'brackets do not match'],
    [
      'has an entry of another kind',
      '{"Domains":[{"Name":"example.com","DKIMVerified":true}]}\n{"Suppressions":[{"EmailAddress":"a@example.net","SuppressionReason":"HardBounce"}]}',
      'line 2: has suppressions among domains of Postmark',
    ],
    [
      'has a field of another type',
      '{"Webhooks":[{"Url":7,"Triggers":{}}]}',
      'line 1: webhooks of Postmark: Url: ',
    ],
    [
      'has the names of templates only',
      '{"TotalCount":1,"Templates":[{"TemplateId":1,"Name":"a"}]}',
      'has only the names of templates',
    ],
    ['is a page of a website', '<html><body>Sign in</body></html>', 'is not an export of Postmark'],
  ])('that %s is refused, and nothing of the other files is imported', async (_, content, message) => {
    const before = await contents();
    const { status, err } = await move('postmark', [
      ...filesOf('postmark', 'suppressions.json'),
      written('bad.txt', content),
    ]);
    expect([status, err]).toEqual([1, expect.stringContaining(message)]);
    expect(err).toContain('bad.txt');
    expect(err).toContain('Nothing was imported');
    expect(await contents()).toEqual(before);
  });

  it('with rows that are not addresses imports the others, and names the lines', async () => {
    const csv = `EmailAddress,SuppressionReason,Origin,CreatedAt\n"=HYPERLINK(""https://evil.example"")",HardBounce,Recipient,\n${'x'.repeat(300_000)},HardBounce,Recipient,\nok@example.net,HardBounce,Recipient,2025-01-01T00:00:00Z\n`;
    const { status, out } = await move('postmark', [written('s.csv', csv)]);
    expect([status, out]).toEqual([
      3,
      expect.stringMatching(/3 rows, 1 created, 2 rejected\n.*line 2: .*\n.*line 3: is longer/),
    ]);
    expect(await suppressions()).toEqual(['ok@example.net hard_bounce all']);
  });

  it('with the same key twice, or the same entry twice, has each once', async () => {
    const entry = '{"Name":"old.example.com","Name":"dup.example.com","DKIMVerified":true}';
    const { domains } = await shell.json(
      'import-from',
      'postmark',
      written('d.json', `{"Domains":[${entry},${entry}]}`),
      '--account',
      'shop',
      '--json',
    );
    expect(domains).toMatchObject([{ domain: 'dup.example.com', status: 'created' }]);
    expect(domains).toHaveLength(1);
  });

  it('in UTF-16, as Windows writes it, is read; empty lists are named', async () => {
    const json = '{"Domains":[{"Name":"wide.example.com","DKIMVerified":true}]}';
    const files = [
      written('w.json', Buffer.from(`\ufeff${json}`, 'utf16le')),
      written('e.json', '{"Suppressions":[]}'),
    ];
    const report = await shell.json('import-from', 'postmark', ...files, '--account', 'shop', '--json');
    expect(report.files.map(({ kind }: { kind: string }) => kind)).toEqual(['domains', 'nothing']);
    expect(report.domains).toMatchObject([{ status: 'created' }]);
  });

  it('that is missing, and an unknown account, are errors', async () => {
    await expect(move('postmark', ['/nowhere.json'])).rejects.toThrow('/nowhere.json does not exist');
    const { status, err } = await shell.run('import-from', 'ses', ...filesOf('ses'), '--account', 'none');
    expect([status, err]).toEqual([1, 'postrider: There is no account none']);
  });
});
