import { createECDH, createHash, createPrivateKey, createPublicKey, hkdfSync, sign } from 'node:crypto';
import { mac } from '../core/seal.ts';
import type { FeedEvent } from '../events/feed.ts';
import { domainOf } from '../mail/address.ts';
import type { BounceClass, BounceType } from '../mail/classify/rules.ts';
import { presentSecret } from './secrets.ts';

/*
 * The bodies and signatures of the webhooks of other providers, so that a program which receives those needs another address
 * and another secret only. Each provider is one table: what it calls an event of ours, and the fields that it has. Events
 * without an entry have no equivalent, and are not sent in that format.
 */

export const WEBHOOK_FORMATS = ['postrider', 'postmark', 'sendgrid', 'mailgun', 'resend', 'ses'] as const;
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number];
export type ProviderFormat = Exclude<WebhookFormat, 'postrider'>;

type Kind = FeedEvent['event'];
type Of<K extends Kind> = Extract<FeedEvent, { event: K }>;

/** What a body is about beyond the event. */
interface Mail {
  /**
   * The id that the send returned: that of its first recipient, also in events of the others, because other providers have one
   * id for a mail. '' for an event without a message.
   */
  messageId: string;
  recipient: string;
  from: string;
  subject: string;
  tags: readonly string[];
  metadata: Readonly<Record<string, string>>;
  /** Unix seconds. */
  seconds: number;
}

/** The object of the provider for the events of each kind. */
type Table = { readonly [K in Kind]?: (event: Of<K>, mail: Mail) => object };

type Failure = Of<'email_bounced'> | Of<'email_rejected'> | Of<'email_failed'>;

/* Postmark: https://postmarkapp.com/developer/webhooks/webhooks-overview */

const POSTMARK: Table = {
  email_delivered: (event, mail) => ({
    RecordType: 'Delivery',
    ...postmarkMail(event, mail),
    Recipient: mail.recipient,
    DeliveredAt: event.timestamp,
    Details: event.diagnostic,
  }),
  email_bounced: (event, mail) => postmarkBounce(event, mail, POSTMARK_TYPES[event.bounceType]),
  email_rejected: (event, mail) => postmarkBounce(event, mail, 'Blocked'),
  email_failed: (event, mail) =>
    postmarkBounce(event, mail, event.reason === 'expired' ? 'SoftBounce' : 'Unknown'),
  email_complained: (event, mail) => postmarkBounce(event, mail, 'SpamComplaint'),
  email_opened: (event, mail) => ({
    RecordType: 'Open',
    ...postmarkVisit(event, mail),
    FirstOpen: event.isFirst,
  }),
  email_clicked: (event, mail) => ({
    RecordType: 'Click',
    ...postmarkVisit(event, mail),
    ClickLocation: 'HTML',
    OriginalLink: event.url,
  }),
  email_unsubscribed: (event, mail) => ({
    RecordType: 'SubscriptionChange',
    ...postmarkMail(event, mail),
    Recipient: mail.recipient,
    ChangedAt: event.timestamp,
    Origin: 'Recipient',
    SuppressSending: true,
    SuppressionReason: 'ManualSuppression',
  }),
  email_received: (event) => ({
    RecordType: 'Inbound',
    MessageStream: 'inbound',
    MessageID: event.inboundId,
    Date: event.timestamp,
    From: event.from,
    FromName: '',
    FromFull: { Email: event.from, Name: '', MailboxHash: '' },
    To: event.to.join(', '),
    ToFull: event.to.map((Email) => ({ Email, Name: '', MailboxHash: '' })),
    Cc: '',
    CcFull: [],
    Bcc: '',
    BccFull: [],
    OriginalRecipient: event.to[0] ?? '',
    ReplyTo: '',
    Subject: event.subject,
    TextBody: event.text,
    HtmlBody: '',
    Headers: [],
    // Without `Content`: an address in its place.
    Attachments: event.attachments.map(({ name, type, size, url }) => ({
      Name: name,
      ContentType: type,
      ContentLength: size,
      Url: url,
    })),
  }),
};

/** https://postmarkapp.com/developer/api/bounce-api#bounce-types */
const POSTMARK_CODES = {
  HardBounce: [1, 'Hard bounce'],
  SoftBounce: [4096, 'Soft bounce'],
  Unknown: [2048, 'Unknown'],
  SpamComplaint: [100_001, 'Spam complaint'],
  Blocked: [100_006, 'ISP block'],
} as const;
const POSTMARK_TYPES = { hard: 'HardBounce', soft: 'SoftBounce', block: 'Blocked' } as const;

