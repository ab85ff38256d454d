import { describe, expect, it } from 'vitest';
import type { SegmentFilter } from '../../../src/audience/segments/filter.ts';
import { matchesContact } from '../../../src/audience/segments/match.ts';
import { DAY } from '../../../src/core/clock.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import { ENGAGEMENT_BITS } from '../../../src/store/contacts/engagement.ts';
import { granted } from '../../support/refusal.ts';
import { CALLER, GROUP, startAudience } from '../setup.ts';

const ANN = emailIdentifier('ann@example.com');

/** An audience with one contact, a member of a group that received a campaign ten days ago. */
async function start() {
  const audience = await startAudience();
  const { groups, groupId, subscriptions, tables, writer, clock } = audience;
  await audience.add('ann@example.com', {
    firstName: 'Zoë',
    customFields: {
      plan: 'Pro',
      age: '41',
      visits: 3,
      vip: true,
      tags: ['Red', 'blue'],
      renewal: '2026-03-01',
    },
  });
  const other = granted(await groups.create('acct_one', GROUP)).subscription_group_id;
  granted(await subscriptions.add('acct_one', groupId, { email: 'ann@example.com' }, CALLER));
  await writer.run((tx) => {
    const seq = tx.contacts.byIdentifier('acct_one', ANN)?.seq ?? 0;
    const at = clock.now() - 10 * DAY;
    tx.engagement.insert({ contact_seq: seq, received_at: at, opened_at: at, clicked_at: null });
    const campaign = {
      campaign_id: 'campaign_1',
      account_id: 'acct_one',
      name: 'One',
      description: null,
      prepared: null,
      status: 'sent',
      created_at: at,
      updated_at: at,
    } as const;
    tx.engagement.addOfCampaign(tx.campaigns.insert(campaign), seq, ENGAGEMENT_BITS.received);
  });
  const isMatch = (filter: SegmentFilter): boolean => {
    const contact = tables.contacts.byIdentifier('acct_one', ANN);
    if (contact === null) throw new Error('the contact does not exist');
    return matchesContact(tables, contact, filter, clock.now());
  };
  return { ...audience, other, isMatch };
}

const is = (field: string, op: SegmentFilter['op'], value?: SegmentFilter['value']): SegmentFilter => ({
  field,
  op,
  value,
});

const CASES: [SegmentFilter, boolean][] = [
  [is('firstName', 'is', 'ZOE'), true],
  [is('firstName', 'startsWith', 'zo'), true],
  [is('lastName', 'exists'), false],
  [is('lastName', 'exists', false), true],
  [is('lastName', 'isNot', 'Miller'), true],
  [is('email', 'contains', '@EXAMPLE.'), true],
  [is('customFields.plan', 'is', 'pro'), true],
  [is('customFields.plan', 'isNot', 'pro'), false],
  [is('customFields.age', 'is', 41), true],
  [is('customFields.age', 'greaterThan', 40), true],
  [is('customFields.plan', 'lessThan', 40), false],
  [is('customFields.visits', 'lessThan', 3.5), true],
  [is('customFields.vip', 'is', true), true],
  [is('customFields.tags', 'is', 'red'), true],
  [is('customFields.tags', 'isNot', 'green'), true],
  [is('customFields.tags', 'isNot', 'blue'), false],
  [is('customFields.renewal', 'before', '2026-03-02'), true],
  [is('customFields.renewal', 'after', '2026-03-01'), false],
  [is('customFields.renewal', 'after', '2026-02-28'), true],
  [is('customFields.constructor', 'exists'), false],
  [is('globalStatus', 'is', 'active'), true],
  [is('consentMethod', 'is', 'implicit_api'), true],
  [is('createdAt', 'after', '2020-01-01'), true],
  [is('createdAt', 'before', '2020-01-01'), false],
  [{ opened: { withinDays: 11 } }, true],
  [{ opened: { withinDays: 9 } }, false],
  [{ opened: { notWithinDays: 9 } }, true],
  [{ clicked: { notWithinDays: 3650 } }, true],
  [{ clicked: { withinDays: 3650 } }, false],
  [{ received: { campaignId: 'campaign_1' } }, true],
  [{ opened: { campaignId: 'campaign_1' } }, false],
  [{ received: { campaignId: 'campaign_2' } }, false],
  [{ joined: { withinDays: 1 } }, true],
  [{ joined: { notWithinDays: 1 } }, false],
  [{ all: [is('firstName', 'exists'), { not: is('lastName', 'exists') }] }, true],
  [{ any: [is('lastName', 'exists'), is('phone', 'exists')] }, false],
];

describe('a contact', () => {
  it('matches the conditions that it meets, and no others', async () => {
    const { isMatch } = await start();
    expect(CASES.map(([filter]) => [filter, isMatch(filter)])).toEqual(CASES);
  });

  it('matches a group while the membership is as the filter says', async () => {
    const { groupId, subscriptions, other, isMatch } = await start();
    expect(isMatch({ group: groupId })).toBe(true);
    expect(isMatch({ group: groupId, active: false })).toBe(false);
    expect(isMatch({ group: other })).toBe(false);
    expect(isMatch({ joined: { withinDays: 1, group: other } })).toBe(false);
    granted(await subscriptions.put('acct_one', groupId, ANN, { isActive: false }, CALLER));
    expect(isMatch({ group: groupId })).toBe(false);
    expect(isMatch({ group: groupId, active: false })).toBe(true);
    expect(isMatch({ joined: { withinDays: 1 } })).toBe(false);
  });
});
