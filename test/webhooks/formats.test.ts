import { createHmac, createVerify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { EVENT_KINDS, EVENT_TYPES, type EventKind } from '../../src/events/event-types.ts';
import type { FeedEvent } from '../../src/events/feed.ts';
import {
  hasEvent,
  mailgunSignature,
  type ProviderFormat,
  providerEvent,
  WEBHOOK_FORMATS,
} from '../../src/webhooks/formats.ts';
import { exampleEvent } from '../support/events.ts';
import { granted } from '../support/refusal.ts';
import { enqueue } from '../support/store.ts';
import { type Received, startEndpoint } from '../support/webhook-endpoint.ts';
import { startWebhooks } from './setup.ts';

/* The bodies of calls in the formats of other providers. */

const MESSAGE_ID = 'msg_1769860800000_2w4e6r8t1y3u';
const AT = '2026-02-01T12:00:00.500Z';

/** An event with the example fields of its kind, except for `fields`. */
function event(kind: EventKind, fields: object = {}): FeedEvent {
  const common = {
    eventId: 'evt_1769947200000_5t7y9u2i4o6p',
    event: kind,
    timestamp: AT,
    accountId: 'acct_one',
    livemode: true,
    useCase: 'tx',
    from: 'shop@example.com',
    recipient: 'ada@example.net',
    subject: 'Order',
    tags: ['order', 'new'],
    metadata: { customer: '7', event: 'mine' },
  };
  // Sound: the example has the fields of the kind.
  return { ...common, ...EVENT_TYPES[kind].example, ...fields } as FeedEvent;
}

type Body = Record<string, unknown>;

/** The object of the provider, without what wraps it. */
function bodyOf(format: ProviderFormat, kind: EventKind, fields: object = {}): Body | null {
  const body = providerEvent(format, event(kind, fields), MESSAGE_ID);
  if (Array.isArray(body)) return body[0] as Body;
  if (format === 'mailgun' && body !== null) return (body as { 'event-data': Body })['event-data'];
  return body as Body | null;
}

/** The name of each event, and what belongs to it. */
const NAMES: Record<ProviderFormat, Partial<Record<EventKind, Body>>> = {
  postmark: {
    email_delivered: { RecordType: 'Delivery', Recipient: 'ada@example.net', DeliveredAt: AT, Details: 'OK' },
    email_bounced: {
      RecordType: 'Bounce',
      Type: 'HardBounce',
      TypeCode: 1,
      Email: 'ada@example.net',
      BouncedAt: AT,
      Details: 'No such user',
      Inactive: true,
    },
    email_rejected: { RecordType: 'Bounce', Type: 'Blocked', TypeCode: 100_006, Inactive: false },
    email_failed: { RecordType: 'Bounce', Type: 'SoftBounce', Details: 'connection timed out' },
    email_complained: { RecordType: 'SpamComplaint', Type: 'SpamComplaint', TypeCode: 100_001 },
    email_opened: { RecordType: 'Open', FirstOpen: true, UserAgent: 'Example/1.0' },
    email_clicked: { RecordType: 'Click', OriginalLink: 'https://example.com/', ClickLocation: 'HTML' },
    email_unsubscribed: { RecordType: 'SubscriptionChange', SuppressSending: true, Origin: 'Recipient' },
    email_received: {
      RecordType: 'Inbound',
      From: 'grace@example.net',
      TextBody: 'Thank you, it arrived.\n',
    },
  },
  sendgrid: {
    email_sent: { event: 'processed' },
    email_delivered: { event: 'delivered', response: '250 2.0.0 OK', tls: 1 },
    email_delayed: { event: 'deferred', attempt: '1' },
    email_bounced: {
      event: 'bounce',
      type: 'bounce',
      status: '5.1.1',
      bounce_classification: 'Invalid Address',
    },
    email_rejected: { event: 'bounce', type: 'blocked', bounce_classification: 'Content' },
    email_failed: { event: 'bounce', type: 'blocked', reason: 'connection timed out' },
    email_suppressed: { event: 'dropped', reason: 'Bounced Address' },
    email_complained: { event: 'spamreport' },
    email_opened: { event: 'open', sg_machine_open: false, useragent: 'Example/1.0', ip: '192.0.2.1' },
    email_clicked: { event: 'click', url: 'https://example.com/' },
    email_unsubscribed: { event: 'unsubscribe' },
  },
  mailgun: {
    email_sent: { event: 'accepted' },
    email_delivered: { event: 'delivered', 'log-level': 'info' },
    email_delayed: { event: 'failed', severity: 'temporary' },
    email_bounced: {
      event: 'failed',
      severity: 'permanent',
      reason: 'bounce',
      'delivery-status': { code: 550, 'enhanced-code': '5.1.1', message: 'No such user', description: '' },
    },
    email_rejected: { event: 'failed', severity: 'permanent' },
    email_failed: { event: 'failed', severity: 'permanent', reason: 'old' },
    email_suppressed: { event: 'failed', severity: 'permanent', reason: 'suppress-bounce' },
    email_complained: { event: 'complained' },
    email_opened: { event: 'opened', ip: '192.0.2.1' },
    email_clicked: { event: 'clicked', url: 'https://example.com/' },
    email_unsubscribed: { event: 'unsubscribed' },
  },
  resend: {
    email_sent: { type: 'email.sent' },
    email_delivered: { type: 'email.delivered' },
    email_delayed: { type: 'email.delivery_delayed' },
    email_bounced: { type: 'email.bounced' },
    email_rejected: { type: 'email.bounced' },
    email_failed: { type: 'email.failed' },
    email_suppressed: { type: 'email.suppressed' },
    email_complained: { type: 'email.complained' },
    email_opened: { type: 'email.opened' },
    email_clicked: { type: 'email.clicked' },
    email_received: { type: 'email.received' },
  },
  ses: {
    email_sent: { eventType: 'Send', send: {} },
    email_delivered: { eventType: 'Delivery' },
    email_delayed: { eventType: 'DeliveryDelay' },
    email_bounced: { eventType: 'Bounce' },
    email_rejected: { eventType: 'Bounce' },
    email_failed: { eventType: 'Bounce' },
    email_suppressed: { eventType: 'Bounce' },
    email_complained: { eventType: 'Complaint' },
    email_opened: { eventType: 'Open' },
    email_clicked: { eventType: 'Click' },
  },
};

const FORMATS = WEBHOOK_FORMATS.filter((format) => format !== 'postrider');

describe.each(FORMATS)('the format %s', (format) => {
  it.each(EVENT_KINDS)('has the body of %s, or none', (kind) => {
    const expected = NAMES[format][kind];
    expect(hasEvent(format, kind)).toBe(expected !== undefined);
    const body = bodyOf(format, kind);
    if (expected === undefined) expect(body).toBeNull();
    else expect(body).toMatchObject(expected);
  });
});

describe('a body', () => {
  it('has the id of the send, tags and metadata where the provider has them', () => {
    expect(bodyOf('postmark', 'email_bounced')).toMatchObject({
      MessageID: MESSAGE_ID,
      MessageStream: 'outbound',
      Tag: 'order',
      Metadata: { customer: '7' },
      ID: expect.any(Number),
    });
    expect(bodyOf('sendgrid', 'email_delivered')).toMatchObject({
      sg_message_id: MESSAGE_ID,
      sg_event_id: 'evt_1769947200000_5t7y9u2i4o6p',
      email: 'ada@example.net',
      timestamp: 1_769_947_200,
      category: ['order', 'new'],
      customer: '7',
      // Metadata does not replace fields of the event.
      event: 'delivered',
    });
    expect(bodyOf('mailgun', 'email_delivered')).toMatchObject({
      id: 'evt_1769947200000_5t7y9u2i4o6p',
      timestamp: 1_769_947_200.5,
      recipient: 'ada@example.net',
      message: { headers: { 'message-id': `${MESSAGE_ID}@example.com`, subject: 'Order' } },
      tags: ['order', 'new'],
      'user-variables': { customer: '7' },
      flags: { 'is-test-mode': false },
    });
    expect(bodyOf('resend', 'email_delivered')).toEqual({
      type: 'email.delivered',
      created_at: AT,
      data: {
        created_at: AT,
        email_id: MESSAGE_ID,
        from: 'shop@example.com',
        to: ['ada@example.net'],
        subject: 'Order',
        tags: { customer: '7', event: 'mine' },
      },
    });
    expect(bodyOf('ses', 'email_bounced')).toMatchObject({
      bounce: {
        bounceType: 'Permanent',
        bounceSubType: 'General',
        bouncedRecipients: [
          {
            emailAddress: 'ada@example.net',
            action: 'failed',
            status: '5.1.1',
            diagnosticCode: 'smtp; 550 5.1.1 No such user',
          },
        ],
        feedbackId: 'evt_1769947200000_5t7y9u2i4o6p',
      },
      mail: { messageId: MESSAGE_ID, destination: ['ada@example.net'], tags: { customer: ['7'] } },
    });
  });

  it('states soft and blocked bounces as the provider does', () => {
    const soft = { bounceType: 'soft', classification: 'mailbox-full', suppressed: false };
    expect(bodyOf('postmark', 'email_bounced', soft)).toMatchObject({ Type: 'SoftBounce', Inactive: false });
    expect(bodyOf('sendgrid', 'email_bounced', soft)).toMatchObject({ type: 'blocked' });
    const bounce = { bounceType: 'Transient', bounceSubType: 'MailboxFull' };
    expect(bodyOf('ses', 'email_bounced', soft)).toMatchObject({ bounce });
    expect(bodyOf('resend', 'email_bounced', soft)).toMatchObject({
      data: { bounce: { type: 'Transient', subType: 'MailboxFull' } },
    });
    const cancelled = { reason: 'cancelled' };
    expect(bodyOf('postmark', 'email_failed', cancelled)).toMatchObject({ Type: 'Unknown' });
    expect(bodyOf('sendgrid', 'email_failed', cancelled)).toMatchObject({ event: 'dropped' });
    expect(bodyOf('ses', 'email_failed', cancelled)).toMatchObject({ eventType: 'Reject' });
  });

  it.each(FORMATS)('of an event without a message has no id in the format %s', (format) => {
    const { recipient: _, from: __, ...withoutMessage } = event('email_complained');
    const body = JSON.stringify(providerEvent(format, withoutMessage as FeedEvent, null));
    expect(body).not.toContain('msg_');
    expect(body).not.toContain('undefined');
  });
});

async function start(format: ProviderFormat) {
  const env = await startWebhooks();
  const endpoint = await startEndpoint();
  const webhook = granted(await env.webhooks.create('acct_one', { url: endpoint.url, events: '*', format }));
  /** The call about a message that was opened. */
  const call = async (): Promise<Received> => {
    await env.writer.run((tx) => {
      const message = enqueue(tx, env.clock.now());
      env.recorder.message(tx, message, exampleEvent('email_opened'));
    });
    await env.sendDue();
    const received = endpoint.received.at(-1);
    if (received === undefined) throw new Error('There was no call');
    return received;
  };
  return { ...env, endpoint, webhook, call };
}

describe('a webhook in the format of a provider', () => {
  it('gets only the events for which there is a name, and shows them', async () => {
    const { webhook, webhooks, call, endpoint, sent, sendDue } = await start('postmark');
    expect(webhook).toMatchObject({ format: 'postmark', events: Object.keys(NAMES.postmark) });
    await sent();
    await sendDue();
    expect(endpoint.received).toEqual([]);
    expect((await call()).json).toMatchObject({ RecordType: 'Open' });
    const { webhookId } = webhook;
    const update = (patch: object) => webhooks.update('acct_one', webhookId, patch);
    expect(granted(await update({ format: 'ses', events: ['email_sent', 'domain_failed'] }))).toMatchObject({
      events: ['email_sent'],
    });
    expect(await update({ format: 'postmark' })).toMatchObject({
      code: 'VALIDATION_ERROR',
      extras: { details: [{ field: 'events' }] },
    });
    const own = granted(await update({ format: 'postrider', events: '*' }));
    expect(own).not.toHaveProperty('format');
    expect(own.events).toEqual(['*']);
  });

  it('refuses to be created with events without a name only, and to test one', async () => {
    const { webhooks, webhook, endpoint } = await start('ses');
    const input = { url: endpoint.url, events: ['domain_failed', 'email_received'], format: 'ses' } as const;
    expect(await webhooks.create('acct_one', input)).toMatchObject({
      extras: { details: [{ field: 'events' }] },
    });
    expect(webhooks.list('acct_one')).toHaveLength(1);
    const { signal } = new AbortController();
    expect(await webhooks.test('acct_one', webhook.webhookId, 'domain_failed', signal)).toMatchObject({
      extras: { details: [{ field: 'event' }] },
    });
  });

  it('does not call for a route whose mail the format has no name for, and shows why', async () => {
    const { webhook, webhooks, writer, recorder, sendDue, endpoint } = await start('sendgrid');
    await writer.run((tx) =>
      recorder.received(tx, 'acct_one', EVENT_TYPES.email_received.example, webhook.webhookId),
    );
    await sendDue();
    expect(endpoint.received).toEqual([]);
    const { deliveries } = granted(
      await webhooks.deliveries('acct_one', webhook.webhookId, { beforeSeq: null, limit: 10 }),
    );
    expect(deliveries).toMatchObject([
      { status: 'failed', error: 'the format sendgrid has no event email_received' },
    ]);
  });

  it('is signed for the SDK of SendGrid, and also as Standard Webhooks', async () => {
    const { webhook, call } = await start('sendgrid');
    const { headers, body } = await call();
    const { verificationKey } = webhook;
    const verifier = createVerify('sha256');
    verifier.update(`${String(headers['x-twilio-email-event-webhook-timestamp'])}${body}`);
    const publicKey = `-----BEGIN PUBLIC KEY-----\n${String(verificationKey)}\n-----END PUBLIC KEY-----`;
    const signature = String(headers['x-twilio-email-event-webhook-signature']);
    expect(verifier.verify(publicKey, signature, 'base64')).toBe(true);
    expect(headers).toMatchObject({ 'webhook-signature': expect.stringMatching(/^v1,/) });
  });

  it('is signed for the SDK of Mailgun, with another token for each call', async () => {
    const { webhook, endpoint, call } = await start('mailgun');
    await call();
    await call();
    const signatures = endpoint.received.map(({ body }) => {
      const { timestamp, token, signature } = (JSON.parse(body) as { signature: Record<string, string> })
        .signature;
      const expected = createHmac('sha256', webhook.secret).update(`${timestamp}${token}`).digest('hex');
      expect(signature).toBe(expected);
      return token;
    });
    expect(new Set(signatures).size).toBe(2);
  });

  it('has the headers of Svix in the format of Resend', async () => {
    const { call } = await start('resend');
    const { headers } = await call();
    for (const name of ['id', 'timestamp', 'signature'])
      expect(headers[`svix-${name}`]).toBe(headers[`webhook-${name}`]);
  });

  it('has the id of the first message of a send in events of all its recipients', async () => {
    const { writer, clock, recorder, sendDue, endpoint } = await start('postmark');
    const sent = await writer.run((tx) => {
      const first = enqueue(tx, clock.now());
      const content_id = first.content_id;
      const second = enqueue(tx, clock.now(), { content_id });
      // The id of a content can be assigned again.
      const later = enqueue(tx, clock.now() + 1, { content_id });
      for (const message of [second, later]) recorder.message(tx, message, exampleEvent('email_opened'));
      return { first, later };
    });
    await sendDue();
    const ids = endpoint.received.map(({ body }) => JSON.parse(body).MessageID);
    expect(ids).toHaveLength(2);
    expect(new Set(ids)).toEqual(new Set([sent.first.message_id, sent.later.message_id]));
  });
});

it('signs with the secret as the API presents it', () => {
  const key = Buffer.alloc(32, 1);
  const signed = mailgunSignature(key, Buffer.alloc(25), 1_769_947_200_500);
  expect(signed).toMatchObject({ timestamp: '1769947200', token: '0'.repeat(50) });
});
