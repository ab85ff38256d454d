import { describe, expect, it, onTestFinished } from 'vitest';
import { findSubscriptionGroup, type SubscriptionGroups } from '../../src/audience/groups.ts';
import { leaveGroup, returnToGroup } from '../../src/audience/opt-out.ts';
import { emailIdentifier, phoneIdentifier } from '../../src/mail/identifier.ts';
import { granted } from '../support/refusal.ts';
import { CALLER, codeOf, GROUP, startAudience } from './setup.ts';

/** For work in the background on a busy machine. */
const ADA = 'ada@example.net';
const ADA_ID = emailIdentifier(ADA);
const PHONE = '+442079460000';

async function startWithAda() {
  const setup = await startAudience();
  const contact = await setup.add(ADA, { phone: PHONE });
  const { subscriptions, groupId } = setup;
  const row = () => granted(setup.groups.get('acct_one', groupId));
  return {
    ...setup,
    contact,
    join: (input: object = {}) => subscriptions.add('acct_one', groupId, { email: ADA, ...input }, CALLER),
    put: (input: object, identifier = ADA_ID) =>
      subscriptions.put('acct_one', groupId, identifier, input, CALLER),
    leave: () => subscriptions.remove('acct_one', groupId, ADA_ID),
    isActive: () => granted(subscriptions.get('acct_one', groupId, ADA_ID)).subscription.is_active === 1,
    counts: () => [row().total_subscribers, row().active_subscribers],
    actions: () => setup.contacts.history(contact, null, 20).map(({ action }) => action),
    group: row,
  };
}

const active = (joined: Awaited<ReturnType<Awaited<ReturnType<typeof startWithAda>>['join']>>) =>
  granted(joined).member.subscription.is_active === 1;

function startBackground(groups: SubscriptionGroups): void {
  groups.background.start();
  onTestFinished(() => groups.background.stop());
}

describe('adding a member', () => {
  it('creates a membership once, and changes nothing when repeated', async () => {
    const { join, counts, contacts, contact } = await startWithAda();
    const first = granted(await join({ consent: { method: 'web_form', details: 'A' } }));
    expect(first).toMatchObject({
      created: true,
      member: {
        subscription: { is_active: 1, source: 'api', consent_method: 'web_form', consent_details: 'A' },
      },
    });
    const again = granted(await join({ consent: { method: 'other', details: 'B' }, isActive: false }));
    expect(again).toMatchObject({
      created: false,
      member: { subscription: { is_active: 1, consent_method: 'web_form' } },
    });
    expect(counts()).toEqual([1, 1]);
    expect(contacts.history(contact, null, 9)).toHaveLength(2);
  });

  it('keeps the method and the evidence of the contact when only the details change', async () => {
    const { groupId, subscriptions, contacts, add } = await startAudience();
    const email = 'bea@example.net';
    await add(email, { consent: { method: 'double_opt_in', ipAddress: '192.0.2.1', consentedAt: 1000 } });
    granted(await subscriptions.add('acct_one', groupId, { email }, CALLER));
    const input = { consent: { details: 'Form 7' } };
    granted(await subscriptions.put('acct_one', groupId, emailIdentifier(email), input, CALLER));
    expect(granted(contacts.get('acct_one', emailIdentifier(email)))).toMatchObject({
      consent_method: 'double_opt_in',
      consent_details: 'Form 7',
      consent_ip_address: '192.0.2.1',
      consented_at: 1000,
    });
  });

  it('applies consent to the contact only when it is present', async () => {
    const { join, put, contacts, contact, groupId } = await startWithAda();
    await join();
    expect(contacts.history(contact, null, 9)).toHaveLength(1);
    await put({ consent: { method: 'double_opt_in', details: 'Form 7' } });
    expect(granted(contacts.get('acct_one', ADA_ID))).toMatchObject({
      consent_method: 'double_opt_in',
      consent_details: 'Form 7',
    });
    expect(contacts.history(contact, null, 1)).toMatchObject([
      { action: 'given', subscription_group_id: groupId, recorded_by: 'key_one' },
    ]);
  });

  it.each([
    ['an address', { email: ADA }, 'created'],
    ['a number', { phone: PHONE }, 'created'],
    ['an identifier', { contactIdentifier: ADA_ID }, 'created'],
    ['the number’s identifier', { contactIdentifier: phoneIdentifier(PHONE) }, 'created'],
    ['all identifiers of one person', { email: ADA, phone: PHONE, contactIdentifier: ADA_ID }, 'created'],
    ['nothing', {}, 'VALIDATION_ERROR'],
    ['two people', { email: ADA, phone: '+4930123456' }, 'VALIDATION_ERROR'],
    [
      'a person and nobody',
      { email: ADA, contactIdentifier: emailIdentifier('x@example.net') },
      'VALIDATION_ERROR',
    ],
    ['an unknown contact', { email: 'x@example.net' }, 'CONTACT_NOT_FOUND'],
    ['two unknown identifiers', { email: 'x@example.net', phone: '+4930999999' }, 'CONTACT_NOT_FOUND'],
  ])('by %s', async (_, input, outcome) => {
    const { subscriptions, groupId, contacts } = await startWithAda();
    granted(await contacts.create('acct_one', { phone: '+4930123456' }, CALLER));
    const added = await subscriptions.add('acct_one', groupId, input, CALLER);
    expect(outcome === 'created' ? granted(added).created : codeOf(added)).toBe(
      outcome === 'created' ? true : outcome,
    );
  });

  it('checks the group before the contact', async () => {
    const { subscriptions } = await startWithAda();
    const input = { email: 'nobody@example.net' };
    for (const groupId of ['sgroup_1_x', 'nonsense']) {
      const added = await subscriptions.add('acct_one', groupId, input, CALLER);
      expect(codeOf(added)).toBe('SUBSCRIPTION_GROUP_NOT_FOUND');
    }
  });

  it('refuses groups and contacts of another account', async () => {
    const { subscriptions, contacts, groupId, groups } = await startWithAda();
    granted(await contacts.create('acct_two', { email: 'two@example.net' }, CALLER));
    const ofTwo = granted(await groups.create('acct_two', GROUP));
    const add = (account: string, group: string, email: string) =>
      subscriptions.add(account, group, { email }, CALLER).then(codeOf);
    expect(await add('acct_two', groupId, 'two@example.net')).toBe('SUBSCRIPTION_GROUP_NOT_FOUND');
    expect(await add('acct_one', ofTwo.subscription_group_id, ADA)).toBe('SUBSCRIPTION_GROUP_NOT_FOUND');
    expect(await add('acct_two', ofTwo.subscription_group_id, ADA)).toBe('CONTACT_NOT_FOUND');
  });
});

