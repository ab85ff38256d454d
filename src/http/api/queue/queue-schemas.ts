import * as z from 'zod';
import { CONTROL_ACTIONS, CONTROL_SCOPES } from '../../../store/messages/queue-controls.ts';
import { messageStatus } from '../sending/send-schemas.ts';

/* Schemas of the operations on the queue. */

export const scopeSchema = z.enum(CONTROL_SCOPES).meta({
  id: 'QueueScope',
  description: 'The kind of the target: a recipient domain, a site, an account id or an egress pool.',
});

export const controlSchema = z
  .object({
    action: z.enum(CONTROL_ACTIONS).describe('`pause`: the mail waits. `bounce`: it is rejected.'),
    scope: scopeSchema,
    target: z.string(),
    reason: z.string(),
    until: z.iso.datetime().nullable().describe('Null: until it is removed.'),
    createdAt: z.iso.datetime(),
    createdBy: z.string().describe('The id of an API key, or the program that the operator used.'),
  })
  .meta({ id: 'QueueControl' });

export const EXAMPLE_CONTROL = {
  action: 'pause',
  scope: 'destination',
  target: 'example.net',
  reason: 'Maintenance at the receiver',
  until: '2026-02-01T12:00:00.000Z',
  createdAt: '2026-01-31T12:00:00.000Z',
  createdBy: 'command line',
};

const lane = z.enum(['primary', 'secondary']);

const reasonSchema = z
  .object({
    code: z.string().describe('Such as `paused`, `deferred`, `site_suspended`.'),
    text: z.string(),
    until: z.iso.datetime().nullable().describe('When it ends by itself, if known.'),
    remedy: z.string().nullable(),
    messages: z.int().optional().describe('Of a destination: messages with this reason.'),
  })
  .meta({ id: 'QueueReason' });

const replySchema = z
  .object({
    attempt: z.int().optional(),
    messages: z.int().optional().describe('Of a destination: messages with this reply.'),
    at: z.iso.datetime(),
    lane: z.string(),
    host: z.string().nullable(),
    address: z.string().nullable(),
    reply: z
      .object({ code: z.int(), enhanced: z.string().nullable(), text: z.string() })
      .nullable()
      .describe('Null: no host replied.'),
    classification: z.string().nullable(),
    remedy: z.string().nullable().describe('What it means and what to do.'),
  })
  .meta({ id: 'QueueReply' });

export const siteSchema = z
  .object({
    site: z.string().describe('MX hosts or shaping profile, and the egress pool.'),
    pool: z.string(),
    suspendedUntil: z.iso.datetime().nullable(),
    limitedUntil: z.iso.datetime().nullable().describe('It asked to send less until then.'),
    pause: controlSchema.nullable(),
    connections: z.object({
      used: z.int(),
      allowed: z.int().describe('Now; fewer than `limit` after an outage.'),
      limit: z.int(),
    }),
    readAhead: z
      .object({ transactional: z.int(), marketing: z.int() })
      .describe('Messages in memory that wait for a connection.'),
    waitingKeys: z.int().describe('Pairs of account and destination that wait for their turn.'),
  })
  .meta({ id: 'QueueSite' });

export const EXAMPLE_SITE = {
  site: 'mx1.example.net,mx2.example.net via default',
  pool: 'default',
  suspendedUntil: null,
  limitedUntil: null,
  pause: null,
  connections: { used: 10, allowed: 10, limit: 10 },
  readAhead: { transactional: 12, marketing: 0 },
  waitingKeys: 1,
};

const routeSchema = z
  .object({
    pool: z.string(),
    via: z.enum(['mx', 'configured', 'rerouted', 'relay']),
    hosts: z.array(z.object({ name: z.string(), addresses: z.array(z.string()) })),
    failure: z.string().nullable().describe('Why there is no route.'),
  })
  .meta({ id: 'QueueRoute' });

const EXAMPLE_REASON = {
  code: 'deferred',
  text: 'The last attempt was deferred; the next one is at 2026-01-31T12:05:00.000Z.',
  until: '2026-01-31T12:05:00.000Z',
  remedy: 'To try it earlier: "postrider queue retry".',
};
const EXAMPLE_REPLY = {
  at: '2026-01-31T12:00:00.000Z',
  lane: 'primary',
  host: 'mx1.example.net',
  address: '192.0.2.10',
  reply: { code: 451, enhanced: '4.7.1', text: 'Try again later' },
  classification: 'greylisted',
  remedy: 'The destination greylists unknown senders.',
};

