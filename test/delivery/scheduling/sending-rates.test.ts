import { expect, it } from 'vitest';
import { SECOND } from '../../../src/core/clock.ts';
import { createTestScheduling, KEY, recipientsOf, users } from './setup.ts';

const LIMIT = {
  limit_id: 'limit_one',
  account_id: 'acct_one',
  stream: 'tx',
  domain_id: 'domain_one',
  provider: '',
  figures: '{}',
  since: 0,
  counts_from: 0,
  seen_counts: null,
} as const;

it('reads mail that is slowed automatically at its rate, and the mail of other streams at once', () => {
  const { put, announce, tables, rates, clock, started, dispatcher } = createTestScheduling({
    connections: 20,
  });
  tables.sendingLimits.put({ ...LIMIT, level: 'slow', per_minute: 60 });
  rates.refresh();
  put(users(5));
  put(['m@one.test', 'n@one.test'], { priority: 1 });
  const mail = { ...KEY, domain_id: 'domain_one', use_case: 'tx', content_bytes: 2 } as const;
  // New mail waits in the queue, too.
  expect(dispatcher.leaseNow([mail])).toEqual([null]);
  announce();
  announce({ priority: 1 });
  expect(recipientsOf(started)).toEqual(['a0@one.test', 'm@one.test', 'n@one.test']);
  announce();
  expect(started).toHaveLength(3);
  clock.advance(SECOND);
  announce();
  expect(recipientsOf(started).at(-1)).toBe('a1@one.test');
  expect(started).toHaveLength(4);

  tables.sendingLimits.remove('limit_one');
  rates.refresh();
  clock.advance(SECOND);
  announce();
  expect(started).toHaveLength(7);
});
