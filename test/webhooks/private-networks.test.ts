import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { mayCallPrivateNetworks, ownPorts } from '../../src/webhooks/private-networks.ts';
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

it('the ports of every listener are own ports, those of the name server included', () => {
  const env = {
    POSTRIDER_API__LISTEN: '127.0.0.1:2001',
    POSTRIDER_CONSOLE__LISTEN: '127.0.0.1:2002',
    POSTRIDER_MX__LISTEN: '127.0.0.1:2003',
    POSTRIDER_SUBMISSION__LISTEN: '127.0.0.1:2004',
    POSTRIDER_PUBLIC__LISTEN: '127.0.0.1:2005',
    POSTRIDER_DNS__SERVER__LISTEN: '["127.0.0.1:2006", "127.0.0.2:2007"]',
    POSTRIDER_DNS__SERVER__ADDRESSES: '["192.0.2.1"]',
  };
  const ports = ownPorts(loadConfig({ file: null, env }));
  expect(ports).toEqual(new Set([2001, 2002, 2003, 2004, 2005, 2006, 2007]));
});
