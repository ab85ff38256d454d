import { DAY, isoOrNull } from '../core/clock.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { withoutNulls } from '../core/without-nulls.ts';
import { EVENT_TYPES, type EventKind, isEventKind, isMessageEventKind } from '../events/event-types.ts';
import { isWanted } from '../events/webhook-filter.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import type { Context } from '../store/context.ts';
import { partlyDone, unitAfter } from '../store/database/failure.ts';
import type { EventRow } from '../store/messages/events.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import type {
  ListedWebhookDelivery,
  ReplayCandidate,
  WebhookDeliveryState,
} from '../store/webhook-deliveries.ts';
import type { WebhookRow } from '../store/webhooks.ts';
import type { CallResult, WebhookCaller } from './call.ts';
import { type WebhookHealth, webhookHealth } from './health.ts';
import {
  changedFields,
  EVERY_EVENT,
  newFields,
  type WebhookInput,
  type WebhookPatch,
  webhookHeaders,
} from './input.ts';
import { errorOf } from './outcome.ts';
import { payloadIn, signedCall, TOKEN_BYTES } from './payload.ts';
import {
  fieldsOf,
  findWebhook,
  presentDelivery,
  presentWebhook,
  presentWebhookDetail,
  type Webhook,
  type WebhookDelivery,
  type WebhookDeliveryStatus,
  type WebhookDetail,
  type WebhookFields,
} from './resource.ts';
import type { WebhookSecrets } from './secrets.ts';
import type { WebhookSender } from './sender.ts';

/** How long an old secret still signs. */
const OLD_SECRET_MS = DAY;
const MAX_OLD_SECRETS = 5;

/**
 * Webhooks of accounts. A webhook of another account is refused like one that does not exist. A webhook gets its first
 * secret in the unit of work that creates it. `update` checks the URL again; a changed URL, and enabling the webhook,
 * reset `failingSince`.
 */
