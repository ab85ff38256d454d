import { expect, it } from 'vitest';
import { createSegmentCopies } from '../../src/audience/segments/copies.ts';
import type { CampaignRequest } from '../../src/campaigns/mail.ts';
import { createLog } from '../../src/core/log.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import type { MessageEvent } from '../../src/events/event-types.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import type { CampaignRow } from '../../src/store/campaigns/campaigns.ts';
import { ReadRejected } from '../../src/store/database/failure.ts';
import { eventually } from '../support/eventually.ts';
import { granted } from '../support/refusal.ts';
import { addMembers, refusal, startCampaigns } from './setup.ts';

const GOLD = { field: 'customFields.plan', op: 'is' as const, value: 'gold' };

/** Two groups; even contacts are in the first, every third in the second; every fourth has the plan gold. */
async function start(contacts: number) {
  const setup = await startCampaigns();
  const { audience, member, join, createGroup, groupId, send, until, messages, sending } = setup;
  const second = await createGroup('Offers');
  const outside = await createGroup('Nobody');
  for (let n = 0; n < contacts; n++) {
    const profile = { customFields: { plan: n % 4 === 0 ? 'gold' : 'free' } };
    const contact = await member(
      `p${n}@example.net`,
      profile,
      n % 2 === 0 ? groupId : n % 3 === 0 ? second : outside,
    );
    if (n % 6 === 0) await join(contact.seq, second);
  }
  const segment = granted(await audience.segments.create('acct_one', { name: 'Gold', filter: GOLD })).segment;
  const recipients = (row: CampaignRow) => messages(row).map(({ recipient }) => recipient);
  return {
    ...setup,
    second,
    segmentId: segment.segment_id,
    recipients,
    /** Sends a campaign completely; returns its recipients in their order. */
    sent: async (changes: Partial<CampaignRequest>, options: Parameters<typeof send>[1] = {}) => {
      const campaign = granted(await send(changes, options));
      await setup.severalRounds();
      await setup.deliverAll();
      await until(campaign.campaign_id, 'sent');
      return { campaign, to: recipients(campaign), progress: sending.progress(campaign) };
    },
  };
}

const named = (...numbers: number[]) => numbers.map((n) => `p${n}@example.net`);

it('is sent once to each person of several groups, through the first group of the person', async () => {
  const { runner, groupId, second, sent, messages } = await start(13);
  runner.start();
  const { campaign, to, progress } = await sent({
    subscriptionGroupId: undefined,
    subscriptionGroupIds: [second, groupId],
  });
  expect(to).toEqual(named(0, 3, 6, 9, 12, 2, 4, 8, 10));
  expect(messages(campaign).map(({ subscription_group_id: group }) => group)).toEqual([
    ...Array.from({ length: 5 }, () => second),
    ...Array.from({ length: 4 }, () => groupId),
  ]);
  expect(progress).toMatchObject({ members: 9, queued: 9, skipped: { notEligible: 0 } });
});

it('of a test key is sent once to each person of several groups', async () => {
  const { runner, groupId, second, sent } = await start(13);
  runner.start();
  const groups = { subscriptionGroupId: undefined, subscriptionGroupIds: [second, groupId] };
  const { to, progress } = await sent(groups, { isSimulation: true });
  expect(to).toEqual(named(0, 3, 6, 9, 12, 2, 4, 8, 10));
  expect(progress).toMatchObject({ members: 9, queued: 9, livemode: false });
  const { to: afterwards } = await sent(groups);
  expect(afterwards).toEqual(to);
});

it('is sent to the members of a segment, without people who were sent others or are in others', async () => {
  const { runner, audience, groupId, segmentId, second, sent, writer, tables, recorder, messages } =
    await start(25);
  runner.start();
  const first = await sent({ segmentId });
  expect(first.to).toEqual(named(0, 4, 8, 12, 16, 20, 24));
  const excluded = await sent({ excludeSegmentIds: [segmentId] });
  expect(excluded.to).toEqual(named(2, 6, 10, 14, 18, 22));
  const later = await sent({ excludeCampaignIds: [first.campaign.campaign_id] });
  expect(later.to).toEqual(excluded.to);
  // Not opened: a program loads the image of one message, people open two others.
  const open = (index: number, isBot: boolean) =>
    writer.run((tx) => {
      const message = tx.messages.bySeq(messages(first.campaign)[index]?.seq ?? 0);
      const fields = { ip: '192.0.2.1', userAgent: 'x', isBot, isProxy: false, isFirst: true };
      const event: MessageEvent = { kind: 'email_opened', fields };
      return message !== null && recorder.message(tx, message, event);
    });
  await open(0, true);
  await open(1, false);
  await open(2, false);
  const campaignId = first.campaign.campaign_id;
  const filter = { all: [{ received: { campaignId } }, { not: { opened: { campaignId } } }] };
  const unopened = granted(await audience.segments.create('acct_one', { name: 'Not opened', filter }));
  expect(unopened.count).toBe(5);
  const again = await sent({ subscriptionGroupId: undefined, segmentId: unopened.segment.segment_id });
  // With a segment alone the groups are all active ones; p0, p12 and p24 are members of two of them.
  expect(again.to).toEqual(named(0, 12, 16, 20, 24));
  expect(tables.engagement.ofCampaign(campaignId, 5)).toBe(3);
  expect([groupId, second]).toContain(messages(again.campaign)[0]?.subscription_group_id);
});

