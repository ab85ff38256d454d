import { describe, expect, it } from 'vitest';
import { marketingIneligibility } from '../../src/audience/eligibility.ts';
import { addPerson } from '../../src/audience/people.ts';
import { createStatusFollower } from '../../src/audience/standing.ts';
import { presentEvent } from '../../src/events/feed.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { type SentMail, sentMailOf } from '../../src/mail/sent-mail.ts';
import type { OptOutMethod } from '../../src/store/contacts/consent.ts';
import type { Stream } from '../../src/store/domains/domains.ts';
import { createUnsubscribing, type OptOutSource } from '../../src/suppression/unsubscribe.ts';
import { enqueue, startStore } from '../support/store.ts';

const ADA = 'ada@example.net';
const HASH = emailIdentifier(ADA);
const source = (method: OptOutMethod = 'page'): OptOutSource => ({
  method,
  ip: '192.0.2.7',
  userAgent: 'A browser',
});

type GroupState = 'none' | 'group' | 'deleted group';

/** Ada, a contact and a member of a group, and a mail to her. */
async function setup(useCase: Stream, groupState: GroupState = 'none') {
  const store = startStore();
  const { tables, writer, ids, recorder, clock } = store;
  const now = clock.now();
  const groupId = ids.make('sgroup');
  const provenance = { by: 'key_1', ipAddress: null, userAgent: null, at: now };
  const { message, groupSeq, contactSeq } = await writer.run((tx) => {
    const groupSeq = tx.subscriptionGroups.insert({
      subscription_group_id: groupId,
      account_id: 'acct_one',
      name: 'Winter news',
      description: null,
      is_active: 1,
      tags: '[]',
      unsubscribe_template_id: null,
      report_abuse_template_id: null,
      company_address_template_id: null,
      sign_up: null,
      is_public: null,
      archive_key: null,
      created_at: now,
      updated_at: now,
    });
    const contactSeq = addPerson(
      tx,
      ids,
      { email: ADA, phone: '+442071838750', consent: {} },
      { accountId: 'acct_one', source: 'api', defaultMethod: 'implicit_api', provenance, mayAdd: () => null },
    );
    if (typeof contactSeq !== 'number') throw new Error(contactSeq.message);
    tx.subscriptions.insert({
      group_seq: groupSeq,
      contact_seq: contactSeq,
      is_active: 1,
      source: 'api',
      consent_method: 'implicit_api',
      consent_details: null,
      joined_at: now,
      updated_at: now,
    });
    const message = enqueue(tx, now, {
      recipient: ADA,
      use_case: useCase,
      priority: useCase === 'mk' ? 1 : 0,
      subscription_group_id: groupState === 'none' ? null : groupId,
    });
    if (groupState === 'deleted group') tx.subscriptionGroups.markDeleted(groupSeq, now);
    return { message, groupSeq, contactSeq };
  });
  const unsubscribing = createUnsubscribing(
    { clock },
    { recorder, onSuppressionChange: createStatusFollower(clock) },
  );
  const mail = sentMailOf(message);
  return {
    ...store,
    message,
    mail,
    groupId,
    groupSeq,
    contactSeq,
    optOut: (choice: 'list' | 'all', how = source(), of: SentMail = mail) =>
      writer.run((tx) => unsubscribing.optOut(tx, of, choice, how)),
    undo: (parts: ('group' | 'mk' | 'tx')[], of: SentMail = mail) =>
      writer.run((tx) => unsubscribing.undo(tx, of, parts, source())),
    state: () => unsubscribing.state(tables, mail),
    suppressed: () =>
      tables.suppressions.of('acct_one', HASH).map(({ reason, stream }) => `${reason} ${stream}`),
    status: () => tables.contacts.byIdentifier('acct_one', HASH)?.global_status,
    isMember: () => tables.subscriptions.get(groupSeq, contactSeq)?.is_active === 1,
    mayReceive: (group: string | null) =>
      marketingIneligibility(tables, 'acct_one', HASH, group)?.code ?? 'yes',
    history: () =>
      tables.consents.history(contactSeq, null, 10).map(({ action, method }) => [action, method]),
    events: () =>
      tables.events
        .feed({ accountId: 'acct_one', afterSeq: 0, limit: 100, kind: 'email_unsubscribed' })
        .rows.map(presentEvent),
  };
}