describe('an opt-out', () => {
  it.each([
    ['PUT isActive false, then POST', async (on: AudienceSetup) => void (await on.join())],
    [
      'PUT isActive false, then PUT without isActive',
      async (on: AudienceSetup) => void (await on.put({ consent: { method: 'web_form' } })),
    ],
    ['membership deleted, then POST', async (on: AudienceSetup) => void (await on.leave(), await on.join())],
    [
      'membership deleted, then PUT without isActive',
      async (on: AudienceSetup) => void (await on.leave(), await on.put({})),
    ],
    [
      'membership deleted, then POST by the number',
      async (on: AudienceSetup) => {
        await on.leave();
        await on.subscriptions.add('acct_one', on.groupId, { phone: PHONE }, CALLER);
      },
    ],
    [
      'a new address, then POST',
      async (on: AudienceSetup) => {
        await on.leave();
        const how = { ...CALLER, merge: false };
        granted(await on.contacts.update('acct_one', ADA_ID, { email: 'new@example.net', phone: null }, how));
        granted(await on.subscriptions.add('acct_one', on.groupId, { email: 'new@example.net' }, CALLER));
        granted(
          await on.contacts.update('acct_one', emailIdentifier('new@example.net'), { email: ADA }, how),
        );
      },
    ],
  ])('remains: %s', async (_, then) => {
    const setup = await startWithAda();
    await setup.join();
    await setup.put({ isActive: false });
    await then(setup);
    expect(setup.isActive()).toBe(false);
    expect(setup.counts()).toEqual([1, 0]);
  });

  it.each([
    ['as a member', async () => {}],
    ['after the membership was deleted', async (on: AudienceSetup) => void (await on.leave())],
  ])('ends with an explicit isActive true, %s, which is recorded', async (_, between) => {
    const setup = await startWithAda();
    await setup.join();
    await setup.put({ isActive: false });
    await between(setup);
    expect(active(await setup.put({ isActive: true }))).toBe(true);
    expect(setup.counts()).toEqual([1, 1]);
    expect(setup.actions()).toEqual(['returned_to_group', 'left_group', 'given']);
    await setup.leave();
    expect(active(await setup.join())).toBe(true);
  });

  it('is recorded when an inactive member is added', async () => {
    const { join, leave, counts } = await startWithAda();
    expect(active(await join({ isActive: false }))).toBe(false);
    await leave();
    expect(active(await join())).toBe(false);
    expect(counts()).toEqual([1, 0]);
  });

  it.each([
    ['PUT', async (on: AudienceSetup, input: object) => void (await on.join(), await on.put(input))],
    ['POST', async (on: AudienceSetup, input: object) => void (await on.join(input))],
    ['PUT of a new member', async (on: AudienceSetup, input: object) => void (await on.put(input))],
  ])('is one entry of the history, with the details and evidence of the request: %s', async (_, leave) => {
    const setup = await startWithAda();
    const consent = { details: 'By phone', ipAddress: '198.51.100.7', consentedAt: 1000 };
    await leave(setup, { isActive: false, consent });
    const { contacts, contact, groupId, put, clock } = setup;
    const entries = contacts.history(contact, null, 9);
    expect(entries).toMatchObject([
      {
        action: 'left_group',
        subscription_group_id: groupId,
        method: 'api',
        details: 'By phone',
        ip_address: '198.51.100.7',
        user_agent: null,
        said_at: 1000,
        recorded_at: clock.now(),
      },
      { action: 'given', details: null },
    ]);
    await put({ isActive: false, consent });
    await put({ isActive: false, consent: { details: 'Again' } });
    expect(contacts.history(contact, null, 9)).toEqual(entries);
    expect(granted(contacts.get('acct_one', ADA_ID))).toMatchObject({ consent_details: null });
    const { subscription } = granted(setup.subscriptions.get('acct_one', groupId, ADA_ID));
    expect(subscription).toMatchObject({ is_active: 0, consent_details: 'Again' });
  });

  it.each([
    ['PUT', async (on: AudienceSetup, input: object) => void (await on.join(), await on.put(input))],
    ['POST', async (on: AudienceSetup, input: object) => void (await on.join(input))],
  ])('comes after a consent of the same request that has a method: %s', async (_, leave) => {
    const setup = await startWithAda();
    await leave(setup, { isActive: false, consent: { method: 'web_form', details: 'Form 7' } });
    expect(setup.contacts.history(setup.contact, null, 9)).toMatchObject([
      { action: 'left_group', method: 'api', details: null },
      { action: 'given', method: 'web_form', details: 'Form 7' },
      { action: 'given', method: 'implicit_api' },
    ]);
  });

  it('records an event for the opt-out of a member, and none when it is repeated', async () => {
    const { join, put, tables, groupId } = await startWithAda();
    await join();
    await put({ isActive: false });
    await put({ isActive: false });
    const { rows: events } = tables.events.feed({ accountId: 'acct_one', afterSeq: 0, limit: 10 });
    expect(events.map(({ kind, data }) => [kind, JSON.parse(data)])).toEqual([
      [
        'email_unsubscribed',
        { method: 'api', subscriptionGroupId: groupId, recipient: ADA, contactIdentifier: ADA_ID },
      ],
    ]);
  });

  it('by the person applies to both identifiers, and can be withdrawn', async () => {
    const { join, writer, tables, isActive, actions, group } = await startWithAda();
    await join();
    const provenance = { by: 'recipient', ipAddress: '198.51.100.7', userAgent: null, at: 1 };
    const optOut = { method: 'one_click', provenance } as const;
    const hash = phoneIdentifier(PHONE);
    expect(await writer.run((tx) => leaveGroup(tx, group(), ADA_ID, optOut))).toBe(true);
    expect(await writer.run((tx) => leaveGroup(tx, group(), hash, optOut))).toBe(false);
    expect(isActive()).toBe(false);
    expect(await writer.run((tx) => returnToGroup(tx, group(), hash, { ...optOut, method: 'page' }))).toBe(
      true,
    );
    expect(isActive()).toBe(true);
    expect(tables.groupOptOuts.has(group().seq, ADA_ID)).toBe(false);
    expect(actions()).toEqual(['returned_to_group', 'left_group', 'given']);
  });

  it('applies to an identifier without a contact, and to a contact created later', async () => {
    const { writer, tables, groupId, subscriptions, add } = await startWithAda();
    const group = granted(findSubscriptionGroup(tables, 'acct_one', groupId));
    const provenance = { by: 'recipient', ipAddress: null, userAgent: null, at: 1 };
    const hash = emailIdentifier('late@example.net');
    await writer.run((tx) => leaveGroup(tx, group, hash, { method: 'mailto', provenance }));
    await add('late@example.net');
    const joined = await subscriptions.add('acct_one', groupId, { email: 'late@example.net' }, CALLER);
    expect(active(joined)).toBe(false);
  });
});

