import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { emailIdentifier, phoneIdentifier } from '../../../src/mail/identifier.ts';
import { startInProcess } from '../../support/in-process-daemon.ts';

// Starts the whole daemon, which is slow on a busy machine.
const daemon = await startInProcess();
afterAll(() => daemon.stop());

const CONTACTS = '/web-setup/contacts';
const ADA = 'ada@example.net';
const ADA_ID = 'email_ae2c0afa556b74f2d501305b54c34910';

interface Contact {
  contactIdentifier: string;
  email: string | null;
  customFields: Record<string, unknown>;
  globalStatus: string;
  [field: string]: unknown;
}

interface Page {
  contacts: Contact[];
  count: number;
  nextKey?: string;
}

async function start() {
  const api = await daemon.account('A');
  return {
    api,
    add: async (body: object) => {
      const answer = await api.post<{ contact: Contact }>(CONTACTS, body);
      if (answer.status !== 201) throw new Error(answer.text);
      return answer.data.contact;
    },
    refused: async (method: string, path: string, body?: object) => {
      const { status, error } = await api.call(method, path, body === undefined ? {} : { body });
      return { status, code: error.code, fields: (error.details ?? []).map(({ field }) => field) };
    },
    list: async (query: string) => (await api.get<Page>(`${CONTACTS}?${query}`)).data,
  };
}

