// Long: kills the daemon several times during a campaign to thousands of recipients.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { startGroup } from '../support/group.ts';
import { onDisk } from '../support/on-disk.ts';
import { LONG_PATIENCE_MS } from '../support/patience.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { type SinkProcess, startSinkProcess } from '../support/sink-process.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * The daemon is killed twice while it sends a campaign to 3,600 recipients; after each start it continues without a
 * request.
 *
 *   test ──HTTP──▶ postrider (kill -9, start, kill -9, start) ──SMTP──▶ sink, a separate process
 */
/** At each kill there are members without a message: the campaign queues at most 2,000 messages ahead. */
const MEMBERS = 3600;
const DOMAINS = ['eins.example', 'zwei.example', 'drei.example', 'vier.example'];
/** Number of messages at the sink. */
const KILL_AT = [600, 1300];

let dns: DnsServer;
let sink: SinkProcess;
let daemon: RunningDaemon;

beforeAll(async () => {
  dns = await startDnsServer();
  sink = await startSinkProcess();
  daemon = await startDaemon({
    'dns.resolvers': [dns.address],
    'delivery.port': sink.port,
    'delivery.allowPrivateNetworks': true,
    'log.level': 'warn',
  });
  for (const domain of DOMAINS) publishMailHost(dns, domain);
  await verifiedDomain(daemon, dns, 'kunde.example', { useCaseId: 'mk-local' });
});
afterAll(async () => {
  await daemon?.stop();
  await sink?.stop();
  await dns?.close();
});

describe(`kill -9 during a campaign to ${MEMBERS} recipients`, () => {
  it('skips no recipient, and repeats at most the messages in flight', async () => {
    const { api } = daemon;
    const members = Array.from({ length: MEMBERS }, (_, n) => ({
      email: `user${n}@${DOMAINS[n % DOMAINS.length]}`,
      firstName: `User ${n}`,
    }));
    const { subscriptionGroupId, campaignId } = await startGroup(api, members);
    const began = Date.now();
    const sent = await api.post(`/web-setup/campaigns/${campaignId}/send`, {
      ...SHORT_MAIL,
      subject: 'Hello {{firstName}}',
      from: 'a@kunde.example',
      subscriptionGroupId,
    });
    expect(sent.status, sent.text).toBe(202);

    const kills: Kill[] = [];
    for (const at of KILL_AT) {
      await eventually(`${at} messages at the sink`, async () => (await sink.counts()).messages >= at, {
        ms: LONG_PATIENCE_MS,
        everyMs: 25,
      });
      await daemon.kill('SIGKILL');
      // Once its connections are closed, the sink has counted everything that it accepted.
      const counts = await eventually('the connections of the sink to be closed', async () => {
        const now = await sink.counts();
        return now.open === 0 ? now : null;
      });
      const { delivered, sending } = onDisk(daemon.dataDir);
      kills.push({ at: counts.messages, inFlight: sending, unrecorded: counts.ids - delivered });
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
    const each = (number: keyof Kill) => kills.map((kill) => kill[number]).join(' and ');
    console.log(
      `killed after ${each('at')} of ${MEMBERS} messages, with ${each('inFlight')} in flight, ` +
        `${each('unrecorded')} of them accepted by the destination: ${counts.recipients} different recipients, ` +
        `missing ${MEMBERS - counts.recipients}, sent twice ${counts.duplicates}; ${seconds.toFixed(0)} s in total`,
    );

    expect(counts.recipients).toBe(MEMBERS);
    // One message for each member; a message is sent twice only when the destination accepted it before the outcome
    // was stored.
    expect(counts.ids).toBe(MEMBERS);
    expect(counts.duplicates).toBe(kills.reduce((sum, kill) => sum + kill.unrecorded, 0));
    for (const kill of kills) expect(kill.unrecorded).toBeLessThanOrEqual(kill.inFlight);
    expect(campaign.progress).toMatchObject({
      members: MEMBERS,
      queued: MEMBERS,
      skipped: { withoutEmail: 0, notEligible: 0, notRenderable: 0 },
    });
    const analytics = await api.get<{ totals: object }>(`/web-setup/campaigns/${campaignId}/analytics`);
    expect(analytics.data.totals).toMatchObject({ queued: MEMBERS, sent: MEMBERS, delivered: MEMBERS });
  });
});

interface CampaignData {
  campaign: { status: string; progress: object };
}

interface Kill {
  /** Number of messages at the sink. */
  at: number;
  /** Messages without an outcome on disk that were taken from the queue. */
  inFlight: number;
  /** Of those, the messages that the sink accepted. */
  unrecorded: number;
}