type AudienceSetup = Awaited<ReturnType<typeof startWithAda>>;

describe('counts', () => {
  it('are exact after many concurrent changes', async () => {
    const { subscriptions, groupId, add, counts, tables, group } = await startWithAda();
    const emails = Array.from({ length: 20 }, (_, n) => `member${n}@example.net`);
    for (const email of emails) await add(email);
    const one = (email: string, round: number) => {
      const identifier = emailIdentifier(email);
      if (round % 4 === 0) return subscriptions.add('acct_one', groupId, { email }, CALLER);
      if (round % 4 === 3) return subscriptions.remove('acct_one', groupId, identifier);
      return subscriptions.put('acct_one', groupId, identifier, { isActive: round % 4 === 1 }, CALLER);
    };
    let seed = 7;
    const next = () => (seed = (seed * 16_807) % 2_147_483_647);
    await Promise.all(Array.from({ length: 2000 }, () => one(emails[next() % emails.length] ?? ADA, next())));
    const { rows } = tables.subscriptions.list({ groupSeq: group().seq, beforeSeq: null, limit: 200 });
    expect(rows.length).toBeGreaterThan(0);
    const isActive = rows.filter(({ subscription }) => subscription.is_active === 1);
    expect(counts()).toEqual([rows.length, isActive.length]);
  });

  it('include one membership after 200 concurrent additions', async () => {
    const { join, counts } = await startWithAda();
    const joined = await Promise.all(Array.from({ length: 200 }, () => join()));
    expect(joined.map((one) => granted(one).created).filter(Boolean)).toHaveLength(1);
    expect(counts()).toEqual([1, 1]);
  });
});