function postmarkMail({ useCase }: FeedEvent, { messageId, tags, metadata }: Mail) {
  return {
    MessageID: messageId === '' ? null : messageId,
    MessageStream: useCase === 'mk' ? 'broadcast' : 'outbound',
    Tag: tags[0] ?? '',
    Metadata: metadata,
  };
}

function postmarkBounce(
  event: Failure | Of<'email_complained'>,
  mail: Mail,
  type: keyof typeof POSTMARK_CODES,
) {
  const [code, name] = POSTMARK_CODES[type];
  return {
    RecordType: type === 'SpamComplaint' ? type : 'Bounce',
    ID: numberOf(event),
    Type: type,
    TypeCode: code,
    Name: name,
    ...postmarkMail(event, mail),
    Email: mail.recipient,
    From: mail.from,
    Subject: mail.subject,
    BouncedAt: event.timestamp,
    Description: name,
    Details: event.event === 'email_complained' ? event.feedbackType : diagnosticOf(event),
    Inactive: 'suppressed' in event && event.suppressed === true,
    DumpAvailable: false,
    CanActivate: 'suppressed' in event && event.suppressed === true && type !== 'SpamComplaint',
  };
}

function postmarkVisit(event: Of<'email_opened'> | Of<'email_clicked'>, mail: Mail) {
  return {
    ...postmarkMail(event, mail),
    Recipient: mail.recipient,
    ReceivedAt: event.timestamp,
    UserAgent: event.userAgent ?? '',
    Geo: event.ip === undefined ? {} : { IP: event.ip },
    Client: {},
    OS: {},
    Platform: 'Unknown',
  };
}

/* SendGrid: https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event */

const SENDGRID: Table = {
  email_sent: (event, mail) => sendgridEvent(event, mail, 'processed'),
  email_delivered: (event, mail) => ({
    ...sendgridEvent(event, mail, 'delivered'),
    response: responseOf(event),
    tls: typeof event.tls === 'string' ? 1 : 0,
  }),
  email_delayed: (event, mail) => ({
    ...sendgridEvent(event, mail, 'deferred'),
    response: responseOf(event),
    attempt: String(event.attempt ?? 1),
  }),
  email_bounced: (event, mail) =>
    sendgridBounce(event, mail, event.bounceType === 'hard' ? 'bounce' : 'blocked'),
  email_rejected: (event, mail) => sendgridBounce(event, mail, 'blocked'),
  email_failed: (event, mail) =>
    event.reason === 'expired'
      ? sendgridBounce(event, mail, 'blocked')
      : { ...sendgridEvent(event, mail, 'dropped'), reason: diagnosticOf(event), status: '5.0.0' },
  email_suppressed: (event, mail) => ({
    ...sendgridEvent(event, mail, 'dropped'),
    reason: SENDGRID_DROPS[event.reason] ?? 'Unsubscribed Address',
    status: '5.0.0',
  }),
  email_complained: (event, mail) => sendgridEvent(event, mail, 'spamreport'),
  email_opened: (event, mail) => ({
    ...sendgridEvent(event, mail, 'open'),
    ...sendgridVisit(event),
    sg_machine_open: event.isBot || event.isProxy,
  }),
  email_clicked: (event, mail) => ({
    ...sendgridEvent(event, mail, 'click'),
    ...sendgridVisit(event),
    url: event.url,
  }),
  email_unsubscribed: (event, mail) => ({
    ...sendgridEvent(event, mail, 'unsubscribe'),
    ...sendgridVisit(event),
  }),
};

const SENDGRID_DROPS: Partial<Record<Of<'email_suppressed'>['reason'], string>> = {
  hard_bounce: 'Bounced Address',
  bounced: 'Bounced Address',
  complaint: 'Spam Reporting Address',
  complained: 'Spam Reporting Address',
};

function sendgridEvent(event: FeedEvent, mail: Mail, name: string) {
  return {
    // They are fields of the event there; those of SendGrid win.
    ...mail.metadata,
    email: mail.recipient,
    timestamp: mail.seconds,
    event: name,
    sg_event_id: event.eventId,
    ...(mail.messageId === '' ? {} : { sg_message_id: mail.messageId }),
    ...(mail.tags.length === 0 ? {} : { category: mail.tags }),
  };
}

