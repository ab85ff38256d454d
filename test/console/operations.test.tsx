import { expect, it } from 'vitest';
import { addressOf } from '../../src/console/operations.ts';

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
