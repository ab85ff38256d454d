import { describe, expect, it } from 'vitest';
import { marketingIneligibility } from '../../src/audience/eligibility.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { granted } from '../support/refusal.ts';
import { CALLER, GROUP, startAudience } from './setup.ts';

const ADA = 'ada@example.net';
const ADA_ID = emailIdentifier(ADA);

const NOT_SUBSCRIBED = { code: 'CONSENT_REQUIRED', status: 'not_subscribed' };
const UNSUBSCRIBED = { code: 'RECIPIENT_UNSUBSCRIBED', status: 'unsubscribed' };
const SUPPRESSED = (status: string) => ({ code: 'RECIPIENT_SUPPRESSED', status });

type AudienceSetup = Awaited<ReturnType<typeof startAudience>>;
type Step = (setup: AudienceSetup) => Promise<unknown>;

const contact: Step = ({ add }) => add(ADA);
const member: Step = ({ subscriptions, groupId }) =>
  subscriptions.add('acct_one', groupId, { email: ADA }, CALLER).then(granted);
const put =
  (input: object): Step =>
  ({ subscriptions, groupId }) =>
    subscriptions.put('acct_one', groupId, ADA_ID, input, CALLER).then(granted);
const remove: Step = ({ subscriptions, groupId }) => subscriptions.remove('acct_one', groupId, ADA_ID);
const withdraw: Step = ({ contacts }) =>
  contacts.update('acct_one', ADA_ID, { consent: null }, { ...CALLER, merge: false }).then(granted);
const suppress =
  (...what: [Parameters<AudienceSetup['suppress']>[1], Parameters<AudienceSetup['suppress']>[2]]): Step =>
  ({ suppress }) =>
    suppress(ADA, ...what);
const switchOff: Step = ({ groups, groupId }) =>
  groups.update('acct_one', groupId, { isActive: false }).then(granted);
const erase: Step = ({ erasure }) => erasure.erase('acct_one', ADA_ID).then(granted);

/** Earlier changes, and the results for a send to no group and to the group; null if the person is eligible. */
const MATRIX: [what: string, steps: Step[], global: object | null, group: object | null][] = [
  ['an unknown person', [], NOT_SUBSCRIBED, NOT_SUBSCRIBED],
  ['a contact', [contact], null, NOT_SUBSCRIBED],
  ['a contact whose consent was withdrawn', [contact, withdraw], NOT_SUBSCRIBED, NOT_SUBSCRIBED],
  ['an active member', [contact, member], null, null],
  ['a member whose consent was withdrawn', [contact, member, withdraw], NOT_SUBSCRIBED, NOT_SUBSCRIBED],
  ['a member who left the group', [contact, member, put({ isActive: false })], null, UNSUBSCRIBED],
  [
    'a member who left and returned',
    [contact, member, put({ isActive: false }), put({ isActive: true })],
    null,
    null,
  ],
  [
    'a member who left and was added again',
    [contact, member, put({ isActive: false }), remove, member],
    null,
    UNSUBSCRIBED,
  ],
  [
    'a member who left and whose membership was deleted',
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
    'a contact who opted out before a complaint',
    [contact, suppress('unsubscribe', 'mk'), suppress('complaint', 'mk')],
    SUPPRESSED('complained'),
    SUPPRESSED('complained'),
  ],
  [
    'a recipient who bounced and is not a contact',
    [suppress('hard_bounce', 'all')],
    SUPPRESSED('bounced'),
    SUPPRESSED('bounced'),
  ],
  [
    'a member who complained and was erased',
    [contact, member, suppress('complaint', 'mk'), erase],
    SUPPRESSED('complained'),
    SUPPRESSED('complained'),
  ],
  [
    'a contact who unsubscribed and was erased',
    [contact, suppress('unsubscribe', 'mk'), erase],
    UNSUBSCRIBED,
    UNSUBSCRIBED,
  ],
  ['an erased contact', [contact, member, erase], NOT_SUBSCRIBED, NOT_SUBSCRIBED],
  [
    'a member who left, was erased and was added again',
    [contact, member, put({ isActive: false }), erase, contact, member],
    null,
    UNSUBSCRIBED,
  ],
  [
    'a contact who unsubscribed, was erased and was added again',
    [contact, suppress('unsubscribe', 'mk'), erase, contact, member],
    UNSUBSCRIBED,
    UNSUBSCRIBED,
  ],
];

describe('the eligibility for marketing mail', () => {
  it.each(MATRIX)('depends on suppressions, consent and membership: %s', async (_, steps, global, group) => {
    const setup = await startAudience();
    for (const step of steps) await step(setup);
    const result = (groupId: string | null) =>
      marketingIneligibility(setup.tables, 'acct_one', ADA_ID, groupId);
    expect(result(null)).toEqual(global === null ? null : expect.objectContaining(global));
    expect(result(setup.groupId)).toEqual(group === null ? null : expect.objectContaining(group));
  });

  it('includes the time of the suppression', async () => {
    const setup = await startAudience();
    await setup.add(ADA);
    const since = setup.clock.now();
    await setup.suppress(ADA, 'hard_bounce');
    expect(marketingIneligibility(setup.tables, 'acct_one', ADA_ID, null)).toMatchObject({ since });
  });

  it('ignores groups of other accounts', async () => {
    const setup = await startAudience();
    await setup.add(ADA);
    const ofTwo = granted(await setup.groups.create('acct_two', GROUP));
    const result = marketingIneligibility(setup.tables, 'acct_one', ADA_ID, ofTwo.subscription_group_id);
    expect(result).toMatchObject(NOT_SUBSCRIBED);
    expect(marketingIneligibility(setup.tables, 'acct_two', ADA_ID, null)).toMatchObject(NOT_SUBSCRIBED);
  });
});