function sendgridBounce(event: Failure, mail: Mail, type: 'bounce' | 'blocked') {
  return {
    ...sendgridEvent(event, mail, 'bounce'),
    type,
    reason: diagnosticOf(event),
    status: statusOf(event),
    bounce_classification: SENDGRID_CLASSES[event.classification ?? 'unclassified'] ?? 'Unclassified',
  };
}

const SENDGRID_CLASSES: Partial<Record<BounceClass, string>> = {
  'invalid-recipient': 'Invalid Address',
  'invalid-domain': 'Invalid Address',
  'inactive-mailbox': 'Mailbox Unavailable',
  'mailbox-full': 'Mailbox Unavailable',
  'message-too-large': 'Content',
  'content-rejected': 'Content',
  'spam-block': 'Content',
  'policy-block': 'Reputation',
  'reputation-block': 'Reputation',
  'rate-limited': 'Frequency or Volume Too High',
  'authentication-failed': 'Technical Failure',
  'network-error': 'Technical Failure',
  'tls-failed': 'Technical Failure',
  'protocol-error': 'Technical Failure',
  'server-error': 'Technical Failure',
  'routing-loop': 'Technical Failure',
};

function sendgridVisit({ ip, userAgent }: { ip?: string | undefined; userAgent?: string | undefined }) {
  return {
    ...(ip === undefined ? {} : { ip }),
    ...(userAgent === undefined ? {} : { useragent: userAgent }),
  };
}

/* Mailgun: https://documentation.mailgun.com/docs/mailgun/user-manual/events/events */

const MAILGUN: Table = {
  email_sent: (event, mail) => mailgunEvent(event, mail, 'accepted'),
  email_delivered: (event, mail) => ({
    ...mailgunEvent(event, mail, 'delivered'),
    'delivery-status': {
      ...mailgunStatus(event),
      'mx-host': event.remoteHost ?? '',
      tls: typeof event.tls === 'string',
    },
  }),
  email_delayed: (event, mail) => ({
    ...mailgunEvent(event, mail, 'failed', 'warn'),
    severity: 'temporary',
    reason: 'generic',
    'delivery-status': { ...mailgunStatus(event), 'attempt-no': event.attempt ?? 1 },
  }),
  email_bounced: (event, mail) => mailgunFailure(event, mail, 'bounce'),
  email_rejected: (event, mail) => mailgunFailure(event, mail, 'bounce'),
  email_failed: (event, mail) => mailgunFailure(event, mail, event.reason === 'expired' ? 'old' : 'generic'),
  email_suppressed: (event, mail) => ({
    ...mailgunEvent(event, mail, 'failed', 'error'),
    severity: 'permanent',
    reason: MAILGUN_SUPPRESSIONS[event.reason] ?? 'suppress-unsubscribe',
    'delivery-status': { code: 605, message: '', description: `Not sent: ${event.reason}`, 'attempt-no': 0 },
  }),
  email_complained: (event, mail) => mailgunEvent(event, mail, 'complained', 'warn'),
  email_opened: (event, mail) => ({ ...mailgunEvent(event, mail, 'opened'), ...mailgunVisit(event) }),
  email_clicked: (event, mail) => ({
    ...mailgunEvent(event, mail, 'clicked'),
    ...mailgunVisit(event),
    url: event.url,
  }),
  email_unsubscribed: (event, mail) => ({
    ...mailgunEvent(event, mail, 'unsubscribed'),
    ...mailgunVisit(event),
  }),
};

const MAILGUN_SUPPRESSIONS: Partial<Record<Of<'email_suppressed'>['reason'], string>> = {
  hard_bounce: 'suppress-bounce',
  bounced: 'suppress-bounce',
  complaint: 'suppress-complaint',
  complained: 'suppress-complaint',
};

