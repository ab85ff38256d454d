import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startGroup } from '../support/group.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { startEndpoint } from '../support/webhook-endpoint.ts';

/*
 * A campaign of which a server refuses each twelfth recipient is stopped, also over a kill, and continues with a reason.
 *
 *   test ──HTTP──▶ postrider (kill -9, start) ──SMTP──▶ sink, which does not know dead…@
 */
const MEMBERS = 1200;
const FROM = 'News <news@kunde-news.example>';

let setup: SendingSetup;
beforeAll(async () => {
  setup = await startSendingSetup(
    { 'log.level': 'warn', 'webhooks.allowPrivateNetworks': true },
    {
      script: {
        rcpt: (_, address) => (address.startsWith('dead') ? '550 5.1.1 No such user' : undefined),
      },
    },
  );
  await verifiedDomain(setup.daemon, setup.dns, 'kunde-news.example', { useCaseId: 'mk-local' });
});
afterAll(() => setup?.stop());

interface CampaignData {
  campaign: {
    status: string;
    pausedReason?: string;
    pausedFigures?: { messages: number; events: number; rate: number; limit: number };
    progress: { queued: number };
  };
}

describe('a campaign with 8 % dead addresses', () => {
  it('stops within 400 messages, stays stopped over kill -9, and continues with a reason', async () => {
    const { daemon, sink } = setup;
    const { api } = daemon;
    const endpoint = await startEndpoint();
    const webhook = await api.post('/web-setup/webhooks', {
      url: endpoint.url,
      events: ['campaign_paused', 'sending_resumed'],
    });
    expect(webhook.status, webhook.text).toBe(201);
    const people = Array.from({ length: MEMBERS }, (_, n) => ({
      email: `${n % 12 === 0 ? 'dead' : 'user'}${n}@empfang.example`,
    }));
    const { subscriptionGroupId, campaignId } = await startGroup(api, people);
    const path = `/web-setup/campaigns/${campaignId}`;
    const get = async () => (await api.get<CampaignData>(path)).data.campaign;
    const sent = await api.post(`${path}/send`, { ...SHORT_MAIL, from: FROM, subscriptionGroupId });
    expect(sent.status, sent.text).toBe(202);
    await eventually('the campaign to stop', async () => (await get()).status === 'paused');

    const { pausedReason, pausedFigures } = await get();
    expect(pausedReason).toBe('hard_bounces');
    expect(pausedFigures).toMatchObject({ limit: 5 });
    const totals = async () =>
      (await api.get<{ totals: Record<string, number> }>(`${path}/analytics`)).data.totals;
    await eventually('messages under way to end', async () => {
      const messages = await api.allMessages({ campaignId });
      return messages.every(
        ({ status, heldBecause }) =>
          status !== 'sending' && (status !== 'queued' || heldBecause === 'campaign_paused'),
      );
    });
    const { delivered = 0, bounced = 0 } = await totals();
    console.log(`stopped after ${delivered + bounced} messages, ${bounced} of them bounced`);
    expect(delivered + bounced).toBeLessThanOrEqual(400);
    await daemon.kill('SIGKILL');
    await daemon.restart();
    expect(await get()).toMatchObject({ status: 'paused', pausedReason: 'hard_bounces', pausedFigures });
    expect(sink.count).toBe(delivered);

    const refused = await api.post(`${path}/resume`);
    expect([refused.status, refused.text]).toEqual([
      400,
      expect.stringMatching(/VALIDATION_ERROR.*"reason"/s),
    ]);
    expect((await get()).status).toBe('paused');
    const resumed = await api.post<CampaignData>(`${path}/resume`, { reason: 'The test continues' });
    expect(resumed.status, resumed.text).toBe(200);
    expect(resumed.data.campaign.pausedFigures).toBeUndefined();
    // The others have dead addresses, too: they stop it again with the figures since it was resumed.
    await eventually('the campaign to stop again', async () => (await get()).status === 'paused');
    expect((await get()).pausedFigures?.messages).toBeLessThanOrEqual(400);
    await eventually('the calls of the webhook', () => endpoint.received.length === 3);
    expect(endpoint.received.map(({ json }) => json.type)).toEqual([
      'campaign_paused',
      'sending_resumed',
      'campaign_paused',
    ]);
    expect(endpoint.received[0]?.json.data.object).toMatchObject({
      campaignId,
      reason: 'hard_bounces',
      figures: pausedFigures,
    });
  });
});
