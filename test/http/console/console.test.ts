import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HOUR, MINUTE } from '../../../src/core/clock.ts';
import { freePort } from '../../support/free-port.ts';
import { accepted, createTestBrowser, startConsole, type TestConsole } from './harness.ts';

let test: TestConsole;
beforeEach(async () => {
  test = await startConsole();
});
afterEach(() => test.stop());

/** The records of the audit log, newest first. */
const auditLog = () =>
  test.tables.auditRecords
    .list({}, 100)
    .rows.map((row) => [row.person_email, row.account_id, row.operation, row.outcome] as const);

describe('sign-in by link', () => {
  it('opens a session with an HttpOnly cookie of the same site', async () => {
    const { link } = accepted(await test.people.createOperator({ email: 'Ops@example.com' }));
    const browser = test.browser();
    const response = await browser.post('/console/session/link', { token: link.token });
    expect(response.status).toBe(200);
    expect(response.data).toMatchObject({
      signedIn: true,
      person: { email: 'Ops@example.com', operator: true, session: { method: 'link' } },
    });
    expect(response.headers.get('set-cookie')).toMatch(
      /^postrider_session=[A-Za-z0-9]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    expect(response.data['pageToken']).toMatch(/^[\w-]{43}$/);
    expect((await browser.get('/console/session')).data).toMatchObject({ signedIn: true });
  });

  it('works once', async () => {
    const invited = accepted(await test.people.createOperator({ email: 'ops@example.com' }));
    await test.signInWith(invited);
    const second = await test.browser().post('/console/session/link', { token: invited.link.token });
    expect(second).toMatchObject({ status: 401, body: { reasonCode: 'UNAUTHENTICATED' } });
    expect(second.headers.get('set-cookie')).toBeNull();
  });

  it('fails after 15 minutes', async () => {
    const { link } = accepted(await test.people.createOperator({ email: 'ops@example.com' }));
    test.clock.time += 15 * MINUTE;
    expect((await test.browser().post('/console/session/link', { token: link.token })).status).toBe(401);
  });

  it('fails for a disabled person, whose sessions end', async () => {
    await test.operator('first@example.com');
    const browser = await test.operator();
    const person = test.tables.people.byEmail('ops@example.com');
    const { link } = accepted(await test.people.issueLink(person?.person_id ?? '', 'sign-in'));
    accepted(await test.people.setStatus(person?.person_id ?? '', 'disabled'));
    expect((await browser.get('/console/me')).status).toBe(401);
    expect((await test.browser().post('/console/session/link', { token: link.token })).status).toBe(401);
  });

  it('stores neither the token of the link nor those of the session', async () => {
    const { link } = accepted(await test.people.createOperator({ email: 'ops@example.com' }));
    const browser = test.browser();
    await browser.post('/console/session/link', { token: link.token });
    const { link: unused } = accepted(await test.people.createOperator({ email: 'ops@example.com' }));
    const stored = JSON.stringify([
      test.tables.consoleSessions.ofPerson(test.tables.people.list(1)[0]?.person_id ?? '', 9),
      test.tables.auditRecords.list({}, 9),
    ]);
    expect(stored).not.toContain(browser.cookie.split('=')[1]);
    expect(stored).not.toContain(browser.pageToken);
    expect(stored).not.toContain(link.token);
    expect(stored).not.toContain(unused.token);
  });

  it('is limited to 100 failures per minute and address', async () => {
    const browser = test.browser();
    const statuses = new Set<number>();
    for (let attempt = 0; attempt < 101; attempt++)
      statuses.add((await browser.post('/console/session/link', { token: 'x'.repeat(43) })).status);
    expect([...statuses]).toEqual([401, 429]);
  });
});

describe('a session', () => {
  it('ends 12 hours after the last request', async () => {
    const browser = await test.operator();
    for (let times = 0; times < 3; times++) {
      test.clock.time += 12 * HOUR - 1;
      expect((await browser.get('/console/me')).status).toBe(200);
      await test.writer.durable();
    }
    test.clock.time += 12 * HOUR;
    expect((await browser.get('/console/me')).status).toBe(401);
  });

  it('needs the page token for every operation of the API', async () => {
    const thief = test.browser();
    thief.cookie = (await test.operator()).cookie;
    for (const operation of Object.keys(CALLS)) expect((await call(thief, operation)).status).toBe(401);
    expect((await thief.get('/console/api/openapi.json')).status).toBe(401);
    const routes = test.console.operations.filter(({ path }) => path.startsWith('/console/api/'));
    expect(routes).toHaveLength(Object.keys(CALLS).length + 1);
  });

  it('is not extended by the requests of a page that nobody uses', async () => {
    const browser = await test.operator();
    test.clock.time += 11 * HOUR;
    const unattended = { headers: { 'X-Unattended': '1' } };
    expect((await browser.send('GET', '/console/me', unattended)).status).toBe(200);
    await test.writer.durable();
    test.clock.time += HOUR;
    expect((await browser.get('/console/me')).status).toBe(401);
  });

  it('ends with the sign-out, which deletes the cookie', async () => {
    const browser = await test.operator();
    const { cookie } = browser;
    const response = await browser.delete('/console/session');
    expect(response.data).toMatchObject({ signedIn: false, person: null });
    expect(response.headers.get('set-cookie')).toContain('Max-Age=0');
    browser.cookie = cookie;
    expect((await browser.get('/console/me')).status).toBe(401);
  });

  it('is listed and can be revoked from another one', async () => {
    const first = await test.operator();
    const second = await test.operator();
    const { data } = await first.get('/console/me/sessions');
    const sessions = data['sessions'] as { id: string; current: boolean }[];
    expect(sessions.filter(({ current }) => current)).toHaveLength(1);
    expect(sessions).toHaveLength(2);
    const other = sessions.find(({ current }) => !current);
    expect((await first.delete(`/console/me/sessions/${other?.id}`)).status).toBe(200);
    expect((await second.get('/console/me')).status).toBe(401);
    expect((await first.get('/console/me')).status).toBe(200);
  });

  it('cannot revoke sessions of other people', async () => {
    const browser = await test.operator();
    const viewer = await test.member('viewer');
    const { data } = await viewer.get('/console/me/sessions');
    const [session] = data['sessions'] as { id: string }[];
    expect((await browser.delete(`/console/me/sessions/${session?.id}`)).status).toBe(404);
    expect((await viewer.get('/console/me')).status).toBe(200);
  });

  it('shows its person the accounts and roles', async () => {
    const viewer = await test.member('viewer');
    expect((await viewer.get('/console/session')).data['person']).toMatchObject({
      operator: false,
      memberships: [{ accountId: test.account, accountName: 'Shop', role: 'viewer' }],
      roles: { viewer: ['read'] },
      operations: { sendCampaign: 'send' },
    });
    const operator = await test.operator();
    expect((await operator.get('/console/session')).data['person']).toMatchObject({
      memberships: [
        { accountName: 'Shop', role: 'operator' },
        { accountName: 'Other', role: 'operator' },
      ],
    });
  });
});

describe('operations of the API', () => {
  it('are described for people with a session', async () => {
    const response = await fetch(`${test.base}/console/api/openapi.json`);
    expect(response.status).toBe(401);
    const viewer = await test.member('viewer');
    const described = await viewer.get('/console/api/openapi.json');
    expect(described.status).toBe(200);
    expect(described.body).toMatchObject({ openapi: '3.1.0', info: { version: '1.2.3' } });
  });

  it('are called as the account in X-Id', async () => {
    const viewer = await test.member('viewer');
    const response = await viewer.get('/console/api/web-setup/messages', test.account);
    expect(response).toMatchObject({ status: 200, data: { accountId: test.account } });
    expect(response.data['by']).toMatch(/^person_/);
  });

  it.each([
    ['viewer', 'listMessages', 200],
    ['viewer', 'createTemplate', 403],
    ['author', 'createTemplate', 200],
    ['author', 'sendCampaign', 403],
    ['sender', 'sendCampaign', 200],
    ['developer', 'sendCampaign', 403],
    ['sender', 'eraseContact', 403],
    ['owner', 'eraseContact', 200],
    ['owner', 'getQueue', 403],
    ['owner', 'anOperationWithoutPermission', 403],
  ] as const)('answer a member with the role %s to %s with %i', async (role, operation, status) => {
    const browser = await test.member(role);
    expect((await call(browser, operation)).status).toBe(status);
  });

  it('are all open to operators, in every account', async () => {
    const browser = await test.operator();
    for (const operation of Object.keys(CALLS)) {
      const { status, data } = await call(browser, operation);
      const accountId = operation === 'getQueue' ? '' : test.account;
      expect([operation, status, data['accountId']]).toEqual([operation, 200, accountId]);
    }
    expect((await browser.get('/console/api/web-setup/messages', test.other)).data).toMatchObject({
      accountId: test.other,
    });
  });

  it('are refused without a session, without an account, and in an account of others', async () => {
    const path = '/console/api/web-setup/messages';
    expect((await test.browser().get(path, test.account)).status).toBe(401);
    const viewer = await test.member('viewer');
    expect((await viewer.get(path)).status).toBe(400);
    const ofOther = await viewer.get(path, test.other);
    const ofNobody = await viewer.get(path, 'acct_doesnotexist');
    expect([ofOther.status, ofNobody.status]).toEqual([403, 403]);
    expect(String(ofOther.body['message']).replace(test.other, '')).toBe(
      String(ofNobody.body['message']).replace('acct_doesnotexist', ''),
    );
  });

  it('are refused in a disabled account; an operator can read it', async () => {
    const owner = await test.member('owner');
    const operator = await test.operator();
    await test.accounts.setStatus(test.account, 'disabled');
    const path = '/console/api/web-setup/messages';
    expect((await owner.get(path, test.account)).body['reasonCode']).toBe('ACCOUNT_DISABLED');
    expect((await operator.get(path, test.account)).status).toBe(200);
    expect((await call(operator, 'createTemplate')).body['reasonCode']).toBe('ACCOUNT_DISABLED');
  });

  it('do not accept an API key', async () => {
    const created = accepted(await test.accounts.create({ name: 'Third' }));
    const response = await test.browser().send('GET', '/console/api/web-setup/messages', {
      headers: { 'X-Api-Key': created.keys.setup, 'X-Id': created.account.accountId },
    });
    expect(response.status).toBe(401);
  });

  it('require a person who was confirmed in the last 10 minutes if they erase', async () => {
    const owner = await test.member('owner');
    test.clock.time += 10 * MINUTE;
    const response = await call(owner, 'eraseContact');
    expect(response).toMatchObject({
      status: 403,
      body: { error: { details: [{ field: 'session', reason: 'REAUTHENTICATION' }] } },
    });
    expect((await call(owner, 'sendCampaign')).status).toBe(200);
  });
});

describe('the audit log', () => {
  it('has changes, denials and sign-ins, not reads', async () => {
    const author = await test.member('author');
    await call(author, 'createTemplate');
    await call(author, 'sendCampaign');
    await call(author, 'listMessages');
    expect(auditLog()).toEqual([
      ['author@example.com', test.account, 'sendCampaign', 'denied'],
      ['author@example.com', test.account, 'createTemplate', 'done'],
      ['author@example.com', null, 'console.signIn', 'done'],
    ]);
  });

  it('has the ids in the path, with an identifier instead of an address', async () => {
    const owner = await test.member('owner');
    await owner.delete('/console/api/web-setup/contacts/ada%40example.org', test.account);
    const [row] = test.tables.auditRecords.list({}, 1).rows;
    expect(row?.target).toMatch(/^\{"contactIdentifier":"email_[0-9a-f]{32}"\}$/);
  });

  it('has what an operation states about its success', async () => {
    const owner = await test.member('owner');
    const headers = { 'X-Id': test.account };
    const create = (reason: unknown) =>
      owner.send('POST', '/console/api/web-setup/templates', { body: { reason }, headers });
    expect((await create(1)).status).toBe(400);
    expect((await create('The old list is deleted')).status).toBe(200);
    const { rows } = test.tables.auditRecords.list({}, 2);
    expect(rows.map(({ outcome, detail }) => [outcome, detail])).toEqual([
      ['done', 'The old list is deleted'],
      ['refused', 'VALIDATION_ERROR'],
    ]);
  });

  it('has the same denial once a minute', async () => {
    const viewer = await test.member('viewer');
    for (let times = 0; times < 3; times++) await call(viewer, 'sendCampaign');
    expect(auditLog().filter(([, , operation]) => operation === 'sendCampaign')).toHaveLength(1);
    test.clock.time += MINUTE;
    await call(viewer, 'sendCampaign');
    expect(auditLog().filter(([, , operation]) => operation === 'sendCampaign')).toHaveLength(2);
  });
});

describe('requests of other pages', () => {
  it.each([
    ['without the header of the application', { 'X-Postrider-Console': '' }],
    ['of another site', { 'Sec-Fetch-Site': 'cross-site' }],
    ['of another host of the same site', { 'Sec-Fetch-Site': 'same-site' }],
    ['that the address bar caused', { 'Sec-Fetch-Site': 'none' }],
    ['with another Origin', { Origin: 'https://attacker.example' }],
    ['with the Origin of another port', { Origin: 'http://127.0.0.1:1' }],
    ['with the Origin of a sandboxed frame', { Origin: 'null' }],
  ])('are refused: changes %s', async (_, headers) => {
    const owner = await test.member('owner');
    const response = await owner.send('POST', '/console/api/web-setup/templates', {
      body: {},
      headers: { 'X-Id': test.account, ...headers },
    });
    expect(response.status).toBe(403);
    expect(auditLog().map(([, , operation]) => operation)).toEqual(['console.signIn']);
  });

  it.each(['cross-site', 'same-site'])('are refused: reads with Sec-Fetch-Site %s', async (site) => {
    const owner = await test.member('owner');
    const headers = { 'X-Id': test.account, 'Sec-Fetch-Site': site };
    const response = await owner.send('GET', '/console/api/web-setup/messages', { headers });
    expect(response.status).toBe(403);
  });

  it('are refused under the name of another host (DNS rebinding)', async () => {
    const { status } = await fetchWithHost('attacker.example');
    expect(status).toBe(421);
  });

  async function fetchWithHost(host: string): Promise<{ status: number }> {
    const { request } = await import('node:http');
    return new Promise((resolve, reject) => {
      request(`${test.base}/console/session`, { headers: { Host: host } }, (response) => {
        response.resume();
        resolve({ status: response.statusCode ?? 0 });
      })
        .on('error', reject)
        .end();
    });
  }
});

it('requests without a session are limited for all addresses of a client together', async () => {
  const proxied = await startConsole({ env: { POSTRIDER_CONSOLE__TRUSTEDPROXIES: '["127.0.0.1"]' } });
  try {
    const statuses = new Set<number>();
    for (let request = 0; request <= 300; request++) {
      const headers = { 'X-Forwarded-For': `2001:db8::${request.toString(16)}` };
      statuses.add((await fetch(`${proxied.base}/console/session`, { headers })).status);
    }
    expect([...statuses]).toEqual([200, 429]);
  } finally {
    await proxied.stop();
  }
});

describe('the files of the application', () => {
  it('are served with headers that allow nothing from elsewhere, inline or in frames', async () => {
    const response = await fetch(`${test.base}/console/`);
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('<title>Postrider</title>');
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|\*/);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    });
  });

  it('answer every page of the application, also where an operation has the same path', async () => {
    for (const path of ['/console/messages/msg_1', '/console/people', '/console/']) {
      const response = await fetch(test.base + path, { headers: { Accept: 'text/html,*/*' } });
      expect([path, response.headers.get('content-type')]).toEqual([path, 'text/html; charset=utf-8']);
    }
    expect((await test.browser().get('/console/me')).status).toBe(401);
  });

  it('redirect the root to the console', async () => {
    const response = await fetch(test.base, { redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual([308, '/console/']);
  });

  it('are stored by browsers under names with a hash, and sent compressed', async () => {
    const response = await fetch(`${test.base}/console/assets/index-1a2b3c.js`, {
      headers: { 'Accept-Encoding': 'gzip, br' },
    });
    expect(await response.text()).toBe('export const loaded = true;');
    expect(response.headers.get('content-encoding')).toBe('br');
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(response.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    const plain = await fetch(`${test.base}/console/assets/index-1a2b3c.js`, {
      headers: { 'Accept-Encoding': 'identity' },
    });
    expect(plain.headers.get('content-encoding')).toBeNull();
  });

  it.each([
    '/console/assets/index-old.js',
    '/console/assets/..%2f..%2fmaster.key',
    '/console/assets/%2e%2e/%2e%2e/postrider.db',
  ])('have no %s', async (path) => {
    const response = await fetch(test.base + path, { headers: { Accept: '*/*' } });
    const text = await response.text();
    expect(response.status === 404 || text.includes('<title>Postrider</title>')).toBe(true);
  });
});

describe('localhost', () => {
  it('is answered at both loopback addresses, so that no other program has its origin', async () => {
    const port = await freePort();
    const local = await startConsole({ env: { POSTRIDER_CONSOLE__LISTEN: `127.0.0.1:${port}` } });
    try {
      for (const host of ['127.0.0.1', '[::1]'])
        expect((await fetch(`http://${host}:${port}/console/`)).status).toBe(200);
    } finally {
      await local.stop();
    }
    const squatter = createServer();
    await new Promise<void>((resolve) => squatter.listen(port, '::1', resolve));
    try {
      await expect(startConsole({ env: { POSTRIDER_CONSOLE__LISTEN: `127.0.0.1:${port}` } })).rejects.toThrow(
        `console.listen: port ${port} of ::1 is in use`,
      );
    } finally {
      squatter.close();
    }
  });
});

describe('an https address', () => {
  it('gives the cookie the prefix __Host- and the attribute Secure', async () => {
    const secure = await startConsole({ env: { POSTRIDER_CONSOLE__URL: 'https://console.example.com' } });
    try {
      const { link } = accepted(await secure.people.createOperator({ email: 'ops@example.com' }));
      const browser = createTestBrowser(secure.base);
      const response = await browser.post('/console/session/link', { token: link.token });
      expect(response.headers.get('set-cookie')).toMatch(
        /^__Host-postrider_session=[A-Za-z0-9]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
      );
    } finally {
      await secure.stop();
    }
  });
});

const CALLS: Record<string, [string, string]> = {
  listMessages: ['GET', '/web-setup/messages'],
  createTemplate: ['POST', '/web-setup/templates'],
  sendCampaign: ['POST', '/web-setup/campaigns/campaign_1/send'],
  eraseContact: ['DELETE', '/web-setup/contacts/email_0123'],
  getQueue: ['GET', '/web-setup/queue'],
  anOperationWithoutPermission: ['GET', '/web-setup/unlisted'],
};

function call(browser: ReturnType<TestConsole['browser']>, operation: string) {
  const [method, path] = CALLS[operation] ?? ['GET', '/'];
  return browser.send(method, `/console/api${path}`, { headers: { 'X-Id': test.account } });
}
