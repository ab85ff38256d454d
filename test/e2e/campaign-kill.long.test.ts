// Long: kills the daemon several times during a campaign to thousands of recipients.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { startGroup } from '../support/group.ts';
import { type Kill, type KillSetup, startKillSetup } from '../support/kill-setup.ts';
import { LONG_PATIENCE_MS } from '../support/patience.ts';
import { SHORT_MAIL } from '../support/recipients.ts';

/*
 * The daemon is killed twice while it sends a campaign to 3,600 recipients; after each start it continues without a
 * request. A segment is evaluated while the campaign is sent: people who leave or enter it before it is their turn count as
 * they are then.
 *
 *   test ──HTTP──▶ postrider (kill -9, start, kill -9, start) ──SMTP──▶ sink, a separate process
 */
/** At each kill there are members without a message: the campaign queues at most 2,000 messages ahead. */
const MEMBERS = 3600;
const DOMAINS = ['eins.example', 'zwei.example', 'drei.example', 'vier.example'];
/** Number of messages at the sink. */
const KILL_AT = [600, 1300];

let setup: KillSetup;

beforeEach(async () => {
  setup = await startKillSetup(DOMAINS, { useCaseId: 'mk-local' });
});
afterEach(() => setup?.stop());

/** People who leave the segment, and as many who enter it, when the first messages have arrived. */
const MOVING = 50;

const addressOf = (n: number) => `user${n}@${DOMAINS[n % DOMAINS.length]}`;
const numbers = (from: number, count: number) => Array.from({ length: count }, (_, n) => from + n);

interface Audience {
  /** Of the request. */
  fields: object;
  /** Changes people whose turn has not come. */
  move(): Promise<void>;
  /** Nobody who left received it, and everybody who entered did. */
  check(): Promise<void>;
}

async function ofGroup(_: ApiClient, subscriptionGroupId: string): Promise<Audience> {
  return { fields: { subscriptionGroupId }, move: async () => {}, check: async () => {} };
}

/** A segment of all active groups; some people are in two of them. */
async function ofSegment(api: ApiClient, _: string, campaignId: string): Promise<Audience> {
  const GROUPS = '/web-setup/contacts/subscription-groups';
  const second = await api.post<{ group: { subscriptionGroupId: string } }>(GROUPS, { name: 'Offers' });
  for (const n of numbers(0, 20))
    await api.post(`${GROUPS}/${second.data.group.subscriptionGroupId}/subscriptions`, {
      email: addressOf(n),
    });
  const filter = { field: 'customFields.plan', op: 'is', value: 'gold' };
  const { data } = await api.post<{ segment: { segmentId: string; count: number } }>('/web-setup/segments', {
    name: 'Gold',
    filter,
  });
  expect(data.segment.count).toBe(MEMBERS);
  const leaving = numbers(MEMBERS - MOVING, MOVING).map(addressOf);
  const entering = numbers(MEMBERS, MOVING).map(addressOf);
  const messagesTo = async (recipient: string) => {
    const found = await api.get<{ messages: object[] }>(
      `/web-setup/messages?recipient=${encodeURIComponent(recipient)}`,
    );
    return found.data.messages.length;
  };
  return {
    fields: { segmentId: data.segment.segmentId },
    move: async () => {
      const set = async (email: string, plan: string) => {
        const path = `/web-setup/contacts/${encodeURIComponent(`email:${email}`)}`;
        const changed = await api.call('PATCH', path, { body: { customFields: { plan } } });
        expect(changed.status, changed.text).toBe(200);
      };
      // Paused, so that it does not reach them before all are changed.
      const post = async (verb: string) =>
        expect((await api.post(`/web-setup/campaigns/${campaignId}/${verb}`)).status).toBe(200);
      await post('pause');
      for (const email of leaving) await set(email, 'free');
      for (const email of entering) await set(email, 'gold');
      await post('resume');
    },
    check: async () => {
      for (const email of leaving) expect([email, await messagesTo(email)]).toEqual([email, 0]);
      for (const email of entering) expect([email, await messagesTo(email)]).toEqual([email, 1]);
    },
  };
}

describe.each([
  ['a group', 0, ofGroup],
  ['a segment', MOVING, ofSegment],
])(`kill -9 during a campaign to ${MEMBERS} recipients of %s`, (_, outside, createAudience) => {
  it('skips no recipient, and repeats at most the messages in flight', async () => {
    const { daemon, sink, messagesAtSink, kill } = setup;
    const { api } = daemon;
    const members = numbers(0, MEMBERS + outside).map((n) => ({
      email: addressOf(n),
      firstName: `User ${n}`,
      customFields: { plan: n < MEMBERS ? 'gold' : 'free' },
    }));
    const { subscriptionGroupId, campaignId } = await startGroup(api, members);
    const audience = await createAudience(api, subscriptionGroupId, campaignId);
    const began = Date.now();
    const sent = await api.post(`/web-setup/campaigns/${campaignId}/send`, {
      ...SHORT_MAIL,
      subject: 'Hello {{firstName}}',
      from: 'a@kunde.example',
      ...audience.fields,
    });
    expect(sent.status, sent.text).toBe(202);

    await messagesAtSink(1);
    await audience.move();

    const kills: Kill[] = [];
    for (const at of KILL_AT) {
      await messagesAtSink(at);
      kills.push(await kill());
      await daemon.restart();
    }

    const campaign = await eventually(
      'the campaign to be sent',
      async () => {
        const { data } = await api.get<CampaignData>(`/web-setup/campaigns/${campaignId}`);
        return data.campaign.status === 'sent' ? data.campaign : null;
      },
      { ms: LONG_PATIENCE_MS, everyMs: 250 },
    );
    await eventually(
      'the queue to be empty',
      async () => (await daemon.metric('postrider_queue_messages')) === 0,
    );
    const counts = await sink.counts();
    const seconds = (Date.now() - began) / 1000;
    const each = (number: keyof Kill) => kills.map((one) => one[number]).join(' and ');
    console.log(
      `killed after ${each('at')} of ${MEMBERS} messages, with ${each('inFlight')} in flight, ` +
        `${each('unrecorded')} of them accepted by the destination: ${counts.recipients} different recipients, ` +
        `missing ${MEMBERS - counts.recipients}, sent twice ${counts.duplicates}; ${seconds.toFixed(0)} s in total`,
    );

    expect(counts.recipients).toBe(MEMBERS);
    // One message for each member; a message is sent twice only when the destination accepted it before the outcome
    // was stored.
    expect(counts.ids).toBe(MEMBERS);
    expect(counts.duplicates).toBe(kills.reduce((sum, one) => sum + one.unrecorded, 0));
    for (const { unrecorded, inFlight } of kills) expect(unrecorded).toBeLessThanOrEqual(inFlight);
    expect(campaign.progress).toMatchObject({
      members: MEMBERS,
      queued: MEMBERS,
      skipped: { withoutEmail: 0, notEligible: 0, notRenderable: 0 },
    });
    await audience.check();
    const analytics = await api.get<{ totals: object }>(`/web-setup/campaigns/${campaignId}/analytics`);
    expect(analytics.data.totals).toMatchObject({ queued: MEMBERS, sent: MEMBERS, delivered: MEMBERS });
  });
});

interface CampaignData {
  campaign: { status: string; progress: object };
}
