import { describe, expect, it, onTestFinished } from 'vitest';
import { DAY, HOUR } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { createHolds } from '../../src/delivery/holds.ts';
import { presentMessage } from '../../src/events/message-view.ts';
import { sendingObstacle } from '../../src/sending/checks.ts';
import { createQueuedMail } from '../../src/sending/queued-mail.ts';
import type { DomainStatus } from '../../src/store/domains/domains.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDelivery, GOOD, users } from './setup.ts';

const LOG = createLog({ level: 'silent', hashAddresses: true });

async function start() {
  const delivery = await createTestDelivery({ deps: { sendingObstacle } });
  const { tables, writer, clock } = delivery;
  const newHolds = () => {
    const holds = createHolds(
      { clock, log: LOG, tables, writer },
      { countHeld: async () => tables.queue.countHeld(), announce: delivery.delivery.announce },
    );
    onTestFinished(() => holds.stop());
    return holds;
  };
  const setAccount = (status: 'active' | 'disabled') => {
    const row = tables.accounts.get('acct_one');
    if (row === null) throw new Error('there is no account');
    tables.accounts.update({ ...row, status });
  };
  const setDomain = (id: string, status: DomainStatus) => {
    const row = tables.domains.byId(id);
    if (row === null) throw new Error('there is no domain');
    tables.domains.update({ ...row, status });
  };
  const held = (count: number) =>
    eventually(`${count} held messages`, () => tables.queue.countHeld() === count);
  const delivered = (count: number) =>
    eventually(`${count} deliveries`, () => delivery.sink.messages.length === count);
  const view = ({ message_id }: { message_id: string }) => {
    const row = tables.messages.byId(message_id);
    if (row === null) throw new Error('there is no message');
    return presentMessage(row);
  };
  return { ...delivery, newHolds, setAccount, setDomain, held, delivered, view };
}

describe('messages of a disabled account', () => {
  it('are held until it is enabled, each delivered once', async () => {
    const { put, setAccount, delivery, newHolds, held, delivered, sink, view } = await start();
    setAccount('disabled');
    const [first, ...others] = put(users(50));
    if (first === undefined) throw new Error('there is no message');
    delivery.start();
    newHolds().start();
    await held(50);
    expect(sink.messages).toEqual([]);
    expect(view(first)).toMatchObject({ status: 'queued', heldBecause: 'account_disabled' });
    expect(view(first)).not.toHaveProperty('nextAttemptAt');
    setAccount('active');
    await delivered(1 + others.length);
    expect(new Set(sink.messages.flatMap(({ to }) => to)).size).toBe(50);
    expect(view(first)).not.toHaveProperty('heldBecause');
  });

  it('are released completely after a release that was interrupted', async () => {
    const { put, setAccount, delivery, newHolds, held, delivered, tables } = await start();
    setAccount('disabled');
    put(users(200));
    delivery.start();
    await held(200);
    setAccount('active');
    const interrupted = newHolds();
    interrupted.start();
    await eventually('a portion of the release', () => tables.queue.countHeld() < 200);
    await interrupted.stop();
    newHolds().start();
    await delivered(200);
    expect(tables.queue.countHeld()).toBe(0);
  });

  it('are held again when it is disabled during the release', async () => {
    const { put, setAccount, delivery, held, tables, clock, sink } = await start();
    setAccount('disabled');
    put(users(3));
    delivery.start();
    await held(3);
    for (const key of tables.queue.releaseHeld('domain_one', clock.now(), 10)) delivery.announce(key);
    expect(tables.queue.countHeld()).toBe(0);
    await held(3);
    expect(sink.messages).toEqual([]);
  });

  it('stay held since a restore when it is enabled', async () => {
    const { put, setAccount, delivery, newHolds, held, tables, sink, view } = await start();
    setAccount('disabled');
    const [message] = put(users(1));
    if (message === undefined) throw new Error('there is no message');
    delivery.start();
    await held(1);
    tables.restoreHolds.holdMessages(0, 10);
    setAccount('active');
    put([`other@${GOOD}`]);
    newHolds().start();
    await eventually('the other message', () => sink.messages.length === 1);
    expect(tables.queue.heldDomains()).toEqual([]);
    expect(view(message)).toMatchObject({ heldBecause: 'restored' });
  });

  it('fail with an event at their expiry', async () => {
    const { put, setAccount, delivery, newHolds, held, tables, clock } = await start();
    setAccount('disabled');
    const [message] = put(users(1), { expires_at: clock.now() + HOUR });
    if (message === undefined) throw new Error('there is no message');
    delivery.start();
    newHolds().start();
    await held(1);
    expect(tables.queue.get(message.seq)).toMatchObject({ due_at: message.expires_at, ready: 0 });
    clock.advance(HOUR);
    await eventually('the message to fail', () => tables.messages.bySeq(message.seq)?.status === 'failed');
    expect(tables.queue.get(message.seq)).toBeNull();
    const [event] = tables.events.ofMessage(message.seq);
    expect(event).toMatchObject({ kind: 'email_failed' });
    expect(JSON.stringify(event)).toContain('the message was held because its account is disabled');
  });

  it('cannot be retried, but cancelled', async () => {
    const { put, setAccount, delivery, held, tables, writer, clock, recorder } = await start();
    setAccount('disabled');
    const [message] = put(users(1));
    if (message === undefined) throw new Error('there is no message');
    delivery.start();
    await held(1);
    const mail = createQueuedMail({ tables, writer, clock }, { recorder });
    expect(await mail.retry(null, message.message_id)).toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringContaining('its account is disabled'),
    });
    expect(await mail.cancel(null, message.message_id)).toMatchObject({ status: 'cancelled' });
    expect(tables.queue.countHeld()).toBe(0);
  });
});

