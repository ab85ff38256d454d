import { afterAll, describe, expect, it } from 'vitest';
import { startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomain } from '../../support/store.ts';

// Starts the whole daemon, which is slow on a busy machine.
const daemon = await startInProcess();
afterAll(() => daemon.stop());

const PATH = '/web-setup/campaigns';

interface Answer {
  campaign: { campaignId: string; createdAt: string };
}

async function start() {
  const api = await daemon.account('A');
  const { data } = await api.post<Answer>(PATH, { name: 'Spring', description: 'Sale' });
  return { api, campaign: data.campaign, path: `${PATH}/${data.campaign.campaignId}` };
}

describe('a campaign', () => {
  it('is returned as it was created', async () => {
    const { api, campaign, path } = await start();
    expect(campaign).toEqual({
      campaignId: expect.stringMatching(/^campaign_\d{13}_[0-9a-z]{12}$/),
      name: 'Spring',
      description: 'Sale',
      status: 'draft',
      prepared: null,
      createdAt: expect.stringMatching(/Z$/),
      updatedAt: campaign.createdAt,
    });
    expect((await api.get(path)).data).toEqual({ campaign });
    expect((await api.get(PATH)).data).toEqual({ campaigns: [campaign], count: 1 });
  });

  it.each(['PUT', 'PATCH'])('is updated by %s', async (method) => {
    const { api, campaign, path } = await start();
    const { data } = await api.call(method, path, { body: { name: 'Summer', description: null } });
    const changed = { ...campaign, name: 'Summer', description: undefined, updatedAt: expect.any(String) };
    expect(data).toEqual({ campaign: changed });
  });

  it('is not changed after another change if the caller expects none', async () => {
    const { api, campaign, path } = await start();
    const { createdAt: expectedUpdatedAt } = campaign;
    expect((await api.call('PATCH', path, { body: { name: 'Mine', expectedUpdatedAt } })).status).toBe(200);
    const late = await api.call('PATCH', path, { body: { name: 'Late', expectedUpdatedAt } });
    expect(late.status).toBe(409);
    expect(late.error).toMatchObject({ code: 'INVALID_STATE', details: [{ reason: 'CHANGED' }] });
    expect((await api.get(path)).data).toMatchObject({ campaign: { name: 'Mine' } });
  });

  it('has what was prepared for its send until it is sent', async () => {
    const { api, campaign, path } = await start();
    const prepared = { templateId: 'template_1', from: 'Shop <a@shop.test>', perHour: 100 };
    expect((await api.put(path, { prepared })).data).toMatchObject({ campaign: { prepared } });
    expect((await api.put(path, { name: 'Autumn' })).data).toMatchObject({ campaign: { prepared } });
    expect((await api.get(path)).data).toMatchObject({ campaign: { prepared } });
    expect((await api.put(path, { prepared: { perHour: 0 } })).status).toBe(400);
    const row = daemon.tables.campaigns.get(api.accountId, campaign.campaignId);
    if (row !== null) daemon.tables.campaigns.update({ ...row, status: 'sent' });
    expect((await api.put(path, { prepared: null })).error.code).toBe('INVALID_STATE');
    expect((await api.put(path, { name: 'Winter' })).status).toBe(200);
  });

  it('ignores its status in a request', async () => {
    const { api, path } = await start();
    const { data } = await api.put(path, { status: 'sent' });
    expect(data).toMatchObject({
      campaign: { status: 'draft' },
      warnings: ['read-only field "status" was ignored'],
    });
  });

  it('does not exist after deletion', async () => {
    const { api, path } = await start();
    expect((await api.call('DELETE', path)).status).toBe(200);
    for (const gone of [path, `${path}/analytics`])
      expect((await api.get(gone)).error.code).toBe('CAMPAIGN_NOT_FOUND');
  });
});

