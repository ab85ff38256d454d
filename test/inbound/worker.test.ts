import { expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import type { Authentication } from '../../src/inbound/authentication.ts';
import { createInboundWorker, type ParseOutcome } from '../../src/inbound/worker.ts';
import { eventually } from '../support/eventually.ts';
import { insertAccount, startStore } from '../support/store.ts';
import { storeMail } from './setup.ts';

const UNCHECKED: Authentication = {
  spf: 'none',
  dkim: 'none',
  dmarc: 'none',
  arc: 'none',
  spfDomain: '',
  dkimDomains: [],
  dmarcPolicy: null,
};

/** A worker whose mails of some accounts wait until they are released. */
function start(waits: (accountId: string) => boolean) {
  const store = startStore();
  for (const accountId of ['acct_two', 'acct_three']) insertAccount(store.tables, accountId, 0);
  const begun: string[] = [];
  const waiting: (() => void)[] = [];
  const outcomes: ParseOutcome[] = [];
  const worker = createInboundWorker(
    { ...store, monotonic: store.clock, log: createLog({ level: 'silent', hashAddresses: true }) },
    {
      recorder: store.recorder,
      hostname: 'mx.example.com',
      parse: async (_, accountId) => {
        begun.push(accountId);
        if (waits(accountId)) await new Promise<void>((resolve) => waiting.push(resolve));
        return outcomes.shift() ?? 'failed';
      },
      authenticate: async () => UNCHECKED,
      attachmentUrl: () => '',
    },
  );
  const release = () => {
    for (const resolve of waiting.splice(0)) resolve();
  };
  onTestFinished(async () => {
    const stopped = worker.stop();
    release();
    await stopped;
  });
  return {
    ...store,
    worker,
    release,
    /** The next results of the parser. */
    outcomes,
    begun: (accountId: string) => begun.filter((each) => each === accountId).length,
    receive: (accountId: string, count: number, size?: number) => {
      for (let n = 0; n < count; n++) storeMail(store, { accountId, size });
    },
    parsed: (accountId: string) =>
      store.db
        .prepare<[string], number>(
          "SELECT count(*) FROM inbound_mails WHERE account_id = ? AND status = 'parsed'",
        )
        .pluck()
        .get(accountId),
  };
}

it('parses a share of mails of an account at a time, and those of others meanwhile', async () => {
  const { worker, receive, begun, parsed, release } = start((accountId) => accountId === 'acct_one');
  receive('acct_one', 100);
  receive('acct_two', 20);
  worker.start();
  await eventually('the mails of the other account', () => parsed('acct_two') === 20);
  expect([begun('acct_one'), parsed('acct_one')]).toEqual([8, 0]);
  receive('acct_three', 1);
  worker.wake();
  await eventually('the mail of a third account', () => parsed('acct_three') === 1);
  expect(begun('acct_one')).toBe(8);
  await eventually('all mails', () => {
    release();
    return parsed('acct_one') === 100;
  });
  expect(begun('acct_one')).toBe(100);
});

it('has one mail of the largest size of an account in memory, and four in all', async () => {
  const { worker, receive, begun, parsed, release } = start(() => true);
  const size = 35 * 1024 * 1024;
  for (const accountId of ['acct_one', 'acct_two', 'acct_three']) receive(accountId, 3, size);
  worker.start();
  const all = () => ['acct_one', 'acct_two', 'acct_three'].map(begun);
  await eventually('a mail of each account', () => all().every((count) => count === 1));
  release();
  await eventually('the second one of each account', () => all().every((count) => count === 2));
  await eventually('all mails', () => {
    release();
    return parsed('acct_one') === 3;
  });
});

it('tries a mail again later, and others of its account with it', async () => {
  const { worker, receive, begun, parsed, outcomes, clock } = start(() => false);
  receive('acct_one', 1);
  outcomes.push('later');
  worker.start();
  await eventually('the first attempt', () => begun('acct_one') === 1);
  receive('acct_one', 1);
  receive('acct_two', 1);
  worker.wake();
  await eventually('the mail of the other account', () => parsed('acct_two') === 1);
  expect([begun('acct_one'), parsed('acct_one')]).toEqual([1, 0]);
  clock.advance(60_000);
  worker.wake();
  await eventually('both mails', () => parsed('acct_one') === 2);
});
