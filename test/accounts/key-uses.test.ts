import { afterEach, beforeEach, expect, it } from 'vitest';
import { createAccounts } from '../../src/accounts/accounts.ts';
import { createAuthenticator } from '../../src/accounts/authenticate.ts';
import { createKeys, createKeyUses } from '../../src/accounts/keys.ts';
import { createFailureLimits } from '../../src/accounts/rate-limits.ts';
import { iso } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { granted, openStore } from './store.ts';

let store: ReturnType<typeof openStore>;
let secret: string;
beforeEach(async () => {
  store = openStore();
  const { keys } = granted(await createAccounts(store).create({ name: 'Shop', accountId: 'shop' }));
  secret = keys.setup;
});
afterEach(() => store.close());

function newUses() {
  const log = createLog({ level: 'info', hashAddresses: false }, { write: () => {} });
  const uses = createKeyUses({ ...store, log });
  const authenticator = createAuthenticator(
    { tables: store.tables },
    { failures: createFailureLimits(store.clock), onUse: uses.note },
  );
  const call = (used = secret, scope: 'setup' | 'marketing' = 'setup') =>
    authenticator.authenticate(
      { secret: used, accountId: 'shop', from: { address: '192.0.2.1', forwarded: false } },
      scope,
    );
  return { uses, call };
}

const usedAt = () =>
  createKeys(store)
    .list('shop')
    .map(({ name, lastUsedAt }) => [name, lastUsedAt]);

it('writes the last use of a key with the next write, not with the call', async () => {
  const { uses, call } = newUses();
  expect(isRefusal(call())).toBe(false);
  store.clock.time += 1000;
  call();
  expect(usedAt().map(([, at]) => at)).toEqual([null, null, null]);
  await uses.write();
  expect(usedAt()).toContainEqual(['setup', iso(store.clock.time)]);
  expect(usedAt().filter(([, at]) => at !== null)).toHaveLength(1);
});

it('writes nothing when no key was used since the last write', async () => {
  const { uses, call } = newUses();
  call();
  await uses.write();
  const first = store.clock.time;
  store.clock.time += 60_000;
  await uses.write();
  expect(usedAt()).toContainEqual(['setup', iso(first)]);
});

it('does not count a call that was refused', async () => {
  const { uses, call } = newUses();
  expect(isRefusal(call('pr_unknown'))).toBe(true);
  expect(isRefusal(call(secret, 'marketing'))).toBe(true);
  await uses.write();
  expect(usedAt().every(([, at]) => at === null)).toBe(true);
});

it('writes the last uses when it stops', async () => {
  const { uses, call } = newUses();
  uses.start();
  call();
  await uses.stop();
  expect(usedAt()).toContainEqual(['setup', iso(store.clock.time)]);
});

it('keeps the later time after the clock was set back', async () => {
  const { uses, call } = newUses();
  call();
  await uses.write();
  const first = store.clock.time;
  store.clock.time -= 3_600_000;
  call();
  await uses.write();
  expect(usedAt()).toContainEqual(['setup', iso(first)]);
});