describe('messages of a failed domain', () => {
  it('are held until it is verified; other domains of the account send', async () => {
    const { put, addDomain, setDomain, delivery, newHolds, held, delivered, sink, view } = await start();
    addDomain('domain_two');
    setDomain('domain_two', 'FAILED');
    const [waiting] = put([`held@${GOOD}`], { domain_id: 'domain_two' });
    if (waiting === undefined) throw new Error('there is no message');
    put([`sent@${GOOD}`]);
    const holds = newHolds();
    delivery.start();
    holds.start();
    await held(1);
    await delivered(1);
    expect(sink.messages[0]?.to).toEqual([`sent@${GOOD}`]);
    expect(view(waiting)).toMatchObject({ heldBecause: 'domain_failed' });
    setDomain('domain_two', 'SUCCESS');
    await delivered(2);
  });

  it('stay held while the account is disabled', async () => {
    const { put, setAccount, setDomain, delivery, newHolds, held, tables, sink, delivered } = await start();
    setDomain('domain_one', 'FAILED');
    put(users(1));
    delivery.start();
    await held(1);
    setAccount('disabled');
    setDomain('domain_one', 'SUCCESS');
    expect(tables.domains.sendingStop('domain_one')).toBe('account_disabled');
    const holds = newHolds();
    holds.start();
    await eventually('the count', () => holds.count() === 1);
    expect(sink.messages).toEqual([]);
    setAccount('active');
    await delivered(1);
  });
});

describe('the domains with held messages', () => {
  it('are listed once each', async () => {
    const { put, addDomain, tables, clock } = await start();
    addDomain('domain_two');
    addDomain('domain_three');
    for (const domain_id of ['domain_three', 'domain_one', 'domain_two'])
      for (const { seq } of put(users(3), { domain_id })) tables.queue.hold(seq, clock.now() + DAY);
    expect(tables.queue.heldDomains().toSorted()).toEqual(['domain_one', 'domain_three', 'domain_two']);
    expect(tables.queue.releaseHeld('domain_two', clock.now(), 2)).toHaveLength(2);
    expect(tables.queue.countHeld()).toBe(7);
  });
});
