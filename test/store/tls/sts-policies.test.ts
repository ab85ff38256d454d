import { expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import { MAX_STS_POLICIES, type StsPolicyRow, stsPolicyTable } from '../../../src/store/tls/sts-policies.ts';
import { startStore } from '../../support/store.ts';

function policy(domain: string, usedAt: number): StsPolicyRow {
  return {
    domain,
    policy_id: '1',
    mode: 'enforce',
    mx: '["mx.example"]',
    max_age: 86_400,
    fetched_at: usedAt,
    expires_at: usedAt + DAY,
    refresh_at: usedAt + DAY / 2,
    used_at: usedAt,
  };
}

it('removes the least recently used policy for a new one at the limit', () => {
  const policies = stsPolicyTable(startStore().db, 3);
  for (const [index, domain] of ['b.example', 'a.example', 'c.example'].entries())
    policies.put(policy(domain, index * DAY));
  policies.markUsed('b.example', 5 * DAY);
  policies.put(policy('d.example', 6 * DAY));
  expect(policies.count()).toBe(3);
  expect(policies.get('a.example')).toBeNull();
  for (const domain of ['b.example', 'c.example', 'd.example']) expect(policies.get(domain)).not.toBeNull();
});

it('removes none when a stored policy is replaced at the limit', () => {
  const policies = stsPolicyTable(startStore().db, 2);
  policies.put(policy('a.example', 0));
  policies.put(policy('b.example', DAY));
  policies.put({ ...policy('b.example', DAY), policy_id: '2' });
  expect(policies.get('a.example')).not.toBeNull();
  expect(policies.get('b.example')?.policy_id).toBe('2');
});

it('stores the documented number of policies', () => {
  const { db } = startStore();
  const insert = db.prepare(`
    INSERT INTO sts_policies (domain, policy_id, mode, mx, max_age, fetched_at, expires_at, refresh_at, used_at)
    VALUES (@domain, @policy_id, @mode, @mx, @max_age, @fetched_at, @expires_at, @refresh_at, @used_at)`);
  db.transaction(() => {
    for (let n = 0; n < 20_000; n++) insert.run(policy(`d${n}.example`, n === 7 ? 0 : DAY));
  })();
  const policies = stsPolicyTable(db);
  policies.put(policy('new.example', 2 * DAY));
  expect(MAX_STS_POLICIES).toBe(20_000);
  expect(policies.count()).toBe(20_000);
  expect(policies.get('d7.example')).toBeNull();
});
