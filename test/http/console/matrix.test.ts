import { afterAll, expect, it } from 'vitest';
import { DAY, HOUR } from '../../../src/core/clock.ts';
import type { ConsoleSession } from '../../../src/http/console/session-routes.ts';
import { permissionsOf, ROLE_PERMISSIONS, ROLES } from '../../../src/people/roles.ts';
import { startInProcess } from '../../support/in-process-daemon.ts';
import { enqueue, insertDomain } from '../../support/store.ts';
import { readDocument } from '../document.ts';
import { accepted, createTestBrowser, type TestBrowser } from './harness.ts';

/*
 * The daemon with all operations of its OpenAPI document: each is called as an operator, with each role of an account, as
 * a member of another account, and without a session.
 */
const daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
afterAll(() => daemon.stop());
const { accountId } = await daemon.account('One');
const other = await daemon.account('Two');
const { accountId: otherId } = other;
const { operations } = await readDocument(daemon.url);
const keyed = operations.filter(({ spec }) => spec.security === undefined);
const idOf = ({ spec }: (typeof keyed)[number]) => spec.operationId ?? '';

async function signIn(
  invited: Awaited<ReturnType<typeof daemon.people.createOperator | typeof daemon.people.invite>>,
): Promise<TestBrowser> {
  const browser = createTestBrowser(daemon.consoleUrl);
  const response = await browser.post('/console/session/link', { token: accepted(invited).link?.token });
  if (response.status !== 200) throw new Error('the sign-in failed');
  return browser;
}

/** Calls an operation with ids that do not exist and an empty body; returns 'allowed' or the refusal. */
async function call(browser: TestBrowser, { method, path }: (typeof keyed)[number], account: string) {
  const target = `/console/api${path.replaceAll(/\{[^}]*\}/g, 'none')}`;
  const options = { headers: { 'X-Id': account }, ...(method === 'GET' ? {} : { body: {} }) };
  const { status, body } = await browser.send(method, target, options);
  if (status === 500) return '500';
  return status === 401 || status === 403 ? String(body['reasonCode']) : 'allowed';
}

/** The results of all operations that differ from `expected`. */
async function differences(
  browser: TestBrowser,
  account: string,
  expected: (operationId: string) => string,
): Promise<string[]> {
  const differing: string[] = [];
  for (const operation of keyed) {
    const result = await call(browser, operation, account);
    const wanted = expected(idOf(operation));
    if (result !== wanted) differing.push(`${idOf(operation)}: ${result}, not ${wanted}`);
  }
  return differing;
}

const operator = await signIn(await daemon.people.createOperator({ email: 'operator@example.com' }));
/** The permission that each operation of the API requires, as the application gets it. */
const session = (await operator.get('/console/session')).data as unknown as ConsoleSession;
const permissions = session.person?.operations ?? {};
const permissionOf = (operationId: string) => permissions[operationId] ?? 'operator';

it('the application knows the permission of every operation of the API that requires a key, and no other', () => {
  expect(Object.keys(permissions).toSorted()).toEqual(keyed.map(idOf).toSorted());
});

it('an operator is required exactly where the API requires the key of an operator', () => {
  const differing = keyed.filter(
    (operation) =>
      (operation.spec['x-scope'] === 'operator') !== (permissionOf(idOf(operation)) === 'operator'),
  );
  expect(differing.map(idOf)).toEqual([]);
});

it('the permission to read changes nothing', () => {
  const changing = keyed.filter(
    (operation) =>
      operation.method !== 'GET' &&
      permissionOf(idOf(operation)) === 'read' &&
      idOf(operation) !== 'previewTemplate',
  );
  expect(changing.map(idOf)).toEqual([]);
});

it('no role of an account has what concerns the installation', () => {
  expect(Object.values(ROLE_PERMISSIONS).flat()).not.toContain('operator');
});

it('an operator may call every operation', async () => {
  const browser = await signIn(await daemon.people.createOperator({ email: 'ops@example.com' }));
  expect(await differences(browser, accountId, () => 'allowed')).toEqual([]);
});

it.each(ROLES)(
  'a member with the role %s may call what the role permits, in this account only',
  async (role) => {
    const email = `${role}@example.com`;
    const browser = await signIn(await daemon.people.invite(accountId, { email, role }, 'operator'));
    const expected = (operationId: string) =>
      permissionsOf(role).includes(permissionOf(operationId)) ? 'allowed' : 'INSUFFICIENT_SCOPE';
    expect(await differences(browser, accountId, expected)).toEqual([]);
    expect(await differences(browser, otherId, () => 'INSUFFICIENT_SCOPE')).toEqual([]);
  },
);

