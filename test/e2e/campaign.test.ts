import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MessageSummary } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { startGroup } from '../support/group.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * A campaign as its account sees it: sent to a group, held up, let go again, called off.
 *
 *   test ──HTTP──▶ postrider ──SMTP──▶ sink, which takes 30 ms over every message
 */
const MEMBERS = 2500;
const SLOW = { dot: { reply: '250 2.0.0 taken', delayMs: 30 } };
const FROM = 'News <news@kunde-news.example>';

let setup: SendingSetup;
beforeAll(async () => {
  setup = await startSendingSetup({ 'log.level': 'warn' }, { script: SLOW });
  await verifiedDomain(setup.daemon, setup.dns, 'kunde-news.example', { useCaseId: 'mk-local' });
});
afterAll(() => setup?.stop());

const path = (campaignId: string) => `/web-setup/campaigns/${campaignId}`;
const show = async (campaignId: string) =>
  (await setup.daemon.api.get<Shown>(path(campaignId))).data.campaign;
const act = async (campaignId: string, verb: string) =>
  (await setup.daemon.api.post<Shown>(`${path(campaignId)}/${verb}`)).data.campaign;

interface Shown {
  campaign: { status: string; progress: { jobId: string; queued: number; members: number } };
}

/** Sends to a group of so many; resolves when the first messages are at the sink. */
async function underWay(name: string): Promise<{ id: string; before: number }> {
  const { daemon, sink } = setup;
  const people = Array.from({ length: MEMBERS }, (_, n) => ({ email: `${name}${n}@empfang.example` }));
  const { subscriptionGroupId, campaignId: id } = await startGroup(daemon.api, people);
  const before = sink.count;
  const sent = await daemon.api.post(`${path(id)}/send`, { ...SHORT_MAIL, from: FROM, subscriptionGroupId });
  expect(sent.status, sent.text).toBe(202);
  await sink.waitFor(before + 200);
  return { id, before };
}

/** What the sink has when nothing more comes. */
async function settled(): Promise<number> {
  for (;;) {
    const { count } = setup.sink;
    await sleep(1500);
    if (setup.sink.count === count) return count;
  }
}

const statuses = async (campaignId: string) => {
  const { totals } = (
    await setup.daemon.api.get<{ totals: Record<string, number> }>(`${path(campaignId)}/analytics`)
  ).data;
  return totals;
};

describe('a campaign', () => {
  it('reaches each member with their own name, and can be left with one click', async () => {
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
    expect(field(arrived[0]?.raw ?? '', 'Feedback-ID')).toBe(`${campaignId}:${api.accountId}:mk:postrider`);
    const shown = await eventually('it to be sent', async () => {
      const campaign = await show(campaignId);
      return campaign.status === 'sent' ? campaign : null;
    });
    expect(shown.progress).toMatchObject({ jobId: data.jobId, members: 2, queued: 2 });
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
    // The host is one that only the daemon's own resolver knows.
    const url = new URL(unsubscribe?.[1] ?? '');
    url.hostname = '127.0.0.1';
    const left = await fetch(url, { method: 'POST', body: 'List-Unsubscribe=One-Click' });
    expect(left.status).toBe(200);
    const group = await api.get<{ group: { activeSubscribers: number } }>(
      `/web-setup/contacts/subscription-groups/${subscriptionGroupId}`,
    );
    expect(group.data.group.activeSubscribers).toBe(1);
  });

  it('is held when it is paused, and goes on where it stopped, also after a restart', async () => {
    const { id, before } = await underWay('held');
    expect((await act(id, 'pause')).status).toBe('paused');
    const atRest = await settled();
    expect(atRest - before).toBeLessThan(MEMBERS);
    const messages = await setup.daemon.api.get<{ messages: MessageSummary[] }>(
      `/web-setup/messages?campaignId=${id}&status=queued`,
    );
    expect(messages.data.messages.every(({ attempts }) => attempts === 0)).toBe(true);
    expect(messages.data.messages.length).toBeGreaterThan(0);
    await setup.daemon.kill('SIGTERM');
    await setup.daemon.restart();
    expect(await settled()).toBe(atRest);

    expect((await act(id, 'resume')).status).toBe('sending');
    await setup.sink.waitFor(before + MEMBERS);
    await eventually('it to be sent', async () => (await show(id)).status === 'sent');
    expect(await settled()).toBe(before + MEMBERS);
    expect(await statuses(id)).toMatchObject({ queued: MEMBERS, delivered: MEMBERS, deferred: 0, failed: 0 });
  });

  it('is called off when it is cancelled: what waits, and what was never taken up', async () => {
    const { id, before } = await underWay('gone');
    expect((await act(id, 'cancel')).status).toBe('cancelled');
    const got = (await settled()) - before;
    expect(got).toBeLessThan(MEMBERS);
    await setup.waitForEmptyQueue();
    const { queued = 0, delivered, cancelled = 0, failed } = await statuses(id);
    expect([delivered, failed]).toEqual([got, 0]);
    expect(queued).toBe(got + cancelled);
    expect((await show(id)).progress.queued).toBe(queued);
    const events = await setup.daemon.api.allEvents({ campaignId: id, event: 'email_failed' });
    expect(new Set(events.map(({ reason }) => reason))).toEqual(new Set(['cancelled']));
    expect(events).toHaveLength(cancelled);
    const again = await setup.daemon.api.post(`${path(id)}/resume`);
    expect([again.status, again.error.code]).toEqual([409, 'INVALID_STATE']);
    expect((await setup.daemon.api.call('DELETE', path(id))).status).toBe(200);
  });
});