export function createWebhooks(
  context: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids' | 'random' | 'log'>,
  {
    secrets,
    caller,
    allowPrivateNetworks,
    mayAdd,
    sender,
  }: {
    secrets: WebhookSecrets;
    caller: Pick<WebhookCaller, 'call'>;
    allowPrivateNetworks(): boolean;
    mayAdd: MayAdd;
    /** Absent outside of the daemon, which notices changes within a second. */
    sender?: Pick<WebhookSender, 'changed' | 'nextProbeAt'>;
  },
) {
  const { tables, reader, writer, clock, ids, log } = context;
  const nextProbeAt = (webhook: number): number | null => sender?.nextProbeAt(webhook) ?? null;

  function present(row: WebhookRow): WebhookDetail {
    const [key] = secrets.keys(tables, row, clock.now());
    if (key === undefined) throw new Error(`Webhook ${row.webhook_id} has no secret`);
    return presentWebhookDetail(row, key);
  }

  /** Changes a webhook of the account in a unit of work; resolves with the row that `edit` returned. */
  async function change(
    accountId: string,
    webhookId: string,
    edit: (all: Tables, row: WebhookRow) => WebhookRow | Refusal,
  ): Promise<WebhookRow | Refusal> {
    const changed = await writer.run((tx): WebhookRow | Refusal => {
      const row = findWebhook(tx, accountId, webhookId);
      return isRefusal(row) ? row : edit(tx, row);
    }, accountId);
    if (!isRefusal(changed)) sender?.changed(changed.number);
    return changed;
  }

  return {
    /** Oldest first. */
    list: (accountId: string, { includeInactive = false }: { includeInactive?: boolean } = {}): Webhook[] =>
      tables.webhooks
        .list(accountId)
        .filter((row) => includeInactive || row.is_active === 1)
        .map(presentWebhook),
    get: (accountId: string, webhookId: string): WebhookDetail | Refusal => {
      const row = findWebhook(tables, accountId, webhookId);
      return isRefusal(row) ? row : present(row);
    },
    /** How the endpoints of the account respond, or that of one webhook. `nextProbeAt`: see `WebhookSender`. */
    health: async (
      accountId: string,
      webhookId?: string,
    ): Promise<(WebhookHealth & { nextProbeAt: string | null })[]> => {
      const found = await reader.query(accountId, webhookHealth, { accountId, webhookId, now: clock.now() });
      return found.map(({ number, ...health }) => ({
        ...health,
        nextProbeAt: isoOrNull(nextProbeAt(number)),
      }));
    },
    create: async (accountId: string, input: WebhookInput): Promise<WebhookDetail | Refusal> => {
      const fields = newFields(input, allowPrivateNetworks());
      if (isRefusal(fields)) return fields;
      const headers = webhookHeaders(input.headers ?? null);
      if (isRefusal(headers)) return headers;
      const unknown = checkDomains(tables, accountId, fields);
      if (unknown !== null) return unknown;
      const created = await writer.run((tx): WebhookRow | Refusal => {
        const limit = mayAdd(tx, accountId);
        if (limit !== null) return limit;
        const now = clock.now();
        const webhookId = ids.make('webhook');
        const row = {
          ...columns(fields),
          headers: secrets.sealHeaders(webhookId, headers),
          webhook_id: webhookId,
          account_id: accountId,
          off_reason: null,
          failing_since: null,
          created_at: now,
          updated_at: now,
        };
        const number = tx.webhooks.insert(row);
        tx.webhooks.addSecret(number, secrets.create(row.webhook_id));
        return { ...row, number };
      }, accountId);
      if (isRefusal(created)) return created;
      log.info({ webhookId: created.webhook_id, accountId }, 'webhook created');
      return present(created);
    },
    update: async (
      accountId: string,
      webhookId: string,
      patch: WebhookPatch,
    ): Promise<WebhookDetail | Refusal> => {
      const changed = await change(accountId, webhookId, (tx, row) => {
        const fields = changedFields(fieldsOf(row), patch, allowPrivateNetworks());
        if (isRefusal(fields)) return fields;
        const unknown = patch.filter === undefined ? null : checkDomains(tx, accountId, fields);
        if (unknown !== null) return unknown;
        const headers = patch.headers === undefined ? null : webhookHeaders(patch.headers);
        if (isRefusal(headers)) return headers;
        const isReset = fields.url !== row.url || (fields.isActive && row.is_active === 0);
        const next = {
          ...row,
          ...columns(fields),
          headers: headers === null ? row.headers : secrets.sealHeaders(webhookId, headers),
          off_reason: fields.isActive || row.is_active === 1 ? null : row.off_reason,
          failing_since: isReset ? null : row.failing_since,
          updated_at: clock.now(),
        };
        tx.webhooks.update(next);
        return next;
      });
      return isRefusal(changed) ? changed : present(changed);
    },
    /** Deletes a webhook with its deliveries. */
    remove: async (accountId: string, webhookId: string): Promise<Webhook | Refusal> => {
      const removed = await change(accountId, webhookId, (tx, row) => {
        tx.webhooks.remove(row.number);
        return row;
      });
      if (isRefusal(removed)) return removed;
      log.info({ webhookId, accountId }, 'webhook deleted');
      return presentWebhook(removed);
    },
    /** Creates a new secret; calls are also signed with the old one for a day. */
    rotateSecret: async (accountId: string, webhookId: string): Promise<WebhookDetail | Refusal> => {
      const rotated = await change(accountId, webhookId, (tx, row) => {
        const now = clock.now();
        const expiries = tx.webhooks.secrets(row.number, now).flatMap(({ expires_at: at }) => at ?? []);
        if (expiries.length >= MAX_OLD_SECRETS)
          return refuse(
            'RATE_LIMITED',
            `${expiries.length} old secrets of webhook ${webhookId} are still valid; wait until one has expired`,
            { retryAfter: Math.ceil((Math.min(...expiries) - now) / 1000) },
          );
        tx.webhooks.retireSecret(row.number, now + OLD_SECRET_MS, now);
        tx.webhooks.addSecret(row.number, secrets.create(webhookId));
        const next = { ...row, updated_at: now };
        tx.webhooks.update(next);
        return next;
      });
      if (isRefusal(rotated)) return rotated;
      log.info({ webhookId, accountId }, 'webhook secret rotated');
      return present(rotated);
    },
    test: createWebhookTester(context, secrets, caller),
    ...createWebhookDeliveries(context, nextProbeAt),
  };
}