function mailgunEvent(event: FeedEvent, mail: Mail, name: string, level = 'info') {
  const { messageId, recipient, from, subject } = mail;
  return {
    event: name,
    id: event.eventId,
    timestamp: Date.parse(event.timestamp) / 1000,
    'log-level': level,
    recipient,
    'recipient-domain': domainOf(recipient),
    message: {
      // As the response to the send, without its angle brackets.
      headers: {
        ...(messageId === '' ? {} : { 'message-id': `${messageId}@${domainOf(from)}` }),
        from,
        to: recipient,
        subject,
      },
      attachments: [],
    },
    envelope: { sender: from, targets: recipient, transport: 'smtp' },
    tags: mail.tags,
    'user-variables': mail.metadata,
    campaigns: [],
    flags: { 'is-test-mode': !event.livemode },
  };
}

function mailgunFailure(event: Failure, mail: Mail, reason: string) {
  return {
    ...mailgunEvent(event, mail, 'failed', 'error'),
    severity: 'permanent',
    reason,
    'delivery-status': mailgunStatus(event),
  };
}

function mailgunStatus(event: Failure | Of<'email_delivered'> | Of<'email_delayed'>) {
  return {
    code: event.smtpCode ?? 0,
    'enhanced-code': event.enhancedCode ?? '',
    message: event.event === 'email_delivered' ? event.diagnostic : diagnosticOf(event),
    description: '',
  };
}

function mailgunVisit({ ip, userAgent }: { ip?: string | undefined; userAgent?: string | undefined }) {
  return {
    ...(ip === undefined ? {} : { ip }),
    geolocation: {},
    'client-info': { 'user-agent': userAgent ?? '' },
  };
}

/* Resend: https://resend.com/docs/webhooks/event-types */

const RESEND: Table = {
  email_sent: (event, mail) => resendEmail(event, mail, 'email.sent'),
  email_delivered: (event, mail) => resendEmail(event, mail, 'email.delivered'),
  email_delayed: (event, mail) => resendEmail(event, mail, 'email.delivery_delayed'),
  email_bounced: (event, mail) => resendBounce(event, mail, event.bounceType),
  email_rejected: (event, mail) => resendBounce(event, mail, 'block'),
  email_failed: (event, mail) =>
    resendEmail(event, mail, 'email.failed', { failed: { reason: event.reason } }),
  email_suppressed: (event, mail) =>
    resendEmail(event, mail, 'email.suppressed', {
      suppressed: { type: 'OnAccountSuppressionList', message: event.reason },
    }),
  email_complained: (event, mail) => resendEmail(event, mail, 'email.complained'),
  email_opened: (event, mail) => resendEmail(event, mail, 'email.opened', { open: resendVisit(event) }),
  email_clicked: (event, mail) =>
    resendEmail(event, mail, 'email.clicked', { click: { ...resendVisit(event), link: event.url } }),
  email_received: (event) => ({
    type: 'email.received',
    created_at: event.timestamp,
    data: {
      email_id: event.inboundId,
      created_at: event.timestamp,
      from: event.from,
      to: event.to,
      cc: [],
      bcc: [],
      subject: event.subject,
      attachments: event.attachments.map(({ name, type, url }, index) => ({
        id: String(index),
        filename: name,
        content_type: type,
        url,
      })),
    },
  }),
};

function resendEmail(event: FeedEvent, mail: Mail, type: string, more: object = {}) {
  return {
    type,
    created_at: event.timestamp,
    data: {
      created_at: event.timestamp,
      ...(mail.messageId === '' ? {} : { email_id: mail.messageId }),
      from: mail.from,
      to: [mail.recipient],
      subject: mail.subject,
      // Tags there are pairs.
      ...(Object.keys(mail.metadata).length === 0 ? {} : { tags: mail.metadata }),
      ...more,
    },
  };
}

function resendBounce(event: Failure, mail: Mail, type: BounceType) {
  const bounce = {
    message: diagnosticOf(event),
    type: type === 'hard' ? 'Permanent' : 'Transient',
    subType: sesSubType(event),
  };
  return resendEmail(event, mail, 'email.bounced', { bounce });
}

function resendVisit(event: Of<'email_opened'> | Of<'email_clicked'>) {
  return { ipAddress: event.ip ?? '', timestamp: event.timestamp, userAgent: event.userAgent ?? '' };
}

/* Amazon SES, event publishing: https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html */

