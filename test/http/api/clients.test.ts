import { afterAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import { forEachLimit } from '../../../src/http/api/accounts/account.ts';
import { type OpenApiDocument, resolveParameters } from '../../../src/http/openapi/document.ts';
import { emailIdentifier, phoneIdentifier } from '../../../src/mail/identifier.ts';
import { startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomain } from '../../support/store.ts';

/** What client libraries of this interface rely on: consent evidence, opt-outs, read-back fields, paging. */
const daemon = await startInProcess();
afterAll(() => daemon.stop());

const CONTACTS = '/web-setup/contacts';
const GROUPS = '/web-setup/contacts/subscription-groups';
const ADA = 'ada@example.net';
const ADA_ID = emailIdentifier(ADA);
const ADA_PATH = `${CONTACTS}/${ADA_ID}`;
const THEN = '2025-05-01T08:00:00.000Z';
const EVIDENCE = {
  consentIpAddress: '2001:db8::1',
  consentUserAgent: 'Browser/1',
  consentTimestamp: THEN,
};

type Fields = Record<string, unknown>;
interface OneContact {
  contact: Fields & { globalStatus: string; createdAt: string };
  warnings?: string[];
}
interface Joined {
  message: string;
  subscriber: Fields & { isActive: boolean };
  warnings?: string[];
}

/** The evidence that a contact shows. */
function evidenceOf(contact: Fields): Fields {
  return Object.fromEntries(Object.entries(contact).filter(([field]) => field in EVIDENCE));
}

async function start() {
  const api = await daemon.account('A');
  const made = await api.post<{ group: Fields & { subscriptionGroupId: string } }>(GROUPS, { name: 'News' });
  const { group } = made.data;
  const members = `${GROUPS}/${group.subscriptionGroupId}/subscriptions`;
  return {
    api,
    group,
    members,
    member: `${members}/${ADA_ID}`,
    add: (body: object = {}) => api.post<OneContact>(CONTACTS, { email: ADA, ...body }),
    write: (method: string, path: string, body: object) =>
      api.call<OneContact & Joined>(method, path, { body }),
    contact: async () => (await api.get<OneContact>(ADA_PATH)).data.contact,
    unsubscribedEvents: async () => {
      const { events } = (await api.get<{ events: (Fields & { event: string })[] }>('/web-setup/events'))
        .data;
      return events.filter(({ event }) => event === 'email_unsubscribed');
    },
  };
}

describe('evidence of consent', () => {
  it('is absent if it is not given, for contacts and subscriptions', async () => {
    const { api, add, members, contact } = await start();
    expect(evidenceOf((await add({ consentMethod: 'web_form' })).data.contact)).toEqual({});
    await api.post(members, { email: ADA, consentMethod: 'double_opt_in' });
    expect(await contact()).toMatchObject({ consentMethod: 'double_opt_in' });
    expect(evidenceOf(await contact())).toEqual({});
    interface History {
      consents: Fields[];
    }
    const { consents } = (await api.get<History>(`${ADA_PATH}/consent-history`)).data;
    expect(consents).toEqual(
      ['double_opt_in', 'web_form'].map((method) =>
        expect.objectContaining({ method, recordedAt: expect.stringMatching(/Z$/) }),
      ),
    );
    for (const consent of consents)
      for (const field of ['ipAddress', 'userAgent', 'timestamp']) expect(consent).not.toHaveProperty(field);
  });

  it('is the request itself for implicit consent only', async () => {
    const { add, write } = await start();
    const { contact } = (await add()).data;
    expect(contact).toMatchObject({ consentMethod: 'implicit_api', consentIpAddress: '127.0.0.1' });
    expect(contact['consentTimestamp']).toBe(contact.createdAt);
    const changed = await write('PATCH', ADA_PATH, { consentMethod: 'single_opt_in' });
    expect(evidenceOf(changed.data.contact)).toEqual({});
  });

  it('does not mix the request with an address or a client that the caller names', async () => {
    const { add, write } = await start();
    const implicit = { consentMethod: 'implicit_api', consentTimestamp: expect.any(String) };
    const byAddress = (await add({ consentIpAddress: '192.0.2.1' })).data.contact;
    expect(byAddress).toMatchObject({ ...implicit, consentIpAddress: '192.0.2.1' });
    expect(byAddress).not.toHaveProperty('consentUserAgent');
    const named = await write('PATCH', ADA_PATH, { consentUserAgent: 'A browser' });
    expect(named.data.contact).toMatchObject({
      ...implicit,
      consentIpAddress: '192.0.2.1',
      consentUserAgent: 'A browser',
    });
    const byClient = (await add({ email: 'bob@example.net', consentUserAgent: 'A browser' })).data.contact;
    expect(byClient).toMatchObject({ ...implicit, consentUserAgent: 'A browser' });
    expect(byClient).not.toHaveProperty('consentIpAddress');
  });

  it('is replaced by an address that the caller names, also that of an earlier request', async () => {
    const { add, write } = await start();
    const { contact } = (await add()).data;
    expect(contact).toMatchObject({ consentIpAddress: '127.0.0.1', consentUserAgent: expect.any(String) });
    const named = await write('PATCH', ADA_PATH, { consentIpAddress: '192.0.2.1' });
    expect(named.data.contact).toMatchObject({ consentIpAddress: '192.0.2.1' });
    expect(named.data.contact).not.toHaveProperty('consentUserAgent');
  });

  it.each(['PUT', 'PATCH'])(
    'is accepted by %s of contacts, and remains when other fields change',
    async (method) => {
      const { add, write } = await start();
      await add();
      const evidence = { consentMethod: 'web_form', ...EVIDENCE, source: 'checkout' };
      const given = await write(method, ADA_PATH, evidence);
      expect(given.data.warnings).toBeUndefined();
      expect(given.data.contact).toMatchObject(evidence);
      const changes = { firstName: 'Ada', customFields: { plan: 'gold' }, consentDetails: 'Form 7' };
      expect((await write(method, ADA_PATH, changes)).data.contact).toMatchObject({
        ...evidence,
        ...changes,
      });
    },
  );

  it.each(['POST', 'PUT', 'PATCH'])('is accepted by %s of subscriptions for the contact', async (method) => {
    const { add, write, members, member, contact } = await start();
    await add();
    const [path, who] = method === 'POST' ? [members, { email: ADA }] : [member, {}];
    const profile = { firstName: 'Ada', lastName: 'Lovelace', phone: '+442079460000' };
    const body = { ...who, consentMethod: 'web_form', ...EVIDENCE, source: 'popup', ...profile };
    const joined = await write(method, path, { ...body, customFields: { plan: 'gold' } });
    expect([joined.status, joined.data.warnings]).toEqual([201, undefined]);
    expect(joined.data.subscriber).toMatchObject({ source: 'popup', consentMethod: 'web_form' });
    expect(await contact()).toMatchObject({
      ...EVIDENCE,
      ...profile,
      consentMethod: 'web_form',
      customFields: { plan: 'gold' },
      source: 'api',
    });
    await write('PATCH', member, { isActive: true, consentMethod: 'web_form', customFields: { size: 38 } });
    expect(await contact()).toMatchObject({ ...EVIDENCE, customFields: { plan: 'gold', size: 38 } });
  });

  it('from the future is refused, for subscriptions as well', async () => {
    const { add, write, members } = await start();
    await add();
    const consentTimestamp = new Date(Date.now() + 3 * DAY).toISOString();
    const answer = await write('POST', members, { email: ADA, consentMethod: 'web_form', consentTimestamp });
    expect([answer.status, answer.error.details?.[0]?.field]).toEqual([400, 'consentTimestamp']);
  });

  it('excludes the client of the API from opt-outs and withdrawals', async () => {
    const { api, add, write, member } = await start();
    await add();
    await write('PUT', member, {});
    await write('PUT', member, { isActive: false });
    await write('PATCH', ADA_PATH, { consentMethod: null });
    const { consents } = (await api.get<{ consents: Fields[] }>(`${ADA_PATH}/consent-history`)).data;
    expect(consents.slice(0, 2)).toMatchObject([{ action: 'withdrawn' }, { action: 'left_group' }]);
    for (const consent of consents.slice(0, 2))
      for (const field of ['ipAddress', 'userAgent']) expect(consent).not.toHaveProperty(field);
  });
});

describe('subscriptions in a list', () => {
  it('have the fields of their contact', async () => {
    const { api, add, members } = await start();
    const profile = { firstName: 'Ada', lastName: 'Lovelace', phone: '+442079460000' };
    await add({ ...profile, customFields: { plan: 'gold' } });
    await api.post(members, { email: ADA });
    for (const query of ['', '?search=lovelace']) {
      const { subscribers } = (await api.get<{ subscribers: Fields[] }>(members + query)).data;
      expect(subscribers).toMatchObject([
        { email: ADA, ...profile, globalStatus: 'active', customFields: { plan: 'gold' } },
      ]);
    }
  });

  it('refuse the phone number of another contact, and add an unknown one to the contact', async () => {
    const { api, add, write, members, member, contact } = await start();
    await add();
    await api.post(CONTACTS, { phone: '+4930123456' });
    const taken = await write('POST', members, { email: ADA, phone: '+4930123456' });
    expect([taken.status, taken.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    const put = await write('PUT', member, { phone: '+4930123456' });
    expect([put.status, put.error.code]).toEqual([409, 'CONTACT_ALREADY_EXISTS']);
    expect((await write('POST', members, { email: ADA, phone: '+442079460000' })).status).toBe(201);
    expect(await contact()).toMatchObject({ phone: '+442079460000' });
  });
});

describe('an opt-out over the API', () => {
  it('is recorded once, causes an event, and blocks marketing mail', async () => {
    const { api, add, write, unsubscribedEvents } = await start();
    await add();
    for (const method of ['PATCH', 'PUT']) {
      const answer = await write(method, ADA_PATH, { globalStatus: 'unsubscribed' });
      expect(answer.data.contact.globalStatus).toBe('unsubscribed');
      expect(answer.data.warnings).toBeUndefined();
    }
    expect(await unsubscribedEvents()).toMatchObject([
      { method: 'api', scope: 'marketing', recipient: ADA, contactIdentifier: ADA_ID },
    ]);
    const { suppressions } = (await api.get<{ suppressions: Fields[] }>('/web-setup/suppressions')).data;
    expect(suppressions).toMatchObject([{ email: ADA, reason: 'unsubscribe', stream: 'mk' }]);
  });

  it('is in the consent history once, without the client of the API', async () => {
    const { api, add, write, contact } = await start();
    await add({ consentMethod: 'web_form', consentDetails: 'Form 7' });
    for (const method of ['PATCH', 'PUT'])
      await write(method, ADA_PATH, { globalStatus: 'unsubscribed', consentDetails: 'By phone' });
    await api.post('/web-setup/suppressions', { email: ADA, reason: 'unsubscribe', stream: 'all' });
    const { consents } = (await api.get<{ consents: Fields[] }>(`${ADA_PATH}/consent-history`)).data;
    expect(consents).toEqual([
      {
        action: 'withdrawn',
        method: 'api',
        details: 'By phone',
        timestamp: expect.any(String),
        recordedAt: expect.any(String),
        recordedBy: expect.stringMatching(/^key_/),
      },
      expect.objectContaining({ action: 'given', method: 'web_form', details: 'Form 7' }),
    ]);
    expect(await contact()).toMatchObject({ consentMethod: 'web_form', consentDetails: 'Form 7' });
  });

  it('can be set when the contact is created, also for one with only a phone number', async () => {
    const { api, add, write } = await start();
    expect((await add({ globalStatus: 'unsubscribed' })).data.contact.globalStatus).toBe('unsubscribed');
    const phone = '+442079460000';
    const added = await api.post<OneContact>(CONTACTS, { phone, globalStatus: 'unsubscribed' });
    expect(added.data.contact.globalStatus).toBe('unsubscribed');
    // The opt-out applies to the address, too.
    const path = `${CONTACTS}/${phoneIdentifier(phone)}`;
    const changed = await write('PATCH', path, { email: 'grace@example.net' });
    expect(changed.data.contact.globalStatus).toBe('unsubscribed');
  });

  it.each<[string, object]>([
    ['no consent', {}],
    ['a method alone', { consentMethod: 'double_opt_in' }],
    ['an implicit consent', { consentMethod: 'implicit_api', consentIpAddress: '192.0.2.1' }],
    ['an earlier consent', { consentMethod: 'web_form', consentTimestamp: '2025-06-01' }],
    ['the consent on record', { consentMethod: 'web_form', ...EVIDENCE }],
  ])('is not ended by %s', async (_, consent) => {
    const { add, write, contact } = await start();
    await add({ consentMethod: 'web_form', ...EVIDENCE, globalStatus: 'unsubscribed' });
    const answer = await write('PATCH', ADA_PATH, { globalStatus: 'active', firstName: 'X', ...consent });
    expect([answer.status, answer.error.code]).toEqual([409, 'INVALID_STATE']);
    expect(await contact()).toMatchObject({ globalStatus: 'unsubscribed' });
    expect(await contact()).not.toHaveProperty('firstName');
  });

  it.each([
    ['a time', () => ({ consentTimestamp: new Date().toISOString() })],
    ['details', () => ({ consentDetails: 'signed up again with the form' })],
  ])('is ended by new consent with %s in the same request', async (_, evidence) => {
    const { api, add, write, contact } = await start();
    await add({ globalStatus: 'unsubscribed' });
    const consent = { consentMethod: 'double_opt_in', ...evidence() };
    const answer = await write('PATCH', ADA_PATH, { globalStatus: 'active', ...consent });
    expect([answer.status, answer.data.contact.globalStatus]).toEqual([200, 'active']);
    expect(await contact()).toMatchObject(consent);
    const ended = await api.get<{ removals: Fields[] }>(`/web-setup/suppressions/removals?email=${ADA}`);
    expect(ended.data.removals).toMatchObject([{ reason: 'unsubscribe', stream: 'mk' }]);
  });

  it('does not end a suppression; other states record further suppressions', async () => {
    const { api, add, write } = await start();
    await add();
    await api.post('/web-setup/suppressions', { email: ADA, reason: 'manual', stream: 'all' });
    const same = await write('PATCH', ADA_PATH, { globalStatus: 'suppressed' });
    expect([same.status, same.data.contact.globalStatus]).toEqual([200, 'suppressed']);
    const consent = { consentMethod: 'web_form', consentIpAddress: '192.0.2.1' };
    const active = await write('PATCH', ADA_PATH, { globalStatus: 'active', ...consent });
    expect([active.status, active.error.code]).toEqual([409, 'INVALID_STATE']);
    await write('PATCH', ADA_PATH, { globalStatus: 'bounced' });
    const { data } = await api.get<{ suppressions: Fields[] }>('/web-setup/suppressions');
    expect(data.suppressions.map(({ reason }) => reason)).toEqual(['hard_bounce', 'manual']);
  });

  it('has its own date in a refusal, independent of later changes', async () => {
    const { api, add, write, member, members, group } = await start();
    insertDomain(
      daemon.tables,
      {
        account_id: api.accountId,
        group_id: daemon.tables.domainGroups.list(api.accountId)[0]?.group_id ?? '',
        use_case: 'mk',
        domain_id: `domain_1_${api.accountId}`,
        name: 'shop.test',
        next_check_at: Date.now() + DAY,
      },
      Date.now(),
    );
    await add();
    await api.post(members, { email: ADA });
    await write('PUT', member, { isActive: false });
    const row = daemon.tables.subscriptionGroups.get(api.accountId, group.subscriptionGroupId);
    const since = daemon.tables.groupOptOuts.since(row?.seq ?? 0, ADA_ID) ?? 0;
    await expect.poll(() => Date.now()).toBeGreaterThan(since + 5);
    await write('PATCH', member, { consentMethod: 'other', consentDetails: 'Later' });
    const sent = await api.call('POST', '/marketing/send', {
      headers: { 'X-Api-Key': api.keys.marketing },
      body: {
        to: ADA,
        from: 'news@shop.test',
        subject: 'News',
        html: '<p>News</p>{{company_address_html}}{{unsubscribe_email_html}}',
        subscriptionGroupId: group.subscriptionGroupId,
      },
    });
    expect(sent.error.code).toBe('RECIPIENT_UNSUBSCRIBED');
    expect(sent.error.details).toMatchObject([{ since: new Date(since).toISOString() }]);
  });

  it('is reported by POST of the member, which does not end it', async () => {
    const { api, add, write, members, member } = await start();
    await add();
    await api.post(members, { email: ADA });
    expect((await api.post<Joined>(members, { email: ADA })).data.message).toBe('Already subscribed.');
    await write('PUT', member, { isActive: false });
    const again = await api.post<Joined>(members, { email: ADA });
    expect([again.status, again.data.subscriber.isActive]).toEqual([200, false]);
    expect(again.data.message).toMatch(/^Not subscribed: the contact opted out of this group at \d{4}-/);
    await write('PUT', member, { isActive: true });
    await write('PATCH', ADA_PATH, { globalStatus: 'unsubscribed' });
    const active = await api.post<Joined>(members, { email: ADA });
    expect(active.data.message).toBe(
      'Already subscribed, but the contact has opted out of all marketing mail.',
    );
  });
});

describe('an active member', () => {
  const REFUSED = ['marketing mail to the contact is refused: its globalStatus is "unsubscribed"'];

  it.each(['POST', 'PUT', 'PATCH'])(
    'causes a warning if the contact opted out of all mail: %s',
    async (method) => {
      const { add, write, members, member } = await start();
      await add({ globalStatus: 'unsubscribed' });
      const path = method === 'POST' ? members : member;
      const body = { email: ADA, isActive: true };
      for (const status of [201, 200]) {
        const answer = await write(method, path, body);
        expect([answer.status, answer.data.subscriber.isActive]).toEqual([status, true]);
        expect(answer.data.warnings?.filter((text) => !text.includes('field'))).toEqual(REFUSED);
      }
      const left = await write('PUT', member, { isActive: false });
      expect(left.data.warnings).toBeUndefined();
    },
  );

  it('causes no warning if mail is accepted', async () => {
    const { add, write, member } = await start();
    await add();
    expect((await write('PUT', member, { isActive: true })).data.warnings).toBeUndefined();
  });
});

describe('fields of a resource', () => {
  it('sent back unchanged cause no warnings', async () => {
    const { api, add, write, member, members, group } = await start();
    await add({ phone: '+442079460000', consentMethod: 'web_form' });
    await api.post(members, { email: ADA });
    interface Read {
      contact?: object;
      group?: object;
    }
    const paths = [ADA_PATH, member, `${GROUPS}/${group.subscriptionGroupId}`];
    for (const path of paths) {
      const { data } = await api.get<Read & Fields>(path);
      const resource = data.contact ?? data.group ?? data;
      for (const method of ['PUT', 'PATCH']) {
        const { data: before } = await api.get<Read>(path);
        const current = before.contact ?? before.group ?? before;
        const answer = await write(method, path, current);
        expect([answer.status, answer.data.warnings], `${method} ${path}`).toEqual([200, undefined]);
        const after = (await api.get<Read & Fields>(path)).data;
        expect({ ...(after.contact ?? after.group ?? after), updatedAt: '' }).toEqual({
          ...resource,
          updatedAt: '',
        });
      }
    }
    const { consents } = (await api.get<{ consents: object[] }>(`${ADA_PATH}/consent-history`)).data;
    expect(consents).toHaveLength(1);
  });

  it('are reported as read-only, not as unknown, if they cannot be set', async () => {
    const { api, add, write, members, member, group } = await start();
    const readOnly = { userId: 'x', createdAt: THEN };
    const warnings = ['read-only field "userId" was ignored', 'read-only field "createdAt" was ignored'];
    expect((await add(readOnly)).data.warnings).toEqual(warnings);
    expect((await write('PUT', ADA_PATH, readOnly)).data.warnings).toEqual(warnings);
    const { subscriptionGroupId } = group;
    const joined = await write('POST', members, { email: ADA, subscriptionGroupId, joinedAt: THEN });
    expect(joined.data.warnings).toEqual(['read-only field "joinedAt" was ignored']);
    const put = await write('PUT', member, { subscriptionGroupId, email: 'x@example.net' });
    expect(put.data.warnings).toEqual(['read-only field "email" was ignored']);
    const webhook = { url: 'https://example.com/hook', events: ['email_sent'], webhookId: 'x', secret: 'y' };
    expect((await api.post<Joined>('/web-setup/webhooks', webhook)).data.warnings).toEqual([
      'read-only field "webhookId" was ignored',
      'read-only field "secret" was ignored',
    ]);
    const template = { name: 'T', html: '<p>x</p>', updatedAt: THEN };
    expect((await api.post<Joined>('/web-setup/templates', template)).data.warnings).toContain(
      'read-only field "updatedAt" was ignored',
    );
  });
});

describe('pages', () => {
  const WIDE = [
    '/web-setup/domains',
    '/web-setup/use-cases',
    '/web-setup/domain-groups',
    '/web-setup/webhooks',
    GROUPS,
    '/web-setup/templates',
    '/web-setup/partials',
    '/web-setup/compliance-templates',
  ];

  it('have 50 rows by default, 200 for lists that are read in one request, at most 200', async () => {
    const { api } = await start();
    const response = await fetch(`${daemon.url}/openapi.json`);
    const document = (await response.json()) as OpenApiDocument;
    const lists = Object.entries(document.paths).flatMap(([path, { get }]) => {
      const parameters = get === undefined ? [] : resolveParameters(document, get);
      const limit = parameters.find(({ name }) => name === 'limit');
      return limit === undefined ? [] : [[path, limit.schema] as const];
    });
    for (const [path, { default: rows, maximum }] of lists) {
      const wide = WIDE.includes(path) || path.startsWith('/web-setup/domain-groups/owner/');
      expect([path, rows, maximum]).toEqual([path, wide ? 200 : 50, 200]);
    }
    const known = lists.map(([path]) => path);
    expect(WIDE.filter((path) => !known.includes(path))).toEqual([]);
    for (const path of known.filter((each) => !each.includes('{'))) {
      const { data } = await api.get<{ warnings?: string[] }>(`${path}?limit=5000`);
      expect(data.warnings, path).toEqual(['limit 5000 is above the maximum: 200 was used']);
    }
    for (const path of WIDE) {
      expect((await api.get(`${path}?limit=1&lastKey=abc`)).status, path).toBe(400);
    }
  });

  it('have keys in short lists as well', async () => {
    const { api } = await start();
    for (const name of ['B', 'C']) await api.post('/web-setup/domain-groups', { name });
    interface Page {
      domainGroups: { name: string }[];
      count: number;
      nextKey?: string;
    }
    const names: string[] = [];
    let key = '';
    do {
      const page = (await api.get<Page>(`/web-setup/domain-groups?limit=1&lastKey=${key}`)).data;
      expect(page.count).toBe(1);
      names.push(...page.domainGroups.map(({ name }) => name));
      key = page.nextKey ?? '';
    } while (key !== '');
    const all = (await api.get<Page>('/web-setup/domain-groups')).data;
    expect(all.nextKey).toBeUndefined();
    expect(names).toEqual(all.domainGroups.map(({ name }) => name));
    expect(names).toHaveLength(3);
  });

  it('contain 60 subscription groups by default', async () => {
    const { api } = await start();
    for (let n = 0; n < 59; n++) await api.post(GROUPS, { name: `G${n}` });
    expect((await api.get<{ count: number }>(GROUPS)).data.count).toBe(60);
  });
});

it('a domain is not moved to a group without an id', async () => {
  const { api } = await start();
  for (const groupId of ['', '  ']) {
    const answer = await api.put('/web-setup/domains/domain_1_x/assign-group', { groupId });
    expect([answer.status, answer.error.code]).toEqual([400, 'VALIDATION_ERROR']);
  }
});

describe('a search of contacts', () => {
  it('finds parts of words, numbers and identifiers', async () => {
    const { api, add } = await start();
    const { contact } = (await add({ firstName: 'Ada', lastName: 'Lovelace', phone: '+442079460000' })).data;
    await api.post(CONTACTS, { email: 'grace@example.org', firstName: 'Grace' });
    const found = async (text: string) => {
      const query = new URLSearchParams({ search: text });
      const { contacts } = (
        await api.get<{ contacts: { email: string }[] }>(`${CONTACTS}?${query.toString()}`)
      ).data;
      return contacts.map(({ email }) => email);
    };
    const userId = String(contact['userId']);
    for (const text of [
      'velac',
      'a@exam',
      'LACE ada',
      '7946',
      '020 7946 0000',
      '+44 20 7946',
      '(0)20-7946',
      ADA_ID,
      ADA_ID.slice(8, 20),
      ADA_ID.slice(-6),
      phoneIdentifier('+442079460000'),
      userId,
      userId.slice(7, 16),
    ])
      expect(await found(text), text).toEqual([ADA]);
    expect(await found('example')).toEqual(['grace@example.org', ADA]);
    expect(await found('ad')).toEqual([ADA]);
    for (const text of ['velax', 'ce', '9999', `${ADA_ID.slice(0, -1)}x`])
      expect(await found(text)).toEqual([]);
  });
});

describe('names and values that other clients of the interface use', () => {
  it('finds a contact by email: and its address, and by its identifier in any case', async () => {
    const { api, add } = await start();
    await add({ firstName: 'Ada' });
    for (const reference of [`email:${ADA}`, `email:${ADA.toUpperCase()}`, ADA_ID.toUpperCase()]) {
      const found = await api.get<OneContact>(`${CONTACTS}/${encodeURIComponent(reference)}`);
      expect(found.data.contact['firstName']).toBe('Ada');
    }
    await api.post('/web-setup/suppressions', { email: ADA });
    for (const email of [ADA, ADA_ID, ADA_ID.toUpperCase()]) {
      const { data } = await api.get<{ count: number }>(
        `/web-setup/suppressions?email=${encodeURIComponent(email)}`,
      );
      expect(data.count).toBe(1);
    }
    const refused = await api.get(`${CONTACTS}/${encodeURIComponent('email:nobody')}`);
    expect([refused.status, refused.error.details?.[0]?.field]).toEqual([400, 'contactIdentifier']);
  });

  it('repeats the id of a group as groupId, and has ids of subscriptions', async () => {
    const { api, group, members, member, add } = await start();
    expect(group['groupId']).toBe(group.subscriptionGroupId);
    await add();
    await api.post(members, { email: ADA });
    const subscriptionId = `${group.subscriptionGroupId}:${ADA_ID}`;
    expect((await api.get<Fields>(member)).data).toMatchObject({ subscriptionId });
    const listed = await api.get<{ subscribers: Fields[] }>(members);
    expect(listed.data.subscribers).toMatchObject([{ subscriptionId }]);
  });

  it.each([
    ['bounced', 'hard_bounce'],
    ['complained', 'complaint'],
    ['suppressed', 'manual'],
  ])('records a suppression for the status %s, on create and update', async (globalStatus, reason) => {
    const { api, add, write } = await start();
    const created = await add({ globalStatus });
    expect([created.status, created.data.contact.globalStatus]).toEqual([201, globalStatus]);
    await add({ email: 'bob@example.net' });
    const changed = await write('PATCH', `${CONTACTS}/${emailIdentifier('bob@example.net')}`, {
      globalStatus,
    });
    expect([changed.status, changed.data.contact.globalStatus]).toEqual([200, globalStatus]);
    const { data } = await api.get<{ suppressions: Fields[] }>('/web-setup/suppressions');
    expect(data.suppressions.map(({ email, stream, reason }) => [email, stream, reason])).toEqual([
      ['bob@example.net', 'all', reason],
      [ADA, 'all', reason],
    ]);
  });

  it.each(['2026-01-31T12:00:00+0100', '2026-01-31T12:00:00+01', '2026-01-31T11:00:00Z'])(
    'accepts the time %s',
    async (from) => {
      const { api } = await start();
      expect((await api.get(`/web-setup/messages?from=${encodeURIComponent(from)}`)).status).toBe(200);
      const refused = await api.get(`/web-setup/messages?from=${encodeURIComponent(from.slice(0, 10))}`);
      expect([refused.status, refused.error.details?.[0]?.field]).toEqual([400, 'from']);
    },
  );

  it('has null ids of messages in the event of an opt-out through the API', async () => {
    const { add, unsubscribedEvents } = await start();
    await add({ globalStatus: 'unsubscribed' });
    expect(await unsubscribedEvents()).toMatchObject([{ messageId: null, emailId: null }]);
  });

  it.each([
    [{ to: ADA, bcc: 'bob@example.net' }, 'is allowed only without "to"'],
    [{ cc: ADA, bcc: 'bob@example.net' }, 'is allowed only without "cc"'],
    [{ to: ADA, cc: 'eve@example.net', bcc: ['bob@example.net'] }, 'is allowed only without "to" and "cc"'],
  ])('refuses blind copies next to other recipients: %j', async (recipients, message) => {
    const { api } = await start();
    const html = '{{company_address_html}}{{unsubscribe_email_html}}';
    const body = { from: 'shop@example.com', subject: 'Hi', html, ...recipients };
    const { status, error } = await api.post('/transactional/send', body);
    expect([status, error.details?.map(({ field }) => field)]).toEqual([400, ['bcc']]);
    expect(error.details?.[0]?.message).toContain(message);
  });

  it('leaves out strings that are not set, in every resource', async () => {
    const { api, add, group, members } = await start();
    await add({ consentMethod: 'web_form' });
    await api.post(members, { email: ADA });
    const html = '{{company_address_html}}{{unsubscribe_email_html}}';
    const { template } = (await api.post<{ template: Fields }>('/web-setup/templates', { name: 'T', html }))
      .data;
    await api.put(`/web-setup/templates/${String(template['templateId'])}`, { name: 'U' });
    const htmlContent = '{{unsubscribe_url}}';
    await api.post('/web-setup/compliance-templates', { name: 'C', type: 'unsubscribe', htmlContent });
    await api.post('/web-setup/domain-groups', { name: 'D' });
    await api.post('/web-setup/campaigns', { name: 'Spring' });
    await api.post('/web-setup/webhooks', { url: 'https://example.com/hook', events: ['email_sent'] });
    await api.post('/web-setup/suppressions', { email: ADA });
    await api.call('DELETE', `/web-setup/suppressions?email=${ADA}`);
    const versions = `/web-setup/templates/${String(template['templateId'])}/versions`;
    const nulls: Record<string, string[]> = {};
    for (const path of [
      CONTACTS,
      ADA_PATH,
      `${ADA_PATH}/consent-history`,
      GROUPS,
      `${GROUPS}/${group.subscriptionGroupId}`,
      members,
      '/web-setup/templates',
      versions,
      `${versions}/1`,
      '/web-setup/compliance-templates',
      '/web-setup/domain-groups',
      '/web-setup/campaigns',
      '/web-setup/webhooks',
      '/web-setup/account',
      `/web-setup/suppressions/removals?email=${ADA}`,
    ]) {
      const { status, data } = await api.get<object>(path);
      expect(status, path).toBe(200);
      for (const field of JSON.stringify(data).matchAll(/"(\w+)":null/g))
        (nulls[field[1] ?? ''] ??= []).push(path);
    }
    // No strings, except for the status, which clients of the interface declare as nullable.
    const { importStatus, signUp, prepared, companyAddress: _, ...others } = nulls;
    expect([importStatus, signUp, prepared].map((paths) => paths?.length)).toEqual([2, 2, 1]);
    expect(Object.keys(others).filter((field) => !(field in forEachLimit(null)))).toEqual([]);
  });

  it('accepts a literal postal address as a template, and shows that templates are active', async () => {
    const { api } = await start();
    expect(
      (
        await api.post('/web-setup/compliance-templates', {
          name: 'Address',
          type: 'company_address',
          htmlContent: '<p>Example Ltd, 1 High Street, Sampletown</p>',
        })
      ).data,
    ).toMatchObject({ template: { status: 'active', isActive: true } });
  });
});
