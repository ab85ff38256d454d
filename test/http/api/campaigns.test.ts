import { afterAll, describe, expect, it, vi } from 'vitest';
import { startInProcess } from '../../support/in-process-daemon.ts';

// The whole daemon takes part, perhaps on a busy machine.
vi.setConfig({ testTimeout: 30_000 });

const house = await startInProcess();
afterAll(() => house.stop());

const PATH = '/web-setup/campaigns';

interface Answer {
  campaign: { campaignId: string; createdAt: string };
}

async function start() {
  const api = await house.account('A');
  const { data } = await api.post<Answer>(PATH, { name: 'Spring', description: 'Sale' });
  return { api, campaign: data.campaign, path: `${PATH}/${data.campaign.campaignId}` };
}

describe('a campaign', () => {
  it('is read as it was made', async () => {
    const { api, campaign, path } = await start();
    expect(campaign).toEqual({
      campaignId: expect.stringMatching(/^campaign_\d{13}_[0-9a-z]{12}$/),
      name: 'Spring',
      description: 'Sale',
      status: 'draft',
      createdAt: expect.stringMatching(/Z$/),
      updatedAt: campaign.createdAt,
    });
    expect((await api.get(path)).data).toEqual({ campaign });
    expect((await api.get(PATH)).data).toEqual({ campaigns: [campaign], count: 1 });
  });

  it.each(['PUT', 'PATCH'])('is changed by %s', async (method) => {
    const { api, campaign, path } = await start();
    const { data } = await api.call(method, path, { body: { name: 'Summer', description: null } });
    const changed = { ...campaign, name: 'Summer', description: null, updatedAt: expect.any(String) };
    expect(data).toEqual({ campaign: changed });
  });

  it('does not let its state be set', async () => {
    const { api, path } = await start();
    const { data } = await api.put(path, { status: 'sent' });
    expect(data).toMatchObject({
      campaign: { status: 'draft' },
      warnings: ['unknown field "status" was ignored'],
    });
  });

  it('is gone when it is deleted', async () => {
    const { api, path } = await start();
    expect((await api.call('DELETE', path)).status).toBe(200);
    for (const gone of [path, `${path}/analytics`])
      expect((await api.get(gone)).error.code).toBe('CAMPAIGN_NOT_FOUND');
  });
});

describe('analytics', () => {
  it('shows what was counted, in the time asked for', async () => {
    const { api, campaign, path } = await start();
    const noon = Date.UTC(2026, 0, 15, 12);
    house.tables.campaignCounts.add(campaign.campaignId, noon, 'sent', 3);
    house.tables.campaignCounts.add(campaign.campaignId, noon + 3_600_000, 'delivered', 2);
    house.tables.campaignCounts.addClick(campaign.campaignId, 'https://example.com/');
    const ask = async (query = '') => (await api.get(`${path}/analytics${query}`)).data;
    expect(await ask()).toMatchObject({
      campaignId: campaign.campaignId,
      totals: { sent: 3, delivered: 2, queued: 0, uniqueOpened: 0 },
      series: [{ timestamp: '2026-01-15T00:00:00.000Z', sent: 3, delivered: 2 }],
      links: [{ url: 'https://example.com/', clicks: 1 }],
    });
    const query = '?interval=hour&from=2026-01-15T14:00:00%2B01:00&to=2026-01-15T13:30:00Z';
    expect(await ask(query)).toMatchObject({
      totals: { sent: 0, delivered: 2 },
      series: [{ timestamp: '2026-01-15T13:00:00.000Z', delivered: 2 }],
    });
  });

  it.each([
    ['interval=week', 'interval'],
    ['from=yesterday', 'from'],
    ['from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z', 'to'],
  ])('refuses ?%s', async (query, field) => {
    const { api, path } = await start();
    const { status, error } = await api.get(`${path}/analytics?${query}`);
    expect([status, error.details?.[0]?.field]).toEqual([400, field]);
  });
});
