import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { startGroup } from '../support/group.ts';
import { onDisk } from '../support/on-disk.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { type SinkProcess, startSinkProcess } from '../support/sink-process.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * The power goes off, twice, while a campaign goes to 50,000 people.
 *
 *   test ──HTTP──▶ postrider (kill -9, start, kill -9, start) ──SMTP──▶ sink, a process of its own
 *
 * Nobody asks for anything after the one request: the daemon goes on by itself.
 */
const MEMBERS = 50_000;
const DOMAINS = ['eins.example', 'zwei.example', 'drei.example', 'vier.example'];
/** Messages at the sink by then. */
const KILL_AT = [15_000, 35_000];
const LONG_MS = 420_000;

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

describe(`kill -9 in the middle of a campaign to ${MEMBERS} people`, () => {
  it('skips nobody, and repeats at most what was in flight', { timeout: LONG_MS }, async () => {
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
        ms: LONG_MS,
      });
      await daemon.kill('SIGKILL');
      // The sink hears of the dead connections at once; what it took by then, it counts.
      const counts = await eventually('the sink to be alone', async () => {
        const now = await sink.counts();
        return now.open === 0 ? now : null;
      });
      const { delivered, sending } = onDisk(daemon.dataDir);
      kills.push({ at: counts.messages, inHand: sending, unrecorded: counts.ids - delivered });
      await daemon.restart();
    }

    const campaign = await eventually(
      'the campaign to be sent',
      async () => {
        const { data } = await api.get<Shown>(`/web-setup/campaigns/${campaignId}`);
        return data.campaign.status === 'sent' ? data.campaign : null;
      },
      { ms: LONG_MS, everyMs: 250 },
    );
    await eventually(
      'the queue to be empty',
      async () => (await daemon.metric('postrider_queue_messages')) === 0,
      { ms: 60_000 },
    );
    const counts = await sink.counts();
    const seconds = (Date.now() - began) / 1000;
    const each = (number: keyof Kill) => kills.map((kill) => kill[number]).join(' and ');
    console.log(
      `killed after ${each('at')} of ${MEMBERS} messages, with ${each('inHand')} taken from the queue, ` +
        `${each('unrecorded')} of them at the destination already: ${counts.recipients} different recipients, ` +
        `missing ${MEMBERS - counts.recipients}, sent twice ${counts.duplicates}; ${seconds.toFixed(0)} s in all`,
    );

    expect(counts.recipients).toBe(MEMBERS);
    // A message for each, and none beside: what came twice is what the destination had taken, and the disk did not
    // know of yet.
    expect(counts.ids).toBe(MEMBERS);
    expect(counts.duplicates).toBe(kills.reduce((sum, kill) => sum + kill.unrecorded, 0));
    for (const kill of kills) expect(kill.unrecorded).toBeLessThanOrEqual(kill.inHand);
    expect(campaign.progress).toMatchObject({
      members: MEMBERS,
      queued: MEMBERS,
      skipped: { withoutEmail: 0, notEligible: 0, notRenderable: 0 },
    });
    const analytics = await api.get<{ totals: object }>(`/web-setup/campaigns/${campaignId}/analytics`);
    expect(analytics.data.totals).toMatchObject({ queued: MEMBERS, sent: MEMBERS, delivered: MEMBERS });
  });
});

interface Shown {
  campaign: { status: string; progress: object };
}

interface Kill {
  /** Messages at the sink by then. */
  at: number;
  /** Messages taken from the queue, without an outcome on disk. */
  inHand: number;
  /** Of those, the ones that the sink had taken. */
  unrecorded: number;
}
