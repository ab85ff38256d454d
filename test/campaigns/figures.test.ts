import { expect, it } from 'vitest';
import { campaignAudience, campaignFigures } from '../../src/campaigns/figures.ts';
import { HOUR } from '../../src/core/clock.ts';
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
  const { clock, groupId, member, tables, writer, onSuppressionChange } = await startCampaigns();
  await member('ann@example.net', consent);
  const { email_hash: hash } = await member('bob@example.net', consent);
  const { seq: carol } = await member('carol@example.net', consent);
  const read = (accountId = 'acct_one') =>
    campaignAudience.run(tables, { accountId, groupId, now: clock.now() });
  await writer.run((tx) => {
    const row = { account_id: 'acct_one', recipient_hash: hash ?? '', email: null, message_seq: null };
    tx.suppressions.add({ ...row, stream: 'mk', reason: 'unsubscribe', created_at: clock.now() });
    onSuppressionChange(tx, 'acct_one', hash ?? '');
    tx.contacts.setConsent(carol, null, clock.now());
  });
  expect(read()).toEqual({
    members: 3,
    eligible: 1,
    withoutEmail: 0,
    suppressed: 1,
    withoutConsent: 1,
    isPartial: false,
    countedAt: '2026-01-15T12:00:00.000Z',
  });
  expect(read('acct_two')).toBeNull();
});