/** Creates one of everything in the other account; returns its ids by their names in paths. */
async function resourcesOfOther(): Promise<Record<string, string>> {
  const created = async (path: string, body: object, name: string): Promise<string> => {
    const { text } = await other.post(path, body);
    const id = new RegExp(`"${name}":"([^"]+)"`).exec(text)?.[1];
    if (id === undefined) throw new Error(`${path}: ${text}`);
    return id;
  };
  const [domainGroup] = daemon.tables.domainGroups.list(otherId);
  // Nothing but the requests of the test changes it: its next check is tomorrow, and it has the key of the secondary lane.
  const domainId = 'domain_two';
  insertDomain(
    daemon.tables,
    {
      account_id: otherId,
      group_id: domainGroup?.group_id ?? '',
      domain_id: domainId,
      name: 'two.test',
      next_check_at: Date.now() + DAY,
      alt_provisioned: 1,
    },
    Date.now(),
  );
  const { message_id: id } = enqueue(daemon.tables, Date.now(), {
    account_id: otherId,
    domain_id: domainId,
    dueAt: Date.now() + DAY,
  });
  const subscriptionGroupId = await created(
    '/web-setup/contacts/subscription-groups',
    { name: 'News' },
    'subscriptionGroupId',
  );
  const contact = { email: 'ada@example.net', consentMethod: 'web_form' };
  const contactIdentifier = await created('/web-setup/contacts', contact, 'contactIdentifier');
  await other.post(`/web-setup/contacts/subscription-groups/${subscriptionGroupId}/subscriptions`, contact);
  const footer = '{{company_address_html}}{{unsubscribe_email_html}}';
  const template = { name: 'T', subject: 'S', html: `<p>Hello</p>${footer}` };
  return {
    domainId,
    groupId: domainGroup?.group_id ?? '',
    ownerId: otherId,
    id,
    subscriptionGroupId,
    contactIdentifier,
    identifier: contactIdentifier,
    templateId: await created('/web-setup/templates', template, 'templateId'),
    campaignId: await created('/web-setup/campaigns', { name: 'C' }, 'campaignId'),
    sequenceId: await created(
      '/web-setup/sequences',
      { name: 'S', trigger: { joined: subscriptionGroupId }, steps: [] },
      'sequenceId',
    ),
    webhookId: await created(
      '/web-setup/webhooks',
      { url: 'https://hooks.example.net/', events: ['email_bounced'] },
      'webhookId',
    ),
    deliveryId: 'delivery_none',
    version: '1',
    inboundId: 'inb_none',
    n: '0',
    keyId: await created('/web-setup/keys', { name: 'K', scopes: ['setup'] }, 'keyId'),
  };
}

it('an owner reaches nothing of another account by its ids, and changes nothing', async () => {
  const ids = await resourcesOfOther();
  const named = keyed.filter(
    (operation) => operation.path.includes('{') && permissionOf(idOf(operation)) !== 'operator',
  );
  const targetOf = (path: string) =>
    path.replaceAll(/\{([^}]*)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? `no ${name}`));
  // They have the time of the request.
  const isTimed = (path: string) => /\/(?:reports|dmarc-path|consent-proof|personal-data)$/.test(path);
  const reads = named.filter(({ method, path }) => method === 'GET' && !isTimed(path));
  const state = async () => {
    const texts = await Promise.all(
      reads.map(async ({ path }) => `${path} ${(await other.get(targetOf(path))).text}`),
    );
    return texts.filter((text) => text.includes('"success":true'));
  };
  const before = await state();
  expect(before.length).toBeGreaterThan(12);
  const owner = await signIn(
    await daemon.people.invite(accountId, { email: 'owner2@example.com', role: 'owner' }, 'operator'),
  );
  const reached: string[] = [];
  for (const { name, method, path, spec } of named) {
    const example = spec.requestBody?.content['application/json']?.example ?? {};
    // Times of examples are over.
    if (typeof example === 'object' && 'scheduledAt' in example)
      example.scheduledAt = new Date(Date.now() + HOUR).toISOString();
    const options = {
      headers: { 'X-Id': accountId },
      ...(method === 'GET' || method === 'DELETE' ? {} : { body: example }),
    };
    const { status } = await owner.send(method, `/console/api${targetOf(path)}`, options);
    if (status !== 404) reached.push(`${name}: ${status}`);
  }
  expect(reached).toEqual([]);
  expect(await state()).toEqual(before);
});

it('nobody may call an operation without a session', async () => {
  const browser = createTestBrowser(daemon.consoleUrl);
  expect(await differences(browser, accountId, () => 'UNAUTHENTICATED')).toEqual([]);
});