describe('what an opt-out stops', () => {
  it.each([
    ['mk', 'none', 'list', ['mk'], 'marketing', 'unsubscribed'],
    ['mk', 'none', 'all', ['mk'], 'marketing', 'unsubscribed'],
    ['mk', 'group', 'list', ['group'], 'group', 'active'],
    ['mk', 'group', 'all', ['mk'], 'marketing', 'unsubscribed'],
    ['mk', 'deleted group', 'list', ['mk'], 'marketing', 'unsubscribed'],
    ['tx', 'none', 'list', ['tx'], 'transactional', 'active'],
    ['tx', 'none', 'all', ['tx', 'mk'], 'all', 'unsubscribed'],
  ] as const)('%s mail to %s, %s: %j', async (useCase, groupState, choice, parts, scope, status) => {
    const test = await setup(useCase, groupState);
    expect(await test.optOut(choice)).toEqual(parts);
    expect(test.state().stopped.toSorted()).toEqual([...parts].sort());
    expect(test.suppressed()).toEqual(
      parts.filter((part) => part !== 'group').map((stream) => `unsubscribe ${stream}`),
    );
    expect(test.status()).toBe(status);
    expect(test.events()).toMatchObject([
      { messageId: test.message.message_id, method: 'page', scope, ip: '192.0.2.7', userAgent: 'A browser' },
    ]);
  });

  it('of a group affects only the membership', async () => {
    const test = await setup('mk', 'group');
    await test.optOut('list');
    expect([test.isMember(), test.mayReceive(test.groupId), test.mayReceive(null)]).toEqual([
      false,
      'RECIPIENT_UNSUBSCRIBED',
      'yes',
    ]);
    expect(test.history()[0]).toEqual(['left_group', 'page']);
  });

  it('of a group is kept after the membership is deleted', async () => {
    const test = await setup('mk', 'group');
    await test.optOut('list');
    await test.writer.run((tx) => {
      const contact = tx.contacts.byIdentifier('acct_one', HASH);
      if (contact) tx.subscriptions.remove(test.groupSeq, contact.seq);
    });
    expect(test.state().stopped).toEqual(['group']);
  });
});

describe('the consent history', () => {
  it.each([
    ['mk', 'none', 'list', 'one_click'],
    ['mk', 'group', 'all', 'page'],
    ['mk', 'none', 'list', 'mailto'],
    ['tx', 'none', 'all', 'page'],
  ] as const)(
    'has the opt-out from marketing: %s mail to %s, %s, %s',
    async (useCase, group, choice, method) => {
      const test = await setup(useCase, group);
      test.clock.advance(1000);
      await test.optOut(choice, source(method));
      await test.optOut(choice, source(method));
      const { tables, contactSeq, clock } = test;
      expect(tables.consents.history(contactSeq, null, 10)).toMatchObject([
        {
          action: 'withdrawn',
          subscription_group_id: null,
          method,
          details: null,
          ip_address: '192.0.2.7',
          user_agent: 'A browser',
          said_at: clock.now(),
          recorded_at: clock.now(),
          recorded_by: 'recipient',
        },
        { action: 'given', method: 'implicit_api' },
      ]);
      // The suppression refuses the mail; the evidence of the consent remains.
      expect(tables.contacts.bySeq(contactSeq)).toMatchObject({ consent_method: 'implicit_api' });
    },
  );

  it('has no entry for an opt-out from transactional mail', async () => {
    const test = await setup('tx');
    await test.optOut('list');
    expect(test.history()).toEqual([['given', 'implicit_api']]);
  });

  it('has one entry when several suppressions record the opt-out', async () => {
    const test = await setup('mk');
    await test.writer.run((tx) =>
      tx.suppressions.add({
        account_id: 'acct_one',
        recipient_hash: HASH,
        stream: 'all',
        reason: 'unsubscribe',
        email: ADA,
        message_seq: null,
        created_at: test.clock.now(),
      }),
    );
    expect(await test.optOut('list')).toEqual(['mk']);
    expect(test.history()).toEqual([['given', 'implicit_api']]);
  });

  it('has the end of the opt-out, and again the next one', async () => {
    const test = await setup('mk');
    await test.optOut('list', source('one_click'));
    await test.undo(['mk']);
    await test.optOut('list', source('mailto'));
    expect(test.history()).toEqual([
      ['withdrawn', 'mailto'],
      ['given', 'page'],
      ['withdrawn', 'one_click'],
      ['given', 'implicit_api'],
    ]);
  });

  it('has no consent at the end of an opt-out if there is none on record', async () => {
    const test = await setup('mk');
    await test.writer.run((tx) => tx.contacts.setConsent(test.contactSeq, null, test.clock.now()));
    await test.optOut('list', source('one_click'));
    await test.undo(['mk']);
    expect(test.history()[0]).toEqual(['withdrawn', 'one_click']);
  });

  it('has nothing of an erased person', async () => {
    const test = await setup('mk');
    await test.writer.run((tx) => {
      tx.subscriptions.remove(test.groupSeq, test.contactSeq);
      tx.consents.removeAll(test.contactSeq);
      tx.contacts.remove(test.contactSeq);
    });
    expect(await test.optOut('list')).toEqual(['mk']);
    expect(test.history()).toEqual([]);
  });
});