const SES: Table = {
  email_sent: (event, mail) => sesEvent(event, mail, 'Send', { send: {} }),
  email_delivered: (event, mail) =>
    sesEvent(event, mail, 'Delivery', {
      delivery: {
        timestamp: event.timestamp,
        recipients: [mail.recipient],
        smtpResponse: responseOf(event),
        reportingMTA: event.remoteHost ?? '',
      },
    }),
  email_delayed: (event, mail) =>
    sesEvent(event, mail, 'DeliveryDelay', {
      deliveryDelay: {
        timestamp: event.timestamp,
        delayType: event.classification === 'mailbox-full' ? 'MailboxFull' : 'TransientCommunicationFailure',
        delayedRecipients: [sesRecipient(event, mail)],
      },
    }),
  email_bounced: (event, mail) =>
    sesBounce(event, mail, event.bounceType === 'hard' ? 'Permanent' : 'Transient'),
  email_rejected: (event, mail) => sesBounce(event, mail, 'Transient'),
  email_failed: (event, mail) =>
    event.reason === 'expired'
      ? sesBounce(event, mail, 'Transient')
      : sesEvent(event, mail, 'Reject', { reject: { reason: event.reason } }),
  email_suppressed: (event, mail) =>
    sesEvent(event, mail, 'Bounce', {
      bounce: {
        bounceType: 'Permanent',
        bounceSubType: 'OnAccountSuppressionList',
        bouncedRecipients: [
          { emailAddress: mail.recipient, action: 'failed', status: '5.1.1', diagnosticCode: event.reason },
        ],
        timestamp: event.timestamp,
        feedbackId: event.eventId,
      },
    }),
  email_complained: (event, mail) =>
    sesEvent(event, mail, 'Complaint', {
      complaint: {
        complainedRecipients: [{ emailAddress: mail.recipient }],
        timestamp: event.timestamp,
        feedbackId: event.eventId,
        complaintFeedbackType: event.feedbackType,
        userAgent: event.userAgent ?? '',
      },
    }),
  email_opened: (event, mail) => sesEvent(event, mail, 'Open', { open: resendVisit(event) }),
  email_clicked: (event, mail) =>
    sesEvent(event, mail, 'Click', { click: { ...resendVisit(event), link: event.url, linkTags: null } }),
};

function sesEvent(event: FeedEvent, mail: Mail, eventType: string, more: object) {
  const tags = Object.entries(mail.metadata).map(([name, value]) => [name, [value]]);
  return {
    eventType,
    mail: {
      timestamp: event.timestamp,
      source: mail.from,
      ...(mail.messageId === '' ? {} : { messageId: mail.messageId }),
      destination: [mail.recipient],
      headersTruncated: false,
      headers: [],
      commonHeaders: { from: [mail.from], to: [mail.recipient], subject: mail.subject },
      tags: Object.fromEntries(tags),
    },
    ...more,
  };
}

function sesBounce(event: Failure, mail: Mail, bounceType: 'Permanent' | 'Transient') {
  return sesEvent(event, mail, 'Bounce', {
    bounce: {
      bounceType,
      bounceSubType: sesSubType(event),
      bouncedRecipients: [{ ...sesRecipient(event, mail), action: 'failed' }],
      timestamp: event.timestamp,
      feedbackId: event.eventId,
    },
  });
}

function sesRecipient(event: Failure | Of<'email_delayed'>, { recipient }: Mail) {
  return {
    emailAddress: recipient,
    status: statusOf(event),
    diagnosticCode: `smtp; ${responseOf(event)}`,
  };
}

const SES_SUBTYPES: Partial<Record<BounceClass, string>> = {
  'mailbox-full': 'MailboxFull',
  'message-too-large': 'MessageTooLarge',
  'content-rejected': 'ContentRejected',
  'spam-block': 'ContentRejected',
};

function sesSubType({ classification }: Failure): string {
  return SES_SUBTYPES[classification ?? 'unclassified'] ?? 'General';
}

/* Fields of several formats. */

function diagnosticOf(event: Failure | Of<'email_delayed'>): string {
  if (event.event !== 'email_failed') return event.diagnostic;
  return event.diagnostic ?? event.lastDiagnostic ?? event.reason;
}

/** The reply of the server on one line, such as `550 5.1.1 No such user`. */
function responseOf(event: Failure | Of<'email_delayed'> | Of<'email_delivered'>): string {
  const text = event.event === 'email_delivered' ? event.diagnostic : diagnosticOf(event);
  return [event.smtpCode, event.enhancedCode, text]
    .filter((part) => part !== null && part !== undefined)
    .join(' ');
}