it('continues where an earlier process ended', async () => {
  const { runner, anotherRunner, limitQueue, groupId, second, segmentId, send, recipients, ...setup } =
    await start(200);
  limitQueue(20);
  const campaign = granted(
    await send({ subscriptionGroupId: undefined, subscriptionGroupIds: [groupId, second], segmentId }),
  );
  runner.start();
  await setup.severalRounds();
  await runner.stop();
  expect(recipients(campaign)).toHaveLength(20);
  limitQueue(Number.POSITIVE_INFINITY);
  anotherRunner().start();
  await setup.severalRounds();
  await setup.deliverAll();
  await setup.until(campaign.campaign_id, 'sent');
  const expected = Array.from({ length: 50 }, (_, n) => `p${4 * n}@example.net`);
  expect(recipients(campaign)).toEqual(expected);
});

it('counts toward the stored bytes of its account until it is deleted', async () => {
  const { runner, segmentId, sent, draft, campaigns, db, ...context } = await start(13);
  const managed = () =>
    db.prepare<[], number>("SELECT bytes FROM stored_bytes WHERE account_id = 'acct_one'").pluck().get() ?? 0;
  const before = managed();
  granted(await campaigns.remove('acct_one', await draft()));
  expect(managed()).toBe(before);
  runner.start();
  const { campaign, to } = await sent({ segmentId });
  const ofCampaign = db
    .prepare<[], number>(
      'SELECT sum(200 + octet_length(name)) FROM campaigns UNION ALL SELECT sum(100 + octet_length(mail)) FROM campaign_mails UNION ALL SELECT sum(octet_length(audience)) FROM campaign_sends',
    )
    .pluck()
    .all()
    .reduce((sum, bytes) => sum + bytes, 0);
  expect(managed() - before).toBe(ofCampaign + 50 * to.length);
  granted(await campaigns.remove('acct_one', campaign.campaign_id));
  const log = createLog({ level: 'silent', hashAddresses: true });
  await createSegmentCopies({ ...context, log }).run();
  expect(managed()).toBe(before);
});

it('keeps its segment until it is sent', async () => {
  const { audience, segmentId, send, sending, setPressure, campaigns, groupId } = await start(5);
  setPressure(null);
  const campaign = granted(await send({ segmentId }));
  const refused = await audience.segments.remove('acct_one', segmentId);
  if (!isRefusal(refused)) throw new Error('the segment was deleted');
  expect(refused.code).toBe('INVALID_STATE');
  expect(refused.message).toContain(`Spring (${campaign.campaign_id})`);
  expect(sending.progress(granted(campaigns.get('acct_one', campaign.campaign_id)))).toMatchObject({
    subscriptionGroupIds: [groupId],
    segmentId,
    members: null,
  });
});

it('is refused with an audience that does not exist', async () => {
  const { send, segmentId } = await start(1);
  const code = async (changes: Partial<CampaignRequest>) => refusal(await send(changes));
  expect(await code({ segmentId: 'segment_1' })).toEqual(['SEGMENT_NOT_FOUND', []]);
  expect(await code({ segmentId, excludeSegmentIds: ['segment_1'] })).toEqual(['SEGMENT_NOT_FOUND', []]);
  expect(await code({ excludeCampaignIds: ['campaign_1'] })).toEqual(['CAMPAIGN_NOT_FOUND', []]);
  expect(await code({ subscriptionGroupIds: ['sgroup_1'] })).toEqual(['SUBSCRIPTION_GROUP_NOT_FOUND', []]);
  expect(await code({ subscriptionGroupId: undefined })).toEqual([
    'VALIDATION_ERROR',
    ['subscriptionGroupId'],
  ]);
});