describe('a contact over HTTP', () => {
  it('is created, read, updated and erased', async () => {
    const { api, add, refused } = await start();
    const contact = await add({ email: ' Ada@Example.NET ', phone: '+44 20 7946 0000', firstName: 'Ada' });
    expect(contact).toMatchObject({
      contactIdentifier: ADA_ID,
      email: 'Ada@example.net',
      phone: '+442079460000',
      consentMethod: 'implicit_api',
      consentIpAddress: '127.0.0.1',
      consentUserAgent: 'node',
      source: 'api',
    });
    for (const identifier of [
      ADA_ID,
      ADA_ID.toUpperCase().replace('EMAIL', 'email'),
      phoneIdentifier('+442079460000'),
    ]) {
      const read = await api.get<object>(`${CONTACTS}/${identifier}`);
      expect(read.data).toEqual({ contact, memberships: [] });
    }
    const changed = await api.call<{ contact: Contact }>('PATCH', `${CONTACTS}/${ADA_ID}`, {
      body: { lastName: 'Lovelace', customFields: { plan: 'gold' } },
    });
    expect(changed.data.contact).toMatchObject({
      firstName: 'Ada',
      lastName: 'Lovelace',
      customFields: { plan: 'gold' },
    });
    expect((await api.call('DELETE', `${CONTACTS}/${ADA_ID}`)).status).toBe(200);
    expect(await refused('GET', `${CONTACTS}/${ADA_ID}`)).toMatchObject({
      status: 404,
      code: 'CONTACT_NOT_FOUND',
    });
    expect(await refused('DELETE', `${CONTACTS}/${ADA_ID}`)).toMatchObject({
      status: 404,
      code: 'CONTACT_NOT_FOUND',
    });
  });

  it('has a consent history in pages', async () => {
    const { api, add } = await start();
    await add({
      email: ADA,
      consentMethod: 'web_form',
      consentTimestamp: '2025-05-01T10:00:00+02:00',
      consentIpAddress: '2001:db8::1',
    });
    await api.put(`${CONTACTS}/${ADA_ID}`, { consentMethod: 'double_opt_in', consentDetails: 'Confirmed' });
    await api.put(`${CONTACTS}/${ADA_ID}`, { consentMethod: null });
    interface History {
      consents: { action: string; method?: string; timestamp: string; ipAddress: string }[];
      nextKey?: string;
    }
    const first = await api.get<History>(`${CONTACTS}/${ADA_ID}/consent-history?limit=2`);
    expect(first.data.consents.map(({ action, method }) => [action, method])).toEqual([
      ['withdrawn', undefined],
      ['given', 'double_opt_in'],
    ]);
    const rest = await api.get<History>(
      `${CONTACTS}/${ADA_ID}/consent-history?lastKey=${first.data.nextKey}`,
    );
    expect(rest.data).toEqual({
      consents: [
        expect.objectContaining({
          action: 'given',
          method: 'web_form',
          timestamp: '2025-05-01T08:00:00.000Z',
          ipAddress: '2001:db8::1',
          recordedBy: expect.stringMatching(/^key_/),
        }),
      ],
      count: 1,
    });
  });

  it.each([
    ['neither email nor phone', {}, ['email']],
    ['a name in the address', { email: 'Ada <ada@example.net>' }, ['email']],
    ['two addresses', { email: 'a@example.net,b@example.net' }, ['email']],
    ['NUL in the address', { email: 'a\u0000@example.net' }, ['email']],
    ['a line break in a name', { email: ADA, firstName: 'A\r\nBcc: x@y.org' }, ['firstName']],
    ['an unpaired surrogate', { email: ADA, lastName: '\ud83d' }, ['lastName']],
    ['a name that is too long', { email: ADA, lastName: 'x'.repeat(201) }, ['lastName']],
    ['a national number', { phone: '020 7946 0000' }, ['phone']],
    [
      '1,500 custom fields',
      {
        email: ADA,
        customFields: Object.fromEntries(Array.from({ length: 1500 }, (_, n) => [`f${n}`, n])),
      },
      ['customFields'],
    ],
    [
      'more custom fields than a body may have',
      {
        email: ADA,
        customFields: Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`f${n}`, n])),
      },
      ['body'],
    ],
    [
      'NUL deep in a custom field',
      { email: ADA, customFields: { a: { b: 'x\u0000' } } },
      ['customFields.a.b'],
    ],
    ['custom fields that are not an object', { email: ADA, customFields: 'x' }, ['customFields']],
    ['an unknown method of consent', { email: ADA, consentMethod: 'telepathy' }, ['consentMethod']],
    ['an invalid IP address', { email: ADA, consentIpAddress: '1.2.3' }, ['consentIpAddress']],
    ['several fields', { email: 'x', phone: 'y', firstName: 7 }, ['email', 'phone', 'firstName']],
  ])('names the invalid fields: %s', async (_, body, fields) => {
    const { refused } = await start();
    expect(await refused('POST', CONTACTS, body)).toEqual({ status: 400, code: 'VALIDATION_ERROR', fields });
  });

  it.each([
    ['SQL', "Robert'); DROP TABLE contacts;--"],
    ['right to left', 'محمد بن عبد الله \u202Eabc\u202C'],
    ['emoji', '👩🏽‍🚀🏳️‍🌈'],
    ['combined and composed', 'Zoë Zoe\u0308'],
    ['markup', '<script>alert(1)</script>{{name}}'],
    ['invisible', 'a\u200bb\u2060c\ufeffd'],
    ['a percent and an underscore', '100%_'],
  ])('stores %s unchanged', async (_, text) => {
    const { api, add } = await start();
    const given = {
      email: ADA,
      firstName: text,
      lastName: ` ${text} `,
      customFields: { [text]: { [text]: [text] } },
      consentDetails: `${text}\n\t${text}`,
    };
    expect(await add(given)).toMatchObject(given);
    expect((await api.get<{ contact: object }>(`${CONTACTS}/${ADA_ID}`)).data.contact).toMatchObject(given);
  });

  it.each(['unknown', 'ada@example.net', 'email_x', `email_${'0'.repeat(31)}`, `phone_${'g'.repeat(32)}`])(
    'is not found as %s',
    async (identifier) => {
      const { refused } = await start();
      const refusal = { status: 400, code: 'VALIDATION_ERROR', fields: ['contactIdentifier'] };
      for (const method of ['GET', 'DELETE'])
        expect(await refused(method, `${CONTACTS}/${encodeURIComponent(identifier)}`)).toEqual(refusal);
    },
  );

  it('warns of unknown fields', async () => {
    const { api } = await start();
    const answer = await api.post<{ warnings: string[] }>(CONTACTS, {
      email: ADA,
      firstname: 'Ada',
      createdAt: '2026-01-31T12:00:00.000Z',
    });
    expect(answer.data.warnings).toEqual([
      'unknown field "firstname" was ignored; did you mean "firstName"?',
      'read-only field "createdAt" was ignored',
    ]);
  });

  it('has the status of its suppressions', async () => {
    const { api, add } = await start();
    await add({ email: ADA });
    const status = async () =>
      (await api.get<{ contact: Contact }>(`${CONTACTS}/${ADA_ID}`)).data.contact.globalStatus;
    await api.post('/web-setup/suppressions', { email: ADA, reason: 'unsubscribe', stream: 'mk' });
    expect(await status()).toBe('unsubscribed');
    await api.post('/web-setup/suppressions', { email: ADA, reason: 'manual', stream: 'all' });
    expect(await status()).toBe('suppressed');
    await api.call('DELETE', '/web-setup/suppressions', { body: { email: ADA } });
    expect(await status()).toBe('active');
  });
});