export type Webhooks = ReturnType<typeof createWebhooks>;

/** Requires that the domains of the filter are registered: with a mistyped one the webhook would get nothing. */
function checkDomains({ domains }: Tables, accountId: string, { filter }: WebhookFields): Refusal | null {
  const names = filter?.domains ?? [];
  const index = names.findIndex((name) => domains.named(accountId, name).length === 0);
  if (index === -1) return null;
  return invalid(`filter.domains[${index}]`, `${names[index]} is not a domain of this account`);
}

function columns({ url, format, events, filter, name, description, isActive }: WebhookFields) {
  return {
    url,
    format,
    events: JSON.stringify(events),
    filter: filter === null ? null : JSON.stringify(filter),
    name,
    description,
    is_active: isActive ? (1 as const) : (0 as const),
  };
}

export interface DeliveryPage {
  deliveries: WebhookDelivery[];
  nextSeq: number | null;
}

interface DeliveryQuery {
  status?: WebhookDeliveryStatus | undefined;
  /** Only of events before this one. */
  beforeSeq: number | null;
  limit: number;
}

interface ReplayInput {
  /** Epoch ms, inclusive. */
  from: number;
  /** Epoch ms, exclusive. */
  to: number;
  /**
   * Which events of the kinds to which the webhook subscribes now. `undelivered`: those without a successful call, because
   * calls failed, are pending, or were not made while the webhook was disabled. `all`: also those that succeeded.
   */
  which: 'undelivered' | 'all';
}

export interface ReplayResult {
  /** Events made ready. */
  replayed: number;
  /** Epoch ms: `from` of the next request, when there were more events than one request replays; null: complete. */
  nextFrom: number | null;
}

const STATES: Record<WebhookDeliveryStatus, readonly WebhookDeliveryState[]> = {
  pending: ['ready', 'waiting'],
  succeeded: ['succeeded'],
  failed: ['failed'],
};

/** Events that are read in one unit of work, and in one request. */
const REPLAY_BATCH_SIZE = 500;
const MAX_REPLAYED = 100_000;

/**
 * Lists deliveries and makes them ready again; the sender sends ready deliveries within a second. Keeps no state.
 * `retry` and `replay` refuse a disabled webhook (`INVALID_STATE`). A replay reads 500 events in a unit of work, and at
 * most 100,000 in one call.
 */
