import { expect, it } from 'vitest';
import { operate } from '../../src/console/api.ts';
import { type Data, useInstallation, useOperation } from '../../src/console/data.ts';
import { addressOf } from '../../src/console/operations.ts';
import { countSearch } from '../../src/console/pages/contacts/whole-search.ts';
import { InConsole, render, waitFor } from './dom/render.tsx';
import { respond, success } from './dom/responses.ts';

it('has values of the path and of the query in its address', () => {
  const path = '/web-setup/contacts/subscription-groups/{subscriptionGroupId}/subscriptions';
  expect(addressOf(path, { subscriptionGroupId: 'a/b?c', search: 'x&y', isActive: false, limit: 50 })).toBe(
    '/web-setup/contacts/subscription-groups/a%2Fb%3Fc/subscriptions?search=x%26y&isActive=false&limit=50',
  );
});

it('leaves out filters that are not set', () => {
  expect(addressOf('/web-setup/messages', { status: undefined, search: '' })).toBe('/web-setup/messages');
});

it('does not read a value of the path as a pattern', () => {
  expect(addressOf('/web-setup/messages/{id}', { id: '$&{id}' })).toBe('/web-setup/messages/%24%26%7Bid%7D');
});

it.each([
  ['account-1', 'account-1'],
  [null, null],
])('is sent for the account %s', async (account, sent) => {
  const fetched = respond(() => success({}));
  await operate('delete', '/web-setup/queue/controls/{scope}/{target}', {
    account,
    parameters: { scope: 'destination', target: 'a/b.example' },
    keepalive: true,
  });
  const [path, init] = fetched.mock.calls[0] ?? [];
  expect(path).toBe('/console/api/web-setup/queue/controls/destination/a%2Fb.example');
  expect(init).toMatchObject({ method: 'DELETE', keepalive: true });
  expect(new Headers(init?.headers).get('X-Id')).toBe(sent);
});

it('is read for the account of the page, and for none when it is about the installation', async () => {
  const fetched = respond((path) => success({ path }));
  const read: Data<unknown>[] = [];
  function Reader() {
    read[0] = useOperation('/web-setup/keys', { lastKey: 'k' });
    read[1] = useInstallation('/web-setup/queue/accounts', { accountId: 'account-2' });
    read[2] = useOperation(null);
    return null;
  }
  await render(
    <InConsole>
      <Reader />
    </InConsole>,
  );
  await waitFor(() => expect(read[0]?.value).toEqual({ path: '/console/api/web-setup/keys?lastKey=k' }));
  await waitFor(() =>
    expect(read[1]?.value).toEqual({ path: '/console/api/web-setup/queue/accounts?accountId=account-2' }),
  );
  const accounts = fetched.mock.calls.map(([, init]) => new Headers(init?.headers).get('X-Id'));
  expect(accounts).toEqual(['account-1', null]);
});

it('reads the pages of a search of contacts with all of its filters', async () => {
  const contact = { contactIdentifier: 'c-1', email: 'a@example.com' };
  const paths: string[] = [];
  respond((path) => {
    paths.push(path);
    return success({ contacts: [contact], ...(path.includes('lastKey') ? {} : { nextKey: 'k' }) });
  });
  const filters = { search: 'a&b', status: 'active' };
  const { signal } = new AbortController();
  const whole = await countSearch({ accountId: 'account-1', filters, signal, onCount: () => {} });
  const first = '/console/api/web-setup/contacts?search=a%26b&status=active&limit=200';
  expect(paths).toEqual([first, `${first}&lastKey=k`]);
  expect(whole).toEqual({
    total: 2,
    first: [{ identifier: 'c-1', name: 'a@example.com' }],
    nextPage: { ...filters, limit: 200, lastKey: 'k' },
  });
});
