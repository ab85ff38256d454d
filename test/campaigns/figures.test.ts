import { expect, it } from 'vitest';
import type { SegmentFilter } from '../../src/audience/segments/filter.ts';
import { audienceOf, selectionOf } from '../../src/campaigns/audience.ts';
import type { AudienceRequest } from '../../src/campaigns/campaigns.ts';
import { campaignFigures, groupAudience, selectedAudience } from '../../src/campaigns/figures.ts';
import { DAY, HOUR } from '../../src/core/clock.ts';
import { granted } from '../support/refusal.ts';
import { startCampaigns } from './setup.ts';

const consent = { consentMethod: 'web_form' };

it('returns group, subject and counts of campaigns in the order of their ids, without those of others', async () => {
  const { campaigns, clock, draft, groupId, member, send, tables, until, runner, writer } =
    await startCampaigns();
  const prepared = { subscriptionGroupId: groupId, subject: 'Prepared' };
  const empty = await draft();
  const chosen = granted(
    await campaigns.create('acct_one', { name: 'Chosen', description: null, prepared }),
  ).campaign_id;
  await member('ann@example.net', consent);
  const sent = granted(await send()).campaign_id;
  runner.start();
  await until(sent, 'sending');
  await writer.run((tx) => {
    const hour = clock.now() - (clock.now() % HOUR);
    tx.campaignCounts.add(sent, hour, 'sent', 7);
    tx.campaignCounts.add(sent, hour, 'delivered', 6);
    tx.campaignCounts.add(sent, hour + 2 * HOUR, 'uniqueOpened', 3);
    tx.campaignCounts.add(sent, hour + 40 * HOUR, 'uniqueOpened', 1);
    tx.campaignCounts.add(sent, hour + 40 * HOUR, 'uniqueClicked', 1);
  });
  const ids = [sent, empty, 'campaign_none', chosen];
  const none = { sent: 0, delivered: 0, opened: 0, clicked: 0, openedByHour: [] };
  expect(campaignFigures.run(tables, { accountId: 'acct_one', ids })).toEqual([
    {
      campaignId: sent,
      subject: 'Hello {{firstName}}',
      group: 'News',
      sent: 7,
      delivered: 6,
      opened: 4,
      clicked: 1,
      openedByHour: [0, 0, 3, ...Array.from({ length: 21 }, () => 0)],
    },
    { campaignId: empty, subject: null, group: null, ...none },
    { campaignId: chosen, subject: 'Prepared', group: 'News', ...none },
  ]);
  expect(campaignFigures.run(tables, { accountId: 'acct_two', ids })).toEqual([]);
});

it('counts the members who can receive a campaign, by the reason of those who cannot', async () => {
  const { audience, clock, createGroup, groupId, member, tables, writer, onSuppressionChange } =
    await startCampaigns();
  await member('ann@example.net', consent);
  const { email_hash: hash } = await member('bob@example.net', consent);
  const { seq: carol } = await member('carol@example.net', consent);
  const dave = await member('dave@example.net', consent);
  const second = await createGroup('Offers');
  const gold = { ...consent, customFields: { plan: 'gold' } };
  await member('eve@example.net', gold, second);
  await member('outside@example.net', gold, await createGroup('Not chosen'));
  await writer.run((tx) => {
    const row = { account_id: 'acct_one', recipient_hash: hash ?? '', email: null, message_seq: null };
    tx.suppressions.add({ ...row, stream: 'mk', reason: 'unsubscribe', created_at: clock.now() });
    onSuppressionChange(tx, 'acct_one', hash ?? '');
    tx.contacts.setConsent(carol, null, clock.now());
    const contact = tx.contacts.bySeq(dave.seq);
    if (contact !== null) tx.contacts.update({ ...contact, paused_until: clock.now() + DAY });
  });
  expect(groupAudience.run(tables, 'acct_one', groupId)).toEqual({
    members: 4,
    eligible: 1,
    withoutEmail: 0,
    suppressed: 2,
    withoutConsent: 1,
    isPartial: false,
  });
  expect(groupAudience.run(tables, 'acct_two', groupId)).toBeNull();

  const filter: SegmentFilter = { field: 'customFields.plan', op: 'is', value: 'gold' };
  const { segment } = granted(await audience.segments.create('acct_one', { name: 'Gold', filter }));
  const counted = (request: AudienceRequest) => {
    const chosen = granted(audienceOf(tables, 'acct_one', request));
    const campaign = { account_id: 'acct_one', campaign_id: null };
    const selection = selectionOf(tables, campaign, chosen, chosen.groupIds, clock.now());
    const { members, eligible } = selectedAudience.run(tables, selection);
    return { members, eligible };
  };
  const groups = { subscriptionGroupIds: [groupId, second] };
  expect(counted(groups)).toEqual({ members: 5, eligible: 2 });
  expect(counted({ ...groups, segmentId: segment.segment_id })).toEqual({ members: 1, eligible: 1 });
  expect(counted({ ...groups, excludeSegmentIds: [segment.segment_id] })).toEqual({
    members: 4,
    eligible: 1,
  });
});