export const EXAMPLE_MESSAGE = {
  messageId: 'msg_1769860800000_4kx0m2p9q8zt',
  accountId: 'acct_8f3k2m9x0q1z',
  recipient: 'ada@example.net',
  destination: 'example.net',
  stream: 'transactional',
  status: 'deferred',
  lane: 'primary',
  attempts: 1,
  acceptedAt: '2026-01-31T12:00:00.000Z',
  nextAttemptAt: '2026-01-31T12:05:00.000Z',
  expiresAt: '2026-02-02T12:00:00.000Z',
  blockedAt: null,
  reasons: [EXAMPLE_REASON],
  ahead: 0,
  lastAttempts: [{ attempt: 1, ...EXAMPLE_REPLY }],
  route: null,
  site: null,
  unknown: [],
};

export const EXAMPLE_DESTINATION = {
  destination: 'example.net',
  messages: 120,
  sending: 0,
  deferred: 120,
  held: 0,
  oldestAcceptedAt: '2026-01-31T12:00:00.000Z',
  nextAttemptAt: '2026-01-31T12:05:00.000Z',
  blockedAt: null,
  control: null,
  reasons: [{ ...EXAMPLE_REASON, messages: 100 }],
  replies: [],
  examined: 100,
  routes: [],
  sites: [],
  unknown: [],
};

const blockedAt = z.iso
  .datetime()
  .nullable()
  .describe(
    'Since when a receiver blocks the only source address that could send the mail; null: none is blocked. The reason `address_blocked` has the address, the receiver and how to end the block.',
  );

const unknown = z.array(z.string()).describe('What could not be determined, and why.');

export const messageExplanationSchema = z
  .object({
    messageId: z.string(),
    accountId: z.string(),
    recipient: z.string(),
    destination: z.string(),
    stream: z.enum(['transactional', 'marketing']),
    status: messageStatus,
    lane: lane.describe('Of the next attempt.'),
    attempts: z.int(),
    acceptedAt: z.iso.datetime(),
    nextAttemptAt: z.iso.datetime().nullable(),
    expiresAt: z.iso.datetime(),
    blockedAt,
    reasons: z.array(reasonSchema).describe('Why it is not sent now; the first one decides.'),
    ahead: z
      .int()
      .describe('Due messages of the account to the destination that precede it, counted up to 10,000.'),
    lastAttempts: z.array(replySchema).describe('At most 5, the latest first.'),
    route: routeSchema.nullable(),
    site: siteSchema.nullable(),
    unknown,
  })
  .meta({ id: 'QueuedMessageExplanation' });

export const destinationExplanationSchema = z
  .object({
    destination: z.string(),
    messages: z.int(),
    sending: z.int(),
    deferred: z.int(),
    held: z.int(),
    oldestAcceptedAt: z.iso.datetime().nullable().describe('Of the messages examined.'),
    nextAttemptAt: z.iso.datetime().nullable(),
    blockedAt,
    control: controlSchema.nullable(),
    reasons: z.array(reasonSchema),
    replies: z.array(replySchema),
    examined: z
      .int()
      .describe('The messages that `reasons` and `replies` count: the 100 that are due first.'),
    routes: z.array(routeSchema),
    sites: z.array(siteSchema),
    unknown,
  })
  .meta({ id: 'QueueDestinationExplanation' });

export const filterSchema = z
  .object({
    accountId: z.string().optional(),
    destination: z.string().optional().describe('Recipient domain.'),
    domainId: z.string().optional().describe('Sending domain.'),
    campaignId: z.string().optional(),
  })
  .describe('At least one field.');

export const bulkSchema = z
  .object({
    matched: z.int().describe('Messages that matched when the operation began.'),
    changed: z.int(),
    skipped: z.int().describe('Sent or changed meanwhile.'),
    next: z
      .int()
      .nullable()
      .describe(
        'Not all messages are done: repeat the request with this number in `after`. Null: all are done.',
      ),
  })
  .meta({ id: 'QueueChangeResult' });
