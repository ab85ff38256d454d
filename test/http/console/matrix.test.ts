import { afterAll, expect, it, vi } from 'vitest';
import {
  AUDITED_READS,
  OPERATION_PERMISSIONS,
  permissionOf,
  REAUTHENTICATED,
} from '../../../src/http/console/permissions.ts';
import { permissionsOf, ROLE_PERMISSIONS, ROLES } from '../../../src/people/roles.ts';
import { startInProcess } from '../../support/in-process-daemon.ts';
import { readDocument } from '../document.ts';
import { accepted, createTestBrowser, type TestBrowser } from './harness.ts';

/*
 * The daemon with all operations of its OpenAPI document: each is called as an operator, with each role of an account, as
 * a member of another account, and without a session.
 */
vi.setConfig({ testTimeout: 120_000 });

const daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
afterAll(() => daemon.stop());
const { accountId } = await daemon.account('One');
const { accountId: otherId } = await daemon.account('Two');
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

it('the table of permissions names every operation of the API that requires a key, and no other', () => {
  expect(Object.keys(OPERATION_PERMISSIONS).toSorted()).toEqual(keyed.map(idOf).toSorted());
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
    (operation) => operation.method !== 'GET' && permissionOf(idOf(operation)) === 'read',
  );
  expect(changing.map(idOf)).toEqual([]);
});

it('no role of an account has what concerns the installation', () => {
  expect(Object.values(ROLE_PERMISSIONS).flat()).not.toContain('operator');
});

it('operations with confirmation, and reads that are recorded, exist', () => {
  const known = new Set(keyed.map(idOf));
  expect([...REAUTHENTICATED, ...AUDITED_READS].filter((name) => !known.has(name))).toEqual([]);
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

it('nobody may call an operation without a session', async () => {
  const browser = createTestBrowser(daemon.consoleUrl);
  expect(await differences(browser, accountId, () => 'UNAUTHENTICATED')).toEqual([]);
});
