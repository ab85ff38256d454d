import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { createLog } from '../../../src/core/log.ts';
import { accepted, startConsole, type TestBrowser, type TestConsole, type TestResponse } from './harness.ts';

let test: TestConsole;
beforeEach(async () => {
  test = await startConsole();
});
afterEach(() => test.stop());

const tokenOf = ({ data }: TestResponse) => String(data['link']).split('/').at(-1) ?? '';
const idOf = (email: string) => test.tables.people.byEmail(email)?.person_id ?? '';

/** Signs in with the link of a response. */
async function follow(response: TestResponse): Promise<TestBrowser> {
  const browser = test.browser();
  const opened = await browser.post('/console/session/link', { token: tokenOf(response) });
  expect(opened.status).toBe(200);
  return browser;
}

describe('the members of an account', () => {
  it('are invited by an owner with a link that signs in once', async () => {
    const owner = await test.member('owner');
    const response = await owner.post(
      '/console/people',
      { email: 'new@example.com', name: 'Ada', role: 'author' },
      test.account,
    );
    expect(response).toMatchObject({
      status: 201,
      data: {
        person: { email: 'new@example.com', name: 'Ada', operator: false },
        link: expect.stringMatching(/^http:\/\/localhost:\d+\/console\/#\/link\/[0-9A-Za-z]{43}$/),
      },
    });
    const invited = await follow(response);
    expect((await invited.get('/console/session')).data['person']).toMatchObject({
      memberships: [{ accountId: test.account, role: 'author' }],
    });
  });

  it.each(['sender', 'author', 'developer', 'viewer'] as const)('are hidden from a %s', async (role) => {
    const browser = await test.member(role);
    expect((await browser.get('/console/people', test.account)).status).toBe(403);
    expect((await browser.get('/console/people')).status).toBe(400);
    expect((await browser.get('/console/audit', test.account)).status).toBe(403);
  });

  it('are the members of this account only', async () => {
    const owner = await test.member('owner');
    await test.operator();
    accepted(await test.people.invite(test.other, { email: 'o@example.com', role: 'owner' }, 'operator'));
    const { data } = await owner.get('/console/people', test.account);
    expect(data['people']).toMatchObject([{ email: 'owner@example.com', role: 'owner' }]);
    expect((await owner.get('/console/people', test.other)).status).toBe(403);
  });

  it('never include an existing person that an owner names: the link would sign in as that person', async () => {
    const owner = await test.member('owner');
    await test.operator();
    const response = await owner.post(
      '/console/people',
      { email: 'OPS@example.com', role: 'viewer' },
      test.account,
    );
    expect(response).toMatchObject({ status: 409, body: { reasonCode: 'INVALID_STATE' } });
    expect(response.data['link']).toBeUndefined();
  });

  it('include an existing person that an operator names, without a link', async () => {
    const operator = await test.operator();
    await test.member('viewer');
    const response = await operator.post(
      '/console/people',
      { email: 'viewer@example.com', role: 'owner' },
      test.other,
    );
    expect(response.status).toBe(201);
    expect(response.data['link']).toBeUndefined();
    expect(test.people.standing({ id: idOf('viewer@example.com'), operator: false }, test.other)).toBe(
      'owner',
    );
  });

  it('get another role immediately, and lose their access when they are removed', async () => {
    const owner = await test.member('owner');
    const author = await test.member('author');
    const path = `/console/people/${idOf('author@example.com')}`;
    const send = () => author.post('/console/api/web-setup/campaigns/campaign_1/send', {}, test.account);
    expect((await send()).status).toBe(403);
    expect((await owner.patch(path, { role: 'sender' }, test.account)).status).toBe(200);
    expect((await send()).status).toBe(200);
    expect((await owner.delete(path, test.account)).status).toBe(200);
    expect((await send()).status).toBe(401);
    expect(test.tables.people.byEmail('author@example.com')).toBeNull();
  });

  it('always include an owner', async () => {
    const owner = await test.member('owner');
    const path = `/console/people/${idOf('owner@example.com')}`;
    expect((await owner.patch(path, { role: 'viewer' }, test.account)).status).toBe(409);
    expect((await owner.delete(path, test.account)).status).toBe(409);
  });

  it('are recovered by an owner with a link that removes all other credentials', async () => {
    const owner = await test.member('owner');
    const viewer = await test.member('viewer');
    const response = await owner.post(
      `/console/people/${idOf('viewer@example.com')}/recovery`,
      {},
      test.account,
    );
    expect((await viewer.get('/console/me')).status).toBe(401);
    expect((await (await follow(response)).get('/console/me')).data).toMatchObject({
      email: 'viewer@example.com',
    });
  });

  it('are not recovered by an owner if they have other roles: the link would sign in with these', async () => {
    const owner = await test.member('owner');
    const operator = await test.operator();
    await test.member('viewer');
    for (const [email, account] of [
      ['ops@example.com', test.account],
      ['viewer@example.com', test.other],
    ] as const)
      await operator.post('/console/people', { email, role: 'viewer' }, account);
    for (const email of ['ops@example.com', 'viewer@example.com']) {
      const path = `/console/people/${idOf(email)}/recovery`;
      expect((await owner.post(path, {}, test.account)).status).toBe(409);
      expect((await owner.post(path, {}, test.other)).status).toBe(403);
    }
  });

  it('are changed only by an owner who was confirmed', async () => {
    const owner = await test.member('owner');
    await test.member('viewer');
    test.clock.time += 10 * MINUTE;
    const response = await owner.patch(
      `/console/people/${idOf('viewer@example.com')}`,
      { role: 'owner' },
      test.account,
    );
    expect(response).toMatchObject({
      status: 403,
      body: { error: { details: [{ reason: 'REAUTHENTICATION' }] } },
    });
  });
});

describe('all people', () => {
  it('are listed, disabled and deleted by operators only', async () => {
    const operator = await test.operator();
    const owner = await test.member('owner');
    const { data } = await operator.get('/console/people');
    expect(data['people']).toMatchObject([{ email: 'ops@example.com' }, { email: 'owner@example.com' }]);
    const path = `/console/people/${idOf('owner@example.com')}`;
    expect((await owner.patch(path, { status: 'disabled' })).status).toBe(400);
    expect((await operator.patch(path, { status: 'disabled' })).status).toBe(200);
    expect((await owner.get('/console/me')).status).toBe(401);
    expect((await operator.delete(path)).status).toBe(200);
    expect((await operator.delete(path)).status).toBe(404);
  });

  it('always include an active operator', async () => {
    const operator = await test.operator();
    const path = `/console/people/${idOf('ops@example.com')}`;
    expect((await operator.patch(path, { status: 'disabled' })).status).toBe(409);
    expect((await operator.delete(path)).status).toBe(409);
  });

  it('lose their credentials and sessions when they become operators', async () => {
    const operator = await test.operator();
    const viewer = await test.member('viewer');
    const response = await operator.post('/console/people', { email: 'viewer@example.com' });
    expect((await viewer.get('/console/me')).status).toBe(401);
    expect((await (await follow(response)).get('/console/me')).data).toMatchObject({ operator: true });
  });
});

describe('the audit log', () => {
  it('is read page by page, of the account by its owner and completely by operators', async () => {
    const operator = await test.operator();
    const owner = await test.member('owner');
    for (let times = 0; times < 3; times++)
      await owner.post('/console/api/web-setup/templates', {}, test.account);
    await operator.post('/console/api/web-setup/templates', {}, test.other);
    const first = await owner.get('/console/audit?limit=2', test.account);
    expect(first.data['records']).toMatchObject([
      { operation: 'createTemplate', accountId: test.account, email: 'owner@example.com', outcome: 'done' },
      { operation: 'createTemplate' },
    ]);
    const second = await owner.get(
      `/console/audit?limit=2&before=${String(first.data['next'])}`,
      test.account,
    );
    expect(second.data).toMatchObject({ records: [{ operation: 'createTemplate' }], next: null });
    const all = await operator.get('/console/audit');
    expect((all.data['records'] as { accountId: string }[]).map(({ accountId }) => accountId)).toEqual([
      test.other,
      test.account,
      test.account,
      test.account,
      null,
      null,
    ]);
    const ofOwner = await operator.get(`/console/audit?personId=${idOf('owner@example.com')}`);
    const names = (ofOwner.data['records'] as { summary: string }[]).map(({ summary }) => summary);
    expect(names).toEqual(['Create a template', 'Create a template', 'Create a template', 'Sign in']);
  });

  it('is exported as CSV, without formulas, and as lines of JSON; the export is recorded', async () => {
    const operator = await test.operator();
    await test.writer.run((tx) =>
      tx.auditRecords.insert({
        recorded_at: test.clock.now(),
        person_id: null,
        person_email: '=HYPERLINK("https://attacker.example")',
        account_id: null,
        operation: 'console.signIn',
        target: '{"a":"1"}',
        outcome: 'denied',
        detail: '',
        remote_address: '192.0.2.1',
      }),
    );
    const get = (format: string) =>
      fetch(`${test.base}/console/audit/export?format=${format}`, {
        headers: { ...operator.credentials(), 'Sec-Fetch-Dest': 'empty', 'Sec-Fetch-Site': 'same-origin' },
      });
    const csv = await get('csv');
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(csv.headers.get('content-disposition')).toBe('attachment; filename="audit-log.csv"');
    const [head, newest, planted] = (await csv.text()).split('\r\n');
    expect(head).toBe('seq,at,personId,email,accountId,operation,target,outcome,detail,address');
    expect(newest).toContain('"console.exportAuditRecords"');
    expect(planted).toContain(`"'=HYPERLINK(""https://attacker.example"")"`);
    expect(planted).toContain('"{""a"":""1""}"');
    const lines = (await (await get('ndjson')).text()).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).operation)).toEqual([
      'console.exportAuditRecords',
      'console.exportAuditRecords',
      'console.signIn',
      'console.signIn',
    ]);
    expect((await get('xml')).status).toBe(400);
  });

  it('is exported completely, in portions', async () => {
    const operator = await test.operator();
    await test.writer.run((tx) => {
      for (let number = 0; number < 1200; number++)
        tx.auditRecords.insert({
          recorded_at: test.clock.now(),
          person_id: null,
          person_email: '',
          account_id: test.account,
          operation: `operation${number}`,
          target: '{}',
          outcome: 'done',
          detail: '',
          remote_address: '192.0.2.1',
        });
    });
    const response = await fetch(`${test.base}/console/audit/export?format=ndjson&account=${test.account}`, {
      headers: operator.credentials(),
    });
    const numbers = (await response.text())
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).operation);
    expect(numbers).toEqual([
      'console.exportAuditRecords',
      ...Array.from({ length: 1200 }, (_, index) => `operation${1199 - index}`),
    ]);
  });

  it('is not exported completely when it cannot be read, which is logged', async () => {
    const logged: string[] = [];
    const log = createLog(
      { level: 'error', hashAddresses: false },
      { write: (line) => logged.push(JSON.parse(line).msg) },
    );
    const failing = await startConsole({ log });
    try {
      const operator = await failing.operator();
      failing.tables.auditRecords.list = () => {
        throw new Error('database disk image is malformed');
      };
      const url = `${failing.base}/console/audit/export?format=csv`;
      await expect(
        fetch(url, { headers: operator.credentials() }).then((response) => response.text()),
      ).rejects.toThrow();
      expect(logged).toEqual(['export of the audit log failed']);
    } finally {
      await failing.stop();
    }
  });

  it('is not exported for others', async () => {
    const viewer = await test.member('viewer');
    const status = async (query: string, browser = viewer) =>
      (await fetch(`${test.base}/console/audit/export?${query}`, { headers: browser.credentials() })).status;
    expect(await status(`account=${test.account}`)).toBe(403);
    expect(await status('')).toBe(400);
    expect(await status(`account=${test.account}`, test.browser())).toBe(401);
  });
});
