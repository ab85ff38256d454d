import { describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../src/core/clock.ts';
import { countQueued } from '../../src/events/campaign-counts.ts';
import type { MessageEventKind } from '../../src/events/lifecycle.ts';
import type { EventData } from '../../src/events/record.ts';
import type { MessageRow } from '../../src/store/messages/messages.ts';
import { enqueue, startStore } from '../support/store.ts';

const CAMPAIGN = 'campaign_one';
const ALWAYS = { campaignId: CAMPAIGN, from: 0, to: Number.MAX_SAFE_INTEGER };

function start() {
  const store = startStore();
  const { tables, writer, recorder, clock } = store;
  const now = clock.now();
  tables.campaigns.insert({
    campaign_id: CAMPAIGN,
    account_id: 'acct_one',
    name: 'Spring',
    description: null,
    status: 'draft',
    created_at: now,
    updated_at: now,
  });
  /** Records one event after the other of a new message, each in a unit of its own. */
  const play = async (
    steps: [kind: MessageEventKind, fields?: Record<string, unknown>, data?: EventData][],
    wish: Partial<MessageRow> = {},
  ) => {
    const { seq } = enqueue(tables, clock.now(), { campaign_id: CAMPAIGN, ...wish });
    for (const [kind, fields = {}, data = {}] of steps) {
      await writer.run((all) => {
        const message = all.messages.bySeq(seq);
        if (message === null) throw new Error('the message is gone');
        return recorder.message(all, message, kind, { fields, ...data });
      });
    }
  };
  /** Without what was never counted. */
  const totals = () =>
    Object.fromEntries(Object.entries(tables.campaignCounts.totals(ALWAYS)).filter(([, count]) => count > 0));
  return { ...store, play, totals };
}

const PERSON = { isBot: false, isProxy: false, isFirst: true };

describe('a campaign counts', () => {
  it.each<[string, [MessageEventKind, Record<string, unknown>?][], Record<string, number>]>([
    ['a delivery', [['email_sent'], ['email_delivered']], { sent: 1, delivered: 1 }],
    [
      'every deferral, and one sending',
      [
        ['email_sent'],
        ['email_delayed'],
        ['email_sent'],
        ['email_delayed'],
        ['email_sent'],
        ['email_delivered'],
      ],
      { sent: 1, deferred: 2, delivered: 1 },
    ],
    [
      'a bounce after the delivery, too',
      [['email_sent'], ['email_delivered'], ['email_bounced'], ['email_bounced']],
      { sent: 1, delivered: 1, bounced: 1 },
    ],
    ['refused content as bounced', [['email_sent'], ['email_rejected']], { sent: 1, bounced: 1 }],
    ['what was given up as failed', [['email_failed', { reason: 'expired' }]], { failed: 1 }],
    ['what was cancelled', [['email_failed', { reason: 'cancelled' }]], { cancelled: 1 }],
    ['what was dropped in the queue as failed', [['email_suppressed']], { failed: 1 }],
    [
      'a complaint and an opt-out',
      [['email_sent'], ['email_delivered'], ['email_complained'], ['email_unsubscribed']],
      { sent: 1, delivered: 1, complained: 1, unsubscribed: 1 },
    ],
    [
      'every open and click of people, and who did so at all',
      [
        ['email_sent'],
        ['email_opened', PERSON],
        ['email_opened', { ...PERSON, isFirst: false }],
        ['email_clicked', { ...PERSON, url: 'https://example.com/' }],
        ['email_clicked', { ...PERSON, isFirst: false, url: 'https://example.com/' }],
      ],
      { sent: 1, opened: 2, uniqueOpened: 1, clicked: 2, uniqueClicked: 1 },
    ],
    [
      'no machine that looks into mail',
      [
        ['email_sent'],
        ['email_opened', { isBot: true, isFirst: false }],
        ['email_clicked', { isBot: true, url: 'x' }],
      ],
      { sent: 1 },
    ],
  ])('%s', async (_, steps, expected) => {
    const { play, totals } = start();
    await play(steps);
    expect(totals()).toEqual(expected);
  });

  it('no simulated mail, and no mail without a campaign', async () => {
    const { play, totals } = start();
    const steps: Parameters<typeof play>[0] = [['email_sent'], ['email_delivered']];
    await play(steps, { simulated: 1 });
    await play(steps, { campaign_id: null });
    expect(totals()).toEqual({});
  });

  it('what entered the queue', async () => {
    const { writer, clock, totals } = start();
    await writer.run((all) => countQueued(all, CAMPAIGN, 500, clock.now()));
    await writer.run((all) => countQueued(all, CAMPAIGN, 0, clock.now()));
    await writer.run((all) => countQueued(all, CAMPAIGN, 7, clock.now()));
    expect(totals()).toEqual({ queued: 507 });
  });

  it('nothing for a campaign that is gone, and forgets what it had', async () => {
    const { tables, writer, play, totals } = start();
    await play([['email_sent'], ['email_clicked', { ...PERSON, url: 'https://example.com/' }]]);
    await writer.run((all) => all.campaigns.remove(all.campaigns.get('acct_one', CAMPAIGN)?.seq ?? 0));
    await play([['email_sent'], ['email_clicked', { ...PERSON, url: 'https://example.com/' }]]);
    expect(totals()).toEqual({});
    expect(tables.campaignCounts.links(CAMPAIGN, 10)).toEqual([]);
    expect(
      tables.messages.list({ accountId: 'acct_one', campaignId: CAMPAIGN, limit: 10 }).rows,
    ).toHaveLength(2);
  });

  it('nothing when the unit that told of it rolls back', async () => {
    const { tables, writer, recorder, clock, totals } = start();
    const message = enqueue(tables, clock.now(), { campaign_id: CAMPAIGN });
    await expect(
      writer.run((all) => {
        recorder.message(all, message, 'email_sent', {});
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(totals()).toEqual({});
  });
});

describe('a series', () => {
  it('has each event in the hour in which it happened', async () => {
    const { tables, clock, play } = start();
    const noon = clock.now();
    clock.advance(59 * MINUTE);
    await play([['email_sent']]);
    clock.advance(MINUTE);
    await play([['email_sent']]);
    clock.advance(DAY);
    await play([['email_sent']]);
    const spans = (width: number, filter = ALWAYS) =>
      tables.campaignCounts.series(filter, width).map(({ start, sent }) => [start - noon, sent]);
    expect(spans(HOUR)).toEqual([
      [0, 1],
      [HOUR, 1],
      [HOUR + DAY, 1],
    ]);
    expect(spans(DAY)).toEqual([
      [-12 * HOUR, 2],
      [12 * HOUR, 1],
    ]);
    expect(spans(HOUR, { ...ALWAYS, from: noon + HOUR, to: noon + 2 * HOUR })).toEqual([[HOUR, 1]]);
  });
});

describe('links', () => {
  it('are counted one by one, the most clicked first', async () => {
    const { tables, play } = start();
    for (const page of ['a', 'b', 'b', 'c', 'c', 'c'])
      await play([['email_sent'], ['email_clicked', { ...PERSON, url: `https://example.com/${page}` }]]);
    expect(tables.campaignCounts.links(CAMPAIGN, 2)).toEqual([
      { url: 'https://example.com/c', clicks: 3 },
      { url: 'https://example.com/b', clicks: 2 },
    ]);
  });

  it('are a thousand at most, in which clicks go on counting', async () => {
    const { tables, writer } = start();
    await writer.run((all) => {
      for (let n = 0; n < 1010; n++) all.campaignCounts.addClick(CAMPAIGN, `https://example.com/${n}`);
      all.campaignCounts.addClick(CAMPAIGN, 'https://example.com/7');
    });
    const links = tables.campaignCounts.links(CAMPAIGN, 5000);
    expect(links).toHaveLength(1000);
    expect(links[0]).toEqual({ url: 'https://example.com/7', clicks: 2 });
  });
});
