import { describe, expect, it } from 'vitest';
import { configSchema } from '../../src/config/schema.ts';
import { HOUR, iso } from '../../src/core/clock.ts';
import { exampleEvent } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { granted } from '../support/refusal.ts';
import { addMembers, type CampaignSetup, refusal, startCampaigns } from './setup.ts';

const guard = configSchema.parse({ hostname: 'mail.example.com' });

/** Ends everything that is due, each n-th message as `outcome`. Returns how many messages ended. */
function endAll(
  { writer, recorder }: CampaignSetup,
  { every, outcome }: { every: number; outcome: 'bounce' | 'complaint' | 'block' },
): Promise<number> {
  return writer.run((tx) => {
    let ended = 0;
    for (const row of tx.queue.list({}, 10_000)) {
      if (row.ready !== 1 || !tx.queue.lease(row.seq, 1)) continue;
      const message = tx.messages.bySeq(row.seq);
      if (message === null) continue;
      recorder.message(tx, message, exampleEvent('email_sent'));
      const isHit = row.seq % every === 0;
      const sending = { ...message, status: 'sending' as const };
      if (isHit && outcome === 'bounce') recorder.message(tx, sending, exampleEvent('email_bounced'));
      else if (isHit && outcome === 'block')
        recorder.message(
          tx,
          sending,
          exampleEvent(
            'email_bounced',
            { bounceType: 'block', classification: 'spam-block' },
            { scope: 'message', suppress: 'never' },
          ),
        );
      else {
        recorder.message(tx, sending, exampleEvent('email_delivered'));
        if (isHit)
          recorder.message(tx, { ...sending, status: 'delivered' }, exampleEvent('email_complained'));
      }
      ended++;
    }
    return ended;
  });
}

/** Sends until the campaign has another status than `sending`. Returns the number of messages that left. */
async function sendUntilStopped(setup: CampaignSetup, id: string, how: Parameters<typeof endAll>[1]) {
  let left = 0;
  await eventually(
    'the campaign to stop',
    async () => {
      left += await endAll(setup, how);
      return setup.campaign(id).status !== 'sending';
    },
    { everyMs: 5 },
  );
  return left;
}

async function startCampaign(members: number, limits: 'enforce' | 'report' = 'enforce') {
  const setup = await startCampaigns({}, { guard: { reputation: { ...guard.reputation, limits } } });
  await addMembers(setup, members);
  const { campaign_id: id } = granted(await setup.send());
  setup.runner.start();
  return { ...setup, setup, id };
}

