import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MessageSummary } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { startGroup } from '../support/group.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * Sends campaigns to a group; pauses, resumes and cancels them.
 *
 *   test ──HTTP──▶ postrider ──SMTP──▶ sink, which accepts each message after 30 ms
 */
const MEMBERS = 1000;
const SLOW = { dot: { reply: '250 2.0.0 OK', delayMs: 30 } };
const FROM = 'News <news@kunde-news.example>';
const FROM_OTHER = 'a@kunde.example';

let setup: SendingSetup;
beforeAll(async () => {
  setup = await startSendingSetup({ 'log.level': 'warn' }, { script: SLOW });
  await verifiedDomain(setup.daemon, setup.dns, 'kunde-news.example', { useCaseId: 'mk-local' });
});
afterAll(() => setup?.stop());

const path = (campaignId: string) => `/web-setup/campaigns/${campaignId}`;
const getCampaign = async (campaignId: string) =>
  (await setup.daemon.api.get<CampaignData>(path(campaignId))).data.campaign;
const act = async (campaignId: string, verb: string) =>
  (await setup.daemon.api.post<CampaignData>(`${path(campaignId)}/${verb}`)).data.campaign;

interface CampaignData {
  campaign: { status: string; progress: { jobId: string; queued: number; members: number } };
}

/** Sends a campaign to MEMBERS recipients; resolves when the first messages are at the sink. */
async function startCampaign(name: string): Promise<{ id: string; before: number }> {
  const { daemon, sink } = setup;
  const people = Array.from({ length: MEMBERS }, (_, n) => ({ email: `${name}${n}@empfang.example` }));
  const { subscriptionGroupId, campaignId: id } = await startGroup(daemon.api, people);
  const before = sink.count;
  const sent = await daemon.api.post(`${path(id)}/send`, { ...SHORT_MAIL, from: FROM, subscriptionGroupId });
  expect(sent.status, sent.text).toBe(202);
  await sink.waitFor(before + 150);
  return { id, before };
}

/** The number of messages at the sink when each message of the paused campaign is delivered or held. */
async function countWhenHeld(campaignId: string): Promise<number> {
  await eventually('the messages of the paused campaign to be held', async () => {
    const messages = await setup.daemon.api.allMessages({ campaignId });
    return (
      messages.length > 0 &&
      messages.every(({ status, heldBecause }) => status === 'delivered' || heldBecause === 'campaign_paused')
    );
  });
  return setup.sink.count;
}

/** Sends a message outside of the campaign and waits until it is at the sink: what was due before it has left, too. */
async function deliverAnother(): Promise<void> {
  const sent = await setup.daemon.api.send({ ...SHORT_MAIL, from: FROM_OTHER, to: 'other@empfang.example' });
  expect(sent.status, sent.text).toBe(200);
  const { messageId } = sent.data;
  await eventually(
    'another message to be delivered',
    async () => (await setup.daemon.api.message(messageId)).status === 'delivered',
  );
}

const getTotals = async (campaignId: string) => {
  const { totals } = (
    await setup.daemon.api.get<{ totals: Record<string, number> }>(`${path(campaignId)}/analytics`)
  ).data;
  return totals;
};

