import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { mayCallPrivateNetworks } from '../../src/webhooks/private-networks.ts';
import { insertAccount, startStore } from '../support/store.ts';

it('private networks are called only while there is one account and no console, unless the setting decides', () => {
  const { tables, clock } = startStore();
  const allowed = (env: Record<string, string>) =>
    mayCallPrivateNetworks(loadConfig({ file: null, env }), tables);
  const off = { POSTRIDER_CONSOLE__LISTEN: 'off' };
  const setting = (value: string) => ({ ...off, POSTRIDER_WEBHOOKS__ALLOWPRIVATENETWORKS: value });
  expect([allowed(off), allowed({}), allowed(setting('false'))]).toEqual([true, false, false]);
  insertAccount(tables, 'acct_second', clock.now());
  expect([allowed(off), allowed({}), allowed(setting('true'))]).toEqual([false, false, true]);
});
