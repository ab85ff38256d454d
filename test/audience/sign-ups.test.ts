import { describe, expect, it } from 'vitest';
import { DAY, iso } from '../../src/core/clock.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { granted } from '../support/refusal.ts';
import { CALLER, codeOf, startAudience } from './setup.ts';

const ADA = 'ada@example.net';
const ADA_ID = emailIdentifier(ADA);
const RECIPIENT = { by: 'recipient', ipAddress: '192.0.2.9', userAgent: 'Browser/1' };

/** A form that was sent a minute ago. */
async function start(...defaults: Parameters<typeof startAudience>) {
  const audience = await startAudience(...defaults);
  const { clock, groupId, signUps, tables } = audience;
  const form = () => ({
    groupId,
    email: ADA,
    firstName: 'Ada',
    lastName: '',
    at: clock.now(),
    language: 'de',
  });
  const signUp = form();
  clock.advance(60_000);
  const contact = () => tables.contacts.byIdentifier('acct_one', ADA_ID);
  return {
    ...audience,
    form,
    signUp,
    contact,
    confirm: (of = signUp) => signUps.confirm('acct_one', of, RECIPIENT),
    state: (of = signUp) => signUps.state('acct_one', of),
    isActive: () => {
      const found = contact();
      const group = tables.subscriptionGroups.get('acct_one', groupId);
      if (found === null || group === null) return null;
      return tables.subscriptions.get(group.seq, found.seq)?.is_active ?? null;
    },
    consents: () => {
      const found = contact();
      return found === null ? [] : tables.consents.history(found.seq, null, 100);
    },
  };
}

describe('the confirmation of a sign-up', () => {
  it('records the consent once, with the times of the form and of the confirmation', async () => {
    const { confirm, state, consents, clock, signUp, isActive } = await start();
    expect(state()).toBe('open');
    expect(await confirm()).toBe('confirmed');
    const confirmedAt = clock.now();
    const recorded = consents();
    expect(recorded).toMatchObject([
      {
        action: 'given',
        method: 'double_opt_in',
        said_at: confirmedAt,
        ip_address: '192.0.2.9',
        user_agent: 'Browser/1',
        recorded_by: 'recipient',
        details: expect.stringContaining(`sent ${iso(signUp.at)}`),
      },
    ]);
    for (let times = 0; times < 20; times++) {
      clock.advance(1000);
      expect(await confirm()).toBe('confirmed');
    }
    expect(consents()).toEqual(recorded);
    expect(isActive()).toBe(1);
  });

  it('takes effect once when requests arrive together', async () => {
    const { confirm, consents } = await start();
    const states = await Promise.all(Array.from({ length: 10 }, () => confirm()));
    expect(states).toEqual(Array(10).fill('confirmed'));
    expect(consents()).toHaveLength(1);
  });

  it('is also that of an older form of the group', async () => {
    const { confirm, form, signUp, consents } = await start();
    await confirm(form());
    expect(await confirm(signUp)).toBe('confirmed');
    expect(consents()).toHaveLength(1);
  });

  it('ends earlier opt-outs, of contacts and of people who are none', async () => {
    const { confirm, form, suppress, clock, status, isActive, add } = await start();
    await suppress(ADA, 'unsubscribe', 'mk');
    clock.advance(1);
    expect(await confirm(form())).toBe('confirmed');
    expect([status(ADA), isActive()]).toEqual(['active', 1]);
    await add('bob@example.net');
    await suppress('bob@example.net', 'unsubscribe', 'mk');
    clock.advance(1);
    expect(await confirm({ ...form(), email: 'bob@example.net' })).toBe('confirmed');
    expect(status('bob@example.net')).toBe('active');
  });

  it('adds a member after a bounce, who stays blocked', async () => {
    const { confirm, suppress, status, isActive } = await start();
    await suppress(ADA, 'hard_bounce');
    expect(await confirm()).toBe('confirmed');
    expect([status(ADA), isActive()]).toEqual(['bounced', 1]);
  });

  it('can be repeated after it was refused', async () => {
    const { confirm, state, add, contact } = await start({ contacts: 1 });
    await add('bob@example.net');
    expect(codeOf(await confirm())).toBe('LIMIT_REACHED');
    expect(contact()).toBeNull();
    expect(state()).toBe('open');
  });
});

describe('the link of a sign-up', () => {
  it.each(['mk', 'all'] as const)('ends with a later opt-out of the stream %s', async (stream) => {
    const { confirm, consents, suppress, status, clock, state } = await start();
    await confirm();
    clock.advance(1000);
    await suppress(ADA, 'unsubscribe', stream);
    clock.advance(1000);
    expect(await confirm()).toBe('ended');
    expect(state()).toBe('ended');
    expect(status(ADA)).toBe('unsubscribed');
    expect(consents()).toHaveLength(1);
  });

  it('ends with a later opt-out of the group', async () => {
    const { confirm, subscriptions, groupId, isActive, clock, consents } = await start();
    await confirm();
    clock.advance(1000);
    granted(await subscriptions.put('acct_one', groupId, ADA_ID, { isActive: false }, CALLER));
    const before = consents();
    expect(await confirm()).toBe('ended');
    expect(isActive()).toBe(0);
    expect(consents()).toEqual(before);
  });

  it('does not restore a membership that the account removed', async () => {
    const { confirm, subscriptions, groupId, isActive } = await start();
    await confirm();
    await subscriptions.remove('acct_one', groupId, ADA_ID);
    expect(await confirm()).toBe('ended');
    expect(isActive()).toBeNull();
  });

  it('confirms nothing if the person opted out before it was used', async () => {
    const { confirm, suppress, contact } = await start();
    await suppress(ADA, 'unsubscribe', 'mk');
    expect(await confirm()).toBe('ended');
    expect(contact()).toBeNull();
  });

  it('does not create a person again who was erased, but a new form does', async () => {
    const { add, confirm, erasure, contact, form, clock, state } = await start();
    await add(ADA);
    granted(await erasure.erase('acct_one', ADA_ID));
    expect(state()).toBe('ended');
    expect(await confirm()).toBe('ended');
    expect(contact()).toBeNull();
    clock.advance(1);
    expect(await confirm(form())).toBe('confirmed');
    expect(contact()).not.toBeNull();
  });

  it('is not needed any more after seven days', async () => {
    const { confirm, signUp, clock, tables, groupId } = await start();
    await confirm();
    const isUsed = () => tables.closedSignUps.isUsed('acct_one', ADA_ID, groupId, signUp.at);
    tables.retention.closedSignUps.purge(clock.now() + 7 * DAY, 100);
    expect(isUsed()).toBe(true);
    tables.retention.closedSignUps.purge(clock.now() + 7 * DAY + 1, 100);
    expect(isUsed()).toBe(false);
  });
});
