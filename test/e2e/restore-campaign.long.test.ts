// Long: restores a backup of a campaign to thousands of recipients.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createApiClient } from '../support/api-client.ts';
import { startDaemon } from '../support/daemon.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { startGroup } from '../support/group.ts';
import { LONG_PATIENCE_MS } from '../support/patience.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { startSink } from '../support/smtp-sink.ts';
import { publishPlatform, verifiedDomain } from '../support/verified-domain.ts';
import { startEndpoint } from '../support/webhook-endpoint.ts';

/*
 * A backup is created while a campaign is being sent and webhook calls wait, the original ends, and the backup is
 * restored: no recipient gets the campaign twice, and no event is notified twice.
 *
 *   original ──SMTP──▶ sink, until its destination is paused     webhook ◀── 503 ── original
 *      └─ backup ─▶ restored ──SMTP──▶ sink                      webhook ◀── 200 ── restored
 */
/** The campaign queues at most 2,000 messages ahead: at the backup there are members without a message. */
const MEMBERS = 2300;
const DOMAIN = 'empfang.example';

interface CampaignData {
  campaign: { status: string; progress: { queued: number } };
}
interface Held {
  messages: { messages: number }[];
  webhooks: { deliveries: number }[];
}

describe('a restore with a campaign in progress and webhook calls that wait', () => {
  it('sends each message and notifies each event once', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'postrider-restore-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const [dns, sink, endpoint] = await Promise.all([startDnsServer(), startSink(), startEndpoint(503)]);
    onTestFinished(async () => {
      await sink.close();
      await dns.close();
    });
    publishMailHost(dns, DOMAIN, sink.host);
    const settings = {
      'dns.resolvers': [dns.address],
      'delivery.port': sink.port,
      'delivery.allowPrivateNetworks': true,
      'webhooks.allowPrivateNetworks': true,
      'log.level': 'warn',
    };
    const original = await startDaemon(settings);
    const { api } = original;
    onTestFinished(() => original.stop().catch(expectKilled));
    await verifiedDomain(original, dns, 'kunde.example', { useCaseId: 'mk-local' });
    await verifiedDomain(original, dns, 'shop.example');
    const webhook = { url: endpoint.url, events: ['email_delivered'] };
    expect((await api.post('/web-setup/webhooks', webhook)).status).toBe(201);

    const members = Array.from({ length: MEMBERS }, (_, n) => ({ email: `user${n}@${DOMAIN}` }));
    const { subscriptionGroupId, campaignId } = await startGroup(api, members);
    const mail = { ...SHORT_MAIL, from: 'a@kunde.example', subscriptionGroupId };
    expect((await api.post(`/web-setup/campaigns/${campaignId}/send`, mail)).status).toBe(202);
    const campaignAt = async (client: typeof api) =>
      (await client.get<CampaignData>(`/web-setup/campaigns/${campaignId}`)).data.campaign;
    await eventually('the first messages', () => sink.count >= 50, { ms: LONG_PATIENCE_MS });
    await original.cli('queue', 'pause', '--destination', DOMAIN, '--reason', 'test');
    await eventually(
      'the results and their webhook calls',
      async () =>
        (await original.metric('postrider_deliveries_in_flight')) === 0 &&
        (await api.allEvents({ event: 'email_delivered' })).length === sink.count &&
        endpoint.received.length > 0,
      { ms: LONG_PATIENCE_MS },
    );
    const before = sink.count;
    expect(await campaignAt(api)).toMatchObject({ status: 'sending' });
    const created = JSON.parse(await original.cli('backup', dir, '--include-key', '--json'));
    await original.kill('SIGKILL');
    expect(sink.count).toBe(before);

    const dataDir = join(dir, 'data');
    const restored = JSON.parse(await original.cli('restore', created.path, '--data', dataDir, '--json'));
    expect(restored).toMatchObject({ campaigns: 1, webhookDeliveries: before });
    endpoint.answer(200);
    const second = await startDaemon({ ...settings, 'data.dir': dataDir });
    onTestFinished(() => second.stop());
    const client = createApiClient(second.baseUrl, api);
    await publishPlatform(second, dns);
    await second.cli('queue', 'resume', '--destination', DOMAIN);
    const held: Held = JSON.parse(await second.cli('restore', 'held', '--json'));
    expect(held.messages[0]?.messages).toBe(restored.messages);
    expect(held.webhooks[0]?.deliveries).toBe(before);
    expect(await campaignAt(client)).toMatchObject({ status: 'paused' });
    // Mail that is not held is sent and notified meanwhile; what is held is not.
    const other = await client.send({ ...SHORT_MAIL, from: 'a@shop.example', to: `other@${DOMAIN}` });
    await eventually(
      'the other message and its event',
      () => sink.count === before + 1 && endpoint.taken().length === 1,
    );
    expect(other.status).toBe(200);

    await second.cli('restore', 'release', '--all', '--yes');
    await second.cli('restore', 'release', '--webhooks', '--all', '--yes');
    expect((await client.post(`/web-setup/campaigns/${campaignId}/resume`)).status).toBe(200);
    const total = MEMBERS + 1;
    await eventually('every message', () => sink.count >= total, { ms: LONG_PATIENCE_MS });
    await eventually('every event', () => endpoint.taken().length >= total, { ms: LONG_PATIENCE_MS });
    await eventually('the end of the campaign', async () => (await campaignAt(client)).status === 'sent');
    const recipients = sink.messages.flatMap(({ to }) => to);
    expect(recipients).toHaveLength(total);
    expect(new Set(recipients).size).toBe(total);
    expect(new Set(endpoint.taken()).size).toBe(total);
    expect(endpoint.taken()).toHaveLength(total);
    console.log(
      `${before} of ${MEMBERS} recipients had the campaign at the backup, ${restored.messages} messages and ${before} webhook calls were held: received ${recipients.length}, twice 0`,
    );
  });
});

/** The daemon was killed, so that its stop reports the signal. */
function expectKilled(error: unknown): void {
  expect(String(error)).toContain('the daemon exited with');
}