/** RFC 3463 */
function statusOf(event: Failure | Of<'email_delayed'>): string {
  return event.enhancedCode ?? (event.event === 'email_delayed' ? '4.0.0' : '5.0.0');
}

/** A number that programs can store, the same for each call of an event. */
function numberOf({ eventId }: FeedEvent): number {
  return createHash('sha256').update(eventId).digest().readUIntBE(0, 6);
}

const TABLES: Record<ProviderFormat, Table> = {
  postmark: POSTMARK,
  sendgrid: SENDGRID,
  mailgun: MAILGUN,
  resend: RESEND,
  ses: SES,
};

/** Whether the format has a name for events of this kind. */
export function hasEvent(format: WebhookFormat, kind: string): boolean {
  return format === 'postrider' || Object.hasOwn(TABLES[format], kind);
}

/**
 * The object of the provider for an event; null: it has no name for it. `messageId`: the id that the send returned, null for an
 * event without a message.
 */
export function providerEvent(
  format: ProviderFormat,
  event: FeedEvent,
  messageId: string | null,
): object | null {
  // Sound: the entry of a kind takes events of that kind.
  const render = TABLES[format][event.event] as ((event: FeedEvent, mail: Mail) => object) | undefined;
  if (render === undefined) return null;
  const { recipient = '', from, subject = '', tags = [], metadata = {} } = event;
  const object = render(event, {
    messageId: messageId ?? '',
    recipient,
    from: typeof from === 'string' ? from : '',
    subject,
    tags,
    metadata,
    seconds: Math.floor(Date.parse(event.timestamp) / 1000),
  });
  if (format === 'sendgrid') return [object];
  return format === 'mailgun' ? { 'event-data': object } : object;
}

/** What signs a call, in addition to the headers of Standard Webhooks. */
interface CallSigning {
  /** The current key of the webhook. */
  key: Buffer;
  /** The headers of Standard Webhooks. */
  standard: Readonly<Record<string, string>>;
  body: string;
}

/** The headers with which the SDK of the provider verifies a call; those of the others verify nothing. */
export function providerHeaders(
  format: ProviderFormat,
  { key, standard, body }: CallSigning,
): Record<string, string> {
  const timestamp = standard['webhook-timestamp'] ?? '';
  if (format === 'resend')
    // Resend signs with Svix, whose signature became that of Standard Webhooks.
    return Object.fromEntries(
      Object.entries(standard).map(([name, value]) => [name.replace(/^webhook-/, 'svix-'), value]),
    );
  if (format !== 'sendgrid') return {};
  return {
    'x-twilio-email-event-webhook-timestamp': timestamp,
    'x-twilio-email-event-webhook-signature': sign(
      'sha256',
      Buffer.from(timestamp + body),
      signingKey(key),
    ).toString('base64'),
  };
}

/**
 * The field `signature` of a body of Mailgun. Its key is the secret as the API presents it. `token`: another one for each call,
 * because receivers may refuse one that they know.
 */
export function mailgunSignature(key: Buffer, token: Buffer, now: number) {
  const timestamp = String(Math.floor(now / 1000));
  const hex = token.toString('hex');
  return {
    timestamp,
    token: hex,
    signature: mac(Buffer.from(presentSecret(key)), timestamp + hex).toString('hex'),
  };
}

/** The key with which the SDK of SendGrid verifies calls: DER in base64 (RFC 5480). */
export function verificationKey(key: Buffer): string {
  return createPublicKey(signingKey(key)).export({ type: 'spki', format: 'der' }).toString('base64');
}

/** Order of the group of P-256 (FIPS 186-5, SP 800-186 §3.2.1.3). */
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/** The P-256 key of a webhook, derived from its secret, so that there is no further secret (FIPS 186-5 §A.2.1). */
function signingKey(key: Buffer) {
  const bits = Buffer.from(hkdfSync('sha256', key, '', 'sendgrid event webhook', 40)).toString('hex');
  const scalar = (BigInt(`0x${bits}`) % (P256_ORDER - 1n)) + 1n;
  const d = Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex');
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(d);
  const point = ecdh.getPublicKey();
  const part = (from: number) => point.subarray(from, from + 32).toString('base64url');
  const jwk = { kty: 'EC', crv: 'P-256', d: d.toString('base64url'), x: part(1), y: part(33) };
  return createPrivateKey({ key: jwk, format: 'jwk' });
}