describe('sending a campaign', () => {
  const MAIL = {
    from: 'News <news@news.example>',
    subject: 'Hello {{firstName}}',
    html: '{{company_address_html}}{{unsubscribe_email_html}}',
  };

  /** With a domain that may send, and a group. */
  async function ready() {
    const setting = await start();
    const { api, campaign } = setting;
    const { group_id } = daemon.tables.domainGroups.defaultOf(api.accountId) ?? { group_id: '' };
    const domain_id = `domain_${campaign.campaignId}`;
    const input = {
      account_id: api.accountId,
      group_id,
      domain_id,
      name: 'news.example',
      use_case: 'mk',
    } as const;
    insertDomain(daemon.tables, input, Date.now());
    const { data } = await api.post<{ group: { subscriptionGroupId: string } }>(
      '/web-setup/contacts/subscription-groups',
      { name: 'News' },
    );
    const { subscriptionGroupId } = data.group;
    const scheduledAt = new Date(Date.now() + 3_600_000).toISOString();
    const send = (changes: object = {}) =>
      api.post<Answer & { jobId: string; warnings?: string[] }>(`${setting.path}/send`, {
        ...MAIL,
        subscriptionGroupId,
        scheduledAt,
        ...changes,
      });
    return { ...setting, subscriptionGroupId, scheduledAt, send };
  }

  it('responds with 202 and the job, and reports progress', async () => {
    const { api, campaign, path, send, subscriptionGroupId, scheduledAt } = await ready();
    const { status, data } = await send({
      perHour: 500,
      text: 'Hello {{first-name}}',
    });
    const shown = {
      ...campaign,
      status: 'scheduled',
      updatedAt: expect.any(String),
      progress: {
        jobId: expect.stringMatching(/^job_/),
        livemode: true,
        subscriptionGroupId,
        members: null,
        queued: 0,
        skipped: { withoutEmail: 0, notEligible: 0, notRenderable: 0 },
        perHour: 500,
        pausedReason: null,
        scheduledAt,
        startedAt: null,
        finishedAt: null,
        cancellable: true,
      },
    };
    expect([status, data]).toEqual([
      202,
      {
        message: 'The campaign is scheduled.',
        jobId: data.jobId,
        campaign: shown,
        warnings: [
          '{{first-name}} in text is not a variable and is sent unchanged',
          expect.stringContaining('public.url is not https'),
        ],
      },
    ]);
    expect((await api.get(path)).data).toEqual({ campaign: shown });
    expect((await api.get(PATH)).data).toEqual({ campaigns: [shown], count: 1 });
    expect((await api.post<Answer>(`${path}/pause`)).data.campaign).toMatchObject({ status: 'paused' });
    expect((await api.call('DELETE', path)).error.code).toBe('INVALID_STATE');
    expect((await api.post<Answer>(`${path}/cancel`)).data.campaign).toMatchObject({ status: 'cancelled' });
  });

  it.each<[changes: object, status: number, code: string, names: (string | undefined)[]]>([
    [
      { text: '{{nobodyKnows}} {{customFields.plan}}' },
      422,
      'TEMPLATE_VARIABLE_MISSING',
      ['nobodyKnows', 'customFields.plan'],
    ],
    [{ templateVariables: { firstName: 'Ada' } }, 400, 'VALIDATION_ERROR', [undefined]],
    [{ perHour: 0 }, 400, 'VALIDATION_ERROR', [undefined]],
    [{ subscriptionGroupId: 'sgroup_1' }, 404, 'SUBSCRIPTION_GROUP_NOT_FOUND', []],
    [{ from: 'a@other.example' }, 403, 'DOMAIN_NOT_REGISTERED', [undefined]],
  ])('refuses %j', async (changes, status, code, names) => {
    const { api, path, send } = await ready();
    const answer = await send(changes);
    expect([answer.status, answer.error.code]).toEqual([status, code]);
    expect((answer.error.details ?? []).map(({ name }) => name)).toEqual(names);
    expect((await api.get<Answer>(path)).data.campaign).toMatchObject({ status: 'draft' });
  });

  it('tests variants, of which a person can choose the winner', async () => {
    const { api, path, send } = await ready();
    const variants = [{}, { name: 'Short', subject: 'Hi', html: `Hi ${MAIL.html}`, text: 'Hi' }];
    const test = { share: 20, winner: 'clicks', waitHours: 4 };
    const invalid = await send({ variants, test: { ...test, waitHours: 721 }, enableClickTracking: true });
    expect([invalid.status, invalid.error.details?.[0]?.field]).toEqual([400, 'test.waitHours']);
    const five = await send({
      variants: Array.from({ length: 5 }, () => ({})),
      test,
      enableClickTracking: true,
    });
    expect([five.status, five.error.details?.[0]?.field]).toEqual([400, 'variants']);
    expect((await send({ variants, test, enableClickTracking: true })).status).toBe(202);
    const none = { people: 0, rate: null, difference: null };
    const counted = { queued: 0, delivered: 0, opens: none, clicks: none };
    expect((await api.get<{ campaign: { progress: object } }>(path)).data.campaign.progress).toMatchObject({
      test: {
        ...test,
        state: 'sending',
        decidesAt: null,
        confidence: 0.95,
        variants: [
          { name: 'A', subject: MAIL.subject, ...counted },
          { name: 'Short', subject: 'Hi', ...counted },
        ],
        decision: null,
      },
    });
    expect((await api.get(`${path}/content`)).data).toMatchObject({
      subject: MAIL.subject,
      variants: [
        { name: 'A', subject: MAIL.subject, html: MAIL.html, text: null, syntax: 'simple' },
        { name: 'Short', subject: 'Hi', html: `Hi ${MAIL.html}`, text: 'Hi', syntax: 'simple' },
      ],
    });
    const unknown = await api.post(`${path}/winner`, { variant: 'B' });
    expect([unknown.status, unknown.error.details?.[0]?.field]).toEqual([400, 'variant']);
    const chosen = await api.post(`${path}/winner`, { variant: 'Short' });
    expect(chosen.data).toMatchObject({
      campaign: {
        progress: { test: { decision: { variant: 'Short', reason: 'chosen', by: expect.any(String) } } },
      },
    });
    expect((await api.post(`${path}/winner`, { variant: 'A' })).error.code).toBe('INVALID_STATE');
  });

  it('keeps the content, which can be read from then on', async () => {
    const { api, path, send } = await ready();
    const before = await api.get(`${path}/content`);
    expect([before.status, before.error.code]).toEqual([409, 'INVALID_STATE']);
    await send();
    expect((await api.get(`${path}/content`)).data).toMatchObject({
      from: expect.stringContaining('@'),
      replyTo: null,
      html: expect.stringContaining('{{unsubscribe_email_html}}'),
      text: null,
    });
  });

  it('succeeds once', async () => {
    const { send } = await ready();
    await send();
    const again = await send();
    expect([again.status, again.error.code]).toEqual([409, 'INVALID_STATE']);
  });
});

describe('analytics', () => {
  it('returns the counts of the requested period', async () => {
    const { api, campaign, path } = await start();
    const noon = Date.UTC(2026, 0, 15, 12);
    const { campaignCounts } = daemon.tables;
    campaignCounts.add(campaign.campaignId, noon, 'sent', 3);
    campaignCounts.add(campaign.campaignId, noon + 3_600_000, 'delivered', 2);
    campaignCounts.addClick(campaign.campaignId, 'https://example.com/');
    campaignCounts.addOfProvider(campaign.campaignId, 'Google', 'machineOpened');
    campaignCounts.endUnit(true);
    campaignCounts.write();
    const ask = async (query = '') => (await api.get(`${path}/analytics${query}`)).data;
    expect(await ask()).toMatchObject({
      campaignId: campaign.campaignId,
      totals: { sent: 3, delivered: 2, queued: 0, uniqueOpened: 0 },
      series: [{ timestamp: '2026-01-15T00:00:00.000Z', sent: 3, delivered: 2 }],
      links: [{ url: 'https://example.com/', clicks: 1 }],
      providers: [{ provider: 'Google', delivered: 0, uniqueOpened: 0, machineOpened: 1 }],
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
