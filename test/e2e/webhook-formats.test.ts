import { createHmac, createVerify } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOSTNAME, type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { type Received, startEndpoint } from '../support/webhook-endpoint.ts';

/*
 * Programs that send through the endpoints of a provider get its webhooks, with the id that the send returned.
 *
 *   test ──HTTP──▶ postrider /compat/… ──HTTP──▶ endpoint, in this process
 *                      └─ messages to the simulator: nothing leaves the machine
 */
let dns: DnsServer;
let daemon: RunningDaemon;

const ADA = `delivered+ada@simulator.${HOSTNAME}`;
const BOB = `delivered+bob@simulator.${HOSTNAME}`;
const FROM = 'shop@kunde.example';

beforeAll(async () => {
  dns = await startDnsServer();
  daemon = await startDaemon({
    'dns.resolvers': [dns.address],
    'compat.enable': ['postmark', 'resend', 'sendgrid', 'mailgun'],
  });
  await verifiedDomain(daemon, dns, 'kunde.example');
});
afterAll(async () => {
  await daemon?.stop();
  await dns?.close();
});

interface CreatedWebhook {
  webhookId: string;
  secret: string;
  verificationKey?: string;
}

/** Creates a webhook, sends to Ada and Bob, and returns the calls about both, and what the send returned. */
async function exchange(
  format: string,
  path: string,
  request: { headers?: object; body: string | FormData },
) {
  const endpoint = await startEndpoint();
  const webhook = await daemon.api.post<CreatedWebhook>('/web-setup/webhooks', {
    url: endpoint.url,
    events: ['email_delivered'],
    format,
  });
  const key = daemon.api.keys.transactional;
  const response = await fetch(`${daemon.baseUrl}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'x-postmark-server-token': key,
      ...(typeof request.body === 'string' ? { 'content-type': 'application/json' } : {}),
      ...request.headers,
    },
    body: request.body,
  });
  expect(response.ok).toBe(true);
  await eventually('a call about each recipient', () => endpoint.received.length === 2);
  const { webhookId } = webhook.data;
  await daemon.api.call('DELETE', `/web-setup/webhooks/${webhookId}`);
  const text = await response.text();
  const sent: Record<string, string> = text === '' ? {} : JSON.parse(text);
  return { webhook: webhook.data, calls: endpoint.received, sent, response };
}

/** Throws unless the library accepts the signature. Resend verifies with Svix, whose headers differ by their prefix. */
function verify(secret: string, { headers, body }: Received, prefix = 'webhook'): void {
  const names = ['id', 'timestamp', 'signature'];
  const given = names.map((name) => [`webhook-${name}`, String(headers[`${prefix}-${name}`])]);
  new Webhook(secret).verify(body, Object.fromEntries(given));
}

describe('webhooks in the format of a provider', () => {
  it('are those of Postmark', async () => {
    const mail = { From: FROM, To: ADA, Cc: BOB, Subject: 'Order', TextBody: 'Thank you', Tag: 'order' };
    const { calls, sent, webhook } = await exchange('postmark', '/compat/postmark/email', {
      body: JSON.stringify(mail),
    });
    const bodies = calls.map(({ body }) => JSON.parse(body));
    for (const body of bodies)
      expect(body).toMatchObject({ RecordType: 'Delivery', MessageID: sent['MessageID'], Tag: 'order' });
    expect(new Set(bodies.map(({ Recipient }) => Recipient))).toEqual(new Set([ADA, BOB]));
    for (const call of calls) verify(webhook.secret, call);
  });

  it('are those of SendGrid, with its signature', async () => {
    const mail = {
      personalizations: [{ to: [{ email: ADA }], cc: [{ email: BOB }] }],
      from: { email: FROM },
      subject: 'Order',
      content: [{ type: 'text/plain', value: 'Thank you' }],
      custom_args: { order: '7' },
    };
    const { calls, response, webhook } = await exchange('sendgrid', '/compat/sendgrid/v3/mail/send', {
      body: JSON.stringify(mail),
    });
    for (const { body, headers } of calls) {
      expect(JSON.parse(body)).toMatchObject([
        { event: 'delivered', order: '7', sg_message_id: response.headers.get('x-message-id') },
      ]);
      const verifier = createVerify('sha256');
      verifier.update(`${String(headers['x-twilio-email-event-webhook-timestamp'])}${body}`);
      const pem = `-----BEGIN PUBLIC KEY-----\n${webhook.verificationKey}\n-----END PUBLIC KEY-----`;
      const signature = String(headers['x-twilio-email-event-webhook-signature']);
      expect(verifier.verify(pem, signature, 'base64')).toBe(true);
    }
  });

  it('are those of Mailgun, with its signature', async () => {
    const form = new FormData();
    for (const [name, value] of Object.entries({ from: FROM, subject: 'Order', text: 'Thank you' }))
      form.set(name, value);
    for (const to of [ADA, BOB]) form.append('to', to);
    const basic = Buffer.from(`api:${daemon.api.keys.transactional}`).toString('base64');
    const { calls, sent, webhook } = await exchange('mailgun', '/compat/mailgun/v3/kunde.example/messages', {
      headers: { authorization: `Basic ${basic}` },
      body: form,
    });
    for (const { body } of calls) {
      const { signature: signed, 'event-data': data } = JSON.parse(body);
      expect(data.event).toBe('delivered');
      expect(`<${data.message.headers['message-id']}>`).toBe(sent['id']);
      const { timestamp, token, signature } = signed;
      expect(
        createHmac('sha256', webhook.secret)
          .update(timestamp + token)
          .digest('hex'),
      ).toBe(signature);
    }
  });

  it('are those of Resend, with its signature', async () => {
    const mail = { from: FROM, to: [ADA, BOB], subject: 'Order', text: 'Thank you' };
    const { calls, sent, webhook } = await exchange('resend', '/compat/resend/emails', {
      body: JSON.stringify(mail),
    });
    for (const call of calls) {
      verify(webhook.secret, call, 'svix');
      expect(JSON.parse(call.body)).toMatchObject({
        type: 'email.delivered',
        data: { email_id: sent['id'] },
      });
    }
  });

  it('are the events of SES', async () => {
    const mail = { from: FROM, to: [ADA, BOB], subject: 'Order', text: 'Thank you' };
    const { calls, sent, webhook } = await exchange('ses', '/compat/resend/emails', {
      body: JSON.stringify(mail),
    });
    for (const call of calls) {
      verify(webhook.secret, call);
      expect(JSON.parse(call.body)).toMatchObject({ eventType: 'Delivery', mail: { messageId: sent['id'] } });
    }
  });
});
