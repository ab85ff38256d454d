import { describe, expect, it } from 'vitest';
import { DAY, HOUR, SECOND } from '../../src/core/clock.ts';
import { rampStatus } from '../../src/delivery/ramp.ts';
import { insertDomain } from '../support/store.ts';
import { createTestEgress, marketing, transactional } from './source-addresses.ts';

const NEW = { account_id: 'acct_one', domain_id: 'domain_new' };
const OLD = { account_id: 'acct_one', domain_id: 'domain_old' };

/** An account that was created `age` ago, with an old and a new marketing domain, and a ramp of 10, 20 and 40 messages. */
function start(age = 0) {
  const env = createTestEgress('[]');
  const { config, tables, clock, db } = env;
  config.reputation.ramp = { messages: 10, factor: 2, days: 3 };
  const now = clock.now();
  db.prepare('UPDATE accounts SET created_at = ?').run(now - age);
  db.prepare('UPDATE domains SET created_at = 0').run();
  const domain = (domain_id: string, name: string, at: number) =>
    insertDomain(tables, { account_id: 'acct_one', domain_id, name, use_case: 'mk' }, at);
  domain('domain_new', 'new.example', now);
  domain('domain_old', 'old.example', now - 100 * DAY);
  const obstacle = (sender = NEW, kind = marketing) =>
    env.egress().obstacle('default', { ...kind(), sender });
  return {
    ...env,
    obstacle,
    send: async (most: number, sender = NEW, kind = marketing) =>
      (await env.sendAll({ ...kind(), sender }, most))[''] ?? 0,
    status: () => rampStatus({ config, tables }, 'acct_one', clock.now()),
    midnight: () => clock.now() - (clock.now() % DAY) + DAY,
  };
}

describe('the ramp of a new account', () => {
  it('lets marketing mail of the day leave, the rest waits for the next day, and it ends', async () => {
    const { send, obstacle, clock, midnight, counts } = start();
    expect(await send(100)).toBe(10);
    expect(obstacle()).toEqual({
      kind: 'ramp',
      until: midnight(),
      text: "waits for tomorrow's messages of the new account (10 of 10 used)",
      isOfDomain: false,
    });
    // All of the account.
    expect(obstacle(OLD)).toMatchObject({ kind: 'ramp' });
    expect(counts('')).toBeNull();
    clock.advance(DAY);
    expect(await send(100)).toBe(20);
    clock.advance(DAY);
    expect(await send(100)).toBe(40);
    clock.advance(DAY);
    expect(await send(100)).toBe(100);
  });

  it('slows transactional mail, and keeps for it what it used on the day before', async () => {
    const { send, obstacle, clock, config, tables, writer, restart } = start();
    config.reputation.perMinute = 30;
    expect(await send(10, NEW, transactional)).toBe(10);
    expect(await send(10, NEW, transactional)).toBe(1);
    expect(obstacle(NEW, transactional)).toEqual({
      kind: 'ramp',
      until: clock.now() + 2 * SECOND,
      text: 'is slowed to 30 messages per minute, because the new account has sent 11 of 10 messages of today',
    });
    clock.advance(2 * SECOND);
    expect(await send(10, NEW, transactional)).toBe(1);

    insertDomain(tables, { account_id: 'acct_one', domain_id: 'domain_tx', name: 'tx.example' }, 0);
    await writer.run((tx) => {
      const day = clock.now() - (clock.now() % DAY);
      for (let n = 0; n < 8; n++)
        tx.reputationCounts.add(
          { day, accountId: 'acct_one', domainId: 'domain_tx', source: '', provider: 'Google' },
          'delivered',
        );
    });
    restart();
    clock.advance(DAY);
    expect(await send(100)).toBe(12);
    expect(obstacle()?.text).toContain('(12 of 20 used, 8 kept for transactional mail)');
    expect(obstacle(NEW, transactional)).toBeNull();
  });

  it('is known after a restart, and shows its use', async () => {
    const { send, obstacle, clock, tables, writer, restart, status } = start();
    await writer.run((tx) => {
      const day = clock.now() - (clock.now() % DAY);
      for (const counter of ['delivered', 'hardBounced', 'deferred', 'volume'] as const)
        tx.reputationCounts.add(
          { day, accountId: 'acct_one', domainId: 'domain_old', source: '', provider: 'Google' },
          counter,
        );
    });
    restart();
    expect(status()).toEqual([
      { domain: null, day: 1, days: 3, limit: 10, used: 3 },
      { domain: 'new.example', day: 1, days: 3, limit: 10, used: 0 },
    ]);
    expect(await send(100)).toBe(7);
    expect(obstacle()).not.toBeNull();
    expect(tables.egressCounts.ofDay(0, '', 10)).toEqual([]);
  });

  it('counts messages in flight, and not those that no server saw', () => {
    const { take, egress, obstacle } = start();
    const mail = { ...marketing(), sender: NEW };
    const tickets = Array.from({ length: 10 }, () => take(mail));
    expect(take(mail)).toBeNull();
    const [first] = tickets;
    if (first === null || first === undefined) throw new Error('no ticket');
    egress().release(first);
    expect(obstacle()).toBeNull();
  });

  it('is none for mail of the platform, by default, and after the operator skipped it', async () => {
    const { send, sendAll, config, writer, status, tables } = start();
    expect((await sendAll(marketing(), 50))['']).toBe(50);
    expect(await send(100)).toBe(10);
    await writer.run((tx) => tx.accountLimits.skipRamp('acct_one', 1));
    expect([await send(50), status()]).toEqual([50, []]);
    await writer.run((tx) => tx.accountLimits.skipRamp('acct_one', null));
    expect([await send(50), status().length]).toEqual([0, 2]);
    expect(tables.accountLimits.get('acct_one')?.domains).toBeNull();
    config.reputation.ramp.messages = 0;
    expect([await send(50), status()]).toEqual([50, []]);
  });
});

describe('the ramp of a new domain', () => {
  it('limits this domain only', async () => {
    const { send, obstacle, egress, clock } = start(100 * DAY);
    expect(await send(100)).toBe(10);
    expect(obstacle()).toMatchObject({ text: expect.stringContaining('new.example'), isOfDomain: true });
    expect(egress().marketingLeft(NEW)).toBe(0);
    expect(await send(100, OLD)).toBe(100);
    expect(egress().marketingLeft(OLD)).toBe(Number.POSITIVE_INFINITY);
    clock.advance(DAY + HOUR);
    expect(egress().marketingLeft(NEW)).toBe(20);
  });
});