describe('lists of contacts', () => {
  it('are sorted newest first, paged, and filtered by status', async () => {
    const { api, add, list } = await start();
    const emails = Array.from({ length: 7 }, (_, n) => `p${n}@example.net`);
    for (const email of emails) await add({ email });
    await api.post('/web-setup/suppressions', { email: 'p3@example.net' });
    const walk = async (query: string) => {
      const seen: string[] = [];
      const counts: number[] = [];
      for (let key = ''; ; ) {
        const { contacts, count, nextKey } = await list(`${query}${key}`);
        seen.push(...contacts.map(({ email }) => email ?? ''));
        counts.push(count);
        if (nextKey === undefined) return { seen, counts };
        key = `&lastKey=${nextKey}`;
      }
    };
    expect(await walk('limit=3')).toEqual({ seen: emails.toReversed(), counts: [3, 3, 1] });
    expect((await walk('limit=1&status=suppressed')).seen).toEqual(['p3@example.net']);
    expect((await walk('limit=2&search=P')).seen).toEqual(emails);
    expect((await walk('limit=2&search=P3&status=active')).seen).toEqual([]);
    expect((await walk('limit=200&search=%20')).seen).toHaveLength(7);
  });

  it.each([
    ['a key of another list', 'search=a&lastKey=', 'lastKey'],
    ['a made-up key', 'lastKey=abc', 'lastKey'],
    [
      'a made-up search key',
      `search=a&lastKey=${Buffer.from('search:[9,"a",1]').toString('base64url')}`,
      'lastKey',
    ],
    ['an unknown status', 'status=happy', 'status'],
    ['a limit below the minimum', 'limit=0', 'limit'],
  ])('refuse %s', async (_, query, field) => {
    const { add, list, refused } = await start();
    for (const email of ['a@example.net', 'b@example.net']) await add({ email });
    const { nextKey } = await list('limit=1');
    const refusal = await refused('GET', `${CONTACTS}?${query}${query.endsWith('lastKey=') ? nextKey : ''}`);
    expect(refusal).toEqual({ status: 400, code: 'VALIDATION_ERROR', fields: [field] });
  });
});