describe('a campaign', () => {
  it('is personalized for each member, who can unsubscribe with one click', async () => {
    const { daemon, sink } = setup;
    const { api } = daemon;
    const people = [
      { email: 'ada@empfang.example', firstName: 'Ada', lastName: 'Lovelace' },
      { email: 'grace@empfang.example' },
    ];
    const { subscriptionGroupId, campaignId } = await startGroup(api, people);
    const { data } = await api.post<{ jobId: string }>(`${path(campaignId)}/send`, {
      ...SHORT_MAIL,
      from: FROM,
      subject: 'Hello {{firstName|friend}}',
      subscriptionGroupId,
    });
    const arrived = (await sink.waitFor(2)).toSorted((a, b) => (a.to[0] ?? '').localeCompare(b.to[0] ?? ''));
    const field = (raw: string, name: string) =>
      new RegExp(`^${name}: (.*(?:\r\n[ \t].*)*)`, 'm').exec(raw)?.[1] ?? '';
    expect(arrived.map(({ raw }) => [field(raw, 'To'), field(raw, 'Subject')])).toEqual([
      ['Ada Lovelace <ada@empfang.example>', 'Hello Ada'],
      ['grace@empfang.example', 'Hello friend'],
    ]);
    expect(field(arrived[0]?.raw ?? '', 'Feedback-ID')).toBe(
      `${campaignId}:${api.accountId}:mk:mxpostriderexam`,
    );
    const { progress } = await eventually('the campaign to be sent', async () => {
      const campaign = await getCampaign(campaignId);
      return campaign.status === 'sent' ? campaign : null;
    });
    expect(progress).toMatchObject({ jobId: data.jobId, members: 2, queued: 2 });
    for (const filter of [`jobId=${data.jobId}`, `campaignId=${campaignId}`]) {
      const { messages } = (await api.get<{ messages: MessageSummary[] }>(`/web-setup/messages?${filter}`))
        .data;
      expect(messages.map(({ recipient, status }) => [recipient, status])).toEqual([
        ['grace@empfang.example', 'delivered'],
        ['ada@empfang.example', 'delivered'],
      ]);
    }
    const unsubscribe = /<(http[^>]*)>/.exec(
      field(arrived[0]?.raw ?? '', 'List-Unsubscribe').replace(/\s/g, ''),
    );
    // The host resolves through the test's name server only.
    const url = new URL(unsubscribe?.[1] ?? '');
    url.hostname = '127.0.0.1';
    const response = await fetch(url, { method: 'POST', body: 'List-Unsubscribe=One-Click' });
    expect(response.status).toBe(200);
    const group = await api.get<{ group: { activeSubscribers: number } }>(
      `/web-setup/contacts/subscription-groups/${subscriptionGroupId}`,
    );
    expect(group.data.group.activeSubscribers).toBe(1);
  });

  it('sends nothing while it is paused, and continues when it is resumed, also after a restart', async () => {
    const { id, before } = await startCampaign('held');
    expect((await act(id, 'pause')).status).toBe('paused');
    const paused = await countWhenHeld(id);
    expect(paused - before).toBeLessThan(MEMBERS);
    const messages = await setup.daemon.api.get<{ messages: MessageSummary[] }>(
      `/web-setup/messages?campaignId=${id}&status=queued`,
    );
    expect(messages.data.messages.every(({ attempts }) => attempts === 0)).toBe(true);
    expect(messages.data.messages.length).toBeGreaterThan(0);
    await setup.daemon.kill('SIGTERM');
    await setup.daemon.restart();
    await deliverAnother();
    expect(await countWhenHeld(id)).toBe(paused + 1);

    expect((await act(id, 'resume')).status).toBe('sending');
    await setup.sink.waitFor(before + MEMBERS + 1);
    await eventually('the campaign to be sent', async () => (await getCampaign(id)).status === 'sent');
    await setup.waitForEmptyQueue();
    expect(setup.sink.count).toBe(before + MEMBERS + 1);
    expect(await getTotals(id)).toMatchObject({
      queued: MEMBERS,
      delivered: MEMBERS,
      deferred: 0,
      failed: 0,
    });
  });

  it('cancels its queued messages, and queues no further ones, when it is cancelled', async () => {
    const { id, before } = await startCampaign('cancelled');
    expect((await act(id, 'cancel')).status).toBe('cancelled');
    await setup.waitForEmptyQueue();
    const arrived = setup.sink.count - before;
    expect(arrived).toBeLessThan(MEMBERS);
    const { queued = 0, delivered, cancelled = 0, failed } = await getTotals(id);
    expect([delivered, failed]).toEqual([arrived, 0]);
    expect(queued).toBe(arrived + cancelled);
    expect((await getCampaign(id)).progress.queued).toBe(queued);
    const events = await setup.daemon.api.allEvents({ campaignId: id, event: 'email_failed' });
    expect(new Set(events.map(({ reason }) => reason))).toEqual(new Set(['cancelled']));
    expect(events).toHaveLength(cancelled);
    const resumed = await setup.daemon.api.post(`${path(id)}/resume`);
    expect([resumed.status, resumed.error.code]).toEqual([409, 'INVALID_STATE']);
    // Until the runner has noticed that no message is left, the response is 409.
    await eventually('the campaign to be deleted', async () => {
      const { status } = await setup.daemon.api.call('DELETE', path(id));
      return status === 200;
    });
  });
});
