import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOSTNAME, type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { type Received, startEndpoint } from '../support/webhook-endpoint.ts';

/*
 * Webhook calls of a daemon that is killed and restarted, and calls to forbidden addresses.
 *
 *   test ──HTTP──▶ postrider (kill -9, start, kill -9, start) ──HTTP──▶ endpoints, in this process
 *                      └─ messages to the simulator: two events each, nothing leaves the machine
 */
const MAILS = 100;
const KILL_AT = [40, 120];

let dns: DnsServer;
let daemon: RunningDaemon;

beforeAll(async () => {
  dns = await startDnsServer();
  daemon = await startDaemon({ 'dns.resolvers': [dns.address], 'log.level': 'info' });
  await verifiedDomain(daemon, dns, 'kunde.example');
});
afterAll(async () => {
  await daemon?.stop();
  await dns?.close();
});

interface CreatedWebhook {
  webhookId: string;
  secret: string;
}

const createWebhook = async (url: string, events: string[]) =>
  (await daemon.api.post<CreatedWebhook>('/web-setup/webhooks', { url, events })).data;

const sendTo = async (user: string) => {
  const to = `${user}@simulator.${HOSTNAME}`;
  return (await daemon.api.send({ ...SHORT_MAIL, from: 'a@kunde.example', to })).data.messageId;
};

/** Throws unless the Standard Webhooks library accepts the signature. */
function verify(secret: string, { headers, body }: Received): void {
  new Webhook(secret).verify(body, {
    'webhook-id': String(headers['webhook-id']),
    'webhook-timestamp': String(headers['webhook-timestamp']),
    'webhook-signature': String(headers['webhook-signature']),
  });
}

describe('webhooks', () => {
  it('receive every event, also when the daemon is killed', async () => {
    // Each call takes 2 ms, so that some are in progress when the daemon is killed.
    const endpoint = await startEndpoint(() => new Promise((resolve) => setTimeout(() => resolve(200), 2)));
    const { webhookId, secret } = await createWebhook(endpoint.url, ['email_sent', 'email_delivered']);
    for (let n = 0; n < MAILS; n++) await sendTo(`delivered+${n}`);
    for (const count of KILL_AT) {
      await eventually(`${count} calls`, () => endpoint.received.length >= count, { everyMs: 5 });
      await daemon.kill('SIGKILL');
      await daemon.restart();
    }
    await eventually('a call for each event', () => new Set(endpoint.taken()).size === 2 * MAILS);
    const events = await daemon.api.allEvents();
    const kinds = events.filter(({ event }) => event === 'email_sent' || event === 'email_delivered');
    expect(new Set(endpoint.taken())).toEqual(new Set(kinds.map(({ eventId }) => eventId)));
    for (const call of endpoint.received) verify(secret, call);
    const path = `/web-setup/webhooks/${webhookId}/deliveries?status=pending`;
    await eventually(
      'no delivery to be pending',
      async () => (await daemon.api.get<{ count: number }>(path)).data.count === 0,
    );
    const repeated = endpoint.taken().length - 2 * MAILS;
    console.log(`killed after ${KILL_AT.join(' and ')} calls: lost 0, repeated ${repeated}`);
    // Calls in progress, and calls whose outcome was not yet committed.
    expect(repeated).toBeLessThanOrEqual(KILL_AT.length * 20);
    await daemon.api.call('DELETE', `/web-setup/webhooks/${webhookId}`);
  });

  it('receive events when they were created on the command line', async () => {
    const endpoint = await startEndpoint();
    const account = ['--account', daemon.api.accountId, '--json'];
    const created: CreatedWebhook = JSON.parse(
      await daemon.cli('webhook', 'create', endpoint.url, '--event', 'email_bounced', ...account),
    );
    const messageId = await sendTo('bounced');
    await eventually('the call', () => endpoint.received.length > 0);
    const [call] = endpoint.received;
    expect(call?.json).toMatchObject({
      type: 'email_bounced',
      livemode: false,
      data: { object: { messageId, bounceType: 'hard', to: [`bounced@simulator.${HOSTNAME}`] } },
    });
    if (call !== undefined) verify(created.secret, call);
    await daemon.cli('webhook', 'delete', created.webhookId, ...account);
    await sendTo('bounced');
    const next = await createWebhook(endpoint.url, ['email_bounced']);
    await sendTo('bounced');
    await eventually('the call of the next webhook', () => endpoint.received.length > 1);
    // Two bounces since the deletion: the deleted webhook received neither.
    for (const later of endpoint.received.slice(1)) verify(next.secret, later);
    await daemon.api.call('DELETE', `/web-setup/webhooks/${next.webhookId}`);
  });

  it('are not called at link-local addresses', async () => {
    dns.set('receiver.example', 'A', ['169.254.169.254']);
    const { webhookId } = await createWebhook('http://receiver.example/latest/meta-data/', ['email_sent']);
    const tested = await daemon.api.post<{ delivered: boolean; error: string }>(
      `/web-setup/webhooks/${webhookId}/test`,
    );
    expect(tested.data).toMatchObject({
      delivered: false,
      error: 'receiver.example has no address that webhooks may call',
    });
    const literal = await daemon.api.post('/web-setup/webhooks', {
      url: 'http://2852039166/',
      events: ['*'],
    });
    expect(literal.status).toBe(400);
  });
});