describe('an import over HTTP', () => {
  interface Result {
    rows: number;
    created: number;
    rejected: number;
    rejectedRows: { line: number; reason: string }[];
    warnings?: string[];
    [count: string]: unknown;
  }
  const importing = (
    api: Awaited<ReturnType<typeof start>>['api'],
    rawBody: string,
    type = 'text/csv',
    query = '',
  ) => api.call<Result>('POST', `${CONTACTS}/import${query}`, { rawBody, headers: { 'Content-Type': type } });

  it('imports thousands of rows in either format, and reports the result', async () => {
    const { api, list } = await start();
    const rows = Array.from({ length: 3000 }, (_, n) =>
      n === 1500 ? 'broken,X' : `p${n}@example.net,P${n}`,
    );
    const csv = await importing(
      api,
      `\uFEFFemail,firstName,shoe size\r\n${rows.map((row) => `${row},39`).join('\r\n')}`,
    );
    expect(csv.data).toEqual({
      message: '2999 of 3000 rows imported.',
      rows: 3000,
      created: 2999,
      updated: 0,
      unchanged: 0,
      rejected: 1,
      subscribed: 0,
      optedOut: 0,
      rejectedRows: [{ line: 1502, reason: 'email: has no "@"' }],
      hygiene: expect.objectContaining({ counts: expect.objectContaining({ examined: 2999, duplicate: 0 }) }),
      warnings: ['unknown column "shoe size" was ignored'],
    });
    const ndjson = await importing(
      api,
      '{"email":"p1@example.net","lastName":"L"}\n',
      'application/x-ndjson',
    );
    expect(ndjson.data).toMatchObject({ rows: 1, created: 0, updated: 1 });
    expect((await list('limit=200')).count).toBe(200);
  });

  it('reads columns of other names as they are assigned', async () => {
    const { api, list } = await start();
    const columns = { Mail: 'email', Given: 'firstName', Plan: 'customFields.plan', lastName: null };
    const query = `?columns=${encodeURIComponent(JSON.stringify(columns))}`;
    const csv = await importing(api, 'Mail;Given;Plan;lastName\na@example.net;A;gold;Z\n', 'text/csv', query);
    expect(csv.data).toMatchObject({ created: 1, rejected: 0 });
    expect(csv.data.warnings).toBeUndefined();
    const row = '{"Mail":"b@example.net","Given":"B","Plan":"gold","lastName":"Z"}\n';
    expect((await importing(api, row, 'application/x-ndjson', query)).data).toMatchObject({ created: 1 });
    const { contacts } = await list('limit=5');
    expect(contacts).toMatchObject([
      { email: 'b@example.net', firstName: 'B', customFields: { plan: 'gold' } },
      { email: 'a@example.net', firstName: 'A', customFields: { plan: 'gold' } },
    ]);
    for (const contact of contacts) expect(contact).not.toHaveProperty('lastName');
  });

  it.each([
    ['no JSON', 'Mail=email', 'must be a JSON object'],
    ['a list', '[]', 'must be a JSON object'],
    ['an unknown field', '{"Mail":"mail"}', '"mail" is not a field'],
    [
      'too long',
      JSON.stringify(Object.fromEntries(Array.from({ length: 501 }, (_, n) => [`c${n}`, null]))),
      'must have at most 500 columns',
    ],
  ])('refuses an assignment of columns that is %s, and stores nothing', async (_, columns, message) => {
    const { api, list } = await start();
    const query = `?columns=${encodeURIComponent(columns)}`;
    const { status, error } = await importing(api, 'email\na@example.net\n', 'text/csv', query);
    expect([status, error.code, error.details?.[0]?.field]).toEqual([400, 'VALIDATION_ERROR', 'columns']);
    expect(error.details?.[0]?.message).toContain(message);
    expect((await list('limit=5')).count).toBe(0);
  });

  it('counts the rows of a dry run without storing anything', async () => {
    const { api, list } = await start();
    const made = await api.post<{ group: { subscriptionGroupId: string } }>(
      `${CONTACTS}/subscription-groups`,
      { name: 'N' },
    );
    const { subscriptionGroupId } = made.data.group;
    const query = `?dryRun=true&subscriptionGroupId=${subscriptionGroupId}`;
    const { data } = await importing(api, 'email\na@example.net\nbroken\n', 'text/csv', query);
    expect(data).toMatchObject({
      message: '1 of 2 rows can be imported. Nothing was stored.',
      created: 1,
      subscribed: 1,
      rejected: 1,
      rejectedRows: [{ line: 3, reason: 'email: has no "@"' }],
    });
    expect((await list('limit=5')).count).toBe(0);
    const group = await api.get<{ group: object }>(`${CONTACTS}/subscription-groups/${subscriptionGroupId}`);
    expect(group.data.group).toMatchObject({ totalSubscribers: 0 });
  });

  it('subscribes to a group of the account only', async () => {
    const { api } = await start();
    const { api: other } = await start();
    const made = await api.post<{ group: { subscriptionGroupId: string } }>(
      `${CONTACTS}/subscription-groups`,
      { name: 'N' },
    );
    const { subscriptionGroupId } = made.data.group;
    const query = `?subscriptionGroupId=${subscriptionGroupId}`;
    expect((await importing(api, 'email\na@example.net\n', 'text/csv', query)).data).toMatchObject({
      subscribed: 1,
    });
    const group = await api.get<{ group: object }>(`${CONTACTS}/subscription-groups/${subscriptionGroupId}`);
    expect(group.data.group).toMatchObject({
      totalSubscribers: 1,
      activeSubscribers: 1,
      importStatus: 'completed',
    });
    const unknown = await importing(other, 'email\na@example.net\n', 'text/csv', query);
    expect([unknown.status, unknown.error.code]).toEqual([404, 'SUBSCRIPTION_GROUP_NOT_FOUND']);
  });

  it('lists imports in the background in pages', async () => {
    const { api } = await start();
    for (const fileName of ['1.csv', '2.csv', '3.csv']) {
      const query = `?background=true&fileName=${fileName}`;
      expect((await importing(api, 'email\na@example.net\n', 'text/csv', query)).status).toBe(202);
    }
    interface ImportPage {
      imports: { importId: string; fileName: string }[];
      count: number;
      nextKey?: string;
    }
    const page = async (query = '') => (await api.get<ImportPage>(`${CONTACTS}/imports${query}`)).data;
    const ids = ({ imports }: ImportPage) => imports.map(({ importId }) => importId);
    const all = await page();
    expect([all.count, all.nextKey]).toEqual([3, undefined]);
    const first = await page('?limit=2');
    expect([first.count, ids(first)]).toEqual([2, ids(all).slice(0, 2)]);
    const second = await page(`?limit=2&lastKey=${first.nextKey}`);
    expect([second.count, ids(second), second.nextKey]).toEqual([1, ids(all).slice(2), undefined]);
  });

  it.each([
    ['text/csv', 'email,isActive\ngone@example.net,false\nstays@example.net,true\n', 2],
    [
      'application/x-ndjson',
      '{"email":"gone@example.net","isActive":false}\n{"email":"stays@example.net","isActive":true}\n',
      1,
    ],
  ])('rejects members who left a group, as GET …/subscriptions lists them: %s', async (type, body, line) => {
    const { api, list } = await start();
    const made = await api.post<{ group: { subscriptionGroupId: string } }>(
      `${CONTACTS}/subscription-groups`,
      { name: 'N' },
    );
    const query = `?subscriptionGroupId=${made.data.group.subscriptionGroupId}`;
    const { data } = await importing(api, body, type, query);
    expect(data).toMatchObject({ rows: 2, created: 1, rejected: 1, subscribed: 1 });
    expect(data.rejectedRows).toEqual([{ line, reason: expect.stringMatching(/^isActive: /) }]);
    expect(data.warnings).toBeUndefined();
    expect((await list('limit=5')).contacts).toMatchObject([{ email: 'stays@example.net' }]);
  });

  it('continues in the background, and shows its progress to its account only', async () => {
    const { api } = await start();
    const { api: other } = await start();
    interface Started {
      import: { importId: string; status: string; [field: string]: unknown };
    }
    const text = 'email,Notes\na@example.net,x\nbroken,y\n';
    const started = await api.call<Started>(
      'POST',
      `${CONTACTS}/import?background=true&fileName=people.csv`,
      { rawBody: text, headers: { 'Content-Type': 'text/csv' } },
    );
    expect(started.status).toBe(202);
    const path = `${CONTACTS}/imports/${started.data.import.importId}`;
    const read = async () => (await api.get<Started>(path)).data.import;
    await expect.poll(async () => (await read()).status).toBe('completed');
    expect(await read()).toMatchObject({
      fileName: 'people.csv',
      reason: null,
      bytes: text.length,
      bytesRead: text.length,
      rows: 2,
      created: 1,
      rejectedRows: [{ line: 3, reason: 'email: has no "@"' }],
      ignoredColumns: ['Notes'],
      subscriptionGroupId: null,
    });
    expect((await api.get(`${CONTACTS}/imports`)).data).toEqual({ imports: [await read()], count: 1 });
    expect((await other.get(`${CONTACTS}/imports`)).data).toEqual({ imports: [], count: 0 });
    for (const limit of [0, 'x']) {
      const refused = await api.get(`${CONTACTS}/imports?limit=${limit}`);
      expect([refused.status, refused.error.details?.[0]?.field]).toEqual([400, 'limit']);
    }
    for (const attempt of [other.get(path), other.post(`${path}/cancel`)])
      expect((await attempt).error.code).toBe('NOT_FOUND');
    expect((await api.post(`${path}/cancel`)).error.code).toBe('INVALID_STATE');
    const dryRun = await importing(api, text, 'text/csv', '?background=true&dryRun=true');
    expect(dryRun.error.details?.[0]?.field).toBe('background');
  });

  it.each([
    ['no body', '', 400],
    ['no header', '1,2,3\n', 400],
    ['JSON', '{}', 415, 'application/json'],
  ])('refuses %s', async (_, body, status, type = 'text/csv') => {
    const { api } = await start();
    expect((await importing(api, body, type)).status).toBe(status);
  });

  it('stores rows read before a disconnect, and can be repeated', async () => {
    const { api } = await start();
    const lines = Array.from({ length: 2000 }, (_, n) => `q${n}@example.net`);
    const caller = new AbortController();
    const body = new ReadableStream({
      async start(controller) {
        controller.enqueue(new TextEncoder().encode(`email\n${lines.slice(0, 1200).join('\n')}\n`));
        // Rows are imported in order: once this one is there, so are 500 before it.
        const path = `${CONTACTS}/${emailIdentifier('q500@example.net')}`;
        await expect.poll(async () => (await api.call('GET', path)).status).toBe(200);
        caller.abort();
      },
    });
    const headers = { 'X-Api-Key': api.keys.setup, 'X-Id': api.accountId, 'Content-Type': 'text/csv' };
    const cut = { method: 'POST', headers, body, duplex: 'half', signal: caller.signal } as RequestInit;
    await expect(fetch(`${daemon.url}${CONTACTS}/import`, cut)).rejects.toThrow();
    const again = await importing(api, `email\n${lines.join('\n')}\n`);
    expect(again.data).toMatchObject({ rows: 2000, rejected: 0 });
    expect(Number(again.data['unchanged'])).toBeGreaterThanOrEqual(500);
  });
});