function createWebhookDeliveries(
  { tables, reader, writer, clock, ids }: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids'>,
  nextProbeAt: (webhook: number) => number | null,
) {
  const present = (row: ListedWebhookDelivery): WebhookDelivery =>
    presentDelivery(row, { now: clock.now(), nextProbeAt: nextProbeAt(row.webhook) });

  function findActive(tx: Tables, accountId: string, webhookId: string): WebhookRow | Refusal {
    const webhook = findWebhook(tx, accountId, webhookId);
    if (isRefusal(webhook) || webhook.is_active === 1) return webhook;
    return refuse('INVALID_STATE', `Webhook ${webhookId} is disabled: enable it first`);
  }

  /** In a unit of work: makes the selected events ready; returns their number. */
  function makeReady(
    tx: Tables,
    webhook: WebhookRow,
    candidates: readonly ReplayCandidate[],
    { which }: ReplayInput,
  ): number {
    const { number } = webhook;
    const { events } = fieldsOf(webhook);
    const now = clock.now();
    let count = 0;
    for (const { event_seq: eventSeq, kind, state } of candidates) {
      if (!events.includes(EVERY_EVENT) && !events.includes(kind)) continue;
      if (state === 'ready' || (state === 'succeeded' && which === 'undelivered')) continue;
      if (!isWanted(tx, webhook, kind, eventSeq)) continue;
      if (state !== null) tx.webhookDeliveries.makeReady(number, eventSeq, now);
      else tx.webhookDeliveries.insert({ webhook: number, eventSeq, deliveryId: ids.make('whd'), at: now });
      count++;
    }
    return count;
  }

  return {
    /** Newest event first; `nextSeq` is not null while more follow. */
    deliveries: async (
      accountId: string,
      webhookId: string,
      { status, beforeSeq, limit }: DeliveryQuery,
    ): Promise<DeliveryPage | Refusal> => {
      const webhook = findWebhook(tables, accountId, webhookId);
      if (isRefusal(webhook)) return webhook;
      const { rows, nextSeq } = await reader.table(accountId, 'webhookDeliveries', 'list', {
        webhook: webhook.number,
        states: status === undefined ? [] : STATES[status],
        beforeSeq: beforeSeq ?? Number.MAX_SAFE_INTEGER,
        limit,
      });
      return { deliveries: rows.map(present), nextSeq };
    },
    /** One delivery with the body of its calls. */
    delivery: (accountId: string, webhookId: string, deliveryId: string) => {
      const webhook = findWebhook(tables, accountId, webhookId);
      if (isRefusal(webhook)) return webhook;
      const row = tables.webhookDeliveries.byId(webhook.number, deliveryId);
      if (row === null) return unknownDelivery(webhookId, deliveryId);
      // Null: retention has deleted the event, or the format has no name for it.
      const event = tables.events.bySeq(row.event_seq);
      return { ...present(row), payload: event === null ? null : payloadIn(webhook.format, tables, event) };
    },
    /** Makes one delivery ready, whatever its status is. */
    retry: async (
      accountId: string,
      webhookId: string,
      deliveryId: string,
    ): Promise<WebhookDelivery | Refusal> => {
      const row = await writer.run((tx): ListedWebhookDelivery | Refusal => {
        const webhook = findActive(tx, accountId, webhookId);
        if (isRefusal(webhook)) return webhook;
        const delivery = tx.webhookDeliveries.byId(webhook.number, deliveryId);
        if (delivery === null) return unknownDelivery(webhookId, deliveryId);
        if (delivery.event_id === null)
          return refuse('INVALID_STATE', `The event of delivery ${deliveryId} is past its retention`);
        tx.webhookDeliveries.makeReady(webhook.number, delivery.event_seq, clock.now());
        return tx.webhookDeliveries.byId(webhook.number, deliveryId) ?? delivery;
      }, accountId);
      return isRefusal(row) ? row : present(row);
    },
    /** Makes the events of a time range ready. */
    replay: async (
      accountId: string,
      webhookId: string,
      input: ReplayInput,
    ): Promise<ReplayResult | Refusal> => {
      let afterSeq = tables.events.firstSeqAt(input.from) - 1;
      const lastSeq = tables.events.firstSeqAt(input.to) - 1;
      let replayed = 0;
      for (let read = 0; ; read += REPLAY_BATCH_SIZE) {
        const done = partlyDone(replayed, 'event', 'replayed');
        const unit = writer.run((tx): { candidates: ReplayCandidate[]; count: number } | Refusal => {
          const webhook = findActive(tx, accountId, webhookId);
          if (isRefusal(webhook)) return webhook;
          const range = { afterSeq, lastSeq, limit: REPLAY_BATCH_SIZE };
          const candidates = tx.webhookDeliveries.replayCandidates(webhook.number, accountId, range);
          return { candidates, count: makeReady(tx, webhook, candidates, input) };
        }, accountId);
        const batch = await unitAfter(done, unit);
        if (isRefusal(batch)) return batch;
        replayed += batch.count;
        const last = batch.candidates.at(-1);
        if (last === undefined || batch.candidates.length < REPLAY_BATCH_SIZE)
          return { replayed, nextFrom: null };
        // The next request reads the events of this millisecond again: they are ready, so they are not counted twice.
        if (read + REPLAY_BATCH_SIZE >= MAX_REPLAYED) return { replayed, nextFrom: last.at };
        afterSeq = last.event_seq;
      }
    },
  };
}

