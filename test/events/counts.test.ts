import { describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../src/core/clock.ts';
import { countCampaignQueued } from '../../src/events/counts.ts';
import type { MessageEvent, MessageEventKind } from '../../src/events/event-types.ts';
import type { MessageRow } from '../../src/store/messages/messages.ts';
import { exampleEvent } from '../support/events.ts';
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
    prepared: null,
    status: 'draft',
    created_at: now,
    updated_at: now,
  });
  /** Records events of a new message, each in its own unit of work. */
  const record = async (
    events: readonly (MessageEventKind | MessageEvent)[],
    columns: Partial<MessageRow> = {},
  ) => {
    const { seq } = enqueue(tables, clock.now(), { campaign_id: CAMPAIGN, ...columns });
    for (const event of events) {
      await writer.run((tx) => {
        const message = tx.messages.bySeq(seq) ?? expect.unreachable();
        return recorder.message(tx, message, typeof event === 'string' ? exampleEvent(event) : event);
      });
    }
  };
  /** The counts of the campaign that are not zero. */
  const totals = () =>
    Object.fromEntries(Object.entries(tables.campaignCounts.totals(ALWAYS)).filter(([, count]) => count > 0));
  return { ...store, record, totals };
}
type Setup = ReturnType<typeof start>;

const PERSON = { isBot: false, isProxy: false, isFirst: true };