describe('a group', () => {
  it('is deleted with any number of memberships, and without their contacts', async () => {
    const { groups, groupId, add, subscriptions, tables, contacts, join, contact } = await startWithAda();
    startBackground(groups);
    await join({ consent: { method: 'web_form' } });
    // More than two portions.
    const emails = Array.from({ length: 450 }, (_, n) => `member${n}@example.net`);
    await Promise.all(emails.map((email) => add(email)));
    for (const joined of await Promise.all(
      emails.map((email, n) =>
        subscriptions.add('acct_one', groupId, { email, isActive: n % 2 === 0 }, CALLER),
      ),
    ))
      granted(joined);
    const { seq } = granted(await groups.remove('acct_one', groupId));
    expect(tables.subscriptionGroups.deleted()).toEqual([seq]);
    expect(codeOf(groups.get('acct_one', groupId))).toBe('SUBSCRIPTION_GROUP_NOT_FOUND');
    expect(codeOf(await groups.remove('acct_one', groupId))).toBe('SUBSCRIPTION_GROUP_NOT_FOUND');
    expect(await contacts.memberships(contact)).toEqual([]);
    await expect.poll(() => tables.subscriptionGroups.deleted()).toEqual([]);
    expect(tables.subscriptions.list({ groupSeq: seq, beforeSeq: null, limit: 9 }).rows).toEqual([]);
    expect(contacts.history(contact, null, 9)).toHaveLength(2);
  });

  it('is absent for callers when its deletion was interrupted, and the next start completes that', async () => {
    const { groups, groupId, writer, join, tables, group, clock } = await startWithAda();
    await join();
    const { seq } = group();
    await writer.run((tx) => tx.subscriptionGroups.markDeleted(seq, clock.now()));
    expect((await groups.list({ accountId: 'acct_one', beforeSeq: null, limit: 9 })).rows).toEqual([]);
    expect(codeOf(await join())).toBe('SUBSCRIPTION_GROUP_NOT_FOUND');
    startBackground(groups);
    await expect.poll(() => tables.subscriptionGroups.deleted()).toEqual([]);
    expect(codeOf(groups.get('acct_one', groupId))).toBe('SUBSCRIPTION_GROUP_NOT_FOUND');
  });
});