function unknownDelivery(webhookId: string, deliveryId: string): Refusal {
  return refuse('NOT_FOUND', `There is no delivery ${deliveryId} of webhook ${webhookId}`);
}

/**
 * Calls the endpoint with a signed sample event of this kind (default: the first kind to which the webhook subscribes).
 * Calls disabled webhooks too, so that an account can test a webhook before it enables it. Refuses an unknown
 * webhook, and a second test of a webhook while one is in progress (`RATE_LIMITED`). Writes nothing and counts in no
 * statistics; an abort of `signal` is a result with an error.
 */
function createWebhookTester(
  { tables, clock, ids, random }: Pick<Context, 'tables' | 'clock' | 'ids' | 'random'>,
  secrets: WebhookSecrets,
  caller: Pick<WebhookCaller, 'call'>,
) {
  /** Numbers of the webhooks that are being tested. */
  const running = new Set<number>();

  return async (accountId: string, webhookId: string, kind: EventKind | undefined, signal: AbortSignal) => {
    const webhook = findWebhook(tables, accountId, webhookId);
    if (isRefusal(webhook)) return webhook;
    const { format } = webhook;
    const event = sampleEvent(kind ?? firstKind(webhook.events), accountId, { clock, ids });
    const payload = payloadIn(format, tables, event);
    if (payload === null) return invalid('event', `must be one that the format ${format} has`);
    if (running.has(webhook.number))
      return refuse('RATE_LIMITED', `A test of webhook ${webhookId} is in progress`, { retryAfter: 1 });
    running.add(webhook.number);
    try {
      const startedAt = clock.now();
      const keys = secrets.keys(tables, webhook, startedAt);
      const token = random.bytes(TOKEN_BYTES);
      const call = { format, id: event.event_id, payload, keys, token, now: startedAt };
      const { body, headers: signed } = signedCall(call);
      const headers = { ...secrets.headers(webhook), ...signed };
      const result = (await caller.call({ accountId, url: webhook.url, headers, body }, signal)) ?? CANCELLED;
      const error = errorOf(result);
      return withoutNulls({
        webhookId,
        // The endpoint replied 2xx in time.
        delivered: error === null,
        responseCode: result.kind === 'response' ? result.status : null,
        // The first KiB.
        responseBody: result.kind === 'response' ? result.body : null,
        error,
        durationMs: clock.now() - startedAt,
        payload,
      });
    } finally {
      running.delete(webhook.number);
    }
  };
}

const CANCELLED: CallResult = { kind: 'no-response', reason: 'the test was cancelled' };

function firstKind(events: string): EventKind {
  const kinds: string[] = JSON.parse(events);
  return kinds.find(isEventKind) ?? 'email_delivered';
}

const NO_MESSAGE = {
  message_id: null,
  job_id: null,
  campaign_id: null,
  subscription_group_id: null,
  use_case: null,
  from_address: null,
  recipient: null,
  recipient_hash: null,
  subject: null,
  labels: null,
  // So that `livemode` is false, as for simulated mail.
  simulated: 1,
} as const;

const MESSAGE = {
  use_case: 'tx',
  from_address: 'sender@example.com',
  recipient: 'recipient@example.com',
  recipient_hash: emailIdentifier('recipient@example.com'),
  subject: 'A test of this webhook',
} as const;

/** An event for a test call: new ids, the current time, and the example fields of its kind. It is not stored. */
function sampleEvent(
  kind: EventKind,
  accountId: string,
  { clock, ids }: Pick<Context, 'clock' | 'ids'>,
): EventRow {
  return {
    seq: 0,
    event_id: ids.make('evt'),
    account_id: accountId,
    kind,
    at: clock.now(),
    message_seq: null,
    domain_id: ids.make('domain'),
    data: JSON.stringify(EVENT_TYPES[kind].example),
    ...NO_MESSAGE,
    ...(isMessageEventKind(kind) ? { ...MESSAGE, message_id: ids.make('msg') } : {}),
  };
}
