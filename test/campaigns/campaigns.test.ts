import { describe, expect, it } from 'vitest';
import { type AnalyticsQuery, createCampaigns } from '../../src/campaigns/campaigns.ts';
import { DAY, HOUR, iso, MINUTE } from '../../src/core/clock.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import type { CampaignStatus } from '../../src/store/campaigns/campaigns.ts';
import { granted } from '../support/refusal.ts';
import { insertAccount, startStore } from '../support/store.ts';

const FIELDS = { name: 'Spring', description: null };
const ALWAYS: AnalyticsQuery = { from: null, to: null, interval: 'day' };

function start() {
  const store = startStore();
  insertAccount(store.tables, 'acct_two', store.clock.now());
  return { ...store, campaigns: createCampaigns(store, store.limits.mayAdd.campaigns) };
}

describe('a campaign', () => {
  it('is created as a draft; an update changes the given fields only', async () => {
    const { campaigns, clock } = start();
    const created = granted(await campaigns.create('acct_one', { name: 'Spring', description: 'Sale' }));
    expect(created).toMatchObject({ name: 'Spring', description: 'Sale', status: 'draft' });
    clock.advance(MINUTE);
    const changed = granted(await campaigns.update('acct_one', created.campaign_id, { description: null }));
    expect(changed).toEqual({ ...created, description: null, updated_at: created.created_at + MINUTE });
    expect(campaigns.get('acct_one', created.campaign_id)).toEqual(changed);
  });

  it('is not updated by a caller who read it before the last change', async () => {
    const { campaigns } = start();
    const { campaign_id: id, updated_at } = granted(await campaigns.create('acct_one', FIELDS));
    // At the same time as the creation.
    const first = granted(await campaigns.update('acct_one', id, { name: 'First' }, updated_at));
    const late = await campaigns.update('acct_one', id, { name: 'Late' }, updated_at);
    expect(late).toMatchObject({ code: 'INVALID_STATE', extras: { details: [{ reason: 'CHANGED' }] } });
    expect(campaigns.get('acct_one', id)).toEqual(first);
    granted(await campaigns.update('acct_one', id, { name: 'Second' }, first.updated_at));
    granted(await campaigns.update('acct_one', id, { name: 'Regardless' }));
  });

  it('of another account is refused like one that does not exist', async () => {
    const { campaigns } = start();
    const { campaign_id } = granted(await campaigns.create('acct_one', FIELDS));
    for (const id of [campaign_id, 'campaign_x']) {
      for (const answer of [
        campaigns.get('acct_two', id),
        await campaigns.update('acct_two', id, FIELDS),
        await campaigns.remove('acct_two', id),
        await campaigns.analytics('acct_two', id, ALWAYS),
      ]) {
        expect(answer).toMatchObject({ code: 'CAMPAIGN_NOT_FOUND', message: `There is no campaign ${id}` });
      }
    }
    expect((await campaigns.list({ accountId: 'acct_two', beforeSeq: null, limit: 50 })).rows).toEqual([]);
    granted(campaigns.get('acct_one', campaign_id));
  });

  it.each<[CampaignStatus, boolean]>([
    ['draft', true],
    ['scheduled', false],
    ['sending', false],
    ['paused', false],
    ['sent', true],
    ['cancelled', true],
  ])('that is %s can be deleted: %s', async (status, expected) => {
    const { campaigns, tables } = start();
    const created = granted(await campaigns.create('acct_one', FIELDS));
    tables.campaigns.update({ ...created, status });
    const answer = await campaigns.remove('acct_one', created.campaign_id);
    expect(isRefusal(answer) ? answer.code : null).toBe(expected ? null : 'INVALID_STATE');
    expect(isRefusal(campaigns.get('acct_one', created.campaign_id))).toBe(expected);
  });

  it('is listed in pages, newest first', async () => {
    const { campaigns } = start();
    for (const name of ['a', 'b', 'c']) granted(await campaigns.create('acct_one', { ...FIELDS, name }));
    const first = await campaigns.list({ accountId: 'acct_one', beforeSeq: null, limit: 2 });
    expect([first.rows.map(({ name }) => name), first.more]).toEqual([['c', 'b'], true]);
    const rest = await campaigns.list({
      accountId: 'acct_one',
      beforeSeq: first.rows[1]?.seq ?? 0,
      limit: 2,
    });
    expect([rest.rows.map(({ name }) => name), rest.more]).toEqual([['a'], false]);
  });
});

describe('analytics', () => {
  /** Noon: 3 sent. An hour later: 2 delivered. The next noon: 1 bounced, and a click. */
  async function counted() {
    const setup = start();
    const { campaigns, tables, writer, clock } = setup;
    const { campaign_id: id } = granted(await campaigns.create('acct_one', FIELDS));
    const noon = clock.now();
    await writer.run((tx) => {
      tx.campaignCounts.add(id, noon, 'sent', 3);
      tx.campaignCounts.add(id, noon + HOUR, 'delivered', 2);
      tx.campaignCounts.add(id, noon + DAY, 'bounced', 1);
      tx.campaignCounts.addClick(id, 'https://example.com/');
    });
    const ask = async (query: Partial<AnalyticsQuery> = {}) =>
      granted(await campaigns.analytics('acct_one', id, { ...ALWAYS, ...query }));
    return { ask, noon, tables };
  }
  const NONE = {
    queued: 0,
    sent: 0,
    delivered: 0,
    deferred: 0,
    bounced: 0,
    hardBounced: 0,
    blocked: 0,
    complained: 0,
    opened: 0,
    uniqueOpened: 0,
    clicked: 0,
    uniqueClicked: 0,
    unsubscribed: 0,
    failed: 0,
    cancelled: 0,
  };

  it('contain the totals, the days with events, and the links', async () => {
    const { ask, noon } = await counted();
    expect(await ask()).toEqual({
      campaignId: expect.any(String),
      totals: { ...NONE, sent: 3, delivered: 2, bounced: 1 },
      series: [
        { timestamp: iso(noon - 12 * HOUR), ...NONE, sent: 3, delivered: 2 },
        { timestamp: iso(noon + 12 * HOUR), ...NONE, bounced: 1 },
      ],
      links: [{ url: 'https://example.com/', clicks: 1 }],
      providers: [],
    });
  });

  it('are grouped by hour, within full hours of the requested time', async () => {
    const { ask, noon } = await counted();
    const { totals, series } = await ask({
      from: noon + HOUR + MINUTE,
      to: noon + DAY - MINUTE,
      interval: 'hour',
    });
    expect(totals).toEqual({ ...NONE, delivered: 2 });
    expect(series).toEqual([{ timestamp: iso(noon + HOUR), ...NONE, delivered: 2 }]);
    expect((await ask({ from: noon + 2 * HOUR, to: noon + DAY })).totals).toEqual(NONE);
    expect((await ask({ to: noon + DAY + 1 })).totals.bounced).toBe(1);
  });
});
