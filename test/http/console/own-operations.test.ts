import { hash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { messageContentRoutes } from '../../../src/http/api/sending/message-content.ts';
import { packContent } from '../../../src/mail/stored-content.ts';
import type { ConsolePerson } from '../../../src/people/person.ts';
import { type Permission, permissionsOf, ROLES, type Standing } from '../../../src/people/roles.ts';
import type { MemberRole } from '../../../src/store/people/people.ts';
import { png } from '../../support/images.ts';
import { enqueue, insertDomain } from '../../support/store.ts';
import { accepted, startConsole, type TestBrowser, type TestConsole } from './harness.ts';

/*
 * Every operation of the console itself, as it registers them: without a session, as an operator and with each role of an
 * account, in this account, in others and with ids of others, and from pages of other sites. matrix.test.ts does the same
 * with the operations of the API.
 */
interface Rule {
  /** `anyone`: no session; `person`: a session; else the permission in the account. */
  access: 'anyone' | 'person' | Permission;
  /** Where a request names the account. Not set: the operation concerns the person. */
  account?: 'X-Id' | 'account';
  /** Whether an operator may name no account. */
  installation?: true;
  /** Whether the person must have proved recently who they are. */
  confirmed?: true;
  /** Whether it adds a first credential: a person who has none may call it at any time. */
  first?: true;
  /** Whether pages of other sites may lead to it: the provider of OpenID Connect. */
  otherSites?: true;
  /** Whether its address is known to everyone who has received mail with it. */
  published?: true;
  /** A body with which the operation succeeds. */
  body?: object;
  /** A query with which the operation succeeds; with ids as a path. */
  query?: string;
}

const OF_READERS = { access: 'read', account: 'X-Id', installation: true } as const;
const OF_MEMBERS = { access: 'people', account: 'X-Id', installation: true } as const;
const CONFIRMED = { access: 'person', confirmed: true } as const;
const FIRST = { ...CONFIRMED, first: true } as const;

const RULES: Readonly<Record<string, Rule>> = {
  'GET /console/oidc/start': { access: 'anyone', otherSites: true },
  'GET /console/oidc/callback': { access: 'anyone', otherSites: true },
  'GET /console/session': { access: 'anyone' },
  'POST /console/session/link': { access: 'anyone' },
  'POST /console/session/password': { access: 'anyone' },
  'POST /console/session/passkey/options': { access: 'anyone', body: {} },
  'POST /console/session/passkey/verify': { access: 'anyone' },
  'POST /console/session/passkey/confirm': { access: 'person' },
  'POST /console/session/reauthenticate': { access: 'person' },
  'GET /console/images/{file}': { access: 'anyone', published: true },
  'GET /console/me': { access: 'person' },
  'PATCH /console/me': { access: 'person', body: { name: 'Changed' } },
  // Before the operations that end the other sessions.
  'DELETE /console/me/sessions/{sessionId}': { access: 'person', body: {} },
  'PUT /console/me/password': { ...FIRST, body: { password: 'a long and unknown password 1' } },
  'DELETE /console/me/password': { ...CONFIRMED, body: {} },
  'POST /console/me/totp': { ...FIRST, body: {} },
  'POST /console/me/totp/verify': FIRST,
  'GET /console/me/passkeys': { access: 'person' },
  'POST /console/me/passkeys': FIRST,
  'POST /console/me/passkeys/options': { ...FIRST, body: {} },
  'DELETE /console/me/passkeys/{passkeyId}': { ...CONFIRMED, body: {} },
  'GET /console/me/sessions': { access: 'person' },
  'DELETE /console/me/sessions': { access: 'person', body: {} },
  'GET /console/webhook-health': { access: 'read', account: 'X-Id' },
  'GET /console/attention': OF_READERS,
  'GET /console/message-counts': { access: 'read', account: 'X-Id' },
  'GET /console/views': OF_READERS,
  'POST /console/views': {
    ...OF_READERS,
    body: { page: 'messages', name: 'Bounces', query: { status: 'bounced' } },
  },
  'DELETE /console/views/{viewId}': { ...OF_READERS, body: {} },
  'GET /console/figures/campaigns': { access: 'read', account: 'X-Id' },
  'GET /console/figures/audience': {
    access: 'read',
    account: 'X-Id',
    query: '?subscriptionGroupIds={subscriptionGroupId}',
  },
  'PUT /console/attention/seen': {
    access: 'read',
    account: 'X-Id',
    installation: true,
    body: { ofAccount: [], ofInstallation: [] },
  },
  'GET /console/people': OF_MEMBERS,
  'POST /console/people': {
    ...OF_MEMBERS,
    confirmed: true,
    body: { email: 'new@example.com', role: 'viewer' },
  },
  'PATCH /console/people/{personId}': { ...OF_MEMBERS, confirmed: true, body: { role: 'viewer' } },
  'POST /console/people/{personId}/recovery': { ...OF_MEMBERS, confirmed: true, body: {} },
  'DELETE /console/people/{personId}': { ...OF_MEMBERS, confirmed: true, body: {} },
  'GET /console/audit': OF_MEMBERS,
  'GET /console/audit/export': { access: 'people', account: 'account', installation: true },
  'GET /console/exports/contacts': { access: 'export', account: 'account' },
  'GET /console/stream': { access: 'read', account: 'account' },
  'GET /console/test-recipients': { access: 'send', account: 'X-Id' },
  'POST /console/previews': { access: 'read', account: 'X-Id', body: { html: '<p>Hello</p>' } },
  'GET /console/previews/{previewId}': { access: 'person' },
  // Ends the session with which the operations are called.
  'DELETE /console/session': { access: 'anyone', body: {} },
};
const OPERATIONS = Object.entries(RULES).map(([name, rule]) => {
  const [method = '', path = ''] = name.split(' ');
  return { name, method, path, rule, isRead: method === 'GET' };
});
type OwnOperation = (typeof OPERATIONS)[number];

/** What belongs to a person, by the names of path parameters. */
interface Ids {
  personId: string;
  sessionId: string;
  passkeyId: string;
  previewId: string;
  /** Of an image. */
  file: string;
  viewId: string;
  subscriptionGroupId: string;
  /** A message of the account. */
  id: string;
}

interface Member {
  person: ConsolePerson;
  browser: TestBrowser;
  ids: Ids;
}

let test: TestConsole;
/** Another owner of the account, and an owner of the other account. */
let colleague: Member;
let outsider: Member;
let people = 0;

beforeAll(async () => {
  test = await startConsole({
    // No provider listens there.
    env: { POSTRIDER_CONSOLE__OIDC__ISSUER: 'http://127.0.0.1:1', POSTRIDER_CONSOLE__OIDC__CLIENTID: 'c' },
    routes: (reader) =>
      messageContentRoutes(
        { reader },
        {
          describeCopy: ({ recipient }) => ({
            kind: 'transactional',
            recipient,
            unsubscribeUrl: 'https://track.example.com/u/1',
            reportAbuseUrl: 'https://track.example.com/r/1',
            unsubscribeAddress: null,
            signedId: '1',
            feedbackAddress: null,
            feedbackId: '1',
          }),
        },
      ),
  });
  colleague = await memberWithResources(test.account);
  outsider = await memberWithResources(test.other);
  // Otherwise nobody could remove them.
  await invited(test.account, 'owner');
  await invited(test.other, 'owner');
});
afterAll(() => test.stop());

async function invited(accountId: string, role: MemberRole): Promise<ConsolePerson> {
  test.clock.time++;
  const email = `${role}${++people}@example.com`;
  return accepted(await test.people.invite(accountId, { email, role }, 'operator')).person;
}

async function personWith(standing: Standing): Promise<ConsolePerson> {
  if (standing !== 'operator') return invited(test.account, standing);
  test.clock.time++;
  return accepted(await test.people.createOperator({ email: `operator${++people}@example.com` })).person;
}

/** A browser with a new session of the person. */
const signIn = async ({ id }: ConsolePerson): Promise<TestBrowser> =>
  test.signInWith(accepted(await test.people.issueLink(id, 'sign-in')));

/** A person with a further session, a passkey and a preview, and a message and a group of the account. */
async function resourcesOf(person: ConsolePerson, accountId: string): Promise<Member> {
  const { tables } = test;
  const now = test.clock.now();
  const browser = await signIn(person);
  const known = new Set(tables.consoleSessions.ofPerson(person.id, 99).map((row) => row.session_id));
  await signIn(person);
  const further = tables.consoleSessions.ofPerson(person.id, 99).find((row) => !known.has(row.session_id));
  const passkeyId = `passkey-${person.id}`;
  tables.passkeys.insert({
    credential_id: passkeyId,
    person_id: person.id,
    name: 'Laptop',
    public_key: Buffer.alloc(1),
    counter: 0,
    transports: '[]',
    created_at: now,
    used_at: null,
  });
  const { data } = await browser.post('/console/previews', { html: '<p>Secret</p>' }, accountId);
  const view = { page: 'messages', name: 'Of the member', query: { status: 'bounced' } };
  const saved = await browser.post('/console/views', view, accountId);
  const domainId = `domain_${person.id}`;
  const [group] = tables.domainGroups.list(accountId);
  insertDomain(
    tables,
    {
      account_id: accountId,
      group_id: group?.group_id ?? '',
      domain_id: domainId,
      name: `${domainId.toLowerCase()}.test`,
    },
    now,
  );
  const image = png();
  const link = hash('sha256', person.id).slice(0, 43);
  const stored = tables.media.insertContent({
    account_id: accountId,
    hash: hash('sha256', person.id, 'buffer'),
    state: 'stored',
    type: 'image/png',
    width: 3,
    height: 2,
    frames: 1,
    size: image.length,
  });
  tables.media.insertPart(stored, 0, image);
  tables.media.insert({
    media_id: `media_${person.id}`,
    account_id: accountId,
    content_seq: stored,
    link,
    name: 'Secret',
    alt: '',
    created_at: now,
    updated_at: now,
  });
  const subscriptionGroupId = `sgroup_${person.id}`;
  tables.subscriptionGroups.insert({
    subscription_group_id: subscriptionGroupId,
    account_id: accountId,
    name: 'Secret',
    description: null,
    is_active: 1,
    tags: '[]',
    unsubscribe_template_id: null,
    report_abuse_template_id: null,
    company_address_template_id: null,
    sign_up: null,
    is_public: null,
    archive_key: null,
    created_at: now,
    updated_at: now,
  });
  const content = {
    from: { name: '', address: 'shop@example.com' },
    to: [{ name: '', address: 'ada@example.net' }],
    cc: [],
    replyTo: null,
    subject: 'Secret',
    html: '<p>Secret</p>',
    text: null,
    headers: [],
    attachments: [],
    messageId: 'secret@example.com',
    date: now,
  };
  const { message_id: id } = enqueue(tables, now, {
    account_id: accountId,
    domain_id: domainId,
    content_id: tables.messages.insertContent(packContent(JSON.stringify(content)), now),
  });
  const ids = {
    personId: person.id,
    sessionId: further?.session_id ?? '',
    passkeyId,
    previewId: String(data['id']),
    file: `${link}.png`,
    viewId: String(saved.data['id']),
    subscriptionGroupId,
    id,
  };
  return { person, browser, ids };
}

const memberWithResources = async (accountId: string): Promise<Member> =>
  resourcesOf(await invited(accountId, 'owner'), accountId);

interface CallOptions {
  accountId?: string;
  /** Default: ids of nothing. */
  ids?: Ids;
  body?: object | undefined;
  headers?: Record<string, string>;
}

interface Result {
  status: number;
  /** `allowed`, or the reason of the refusal. Requests with faults and ids of nothing are allowed. */
  result: string;
  cookie: string | null;
}

/** Calls an operation; the default body is empty, with which most fail after they were permitted. */
async function call(
  browser: TestBrowser,
  { method, path, rule, isRead }: OwnOperation,
  { accountId, ids, body = {}, headers = {} }: CallOptions = {},
): Promise<Result> {
  // Requests per second are limited.
  test.clock.time += 100;
  const target = `${path}${rule.query ?? ''}`.replaceAll(/\{(\w+)\}/g, (_, name: keyof Ids) =>
    encodeURIComponent(ids?.[name] ?? 'none'),
  );
  const named = accountId === undefined ? {} : { [rule.account ?? 'X-Id']: accountId };
  const query = 'account' in named ? `?${new URLSearchParams(named).toString()}` : '';
  const response = await fetch(`${test.base}${target}${query}`, {
    method,
    redirect: 'manual',
    headers: {
      'X-Postrider-Console': '1',
      ...browser.credentials(),
      ...(isRead ? {} : { 'Content-Type': 'application/json' }),
      ...(query === '' ? named : {}),
      ...headers,
    },
    ...(isRead ? {} : { body: JSON.stringify(body) }),
  });
  const { status } = response;
  const cookie = response.headers.get('set-cookie');
  if (!(response.headers.get('content-type') ?? '').includes('application/json')) {
    // The event stream would never end.
    await response.body?.cancel();
    // Neither the application nor a redirect in place of a refusal.
    return { status, result: status === 303 && rule.otherSites !== true ? 'redirected' : 'allowed', cookie };
  }
  const { reasonCode, error } = (await response.json()) as {
    reasonCode?: string;
    error?: { details?: { field: string; reason?: string }[] };
  };
  const [detail] = error?.details ?? [];
  const result =
    status === 400 && (detail?.field === 'X-Id' || detail?.field === 'account')
      ? 'no account'
      : status === 500
        ? 'failed'
        : status === 401 || status === 403
          ? detail?.reason === 'REAUTHENTICATION'
            ? 'not confirmed'
            : String(reasonCode)
          : 'allowed';
  return { status, result, cookie };
}

/** The results of all operations that differ from `expected`. */
async function differences(
  browser: TestBrowser,
  options: CallOptions,
  expected: (operation: OwnOperation) => string,
): Promise<string[]> {
  const differing: string[] = [];
  for (const operation of OPERATIONS) {
    const { result } = await call(browser, operation, options);
    const wanted = expected(operation);
    if (result !== wanted) differing.push(`${operation.name}: ${result}, not ${wanted}`);
  }
  return differing;
}

/** What the rule permits in the account of a person. */
function permitted({ access, account }: Rule, standing: Standing): boolean {
  if (account === undefined || access === 'anyone' || access === 'person') return true;
  return permissionsOf(standing).includes(access);
}

/** What others would have changed of a member. */
const stateOf = async ({ person, browser, ids }: Member, accountId: string) => ({
  person: test.people.get(person.id),
  role: test.people.standing(person, accountId),
  sessions: test.tables.consoleSessions.ofPerson(person.id, 99).map((row) => row.session_id),
  passkeys: test.tables.passkeys.ofPerson(person.id, 99).map((row) => row.credential_id),
  preview: (await browser.get(`/console/previews/${ids.previewId}`)).status,
  views: test.tables.savedViews.ofPerson(person.id, 99),
});

const STANDINGS: readonly Standing[] = ['operator', ...ROLES];

it('the rules name every operation that the console registers, and no other', () => {
  const registered = test.console.operations.filter(({ path }) => !path.startsWith('/console/api/'));
  expect(registered.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(
    Object.keys(RULES).toSorted(),
  );
});

it('nobody may call an operation without a session, except to sign in', async () => {
  const expected = ({ rule }: OwnOperation) => (rule.access === 'anyone' ? 'allowed' : 'UNAUTHENTICATED');
  for (const cookie of ['', `postrider_session=${'x'.repeat(43)}`]) {
    const browser = test.browser();
    browser.cookie = cookie;
    expect(await differences(browser, { accountId: test.account }, expected)).toEqual([]);
  }
});

it('nobody may call an operation with the cookie alone, or with the page token of another session', async () => {
  const expected = ({ rule }: OwnOperation) => (rule.access === 'anyone' ? 'allowed' : 'UNAUTHENTICATED');
  const operator = await test.operator('stolen@example.com');
  const other = await test.operator('another@example.com');
  for (const pageToken of ['', other.pageToken, 'x'.repeat(43), 'é']) {
    const thief = test.browser();
    Object.assign(thief, { cookie: operator.cookie, pageToken: encodeURIComponent(pageToken) });
    expect(await differences(thief, { accountId: test.account }, expected)).toEqual([]);
    const { data } = await thief.get('/console/session');
    expect(data).toMatchObject({ signedIn: false, person: null });
    expect(JSON.stringify(data)).not.toContain(operator.pageToken);
  }
  // What the thief did has not ended the session.
  expect((await operator.get('/console/me')).status).toBe(200);
  expect((await operator.get('/console/session')).data).not.toHaveProperty('pageToken');
});

it('no sign-in succeeds with an empty request', async () => {
  for (const operation of OPERATIONS.filter(({ rule }) => rule.access === 'anyone')) {
    const { cookie } = await call(test.browser(), operation);
    expect(cookie ?? '', operation.name).not.toMatch(/postrider_session=[^;]/);
  }
});

describe.each(STANDINGS)('with the role %s', (standing) => {
  let person: ConsolePerson;
  let accountId: string;
  beforeAll(async () => {
    person = await personWith(standing);
    accountId = test.account;
  });

  it('a person may call what the role permits', async () => {
    expect(
      await differences(await signIn(person), { accountId }, ({ rule }) =>
        permitted(rule, standing) ? 'allowed' : 'INSUFFICIENT_SCOPE',
      ),
    ).toEqual([]);
  });

  it('a person may call nothing of an account in another one, and in none', async () => {
    const isOperator = standing === 'operator';
    for (const named of [test.other, 'acct_none'])
      expect(
        await differences(await signIn(person), { accountId: named }, ({ rule }) =>
          rule.account === undefined || (isOperator && named === test.other)
            ? 'allowed'
            : 'INSUFFICIENT_SCOPE',
        ),
        named,
      ).toEqual([]);
    expect(
      await differences(await signIn(person), {}, ({ rule }) =>
        rule.account === undefined || (isOperator && rule.installation === true) ? 'allowed' : 'no account',
      ),
    ).toEqual([]);
  });

  it('a person who was not confirmed recently may call nothing that requires it', async () => {
    const browser = await signIn(person);
    test.clock.time += 11 * MINUTE;
    expect(
      await differences(browser, { accountId }, ({ rule }) =>
        !permitted(rule, standing)
          ? 'INSUFFICIENT_SCOPE'
          : rule.confirmed === true && rule.first !== true
            ? 'not confirmed'
            : 'allowed',
      ),
    ).toEqual([]);
  });

  it('a person reaches nothing of others by its ids, and changes nothing', async () => {
    const browser = await signIn(person);
    const before = await Promise.all([stateOf(colleague, test.account), stateOf(outsider, test.other)]);
    const reached: string[] = [];
    const expectResult = async (operation: OwnOperation, of: string, ids: Ids) => {
      const { status, result } = await call(browser, operation, {
        accountId,
        ids,
        body: operation.rule.body,
      });
      const actual = result === 'allowed' ? String(status) : result;
      const wanted = permitted(operation.rule, standing) ? '404' : 'INSUFFICIENT_SCOPE';
      if (actual !== wanted) reached.push(`${operation.name} of ${of}: ${actual}, not ${wanted}`);
    };
    for (const operation of OPERATIONS.filter(({ path, rule }) => path.includes('{') && !rule.published)) {
      await expectResult(operation, 'another account', outsider.ids);
      // Colleagues may have access to what belongs to the account, not to what belongs to another person.
      if (operation.rule.account === undefined) await expectResult(operation, 'a colleague', colleague.ids);
    }
    expect(reached).toEqual([]);
    expect(await Promise.all([stateOf(colleague, test.account), stateOf(outsider, test.other)])).toEqual(
      before,
    );
  });
});

it.each(ROLES)('refuses everything of a disabled account to the role %s', async (role) => {
  const person = await invited(test.other, role);
  accepted(await test.accounts.setStatus(test.other, 'disabled'));
  expect(
    await differences(await signIn(person), { accountId: test.other }, ({ rule }) =>
      rule.account === undefined
        ? 'allowed'
        : permitted(rule, role)
          ? 'ACCOUNT_DISABLED'
          : 'INSUFFICIENT_SCOPE',
    ),
  ).toEqual([]);
  accepted(await test.accounts.setStatus(test.other, 'active'));
});

it('an owner sees neither people nor audit records of another account', async () => {
  const owner = await signIn(await invited(test.account, 'owner'));
  await outsider.browser.patch('/console/people/none', { role: 'viewer' }, test.other);
  const recorded = async (browser: TestBrowser, query: string, account: string) =>
    (await browser.get(`/console/audit${query}`, account)).data['records'];
  const own = await recorded(outsider.browser, `?personId=${outsider.person.id}`, test.other);
  expect(own).toMatchObject([{ operation: 'console.updatePerson', target: { personId: 'none' } }]);
  expect(await recorded(owner, `?personId=${outsider.person.id}`, test.account)).toEqual([]);
  expect(JSON.stringify(await recorded(owner, '', test.account))).not.toContain(test.other);
  const listed = JSON.stringify((await owner.get('/console/people', test.account)).data);
  expect(listed).toContain(colleague.person.id);
  expect(listed).not.toContain(outsider.person.id);
});

describe('requests of pages of other sites', () => {
  /** What the console adds to requests of its pages, and what is missing or wrong in those of others. */
  const REFUSED: readonly [name: string, headers: Record<string, string>, changesOnly: boolean][] = [
    ['without the header of the application', { 'X-Postrider-Console': '' }, true],
    ['with another value of it', { 'X-Postrider-Console': 'true' }, true],
    ['of another site', { 'Sec-Fetch-Site': 'cross-site' }, false],
    ['of another host of the same site', { 'Sec-Fetch-Site': 'same-site' }, false],
    ['from the address bar', { 'Sec-Fetch-Site': 'none' }, true],
    ['of another origin', { Origin: 'https://attacker.example' }, false],
    ['of a document without an origin', { Origin: 'null' }, false],
  ];
  let victim: Member;
  let accountId: string;

  beforeAll(async () => {
    accountId = test.account;
    victim = await resourcesOf(await personWith('owner'), accountId);
  });

  it.each(REFUSED)('are refused %s, and change nothing', async (_, headers, changesOnly) => {
    const { link } = accepted(await test.people.issueLink(colleague.person.id, 'sign-in'));
    const bodies: Readonly<Record<string, object>> = { 'POST /console/session/link': { token: link.token } };
    const before = await stateOf(victim, accountId);
    const records = test.tables.auditRecords.list({}, 1).rows[0]?.seq;
    const differing: string[] = [];
    for (const operation of OPERATIONS) {
      const { name, rule, isRead } = operation;
      const body = bodies[name] ?? rule.body;
      const ids = name.includes('{personId}') ? colleague.ids : victim.ids;
      const { result, cookie } = await call(victim.browser, operation, { accountId, ids, body, headers });
      const wanted = rule.otherSites === true || (isRead && changesOnly) ? 'allowed' : 'INSUFFICIENT_SCOPE';
      if (result !== wanted) differing.push(`${name}: ${result}, not ${wanted}`);
      if (!isRead) expect(cookie, name).toBeNull();
    }
    expect(differing).toEqual([]);
    expect(await stateOf(victim, accountId)).toEqual(before);
    const since = test.tables.auditRecords.list({}, 9).rows.filter(({ seq }) => seq > (records ?? 0));
    expect(since.filter(({ operation }) => !operation.startsWith('console.export'))).toEqual([]);
    // The link is not used up either.
    await test.signInWith({ person: colleague.person, link });
  });

  it('succeed in a page of the console', async () => {
    const headers = { 'Sec-Fetch-Site': 'same-origin', Origin: test.console.url() };
    const failed: string[] = [];
    for (const operation of OPERATIONS) {
      const { name, rule, isRead } = operation;
      const ids = name.includes('{personId}') ? colleague.ids : victim.ids;
      const { status, result } = await call(victim.browser, operation, {
        accountId,
        ids,
        body: rule.body,
        headers,
      });
      const isDone = rule.otherSites === true ? status === 303 : status < 300;
      if (rule.body !== undefined || isRead ? !isDone : result !== 'allowed')
        failed.push(`${name}: ${status} ${result}`);
    }
    expect(failed).toEqual([]);
    expect(test.people.get(colleague.person.id)).toBeNull();
    expect((await victim.browser.get('/console/me')).status).toBe(401);
  });
});