it('goes on while the audience of another account is read', async () => {
  const { runner, segmentId, sent, send, reader, severalRounds, progress, ...setup } = await start(25);
  // The reader threads are busy with a slow segment.
  const query = reader.query;
  let release = () => {};
  const slow = new Promise<void>((resolve) => (release = resolve));
  const asked: string[] = [];
  reader.query = async (...args) => {
    const [, { name }] = args;
    if (name === 'countPortion' || name === 'nextSelected') {
      asked.push(name);
      await slow;
    }
    return query(...args);
  };
  runner.start();
  const waiting = granted(await send({ segmentId }));
  await severalRounds();
  expect(asked).toEqual(['countPortion']);
  const { to } = await sent({});
  expect(to).toHaveLength(13);
  expect(progress(waiting.campaign_id).members).toBeNull();
  release();
  await severalRounds();
  await setup.deliverAll();
  await setup.until(waiting.campaign_id, 'sent');
  expect(setup.recipients(waiting)).toHaveLength(7);
});

it('selects people ahead of their turn, of whom those who leave before it get nothing', async () => {
  const setup = await startCampaigns();
  const { runner, audience, groupId, limitQueue, send, reader, tables, writer, clock, messages } = setup;
  const members = 700;
  await addMembers(setup, members);
  const filter = { field: 'email', op: 'exists' as const };
  const { segment } = granted(await audience.segments.create('acct_one', { name: 'All', filter }));
  const seqOf = (n: number) =>
    tables.contacts.seqOf('acct_one', emailIdentifier(`user${n}@d${n % 3}.example`)) ?? 0;
  /** For each selection, the contact that it began after, and the last one whose turn was over. */
  const selections: { after: number; at: number }[] = [];
  const { query } = reader;
  reader.query = (...args) => {
    const range: unknown = args[3];
    if (args[1].name === 'nextSelected' && range !== null && typeof range === 'object' && 'after' in range)
      selections.push({
        after: Number(range.after),
        at: tables.campaignSends.get(campaign.seq)?.at_seq ?? 0,
      });
    return query(...args);
  };
  const queued = 400;
  limitQueue(queued);
  const campaign = granted(await send({ segmentId: segment.segment_id }));
  runner.start();
  await eventually('the queue to be full', () => messages(campaign).length === queued);
  await setup.severalRounds();
  const [first, ...ahead] = selections;
  expect(first).toEqual({ after: 0, at: 0 });
  expect([...new Set(ahead.map(({ after }) => after))]).toEqual([seqOf(499)]);
  expect(ahead[0]?.at).toBeLessThan(seqOf(499));
  // Members of both selections leave the group, are suppressed, or have no consent any more.
  const group = tables.subscriptionGroups.get('acct_one', groupId);
  for (const n of [450, 550])
    await writer.run((tx) => {
      const membership = tx.subscriptions.get(group?.seq ?? 0, seqOf(n));
      if (membership !== null) tx.subscriptions.update({ ...membership, is_active: 0 });
      tx.suppressions.add({
        account_id: 'acct_one',
        recipient_hash: emailIdentifier(`user${n + 1}@d${(n + 1) % 3}.example`),
        stream: 'mk',
        reason: 'unsubscribe',
        email: null,
        message_seq: null,
        created_at: clock.now(),
      });
      tx.contacts.setConsent(seqOf(n + 2), null, clock.now());
    });
  limitQueue(Number.POSITIVE_INFINITY);
  await eventually('the others', () => messages(campaign).length === members - 6);
  await setup.severalRounds();
  const got = new Set(messages(campaign).map(({ recipient }) => recipient));
  const without = Array.from({ length: members }, (_, n) => n).filter(
    (n) => !got.has(`user${n}@d${n % 3}.example`),
  );
  expect(got.size).toBe(members - 6);
  expect(without).toEqual([450, 451, 452, 550, 551, 552]);
});

it('is paused while its segment takes too long to evaluate', async () => {
  const { runner, segmentId, send, reader, until, progress, sending, deliverAll, recipients } =
    await start(5);
  const { query } = reader;
  reader.query = () => Promise.reject(new ReadRejected('too-broad', 'The read took too long'));
  runner.start();
  const { campaign_id: id } = granted(await send({ segmentId }));
  await until(id, 'paused');
  expect(progress(id).pausedReason).toMatch(/^QUERY_TOO_BROAD: /);
  reader.query = query;
  const campaign = granted(await sending.resume('acct_one', id, { by: 'key_one' }));
  await eventually('the messages', () => recipients(campaign).length === 2);
  await deliverAll();
  await until(id, 'sent');
});