describe('a campaign', () => {
  it('with many dead addresses stops within 400 messages, and needs a reason to continue', async () => {
    const { setup, id, sending, tables, progress, clock } = await startCampaign(1500);
    expect(await sendUntilStopped(setup, id, { every: 12, outcome: 'bounce' })).toBeLessThanOrEqual(400);
    expect(setup.campaign(id).status).toBe('paused');
    const { pausedReason, pausedFigures } = progress(id);
    expect(pausedReason).toBe('hard_bounces');
    expect(pausedFigures).toMatchObject({ limit: 5 });
    expect(pausedFigures?.rate).toBeGreaterThan(5);
    expect(pausedFigures?.lowerBound).toBeGreaterThan(3);

    expect(refusal(await sending.resume('acct_one', id, { by: 'key_one' }))).toEqual([
      'VALIDATION_ERROR',
      ['reason'],
    ]);
    expect(setup.campaign(id).status).toBe('paused');
    granted(await sending.resume('acct_one', id, { by: 'key_one', reason: ' The list is clean now ' }));
    expect(progress(id)).toMatchObject({ pausedReason: null });

    // What was seen does not stop it again: the others are delivered.
    clock.advance(HOUR);
    await sendUntilStopped(setup, id, { every: 100, outcome: 'bounce' });
    expect(setup.campaign(id).status).toBe('sent');
    const events = tables.events
      .feed({ accountId: 'acct_one', afterSeq: 0, limit: 10_000 })
      .rows.filter(({ kind }) => kind === 'campaign_paused' || kind === 'sending_resumed')
      .map(({ kind, data }): unknown => ({ kind, ...JSON.parse(data) }));
    expect(events).toMatchObject([
      {
        kind: 'campaign_paused',
        campaignId: id,
        campaignName: 'Spring',
        reason: 'hard_bounces',
        figures: pausedFigures,
      },
      { kind: 'sending_resumed', campaignId: id, by: 'key_one', reason: 'The list is clean now' },
    ]);
  });

  it('that gets worse after it was resumed stops again', async () => {
    const { setup, id, sending, progress } = await startCampaign(1500);
    await sendUntilStopped(setup, id, { every: 12, outcome: 'bounce' });
    const { queued } = progress(id);
    granted(await sending.resume('acct_one', id, { by: 'key_one', reason: 'I know' }));
    expect(await sendUntilStopped(setup, id, { every: 10, outcome: 'bounce' })).toBeLessThanOrEqual(400);
    expect(setup.campaign(id).status).toBe('paused');
    expect(progress(id).pausedFigures?.messages).toBeLessThanOrEqual(progress(id).queued - queued + 50);
  });

  it('with complaints stops', async () => {
    const { setup, id, progress } = await startCampaign(3000);
    expect(await sendUntilStopped(setup, id, { every: 200, outcome: 'complaint' })).toBeLessThanOrEqual(2000);
    expect(progress(id)).toMatchObject({ pausedReason: 'complaints', pausedFigures: { limit: 0.3 } });
  });

  it('of which receivers block most messages stops', async () => {
    const { setup, id, progress } = await startCampaign(500);
    await sendUntilStopped(setup, id, { every: 1, outcome: 'block' });
    expect(progress(id)).toMatchObject({ pausedReason: 'blocks', pausedFigures: { limit: 50 } });
  });

  it('with few failures is sent completely', async () => {
    const { setup, id } = await startCampaign(1000);
    expect(await sendUntilStopped(setup, id, { every: 50, outcome: 'bounce' })).toBe(1000);
    expect(setup.campaign(id).status).toBe('sent');
  });

  it('has few messages under way at first only if its results can stop it', async () => {
    const judged = await startCampaign(300);
    await judged.severalRounds();
    expect(judged.progress(judged.id).queued).toBe(50);
    const reported = await startCampaign(300, 'report');
    await eventually('all messages to be queued', () => reported.progress(reported.id).queued === 300);
  });

  it('whose first results are awaited is looked at less and less often, and steps no other campaign', async () => {
    const { setup, id, progress, tables } = await startCampaign(300);
    const { campaign_id: later } = granted(await setup.send({ scheduledAt: iso(setup.clock.now() + HOUR) }));
    const seqOf = (campaignId: string) => setup.campaign(campaignId).seq;
    const [waiting, scheduled] = [seqOf(id), seqOf(later)];
    await eventually('the first messages to be queued', () => progress(id).queued === 50);
    const looks = new Map<number, number>();
    const get = tables.campaignSends.get;
    tables.campaignSends.get = (seq) => {
      looks.set(seq, (looks.get(seq) ?? 0) + 1);
      return get(seq);
    };
    await eventually('several looks', () => (looks.get(waiting) ?? 0) >= 6);
    expect(looks.get(scheduled) ?? 0).toBeLessThanOrEqual(3);
    expect(looks.get(waiting)).toBeLessThanOrEqual(8);
    await setup.deliverAll();
    await eventually('the next messages to be queued', () => progress(id).queued > 50);
  });
});

describe('a campaign of a new account or domain', () => {
  it('queues what may leave today, without what waits already, and continues on the next day', async () => {
    let left = 40;
    const asked: string[] = [];
    const setup = await startCampaigns(
      {},
      {
        marketingLeft: ({ account_id, domain_id }) => {
          asked.push(`${account_id} ${domain_id}`);
          return left;
        },
      },
    );
    await addMembers(setup, 100);
    const { campaign_id: id } = granted(await setup.send());
    setup.runner.start();
    await eventually('the messages of today', () => setup.progress(id).queued === 40);
    await setup.severalRounds();
    expect(setup.progress(id).queued).toBe(40);
    expect(new Set(asked)).toEqual(new Set(['acct_one domain_mk']));
    left = 0;
    await setup.deliverAll();
    await setup.severalRounds();
    expect(setup.progress(id).queued).toBe(40);
    left = 80;
    await eventually('the others', () => setup.progress(id).queued === 100);
  });
});