describe('repeating an opt-out', () => {
  it.each([
    ['mk', 'none'],
    ['mk', 'group'],
    ['tx', 'none'],
  ] as const)('%s mail to %s: changes nothing and records no event', async (useCase, groupState) => {
    const test = await setup(useCase, groupState);
    await test.optOut('list', source('one_click'));
    expect(await test.optOut('list', source('mailto'))).toEqual([]);
    expect(await test.optOut('list', source('page'))).toEqual([]);
    expect(test.events()).toMatchObject([{ method: 'one_click' }]);
  });
});

describe('undoing an opt-out', () => {
  it.each([
    ['mk', 'none', 'list', ['mk']],
    ['mk', 'group', 'list', ['group']],
    ['mk', 'group', 'all', ['mk']],
    ['tx', 'none', 'list', ['tx']],
    ['tx', 'none', 'all', ['tx', 'mk']],
  ] as const)('restores %s mail to %s, %s', async (useCase, groupState, choice, parts) => {
    const test = await setup(useCase, groupState);
    await test.optOut(choice);
    expect((await test.undo([...parts])).toSorted()).toEqual([...parts].sort());
    expect([test.state().stopped, test.suppressed(), test.status(), test.isMember()]).toEqual([
      [],
      [],
      'active',
      true,
    ]);
    expect(test.mayReceive(test.groupId)).toBe('yes');
    expect(await test.undo([...parts])).toEqual([]);
  });

  it('of a group is kept in the history', async () => {
    const test = await setup('mk', 'group');
    await test.optOut('list');
    await test.undo(['group']);
    expect(test.history().slice(0, 2)).toEqual([
      ['returned_to_group', 'page'],
      ['left_group', 'page'],
    ]);
  });

  it('restores only the given parts, and only those that the mail can stop', async () => {
    const test = await setup('mk', 'group');
    await test.optOut('list');
    await test.optOut('all');
    expect(await test.undo(['tx'])).toEqual([]);
    expect(await test.undo(['mk', 'tx'])).toEqual(['mk']);
    expect(test.state().stopped).toEqual(['group']);
  });

  it.each(['hard_bounce', 'complaint', 'manual'] as const)('never removes %s', async (reason) => {
    const test = await setup('mk');
    await test.writer.run((tx) => {
      tx.suppressions.add({
        account_id: 'acct_one',
        recipient_hash: HASH,
        stream: 'mk',
        reason,
        email: ADA,
        message_seq: null,
        created_at: test.clock.now(),
      });
    });
    await test.optOut('list');
    await test.undo(['mk']);
    expect(test.suppressed()).toEqual([`${reason} mk`]);
  });
});

describe('an opt-out for a purged message', () => {
  it('suppresses by the hash and records the event', async () => {
    const test = await setup('mk', 'group');
    const purged: SentMail = {
      ...test.mail,
      messageId: 'msg_1500000000000_abcdefghijkl',
      recipientHash: emailIdentifier('bob@example.net'),
    };
    await test.optOut('list', source('one_click'), purged);
    await test.optOut('all', source('page'), purged);
    expect(test.tables.groupOptOuts.has(test.groupSeq, purged.recipientHash)).toBe(true);
    expect(test.tables.suppressions.of('acct_one', purged.recipientHash)).toMatchObject([
      { reason: 'unsubscribe', stream: 'mk', email: null, message_seq: null },
    ]);
    const person = {
      contactIdentifier: purged.recipientHash,
      useCase: 'mk',
      subscriptionGroupId: test.groupId,
    };
    expect(test.events()).toMatchObject([
      { ...person, method: 'one_click', scope: 'group' },
      { ...person, method: 'page', scope: 'marketing' },
    ]);
    expect([test.isMember(), test.suppressed()]).toEqual([true, []]);
  });

  it('has no effect when the mail was simulated', async () => {
    const test = await setup('mk', 'group');
    const simulated = { ...test.mail, simulated: true };
    expect(await test.optOut('all', source(), simulated)).toEqual([]);
    expect([test.suppressed(), test.events()]).toEqual([[], []]);
  });
});