describe('counts of a campaign', () => {
  const seen = { ...PERSON, isFirst: false };
  const url = 'https://example.com/';
  const CASES: Record<string, { events: Parameters<Setup['record']>[0]; counts: Record<string, number> }> = {
    'a delivery': { events: ['email_sent', 'email_delivered'], counts: { sent: 1, delivered: 1 } },
    'every deferral, and one start': {
      events: ['email_sent', 'email_delayed', 'email_sent', 'email_delayed', 'email_sent', 'email_delivered'],
      counts: { sent: 1, deferred: 2, delivered: 1 },
    },
    'a bounce after the delivery': {
      events: ['email_sent', 'email_delivered', 'email_bounced', 'email_bounced'],
      counts: { sent: 1, delivered: 1, bounced: 1, hardBounced: 1 },
    },
    'a message that is blocked at every attempt once': {
      events: [1, 2, 3].flatMap((attempt) => [
        'email_sent' as const,
        exampleEvent('email_delayed', { attempt, classification: 'reputation-block' }),
      ]),
      counts: { sent: 1, deferred: 3, blocked: 1 },
    },
    'rejected content': {
      events: ['email_sent', 'email_rejected'],
      counts: { sent: 1, bounced: 1, blocked: 1 },
    },
    expired: { events: [exampleEvent('email_failed', { reason: 'expired' })], counts: { failed: 1 } },
    cancelled: { events: [exampleEvent('email_failed', { reason: 'cancelled' })], counts: { cancelled: 1 } },
    'dropped in the queue': { events: ['email_suppressed'], counts: { failed: 1 } },
    'a complaint and an opt-out': {
      events: ['email_sent', 'email_delivered', 'email_complained', 'email_unsubscribed'],
      counts: { sent: 1, delivered: 1, complained: 1, unsubscribed: 1 },
    },
    'opens and clicks of people': {
      events: [
        'email_sent',
        exampleEvent('email_opened', PERSON),
        exampleEvent('email_opened', seen),
        exampleEvent('email_clicked', { ...PERSON, url }),
        exampleEvent('email_clicked', { ...seen, url }),
      ],
      counts: { sent: 1, opened: 2, uniqueOpened: 1, clicked: 2, uniqueClicked: 1 },
    },
    'opens and clicks of programs': {
      events: [
        'email_sent',
        exampleEvent('email_opened', { isBot: true, isFirst: false }),
        exampleEvent('email_clicked', { isBot: true, isFirst: true }),
      ],
      counts: { sent: 1 },
    },
  };

  it('include each event', async () => {
    const counted: Record<string, unknown> = {};
    for (const [name, { events }] of Object.entries(CASES)) {
      const { record, totals } = start();
      await record(events);
      counted[name] = totals();
    }
    expect(counted).toEqual(
      Object.fromEntries(Object.entries(CASES).map(([name, { counts }]) => [name, counts])),
    );
  });

  it('exclude simulated mail and mail without a campaign', async () => {
    const { record, totals } = start();
    const events = ['email_sent', 'email_delivered'] as const;
    await record(events, { simulated: 1 });
    await record(events, { campaign_id: null });
    expect(totals()).toEqual({});
  });

  it('include queued messages', async () => {
    const { writer, clock, totals } = start();
    await writer.run((tx) => countCampaignQueued(tx, CAMPAIGN, 500, clock.now()));
    await writer.run((tx) => countCampaignQueued(tx, CAMPAIGN, 0, clock.now()));
    await writer.run((tx) => countCampaignQueued(tx, CAMPAIGN, 7, clock.now()));
    expect(totals()).toEqual({ queued: 507 });
  });

  it('are deleted with the campaign', async () => {
    const { tables, writer, record, totals } = start();
    await record(['email_sent', exampleEvent('email_clicked', { ...PERSON, url: 'https://example.com/' })]);
    await writer.run((tx) => tx.campaigns.remove(tx.campaigns.get('acct_one', CAMPAIGN)?.seq ?? 0));
    await record(['email_sent', exampleEvent('email_clicked', { ...PERSON, url: 'https://example.com/' })]);
    expect(totals()).toEqual({});
    expect(tables.campaignCounts.links(CAMPAIGN, 10)).toEqual([]);
    expect(
      tables.messages.list({ accountId: 'acct_one', campaignId: CAMPAIGN, limit: 10 }).rows,
    ).toHaveLength(2);
  });

  it('do not change when the unit of work rolls back', async () => {
    const { tables, writer, recorder, clock, totals } = start();
    const message = enqueue(tables, clock.now(), { campaign_id: CAMPAIGN });
    await expect(
      writer.run((tx) => {
        recorder.message(tx, message, exampleEvent('email_sent'));
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(totals()).toEqual({});
  });
});

describe('a series', () => {
  it('counts each event in its hour', async () => {
    const { tables, clock, record } = start();
    const noon = clock.now();
    clock.advance(59 * MINUTE);
    await record(['email_sent']);
    clock.advance(MINUTE);
    await record(['email_sent']);
    clock.advance(DAY);
    await record(['email_sent']);
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
  it('are counted separately, the most clicked first', async () => {
    const { tables, record } = start();
    for (const page of ['a', 'b', 'b', 'c', 'c', 'c'])
      await record([
        'email_sent',
        exampleEvent('email_clicked', { ...PERSON, url: `https://example.com/${page}` }),
      ]);
    expect(tables.campaignCounts.links(CAMPAIGN, 2)).toEqual([
      { url: 'https://example.com/c', clicks: 3 },
      { url: 'https://example.com/b', clicks: 2 },
    ]);
  });

  it('are at most a thousand; their clicks are still counted', async () => {
    const { tables, writer } = start();
    await writer.run((tx) => {
      for (let n = 0; n < 1010; n++) tx.campaignCounts.addClick(CAMPAIGN, `https://example.com/${n}`);
      tx.campaignCounts.addClick(CAMPAIGN, 'https://example.com/7');
    });
    const links = tables.campaignCounts.links(CAMPAIGN, 5000);
    expect(links).toHaveLength(1000);
    expect(links[0]).toEqual({ url: 'https://example.com/7', clicks: 2 });
  });
});

describe('providers', () => {
  it('have the outcomes of their recipients, and opens by programs apart from those by people', async () => {
    const { tables, record } = start();
    const machine = { isBot: true, isProxy: true, isFirst: true };
    await record(['email_sent', 'email_delivered', exampleEvent('email_opened', machine)], {
      recipient: 'ada@gmail.com',
    });
    await record(
      [
        'email_sent',
        'email_delivered',
        exampleEvent('email_opened', PERSON),
        exampleEvent('email_opened', { ...PERSON, isFirst: false }),
        exampleEvent('email_clicked', { ...PERSON, url: 'https://example.com/' }),
        exampleEvent('email_clicked', { ...machine, url: 'https://example.com/' }),
        'email_unsubscribed',
      ],
      { recipient: 'bob@googlemail.com' },
    );
    await record(['email_sent', 'email_bounced'], { recipient: 'cy@example.org' });
    await record(['email_sent', 'email_delivered'], { recipient: '' });
    const none = {
      delivered: 0,
      bounced: 0,
      complained: 0,
      unsubscribed: 0,
      uniqueOpened: 0,
      uniqueClicked: 0,
      machineOpened: 0,
      machineClicked: 0,
    };
    expect(tables.campaignCounts.providers(CAMPAIGN)).toEqual([
      {
        ...none,
        provider: 'Google',
        delivered: 2,
        unsubscribed: 1,
        uniqueOpened: 1,
        uniqueClicked: 1,
        machineOpened: 1,
        machineClicked: 1,
      },
      { ...none, provider: 'example.org', bounced: 1 },
      { ...none, provider: 'other', delivered: 1 },
    ]);
  });

  it('are those of the committed units, when some of a group are rolled back', async () => {
    const { tables, writer, totals } = start();
    const count = (all: typeof tables) => {
      all.campaignCounts.add(CAMPAIGN, 0, 'delivered', 1);
      all.campaignCounts.addOfProvider(CAMPAIGN, 'a.example', 'delivered');
    };
    const settled = await Promise.allSettled([
      writer.run(count),
      writer.run((tx) => {
        count(tx);
        throw new Error('rolled back');
      }),
      writer.run(count),
    ]);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(totals()).toEqual({ delivered: 2 });
    const providers = tables.campaignCounts.providers(CAMPAIGN);
    expect(providers.map(({ provider, delivered }) => [provider, delivered])).toEqual([['a.example', 2]]);
  });

  it('are at most a hundred; the others are counted together', async () => {
    const { tables, writer } = start();
    await writer.run((tx) => {
      for (let n = 0; n < 110; n++) tx.campaignCounts.addOfProvider(CAMPAIGN, `${n}.example`, 'delivered');
      tx.campaignCounts.addOfProvider(CAMPAIGN, '7.example', 'delivered');
    });
    const providers = tables.campaignCounts.providers(CAMPAIGN);
    expect(providers).toHaveLength(101);
    expect(providers.slice(0, 2).map(({ provider, delivered }) => [provider, delivered])).toEqual([
      ['other', 10],
      ['7.example', 2],
    ]);
  });
});
