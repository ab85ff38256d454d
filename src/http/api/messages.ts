import { z } from 'zod';

import { isRefusal, refuse } from '../../core/refusal.ts';
import { publicEvent } from '../../events/feed.ts';
import { DOMAIN_EVENTS, MESSAGE_EVENTS } from '../../events/lifecycle.ts';
import { messageTimeline, publicMessage } from '../../events/message-view.ts';
import { emailIdentifier } from '../../mail/identifier.ts';
import type { Tables } from '../../store/tables.ts';
import { pageKey, readPageKey } from '../page-key.ts';
import { type Route, route } from '../route.ts';

/** Messages and the event feed, as callers read them. */
const limit = z.coerce.number().int().min(1).max(200).default(50).describe('Rows in this page.');
const lastKey = z.string().max(200).optional().describe('`nextKey` of the page before.');
const moment = z.iso.datetime({
  offset: true,
  error: 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z',
});

const filters = {
  recipient: z.string().max(320).optional(),
  domainId: z.string().max(100).optional(),
  campaignId: z.string().max(100).optional(),
  jobId: z.string().max(100).optional(),
  from: moment.optional().describe('At or after.'),
  to: moment.optional().describe('Before.'),
  limit,
  lastKey,
};

const status = z.enum(['queued', 'sending', 'delivered', 'deferred', 'bounced', 'failed', 'complained']);

const message = z.object({
  messageId: z.string(),
  jobId: z.string().optional(),
  campaignId: z.string().optional(),
  subscriptionGroupId: z.string().optional(),
  useCase: z.enum(['tx', 'mk']),
  domainId: z.string(),
  from: z.string(),
  recipient: z.string(),
  role: z.enum(['to', 'cc', 'bcc']),
  subject: z.string(),
  status,
  attempts: z.int(),
  nextAttemptAt: z.string().optional(),
  createdAt: z.string(),
  updatedAt: z.string(),
});

const event = z.looseObject({
  eventId: z.string(),
  event: z.string(),
  timestamp: z.string(),
  accountId: z.string(),
});
const timelineEntry = z.looseObject({ type: z.enum(['event', 'attempt']), timestamp: z.string() });

export function messageRoutes({ tables }: { tables: Tables }): Route[] {
  return [listMessages(tables), getMessage(tables), listEvents(tables)];
}

function listMessages(tables: Tables): Route {
  return route({
    method: 'GET',
    path: '/web-setup/messages',
    operationId: 'listMessages',
    tag: 'Messages and events',
    summary: 'List messages, newest first',
    scope: 'setup',
    query: z.object({ ...filters, status: status.optional() }),
    answers: {
      200: {
        description: 'A page of messages',
        data: z.object({ messages: z.array(message), count: z.int(), nextKey: z.string().optional() }),
      },
    },
    refusals: [],
    handle: ({ caller, query }) => {
      const before = readPageKey('messages', query.lastKey);
      if (isRefusal(before)) return before;
      const rows = tables.messages.list({
        ...commonFilter(caller.accountId, query),
        ...(query.status === undefined ? {} : { status: query.status }),
        ...(before === null ? {} : { beforeSeq: before }),
        limit: query.limit + 1,
      });
      const page = rows.slice(0, query.limit);
      const last = page.at(-1);
      return {
        status: 200,
        data: {
          messages: page.map(publicMessage),
          count: page.length,
          ...(rows.length > page.length && last !== undefined
            ? { nextKey: pageKey('messages', last.seq) }
            : {}),
        },
      };
    },
  });
}

function getMessage(tables: Tables): Route {
  return route({
    method: 'GET',
    path: '/web-setup/messages/{id}',
    operationId: 'getMessage',
    tag: 'Messages and events',
    summary: 'One message with its timeline: every event and every SMTP attempt',
    scope: 'setup',
    params: z.object({ id: z.string() }),
    answers: {
      200: { description: 'The message', data: message.extend({ timeline: z.array(timelineEntry) }) },
    },
    refusals: ['MESSAGE_NOT_FOUND'],
    handle: ({ caller, params }) => {
      const row = tables.messages.byId(params.id);
      if (row === null || row.account_id !== caller.accountId)
        return refuse('MESSAGE_NOT_FOUND', 'There is no such message');
      return { status: 200, data: { ...publicMessage(row), timeline: messageTimeline(tables, row) } };
    },
  });
}

function listEvents(tables: Tables): Route {
  return route({
    method: 'GET',
    path: '/web-setup/events',
    operationId: 'listEvents',
    tag: 'Messages and events',
    summary: 'The ordered feed of events, oldest first',
    description:
      'Keep `nextKey` and ask again with it as `lastKey`: a consumer that was down catches up without a gap. `nextKey` is given whenever the page holds anything, so that the end of the feed can be waited at.',
    scope: 'setup',
    query: z.object({
      ...filters,
      event: z.enum([...MESSAGE_EVENTS, ...DOMAIN_EVENTS]).optional(),
      messageId: z.string().max(100).optional(),
    }),
    answers: {
      200: {
        description: 'A page of events',
        data: z.object({ events: z.array(event), count: z.int(), nextKey: z.string().optional() }),
      },
    },
    refusals: [],
    handle: ({ caller, query }) => {
      const after = readPageKey('events', query.lastKey);
      if (isRefusal(after)) return after;
      const rows = tables.events.feed({
        ...commonFilter(caller.accountId, query),
        ...(query.event === undefined ? {} : { kind: query.event }),
        ...(query.messageId === undefined ? {} : { messageId: query.messageId }),
        afterSeq: after ?? 0,
        limit: query.limit,
      });
      const last = rows.at(-1);
      return {
        status: 200,
        data: {
          events: rows.map(publicEvent),
          count: rows.length,
          ...(last === undefined ? {} : { nextKey: pageKey('events', last.seq) }),
        },
      };
    },
  });
}

interface CommonQuery {
  recipient?: string | undefined;
  domainId?: string | undefined;
  campaignId?: string | undefined;
  jobId?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

function commonFilter(accountId: string, query: CommonQuery) {
  return {
    accountId,
    ...(query.recipient === undefined ? {} : { recipientHash: identifierOf(query.recipient) }),
    ...(query.domainId === undefined ? {} : { domainId: query.domainId }),
    ...(query.campaignId === undefined ? {} : { campaignId: query.campaignId }),
    ...(query.jobId === undefined ? {} : { jobId: query.jobId }),
    ...(query.from === undefined ? {} : { from: Date.parse(query.from) }),
    ...(query.to === undefined ? {} : { to: Date.parse(query.to) }),
  };
}

/** An address, or its identifier. */
function identifierOf(recipient: string): string {
  return /^email_[0-9a-f]{32}$/.test(recipient) ? recipient : emailIdentifier(recipient);
}