describe('erasing over HTTP', () => {
  it('leaves no email address, name or phone number in the database files', async () => {
    const { api, add } = await start();
    const person = {
      email: 'unique.person@example.net',
      phone: '+447700900123',
      firstName: 'Uniqua',
      lastName: 'Personson',
    };
    await add({
      ...person,
      customFields: { nickname: 'Personson the Great' },
      consentDetails: 'Personson agreed',
    });
    await api.post('/web-setup/suppressions', { email: person.email });
    const refused = await api.send({
      to: person.email,
      from: 'shop@example.org',
      subject: 'Dear Personson',
      html: '<p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
    });
    expect(refused.status).toBe(403);
    const path = `${CONTACTS}/${emailIdentifier(person.email)}`;
    expect((await api.call('DELETE', path)).status).toBe(200);
    const bytes = readdirSync(daemon.dataDir)
      .filter((name) => name.startsWith('postrider.db'))
      .map((name) => readFileSync(join(daemon.dataDir, name), 'latin1').toLowerCase())
      .join('');
    for (const trace of ['unique.person@', 'personson', 'uniqua', '7700900123'])
      expect(bytes.includes(trace), trace).toBe(false);
    await add({ email: person.email });
    const back = await api.get<{ contact: Contact }>(path);
    expect(back.data.contact.globalStatus).toBe('suppressed');
  });
});

describe('two accounts', () => {
  it('get the same response for a contact of the other as for an unknown one', async () => {
    const { add } = await start();
    const { refused } = await start();
    await add({ email: ADA, phone: '+442079460000' });
    const never = `email_${'0'.repeat(32)}`;
    const calls: [string, (id: string) => string, object?][] = [
      ['GET', (id) => `${CONTACTS}/${id}`],
      ['PUT', (id) => `${CONTACTS}/${id}`, { firstName: 'X' }],
      ['PATCH', (id) => `${CONTACTS}/${id}`, { firstName: 'X' }],
      ['DELETE', (id) => `${CONTACTS}/${id}`],
      ['GET', (id) => `${CONTACTS}/${id}/consent-history`],
    ];
    for (const [method, path, body] of calls) {
      const theirs = await refused(method, path(ADA_ID), body);
      expect(theirs).toMatchObject({ status: 404, code: 'CONTACT_NOT_FOUND' });
      expect(theirs).toEqual(await refused(method, path(never), body));
    }
  });
});
