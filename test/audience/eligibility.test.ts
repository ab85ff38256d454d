import { describe, expect, it } from 'vitest';
import { mayReceiveMarketing } from '../../src/audience/eligibility.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { CALLER, GROUP, ok, startAudience } from './setup.ts';

const ADA = 'ada@example.net';
const ADA_ID = emailIdentifier(ADA);

const NOT_SUBSCRIBED = { code: 'CONSENT_REQUIRED', status: 'not_subscribed' };
const UNSUBSCRIBED = { code: 'RECIPIENT_UNSUBSCRIBED', status: 'unsubscribed' };
const SUPPRESSED = (status: string) => ({ code: 'RECIPIENT_SUPPRESSED', status });

type AudienceSetup = Awaited<ReturnType<typeof startAudience>>;
type Step = (setup: AudienceSetup) => Promise<unknown>;

const contact: Step = ({ add }) => add(ADA);
const member: Step = ({ subscriptions, groupId }) =>
  subscriptions.add('acct_one', groupId, { email: ADA }, CALLER).then(ok);
const put =
  (input: object): Step =>
  ({ subscriptions, groupId }) =>
    subscriptions.put('acct_one', groupId, ADA_ID, input, CALLER).then(ok);
const remove: Step = ({ subscriptions, groupId }) => subscriptions.remove('acct_one', groupId, ADA_ID);
const withdraw: Step = ({ contacts }) =>
  contacts.update('acct_one', ADA_ID, { consent: null }, { ...CALLER, merge: false }).then(ok);
const suppress =
  (...what: [Parameters<AudienceSetup['suppress']>[1], Parameters<AudienceSetup['suppress']>[2]]): Step =>
  ({ suppress }) =>
    suppress(ADA, ...what);
const switchOff: Step = ({ groups, groupId }) =>
  groups.update('acct_one', groupId, { isActive: false }).then(ok);
const erase: Step = ({ erasure }) => erasure.erase('acct_one', ADA_ID).then(ok);

/** Earlier changes, and the results of a send to no group and to the group. Null: eligible. */
const MATRIX: [what: string, steps: Step[], global: object | null, group: object | null][] = [
  ['an unknown person', [], NOT_SUBSCRIBED, NOT_SUBSCRIBED],
  ['a contact', [contact], null, NOT_SUBSCRIBED],
  ['a contact whose consent was withdrawn', [contact, withdraw], NOT_SUBSCRIBED, NOT_SUBSCRIBED],
  ['an active member', [contact, member], null, null],
  ['a member whose consent was withdrawn', [contact, member, withdraw], NOT_SUBSCRIBED, NOT_SUBSCRIBED],
  ['a member who left the group', [contact, member, put({ isActive: false })], null, UNSUBSCRIBED],
  [
    'one who left and came back',
    [contact, member, put({ isActive: false }), put({ isActive: true })],
    null,
    null,
  ],
  [
    'one who left and was added again',
    [contact, member, put({ isActive: false }), remove, member],
    null,
    UNSUBSCRIBED,
  ],
  [
    'one who left, membership deleted',
    [contact, member, put({ isActive: false }), remove],
    null,
    NOT_SUBSCRIBED,
  ],
  ['a former member', [contact, member, remove], null, NOT_SUBSCRIBED],
  ['a member of an inactive group', [contact, member, switchOff], null, NOT_SUBSCRIBED],
  [
    'a member after a hard bounce',
    [contact, member, suppress('hard_bounce', 'all')],
    SUPPRESSED('bounced'),
    SUPPRESSED('bounced'),
  ],
  [
    'a member after soft bounces',
    [contact, member, suppress('soft_bounces', 'all')],
    SUPPRESSED('bounced'),
    SUPPRESSED('bounced'),
  ],
  [
    'a member who complained',
    [contact, member, suppress('complaint', 'mk')],
    SUPPRESSED('complained'),
    SUPPRESSED('complained'),
  ],
  [
    'a member on the list',
    [contact, member, suppress('manual', 'all')],
    SUPPRESSED('suppressed'),
    SUPPRESSED('suppressed'),
  ],
  [
    'a member who unsubscribed from all',
    [contact, member, suppress('unsubscribe', 'all')],
    UNSUBSCRIBED,
    UNSUBSCRIBED,
  ],
  [
    'a member who unsubscribed from marketing',
    [contact, member, suppress('unsubscribe', 'mk')],
    UNSUBSCRIBED,
    UNSUBSCRIBED,
  ],
  [
    'a member who unsubscribed from transactional mail',
    [contact, member, suppress('unsubscribe', 'tx')],
    null,
    null,
  ],
  [
    'an opt-out before a complaint',
    [contact, suppress('unsubscribe', 'mk'), suppress('complaint', 'mk')],
    SUPPRESSED('complained'),
    SUPPRESSED('complained'),
  ],
  [
    'who bounced and is no contact',
    [suppress('hard_bounce', 'all')],
    SUPPRESSED('bounced'),
    SUPPRESSED('bounced'),
  ],
  [
    'who complained and was erased',
    [contact, member, suppress('complaint', 'mk'), erase],
    SUPPRESSED('complained'),
    SUPPRESSED('complained'),
  ],
  [
    'who unsubscribed and was erased',
    [contact, suppress('unsubscribe', 'mk'), erase],
    UNSUBSCRIBED,
    UNSUBSCRIBED,
  ],
  ['an erased contact', [contact, member, erase], NOT_SUBSCRIBED, NOT_SUBSCRIBED],
  [
    'who left, was erased and is back',
    [contact, member, put({ isActive: false }), erase, contact, member],
    null,
    UNSUBSCRIBED,
  ],
  [
    'who unsubscribed, was erased and is back',
    [contact, suppress('unsubscribe', 'mk'), erase, contact, member],
    UNSUBSCRIBED,
    UNSUBSCRIBED,
  ],
];

describe('marketing may be sent to', () => {
  it.each(MATRIX)('%s', async (_, steps, global, group) => {
    const setup = await startAudience();
    for (const step of steps) await step(setup);
    const result = (groupId: string | null) => mayReceiveMarketing(setup.tables, 'acct_one', ADA_ID, groupId);
    expect(result(null)).toEqual(global === null ? null : expect.objectContaining(global));
    expect(result(setup.groupId)).toEqual(group === null ? null : expect.objectContaining(group));
  });

  it('includes the time of the opt-out', async () => {
    const setup = await startAudience();
    await setup.add(ADA);
    const since = setup.clock.now();
    await setup.suppress(ADA, 'hard_bounce');
    expect(mayReceiveMarketing(setup.tables, 'acct_one', ADA_ID, null)).toMatchObject({ since });
  });

  it('ignores groups of other accounts', async () => {
    const setup = await startAudience();
    await setup.add(ADA);
    const ofTwo = await setup.groups.create('acct_two', GROUP);
    const result = mayReceiveMarketing(setup.tables, 'acct_one', ADA_ID, ofTwo.subscription_group_id);
    expect(result).toMatchObject(NOT_SUBSCRIBED);
    expect(mayReceiveMarketing(setup.tables, 'acct_two', ADA_ID, null)).toMatchObject(NOT_SUBSCRIBED);
  });
});
